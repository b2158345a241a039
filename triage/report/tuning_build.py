"""From the ledger's sums to the tuning report: one account, one period, in bounded memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from typing import Protocol

from triage.domain.category import Action, CategorySet
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord
from triage.domain.tool import Rates
from triage.report.served import Served, changes
from triage.report.tuning import (
    EXPECTED_UNSURE,
    MANY_UNSURE,
    QUARTER,
    TOKENS_A_LINK,
    UNSURE_BELOW,
    CategoryFigures,
    Competition,
    CorrectionFigures,
    Cost,
    Report,
    calibrate,
    percentiles,
    times,
)

MOST_UNSURE = 20_000
"""So many of the newest unsure answers are read for competing pairs."""
_TWENTIETHS = 20
_SIDE_BY_SIDE = 2
_ANSWERED = (Outcome.APPLIED.value, Outcome.BELOW_FLOOR.value)
_FAILED = (Outcome.UNUSABLE_ANSWER.value, Outcome.CHAIN_FAILED.value)


class Tally(Protocol):
    """A group of decisions, as `triage.ledger.figures` sums them up."""

    @property
    def label_id(self) -> str: ...
    @property
    def choice(self) -> str | None: ...
    @property
    def outcome(self) -> str: ...
    @property
    def provider(self) -> str | None: ...
    @property
    def fallback(self) -> bool: ...
    @property
    def archived(self) -> bool: ...
    @property
    def recovered(self) -> bool: ...
    @property
    def bin(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def question_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cost_usd(self) -> float: ...
    @property
    def links_removed(self) -> int: ...


class ServedBy(Protocol):
    """A model as served, as `triage.ledger.figures` counts it."""

    @property
    def position(self) -> int: ...
    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def answers(self) -> int: ...
    @property
    def first(self) -> datetime: ...
    @property
    def last(self) -> datetime: ...


class Figures(Protocol):
    """What the report asks of the ledger."""

    def tallies(self, account: str, since: datetime, until: datetime) -> Sequence[Tally]: ...
    def days(self, account: str, since: datetime, until: datetime) -> Mapping[date, tuple[int, int, float]]: ...
    def latencies(self, account: str, since: datetime, until: datetime) -> Mapping[str, Mapping[int, int]]: ...
    def heaviest_senders(self, account: str, since: datetime, until: datetime) -> Sequence[tuple[str, int, int]]: ...
    def unsure(
        self, account: str, since: datetime, until: datetime, below: float, limit: int
    ) -> Iterator[Mapping[str, float]]: ...
    def served(self, account: str, since: datetime, until: datetime) -> Sequence[ServedBy]: ...
    def run_states(self, account: str, since: datetime, until: datetime) -> Mapping[tuple[str, str, str], int]: ...
    def correction_counts(self, account: str, since: datetime) -> Mapping[tuple[str, str, str | None], int]: ...
    def tool_rates(self, since: datetime, account: str) -> Rates: ...
    def reviewed(self, account: str, since: datetime) -> Sequence[tuple[Correction, DecisionRecord]]: ...


def build(figures: Figures, account: str, categories: CategorySet, since: datetime, until: datetime) -> Report:
    """The report of a period (`since` <= decided < `until`). Raises LedgerError."""
    period = (account, since, until)
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:  # the counting is the database's, outside Python's lock
        asked_for = pool.submit(figures.tallies, *period)
        competing = pool.submit(_compete, figures, *period)
        by_day = pool.submit(figures.days, *period)
        latencies = pool.submit(figures.latencies, *period)
        senders = pool.submit(figures.heaviest_senders, *period)
        served = pool.submit(figures.served, *period)
    tallies, competition = asked_for.result(), competing.result()
    total = sum(t.count for t in tallies)
    asked = _count(t for t in tallies if t.provider is not None)
    below = _count(t for t in tallies if t.outcome == Outcome.BELOW_FLOOR)
    corrections = _corrections(figures.correction_counts(account, since))
    report = Report(
        account=account,
        since=since,
        until=until,
        decisions=total,
        days=by_day.result(),
        archived=_count(t for t in tallies if t.archived),
        asked=asked,
        below_floor=below,
        inherited=_count(t for t in tallies if t.outcome == Outcome.INHERITED),
        recovered=_count(t for t in tallies if t.recovered),
        by_fallback=_count(t for t in tallies if t.fallback),
        failed=_count(t for t in tallies if t.outcome in _FAILED),
        categories=_categories(tallies, categories, corrections),
        pairs=competition.pairs(categories),
        pairs_read=competition.read,
        corrections=corrections,
        calibration=calibrate(figures.reviewed(account, since)),
        latency=tuple(percentiles(provider, counts) for provider, counts in sorted(latencies.result().items())),
        served=tuple(
            Served(s.position, s.provider, s.model or "unnamed", s.answers, s.first, s.last) for s in served.result()
        ),
        cost=_cost(tallies, senders.result()),
        runs=figures.run_states(account, since, until),
        tool=figures.tool_rates(since, account),
    )
    return replace(report, advice=tuple(_advice(report)))


def _compete(figures: Figures, account: str, since: datetime, until: datetime) -> Competition:
    competition = Competition()
    for probabilities in figures.unsure(account, since, until, UNSURE_BELOW, MOST_UNSURE):
        competition.add(probabilities)
    return competition


def _count(tallies: Iterable[Tally]) -> int:
    return sum(t.count for t in tallies)


def _categories(
    tallies: Sequence[Tally], categories: CategorySet, corrections: CorrectionFigures
) -> tuple[CategoryFigures, ...]:
    by_label: dict[str, list[Tally]] = defaultdict(list)
    nearly: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    for t in tallies:
        by_label[t.label_id].append(t)
        if t.choice is not None and t.outcome in _ANSWERED:
            chosen[t.choice] += t.count
            if t.outcome == Outcome.BELOW_FLOOR:
                nearly[t.choice] += t.count
    ids = [*categories.label_ids, *sorted(by_label.keys() - set(categories.label_ids))]
    found = []
    for label in ids:
        mine = by_label.get(label, [])
        bins = [0] * _TWENTIETHS
        for t in mine:
            if t.provider is not None:
                bins[min(_TWENTIETHS - 1, max(0, t.bin))] += t.count
        found.append(
            CategoryFigures(
                label_id=label,
                action=categories.action(label),
                count=_count(mine),
                archived=_count(t for t in mine if t.archived),
                inherited=_count(t for t in mine if t.outcome == Outcome.INHERITED),
                nearly=nearly[label],
                below_share=nearly[label] / chosen[label] if chosen[label] else 0.0,
                corrected=sum(n for before, _, n in corrections.relabelled if before == label)
                + corrections.unlabelled.get(label, 0)
                + corrections.moved_back.get(label, 0),
                histogram=tuple(bins),
            )
        )
    return tuple(found)


def _corrections(counts: Mapping[tuple[str, str, str | None], int]) -> CorrectionFigures:
    relabelled = [(before, after or "", n) for (kind, before, after), n in counts.items() if kind == "relabelled"]

    def of(kind: CorrectionKind) -> dict[str, int]:
        found: Counter[str] = Counter()
        for (each, before, _), n in sorted(counts.items(), key=lambda item: item[0][:2]):
            if each == kind:
                found[before] += n
        return dict(found)

    return CorrectionFigures(
        tuple(sorted(relabelled, key=lambda item: (-item[2], item[0], item[1]))),
        of(CorrectionKind.UNLABELLED),
        of(CorrectionKind.MOVED_BACK),
        of(CorrectionKind.CONFIRMED),
        sum(of(CorrectionKind.UNDONE).values()),
    )


def _cost(tallies: Sequence[Tally], senders: Sequence[tuple[str, int, int]]) -> Cost:
    total = _count(tallies)
    usd = sum(t.cost_usd for t in tallies)
    tokens = sum(t.input_tokens for t in tallies)
    paid = [t for t in tallies if t.input_tokens]
    asked = _count(paid)
    inherited = _count(t for t in tallies if t.outcome == Outcome.INHERITED)
    links = sum(t.links_removed for t in tallies)
    tail: list[tuple[str, int, int]] = []
    weight = 0
    for sender in senders:
        if weight >= QUARTER * tokens:
            break
        tail.append(sender)
        weight += sender[2]
    return Cost(
        usd=usd,
        per_1000=1000 * usd / total if total else 0.0,
        input_tokens=tokens,
        question_tokens=sum(t.question_tokens for t in tallies),
        output_tokens=sum(t.output_tokens for t in tallies),
        asked=asked,
        tail=tuple(tail),
        tail_share=weight / tokens if tokens else 0.0,
        saved_by_threads_tokens=round(inherited * tokens / asked) if asked else 0,
        saved_by_threads_usd=inherited * usd / asked if asked else 0.0,
        links_removed=links,
        saved_by_links_tokens=links * TOKENS_A_LINK,
    )


def _advice(report: Report) -> Iterator[str]:
    """What to do, most telling first; nothing where nothing is to be done."""
    if report.asked and report.below_share > MANY_UNSURE:
        yield (
            f"{report.below_share:.0%} of the answers are under the floor; about {EXPECTED_UNSURE:.0%} is usual. "
            "Criteria overlap: sharpen the pairs below before you touch the floor."
        )
    yield from changes(report.served)
    for pair in report.pairs[:3]:
        if pair.count >= 3:
            yield f"{pair.first} and {pair.second} came close {pair.count} times. {pair.advice}"
    for before, after, n in report.corrections.relabelled[:3]:
        yield f"People made {after} of {before} {times(n)}: `triage suggest` shows what to change."
    for label, n in sorted(report.corrections.moved_back.items(), key=lambda item: -item[1])[:2]:
        yield f"People moved {label} back from the archive {times(n)}: give it a higher floor, or action: keep."
    for row in report.categories:
        if row.count == 0 and row.nearly == 0 and report.decisions >= 200 and row.action is not Action.KEEP:
            yield f"No mail was {row.label_id}: fewer categories are easier to tell apart."
    if report.asked and report.fallback_share > 0.01:
        yield (
            f"{report.fallback_share:.1%} of the answers came from a fallback; near zero is usual. "
            "`triage health` and the log tell why the first provider did not answer."
        )
    if report.failed:
        yield f"{report.failed:,} messages got the fallback label because nobody gave a usable answer."
