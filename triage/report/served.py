"""Which models answered, and whether a provider changed its model behind an alias. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise

from triage.report.text import minute


@dataclass(frozen=True, slots=True)
class Served:
    """A model as served at one place of the chain: how many answers, and when it first and last answered."""

    position: int
    provider: str
    model: str
    answers: int
    first: datetime
    last: datetime


def changes(served: Sequence[Served]) -> Iterator[str]:
    """Where one place of the chain answered as more than one model: floors that fit the one may not fit the other."""
    for _, models in groupby(sorted(served, key=lambda s: (s.position, s.provider, s.first)), _place):
        for before, after in pairwise(models):
            if before.last < after.first:
                when = f"answered as {before.model} until {minute(before.last)} UTC, and as {after.model} since"
            else:
                when = f"answers as {before.model} and as {after.model}, by turns, since {minute(after.first)} UTC"
            yield (
                f"{after.provider} {when}. Compare the shares under the floor before and after; to keep one version, "
                "name it in triage.yaml (docs/models.md)."
            )


def _place(served: Served) -> tuple[int, str]:
    return served.position, served.provider
