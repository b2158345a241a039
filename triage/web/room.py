"""What pages are made from: the App in force, and what was found out lately about its accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from triage.bootstrap import App
from triage.checkup import judge, look_into_mailboxes
from triage.config.settings import AccountSettings
from triage.domain.category import Action
from triage.ledger.ledger import SqlLedger
from triage.report.audit import Audit, together
from triage.report.audit_ledger import Scope, audit_ledger
from triage.report.health import AccountHealth, Look
from triage.web.daily import DailySums, Period
from triage.web.kept import PATIENCE_S, Kept, Seen, TooSlow
from triage.web.sums import Sums, sum_up

HEALTH_S = 60.0
"""A mailbox is looked into at most once in so many seconds, however often pages and probes ask."""
FIGURES_S = 30.0
AUDIT_S = 3600.0
"""Every link of the chain is read at an audit: of a long ledger that is a minute of a core's time."""
GLANCE_S = 0.2
"""How long a page waits for a first look at the mailboxes, or a first audit, before it is shown without them."""
AUDITED = timedelta(days=7)
WARM_UP_S = 120.0
MOST_WARMED = 20
"""Accounts whose figures are counted before anybody asks."""
PERIODS = (1, 7, 30, 90)
"""Days that a page can look back."""
USUAL_PERIOD = 30


class Room:
    """Reads the ledger and the mailboxes for the pages. Safe from any number of threads.

    It writes nothing but what it counted, so that the next daemon need not begin anew.
    """

    def __init__(self, app: Callable[[], App]) -> None:
        self._app = app
        clock = app().clock
        self.figures = Kept(clock)
        self._looks = Kept(clock, rest=1.0)
        self._daily = DailySums(clock, self._count, lambda: self.ledger)

    @property
    def app(self) -> App:
        return self._app()

    @property
    def ledger(self) -> SqlLedger:
        return self.app.ledger

    def now(self) -> datetime:
        return self.app.clock.now().astimezone(UTC)

    def accounts(self) -> tuple[str, ...]:
        """The accounts that are configured, then those that only the ledger still knows."""
        configured = [account.name for account in self.app.settings.accounts]
        return (*configured, *(name for name in self.ledger.accounts() if name not in configured))

    def settings_of(self, account: str) -> AccountSettings | None:
        return self.app.settings.account(account)

    def archiving(self, account: str) -> frozenset[str]:
        """The categories of an account whose action is archive; none if it is configured no more."""
        settings = self.settings_of(account)
        if settings is None:
            return frozenset()
        return frozenset(c.id for c in settings.categories.categories if c.action is Action.ARCHIVE)

    def health(self, patience_s: float = GLANCE_S) -> Seen[tuple[AccountHealth, ...]]:
        """Every account's health: the ledger as it is now, the mailboxes as they were a minute ago. Raises TooSlow
        before the first look has ended, LedgerError."""
        seen = self._looks.look("mailboxes", self._look, HEALTH_S, patience_s=patience_s)
        return Seen(judge(self.app, seen.value), seen.at)

    def health_now(self, patience_s: float) -> tuple[AccountHealth, ...]:
        """The same for a probe, which waits `patience_s` seconds for mailboxes seen within a minute; if slow, it
        is told how they were when they were seen last. Raises TooSlow, LedgerError."""
        try:
            seen = self._looks.look_anew("mailboxes", self._look, HEALTH_S, patience_s=patience_s)
        except TooSlow:
            seen = self._looks.look("mailboxes", self._look, HEALTH_S, patience_s=0.0)
        return judge(self.app, seen.value)

    def sums(self, account: str, days: int, patience_s: float = PATIENCE_S) -> Seen[Sums]:
        """What was decided for an account in the last days, summed up. Raises TooSlow, LedgerError."""
        seen = self.by_day(account, days, patience_s)
        return Seen(seen.value.total, seen.at)

    def by_day(self, account: str, days: int, patience_s: float = PATIENCE_S) -> Seen[Period]:
        """The same, and day by day. Raises TooSlow, LedgerError."""

        def find() -> Period:
            return self._daily.period(account, *self.period(days))

        return self.figures.look(("days", account, days), find, FIGURES_S, patience_s=patience_s)

    def warm_up(self) -> None:
        """Begin to find out what the first visitor would have to wait for. Raises LedgerError."""
        searches: list[Callable[[], object]] = [self.health, self.audit]
        for account in self.accounts()[:MOST_WARMED]:
            searches += [partial(self.sums, account, days, WARM_UP_S) for days in PERIODS]
        for search in searches:
            with suppress(TooSlow):
                search()

    def period(self, days: int) -> tuple[datetime, datetime]:
        now = self.now()
        return now - timedelta(days=days), now

    def audit(self) -> Seen[Audit]:
        """Do the invariants hold in the records of the last week? The mailboxes are read by `triage audit` alone."""
        return self.figures.look("audit", self._audit, AUDIT_S, patience_s=GLANCE_S)

    def _count(self, account: str, since: datetime, until: datetime) -> Sums:
        return sum_up(self.ledger.tallies(account, since, until))

    def _audit(self) -> Audit:
        since = self.now() - AUDITED
        audits = []
        for settings in self.app.settings.accounts:
            scope = Scope(settings.name, settings.categories, since)
            audits.append(audit_ledger(self.ledger, scope))
        return together(audits)

    def _look(self) -> Mapping[str, Look]:
        return look_into_mailboxes(self.app)
