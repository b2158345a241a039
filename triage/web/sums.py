"""From the ledger's tallies to what pages show of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from triage.domain.decision import Outcome
from triage.ledger.figures import Tally

BINS = 20
_USABLE = frozenset({Outcome.APPLIED, Outcome.BELOW_FLOOR})


@dataclass(slots=True)
class CategorySums:
    """One category: mails that bear its label, and answers that named it, by confidence in twentieths."""

    labelled: int = 0
    archived: int = 0
    inherited: int = 0
    named: int = 0
    below_floor: int = 0
    bins: list[int] = field(default_factory=lambda: [0] * BINS)

    @property
    def below_share(self) -> float | None:
        """Of the answers that named it, the share that stayed under the floor; None if none named it."""
        return self.below_floor / self.named if self.named else None


@dataclass(slots=True)
class Sums:
    """All of an account's decisions in a period."""

    decisions: int = 0
    archived: int = 0
    answered: int = 0
    below_floor: int = 0
    by_fallback: int = 0
    paid: int = 0  # answers that took tokens
    inherited: int = 0
    recovered: int = 0
    input_tokens: int = 0
    question_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    links_removed: int = 0
    categories: dict[str, CategorySums] = field(default_factory=dict)
    providers: dict[str, tuple[int, int, float]] = field(default_factory=dict)  # mails, input tokens, USD

    @property
    def below_share(self) -> float | None:
        """Of the answers, the share under the floor; None if there was none."""
        return self.below_floor / self.answered if self.answered else None

    @property
    def fallback_share(self) -> float | None:
        return self.by_fallback / self.answered if self.answered else None

    @property
    def usd_per_thousand(self) -> float | None:
        """Mails that inherited their label count as free (DESIGN 6)."""
        return 1000 * self.cost_usd / self.decisions if self.decisions else None

    def category(self, category_id: str) -> CategorySums:
        return self.categories.setdefault(category_id, CategorySums())


def to_plain(sums: Sums) -> dict[str, Any]:
    """The sums as JSON can keep them."""
    return asdict(sums)


def of_plain(value: Mapping[str, Any]) -> Sums | None:
    """The sums that were kept; None if another version of the program kept others."""
    try:
        sums = Sums(**value)
        sums.categories = {name: CategorySums(**each) for name, each in sums.categories.items()}  # type: ignore[arg-type]
        sums.providers = {name: (mails, tokens, usd) for name, (mails, tokens, usd) in sums.providers.items()}
    except TypeError:
        return None
    return sums if value.keys() == {f.name for f in fields(Sums)} else None


_NUMBERS = tuple(f.name for f in fields(Sums) if f.name not in ("categories", "providers"))


def sum_up(tallies: Iterable[Tally]) -> Sums:
    sums = Sums()
    for each in tallies:
        _add(sums, each)
        _add_to_categories(sums.category(each.label_id), sums.category(each.choice) if each.choice else None, each)
    return sums


def merged(parts: Iterable[Sums]) -> Sums:
    """The sums over several periods together."""
    total = Sums()
    for part in parts:
        for name in _NUMBERS:
            setattr(total, name, getattr(total, name) + getattr(part, name))
        for category_id, sums in part.categories.items():
            _merge_category(total.category(category_id), sums)
        for provider, numbers in part.providers.items():
            mails, tokens, usd = total.providers.get(provider, (0, 0, 0.0))
            total.providers[provider] = (mails + numbers[0], tokens + numbers[1], usd + numbers[2])
    return total


def _merge_category(total: CategorySums, part: CategorySums) -> None:
    total.labelled += part.labelled
    total.archived += part.archived
    total.inherited += part.inherited
    total.named += part.named
    total.below_floor += part.below_floor
    total.bins = [a + b for a, b in zip(total.bins, part.bins, strict=True)]


def shares(providers: Mapping[str, tuple[int, int, float]]) -> list[tuple[str, int, int, float]]:
    """Providers, the busiest first."""
    return sorted(((name, *numbers) for name, numbers in providers.items()), key=lambda row: (-row[1], row[0]))


def _add(sums: Sums, each: Tally) -> None:
    sums.decisions += each.count
    sums.archived += each.count if each.archived else 0
    sums.inherited += each.count if each.outcome == Outcome.INHERITED else 0
    sums.recovered += each.count if each.recovered else 0
    sums.input_tokens += each.input_tokens
    sums.question_tokens += each.question_tokens
    sums.output_tokens += each.output_tokens
    sums.cost_usd += each.cost_usd
    sums.links_removed += each.links_removed
    sums.below_floor += each.count if each.outcome == Outcome.BELOW_FLOOR else 0
    sums.paid += each.count if each.input_tokens else 0
    if each.provider is not None:
        sums.answered += each.count
        sums.by_fallback += each.count if each.fallback else 0
        mails, tokens, usd = sums.providers.get(each.provider, (0, 0, 0.0))
        sums.providers[each.provider] = (mails + each.count, tokens + each.input_tokens, usd + each.cost_usd)


def _add_to_categories(labelled: CategorySums, named: CategorySums | None, each: Tally) -> None:
    labelled.labelled += each.count
    labelled.archived += each.count if each.archived else 0
    labelled.inherited += each.count if each.outcome == Outcome.INHERITED else 0
    if named is not None and each.provider is not None and each.outcome in _USABLE:
        named.named += each.count
        named.below_floor += each.count if each.outcome == Outcome.BELOW_FLOOR else 0
        named.bins[min(BINS - 1, each.bin)] += each.count
