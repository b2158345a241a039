"""Is the service doing its work? Judged from the mailbox and the ledger, never from the daemon's own word. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from triage.domain.record import Run, RunState

LATE_INTERVALS = 3
"""A message that has waited longer than this many fire intervals means the service stopped working."""


@dataclass(frozen=True, slots=True)
class AccountHealth:
    """How one account is doing. `oldest_unlabelled` is the arrival of the oldest message waiting to be sorted, None if
    none waits; `problems` are sentences, empty when healthy."""

    account: str
    enabled: bool
    healthy: bool
    interval_s: int
    last_finished: Run | None
    last_failed: Run | None
    oldest_unlabelled: datetime | None
    oldest_age_s: int | None
    queue_depth: int
    breakers: dict[str, str]
    problems: tuple[str, ...]


def judge_health(
    account: str,
    *,
    enabled: bool,
    interval: timedelta,
    runs: Sequence[Run],
    oldest_unlabelled: datetime | None,
    queue_depth: int,
    breakers: dict[str, str],
    mailbox_error: str | None,
    now: datetime,
) -> AccountHealth:
    """Unhealthy when a message has waited for more than three intervals, when the mailbox cannot be looked into, or
    when the latest run failed for a reason a person must mend. `runs` are the latest, newest first."""
    finished = next((r for r in runs if r.state is RunState.DONE), None)
    failed = next((r for r in runs if r.state is RunState.FAILED), None)
    latest = next((r for r in runs if r.state in (RunState.DONE, RunState.FAILED)), None)
    age = max(timedelta(0), now - oldest_unlabelled) if oldest_unlabelled else None
    problems = []
    if enabled:
        if mailbox_error:
            problems.append(mailbox_error)
        if age is not None and age > LATE_INTERVALS * interval:
            since_finish = (
                f"the last finished run was at {finished.finished_at:%Y-%m-%d %H:%M} UTC"
                if (finished and finished.finished_at)
                else "no run has finished yet"
            )
            problems.append(
                f"account {account}: a message has waited {_span(age)} to be sorted, more than "
                f"{LATE_INTERVALS} fire intervals of {_span(interval)}; {since_finish}. Is `triage serve` running?"
            )
        if latest is not None and latest.state is RunState.FAILED and latest.reason != "cut" and problems:
            problems.append(
                f"account {account}: the latest run failed ({latest.reason}): {latest.error or ''}".rstrip(": ")
            )
    return AccountHealth(
        account=account,
        enabled=enabled,
        healthy=not problems,
        interval_s=round(interval.total_seconds()),
        last_finished=finished,
        last_failed=failed,
        oldest_unlabelled=oldest_unlabelled,
        oldest_age_s=round(age.total_seconds()) if age is not None else None,
        queue_depth=queue_depth,
        breakers=breakers,
        problems=tuple(problems),
    )


def _span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes / 1440:.0f} days"
