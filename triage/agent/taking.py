"""Taking a link or code from the accepted message, and redeeming a handle."""

from __future__ import annotations

from triage.agent.acceptance import masked_subject
from triage.agent.accepting import extract, withheld
from triage.agent.answers import Call, Outcome
from triage.agent.desk import Desk
from triage.agent.gate import Grant
from triage.agent.links import Nothing
from triage.agent.policy import PurposeKeys
from triage.agent.result import Result
from triage.agent.states import Kind, Stage, State
from triage.domain.errors import MailboxChanged, MailboxError, MailboxRefused
from triage.domain.tool import RunRecord


def take_from(desk: Desk, call: Call, grant: Grant, kind: Kind) -> Result:
    """Read the accepted message again, take what the rule allows, and record that it was taken."""
    run = grant.run
    claims = desk.ledger.claims_of(run.id, run.generation)
    if not claims:
        return desk.end(call, Outcome(State.NOT_FOUND, "nothing_accepted_yet"))
    claim = claims[-1]
    if any(
        t.kind == kind.value and t.message_key == claim.message_key
        for t in desk.ledger.takings_of(run.id, run.generation)
    ):
        return desk.end(call, Outcome(State.REJECTED, "already_taken"))
    try:
        with desk.mailbox.joined():
            again = desk.acceptor.reopened(run, claim, desk.policy.runs.budget.read)
    except MailboxChanged:
        return desk.end(call, Outcome(State.REJECTED, "mailbox_renumbered"))
    except MailboxRefused as refused:
        return desk.end(call, Outcome(State.REJECTED, refused.code))
    except MailboxError:
        return desk.end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True))
    if isinstance(again, str):
        return desk.end(call, Outcome(State.REVIEW, again))
    head, opened = again
    taken = extract(opened, kind, grant.purpose)
    if isinstance(taken, Nothing):
        return desk.end(call, Outcome(State.REVIEW, taken.reason))
    call.reach(Stage.EVIDENCE)
    artifact = desk.acceptor.artifact(claim, kind, taken, grant.purpose)
    accepted = desk.acceptor.accepted(claim, masked_subject(head.headers))
    outcome = Outcome(
        State.FOUND,
        "taken",
        accepted=accepted,
        artifact=artifact,
        withheld=withheld(artifact),
        counts={"matched": 1},
    )
    result, receipt = call.end(outcome)
    if not desk.ledger.take(desk.acceptor.taking(claim, artifact, receipt.id), receipt):
        return desk.end(call, Outcome(State.REJECTED, "already_taken"))
    return result


def redeem_handle(
    desk: Desk, call: Call, run: RunRecord, purpose: PurposeKeys, known: str
) -> tuple[Result, str | None]:
    """The message is read first, so that a mailbox that is away does not use the handle up."""
    taking = next(t for t in desk.ledger.takings_of(run.id, run.generation) if t.handle_key == known)
    claim = next(c for c in desk.ledger.claims_of(run.id, run.generation) if c.message_key == taking.message_key)
    try:
        with desk.mailbox.joined():
            again = desk.acceptor.reopened(run, claim, desk.policy.runs.budget.read)
    except MailboxRefused as refused:
        return desk.end(call, Outcome(State.REJECTED, refused.code)), None
    except MailboxError:
        return desk.end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True)), None
    if isinstance(again, str):
        return desk.end(call, Outcome(State.REVIEW, again)), None
    head, opened = again
    taken = extract(opened, Kind(taking.kind), purpose)
    if isinstance(taken, Nothing):
        return desk.end(call, Outcome(State.REVIEW, taken.reason)), None
    if desk.ledger.redeem(known, run.id, desk.clock.now()) is None:
        return desk.end(call, Outcome(State.REJECTED, "already_redeemed")), None
    call.reach(Stage.EVIDENCE)
    desk.acceptor.artifact(claim, Kind(taking.kind), taken, purpose)
    accepted = desk.acceptor.accepted(claim, masked_subject(head.headers))
    return desk.end(call, Outcome(State.FOUND, "redeemed", accepted=accepted, counts={"matched": 1})), taken.value
