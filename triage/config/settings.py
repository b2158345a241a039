"""The configuration as the program uses it: frozen, complete, checked. Durations in seconds (`_s`) or timedelta."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from triage.config.secret import Credential, Secret
from triage.domain.category import CategorySet

ProviderName = Literal["systemone", "openai-decisions", "openai-chat", "embedded"]


@dataclass(frozen=True, slots=True)
class LogSettings:
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Dashboard, /metrics and /healthz. Without a token it listens on loopback only."""

    host: str = "127.0.0.1"
    port: int = 8025
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    records: timedelta = timedelta(days=90)
    receipts: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CorrectionsSettings:
    """How far to look for what people did about decisions: the newest `messages` of the last `period`, in scheduled
    runs at most once `every` so long."""

    messages: int = 500
    period: timedelta = timedelta(days=14)
    every: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One entry of the chain. `archive_floor` is what an archive by this provider needs, never under the general floor.

    `may_archive` is settled: the first of the chain may, a later one only if the file says so. Prices are USD per
    million tokens, None where the built-in table is to say. `max_options` is the server's limit, None if not known.
    """

    provider: ProviderName
    base_url: str = ""
    model: str = ""
    api_key: Secret | None = None
    price_usd_per_million_input_tokens: float | None = None
    price_usd_per_million_output_tokens: float | None = None
    timeout_s: float = 10.0
    retries: int = 2
    max_options: int | None = None
    archive_floor: float = 0.5
    may_archive: bool = True


@dataclass(frozen=True, slots=True)
class DecisionSettings:
    """How a message is decided. `deadline_s` is for one message, all providers and retries together.

    `spend_cap_usd_per_day` None means no cap. `body_chars` is the most of a mail's text that a model reads.
    """

    chain: tuple[ProviderSettings, ...]
    floor: float = 0.5
    offer_none: bool = True
    concurrency: int = 20
    deadline_s: float = 20.0
    spend_cap_usd_per_day: float | None = 2.0
    on_outage: Literal["leave", "label"] = "leave"
    body_chars: int = 6_000


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """When runs fire. `cron` has five fields and weekdays as names, so that no scheduler can misread a number."""

    cron: str = "*/5 * * * *"
    timezone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """What the embedded classifier learns from beside labels: `junk` is the mailbox of spam, "" for none."""

    junk: str = ""


@dataclass(frozen=True, slots=True)
class AccountSettings:
    """One login with one categories file. `credential` answers the password, or the access token where `auth` is OAuth.

    `addresses` are the owner's own, lower case, `username` among them where it is one. `since` is a fixed day.
    `where` is file and line of the account, for messages.
    """

    name: str
    host: str
    username: str
    credential: Credential
    categories: CategorySet
    categories_file: Path
    since: date
    port: int = 993
    security: Literal["tls", "starttls", "plain"] = "tls"
    ca_file: Path | None = None
    auth: Literal["password", "xoauth2", "oauthbearer"] = "password"
    addresses: tuple[str, ...] = ()
    inbox: str = "INBOX"
    archive: str = "auto"
    labels: Literal["auto", "keyword", "gmail", "folder"] = "auto"
    mode: Literal["preview", "label", "act"] = "act"
    batch: int = 20
    order: Literal["oldest_first", "newest_first"] = "oldest_first"
    thread_search: Literal["narrow", "wide"] = "narrow"
    learning: LearningSettings | None = field(default_factory=LearningSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """All of config/triage.yaml and the categories it names.

    `ledger` is a database URL and may hold a password: not for messages. `http` None means switched off. `warnings`
    are sentences with file and line about what is allowed but unwise.
    """

    file: Path
    ledger: str = field(repr=False)
    decision: DecisionSettings
    accounts: tuple[AccountSettings, ...]
    log: LogSettings = field(default_factory=LogSettings)
    http: HttpSettings | None = field(default_factory=HttpSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    record_subjects: bool = False
    corrections: CorrectionsSettings | None = field(default_factory=CorrectionsSettings)
    warnings: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        return self.file.parent

    def account(self, name: str) -> AccountSettings | None:
        """The account of that name, however it is capitalised."""
        return next((a for a in self.accounts if a.name.casefold() == name.casefold()), None)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Every secret the program will need, in the order of the file."""
        http = [self.http.token] if self.http and self.http.token else []
        keys = [p.api_key for p in self.decision.chain if p.api_key]
        return (*http, *keys, *(source for a in self.accounts for source in a.credential.sources))


def is_loopback(host: str) -> bool:
    """Does a host name or address stay on this machine?"""
    if host.casefold() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
