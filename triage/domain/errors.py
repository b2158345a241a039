"""The error tree.

TriageError
  ConfigError          what an operator wrote cannot be used; exit 2
  MailboxError
    MailboxRefused     permanent until somebody changes something
      LoginRefused     wrong password or token: tried once, then not again until the configuration changes
      KeywordsRefused  the mailbox cannot keep labels
    MailboxBusy        temporary: throttled, over quota, too many connections; `retry_after_s` if the server said
    MailboxLost        temporary: connection lost, timeout, BYE, answers that cannot be read
    MailboxChanged     UIDVALIDITY changed under the run: every UID is void
    CommandRefused     the server said NO or BAD to one command
  LeaseLost            the run's lease is no longer ours: stop writing
  LedgerError          the ledger cannot be read or written
"""

from __future__ import annotations


class TriageError(Exception):
    """Root of all errors the program raises on purpose. The message is for a person and holds no secret."""

    code = "error"


class ConfigError(TriageError):
    """What an operator wrote cannot be used. Each problem names file and line and says what to do."""

    code = "configuration"

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class MailboxError(TriageError):
    """Something at the mailbox; `account` is filled in by whoever knows it."""

    code = "mailbox"


class MailboxRefused(MailboxError):
    """Permanent until somebody changes something."""

    code = "refused"


class LoginRefused(MailboxRefused):
    """The server refused the login."""

    code = "login_refused"


class KeywordsRefused(MailboxRefused):
    """The mailbox cannot keep labels: read-only, or no custom keywords."""

    code = "keywords_refused"


class MailboxBusy(MailboxError):
    """The server asks to come back later."""

    code = "busy"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class MailboxLost(MailboxError):
    """The connection is gone or its answers cannot be read."""

    code = "unreachable"


class MailboxChanged(MailboxError):
    """UIDVALIDITY changed: every UID this run holds is void."""

    code = "uidvalidity_changed"


class CommandRefused(MailboxError):
    """The server said NO or BAD to one command; `response_code` is e.g. TRYCREATE or OVERQUOTA, or ""."""

    code = "command_refused"

    def __init__(self, message: str, response_code: str = "") -> None:
        super().__init__(message)
        self.response_code = response_code


class LeaseLost(TriageError):
    """Another worker or the clock took the run's lease; nothing more may be written."""

    code = "lease_lost"


class LedgerError(TriageError):
    """The ledger cannot be read or written; `temporary` says that the same call may succeed later."""

    code = "ledger"

    def __init__(self, message: str, temporary: bool = False) -> None:
        super().__init__(message)
        self.temporary = temporary
