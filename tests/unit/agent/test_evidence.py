"""What a result says and a receipt keeps: enough to reproduce a decision, and to tell whose fault an incident is."""

from __future__ import annotations

from support.mail_tool import Bench
from triage.agent.requests import IntentRequest, WaitRequest, parse
from triage.agent.states import Stage
from triage.domain.tool import Receipt


def receipt(bench: Bench, receipt_id: str | None) -> Receipt:
    found = bench.ledger.receipt(str(receipt_id))
    assert found is not None
    return found


def test_a_receipt_reproduces_the_decision(bench: Bench) -> None:
    """Who asked for what, under which policy and prompt, how far it came and when, each look, how it ended."""
    run = bench.open(prompt_version="signup-agent 7")
    bench.deliver(run)
    first, again = bench.wait(run), bench.wait(run, deadline_seconds=5)
    kept = receipt(bench, first.receipt_id)
    assert (kept.run_id, kept.prompt_version, kept.call, kept.intent) == (
        run.mailbox_scope, "signup-agent 7", "wait", "wait_for_message",
    )  # fmt: skip
    assert (kept.policy_version, kept.policy_digest) == (bench.policy.version, bench.policy.digest)
    assert sorted(kept.stages, key=kept.stages.__getitem__) == [str(stage) for stage in Stage]
    assert (kept.state, kept.reason, kept.next_action) == (first.state, first.reason, first.next_action)
    assert [poll["n"] for poll in kept.polls] == list(range(1, first.polls_used + 1))
    assert (kept.message_id, kept.elapsed_ms) == (first.accepted and first.accepted.message_id, first.elapsed_ms)
    assert kept.request_digest != receipt(bench, again.receipt_id).request_digest


def test_an_incident_is_the_models_the_policys_or_the_inboxs(bench: Bench) -> None:
    """A wish that nobody could read, an action that was refused, a mail that was not there: three different stages."""
    run = bench.open()
    wish = bench.tool.ask(
        {"run_id": run.mailbox_scope, "mailbox_scope": run.mailbox_scope, "max_reads": 1, "text": "tamp mail com"}
    )
    refused = bench.wait(run, deadline_seconds=61)
    silent = bench.wait(run, deadline_seconds=5)
    bench.deliver(run)
    found = bench.wait(run)
    told = [(str(result.state), result.stage) for result in (wish, refused, silent, found)]
    assert told == [
        ("needs_review", Stage.INTENT),
        ("forbidden", Stage.INTENT),
        ("timeout", Stage.AUTHORIZED),
        ("found", Stage.EVIDENCE),
    ]
    assert receipt(bench, wish.receipt_id).intent is None
    assert receipt(bench, refused.receipt_id).intent == "wait_for_message"


def test_a_result_names_message_rule_age_and_what_is_left(bench: Bench) -> None:
    """By an id of the tool's own that stays the same, under an identity that is a fixture and nobody's."""
    run = bench.open()
    assert run.temporary_identity
    bench.deliver(run)
    first = bench.wait(run)
    again = bench.wait(run, wait_id=first.wait_id)
    assert first.accepted is not None
    assert again.accepted is not None
    assert first.accepted.message_id == again.accepted.message_id
    assert first.accepted.message_id.startswith("m-")
    assert first.accepted.matched_rule
    assert first.accepted.age_seconds >= 0
    assert first.accepted.received_at <= first.observed_at
    assert len(first.accepted.fingerprint) == 16
    assert 0 < first.remaining_ms < 20_000
    assert first.polls_used + first.polls_remaining == 9
    assert first.mailbox_id != run.mailbox_id
    assert first.withheld == ["body"]


def test_requests_in_the_agreed_words_are_understood() -> None:
    """Field names and example values of the two vocabularies that callers speak."""
    wait = {
        "run_id": "signup-1842", "mailbox_id": "mbx-7f2", "subject_contains": "Confirma tu cuenta",
        "after": "2026-10-30T17:20:00Z", "deadline_seconds": 45, "max_polls": 9, "poll_interval_seconds": 5,
    }  # fmt: skip
    intent = {
        "intent": "verify_existing_message", "run_id": "signup-1842", "mailbox_scope": "signup-1842", "max_reads": 3,
        "can_send": False,
    }  # fmt: skip
    read = parse(WaitRequest, wait)
    assert isinstance(read, WaitRequest)
    assert (read.deadline_seconds, read.max_polls, read.poll_interval_seconds) == (45, 9, 5)
    assert isinstance(parse(IntentRequest, intent), IntentRequest)
