"""A refused login is tried once, not once a call: the refusal is remembered in the ledger until the login changes."""

from __future__ import annotations

from collections.abc import Callable

from triage.agent.ports import MailReader, ToolLedger
from triage.domain.errors import LoginRefused


class LoginGuard:
    """Makes readers that remember, for all processes, what the server said to this very login."""

    def __init__(
        self, make: Callable[[], MailReader], ledger: ToolLedger, account: str, fingerprint: Callable[[], str]
    ) -> None:
        self._make = make
        self._ledger = ledger
        self._account = account
        self._fingerprint = fingerprint

    def reader(self) -> MailReader:
        return self._make()

    def log_in(self, reader: MailReader) -> None:
        """Open a reader. Raises LoginRefused, without asking the server, if it refused this login before."""
        login = self._fingerprint()
        remembered = self._ledger.login_refusal(self._account) if login else None
        if remembered is not None and remembered == login:
            raise LoginRefused(
                f"account {self._account}: the server refused this login before; it is not tried again until it changes"
            )
        try:
            reader.open()
        except LoginRefused:
            if login:
                self._ledger.remember_login(self._account, login)
            raise
        if remembered is not None:
            self._ledger.remember_login(self._account, None)
