"""The mail tool: every call of it, for every surface. One mapping in, one result out, one receipt kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from triage.agent import requests as asked
from triage.agent.accepting import handle_key
from triage.agent.answers import Outcome, ms
from triage.agent.desk import Desk, Surroundings
from triage.agent.finding import find_once
from triage.agent.gate import Denial, ended, over_caps
from triage.agent.hook import ACCEPTED, REJECTED, request_new
from triage.agent.intents import read_intent
from triage.agent.login import LoginGuard
from triage.agent.opening import open_run
from triage.agent.policy import Policy
from triage.agent.ports import MailReader, ToolLedger
from triage.agent.result import Result
from triage.agent.sharing import SharedMailbox
from triage.agent.standing import tell_status
from triage.agent.states import Intent, Kind, Stage, State
from triage.agent.taking import redeem_handle, take_from
from triage.agent.waiting import Progress, Signals
from triage.agent.waits import begin, go_on
from triage.domain.tool import Receipt, RunRecord, ToolRefused
from triage.ports import Clock

__all__ = ["MailTool", "Surroundings"]


def no_progress(_used: int, _allowed: int, _shown: str) -> None:
    """For callers that do not want to hear of each look."""


class MailTool:
    """The bounded mail tool of one account. Thread-safe; one object serves a whole process.

    Calls take a mapping and return a Result; they raise only LedgerError (nothing can be promised without a ledger).
    """

    def __init__(
        self,
        ledger: ToolLedger,
        reader: Callable[[], MailReader],
        policy: Policy,
        clock: Clock,
        *,
        around: Surroundings | None = None,
        surface: str = "python",
    ) -> None:
        around = around or Surroundings()
        listens = policy.runs.idle == "early_slot" and policy.runs.limits.max_connections > 1
        guard = LoginGuard(reader, ledger, policy.keys.account, around.login)
        shared = SharedMailbox(guard, clock, listens=listens)
        self._desk = Desk(ledger, policy, clock, around, shared, surface)

    def bound_to(self, runs: Collection[str] | None, surface: str | None = None) -> MailTool:
        """The same tool for a caller who owns just these runs (None: all of them). Connections are shared."""
        bound = None if runs is None else frozenset(runs)
        tool = MailTool.__new__(MailTool)
        tool._desk = replace(self._desk, bound=bound, surface=surface or self._desk.surface)
        return tool

    def close(self) -> None:
        """Stop the waits of this process and close its connections."""
        for signals in list(self._desk.signals.values()):
            signals.stop()
        self._desk.mailbox.close()

    def open(self, request: Mapping[str, object]) -> Result:
        """Begin a run: its address and the mailbox's state before the action. Call it before triggering anything."""
        call = self._desk.call("open", request)
        parsed = asked.parse(asked.OpenRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        if self._desk.bound is not None and parsed.run_id not in self._desk.bound:
            return self._desk.end(call, Outcome(State.FORBIDDEN, "run_not_yours"))
        purpose = self._desk.policy.purpose(parsed.purpose)
        if purpose is None:
            return self._desk.end(call, Outcome(State.FORBIDDEN, "unknown_purpose"))
        if not purpose.covers(parsed.run_id):
            return self._desk.end(call, Outcome(State.FORBIDDEN, "scope_not_in_purpose"))
        known = self._desk.ledger.tool_run(parsed.run_id)
        if known is not None and not parsed.reuse_reason:
            return self._desk.end(call, Outcome(State.FORBIDDEN, "run_exists"))
        call.reach(Stage.AUTHORIZED)
        return open_run(self._desk, call, parsed)

    def find(self, request: Mapping[str, object]) -> Result:
        """One look, no waiting: is the message there?"""
        call = self._desk.call("find", request)
        parsed = asked.parse(asked.IntentRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        if parsed.intent is Intent.REPORT_STATUS:
            return tell_status(self._desk, call, parsed.run_id, parsed.mailbox_scope)
        if parsed.intent is not Intent.VERIFY_EXISTING:
            return self._desk.invalid(call, asked.Invalid(({"field": "intent", "code": "not_one_of_the_choices"},)))
        return find_once(self._desk, call, parsed.run_id, parsed.mailbox_scope, parsed.max_reads)

    def ask(self, request: Mapping[str, object]) -> Result:
        """The same in plain words: rules read one intent out of them, or it is for a person."""
        call = self._desk.call("ask", request)
        parsed = asked.parse(asked.AskRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        how = self._desk.policy.keys.intent_text.classify
        if self._desk.policy.keys.retention.request_text == "restricted":
            call.request_text = parsed.text
        run = self._desk.gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._desk.denied(call, run)
        call.run = run
        if how == "off":
            return self._desk.end(call, Outcome(State.REVIEW, "plain_text_is_off"))
        read = read_intent(parsed.text, self._desk.around.ask_model if how == "decision_model" else None)
        call.intent = read.intent
        if read.reason == "sending_is_impossible":
            return self._desk.end(call, Outcome(State.FORBIDDEN, read.reason))
        if read.intent is None:
            return self._desk.end(call, Outcome(State.REVIEW, read.reason))
        if read.intent is Intent.REPORT_STATUS:
            return tell_status(self._desk, call, parsed.run_id, parsed.mailbox_scope)
        if read.intent is Intent.VERIFY_EXISTING:
            return find_once(self._desk, call, parsed.run_id, parsed.mailbox_scope, parsed.max_reads)
        return self._desk.end(call, Outcome(State.REVIEW, "needs_a_typed_request"))

    def wait(
        self,
        request: Mapping[str, object],
        *,
        signals: Signals | None = None,
        progress: Progress = no_progress,
    ) -> Result:
        """Wait for the run's message, at most `max_call_seconds`; `pending` continues with the wait_id.

        `signals.stop()`, from any thread, ends the wait as cancelled; `progress` hears of each look.
        """
        call = self._desk.call("wait", request)
        call.intent = Intent.WAIT_MESSAGE
        parsed = asked.parse(asked.WaitRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        grant = self._desk.admit(call, parsed.run_id, Intent.WAIT_MESSAGE, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        kind = None if parsed.take == "none" else Kind(parsed.take)
        wanted = {Kind.LINK: Intent.TAKE_LINK, Kind.CODE: Intent.TAKE_CODE}
        if kind is not None and not grant.purpose.allows(wanted[kind]):
            return self._desk.end(call, Outcome(State.FORBIDDEN, "intent_not_allowed"))
        over = over_caps(
            grant.purpose,
            self._desk.policy,
            deadline_seconds=parsed.deadline_seconds,
            max_polls=parsed.max_polls,
            poll_interval_seconds=parsed.poll_interval_seconds,
            rule=parsed.rule,
        )
        if over is not None:
            return self._desk.end(call, Outcome(State.FORBIDDEN, over))
        if self._desk.ledger.request_state(grant.run) == REJECTED:
            return self._desk.end(call, Outcome(State.REJECTED, "request_rejected"))
        begun = begin(self._desk, call, parsed, grant)
        if isinstance(begun, Result):
            return begun
        call.reach(Stage.AUTHORIZED)
        return go_on(self._desk, call, parsed, grant, begun, kind, signals or Signals(), progress)

    def take(self, request: Mapping[str, object]) -> Result:
        """Take the link or code from the message that the run has accepted, once."""
        call = self._desk.call("take", request)
        parsed = asked.parse(asked.TakeRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        kind = Kind(parsed.kind)
        intent = Intent.TAKE_LINK if kind is Kind.LINK else Intent.TAKE_CODE
        grant = self._desk.admit(call, parsed.run_id, intent, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        call.reach(Stage.AUTHORIZED)
        return take_from(self._desk, call, grant, kind)

    def request_new(self, request: Mapping[str, object]) -> Result:
        """Ask the application for its mail once more, through the policy's hook. Only after a wait that ended empty."""
        call = self._desk.call("request", request)
        call.intent = Intent.REQUEST_NEW
        parsed = asked.parse(asked.RequestNewRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        grant = self._desk.admit(call, parsed.run_id, Intent.REQUEST_NEW, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        rule = grant.purpose.request_new
        if rule == "never":
            return self._desk.end(call, Outcome(State.FORBIDDEN, "request_new_is_never"))
        last = _last_state(self._desk, grant.run)
        if not rule.after(last):
            return self._desk.end(call, Outcome(State.FORBIDDEN, "only_after_" + "_or_".join(rule.only_after)))
        call.reach(Stage.AUTHORIZED)
        try:
            number, _ = self._desk.ledger.begin_request(grant.run, rule.max)
        except ToolRefused as refused:
            return self._desk.end(call, Outcome(State.FORBIDDEN, refused.reason))
        key = self._desk.ledger.key(f"request {grant.run.id} {grant.run.generation} {number}")
        hook = self._desk.policy.keys.hooks[rule.hook]
        said = request_new(self._desk.around.post, hook, grant.run.id, key, self._desk.policy.runs.budget.request)
        self._desk.ledger.end_request(grant.run, number, said)
        if said == ACCEPTED:
            first = ms(timedelta(seconds=self._desk.policy.runs.intervals[0]))
            return self._desk.end(call, Outcome(State.PENDING, "requested", retryable=True, next_retry_after_ms=first))
        if said == REJECTED:
            return self._desk.end(call, Outcome(State.REJECTED, "request_rejected"))
        return self._desk.end(call, Outcome(State.TIMEOUT, "request_unanswered", retryable=True))

    def cancel(self, request: Mapping[str, object]) -> Result:
        """Stop a wait, or end the run: it was cancelled, its trigger was rejected, or all is done."""
        call = self._desk.call("cancel", request)
        parsed = asked.parse(asked.CancelRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        run = self._desk.gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._desk.denied(call, run)
        call.run = run
        if parsed.wait_id is not None:
            wait = self._desk.ledger.wait_record(parsed.wait_id)
            if wait is None or wait.run_id != run.id:
                return self._desk.end(call, Outcome(State.FORBIDDEN, "wait_of_another_run"))
        call.reach(Stage.AUTHORIZED)
        self._desk.ledger.cancel_waits(run.id, parsed.wait_id)
        if parsed.wait_id is None:
            self._desk.ledger.end_run(run.id, run.generation, parsed.reason, self._desk.clock.now())
        for wait_id, signals in list(self._desk.signals.items()):
            known = self._desk.ledger.wait_record(wait_id)
            if known is not None and known.run_id == run.id and parsed.wait_id in (None, wait_id):
                signals.stop()
        return self._desk.end(call, Outcome(State.CANCELLED, parsed.reason, wait_id=parsed.wait_id))

    def status(self, request: Mapping[str, object]) -> Result:
        """What the ledger knows of the run: its limits and how its last wait stands. The mailbox is not touched."""
        call = self._desk.call("status", request)
        call.intent = Intent.REPORT_STATUS
        parsed = asked.parse(asked.StatusRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed)
        return tell_status(self._desk, call, parsed.run_id, None)

    def redeem(self, request: Mapping[str, object]) -> tuple[Result, str | None]:
        """The value behind a handle, once, while the run lives. For the program that acts, never for a model."""
        named = request.get("run_id") if isinstance(request, Mapping) else None
        call = self._desk.call("redeem", {"run_id": str(named)})  # the handle is in no digest
        parsed = asked.parse(asked.RedeemRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._desk.invalid(call, parsed), None
        run = self._desk.gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._desk.denied(call, run), None
        call.run = run
        purpose = self._desk.policy.purpose(run.purpose)
        if denial := ended(run, self._desk.clock.now()):
            return self._desk.denied(call, denial), None
        if purpose is None:
            return self._desk.end(call, Outcome(State.FORBIDDEN, "purpose_withdrawn")), None
        call.reach(Stage.AUTHORIZED)
        known = handle_key(self._desk.ledger, parsed.handle)
        takings = [t for t in self._desk.ledger.takings_of(run.id, run.generation) if t.handle_key == known]
        if not takings:
            return self._desk.end(call, Outcome(State.FORBIDDEN, "unknown_handle")), None
        if takings[0].redeemed_at is not None:
            return self._desk.end(call, Outcome(State.REJECTED, "already_redeemed")), None
        return redeem_handle(self._desk, call, run, purpose, known)

    def receipts(self, run_id: str | None = None, limit: int = 50) -> tuple[Receipt, ...]:
        """Receipts, newest first: of one run, or of all that the caller owns."""
        if self._desk.bound is None:
            return self._desk.ledger.receipts(run_id, limit)
        mine = [run_id] if run_id is not None else sorted(self._desk.bound)
        found = [r for each in mine if each in self._desk.bound for r in self._desk.ledger.receipts(each, limit)]
        return tuple(sorted(found, key=lambda receipt: receipt.at, reverse=True)[:limit])

    @property
    def policy(self) -> Policy:
        return self._desk.policy


def _last_state(desk: Desk, run: RunRecord) -> str:
    """How the run's newest look or wait ended, those that were refused left out."""
    last = desk.ledger.last_receipt(run.id, run.generation, ("wait", "find"), but=(State.FORBIDDEN, State.INVALID))
    return last.state if last else ""
