"""The health of every account, looked up through an App: mailbox and ledger, never the daemon's own word."""

from __future__ import annotations

from datetime import UTC, timedelta

from triage.bootstrap import App
from triage.config.settings import AccountSettings
from triage.decide.breaker import load_state
from triage.domain.errors import TriageError
from triage.report.health import FIRE_GRACE, AccountHealth, Schedule, judge_health
from triage.schedule.cron import Cron
from triage.schedule.timetable import last_fire


def check_up(app: App) -> tuple[AccountHealth, ...]:
    """How each account is doing now; one connection to each mailbox. Raises LedgerError."""
    breakers = _breakers(app)
    return tuple(_account(app, settings, breakers) for settings in app.settings.accounts)


def schedule_of(settings: AccountSettings, app: App) -> Schedule:
    """What should have happened to an account by now, and the last fire that did."""
    now = app.clock.now()
    cron = Cron(settings.schedule.cron, settings.schedule.timezone)
    first = cron.next_after(now)
    second = cron.next_after(first) if first else None
    fired = app.ledger.last_fires([settings.name]).get(settings.name)
    return Schedule(
        enabled=settings.schedule.enabled,
        interval=second - first if first and second else timedelta(days=1),
        due=last_fire(cron, now - FIRE_GRACE, after=fired) if fired and fired < now - FIRE_GRACE else None,
        fired=fired,
    )


def _account(app: App, settings: AccountSettings, breakers: dict[str, str]) -> AccountHealth:
    oldest, error = None, None
    if settings.schedule.enabled and settings.mode != "preview":
        closed = app.gate.refusal(settings.name)
        if closed is not None:
            error = f"account {settings.name}: {closed}"
        else:
            mailbox = app.mailbox(settings)
            try:
                mailbox.open()
                oldest = mailbox.oldest_unlabelled(settings.categories.settled_labels, settings.since)
            except TriageError as failure:
                error = f"account {settings.name}: {failure}"
            finally:
                mailbox.close()
    return judge_health(
        settings.name,
        schedule=schedule_of(settings, app),
        runs=app.ledger.runs(settings.name, limit=50),
        oldest_unlabelled=oldest.astimezone(UTC) if oldest else None,
        queue_depth=app.ledger.depth(settings.name),
        breakers=breakers,
        mailbox_error=error,
        now=app.clock.now(),
    )


def _breakers(app: App) -> dict[str, str]:
    """Each provider of the chain by name: closed, or open with what it said."""
    states = {}
    for settings in app.settings.decision.chain:
        state = load_state(app.ledger.load_breaker(app.breaker_key(settings)))
        name = f"{settings.provider} {settings.model}".strip()
        states[name] = f"open since {state.since}: {state.message}" if state.open else "closed"
    return states
