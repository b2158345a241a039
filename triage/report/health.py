"""Is the service doing its work? Judged from the mailbox and the ledger, never from the daemon's own word. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from triage.domain.record import Run, RunState

LATE_INTERVALS = 3
"""After so many fire intervals without a message sorted, or a run finished, the service counts as standing still."""
FIRE_GRACE = timedelta(minutes=2)
"""How long after its time a fire may still be on its way into the ledger."""
NEEDS_A_PERSON = frozenset({"configuration", "login_refused", "keywords_refused", "refused"})
"""Failures that no later run mends by itself."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What should have happened by now: the time between two fires, and the latest fire that must be in the ledger."""

    enabled: bool
    interval: timedelta
    due: datetime | None
    fired: datetime | None


@dataclass(frozen=True, slots=True)
class Look:
    """What a mailbox had waiting at a time: when the oldest message to be sorted arrived, or why nobody could look."""

    at: datetime
    oldest_unlabelled: datetime | None = None
    error: str | None = None


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
    schedule: Schedule,
    runs: Sequence[Run],
    look: Look,
    queue_depth: int,
    breakers: dict[str, str],
    now: datetime,
) -> AccountHealth:
    """Unhealthy when a fire is missing from the ledger, when no run has finished for three intervals, when a message
    has waited for longer than that, when the mailbox cannot be looked into, or when the latest run failed for a reason
    a person must mend. `runs` hold the latest done and the latest failed one, newest first. A message has waited until
    the mailbox was looked into: later it may have been sorted. An account that is switched off is never unhealthy."""
    finished = next((r for r in runs if r.state is RunState.DONE), None)
    failed = next((r for r in runs if r.state is RunState.FAILED), None)
    age = max(timedelta(0), look.at - look.oldest_unlabelled) if look.oldest_unlabelled else None
    problems: list[str] = []
    if schedule.enabled:
        if look.error:
            problems.append(look.error)
        problems += (f"account {account}: {told}" for told in _standing_still(schedule, finished, age, now))
        problems += (f"account {account}: {told}" for told in _failing(runs, bool(problems)))
    return AccountHealth(
        account=account,
        enabled=schedule.enabled,
        healthy=not problems,
        interval_s=round(schedule.interval.total_seconds()),
        last_finished=finished,
        last_failed=failed,
        oldest_unlabelled=look.oldest_unlabelled,
        oldest_age_s=round(age.total_seconds()) if age is not None else None,
        queue_depth=queue_depth,
        breakers=breakers,
        problems=tuple(problems),
    )


def _standing_still(schedule: Schedule, finished: Run | None, age: timedelta | None, now: datetime) -> Iterator[str]:
    late = LATE_INTERVALS * schedule.interval
    ended = finished.finished_at if finished else None
    last = f"the last finished run was at {ended:%Y-%m-%d %H:%M} UTC" if ended else "no run has finished yet"
    if schedule.fired is None:
        yield "the schedule has never fired. Is `triage serve` running? (It waits for the first fire time.)"
    elif schedule.due is not None and schedule.fired < schedule.due:
        yield (
            f"the fire of {schedule.due:%Y-%m-%d %H:%M} UTC is missing; the last one was at "
            f"{schedule.fired:%Y-%m-%d %H:%M} UTC. Is `triage serve` running?"
        )
    elif ended is None or now - ended > late + FIRE_GRACE:
        yield f"fires come, but {last}; see `triage runs`."
    if age is not None and age > late:
        yield (
            f"a message has waited {_span(age)} to be sorted, more than {LATE_INTERVALS} fire intervals of "
            f"{_span(schedule.interval)}; {last}."
        )


def _failing(runs: Sequence[Run], trouble: bool) -> Iterator[str]:
    """The latest failure, if it needs a person or if there is trouble that it may explain."""
    latest = next((r for r in runs if r.state in (RunState.DONE, RunState.FAILED)), None)
    if latest is None or latest.state is not RunState.FAILED:
        return
    if latest.reason in NEEDS_A_PERSON or (trouble and latest.reason != "cut"):
        yield f"the latest run failed ({latest.reason}): {latest.error or 'see the log'}"


def _span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes / 60:.0f} h" if minutes < 2880 else f"{minutes / 1440:.0f} days"
