"""The tuning report from sums: what it counts, what it advises, and how it is drawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from services.ledger import START, make_decision
from support.office import CATEGORIES
from triage.cli.report import show
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.record import DecisionRecord
from triage.domain.tool import Rates
from triage.report.served import Served, changes
from triage.report.suggest import Suggestion, as_diff, edited, suggest
from triage.report.tuning import Competition, Report, calibrate, percentiles
from triage.report.tuning_html import report_html
from triage.report.tuning_json import report_json


def review(record: DecisionRecord, kind: CorrectionKind, to: str | None = None) -> tuple[Correction, DecisionRecord]:
    return (
        Correction(f"c-{record.id}", "team", record.id, "", "", kind, record.label_id, to, START + timedelta(hours=1)),
        record,
    )


def sure(number: int, p: float, label: str = "newsletter", **changes: object) -> DecisionRecord:
    shares = {label: p, "receipt" if label != "receipt" else "conversation": 1 - p}
    return make_decision(number, label_id=label, choice=label, probabilities=shares, confidence=2 * p - 1, **changes)


def test_two_options_near_forty_percent_compete_and_a_clear_first_does_not() -> None:
    competition = Competition()
    for _ in range(3):
        competition.add({"newsletter": 0.45, "receipt": 0.40, "conversation": 0.15})
    competition.add({"newsletter": 0.40, "receipt": 0.45, "conversation": 0.15})
    competition.add({"newsletter": 0.80, "receipt": 0.15, "conversation": 0.05})
    competition.add({"newsletter": 0.50, "receipt": 0.20, "conversation": 0.20})
    (pair,) = competition.pairs(CATEGORIES)
    assert (pair.first, pair.second, pair.forth, pair.back, pair.swaps) == ("newsletter", "receipt", 3, 1, True)
    assert "costs little" in pair.advice
    assert competition.read == 6


def test_a_pair_of_which_one_is_archived_matters() -> None:
    competition = Competition()
    competition.add({"newsletter": 0.45, "action-required": 0.45})
    assert "so it matters" in competition.pairs(CATEGORIES)[0].advice


def test_an_answer_under_the_floor_that_a_person_confirms_was_right() -> None:
    """Relabelled to what the model had chosen: right. Moved back: wrong. A fallback that was left says nothing."""
    doubtful = sure(1, 0.6, label="receipt")
    fallen = [make_decision(n, label_id="unclassified", choice="receipt", probabilities=doubtful.probabilities)
              for n in (1, 2)]  # fmt: skip
    found = calibrate(
        [
            review(fallen[0], CorrectionKind.RELABELLED, "receipt"),
            review(fallen[1], CorrectionKind.CONFIRMED, "unclassified"),
            review(sure(3, 0.9), CorrectionKind.MOVED_BACK),
            review(sure(4, 0.9), CorrectionKind.CONFIRMED, "newsletter"),
        ]
    )
    everything = {c.label_id: (c.reviewed, c.right) for c in found}
    assert everything == {"all": (3, 2), "receipt": (1, 1), "newsletter": (2, 1)}


def test_calibration_error_is_the_mean_distance_weighed_by_count() -> None:
    reviews = [review(sure(n, 0.95), CorrectionKind.CONFIRMED, "newsletter") for n in range(3)]
    reviews += [review(sure(9, 0.95), CorrectionKind.RELABELLED, "receipt")]
    (everything, _) = calibrate(reviews)
    assert everything.ece == pytest.approx(abs(0.95 - 0.75))


def test_only_the_latest_word_on_a_decision_counts() -> None:
    record = sure(1, 0.9)
    found = calibrate(
        [review(record, CorrectionKind.RELABELLED, "receipt"), review(record, CorrectionKind.CONFIRMED, "newsletter")]
    )
    assert (found[0].reviewed, found[0].right) == (1, 0)


def test_percentiles_of_counted_latencies() -> None:
    told = percentiles("p", dict.fromkeys(range(1, 101), 1))
    assert (told.count, told.p50, told.p95, told.p99, told.most) == (100, 50, 95, 99, 100)
    assert percentiles("p", {}).most == 0


def test_a_floor_is_suggested_only_where_enough_was_reviewed_and_some_was_wrong() -> None:
    right = [review(sure(n, 0.97), CorrectionKind.CONFIRMED, "newsletter") for n in range(5)]
    wrong = [review(sure(9, 0.80), CorrectionKind.MOVED_BACK)]
    (told,) = suggest(CATEGORIES, [*right, *wrong], (), {}, 0.5)
    assert told.category == "newsletter"
    assert told.floor == pytest.approx(0.94), "the lowest that keeps the wrong one out and the right ones in"
    assert not any(s.floor for s in suggest(CATEGORIES, right, (), {}, 0.5))
    assert not any(s.floor for s in suggest(CATEGORIES, [*right[:2], *wrong], (), {}, 0.5))


YAML = """\
# ours
parent: Triage
categories:
  - id: newsletter          # bulk
    name: Newsletter
    criteria: Bulk mail.
    action: archive
    floor: 0.6

  - id: receipt
    name: Receipt
    criteria: Paid.
    examples:
      - "Paid."
"""


def test_suggestions_are_written_where_they_belong_and_nothing_else_changes() -> None:
    told = [
        Suggestion("newsletter", ('The "week" in review',), 0.8, ("people moved it back",)),
        Suggestion("receipt", ("Invoice 7",)),
        Suggestion("unknown", ("x",)),
    ]
    assert edited(YAML, told) == YAML.replace(
        "  - id: newsletter ", "  # people moved it back\n  - id: newsletter "
    ).replace("    floor: 0.6\n", '    floor: 0.8\n    examples:\n      - "The \\"week\\" in review"\n').replace(
        '      - "Paid."', '      - "Invoice 7"\n      - "Paid."'
    )


def test_no_suggestions_make_no_diff() -> None:
    assert as_diff(YAML, [], "categories.yaml") == ""


class _Page(HTMLParser):
    """Which elements a page has, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]


def test_the_page_is_self_contained_and_every_plot_has_words(report_of_a_day: Report) -> None:
    text = report_html([report_of_a_day], (0.5, 0.7))
    page = _Page()
    page.feed(text)
    assert page.fetched == []
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert page.tags.count("svg") >= 3
    assert text.count("<desc>") == page.tags.count("svg")
    assert "prefers-color-scheme:dark" in text
    assert "<b>" not in text, "text of the records is escaped"


@pytest.fixture
def report_of_a_day() -> Report:
    from triage.report.tuning_build import build

    return build(_Sums(), "team <b>", CATEGORIES, START - timedelta(days=1), START)


class _Sums:
    """The ledger's sums as a fake at the Figures port: one day, two labels."""

    def tallies(self, account: object, since: object, until: object) -> list[object]:
        from triage.ledger.figures import Tally

        return [
            Tally(
                "newsletter", "newsletter", "applied", "systemone", False, True, False, 18, 70, 7000, 700, 0, 0.07, 9
            ),
            Tally(
                "unclassified", "receipt", "below_floor", "systemone", False, False, False, 6, 25, 2500, 250, 0, 0.02, 0
            ),
            Tally("newsletter", "newsletter", "inherited", None, False, True, True, 18, 5, 0, 0, 0, 0.0, 0),
        ]

    def days(self, *_: object) -> dict[date, tuple[int, int, float]]:
        return {START.date(): (100, 75, 0.09)}

    def latencies(self, *_: object) -> dict[str, dict[int, int]]:
        return {"systemone": {120: 90, 900: 5}}

    def heaviest_senders(self, *_: object) -> list[tuple[str, int, int]]:
        return [("big.example <b>", 3, 3000), ("small.example", 9, 900)]

    def unsure(self, *_: object) -> list[dict[str, float]]:
        return [{"receipt": 0.42, "newsletter": 0.40, "conversation": 0.18}] * 4

    def served(self, *_: object) -> list[Served]:
        noon = START - timedelta(hours=12)
        return [
            Served(0, "systemone", "jev-1.13 <b>", 60, START - timedelta(days=1), noon),
            Served(0, "systemone", "jev-1.14", 35, noon + timedelta(minutes=5), START),
        ]

    def run_states(self, *_: object) -> dict[tuple[str, str, str], int]:
        return {("schedule", "done", ""): 5, ("schedule", "failed", "cut"): 1}

    def correction_counts(self, *_: object) -> dict[tuple[str, str, str | None], int]:
        return {("relabelled", "newsletter", "receipt"): 3, ("moved_back", "newsletter", None): 2}

    def tool_rates(self, *_: object) -> Rates:
        return Rates(40, 3, 2, 1, {"forbidden": 3, "timeout": 2, "found": 35})

    def reviewed(self, *_: object) -> list[tuple[Correction, DecisionRecord]]:
        return [review(sure(1, 0.9), CorrectionKind.RELABELLED, "receipt")]


def test_a_model_that_was_changed_behind_its_alias_is_told(report_of_a_day: Report) -> None:
    told = [line for line in report_of_a_day.advice if "jev-1.14" in line]
    assert told == [
        f"systemone answered as jev-1.13 <b> until {START - timedelta(hours=12):%Y-%m-%d %H:%M} UTC, and as jev-1.14 "
        "since. Compare the shares under the floor before and after; to keep one version, name it in triage.yaml "
        "(docs/models.md)."
    ]


def test_models_that_take_turns_are_told_and_other_places_of_the_chain_are_not_mixed_in() -> None:
    first, last = START - timedelta(days=1), START
    by_turns = [Served(0, "systemone", name, 9, first, last) for name in ("a-1", "a-2")]
    assert "answers as a-1 and as a-2, by turns" in next(changes(by_turns))
    assert (
        list(changes([Served(0, "systemone", "a-1", 9, first, last), Served(1, "systemone", "b", 1, last, last)])) == []
    )


def test_the_report_adds_up(report_of_a_day: Report) -> None:
    r = report_of_a_day
    assert (r.decisions, r.asked, r.archived, r.below_floor, r.inherited, r.recovered) == (100, 95, 75, 25, 5, 5)
    assert r.cost.per_1000 == pytest.approx(0.9), "inherited mail is counted, as free mail"
    assert r.cost.tail == (("big.example <b>", 3, 3000),)
    assert r.cost.saved_by_threads_tokens == 500
    rows = {c.label_id: (c.count, c.nearly, c.corrected) for c in r.categories}
    assert rows["newsletter"] == (75, 0, 5)
    assert rows["receipt"] == (0, 25, 0)


def test_how_calls_of_the_mail_tool_ended_is_told_in_all_three_forms(
    report_of_a_day: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "7.5% (3) forbidden, 5.0% (2) timeout, 2.5% (1) naming a run that was not the caller's"
    assert told.replace("'", "&#x27;") in report_html([report_of_a_day]).replace("'", "&#x27;")
    as_json = report_json(report_of_a_day)["mail_tool"]
    assert (as_json["calls"], as_json["forbidden_share"], as_json["timeout_share"]) == (40, 0.075, 0.05)
    assert as_json["inconsistent_run_share"] == 0.025
    assert as_json["by_state"] == {"forbidden": 3, "found": 35, "timeout": 2}
    show(Console(width=200), report_of_a_day)
    assert told in capsys.readouterr().out


def test_the_mail_tool_is_told_where_nothing_was_decided_and_left_out_where_it_was_not_used(
    report_of_a_day: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    show(Console(width=200), replace(report_of_a_day, decisions=0))
    assert "40 calls" in capsys.readouterr().out
    unused = replace(report_of_a_day, tool=Rates())
    show(Console(width=200), unused)
    assert "Mail tool" not in capsys.readouterr().out + report_html([unused])


def test_many_unsure_answers_and_pairs_are_told(report_of_a_day: Report) -> None:
    advice = "\n".join(report_of_a_day.advice)
    assert "26% of the answers are under the floor" in advice
    assert "receipt and newsletter came close 4 times" in advice
    assert "People made receipt of newsletter 3 times" in advice
    assert "moved newsletter back from the archive 2 times" in advice


@pytest.mark.parametrize("width", [80, 120])
def test_advice_is_told_in_whole_words_under_its_dash(report_of_a_day: Report, width: int) -> None:
    from triage.cli.report import show

    out = StringIO()
    show(Console(file=out, width=width), report_of_a_day)
    said = out.getvalue().splitlines()
    points = said[said.index("What to do") + 1 : said.index("Categories") - 1]
    assert all(line.startswith(("  - ", "    ")) and not line.startswith("     ") for line in points)
    told = " ".join(" ".join(points).replace("- ", "").split())
    assert all(" ".join(advice.split()) in told for advice in report_of_a_day.advice)
