"""Deciding mail from files: `triage classify` and `triage eval`, with the configured chain or the defaults."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from triage.bootstrap import App
from triage.cli import open as parts
from triage.config.load import find_config_dir, parse_categories
from triage.config.settings import AccountSettings, DecisionSettings, ProviderSettings, Settings
from triage.decide.chain import Chain
from triage.decide.cost import SpendGuard
from triage.decide.question import build_question
from triage.domain.category import Action, CategorySet
from triage.domain.decision import Answer, Question, Ruling, Verdict
from triage.domain.errors import ConfigError
from triage.domain.mail import PreparedMail
from triage.policy.judge import Policy, judge, judge_outage


class _Purse:
    """What one command has spent, so that the day's cap bounds it; the daemon's own spending is not looked at."""

    def __init__(self) -> None:
        self.usd = 0.0

    def spent(self) -> float:
        return self.usd


class _ForgetfulBreakers:
    """Breakers of one command: a try from the command line must not stop the daemon from asking."""

    def __init__(self) -> None:
        self._states: dict[str, Mapping[str, object]] = {}

    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return self._states.get(key)

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        self._states[key] = value


@dataclass(frozen=True, slots=True)
class Bench:
    """What decides mail outside a run: nothing is recorded, no mailbox is touched."""

    app: App
    account: AccountSettings | None  # None: the defaults, without any configuration
    question: Question
    policy: Policy
    chain: Chain
    decision: DecisionSettings
    purse: _Purse

    def close(self) -> None:
        self.chain.close()
        self.app.close()

    @property
    def categories(self) -> CategorySet:
        return self.policy.categories

    def rule(self, mail: PreparedMail) -> tuple[Ruling, Verdict]:
        """What the chain says of one mail and what the policy makes of it."""
        told: dict[int, Ruling] = {}
        self.chain.decide(
            self.question,
            {1: mail},
            deadline=self.app.clock.monotonic() + self.decision.deadline_s,
            stop=threading.Event(),
            on_rulings=told.update,
        )
        ruling = told[1]
        self.purse.usd += ruling.cost_usd
        return ruling, judge(ruling, mail, self.policy) or judge_outage(self.policy, ruling.reason)

    def decide(self, mail: PreparedMail) -> tuple[Answer | None, bool]:
        """The answer, and whether the mail would leave the inbox."""
        ruling, verdict = self.rule(mail)
        return ruling.answer, verdict.action is Action.ARCHIVE


def bench(config: str | None, account: str | None) -> Bench:
    """The chain and categories of an account; without any configuration the embedded classifier and the English preset.

    Raises ConfigError.
    """
    app = App(_settings(config))
    settings = parts.one_account(app, account)
    decision = app.settings.decision
    purse = _Purse()
    chain = Chain(
        app.links(),
        clock=app.clock,
        breakers=_ForgetfulBreakers(),
        spend=SpendGuard(purse.spent, decision.spend_cap_usd_per_day),
        concurrency=decision.concurrency,
        message_deadline_s=decision.deadline_s,
    )
    return Bench(
        app=app,
        account=settings if app.settings.ledger else None,
        question=build_question(settings.categories, decision.offer_none),
        policy=app.policy(settings),
        chain=chain,
        decision=decision,
        purse=purse,
    )


def read_input(file: str) -> bytes:
    """A file's bytes; - is stdin. Raises ConfigError."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from None


def _settings(config: str | None) -> Settings:
    try:
        find_config_dir(config, os.environ)
    except ConfigError:
        if config or os.environ.get("TRIAGE_CONFIG"):
            raise
        return _defaults()
    return parts.load_settings(config, quiet=True)


def _defaults() -> Settings:
    from triage.config.secret import Secret

    preset = files("triage.config").joinpath("presets/en.yaml").read_text(encoding="utf-8")
    path = Path("presets/en.yaml")
    account = AccountSettings(
        name="default",
        host="localhost",
        username="nobody",
        credential=Secret.of(""),
        categories=parse_categories(preset, path),
        categories_file=path,
        since=parts.EVER,
    )
    chain = (ProviderSettings("embedded", model="embedded", archive_floor=0.7),)
    return Settings(file=path, ledger="", decision=DecisionSettings(chain=chain), accounts=(account,), http=None)
