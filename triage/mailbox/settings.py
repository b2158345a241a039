"""How one account's mailbox is reached, as values."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from triage.domain.errors import ConfigError

Security = Literal["tls", "starttls", "plain"]
Auth = Literal["password", "xoauth2", "oauthbearer"]
LabelStoreName = Literal["auto", "keyword", "gmail", "folder"]


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """One account's server, login and layout.

    `secret` is asked again at every login, so that a token provider can hand out a fresh token; it may raise a
    `TriageError` of its own. `archive` is "auto" (special-use, else by name) or a mailbox name. Timeouts are seconds:
    `command_timeout_s` bounds the whole answer to one command, `connect_timeout_s` the TCP and TLS handshakes and the
    greeting. `select_window` messages are searched at a time, `thread_window` newest messages of each mailbox are
    searched for ancestors (all of them with `wide_thread_search`). `plain` is refused off the loopback interface.

    Raises ConfigError where the values contradict each other.
    """

    host: str
    port: int
    username: str
    secret: Callable[[], str] = field(repr=False)
    security: Security = "tls"
    ca_file: str | None = None
    auth: Auth = "password"
    inbox: str = "INBOX"
    archive: str = "auto"
    labels: LabelStoreName = "auto"
    command_timeout_s: float = 60.0
    connect_timeout_s: float = 15.0
    wide_thread_search: bool = False
    select_window: int = 5000
    thread_window: int = 2000

    def __post_init__(self) -> None:
        if self.security == "plain" and not is_loopback(self.host):
            raise ConfigError(
                f"{self.host}: security 'plain' would send the password in the clear; use 'tls' or 'starttls' "
                "(plain is allowed to this machine only)"
            )
        if self.command_timeout_s <= 0 or self.connect_timeout_s <= 0:
            raise ConfigError(f"{self.host}: timeouts must be more than 0 seconds")
        if self.select_window < 1 or self.thread_window < 1:
            raise ConfigError(f"{self.host}: windows must hold at least 1 message")


def is_loopback(host: str) -> bool:
    """Does the name stand for this machine without asking any name server?"""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
