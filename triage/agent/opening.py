"""Opening a run: its address, its baseline, its time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from triage.agent import requests as asked
from triage.agent.answers import Call, Outcome, ms, new_id, run_view
from triage.agent.desk import Desk
from triage.agent.identity import offers
from triage.agent.result import Result
from triage.agent.states import State
from triage.domain.errors import MailboxError, MailboxRefused
from triage.domain.tool import RunRecord, ToolRefused


def open_run(desk: Desk, call: Call, parsed: asked.OpenRequest) -> Result:
    """The run, with its baseline taken from the mailbox before anything is triggered."""
    identity = desk.policy.runs.identity
    choices = offers(identity, parsed.run_id, desk.around.inbox, desk.around.nonce)
    lease_key, address, folder = choices[0]
    try:
        with desk.mailbox.joined():
            place = desk.mailbox.call(lambda reader: reader.place(folder), desk.policy.runs.budget.read)
    except MailboxRefused as refused:
        return desk.end(call, Outcome(State.REJECTED, refused.code))
    except MailboxError:
        return desk.end(call, Outcome(State.TIMEOUT, "mailbox_unreachable", retryable=True))
    now = desk.clock.now()
    expires = now + timedelta(seconds=identity.ttl_seconds)
    run = RunRecord(
        id=parsed.run_id,
        generation=0,
        account=desk.policy.keys.account,
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
        policy_version=desk.policy.version,
        policy_digest=desk.policy.digest,
        reuse_reason=parsed.reuse_reason,
        prompt_version=parsed.prompt_version,
    )
    call.run = run
    first = ms(timedelta(seconds=desk.policy.runs.intervals[0]))
    outcome = Outcome(
        State.PENDING,
        "run_opened",
        retryable=True,
        next_retry_after_ms=first,
        cursor=f"{place.uidvalidity}:{place.uidnext - 1}",
    )
    _, receipt = call.end(outcome)
    limit = desk.policy.runs.limits.max_live_runs
    try:
        call.run = desk.ledger.open_run(run, receipt, limit, [key for key, _, _ in choices])
    except ToolRefused as refused:
        call.run = None
        return desk.end(call, Outcome(State.FORBIDDEN, refused.reason))
    result, _ = call.end(replace(outcome, run=run_view(call.run, desk.policy, now)))
    return result.model_copy(update={"receipt_id": receipt.id})
