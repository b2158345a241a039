"""Every case file under tests/cases/threads, played from the header bytes to the label and the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from threads_play import CASES, play, problems, read_case

FILES = sorted(CASES.glob("*.case"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_case_ends_as_it_says(path: Path) -> None:
    """Outcome, label, ancestor, rule, participation, reason and folder are those the case file names."""
    case = read_case(path)
    played = play(case)
    assert problems(case, played) == []
    assert all(len(wanted) <= 80 for wanted in played.searched)


def test_advisory_expectations_are_met_too(record_property: Callable[[str, object], None]) -> None:
    """Nothing demands them; the count is kept so that a change shows."""
    cases = [read_case(path) for path in FILES]
    missed = [f"{c.title}: {p}" for c in cases for p in problems(c, play(c), advisory=True)]
    record_property("advisory", sum(e.advisory for c in cases for e in c.expected))
    record_property("advisory_missed", len(missed))
    assert missed == []


def test_there_are_cases_of_every_kind() -> None:
    """An empty folder must not pass."""
    assert len(FILES) >= 50
