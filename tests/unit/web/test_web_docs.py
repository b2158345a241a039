"""What the documentation says of metrics, alerts and pages is what the program has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from support.premises import wait_until
from support.web_world import World, patient_get
from triage.web.messages import Request
from triage.web.room import PERIODS
from triage.web.site import ROUTES

DOCS = Path(__file__).parent.parent.parent.parent / "docs"
NAME = re.compile(r"\btriage_[a-z_]+")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a scrape over a ledger with a past, with and without their suffixes."""
    world = World(tmp_path_factory.mktemp("docs"))
    world.lived_in()
    site = world.site
    site.answer(Request("/healthz", headers={"host": "localhost"}))
    wait_until(lambda: b"triage_cost" in patient_get(site, "/metrics").body)
    body = patient_get(site, "/metrics").body.decode()
    world.close()
    return set(re.findall(r"^(triage_[a-z_]+)", body, re.MULTILINE))


def test_alerts_ask_for_metrics_that_are_there(exposed: set[str]) -> None:
    text = (DOCS / "prometheus-alerts.yaml").read_text()
    asked = set(NAME.findall(text))
    assert asked
    assert asked <= exposed
    rules = yaml.safe_load(text)["groups"][0]["rules"]
    assert all({"alert", "expr", "labels", "annotations"} <= rule.keys() for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)


def test_the_grafana_dashboard_asks_for_metrics_that_are_there(exposed: set[str]) -> None:
    board = json.loads((DOCS / "grafana-dashboard.json").read_text())
    asked = set(NAME.findall(" ".join(t["expr"] for panel in board["panels"] for t in panel["targets"])))
    assert asked
    assert asked <= exposed


def test_every_metric_is_documented(exposed: set[str]) -> None:
    told = set(NAME.findall((DOCS / "dashboard.md").read_text()))
    plain = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in exposed}
    assert plain <= told


def test_every_page_and_period_is_documented() -> None:
    text = (DOCS / "dashboard.md").read_text()
    for pattern, _ in ROUTES:
        path = re.sub(r"\(\?P<(\w+)>[^)]*\)", lambda m: m[1].removesuffix("_id").upper(), pattern.pattern)
        assert f"`{path}`" in text, path
    for days in PERIODS:
        assert str(days if days > 1 else 24) in text


def test_every_screenshot_is_there() -> None:
    shown = re.findall(r"\]\((screenshots/[^)]+)\)", (DOCS / "dashboard.md").read_text())
    assert shown
    assert all((DOCS / path).is_file() for path in shown)
