"""One finding of a check, as `triage check` and `triage health` tell it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do about it ("" where nothing is to be done)."""

    state: Literal["ok", "warn", "fail"]
    what: str
    found: str
    remedy: str = ""
