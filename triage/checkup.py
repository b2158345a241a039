"""The health of every account, looked up through an App: mailbox and ledger, never the daemon's own word."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from triage.bootstrap import App
from triage.config.settings import AccountSettings
from triage.decide.breaker import load_state
from triage.domain.errors import TriageError
from triage.pipeline.run_mail import oldest_waiting
from triage.report.health import FIRE_GRACE, AccountHealth, Look, Schedule, judge_health
from triage.schedule.cron import Cron
from triage.schedule.timetable import last_fire
from triage.side_by_side import side_by_side

LOOK_S = 20.0
"""A mailbox that was not looked into by then counts as one that cannot be."""
LOOKS_AT_ONCE = 16


def check_up(app: App) -> tuple[AccountHealth, ...]:
    """How each account is doing now; one connection to each mailbox. Takes LOOK_S at most. Raises LedgerError."""
    return judge(app, look_into_mailboxes(app))


def look_into_mailboxes(app: App) -> Mapping[str, Look]:
    """What each mailbox has waiting, by account; side by side, as slow as LOOK_S whatever the servers do."""
    asked = {a.name: a for a in app.settings.accounts if a.schedule.enabled and a.mode != "preview"}
    found = side_by_side(lambda settings: _look(app, settings), asked, LOOKS_AT_ONCE, LOOK_S)
    late = f"the mailbox was not looked into within {LOOK_S:.0f} s"
    now = app.clock.now()
    return {name: found.get(name) or Look(now, error=f"account {name}: {late}") for name in asked}


def judge(app: App, looks: Mapping[str, Look]) -> tuple[AccountHealth, ...]:
    """How each account is doing: from the ledger as it is now, and from what mailboxes looked like. Raises LedgerError.

    An account without a look is judged by the ledger alone.
    """
    now = app.clock.now()
    names = [settings.name for settings in app.settings.accounts]
    fired, latest, depths = app.ledger.last_fires(names), app.ledger.latest_runs(names), app.ledger.depths()
    breakers = _breakers(app)
    return tuple(
        judge_health(
            settings.name,
            schedule=schedule_of(settings, now, fired.get(settings.name)),
            runs=latest.get(settings.name, ()),
            look=looks.get(settings.name, Look(now)),
            queue_depth=depths.get(settings.name, 0),
            breakers=breakers,
            now=now,
        )
        for settings in app.settings.accounts
    )


def schedule_of(settings: AccountSettings, now: datetime, fired: datetime | None) -> Schedule:
    """What should have happened to an account by now, and the last fire that did."""
    cron = Cron(settings.schedule.cron, settings.schedule.timezone)
    first = cron.next_after(now)
    second = cron.next_after(first) if first else None
    return Schedule(
        enabled=settings.schedule.enabled,
        interval=second - first if first and second else timedelta(days=1),
        due=last_fire(cron, now - FIRE_GRACE, after=fired) if fired and fired < now - FIRE_GRACE else None,
        fired=fired,
    )


def _look(app: App, settings: AccountSettings) -> Look:
    try:
        closed = app.gate.refusal(settings.name)
        if closed is not None:
            raise closed
        mailbox = app.mailbox(settings)
        try:
            mailbox.open()
            labels = settings.categories.settled_labels
            oldest = oldest_waiting(mailbox, app.run_mail(settings.name), labels, settings.since)
        finally:
            mailbox.close()
    except TriageError as failure:
        return Look(app.clock.now(), error=f"account {settings.name}: {failure}")
    return Look(app.clock.now(), oldest.astimezone(UTC) if oldest else None)


def _breakers(app: App) -> dict[str, str]:
    """Each provider of the chain by name: closed, or open with what it said."""
    states = {}
    for settings in app.settings.decision.chain:
        state = load_state(app.ledger.load_breaker(app.breaker_key(settings)))
        name = f"{settings.provider} {settings.model}".strip()
        states[name] = f"open since {state.since}: {state.message}" if state.open else "closed"
    return states
