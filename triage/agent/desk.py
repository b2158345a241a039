"""What every call of the mail tool stands on: the ports, the policy, who calls, and how a call ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from triage.agent.acceptance import HijackSigns, Terms, Window
from triage.agent.accepting import Acceptor
from triage.agent.answers import Call, Outcome
from triage.agent.gate import Denial, Gate, Grant
from triage.agent.hook import send_request
from triage.agent.identity import Nonce, new_nonce
from triage.agent.intents import AskModel
from triage.agent.looking import Looker
from triage.agent.policy import Policy, PurposeKeys
from triage.agent.ports import HookPost, ToolLedger
from triage.agent.requests import Invalid
from triage.agent.result import Result
from triage.agent.sharing import SharedMailbox
from triage.agent.states import Intent, State
from triage.agent.waiting import Signals
from triage.domain.mail import PreparedMail
from triage.domain.tool import RunRecord
from triage.ports import Clock


def no_signs(_mail: PreparedMail) -> int:
    """For callers that have nothing to look for signs with."""
    return 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the tool works with beside ledger, mailbox, policy and clock; the defaults do for most.

    `hijack_labels` are keywords, case folded, that mark a message as an attack; `hijack_signs` counts signs of one in
    a mail. `login` is a fingerprint of the account's login: a refusal is remembered until it changes.
    """

    inbox: str = "INBOX"
    hijack_labels: Collection[str] = ()
    hijack_signs: HijackSigns = no_signs
    ask_model: AskModel | None = None
    post: HookPost = send_request
    nonce: Nonce = new_nonce
    login: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class Desk:
    """One caller's place at the tool. `bound` are the runs it owns, None for all; `signals` its process's waits."""

    ledger: ToolLedger
    policy: Policy
    clock: Clock
    around: Surroundings
    mailbox: SharedMailbox
    surface: str = "python"
    bound: Collection[str] | None = None
    signals: dict[str, Signals] = field(default_factory=dict)

    @property
    def acceptor(self) -> Acceptor:
        return Acceptor(self.ledger, self.clock, self.mailbox, self.around.hijack_signs)

    @property
    def gate(self) -> Gate:
        return Gate(self.policy, self.ledger.tool_run, self.bound)

    def call(self, name: str, raw: object) -> Call:
        return Call(name, self.surface, self.policy, self.clock, self.ledger.key, raw)

    def end(self, call: Call, outcome: Outcome) -> Result:
        """Say how the call ended, and keep it."""
        result, receipt = call.end(outcome)
        self.ledger.record(receipt)
        return result

    def invalid(self, call: Call, invalid: Invalid) -> Result:
        if invalid.forbidden is not None:
            return self.end(call, Outcome(State.FORBIDDEN, invalid.forbidden))
        return self.end(call, Outcome(State.INVALID, "request_malformed", errors=invalid.errors))

    def denied(self, call: Call, denial: Denial) -> Result:
        call.run = denial.run
        return self.end(call, Outcome(denial.state, denial.reason))

    def admit(
        self, call: Call, run_id: str, intent: Intent, *, mailbox_id: str | None = None, scope: str | None = None
    ) -> Grant | Result:
        """The grant, or the result that says why there is none."""
        call.intent = intent
        grant = self.gate.admit(run_id, intent, self.clock.now(), mailbox_id=mailbox_id, scope=scope)
        if isinstance(grant, Denial):
            return self.denied(call, grant)
        call.run = grant.run
        return grant

    def looker(
        self,
        run: RunRecord,
        purpose: PurposeKeys,
        after: datetime,
        contains: str | None = None,
        rule: str | None = None,
    ) -> Looker:
        """Eyes for one run under the policy's rule, narrowed by what the caller asked for."""
        terms = Terms(
            run_id=run.id,
            address=run.address,
            evidence=self.policy.runs.identity.recipient_evidence,
            accept=purpose.accept,
            rules=self.policy.keys.rules,
            window=Window(run.uidvalidity, run.baseline_uid, after, run.expires_at),
            subject_contains=contains,
            rule=rule,
            tie=purpose.tie,
        )
        return Looker(self.mailbox, self.ledger, run, terms, self.around.hijack_labels, self.around.hijack_signs)

    def live_addresses(self) -> tuple[str, ...]:
        """Every address that is somebody's now."""
        live = self.ledger.tool_runs(self.policy.keys.account, live_at=self.clock.now(), limit=1000)
        return tuple(run.address for run in live)
