"""config/triage.yaml as pydantic checks it: every key, its kind, its bounds, its default.

Checks that need two keys are validators of the later field, so that one mistake does not hide another.
Descriptions finish the sentence "KEY is missing: ...".
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from triage.config.secret import SecretSpec
from triage.config.settings import is_loopback
from triage.config.values import (
    BaseUrl,
    Cron,
    Day,
    Duration,
    FromEnv,
    Host,
    Listen,
    ListenAddress,
    SecretSource,
    Text,
    Zone,
    between,
    problem,
    problem_around,
)

BATCH_CAP = 20
"""No run holds more (DESIGN 3, invariant 4)."""

Share = Annotated[float, Field(ge=0, le=1)]


class Keys(BaseModel):
    """A block of keys: unknown ones refused, kinds taken literally ("993" is no number)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def _false_means_off(value: Any) -> Any:
    if value is None:
        return {}
    if value is False:
        return None
    if isinstance(value, dict | Keys):
        return value
    raise problem("must be a block of keys, or false to switch it off")


def _empty_means_default(value: Any) -> Any:
    return {} if value is None else value


EmptyMeansDefault = BeforeValidator(_empty_means_default)
"""A block whose every line is commented out is None in YAML."""


class LogKeys(Keys):
    level: Annotated[Literal["debug", "info", "warning", "error"], FromEnv] = "info"
    format: Annotated[Literal["auto", "json", "console"], FromEnv] = "auto"


class HttpKeys(Keys):
    token: SecretSource | None = None
    listen: ListenAddress = Listen("127.0.0.1", 8025)

    @field_validator("listen")
    @classmethod
    def _off_loopback_needs_a_token(cls, value: Listen, info: ValidationInfo) -> Listen:
        if not is_loopback(value.host) and info.data.get("token", "in error") is None:
            raise problem("is reachable from other machines: add http.token, or listen on 127.0.0.1")
        return value


class RetentionKeys(Keys):
    records: Annotated[Duration, between(timedelta(days=1), timedelta(days=3660), "1d to 3660d")] = timedelta(days=90)
    receipts: Annotated[Duration, between(timedelta(days=1), timedelta(days=3660), "1d to 3660d")] = timedelta(days=30)


class CorrectionsKeys(Keys):
    messages: Annotated[int, Field(ge=1, le=5_000)] = 500
    period: Annotated[Duration, between(timedelta(days=1), timedelta(days=90), "1d to 90d")] = timedelta(days=14)
    every: Annotated[Duration, between(timedelta(minutes=5), timedelta(days=1), "5m to 1d")] = timedelta(hours=1)


class LearningKeys(Keys):
    junk: Text | None = None


class EmbeddedKeys(Keys):
    provider: Literal["embedded"]
    archive_floor: Share = 0.7
    may_archive: bool | None = None


class ServerKeys(Keys):
    """A provider that is asked over HTTP."""

    provider: Literal["systemone", "openai-decisions", "openai-chat"]
    base_url: BaseUrl = Field(description="the server's address, such as https://api.typesafe.ai")
    model: Text = Field(description="the model to ask for, by the server's name for it")
    api_key: SecretSource | None = None
    price_usd_per_million_input_tokens: Annotated[float, Field(ge=0, le=10_000)] | None = None
    price_usd_per_million_output_tokens: Annotated[float, Field(ge=0, le=10_000)] | None = None
    timeout: Annotated[Duration, between(timedelta(milliseconds=100), timedelta(minutes=5), "100ms to 5m")] = timedelta(
        seconds=10
    )
    retries: Annotated[int, Field(ge=0, le=5)] = 2
    max_options: Annotated[int, Field(ge=2, le=256)] | None = None
    archive_floor: Share | None = None
    may_archive: bool | None = None

    @field_validator("api_key")
    @classmethod
    def _a_key_is_not_sent_in_the_clear(cls, value: SecretSpec | None, info: ValidationInfo) -> SecretSpec | None:
        url = urlsplit(info.data.get("base_url", "https://"))
        if value is not None and url.scheme == "http" and not is_loopback(url.hostname or ""):
            raise problem("would cross the network unencrypted: base_url must begin with https://")
        return value


ProviderKeys = Annotated[EmbeddedKeys | ServerKeys, Field(discriminator="provider")]


class DecisionKeys(Keys):
    floor: Share = 0.5
    offer_none: bool = True
    concurrency: Annotated[int, Field(ge=1, le=64)] = 20
    deadline: Annotated[Duration, between(timedelta(seconds=1), timedelta(minutes=10), "1s to 10m")] = timedelta(
        seconds=20
    )
    spend_cap_usd_per_day: Annotated[float, Field(ge=0, le=1_000_000)] | None = 2.0
    on_outage: Annotated[Literal["leave", "label"], FromEnv] = "leave"
    body_chars: Annotated[int, Field(ge=500, le=60_000)] = 6_000
    chain: Annotated[list[ProviderKeys], Field(min_length=1, max_length=10)] = [EmbeddedKeys(provider="embedded")]


class ScheduleKeys(Keys):
    cron: Cron = "*/5 * * * *"
    timezone: Zone = ZoneInfo("UTC")
    enabled: bool = True


class OAuthKeys(Keys):
    provider: Annotated[Literal["google", "microsoft"], FromEnv] = Field(description="google or microsoft")
    client_id: Text = Field(description="the id of the application registered there")
    client_secret: SecretSource | None = None
    refresh_token: SecretSource = Field(description="where the long-lived token is kept")
    tenant: Annotated[Text, Field(pattern=r"^[A-Za-z0-9.-]{1,100}$")] = "common"


class AccountKeys(Keys):
    name: Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")] = Field(
        description="a short name for this account, used in commands and records"
    )
    host: Host = Field(description="the IMAP server, such as imap.example.com")
    security: Annotated[Literal["tls", "starttls", "plain"], FromEnv] = "tls"
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    ca_file: Text | None = None
    username: Text = Field(description="the login name, often the address")
    auth: Annotated[Literal["password", "xoauth2", "oauthbearer"], FromEnv] = "password"
    password: SecretSource | None = None
    token: SecretSource | None = None
    oauth: OAuthKeys | None = Field(default=None, validate_default=True)
    addresses: Annotated[list[Text], Field(max_length=100)] = []
    inbox: Text = "INBOX"
    archive: Text = "auto"
    labels: Annotated[Literal["auto", "keyword", "gmail", "folder"], FromEnv] = "auto"
    categories: Text = "categories.yaml"
    mode: Annotated[Literal["preview", "label", "act"], FromEnv] = "act"
    batch: Annotated[int, Field(ge=1, le=BATCH_CAP)] = BATCH_CAP
    since: Day = Field(description="mail that arrived from this day on is sorted; write a day such as 2026-11-23")
    order: Annotated[Literal["oldest_first", "newest_first"], FromEnv] = "oldest_first"
    thread_search: Annotated[Literal["narrow", "wide"], FromEnv] = "narrow"
    learning: Annotated[LearningKeys | None, BeforeValidator(_false_means_off)] = LearningKeys()
    schedule: Annotated[ScheduleKeys, EmptyMeansDefault] = ScheduleKeys()

    @field_validator("security")
    @classmethod
    def _plain_stays_on_this_machine(cls, value: str, info: ValidationInfo) -> str:
        if value == "plain" and not is_loopback(info.data.get("host", "localhost")):
            raise problem("may be plain on loopback only: the password would cross the network; use tls or starttls")
        return value

    @field_validator("password", "token", "oauth")
    @classmethod
    def _credentials_fit_auth(cls, value: Any, info: ValidationInfo) -> Any:
        auth = info.data.get("auth")
        if auth is None or (value is None and info.field_name != "oauth"):
            return value
        if value is None:
            if auth == "password" and info.data.get("password", "in error") is None:
                raise problem_around("has no password", "add password: {env: NAME}, {file: PATH}, ...")
            if auth != "password" and info.data.get("token", "in error") is None:
                raise problem_around("has no token", "add token: {command: LINE} or oauth: {provider: ...}")
            return value
        if info.field_name == "password" and auth != "password":
            raise problem(f"is not used with auth: {auth}; give token or oauth instead")
        if info.field_name != "password" and auth == "password":
            raise problem("needs auth: xoauth2 or oauthbearer")
        if info.field_name == "oauth" and info.data.get("token") is not None:
            raise problem("cannot stand beside token; keep one of them")
        return value

    @field_validator("archive")
    @classmethod
    def _the_archive_is_another_mailbox(cls, value: str, info: ValidationInfo) -> str:
        if value.casefold() == str(info.data.get("inbox", "INBOX")).casefold():
            raise problem("must be another mailbox than inbox: archived mail would stay where it is")
        return value

    @field_validator("addresses")
    @classmethod
    def _addresses_are_addresses(cls, value: list[str]) -> list[str]:
        for each in value:
            if not re.fullmatch(r"[^\s@]+@[^\s@]+", each):
                raise problem("must hold addresses such as team@example.com")
        return value


class TriageKeys(Keys):
    ledger: Text = "sqlite:///triage.db"
    log: Annotated[LogKeys, EmptyMeansDefault] = LogKeys()
    http: Annotated[HttpKeys | None, BeforeValidator(_false_means_off)] = HttpKeys()
    retention: Annotated[RetentionKeys, EmptyMeansDefault] = RetentionKeys()
    record_subjects: bool = False
    corrections: Annotated[CorrectionsKeys | None, BeforeValidator(_false_means_off)] = CorrectionsKeys()
    decision: Annotated[DecisionKeys, EmptyMeansDefault] = DecisionKeys()
    accounts: Annotated[list[AccountKeys], Field(min_length=1, max_length=10_000)] = Field(
        description="at least one account to sort"
    )

    @field_validator("ledger")
    @classmethod
    def _a_ledger_we_know(cls, value: str) -> str:
        if re.match(r"postgres(ql)?(\+psycopg)?://", value):
            return re.sub(r"^postgres(ql)?(\+psycopg)?://", "postgresql+psycopg://", value)
        if re.match(r"sqlite://(/|$)", value):
            return value
        raise problem("must be sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE")
