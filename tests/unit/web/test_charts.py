"""Plots: well-formed, escaped, told in words, and true to their numbers."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from support.web_world import World
from triage.domain.record import DecisionRecord, StepRecord
from triage.policy.confidence import confidence
from triage.web.charts.calibration import calibration_plot
from triage.web.charts.columns import daily_columns
from triage.web.charts.distribution import distribution, needed
from triage.web.charts.histogram import confidence_histogram
from triage.web.charts.timeline import duration, timeline

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.fixture
def decision(tmp_path: Path) -> DecisionRecord:
    return World(tmp_path).decision("run")


def xs(svg: str, kind: str) -> list[float]:
    """Where the elements of a class begin, in percent."""
    root = ET.fromstring(svg)
    found = (e for e in root.iter() if kind in e.get("class", "").split())
    return [float((e.get("x") or e.get("x1") or "").rstrip("%")) for e in found]


def widths(svg: str, kind: str) -> list[float]:
    return [
        float(e.get("width", "").rstrip("%")) for e in ET.fromstring(svg).iter() if e.get("class", "").startswith(kind)
    ]


@pytest.mark.parametrize("options", [2, 3, 9, 255])
@pytest.mark.parametrize("floor", [0.0, 0.5, 0.7, 1.0])
def test_the_floor_is_drawn_at_the_probability_that_just_reaches_it(floor: float, options: int) -> None:
    """The floor is a confidence; the bars are probabilities."""
    best = needed(floor, options)
    rest = (1 - best) / (options - 1)
    assert confidence({"best": best, **{str(n): rest for n in range(options - 1)}}) == pytest.approx(floor)


def test_a_bar_passes_the_line_exactly_when_the_confidence_reaches_the_floor(decision: DecisionRecord) -> None:
    svg = distribution(decision, 5)
    line = xs(svg, "limit")[0]
    bar = ET.fromstring(svg).find(".//rect[@class='bar chosen']")
    assert bar is not None
    end = float(bar.get("x", "").rstrip("%")) + float(bar.get("width", "").rstrip("%"))
    assert end > line
    assert len(xs(svg, "limit")) == 2


def test_options_beyond_the_most_probable_are_drawn_together(decision: DecisionRecord) -> None:
    svg = distribution(decision, 2)
    assert "2 others" in svg
    assert svg.count('class="track"') == 3


def test_names_are_escaped_and_the_plot_is_told_in_words(tmp_path: Path) -> None:
    hostile = World(tmp_path).decision("run", probabilities={'"><script>': 0.9, "b": 0.1})
    svg = distribution(hostile, 5)
    root = ET.fromstring(svg)
    assert "script" not in {e.tag for e in root.iter()}
    assert root.get("role") == "img"
    assert [e.tag for e in root][:2] == ["title", "desc"]
    assert "b 0.10" in (root.findtext("desc") or "")


def test_steps_lie_where_they_began_and_are_as_long_as_they_took() -> None:
    steps = [
        StepRecord("select", NOON, 100),
        StepRecord("decide", NOON + timedelta(milliseconds=100), 900),
        StepRecord("archive", NOON + timedelta(milliseconds=1000), 0),
    ]
    svg = timeline(steps)
    bars = [e for e in ET.fromstring(svg).iter() if e.get("class") == "bar"]
    starts = [float(e.get("x", "").rstrip("%")) for e in bars]
    assert starts == pytest.approx([20, 28, 100])
    assert widths(svg, "bar") == pytest.approx([8, 72, 0.32])


@pytest.mark.parametrize(("ms", "told"), [(0, "0 ms"), (999, "999 ms"), (1500, "1.5 s"), (180_000, "3 min")])
def test_durations_are_told_in_fitting_units(ms: float, told: str) -> None:
    assert duration(ms) == told


def test_the_histogram_tells_bins_over_and_under_the_floor_apart() -> None:
    counts = [0] * 20
    counts[3], counts[10], counts[19] = 5, 2, 10
    svg = confidence_histogram(counts, 0.5, "Confidence of Receipt")
    kinds = re.findall(r'class="bar (\w+)"', svg)
    assert (kinds.count("below"), kinds.count("above"), kinds.count("astride")) == (10, 10, 0)
    assert "Of 17 answers 12 were in bins at or above the floor of 0.50." in svg
    assert 'class="bar astride"' in confidence_histogram(counts, 0.52, "x")


def test_days_without_mail_keep_their_place() -> None:
    days = [(date(2026, 11, 1) + timedelta(days=n), float(n % 2)) for n in range(10)]
    svg = daily_columns(days, "Mails", lambda value: f"{value:.0f}")
    assert svg.count("<rect") == 10
    assert "10 days, 5 in all, at most 1 a day." in svg


@dataclass(frozen=True)
class Bin:
    count: int
    mean: float
    right: float


def test_calibration_has_a_dot_for_each_bin_larger_where_it_holds_more() -> None:
    svg = calibration_plot([Bin(90, 0.95, 0.9), Bin(10, 0.55, 0.4)], "Calibration")
    dots = [e for e in ET.fromstring(svg).iter() if e.tag == "circle"]
    assert len(dots) == 2
    assert float(dots[0].get("r", "")) > float(dots[1].get("r", ""))
    assert "claimed 0.95, right 0.90 of 90" in svg
