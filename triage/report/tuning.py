"""The tuning report as values: what a period of decisions says about the categories, the models and the cost. Pure.

`tuning_build` makes it from the sums of `triage.ledger.figures`; terminal, JSON, HTML file and dashboard draw it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from triage.domain.category import NONE_ID, Action, CategorySet
from triage.domain.correction import BY_A_PERSON, Correction, CorrectionKind
from triage.domain.record import DecisionRecord
from triage.domain.tool import Rates
from triage.report.served import Served

EXPECTED_UNSURE = 0.10
"""About one in ten under the floor is usual; many more means that criteria overlap."""
MANY_UNSURE = 0.20
NEAR = (0.25, 0.60)
"""Two categories compete where the first and the second option both lie within this range: near 0.4 each."""
UNSURE_BELOW = 0.6
"""No answer whose highest probability is under 0.6 has a confidence of 0.6 or more, whatever the number of options."""
TOKENS_A_LINK = 20
"""What a removed link would have cost, estimated: tracking links of 80 characters at 4 characters a token."""
QUARTER = 0.25
BINS = 10


@dataclass(frozen=True, slots=True)
class CategoryFigures:
    """One label over the period. `nearly` counts decisions under the floor whose nearest category this was.
    `histogram` counts its decisions by confidence, in twentieths."""

    label_id: str
    action: Action
    count: int
    archived: int
    inherited: int
    nearly: int
    below_share: float
    corrected: int
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two categories that come first and second near 0.4 again and again; `forth` times the first led, `back` times the
    second."""

    first: str
    second: str
    forth: int
    back: int
    advice: str

    @property
    def count(self) -> int:
        return self.forth + self.back

    @property
    def swaps(self) -> bool:
        """Each leads about as often as the other: the criteria do not say where one ends."""
        return min(self.forth, self.back) * 3 >= max(self.forth, self.back)


@dataclass(frozen=True, slots=True)
class CorrectionFigures:
    """How often people did what: (what was decided, what they made of it, how often), most frequent first."""

    relabelled: tuple[tuple[str, str, int], ...] = ()
    unlabelled: Mapping[str, int] = field(default_factory=dict)
    moved_back: Mapping[str, int] = field(default_factory=dict)
    confirmed: Mapping[str, int] = field(default_factory=dict)
    undone: int = 0

    @property
    def count(self) -> int:
        moves = sum(self.unlabelled.values()) + sum(self.moved_back.values())
        return sum(n for *_, n in self.relabelled) + moves


@dataclass(frozen=True, slots=True)
class Bin:
    """Decisions whose highest probability lies in this tenth: how many were reviewed, how sure they were, how many
    were right."""

    low: float
    count: int
    mean: float
    right: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Sureness against what people made of it, over the decisions that a person evidently had in hand."""

    label_id: str
    reviewed: int
    right: int
    ece: float
    bins: tuple[Bin, ...]

    @property
    def share_right(self) -> float:
        return self.right / self.reviewed if self.reviewed else 0.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of one provider's answers."""

    provider: str
    count: int
    p50: int
    p95: int
    p99: int
    most: int


@dataclass(frozen=True, slots=True)
class Cost:
    """USD and tokens; `per_1000` counts inherited mail as free mail (DESIGN 6)."""

    usd: float
    per_1000: float
    input_tokens: int
    question_tokens: int
    output_tokens: int
    asked: int
    tail: tuple[tuple[str, int, int], ...]
    tail_share: float
    saved_by_threads_tokens: int
    saved_by_threads_usd: float
    links_removed: int
    saved_by_links_tokens: int


@dataclass(frozen=True, slots=True)
class Report:
    """One account over one period. Shares are 0..1; `tool` is how calls of the mail tool ended."""

    account: str
    since: datetime
    until: datetime
    decisions: int
    days: Mapping[date, tuple[int, int, float]]
    archived: int
    asked: int
    below_floor: int
    inherited: int
    recovered: int
    by_fallback: int
    failed: int
    categories: tuple[CategoryFigures, ...]
    pairs: tuple[Pair, ...]
    pairs_read: int
    corrections: CorrectionFigures
    calibration: tuple[Calibration, ...]
    latency: tuple[Latency, ...]
    served: tuple[Served, ...]
    cost: Cost
    runs: Mapping[tuple[str, str, str], int]
    tool: Rates
    advice: tuple[str, ...] = ()

    @property
    def below_share(self) -> float:
        return self.below_floor / self.asked if self.asked else 0.0

    @property
    def inherited_share(self) -> float:
        return self.inherited / self.decisions if self.decisions else 0.0

    @property
    def fallback_share(self) -> float:
        return self.by_fallback / self.asked if self.asked else 0.0


class Competition:
    """Counts, from one answer after the other, which two options come close; keeps nothing else."""

    def __init__(self) -> None:
        self.read = 0
        self._orders: Counter[tuple[str, str]] = Counter()

    def add(self, probabilities: Mapping[str, float]) -> None:
        self.read += 1
        if len(probabilities) < 2:
            return
        first = max(probabilities, key=probabilities.__getitem__)
        second = max((o for o in probabilities if o != first), key=probabilities.__getitem__)
        low, high = NEAR
        if probabilities[first] <= high and probabilities[second] >= low:
            self._orders[first, second] += 1

    def pairs(self, categories: CategorySet, most: int = 12) -> tuple[Pair, ...]:
        """The pairs, most frequent first."""
        both = Counter[tuple[str, str]]()
        for (first, second), n in self._orders.items():
            both[min(first, second), max(first, second)] += n
        found = []
        for (a, b), _ in sorted(both.items(), key=lambda item: (-item[1], item[0]))[:most]:
            forth, back = self._orders[a, b], self._orders[b, a]
            first, second = (a, b) if forth >= back else (b, a)
            found.append(Pair(first, second, max(forth, back), min(forth, back), sharpening(first, second, categories)))
        return tuple(found)


def sharpening(first: str, second: str, categories: CategorySet) -> str:
    """The sentence to sharpen when two options compete."""
    if NONE_ID in (first, second):
        other = second if first == NONE_ID else first
        return f"Some mail only half fits {other}: say in its criteria what else belongs there, or add a category."
    one, two = categories.get(first), categories.get(second)
    if one is None or two is None:
        return f"{first} and {second} are no categories any more."
    same = one.action == two.action
    cost = "Both are kept, so it costs little." if same and one.action is Action.KEEP else ""
    cost = cost or (
        "Both are archived, so it costs little." if same else "One is archived and one stays, so it matters."
    )
    return (
        f"Say where {first} ends and {second} begins: add to {first} what makes a mail not {second}, "
        f"and the other way round. {cost}"
    )


def calibrate(reviewed: Iterable[tuple[Correction, DecisionRecord]], every: str = "all") -> tuple[Calibration, ...]:
    """Reliability over all reviewed answers, then per choice, the most reviewed first, from the latest word on each.

    Right is a choice that a person read and left, or made of it (an answer under the floor may have been right).
    Expected calibration error over ten bins of the highest probability. Inherited decisions carry their ancestor's
    confidence and are left out; so is a fallback label that was read and left: nobody said what the mail is.
    """
    latest: dict[str, tuple[Correction, DecisionRecord]] = {}
    for correction, record in reviewed:  # newest first
        if record.probabilities and (correction.kind in BY_A_PERSON or _confirms(correction, record)):
            latest.setdefault(record.id, (correction, record))
    groups: dict[str, list[tuple[float, bool]]] = {every: []}
    for correction, record in latest.values():
        point = (max(record.probabilities.values()), correction.to_label == record.choice)
        groups[every].append(point)
        groups.setdefault(record.choice or "", []).append(point)
    found = [_calibration(label, points) for label, points in groups.items() if points]
    return tuple(sorted(found, key=lambda c: (c.label_id != every, -c.reviewed, c.label_id)))


def _confirms(correction: Correction, record: DecisionRecord) -> bool:
    return correction.kind is CorrectionKind.CONFIRMED and record.label_id == record.choice


def times(n: int) -> str:
    """How often, in words."""
    return "once" if n == 1 else f"{n:,} times"


def _calibration(label: str, points: Sequence[tuple[float, bool]]) -> Calibration:
    bins = []
    for n in range(BINS):
        inside = [p for p in points if n == min(BINS - 1, int(p[0] * BINS))]
        if inside:
            mean = math.fsum(p for p, _ in inside) / len(inside)
            bins.append(Bin(n / BINS, len(inside), mean, sum(ok for _, ok in inside) / len(inside)))
    ece = math.fsum(b.count / len(points) * abs(b.mean - b.right) for b in bins)
    return Calibration(label, len(points), sum(ok for _, ok in points), ece, tuple(bins))


def percentiles(provider: str, counts: Mapping[int, int]) -> Latency:
    """Percentiles of a provider's latencies, given how many answers took how many milliseconds."""
    total = sum(counts.values())
    marks = dict.fromkeys((0.5, 0.95, 0.99), 0)
    seen = 0
    for ms in sorted(counts):
        before, seen = seen, seen + counts[ms]
        for share in marks:
            if before < share * total <= seen:
                marks[share] = ms
    return Latency(provider, total, marks[0.50], marks[0.95], marks[0.99], max(counts, default=0))
