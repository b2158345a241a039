"""A problem in a file an operator wrote: the line, what is wrong, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One sentence about one line (counted from 1) of a file; never a secret, never a whole value."""

    line: int
    text: str

    def at(self, path: Path) -> str:
        """The problem as it is shown: `config/triage.yaml:41: ...`."""
        return f"{shown(path)}:{self.line}: {self.text}"


def shown(path: Path) -> str:
    """A path as a person would type it: relative where it lies below the working directory."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def placed(directory: Path, name: str) -> Path:
    """A path as written in a file of `directory`: relative to it, ~ being the user's home."""
    try:
        return directory / Path(name).expanduser()
    except RuntimeError:  # ~somebody, and there is no such user
        return directory / name


def is_there(path: Path) -> bool:
    """Is it a file? What cannot even be asked for (a name too long, say) is not there."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one most likely stands for, or None."""
    by_folded = {k.casefold().replace("-", "_"): k for k in known}
    found = difflib.get_close_matches(word.casefold().replace("-", "_"), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None
