"""/metrics for Prometheus, computed from the ledger: any machine tells the same, and no restart resets it."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from datetime import timedelta

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from triage import __version__
from triage.decide.breaker import load_state
from triage.ledger.web_queries import LATENCY_BOUNDS_S, Amounts, Totals
from triage.web.kept import Kept, TooSlow
from triage.web.room import Room

SCRAPE_S = 5.0
"""A scrape may be told what the one before it had counted, if that was not long ago or counting takes long."""
RATIO_OVER = timedelta(days=1)


class Metrics:
    """The text of a scrape."""

    def __init__(self, room: Room) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(LedgerCollector(room))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """The body and its type, in the format the scraper accepts. Raises LedgerError."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class LedgerCollector(Collector):
    """What the ledger and the mailboxes say. What is still being counted is left out of the scrape, never guessed."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._kept = Kept(room.app.clock, rest=1.0)

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not read the ledger."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield _build_info()
        yield from self._queue()
        yield from self._below_floor()
        yield self._breakers()
        yield from self._health()
        yield from self._counters()

    def _counters(self) -> Iterator[Metric]:
        now = self._room.now()
        try:
            seen = self._kept.look("totals", lambda: self._room.ledger.totals(now), SCRAPE_S)
        except TooSlow:
            return
        yield _runs(seen.value)
        yield from _decisions(seen.value)
        yield from _by_model(seen.value)
        yield _latency(seen.value)

    def _queue(self) -> Iterator[Metric]:
        depths = self._room.ledger.queue_depths()
        metric = GaugeMetricFamily("triage_queue_depth", "Runs that wait to be made.", labels=["account"])
        for account in self._room.accounts():
            metric.add_metric([account], depths.get(account, 0))
        yield metric

    def _below_floor(self) -> Iterator[Metric]:
        metric = GaugeMetricFamily(
            "triage_below_floor_ratio",
            "Of the answers of the last 24 hours, the share under the floor. About a tenth is expected.",
            labels=["account"],
        )
        since = self._room.now() - RATIO_OVER
        try:
            seen = self._kept.look("below floor", lambda: self._room.ledger.below_floor_counts(since), SCRAPE_S)
        except TooSlow:
            return
        for account, (answered, below) in sorted(seen.value.items()):
            metric.add_metric([account], below / answered)
        yield metric

    def _breakers(self) -> Metric:
        app = self._room.app
        metric = GaugeMetricFamily(
            "triage_breaker_open", "1 while a provider is not asked because it failed.", labels=["provider", "model"]
        )
        for settings in app.settings.decision.chain:
            state = load_state(app.ledger.load_breaker(app.breaker_key(settings)))
            metric.add_metric([settings.provider, settings.model], float(state.open))
        return metric

    def _health(self) -> Iterator[Metric]:
        healthy = GaugeMetricFamily("triage_healthy", "1 if the account is being sorted.", labels=["account"])
        oldest = GaugeMetricFamily(
            "triage_oldest_unlabelled_seconds",
            "Age of the oldest message that waits to be sorted, 0 if none waits.",
            labels=["account"],
        )
        finished = GaugeMetricFamily(
            "triage_last_run_finished_timestamp_seconds", "When the last run was finished.", labels=["account"]
        )
        try:
            accounts = self._room.health(patience_s=0.0).value
        except TooSlow:
            return
        for each in accounts:
            waited = (self._room.now() - each.oldest_unlabelled).total_seconds() if each.oldest_unlabelled else 0.0
            healthy.add_metric([each.account], float(each.healthy))
            oldest.add_metric([each.account], max(0.0, waited))
            if each.last_finished and each.last_finished.finished_at:
                finished.add_metric([each.account], each.last_finished.finished_at.timestamp())
        yield from (healthy, oldest, finished)


def _build_info() -> Metric:
    metric = GaugeMetricFamily("triage_build_info", "Always 1; the labels say what runs.", labels=["version", "python"])
    metric.add_metric([__version__, platform.python_version()], 1)
    return metric


def _runs(totals: Totals) -> Metric:
    metric = CounterMetricFamily("triage_runs", "Runs that ended.", labels=["account", "state", "trigger"])
    for series, count in sorted(totals.runs.items()):
        metric.add_metric(series, count)
    return metric


def _decisions(totals: Totals) -> Iterator[Metric]:
    metric = CounterMetricFamily(
        "triage_decisions", "Messages decided.", labels=["account", "outcome", "provider", "model"]
    )
    for series, amounts in sorted(totals.decisions.items()):
        metric.add_metric(series, amounts.decisions)
    yield metric


def _by_model(totals: Totals) -> Iterator[Metric]:
    labels = ["account", "provider", "model"]
    read = CounterMetricFamily("triage_input_tokens", "Tokens that models read.", labels=labels)
    written = CounterMetricFamily("triage_output_tokens", "Tokens that models wrote.", labels=labels)
    cost = CounterMetricFamily("triage_cost_usd", "What the decisions cost, in USD.", labels=labels)
    sums: dict[tuple[str, str, str], Amounts] = {}
    for (account, _, provider, model), amounts in totals.decisions.items():
        if provider:
            sums[account, provider, model] = sums.get((account, provider, model), Amounts()) + amounts
    for series, amounts in sorted(sums.items()):
        read.add_metric(series, amounts.input_tokens)
        written.add_metric(series, amounts.output_tokens)
        cost.add_metric(series, amounts.cost_usd)
    yield from (read, written, cost)


def _latency(totals: Totals) -> Metric:
    metric = HistogramMetricFamily(
        "triage_decision_latency_seconds",
        "How long the answering provider took, failed tries before it not counted.",
        labels=["provider", "model"],
    )
    sums: dict[tuple[str, str], Amounts] = {}
    for (_, _, provider, model), amounts in totals.decisions.items():
        if provider:
            sums[provider, model] = sums.get((provider, model), Amounts()) + amounts
    for series, amounts in sorted(sums.items()):
        running, buckets = 0, []
        for bound, count in zip((*map(str, LATENCY_BOUNDS_S), "+Inf"), amounts.buckets, strict=True):
            running += count
            buckets.append((bound, float(running)))
        metric.add_metric(series, buckets, amounts.latency_s)
    return metric
