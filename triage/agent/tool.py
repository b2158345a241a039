"""The mail tool: every call of it, for every surface. One mapping in, one result out, one receipt kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from triage.agent import requests as asked
from triage.agent.acceptance import HijackSigns, Terms, Window, masked_subject
from triage.agent.accepting import Acceptor, extract, handle_key, withheld
from triage.agent.answers import Call, Outcome, ms, new_id, run_view
from triage.agent.gate import Denial, Gate, Grant, ended, over_caps
from triage.agent.hook import ACCEPTED, REJECTED, request_new, send_request
from triage.agent.identity import Nonce, new_nonce, offers
from triage.agent.intents import AskModel, read_intent
from triage.agent.links import Nothing
from triage.agent.login import LoginGuard
from triage.agent.looking import Looker, settle_tie
from triage.agent.policy import Policy, PurposeKeys
from triage.agent.ports import HookPost, MailReader, ToolLedger
from triage.agent.result import Result
from triage.agent.sharing import SharedMailbox
from triage.agent.states import Intent, Kind, Stage, State
from triage.agent.waiting import HOLD_MS, Progress, Signals, Waiting
from triage.domain.errors import MailboxChanged, MailboxError, MailboxRefused
from triage.domain.mail import PreparedMail
from triage.domain.tool import Claim, Receipt, RunRecord, ToolRefused, WaitRecord
from triage.ports import Clock

R = TypeVar("R", bound=asked.Request)
_SETTLED_REASONS = frozenset({"run_exists", "too_many_runs", "no_free_address"})


def no_progress(_used: int, _allowed: int, _shown: str) -> None:
    """For callers that do not want to hear of each look."""


def no_signs(_mail: PreparedMail) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the tool works with beside ledger, mailbox, policy and clock; the defaults do for most.

    `hijack_labels` are keywords, case folded, that mark a message as an attack; `hijack_signs` counts signs of one in
    a text. `login` is a fingerprint of the account's login: a refusal is remembered until it changes.
    """

    inbox: str = "INBOX"
    hijack_labels: Collection[str] = ()
    hijack_signs: HijackSigns = no_signs
    ask_model: AskModel | None = None
    post: HookPost = send_request
    nonce: Nonce = new_nonce
    login: Callable[[], str] = lambda: ""


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
        bound: Collection[str] | None = None,
        _shared: SharedMailbox | None = None,
        _signals: dict[str, Signals] | None = None,
    ) -> None:
        self._ledger = ledger
        self._reader = reader
        self._policy = policy
        self._clock = clock
        self._around = around or Surroundings()
        self._surface = surface
        self._bound = bound
        listens = policy.runs.idle == "early_slot" and policy.runs.limits.max_connections > 1
        guard = LoginGuard(reader, ledger, policy.keys.account, self._around.login)
        self._mailbox = _shared or SharedMailbox(guard, clock, listens=listens)
        self._signals: dict[str, Signals] = {} if _signals is None else _signals
        self._acceptor = Acceptor(ledger, clock, self._mailbox, self._around.hijack_signs)

    def bound_to(self, runs: Collection[str] | None, surface: str | None = None) -> MailTool:
        """The same tool for a caller who owns just these runs (None: all of them). Connections are shared."""
        return MailTool(
            self._ledger,
            self._reader,
            self._policy,
            self._clock,
            around=self._around,
            surface=surface or self._surface,
            bound=None if runs is None else frozenset(runs),
            _shared=self._mailbox,
            _signals=self._signals,
        )

    def close(self) -> None:
        """Stop the waits of this process and close its connections."""
        for signals in list(self._signals.values()):
            signals.stop()
        self._mailbox.close()

    # ------------------------------------------------------------ calls

    def open(self, request: Mapping[str, object]) -> Result:
        """Begin a run: its address and the mailbox's state before the action. Call it before triggering anything."""
        call = self._call("open", request)
        parsed = asked.parse(asked.OpenRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        if self._bound is not None and parsed.run_id not in self._bound:
            return self._end(call, Outcome(State.FORBIDDEN, "run_not_yours"))
        purpose = self._policy.purpose(parsed.purpose)
        if purpose is None:
            return self._end(call, Outcome(State.FORBIDDEN, "unknown_purpose"))
        if not purpose.covers(parsed.run_id):
            return self._end(call, Outcome(State.FORBIDDEN, "scope_not_in_purpose"))
        known = self._ledger.tool_run(parsed.run_id)
        if known is not None and not parsed.reuse_reason:
            return self._end(call, Outcome(State.FORBIDDEN, "run_exists"))
        call.reach(Stage.AUTHORIZED)
        return self._open(call, parsed)

    def find(self, request: Mapping[str, object]) -> Result:
        """One look, no waiting: is the message there?"""
        call = self._call("find", request)
        parsed = asked.parse(asked.IntentRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        if parsed.intent is Intent.REPORT_STATUS:
            return self._status(call, parsed.run_id, parsed.mailbox_scope)
        if parsed.intent is not Intent.VERIFY_EXISTING:
            return self._invalid(call, asked.Invalid(({"field": "intent", "code": "not_one_of_the_choices"},)))
        return self._find(call, parsed.run_id, parsed.mailbox_scope, parsed.max_reads)

    def ask(self, request: Mapping[str, object]) -> Result:
        """The same in plain words: rules read one intent out of them, or it is for a person."""
        call = self._call("ask", request)
        parsed = asked.parse(asked.AskRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        how = self._policy.keys.intent_text.classify
        if self._policy.keys.retention.request_text == "restricted":
            call.request_text = parsed.text
        run = self._gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._denied(call, run)
        call.run = run
        if how == "off":
            return self._end(call, Outcome(State.REVIEW, "plain_text_is_off"))
        read = read_intent(parsed.text, self._around.ask_model if how == "decision_model" else None)
        call.intent = read.intent
        if read.reason == "sending_is_impossible":
            return self._end(call, Outcome(State.FORBIDDEN, read.reason))
        if read.intent is None:
            return self._end(call, Outcome(State.REVIEW, read.reason))
        if read.intent is Intent.REPORT_STATUS:
            return self._status(call, parsed.run_id, parsed.mailbox_scope)
        if read.intent is Intent.VERIFY_EXISTING:
            return self._find(call, parsed.run_id, parsed.mailbox_scope, parsed.max_reads)
        return self._end(call, Outcome(State.REVIEW, "needs_a_typed_request"))

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
        call = self._call("wait", request)
        call.intent = Intent.WAIT_MESSAGE
        parsed = asked.parse(asked.WaitRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        grant = self._admit(call, parsed.run_id, Intent.WAIT_MESSAGE, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        kind = None if parsed.take == "none" else Kind(parsed.take)
        wanted = {Kind.LINK: Intent.TAKE_LINK, Kind.CODE: Intent.TAKE_CODE}
        if kind is not None and not grant.purpose.allows(wanted[kind]):
            return self._end(call, Outcome(State.FORBIDDEN, "intent_not_allowed"))
        over = over_caps(
            grant.purpose,
            self._policy,
            deadline_seconds=parsed.deadline_seconds,
            max_polls=parsed.max_polls,
            poll_interval_seconds=parsed.poll_interval_seconds,
            rule=parsed.rule,
        )
        if over is not None:
            return self._end(call, Outcome(State.FORBIDDEN, over))
        if self._ledger.request_state(grant.run) == REJECTED:
            return self._end(call, Outcome(State.REJECTED, "request_rejected"))
        begun = self._begin(call, parsed, grant)
        if isinstance(begun, Result):
            return begun
        call.reach(Stage.AUTHORIZED)
        return self._wait(call, parsed, grant, begun, kind, signals or Signals(), progress)

    def take(self, request: Mapping[str, object]) -> Result:
        """Take the link or code from the message that the run has accepted, once."""
        call = self._call("take", request)
        parsed = asked.parse(asked.TakeRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        kind = Kind(parsed.kind)
        intent = Intent.TAKE_LINK if kind is Kind.LINK else Intent.TAKE_CODE
        grant = self._admit(call, parsed.run_id, intent, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        call.reach(Stage.AUTHORIZED)
        return self._take(call, grant, kind)

    def request_new(self, request: Mapping[str, object]) -> Result:
        """Ask the application for its mail once more, through the policy's hook. Only after a wait that ended empty."""
        call = self._call("request", request)
        call.intent = Intent.REQUEST_NEW
        parsed = asked.parse(asked.RequestNewRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        grant = self._admit(call, parsed.run_id, Intent.REQUEST_NEW, mailbox_id=parsed.mailbox_id)
        if isinstance(grant, Result):
            return grant
        rule = grant.purpose.request_new
        if rule == "never":
            return self._end(call, Outcome(State.FORBIDDEN, "request_new_is_never"))
        last = self._last_state(grant.run)
        if not rule.after(last):
            return self._end(call, Outcome(State.FORBIDDEN, "only_after_" + "_or_".join(rule.only_after)))
        call.reach(Stage.AUTHORIZED)
        try:
            number, _ = self._ledger.begin_request(grant.run, rule.max)
        except ToolRefused as refused:
            return self._end(call, Outcome(State.FORBIDDEN, refused.reason))
        key = self._ledger.key(f"request {grant.run.id} {grant.run.generation} {number}")
        hook = self._policy.keys.hooks[rule.hook]
        said = request_new(self._around.post, hook, grant.run.id, key, self._policy.runs.budget.request)
        self._ledger.end_request(grant.run, number, said)
        if said == ACCEPTED:
            first = ms(timedelta(seconds=self._policy.runs.intervals[0]))
            return self._end(call, Outcome(State.PENDING, "requested", retryable=True, next_retry_after_ms=first))
        if said == REJECTED:
            return self._end(call, Outcome(State.REJECTED, "request_rejected"))
        return self._end(call, Outcome(State.TIMEOUT, "request_unanswered", retryable=True))

    def cancel(self, request: Mapping[str, object]) -> Result:
        """Stop a wait, or end the run: it was cancelled, its trigger was rejected, or all is done."""
        call = self._call("cancel", request)
        parsed = asked.parse(asked.CancelRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        run = self._gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._denied(call, run)
        call.run = run
        if parsed.wait_id is not None:
            wait = self._ledger.wait_record(parsed.wait_id)
            if wait is None or wait.run_id != run.id:
                return self._end(call, Outcome(State.FORBIDDEN, "wait_of_another_run"))
        call.reach(Stage.AUTHORIZED)
        self._ledger.cancel_waits(run.id, parsed.wait_id)
        if parsed.wait_id is None:
            self._ledger.end_run(run.id, run.generation, parsed.reason, self._clock.now())
        for wait_id, signals in list(self._signals.items()):
            known = self._ledger.wait_record(wait_id)
            if known is not None and known.run_id == run.id and parsed.wait_id in (None, wait_id):
                signals.stop()
        return self._end(call, Outcome(State.CANCELLED, parsed.reason, wait_id=parsed.wait_id))

    def status(self, request: Mapping[str, object]) -> Result:
        """What the ledger knows of the run: its limits and how its last wait stands. The mailbox is not touched."""
        call = self._call("status", request)
        call.intent = Intent.REPORT_STATUS
        parsed = asked.parse(asked.StatusRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed)
        return self._status(call, parsed.run_id, None)

    def redeem(self, request: Mapping[str, object]) -> tuple[Result, str | None]:
        """The value behind a handle, once, while the run lives. For the program that acts, never for a model."""
        call = self._call("redeem", {"run_id": str(request.get("run_id", ""))})
        parsed = asked.parse(asked.RedeemRequest, request)
        if isinstance(parsed, asked.Invalid):
            return self._invalid(call, parsed), None
        run = self._gate.own(parsed.run_id)
        if isinstance(run, Denial):
            return self._denied(call, run), None
        call.run = run
        purpose = self._policy.purpose(run.purpose)
        if denial := ended(run, self._clock.now()):
            return self._denied(call, denial), None
        if purpose is None:
            return self._end(call, Outcome(State.FORBIDDEN, "purpose_withdrawn")), None
        call.reach(Stage.AUTHORIZED)
        known = handle_key(self._ledger, parsed.handle)
        takings = [t for t in self._ledger.takings_of(run.id, run.generation) if t.handle_key == known]
        if not takings:
            return self._end(call, Outcome(State.FORBIDDEN, "unknown_handle")), None
        if takings[0].redeemed_at is not None:
            return self._end(call, Outcome(State.REJECTED, "already_redeemed")), None
        return self._redeem(call, run, purpose, known)

    def receipts(self, run_id: str | None = None, limit: int = 50) -> tuple[Receipt, ...]:
        """Receipts, newest first: of one run, or of all that the caller owns."""
        if self._bound is None:
            return self._ledger.receipts(run_id, limit)
        mine = [run_id] if run_id is not None else sorted(self._bound)
        found = [r for each in mine if each in self._bound for r in self._ledger.receipts(each, limit)]
        return tuple(sorted(found, key=lambda receipt: receipt.at, reverse=True)[:limit])

    @property
    def policy(self) -> Policy:
        return self._policy

    # ------------------------------------------------------------ opening

    def _open(self, call: Call, parsed: asked.OpenRequest) -> Result:
        identity = self._policy.runs.identity
        choices = offers(identity, parsed.run_id, self._around.inbox, self._around.nonce)
        lease_key, address, folder = choices[0]
        try:
            with self._mailbox.joined():
                place = self._mailbox.call(lambda reader: reader.place(folder), self._policy.runs.budget.read)
        except MailboxRefused as refused:
            return self._end(call, Outcome(State.REJECTED, refused.code))
        except MailboxError:
            return self._end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True))
        now = self._clock.now()
        expires = now + timedelta(seconds=identity.ttl_seconds)
        run = RunRecord(
            id=parsed.run_id,
            generation=0,
            account=self._policy.keys.account,
            purpose=parsed.purpose,
            mailbox_id=new_id("mbx"),
            strategy=identity.strategy,
            address=address,
            folder=folder,
            lease_key=lease_key,
            uidvalidity=place.uidvalidity,
            baseline_uid=place.uidnext,
            opened_at=now,
            expires_at=expires,
            watch_until=expires + timedelta(seconds=identity.late_watch_seconds),
            policy_version=self._policy.version,
            policy_digest=self._policy.digest,
            reuse_reason=parsed.reuse_reason,
            prompt_version=parsed.prompt_version,
        )
        call.run = run
        first = ms(timedelta(seconds=self._policy.runs.intervals[0]))
        outcome = Outcome(
            State.PENDING,
            "run_opened",
            retryable=True,
            next_retry_after_ms=first,
            cursor=f"{place.uidvalidity}:{place.uidnext - 1}",
        )
        _, receipt = call.end(outcome)
        limit = self._policy.runs.limits.max_live_runs
        try:
            call.run = self._ledger.open_run(run, receipt, limit, [key for key, _, _ in choices])
        except ToolRefused as refused:
            call.run = None
            return self._end(call, Outcome(State.FORBIDDEN, refused.reason))
        result, _ = call.end(replace(outcome, run=run_view(call.run, self._policy, now)))
        return result.model_copy(update={"receipt_id": receipt.id})

    # ------------------------------------------------------------ looking once

    def _find(self, call: Call, run_id: str, scope: str, max_reads: int) -> Result:
        call.intent = Intent.VERIFY_EXISTING
        grant = self._admit(call, run_id, Intent.VERIFY_EXISTING, scope=scope)
        if isinstance(grant, Result):
            return grant
        run, purpose = grant.run, grant.purpose
        if max_reads > purpose.max_reads:
            return self._end(call, Outcome(State.FORBIDDEN, "reads_over_cap"))
        call.reach(Stage.AUTHORIZED)
        before = self._ledger.claims_of(run.id, run.generation)
        if before:
            return self._found_before(call, grant, before[-1], None, None)
        if not self._ledger.spend_read(run, max_reads):
            return self._end(call, Outcome(State.FORBIDDEN, "reads_exhausted"))
        left = max_reads - run.reads_used - 1
        looker = self._looker(run, purpose, self._terms(run, purpose, run.opened_at, None, None))
        try:
            with self._mailbox.joined():
                look = looker.look(self._policy.runs.budget.read, self._live_addresses)
                base = Outcome(
                    State.NOT_FOUND,
                    "no_message_yet",
                    counts=look.counts,
                    polls_used=1,
                    polls_remaining=max(0, left),
                    retryable=left > 0,
                    cursor=look.cursor,
                )
                if look.classes:
                    call.reach(Stage.EVIDENCE)
                if look.suspect:
                    return self._end(call, replace(base, state=State.REVIEW, reason=look.suspect))
                if not look.candidates:
                    return self._end(call, base)
                chosen = settle_tie(look.candidates, purpose.tie, self._ledger.request_state(run) == ACCEPTED)
                if chosen is None:
                    ids = tuple(c.message_id for c in look.candidates)
                    found = replace(base, state=State.AMBIGUOUS, reason="several_messages", candidates=ids)
                    return self._end(call, found)
                done = self._acceptor.accept(
                    call, purpose, chosen, None, None, replace(base, reason="matched", retryable=False)
                )
        except MailboxChanged:
            return self._end(call, Outcome(State.REJECTED, "mailbox_renumbered"))
        except MailboxRefused as refused:
            return self._end(call, Outcome(State.REJECTED, refused.code))
        except MailboxError:
            return self._end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=left > 0, polls_used=1))
        if done is None:
            return self._end(call, replace(base, reason="only_already_consumed"))
        return done if isinstance(done, Result) else self._end(call, done)

    def _found_before(
        self, call: Call, grant: Grant, claim: Claim, kind: Kind | None, wait: WaitRecord | None
    ) -> Result:
        """The same answer again: the message is the run's already. What was taken is told again in the same form."""
        run = grant.run
        if wait is None and kind is None:
            subject, artifact = "", None
        takings = [t for t in self._ledger.takings_of(run.id, run.generation) if t.message_key == claim.message_key]
        try:
            with self._mailbox.joined():
                again = self._acceptor.reopened(run, claim, self._policy.runs.budget.read)
        except MailboxError:
            again = "mailbox_unreachable"
        subject = masked_subject(again[0].headers) if not isinstance(again, str) else ""
        artifact = None
        if kind is not None and not isinstance(again, str) and any(t.kind == kind.value for t in takings):
            taken = extract(again[1], kind, grant.purpose)
            artifact = (
                None if isinstance(taken, Nothing) else self._acceptor.artifact(claim, kind, taken, grant.purpose)
            )
        call.reach(Stage.EVIDENCE)
        return self._end(
            call,
            Outcome(
                State.FOUND,
                "accepted_before",
                accepted=self._acceptor.accepted(claim, subject),
                artifact=artifact,
                withheld=withheld(artifact),
                counts={"matched": 1},
                wait_id=wait.id if wait else None,
                attempt=wait.attempt if wait else 0,
                polls_used=wait.polls_used if wait else 0,
            ),
        )

    # ------------------------------------------------------------ waiting

    def _begin(self, call: Call, parsed: asked.WaitRequest, grant: Grant) -> WaitRecord | Result:
        """The wait to go on with: a new attempt, or the one that `wait_id` names."""
        run = grant.run
        terms: dict[str, object] = {
            "subject_contains": self._ledger.key(parsed.subject_contains or ""),
            "rule": parsed.rule,
            "after": parsed.after.isoformat(),
            "deadline_seconds": parsed.deadline_seconds,
            "max_polls": parsed.max_polls,
            "take": parsed.take,
        }
        if parsed.wait_id is not None:
            wait = self._ledger.wait_record(parsed.wait_id)
            if wait is None or (wait.run_id, wait.generation) != (run.id, run.generation):
                return self._end(call, Outcome(State.FORBIDDEN, "wait_of_another_run"))
            if dict(wait.terms) != terms:
                return self._end(call, Outcome(State.FORBIDDEN, "wait_terms_changed"))
            return wait
        last = self._ledger.last_wait(run.id, run.generation)
        delay = grant.purpose.retry_delay_ms if last is not None else 0
        wait = WaitRecord(
            id=new_id("wait"),
            run_id=run.id,
            generation=run.generation,
            account=run.account,
            attempt=0,
            terms=terms,
            started_at=self._clock.now(),
            start_delay_ms=delay,
        )
        try:
            return self._ledger.begin_wait(wait, grant.purpose.max_attempts)
        except ToolRefused as refused:
            return self._end(call, Outcome(State.FORBIDDEN, refused.reason))

    def _wait(
        self,
        call: Call,
        parsed: asked.WaitRequest,
        grant: Grant,
        wait: WaitRecord,
        kind: Kind | None,
        signals: Signals,
        progress: Progress,
    ) -> Result:
        run, owner = grant.run, new_id("caller")
        if wait.state != str(State.PENDING):
            return self._replay(call, grant, wait, kind)
        held = self._ledger.hold_wait(wait.id, owner, HOLD_MS)
        if held is None:
            again = Outcome(
                State.PENDING, "waited_for_elsewhere", wait_id=wait.id, attempt=wait.attempt, next_retry_after_ms=1000
            )
            return self._end(call, again)
        self._signals[wait.id] = signals
        if held.cancelled:
            signals.stop()
        now = self._clock.now()
        terms = self._terms(run, grant.purpose, parsed.after, parsed.subject_contains, parsed.rule)
        waiting = Waiting(
            ledger=self._ledger,
            clock=self._clock,
            policy=self._policy,
            purpose=grant.purpose,
            looker=self._looker(run, grant.purpose, terms),
            acceptor=self._acceptor,
            call=call,
            wait=held,
            owner=owner,
            kind=kind,
            signals=signals,
            live_addresses=self._live_addresses,
            requested=self._ledger.request_state(run) == ACCEPTED,
            runs_out_ms=ms(run.expires_at - now),
            progress=progress,
        )
        try:
            with self._mailbox.joined(), self._mailbox.bell(run.folder, signals.bell):
                ended_with = waiting.run()
        finally:
            self._signals.pop(wait.id, None)
        if isinstance(ended_with, Result):
            return ended_with
        return self._close_wait(call, waiting, ended_with)

    def _close_wait(self, call: Call, waiting: Waiting, outcome: Outcome) -> Result:
        """Keep how the wait stands with the receipt of this call, in one transaction."""
        result, receipt = call.end(outcome)
        wait = replace(
            waiting.wait,
            state=str(outcome.state),
            reason=outcome.reason,
            receipt_id=receipt.id if outcome.state is not State.PENDING else None,
        )
        if not self._ledger.save_wait(wait, waiting.owner, receipt, release=True):
            self._ledger.record(receipt)
        return result

    def _replay(self, call: Call, grant: Grant, wait: WaitRecord, kind: Kind | None) -> Result:
        """A wait that is over answers as it ended; it does not begin again."""
        if wait.state == str(State.FOUND):
            claims = [c for c in self._ledger.claims_of(wait.run_id, wait.generation) if c.wait_id == wait.id]
            if claims:
                return self._found_before(call, grant, claims[-1], kind, wait)
        kept = self._ledger.receipt(wait.receipt_id) if wait.receipt_id else None
        outcome = Outcome(
            State(wait.state),
            wait.reason,
            counts=kept.counts if kept else {},
            candidates=kept.candidates if kept else (),
            retryable=kept.retryable if kept else False,
            wait_id=wait.id,
            attempt=wait.attempt,
            polls_used=wait.polls_used,
        )
        return self._end(call, outcome)

    # ------------------------------------------------------------ taking

    def _take(self, call: Call, grant: Grant, kind: Kind) -> Result:
        run = grant.run
        claims = self._ledger.claims_of(run.id, run.generation)
        if not claims:
            return self._end(call, Outcome(State.NOT_FOUND, "nothing_accepted_yet"))
        claim = claims[-1]
        if any(t.kind == kind.value and t.message_key == claim.message_key for t in self._takings(run)):
            return self._end(call, Outcome(State.REJECTED, "already_taken"))
        try:
            with self._mailbox.joined():
                again = self._acceptor.reopened(run, claim, self._policy.runs.budget.read)
        except MailboxChanged:
            return self._end(call, Outcome(State.REJECTED, "mailbox_renumbered"))
        except MailboxRefused as refused:
            return self._end(call, Outcome(State.REJECTED, refused.code))
        except MailboxError:
            return self._end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True))
        if isinstance(again, str):
            return self._end(call, Outcome(State.REVIEW, again))
        head, opened = again
        taken = extract(opened, kind, grant.purpose)
        if isinstance(taken, Nothing):
            return self._end(call, Outcome(State.REVIEW, taken.reason))
        call.reach(Stage.EVIDENCE)
        artifact = self._acceptor.artifact(claim, kind, taken, grant.purpose)
        accepted = self._acceptor.accepted(claim, masked_subject(head.headers))
        outcome = Outcome(
            State.FOUND,
            "taken",
            accepted=accepted,
            artifact=artifact,
            withheld=withheld(artifact),
            counts={"matched": 1},
        )
        result, receipt = call.end(outcome)
        if not self._ledger.take(self._acceptor.taking(claim, artifact, receipt.id), receipt):
            return self._end(call, Outcome(State.REJECTED, "already_taken"))
        return result

    def _redeem(self, call: Call, run: RunRecord, purpose: PurposeKeys, known: str) -> tuple[Result, str | None]:
        """The message is read first, so that a mailbox that is away does not use the handle up."""
        taking = next(t for t in self._takings(run) if t.handle_key == known)
        claim = next(c for c in self._ledger.claims_of(run.id, run.generation) if c.message_key == taking.message_key)
        try:
            with self._mailbox.joined():
                again = self._acceptor.reopened(run, claim, self._policy.runs.budget.read)
        except MailboxRefused as refused:
            return self._end(call, Outcome(State.REJECTED, refused.code)), None
        except MailboxError:
            return self._end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True)), None
        if isinstance(again, str):
            return self._end(call, Outcome(State.REVIEW, again)), None
        head, opened = again
        taken = extract(opened, Kind(taking.kind), purpose)
        if isinstance(taken, Nothing):
            return self._end(call, Outcome(State.REVIEW, taken.reason)), None
        if self._ledger.redeem(known, run.id, self._clock.now()) is None:
            return self._end(call, Outcome(State.REJECTED, "already_redeemed")), None
        call.reach(Stage.EVIDENCE)
        self._acceptor.artifact(claim, Kind(taking.kind), taken, purpose)
        accepted = self._acceptor.accepted(claim, masked_subject(head.headers))
        return self._end(call, Outcome(State.FOUND, "redeemed", accepted=accepted, counts={"matched": 1})), taken.value

    # ------------------------------------------------------------ status

    def _status(self, call: Call, run_id: str, scope: str | None) -> Result:
        call.intent = Intent.REPORT_STATUS
        run = self._gate.own(run_id)
        if isinstance(run, Denial):
            return self._denied(call, run)
        call.run = run
        if scope is not None and scope != run.id:
            return self._end(call, Outcome(State.FORBIDDEN, "scope_of_another_run"))
        call.reach(Stage.AUTHORIZED)
        now = self._clock.now()
        view = run_view(run, self._policy, now)
        claims = self._ledger.claims_of(run.id, run.generation)
        wait = self._ledger.last_wait(run.id, run.generation)
        about = Outcome(
            State.PENDING,
            "run_opened",
            run=view,
            wait_id=wait.id if wait else None,
            attempt=wait.attempt if wait else 0,
            polls_used=wait.polls_used if wait else 0,
        )
        if claims:
            accepted = self._acceptor.accepted(claims[-1], "")
            outcome = replace(
                about, state=State.FOUND, reason="accepted_before", accepted=accepted, counts={"matched": 1}
            )
        elif denial := ended(run, now):
            outcome = replace(about, state=denial.state, reason=denial.reason)
        elif wait is not None and wait.state != str(State.PENDING):
            kept = self._ledger.receipt(wait.receipt_id) if wait.receipt_id else None
            outcome = replace(
                about,
                state=State(wait.state),
                reason=wait.reason,
                counts=kept.counts if kept else {},
                candidates=kept.candidates if kept else (),
                retryable=kept.retryable if kept else False,
            )
        else:
            reason = "waiting" if wait is not None else "run_opened"
            outcome = replace(about, reason=reason, next_retry_after_ms=1000, retryable=True)
        return self._end(call, outcome)

    # ------------------------------------------------------------ common ground

    @property
    def _gate(self) -> Gate:
        return Gate(self._policy, self._ledger.tool_run, self._bound)

    def _call(self, name: str, raw: object) -> Call:
        return Call(name, self._surface, self._policy, self._clock, self._ledger.key, raw)

    def _end(self, call: Call, outcome: Outcome) -> Result:
        result, receipt = call.end(outcome)
        self._ledger.record(receipt)
        return result

    def _invalid(self, call: Call, invalid: asked.Invalid) -> Result:
        if invalid.forbidden is not None:
            return self._end(call, Outcome(State.FORBIDDEN, invalid.forbidden))
        return self._end(call, Outcome(State.INVALID, "request_malformed", errors=invalid.errors))

    def _denied(self, call: Call, denial: Denial) -> Result:
        call.run = denial.run
        return self._end(call, Outcome(denial.state, denial.reason))

    def _admit(
        self, call: Call, run_id: str, intent: Intent, *, mailbox_id: str | None = None, scope: str | None = None
    ) -> Grant | Result:
        call.intent = intent
        grant = self._gate.admit(run_id, intent, self._clock.now(), mailbox_id=mailbox_id, scope=scope)
        if isinstance(grant, Denial):
            return self._denied(call, grant)
        call.run = grant.run
        return grant

    def _terms(
        self, run: RunRecord, purpose: PurposeKeys, after: datetime, contains: str | None, rule: str | None
    ) -> Terms:
        return Terms(
            run_id=run.id,
            address=run.address,
            evidence=self._policy.runs.identity.recipient_evidence,
            accept=purpose.accept,
            rules=self._policy.keys.rules,
            window=Window(run.uidvalidity, run.baseline_uid, after, run.expires_at),
            subject_contains=contains,
            rule=rule,
            tie=purpose.tie,
        )

    def _looker(self, run: RunRecord, purpose: PurposeKeys, terms: Terms) -> Looker:
        del purpose
        return Looker(self._mailbox, self._ledger, run, terms, self._around.hijack_labels, self._around.hijack_signs)

    def _live_addresses(self) -> tuple[str, ...]:
        live = self._ledger.tool_runs(self._policy.keys.account, live_at=self._clock.now(), limit=1000)
        return tuple(run.address for run in live)

    def _takings(self, run: RunRecord):  # type: ignore[no-untyped-def]
        return self._ledger.takings_of(run.id, run.generation)

    def _last_state(self, run: RunRecord) -> str:
        """How the run's newest look or wait ended."""
        for receipt in self._ledger.receipts(run.id, 50):
            if receipt.generation == run.generation and receipt.call in ("wait", "find"):
                if receipt.state in (str(State.FORBIDDEN), str(State.INVALID)):
                    continue
                return receipt.state
        return ""
