"""Checked keys to frozen settings: defaults that depend on other keys, paths and secrets put in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from triage.config.model import AccountKeys, EmbeddedKeys, ServerKeys, TriageKeys
from triage.config.oauth import RefreshedToken
from triage.config.problems import is_there, placed
from triage.config.secret import Credential, Secret, SecretSpec
from triage.config.settings import (
    AccountSettings,
    CorrectionsSettings,
    DecisionSettings,
    HttpSettings,
    LearningSettings,
    LogSettings,
    ProviderSettings,
    RetentionSettings,
    ScheduleSettings,
    Settings,
    is_loopback,
)
from triage.config.values import Context
from triage.config.yamltree import Loc, Tree, spell
from triage.domain.category import CategorySet

_PORTS = {"tls": 993, "starttls": 143, "plain": 143}
_KEYWORDS_SAFE = 20
"""Some servers keep no more than 26 distinct keywords a mailbox (measured on Dovecot maildir)."""


class _Builder:
    def __init__(self, tree: Tree, context: Context) -> None:
        self.tree = tree
        self.context = context
        self.warnings: list[str] = []

    def warn(self, loc: Loc, text: str) -> None:
        self.warnings.append(f"{self.tree.where(loc)}: {spell(loc)} {text}")

    def path(self, name: str) -> Path:
        return placed(self.context.directory, name).absolute()

    def secret(self, spec: SecretSpec, loc: Loc, user: str = "") -> Secret:
        label = f"{self.tree.where(loc)}: {spell(loc)}"
        secret = Secret(spec, label, user or str(loc[-1]), self.context.directory.absolute(), self.context.environ)
        if warning := secret.warning():
            self.warnings.append(warning)
        return secret

    def ledger(self, url: str) -> str:
        """A relative database file lies beside triage.yaml: wherever triage is started, it is the same ledger."""
        name = url.removeprefix("sqlite:///")
        if name == url or name.startswith(("/", ":memory:", "file:")) or not name:
            return url
        return f"sqlite:///{self.path(name)}"

    def provider(self, keys: EmbeddedKeys | ServerKeys, position: int, floor: float) -> ProviderSettings:
        loc: Loc = ("decision", "chain", position)
        may_archive = keys.may_archive if keys.may_archive is not None else position == 0
        archive_floor = max(floor, keys.archive_floor if keys.archive_floor is not None else floor)
        if isinstance(keys, EmbeddedKeys):
            return ProviderSettings("embedded", model="embedded", archive_floor=archive_floor, may_archive=may_archive)
        url = urlsplit(keys.base_url)
        if url.scheme == "http" and not is_loopback(url.hostname or ""):
            self.warn((*loc, "base_url"), "sends mail over the network unencrypted; use https:// where you can")
        return ProviderSettings(
            provider=keys.provider,
            base_url=keys.base_url,
            model=keys.model,
            api_key=self.secret(keys.api_key, (*loc, "api_key")) if keys.api_key else None,
            price_usd_per_million_input_tokens=keys.price_usd_per_million_input_tokens,
            price_usd_per_million_output_tokens=keys.price_usd_per_million_output_tokens,
            timeout_s=keys.timeout.total_seconds(),
            retries=keys.retries,
            max_options=keys.max_options,
            archive_floor=archive_floor,
            may_archive=may_archive,
        )

    def credential(self, keys: AccountKeys, loc: Loc) -> Credential:
        if keys.oauth is not None:
            at = (*loc, "oauth")
            client_secret = keys.oauth.client_secret
            return RefreshedToken(
                provider=keys.oauth.provider,
                client_id=keys.oauth.client_id,
                refresh_token=self.secret(keys.oauth.refresh_token, (*at, "refresh_token"), keys.username),
                client_secret=self.secret(client_secret, (*at, "client_secret")) if client_secret else None,
                tenant=keys.oauth.tenant,
                label=f"{self.tree.where(at)}: {spell(at)}",
            )
        kind = "password" if keys.auth == "password" else "token"
        spec = keys.password or keys.token
        assert spec is not None  # the model refuses an account without one
        return self.secret(spec, (*loc, kind), keys.username)

    def account(self, keys: AccountKeys, index: int, sets: Mapping[Path, CategorySet], floor: float) -> AccountSettings:
        loc: Loc = ("accounts", index)
        file = placed(self.context.directory, keys.categories)
        categories = sets[file]
        for category in categories.categories:
            if category.floor is not None and category.floor < floor:
                self.warn(
                    (*loc, "categories"),
                    f"gives {category.id} a floor of {category.floor:g}, below decision.floor: no effect",
                )
        if len(categories.categories) > _KEYWORDS_SAFE and keys.labels in {"auto", "keyword"}:
            self.warn(
                (*loc, "categories"),
                f"has {len(categories.categories)} categories; some servers keep only 26 keywords a mailbox",
            )
        own = [keys.username] if "@" in keys.username else []
        return AccountSettings(
            name=keys.name,
            host=keys.host.strip("[]"),
            username=keys.username,
            credential=self.credential(keys, loc),
            categories=categories,
            categories_file=file,
            since=keys.since,
            port=keys.port or _PORTS[keys.security],
            security=keys.security,
            ca_file=self.ca_file(keys.ca_file, (*loc, "ca_file")),
            auth=keys.auth,
            addresses=tuple(dict.fromkeys(a.casefold() for a in (*own, *keys.addresses))),
            inbox=keys.inbox,
            archive=keys.archive,
            labels=keys.labels,
            mode=keys.mode,
            batch=keys.batch,
            order=keys.order,
            thread_search=keys.thread_search,
            learning=LearningSettings(keys.learning.junk or "") if keys.learning else None,
            schedule=ScheduleSettings(keys.schedule.cron, keys.schedule.timezone, keys.schedule.enabled),
            where=self.tree.where(loc),
        )

    def ca_file(self, name: str | None, loc: Loc) -> Path | None:
        if name is None:
            return None
        path = self.path(name)
        if not is_there(path):
            self.warn(loc, f"names {path}, which is not there: no TLS connection can be made")
        return path


def build_settings(keys: TriageKeys, tree: Tree, sets: Mapping[Path, CategorySet], context: Context) -> Settings:
    """The settings of one checked file; `sets` holds every categories file its accounts name."""
    build = _Builder(tree, context)
    http, decision, looks = keys.http, keys.decision, keys.corrections
    http_token = build.secret(http.token, ("http", "token")) if http and http.token else None
    chain = tuple(build.provider(entry, i, decision.floor) for i, entry in enumerate(decision.chain))
    accounts = tuple(build.account(each, i, sets, decision.floor) for i, each in enumerate(keys.accounts))
    return Settings(
        file=tree.path,
        ledger=build.ledger(keys.ledger),
        decision=DecisionSettings(
            chain=chain,
            floor=decision.floor,
            offer_none=decision.offer_none,
            concurrency=decision.concurrency,
            deadline_s=decision.deadline.total_seconds(),
            spend_cap_usd_per_day=decision.spend_cap_usd_per_day,
            on_outage=decision.on_outage,
            body_chars=decision.body_chars,
        ),
        accounts=accounts,
        log=LogSettings(keys.log.level, keys.log.format),
        http=HttpSettings(http.listen.host, http.listen.port, http_token) if http else None,
        retention=RetentionSettings(keys.retention.records, keys.retention.receipts),
        record_subjects=keys.record_subjects,
        corrections=CorrectionsSettings(looks.messages, looks.period, looks.every) if looks else None,
        warnings=tuple(build.warnings),
    )
