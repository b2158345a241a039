"""One look, without waiting; and saying again what was found before."""

from __future__ import annotations

from dataclasses import replace

from triage.agent.acceptance import masked_subject
from triage.agent.accepting import extract, withheld
from triage.agent.answers import Call, Outcome
from triage.agent.desk import Desk
from triage.agent.gate import Grant
from triage.agent.hook import ACCEPTED
from triage.agent.links import Nothing
from triage.agent.looking import settle_tie, why_nothing
from triage.agent.result import Result
from triage.agent.states import Intent, Kind, Stage, State
from triage.domain.errors import MailboxChanged, MailboxError, MailboxRefused
from triage.domain.tool import Claim, WaitRecord


def find_once(desk: Desk, call: Call, run_id: str, scope: str, max_reads: int) -> Result:
    """One look within the read budget, spent before it is made."""
    call.intent = Intent.VERIFY_EXISTING
    grant = desk.admit(call, run_id, Intent.VERIFY_EXISTING, scope=scope)
    if isinstance(grant, Result):
        return grant
    run, purpose = grant.run, grant.purpose
    if max_reads > purpose.max_reads:
        return desk.end(call, Outcome(State.FORBIDDEN, "reads_over_cap"))
    call.reach(Stage.AUTHORIZED)
    before = desk.ledger.claims_of(run.id, run.generation)
    if before:
        return found_before(desk, call, grant, before[-1], None, None)
    if not desk.ledger.spend_read(run, max_reads):
        return desk.end(call, Outcome(State.FORBIDDEN, "reads_exhausted"))
    left = max_reads - run.reads_used - 1
    looker = desk.looker(run, purpose, run.opened_at)
    try:
        with desk.mailbox.joined():
            look = looker.look(desk.policy.runs.budget.read, desk.live_addresses)
            base = Outcome(
                State.NOT_FOUND,
                why_nothing(look.counts),
                counts=look.counts,
                polls_used=1,
                polls_remaining=max(0, left),
                retryable=left > 0,
                cursor=look.cursor,
            )
            if look.classes:
                call.reach(Stage.EVIDENCE)
            if look.suspect:
                return desk.end(call, replace(base, state=State.REVIEW, reason=look.suspect))
            if not look.candidates:
                return _nothing(desk, call, grant, base)
            chosen = settle_tie(look.candidates, purpose.tie, desk.ledger.request_state(run) == ACCEPTED)
            if chosen is None:
                ids = tuple(c.message_id for c in look.candidates)
                found = replace(base, state=State.AMBIGUOUS, reason="several_messages", candidates=ids)
                return desk.end(call, found)
            done = desk.acceptor.accept(
                call, purpose, chosen, None, None, replace(base, reason="matched", retryable=False)
            )
    except MailboxChanged:
        return desk.end(call, Outcome(State.REJECTED, "mailbox_renumbered"))
    except MailboxRefused as refused:
        return desk.end(call, Outcome(State.REJECTED, refused.code))
    except MailboxError:
        return desk.end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=left > 0, polls_used=1))
    if done is None:
        return _nothing(desk, call, grant, replace(base, reason="only_already_consumed"))
    return done if isinstance(done, Result) else desk.end(call, done)


def _nothing(desk: Desk, call: Call, grant: Grant, outcome: Outcome) -> Result:
    """Nothing that counts, unless another caller of the same run took the message between the gate and the look."""
    claims = desk.ledger.claims_of(grant.run.id, grant.run.generation)
    return found_before(desk, call, grant, claims[-1], None, None) if claims else desk.end(call, outcome)


def found_before(
    desk: Desk, call: Call, grant: Grant, claim: Claim, kind: Kind | None, wait: WaitRecord | None
) -> Result:
    """The same answer again: the message is the run's already. What was taken is told again in the same form."""
    run = grant.run
    takings = [t for t in desk.ledger.takings_of(run.id, run.generation) if t.message_key == claim.message_key]
    try:
        with desk.mailbox.joined():
            again = desk.acceptor.reopened(run, claim, desk.policy.runs.budget.read)
    except MailboxError:
        again = "mailbox_unreachable"
    subject = masked_subject(again[0].headers) if not isinstance(again, str) else ""
    artifact = None
    if kind is not None and not isinstance(again, str) and any(t.kind == kind.value for t in takings):
        taken = extract(again[1], kind, grant.purpose)
        artifact = None if isinstance(taken, Nothing) else desk.acceptor.artifact(claim, kind, taken, grant.purpose)
    call.reach(Stage.EVIDENCE)
    return desk.end(
        call,
        Outcome(
            State.FOUND,
            "accepted_before",
            accepted=desk.acceptor.accepted(claim, subject),
            artifact=artifact,
            withheld=withheld(artifact),
            counts={"matched": 1},
            wait_id=wait.id if wait else None,
            attempt=wait.attempt if wait else 0,
            polls_used=wait.polls_used if wait else 0,
        ),
    )
