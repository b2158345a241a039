"""A call's part of a wait: which wait it is, who holds it, and how it stands afterwards."""

from __future__ import annotations

from dataclasses import replace

from triage.agent import requests as asked
from triage.agent.answers import Call, Outcome, ms, new_id
from triage.agent.desk import Desk
from triage.agent.finding import found_before
from triage.agent.gate import Grant
from triage.agent.hook import ACCEPTED
from triage.agent.result import Result
from triage.agent.states import Kind, State
from triage.agent.waiting import HOLD_MS, Progress, Signals, Waiting
from triage.domain.tool import ToolRefused, WaitRecord


def begin(desk: Desk, call: Call, parsed: asked.WaitRequest, grant: Grant) -> WaitRecord | Result:
    """The wait to go on with: a new attempt, or the one that `wait_id` names."""
    run = grant.run
    terms: dict[str, object] = {
        "subject_contains": desk.ledger.key(parsed.subject_contains or ""),
        "rule": parsed.rule,
        "after": parsed.after.isoformat(),
        "deadline_seconds": parsed.deadline_seconds,
        "max_polls": parsed.max_polls,
        "take": parsed.take,
    }
    if parsed.wait_id is not None:
        wait = desk.ledger.wait_record(parsed.wait_id)
        if wait is None or (wait.run_id, wait.generation) != (run.id, run.generation):
            return desk.end(call, Outcome(State.FORBIDDEN, "wait_of_another_run"))
        if dict(wait.terms) != terms:
            return desk.end(call, Outcome(State.FORBIDDEN, "wait_terms_changed"))
        return wait
    last = desk.ledger.last_wait(run.id, run.generation)
    delay = grant.purpose.retry_delay_ms if last is not None else 0
    wait = WaitRecord(
        id=new_id("wait"),
        run_id=run.id,
        generation=run.generation,
        account=run.account,
        attempt=0,
        terms=terms,
        started_at=desk.clock.now(),
        start_delay_ms=delay,
    )
    try:
        return desk.ledger.begin_wait(wait, grant.purpose.max_attempts)
    except ToolRefused as refused:
        return desk.end(call, Outcome(State.FORBIDDEN, refused.reason))


def go_on(
    desk: Desk,
    call: Call,
    parsed: asked.WaitRequest,
    grant: Grant,
    wait: WaitRecord,
    kind: Kind | None,
    signals: Signals,
    progress: Progress,
) -> Result:
    """This call's part of the wait: hold it, wait, give it back with how it stands."""
    run, owner = grant.run, new_id("caller")
    if wait.state != str(State.PENDING):
        return _replay(desk, call, grant, wait, kind)
    held = desk.ledger.hold_wait(wait.id, owner, HOLD_MS)
    if held is None:
        again = Outcome(
            State.PENDING, "waited_for_elsewhere", wait_id=wait.id, attempt=wait.attempt, next_retry_after_ms=1000
        )
        return desk.end(call, again)
    desk.signals[wait.id] = signals
    if held.cancelled:
        signals.stop()
    now = desk.clock.now()
    waiting = Waiting(
        ledger=desk.ledger,
        clock=desk.clock,
        policy=desk.policy,
        purpose=grant.purpose,
        looker=desk.looker(run, grant.purpose, parsed.after, parsed.subject_contains, parsed.rule),
        acceptor=desk.acceptor,
        call=call,
        wait=held,
        owner=owner,
        kind=kind,
        signals=signals,
        live_addresses=desk.live_addresses,
        requested=desk.ledger.request_state(run) == ACCEPTED,
        runs_out_ms=ms(run.expires_at - now),
        progress=progress,
    )
    try:
        with desk.mailbox.joined(), desk.mailbox.bell(run.folder, signals.bell):
            ended_with = waiting.run()
    finally:
        desk.signals.pop(wait.id, None)
    if isinstance(ended_with, Result):
        return ended_with
    return _close(desk, call, waiting, ended_with)


def _close(desk: Desk, call: Call, waiting: Waiting, outcome: Outcome) -> Result:
    """Keep how the wait stands with the receipt of this call, in one transaction."""
    result, receipt = call.end(outcome)
    wait = replace(
        waiting.wait,
        state=str(outcome.state),
        reason=outcome.reason,
        receipt_id=receipt.id if outcome.state is not State.PENDING else None,
    )
    if not desk.ledger.save_wait(wait, waiting.owner, receipt, release=True):
        desk.ledger.record(receipt)
    return result


def _replay(desk: Desk, call: Call, grant: Grant, wait: WaitRecord, kind: Kind | None) -> Result:
    """A wait that is over answers as it ended; it does not begin again."""
    if wait.state == str(State.FOUND):
        claims = [c for c in desk.ledger.claims_of(wait.run_id, wait.generation) if c.wait_id == wait.id]
        if claims:
            return found_before(desk, call, grant, claims[-1], kind, wait)
    kept = desk.ledger.receipt(wait.receipt_id) if wait.receipt_id else None
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
    return desk.end(call, outcome)
