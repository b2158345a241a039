"""The only wiring: settings in, working parts out. Nothing else names an adapter."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from triage.clock import SystemClock
from triage.config.settings import AccountSettings, ProviderSettings, Settings
from triage.decide.chain import Chain
from triage.decide.cost import Price, SpendGuard
from triage.decide.embedded.learned import LearnedWeights
from triage.decide.embedded.provider import EmbeddedProvider
from triage.decide.link import Link
from triage.decide.question import build_question
from triage.domain.category import HIJACK_ID, Action
from triage.domain.errors import ConfigError
from triage.domain.record import Run, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.mailbox.imap import ImapMailbox
from triage.mailbox.reader import ImapReader
from triage.mailbox.settings import ConnectionSettings
from triage.pipeline.corrections import LookTerms
from triage.pipeline.learning import Course, Study
from triage.pipeline.plan import EVER, AccountPlan, RunMail, Tools
from triage.policy.judge import Policy, Terms
from triage.ports import Clock, Provider
from triage.runlog import StructuredRunLog
from triage.schedule.gate import AccountGate
from triage.schedule.worker import LEASE, Workplace

if TYPE_CHECKING:
    from triage.agent.tool import MailTool

EMBEDDED = "embedded"
POLICY_FILE = "policy.yaml"
"""The mail tool's policy, beside triage.yaml; without it there is no tool."""


class App:
    """The parts of one process, made when first asked for. `close` gives back what was opened."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.stop = threading.Event()
        self._mailboxes: dict[str, ImapMailbox] = {}
        self._studies: dict[str, Study] = {}
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"

    def with_settings(self, settings: Settings) -> App:
        """An App with new settings and the same ledger, owner and stop signal. Raises ConfigError if the ledger is
        another one: that needs a restart."""
        if settings.ledger != self.settings.ledger:
            raise ConfigError(f"{settings.file}: the ledger was changed; restart triage to move to it")
        app = App(settings, self.clock)
        app.ledger, app.owner, app.stop = self.ledger, self.owner, self.stop
        return app

    @cached_property
    def ledger(self) -> SqlLedger:
        return open_ledger(self.settings.ledger, self.clock)

    @cached_property
    def chain(self) -> Chain:
        """The providers in order, shared by every account: one pool of connections, one day's spending."""
        decision = self.settings.decision
        return Chain(
            self.links(),
            clock=self.clock,
            breakers=self.ledger,
            spend=SpendGuard(self._spent_today, decision.spend_cap_usd_per_day),
            concurrency=decision.concurrency,
            message_deadline_s=decision.deadline_s,
        )

    @cached_property
    def gate(self) -> AccountGate:
        return AccountGate(self.ledger, self._login_fingerprint, self.clock)

    def workplace(self, stop: threading.Event | None = None, lease: timedelta = LEASE) -> Workplace:
        return Workplace(
            ledger=self.ledger,
            desk=self.desk,
            gate=self.gate,
            clock=self.clock,
            owner=self.owner,
            stop=stop or self.stop,
            lease=lease,
        )

    def account(self, name: str) -> AccountSettings:
        """The settings of an account. Raises ConfigError if there is none of that name."""
        account = self.settings.account(name)
        if account is None:
            known = ", ".join(a.name for a in self.settings.accounts)
            raise ConfigError(f"{self.settings.file}: no account is named {name}; there are: {known}")
        return account

    def mailbox(self, account: AccountSettings) -> ImapMailbox:
        """A connection to an account's mailbox, not yet open."""
        return ImapMailbox(self.connection(account), clock=self.clock)

    def shelf(self, account: AccountSettings) -> ImapReader:
        """A read-only connection that fetches from any folder of an account, not yet open."""
        return ImapReader(self.connection(account), clock=self.clock)

    @staticmethod
    def connection(account: AccountSettings) -> ConnectionSettings:
        """How an account's server is reached."""
        return ConnectionSettings(
            host=account.host,
            port=account.port,
            username=account.username,
            secret=account.credential.get,
            security=account.security,
            ca_file=str(account.ca_file) if account.ca_file else None,
            auth=account.auth,
            inbox=account.inbox,
            archive=account.archive,
            labels=account.labels,
            wide_thread_search=account.thread_search == "wide",
        )

    def tool(self, policy_file: Path | None = None, *, surface: str = "python") -> MailTool:
        """The mail tool under the policy beside triage.yaml, or another one. Raises ConfigError."""
        from triage.agent.model_intent import ask_chain
        from triage.agent.policy import load_policy
        from triage.agent.tool import MailTool, Surroundings

        policy = load_policy(policy_file or self.settings.file.parent / POLICY_FILE)
        account = self.account(policy.keys.account)
        connection = self.connection(account)
        question = build_question(account.categories, self.settings.decision.offer_none)
        embedded = EmbeddedProvider(clock=self.clock)
        asks = policy.keys.intent_text.classify == "decision_model"
        return MailTool(
            self.ledger,
            lambda: ImapReader(connection, clock=self.clock),
            policy,
            self.clock,
            around=Surroundings(
                inbox=account.inbox,
                hijack_labels=frozenset({account.categories.label(HIJACK_ID).casefold()}),
                hijack_signs=lambda mail: embedded.ask(question, mail, math.inf).hijack_signs,
                ask_model=ask_chain(self.chain, self.clock) if asks else None,
                login=lambda: self._login_fingerprint(account.name),
            ),
            surface=surface,
        )

    def plan(self, account: AccountSettings) -> AccountPlan:
        decision = self.settings.decision
        waves = math.ceil(account.batch / decision.concurrency)
        return AccountPlan(
            account=account.name,
            categories=account.categories,
            question=build_question(account.categories, decision.offer_none),
            policy=self.policy(account),
            owner=frozenset(account.addresses),
            mode=account.mode,
            batch=account.batch,
            since=account.since,
            newest_first=account.order == "newest_first",
            batch_deadline_s=decision.deadline_s * waves,
            max_chars=decision.body_chars,
            remembered_since=self.ledger.remembered_since(account.name) or EVER,
            label_on_outage=decision.on_outage == "label",
            record_subjects=self.settings.record_subjects,
            look=self.look_terms,
        )

    @property
    def look_terms(self) -> LookTerms:
        """How far a look for corrections goes; a limit of 0 is none at all."""
        asked = self.settings.corrections
        return LookTerms(asked.messages, asked.period, asked.every) if asked else LookTerms(limit=0)

    def policy(self, account: AccountSettings) -> Policy:
        decision = self.settings.decision
        terms = tuple(
            Terms(may_archive=p.may_archive, archive_floor=p.archive_floor, cautious=p.provider == EMBEDDED)
            for p in decision.chain
        )
        return Policy(account.categories, decision.floor, terms)

    @contextmanager
    def desk(self, run: Run) -> Iterator[tuple[AccountPlan, Tools]]:
        """The plan and tools of a run's account. Raises ConfigError if the account is gone or switched off."""
        account = self.account(run.account)
        if run.trigger is Trigger.SCHEDULE and not account.schedule.enabled:
            raise ConfigError(f"account {account.name}: its schedule is switched off (schedule.enabled: false)")
        # The mailbox remembers, from run to run, where its unsorted mail begins. It is taken out while in use: a run
        # that lost its lease may not have noticed yet when the account's next one begins in this process.
        mailbox = self._mailboxes.pop(account.name, None) or self.mailbox(account)
        tools = Tools(
            mailbox=mailbox,
            decider=self.chain,
            journal=self.ledger,
            clock=self.clock,
            log=StructuredRunLog(run),
            corrections=self.ledger,
            run_mail=self.run_mail(account.name),
            learner=self.study(account),
        )
        try:
            yield self.plan(account), tools
        finally:
            mailbox.close()
            self._mailboxes[account.name] = mailbox

    def study(self, account: AccountSettings) -> Study | None:
        """What this process learns from an account's mailbox; None where the embedded classifier is not asked, or
        learning is switched off."""
        asked = any(p.provider == EMBEDDED for p in self.settings.decision.chain)
        if account.learning is None or not asked:
            return None
        if account.name not in self._studies:
            self._studies[account.name] = self._new_study(account, account.learning.junk)
        return self._studies[account.name]

    def _new_study(self, account: AccountSettings, junk: str) -> Study:
        categories = account.categories
        course = Course(
            account=account.name,
            categories=categories,
            question=build_question(categories, self.settings.decision.offer_none),
            archiving=frozenset(i for i in categories.ids if categories.action(i) is Action.ARCHIVE),
            max_chars=self.settings.decision.body_chars,
            junk=junk,
        )
        return Study(
            course,
            EmbeddedProvider(clock=self.clock),
            book=self.ledger,
            mailbox_at=lambda folder: self.mailbox(replace(account, inbox=folder or account.inbox)),
            decider_of=self._taught,
            clock=self.clock,
        )

    def _taught(self, learned: LearnedWeights | None) -> Chain:
        """The chain; with what was learned, if anything was."""
        return self.chain.with_provider(EmbeddedProvider(clock=self.clock, learned=learned)) if learned else self.chain

    def close(self) -> None:
        """Close what was opened; safe to call twice."""
        self.close_chain()
        if "ledger" in self.__dict__:
            self.ledger.close()

    def close_chain(self) -> None:
        """Close the connections to model servers; whoever needs the chain again gets a new one."""
        chain: Chain | None = self.__dict__.pop("chain", None)
        if chain is not None:
            chain.close()

    def provider(self, settings: ProviderSettings) -> Provider:
        """One entry of the chain as an adapter. Raises ConfigError if its key or address cannot be used."""
        if settings.provider == EMBEDDED:
            return EmbeddedProvider(clock=self.clock)
        from triage.decide.providers import remote_provider  # the HTTP library is for those who ask a server

        return remote_provider(
            settings.provider,
            base_url=settings.base_url,
            model=settings.model,
            clock=self.clock,
            api_key=settings.api_key.get() if settings.api_key else None,
            timeout_s=settings.timeout_s,
            retries=settings.retries,
            max_options=settings.max_options,
            connections=self.settings.decision.concurrency,
        )

    def links(self) -> list[Link]:
        """The providers of the chain, in order, as adapters of their own. Raises ConfigError."""
        return [self.link(i, p) for i, p in enumerate(self.settings.decision.chain)]

    @staticmethod
    def breaker_key(settings: ProviderSettings) -> str:
        """What a provider's breaker is filed under: another model or address is another provider."""
        return f"{settings.provider} {settings.base_url} {settings.model}".strip()

    def run_mail(self, account: str) -> RunMail:
        """Which mail of an account belongs to runs of the mail tool."""
        from triage.agent.watch import RunWatch

        return RunWatch(self.ledger, account, self.clock)

    def link(self, position: int, settings: ProviderSettings) -> Link:
        """One entry of the chain with its terms. Raises ConfigError if its key or address cannot be used."""
        price = settings.price_usd_per_million_input_tokens
        return Link(
            provider=self.provider(settings),
            breaker_key=self.breaker_key(settings),
            position=position,
            price=None if price is None else Price(price, settings.price_usd_per_million_output_tokens or 0.0),
            may_archive=settings.may_archive,
            archive_floor=settings.archive_floor,
        )

    def _spent_today(self) -> float:
        today = datetime.combine(self.clock.now().date(), time.min, tzinfo=self.clock.now().tzinfo)
        return self.ledger.spent_usd(today)

    def _login_fingerprint(self, name: str) -> str:
        """Changes when host, user or secret of an account change; says nothing about them (keyed)."""
        account = self.account(name)
        text = "\n".join((account.host, str(account.port), account.username, account.auth, account.credential.get()))
        return self.ledger.key("login " + hashlib.sha256(text.encode()).hexdigest())
