"""How a run stands, from the ledger alone."""

from __future__ import annotations

from dataclasses import replace

from triage.agent.answers import Call, Outcome, run_view
from triage.agent.desk import Desk
from triage.agent.gate import Denial, ended
from triage.agent.result import Result
from triage.agent.states import Intent, Stage, State


def tell_status(desk: Desk, call: Call, run_id: str, scope: str | None) -> Result:
    """The run's limits, and how its last wait stands."""
    call.intent = Intent.REPORT_STATUS
    run = desk.gate.own(run_id)
    if isinstance(run, Denial):
        return desk.denied(call, run)
    call.run = run
    if scope is not None and scope != run.id:
        return desk.end(call, Outcome(State.FORBIDDEN, "scope_of_another_run"))
    call.reach(Stage.AUTHORIZED)
    now = desk.clock.now()
    view = run_view(run, desk.policy, now)
    claims = desk.ledger.claims_of(run.id, run.generation)
    wait = desk.ledger.last_wait(run.id, run.generation)
    about = Outcome(
        State.PENDING,
        "run_opened",
        run=view,
        wait_id=wait.id if wait else None,
        attempt=wait.attempt if wait else 0,
        polls_used=wait.polls_used if wait else 0,
    )
    if claims:
        accepted = desk.acceptor.accepted(claims[-1], "")
        outcome = replace(about, state=State.FOUND, reason="accepted_before", accepted=accepted, counts={"matched": 1})
    elif denial := ended(run, now):
        outcome = replace(about, state=denial.state, reason=denial.reason)
    elif wait is not None and wait.state != str(State.PENDING):
        kept = desk.ledger.receipt(wait.receipt_id) if wait.receipt_id else None
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
    return desk.end(call, outcome)
