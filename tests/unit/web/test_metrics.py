"""/metrics: the field's conventions, and counters that neither restarts nor retention set back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from services.ledger import HandClock
from support.premises import wait_until
from support.web_world import World
from triage.domain.record import Trigger
from triage.web.messages import Request, Response
from triage.web.site import Site

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def scrape(world: World) -> Samples:
    """What Prometheus would get in the end: what is still being counted is left out at first."""
    site = world.site
    wait_until(lambda: b"triage_decision_latency" in metrics(site).body)
    response = metrics(site)
    assert response.status == 200
    families = text_string_to_metric_families(response.body.decode())
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families for s in f.samples}


def metrics(site: Site) -> Response:
    return site.answer(Request("/metrics", headers={"host": "localhost"}))


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def pass_time(world: World, **span: float) -> None:
    assert isinstance(world.clock, HandClock)
    world.clock.advance(timedelta(**span))


def test_everything_that_was_decided_is_counted(world: World) -> None:
    world.lived_in()
    samples = scrape(world)
    model = {"provider": "systemone", "model": "table-1"}
    assert value(samples, "triage_decisions_total", account="team", outcome="applied", **model) == 27
    assert value(samples, "triage_decisions_total", account="team", outcome="below_floor", **model) == 1
    assert value(samples, "triage_decisions_total", account="team", outcome="inherited", provider="", model="") == 1
    assert value(samples, "triage_runs_total", account="team", state="done", trigger="manual") == 13
    assert value(samples, "triage_input_tokens_total", account="team", **model) == 28 * 900
    assert value(samples, "triage_cost_usd_total", account="team", **model) == pytest.approx(28 * 0.0004)
    assert value(samples, "triage_decision_latency_seconds_count", **model) == 28
    assert value(samples, "triage_decision_latency_seconds_sum", **model) == pytest.approx(28 * 0.180)
    assert value(samples, "triage_decision_latency_seconds_bucket", le="0.1", **model) == 0
    assert value(samples, "triage_decision_latency_seconds_bucket", le="0.25", **model) == 28
    assert value(samples, "triage_below_floor_ratio", account="team") == pytest.approx(1 / 28)
    assert value(samples, "triage_queue_depth", account="team") == 0
    assert value(samples, "triage_breaker_open", **model) == 0


def test_a_breaker_that_opened_is_seen(world: World) -> None:
    key = world.app.breaker_key(world.app.settings.decision.chain[0])
    world.app.ledger.save_breaker(key, {"open": True, "failures": 3})
    assert value(scrape(world), "triage_breaker_open", provider="systemone", model="table-1") == 1


def test_waiting_runs_are_counted(world: World) -> None:
    for minutes in (0, 1):
        world.app.ledger.enqueue("team", Trigger.MANUAL, world.clock.now() + timedelta(minutes=minutes))
    assert value(scrape(world), "triage_queue_depth", account="team") == 2


def test_counters_outlive_retention_and_restarts(world: World) -> None:
    """Prometheus takes a counter that falls for one that began anew, and would count everything twice."""
    series = {"account": "team", "outcome": "applied", "provider": "systemone", "model": "table-1"}
    counted = []
    for _ in range(4):
        world.run({}, {})
        pass_time(world, days=3)
        world.run({})
        counted.append(value(scrape(world), "triage_decisions_total", **series))
        world.app.ledger.enforce_retention(world.clock.now() - timedelta(days=1))
        counted.append(value(scrape(world), "triage_decisions_total", **series))
    assert counted == [3, 3, 6, 6, 9, 9, 12, 12]
    assert value(scrape(world), "triage_runs_total", account="team", state="done", trigger="manual") == 8


def test_nothing_is_counted_twice_when_what_has_settled_is_folded(world: World) -> None:
    """Scrapes at every distance from the fold agree."""
    series = {"account": "team", "outcome": "applied", "provider": "systemone", "model": "table-1"}
    for number in range(1, 12):
        world.run({})
        pass_time(world, minutes=17 * number)
        assert value(scrape(world), "triage_decisions_total", **series) == number
    assert value(scrape(world), "triage_runs_total", account="team", state="done", trigger="manual") == 11


def test_an_empty_ledger_has_metrics_too(world: World) -> None:
    samples = scrape(world)
    assert any(name == "triage_build_info" for name, _ in samples)
    assert not any(name == "triage_decisions_total" for name, _ in samples)
