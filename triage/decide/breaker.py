"""When to stop asking a provider: a state machine that survives restarts. Pure.

Closed: asked freely. Open: not asked for the rest of the batch; the next batch begins half-open, one ask decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime

from triage.domain.decision import Failure, FailureKind

TRIP_AFTER = 3
"""So many transient failures in a row open the breaker."""

_OPENS_AT_ONCE = frozenset({"retry_later"})
_NOT_THE_SERVERS = frozenset({"stopped"})


@dataclass(frozen=True, slots=True)
class BreakerState:
    """`failures` in a row; while open, the code and sentence of the failure that keeps it so, when it opened (ISO 8601)
    and how many probes have failed since."""

    open: bool = False
    failures: int = 0
    code: str = ""
    message: str = ""
    since: str = ""
    probes: int = 0

    def after(self, failure: Failure | None, now: datetime) -> BreakerState:
        """The state after an ask that failed so, or (None) succeeded.

        A refusal of one message and an unusable answer show a server that is up: they count as a success.
        """
        if failure is None or failure.kind in (FailureKind.MESSAGE, FailureKind.UNUSABLE):
            return BreakerState()
        if failure.code in _NOT_THE_SERVERS:
            return self
        if self.open:
            return replace(self, code=failure.code, message=failure.message, probes=self.probes + 1)
        counted = replace(self, failures=self.failures + 1)
        at_once = failure.kind is FailureKind.CONFIGURATION or failure.code in _OPENS_AT_ONCE
        if not at_once and counted.failures < TRIP_AFTER:
            return counted
        return replace(
            counted, open=True, code=failure.code, message=failure.message, since=now.isoformat(timespec="seconds")
        )

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def load_state(value: Mapping[str, object] | None) -> BreakerState:
    """The state as stored; closed if there is none or it was written by another version."""
    value = value or {}
    known = {f.name: value[f.name] for f in fields(BreakerState) if f.name in value}
    default = BreakerState()
    if any(type(v) is not type(getattr(default, k)) for k, v in known.items()):
        return default
    return replace(default, **known)  # type: ignore[arg-type]
