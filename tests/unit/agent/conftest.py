"""A mail tool on a clock moved by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mail_tool import Bench


@pytest.fixture
def bench_of(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches, closed afterwards."""
    made: list[Bench] = []

    def make(**changes: Any) -> Bench:
        directory = tmp_path / str(len(made))
        directory.mkdir()
        made.append(Bench(directory, **changes))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(bench_of: Callable[..., Bench]) -> Bench:
    return bench_of()
