"""A ledger with a past, and the ways to change it behind the program's back."""

from __future__ import annotations

from datetime import timedelta

from services.ledger import START, Bench, make_decision
from triage.domain.mail import MessageRef
from triage.domain.record import Trigger

LEASE = timedelta(minutes=1)


def live(bench: Bench) -> Bench:
    """Two runs of one account, eight decisions, each in another state, and a second account."""
    ledger = bench.ledger
    for n in range(2):
        ledger.enqueue("support", Trigger.SCHEDULE, START + n * LEASE)
        run = ledger.claim("w", LEASE)
        assert run is not None
        for m in range(1 + 4 * n, 5 + 4 * n):
            ledger.record_decisions([make_decision(m, run_id=run.id)])
            bench.clock.advance(timedelta(seconds=1))
        ledger.mark_labelled([f"d{m:06d}" for m in range(1 + 4 * n, 4 + 4 * n)], bench.clock.now())
        ledger.finish(run.id, "w", counts={"labelled": 3})
    ledger.mark_archived({"d000001": MessageRef("Archive", 1, 1), "d000002": None}, bench.clock.now())
    ledger.mark_closed(["d000004"], "gone", bench.clock.now())
    ledger.record_decisions([make_decision(100, account="sales")])
    assert ledger.verify_chain("support") == []
    assert ledger.verify_chain("sales") == []
    return bench


EDITS = {
    "a confidence": (
        "UPDATE decisions SET confidence = 0.99 WHERE id = 'd000002'",
        "decision d000002: edited",
    ),
    "a probability": (
        "UPDATE decisions SET probabilities = '{}' WHERE id = 'd000002'",
        "decision d000002: edited",
    ),
    "a label": (
        "UPDATE decisions SET label_id = 'x' WHERE id = 'd000003'",
        "decision d000003: edited",
    ),
    "the salt": (
        "UPDATE decisions SET salt = (SELECT salt FROM decisions WHERE id = 'd000001') WHERE id = 'd000003'",
        "d000003: edited",
    ),
    "when it was labelled": (
        "UPDATE decisions SET labelled_at = decided_at WHERE id = 'd000001'",
        "edited after it was labelled",
    ),
    "where it went": (
        "UPDATE decisions SET archived_uid = 2 WHERE id = 'd000001'",
        "edited after it was archived",
    ),
    "that it was labelled": (
        "UPDATE decisions SET labelled_at = decided_at WHERE id = 'd000008'",
        "says labelled, which the chain does not",
    ),
    "that it was not labelled": (
        "UPDATE decisions SET labelled_at = NULL WHERE id = 'd000001'",
        "does not say labelled",
    ),
    "that it was closed": (
        "UPDATE decisions SET closed_reason = 'x' WHERE id = 'd000005'",
        "says closed",
    ),
    "why it was closed": (
        "UPDATE decisions SET closed_reason = 'x' WHERE id = 'd000004'",
        "edited after it was closed",
    ),
    "who recovered it": (
        "UPDATE decisions SET recovered_by = 'x' WHERE id = 'd000004'",
        "says recovered",
    ),
    "a run's counts": (
        "UPDATE runs SET counts = '{}' WHERE account = 'support'",
        "edited after it was run_finished",
    ),
    "a run's start": (
        "UPDATE runs SET started_at = enqueued_at, enqueued_at = fire_time",
        "edited after it was run_finished",
    ),
    "a run's end": (
        "UPDATE runs SET state = 'failed'",
        "edited after it was run_finished",
    ),
    "a decision away": (
        "DELETE FROM decisions WHERE id = 'd000003'",
        "decision d000003: the record is missing",
    ),
    "the last decision away": (
        "DELETE FROM decisions WHERE id = 'd000008'",
        "decision d000008: the record is missing",
    ),
    "a run away": (
        "DELETE FROM runs",
        "the record is missing",
    ),
    "a decision to another account": (
        "UPDATE decisions SET account = 'sales' WHERE id = 'd000001'",
        "d000001: the record is missing",
    ),
    "a link": (
        "UPDATE events SET subject = 'd000003' WHERE account = 'support' AND kind = 'decided' AND subject = 'd000002'",
        "was edited or reordered",
    ),
    "a link's time": (
        "UPDATE events SET at = (SELECT max(at) FROM events) WHERE account = 'support' AND seq = 1",
        "link 1 (decided",
    ),
    "a link away": (
        "DELETE FROM events WHERE account = 'support' AND seq = 4",
        "links 4 to 4 are missing",
    ),
    "the last link away": (
        "DELETE FROM events WHERE account = 'support' AND kind = 'closed'",
        "are missing",
    ),
    "all links away": (
        "DELETE FROM events WHERE account = 'support'",
        "are missing",
    ),
    "the first links away": (
        "DELETE FROM events WHERE account = 'support' AND seq <= 3",
        "links 1 to 3 are missing",
    ),
    "the chain's end": (
        "UPDATE chains SET hash = base_hash WHERE account = 'support'",
        "not the end that was recorded",
    ),
}
"""What is done, and a part of the sentence that tells of it."""
