"""The mail tool's part of the ledger, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from services.ledger import START, Bench
from triage.domain.mail import MessageRef
from triage.domain.tool import Claim, Receipt, RunRecord, Taking, ToolRefused, WaitRecord

pytest_plugins = ["conftest_ledger"]


def a_run(n: int = 1, **changes: object) -> RunRecord:
    run = RunRecord(
        id=f"signup-{n}",
        generation=0,
        account="team",
        purpose="verify_signup",
        mailbox_id=f"mbx-{n:012}",
        strategy="plus",
        address=f"agent+{n}@desk.example",
        folder="INBOX",
        lease_key=f"agent+{n}@desk.example",
        uidvalidity=7,
        baseline_uid=1,
        opened_at=START,
        expires_at=START + timedelta(minutes=15),
        watch_until=START + timedelta(days=1),
        policy_version="1",
        policy_digest="d",
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def wrong(bench: Bench) -> list[str]:
    return list(bench.ledger.verify_receipts("team").problems)


def a_receipt(n: int, state: str = "pending", **changes: object) -> Receipt:
    receipt = Receipt(
        id=f"rct-{n:08}",
        account="team",
        run_id="signup-1",
        generation=1,
        wait_id=None,
        call="wait",
        surface="python",
        intent=None,
        state=state,
        reason="r",
        stage="intent_detected",
        at=START + timedelta(seconds=n),
        elapsed_ms=1,
        attempt=0,
        polls_used=0,
        counts={"old": 1},
        polls=({"n": 1, "at_ms": 5, "kind": "slot", "shown": "nothing"},),
        candidates=("m-1",),
    )
    return replace(receipt, **changes)  # type: ignore[arg-type]


def a_claim(key: str = "k1", run_id: str = "signup-1") -> Claim:
    return Claim("team", key, run_id, 1, "m-1", MessageRef("INBOX", 7, 4), "f" * 16, "rule", START, START, "rct-x")


def opened(bench: Bench, n: int = 1, **changes: object) -> RunRecord:
    run = a_run(n, **changes)
    return bench.ledger.open_run(run, a_receipt(9000 + n, run_id=run.id, at=START), 50, [run.lease_key])


def a_wait(run: RunRecord, name: str = "wait-aaaaaa") -> WaitRecord:
    return WaitRecord(name, run.id, run.generation, "team", 0, {"max_polls": 9}, START)


def test_a_run_reads_back_as_it_was_opened(bench: Bench) -> None:
    run = opened(bench)
    assert run.generation == 1
    assert bench.ledger.tool_run("signup-1") == run
    assert bench.ledger.tool_runs("team", live_at=START) == (run,)
    assert bench.ledger.tool_runs("team", live_at=START + timedelta(hours=1)) == ()


def test_a_lease_key_is_one_live_runs_alone(bench: Bench) -> None:
    opened(bench)
    with pytest.raises(ToolRefused, match="no_free_address"):
        opened(bench, 2, lease_key="agent+1@desk.example")
    bench.ledger.end_run("signup-1", 1, "finished", START)
    assert opened(bench, 2, lease_key="agent+1@desk.example").lease_key == "agent+1@desk.example"


def test_an_identity_lapses_by_itself(bench: Bench) -> None:
    opened(bench)
    later = START + timedelta(minutes=16)
    other = opened(bench, 2, lease_key="agent+1@desk.example", opened_at=later, expires_at=later + timedelta(minutes=1))
    assert other.generation == 1
    ended = bench.ledger.tool_run("signup-1")
    assert ended is not None
    assert (ended.end_reason, ended.ended_at) == ("expired", START + timedelta(minutes=15))


def test_counters_stop_at_their_limit(bench: Bench) -> None:
    run = opened(bench)
    assert [bench.ledger.spend_read(run, 2) for _ in range(3)] == [True, True, False]
    wait = bench.ledger.begin_wait(a_wait(run), 2)
    assert wait.attempt == 1
    assert bench.ledger.begin_wait(a_wait(run, "wait-bbbbbb"), 2).attempt == 2
    with pytest.raises(ToolRefused, match="attempts_exhausted"):
        bench.ledger.begin_wait(a_wait(run, "wait-cccccc"), 2)
    first = bench.ledger.wait_record("wait-aaaaaa")
    assert first is not None
    assert (first.state, first.reason) == ("cancelled", "superseded")


def test_what_a_wait_has_spent_never_shrinks(bench: Bench) -> None:
    run = opened(bench)
    bench.ledger.begin_wait(a_wait(run), 2)
    spent = []
    for step in (0, -3600, 7200):
        bench.clock.step(timedelta(seconds=step))
        held = bench.ledger.hold_wait("wait-aaaaaa", "me", 1000)
        assert held is not None
        spent.append(held.spent_ms)
    assert spent == sorted(spent)
    assert spent[-1] < 60_000


def test_a_wait_is_held_by_one_caller_until_it_is_given_back(bench: Bench) -> None:
    run = opened(bench)
    wait = bench.ledger.begin_wait(a_wait(run), 2)
    held = bench.ledger.hold_wait(wait.id, "me", 60_000)
    assert held is not None
    assert bench.ledger.hold_wait(wait.id, "other", 60_000) is None
    with pytest.raises(ToolRefused, match="wait_in_progress"):
        bench.ledger.begin_wait(a_wait(run, "wait-bbbbbb"), 2)
    assert not bench.ledger.save_wait(replace(held, polls_used=3), "other", None, release=True)
    assert bench.ledger.save_wait(replace(held, polls_used=3), "me", a_receipt(1), release=True)
    again = bench.ledger.hold_wait(wait.id, "other", 1000)
    assert again is not None
    assert again.polls_used == 3


def test_a_message_is_claimed_once_with_its_receipt(bench: Bench) -> None:
    run = opened(bench)
    taking = Taking("team", "k1", "link", "handle", run.id, 1, "rct-1", START, handle_key="h1")
    assert bench.ledger.claim_message(a_claim(), taking, a_receipt(1, "found"), None)
    assert not bench.ledger.claim_message(a_claim(run_id="signup-2"), None, a_receipt(2, "found"), None)
    assert bench.ledger.receipt("rct-00000002") is None
    assert bench.ledger.claims("team", ["k1", "k2"]) == {"k1": a_claim()}
    assert not bench.ledger.take(replace(taking, handle_key="h2"), a_receipt(3))
    assert bench.ledger.redeem("h1", "signup-2", START) is None
    assert bench.ledger.redeem("h1", run.id, START) is not None
    assert bench.ledger.redeem("h1", run.id, START) is None


def test_contested_claims_have_exactly_one_winner_each(bench: Bench) -> None:
    opened(bench)
    winners: list[str] = []

    def contend(me: int) -> None:
        for n in range(20):
            receipt = a_receipt(me * 1000 + n, "found")
            if bench.ledger.claim_message(a_claim(f"k{n}"), None, receipt, None):
                winners.append(f"k{n}")

    threads = [threading.Thread(target=contend, args=(me,)) for me in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == sorted(f"k{n}" for n in range(20))
    assert wrong(bench) == []


def test_requests_are_counted_and_an_unanswered_one_is_repeated_under_its_number(bench: Bench) -> None:
    run = opened(bench)
    assert bench.ledger.request_state(run) is None
    assert bench.ledger.begin_request(run, 1) == (1, "new")
    bench.ledger.end_request(run, 1, "unknown")
    assert bench.ledger.begin_request(run, 1) == (1, "unknown")
    with pytest.raises(ToolRefused, match="requests_exhausted"):
        bench.ledger.begin_request(run, 1)
    bench.ledger.end_request(run, 1, "rejected")
    assert bench.ledger.request_state(run) == "rejected"


def test_a_receipt_reads_back_and_an_edited_one_is_found_out(bench: Bench) -> None:
    receipts = [a_receipt(n) for n in range(3)]
    for receipt in receipts:
        bench.ledger.record(receipt)
    assert bench.ledger.receipts("signup-1") == tuple(reversed(receipts))
    assert wrong(bench) == []
    bench.sql("UPDATE tool_receipts SET state = 'found' WHERE id = 'rct-00000001'")
    assert wrong(bench) == ["account team, receipt rct-00000001: edited after it was written"]
    bench.sql("DELETE FROM tool_receipts WHERE id = 'rct-00000002'")
    assert "account team, receipt rct-00000002: the record is missing" in wrong(bench)


def test_a_receipt_whose_link_was_taken_too_and_one_put_in_are_found_out(bench: Bench) -> None:
    for n in range(4):
        bench.ledger.record(a_receipt(n))
    bench.sql("DELETE FROM events WHERE subject = 'rct-00000001'")
    bench.sql("DELETE FROM tool_receipts WHERE id = 'rct-00000001'")
    bench.sql("UPDATE tool_receipts SET id = 'rct-put-in' WHERE id = 'rct-00000003'")
    assert wrong(bench) == [
        "account team, receipts of the mail tool: links 2 to 2 are missing",
        "account team, receipt rct-00000003: the record is missing",
        "account team, receipt rct-put-in: recorded without a link in the chain",
    ]


def test_the_oldest_receipts_cut_off_by_hand_are_found_out(bench: Bench) -> None:
    for n in range(4):
        bench.ledger.record(a_receipt(n))
    bench.sql(
        "UPDATE chains SET base_seq = 1, base_hash = (SELECT hash FROM events WHERE account = 'tool:team' AND seq = 1) "
        "WHERE account = 'tool:team'"
    )
    bench.sql("DELETE FROM tool_receipts WHERE id = 'rct-00000000'")
    bench.sql("DELETE FROM events WHERE account = 'tool:team' AND seq = 1")
    assert wrong(bench) == ["account team, receipts of the mail tool: links up to 1 were cut off, and not by retention"]


def test_receipts_make_no_account_and_outlive_the_records(bench: Bench) -> None:
    """The chain they hang on is nobody's mailbox, and retention of records leaves it alone."""
    for n in range(3):
        bench.ledger.record(a_receipt(n))
    assert bench.ledger.accounts() == ()
    bench.ledger.enforce_retention(START + timedelta(days=1))
    assert len(bench.ledger.receipts()) == 3
    assert wrong(bench) == []


def test_retention_takes_receipts_and_leaves_a_chain_that_holds(bench: Bench) -> None:
    opened(bench)
    for n in range(4):
        bench.ledger.record(a_receipt(n))
    bench.ledger.forget_receipts(START + timedelta(seconds=2))
    assert {r.id for r in bench.ledger.receipts()} <= {"rct-00000002", "rct-00000003", "rct-00009001"}
    assert wrong(bench) == []
    assert bench.ledger.tool_run("signup-1") is not None


def test_receipts_are_told_by_account_and_the_last_of_a_run_by_call(bench: Bench) -> None:
    made = [a_receipt(1, "found"), a_receipt(2, "forbidden"), a_receipt(3, call="status"), a_receipt(4, generation=2)]
    for receipt in made:
        bench.ledger.record(receipt)
    bench.ledger.record(a_receipt(5, account="other", run_id="signup-9"))
    assert bench.ledger.receipts(account="team", limit=2) == (made[3], made[2])
    last = bench.ledger.last_receipt
    assert last("signup-1", 1, ["wait"]) == made[1]
    assert last("signup-1", 1, ["wait"], but=["forbidden"]) == made[0]
    assert last("signup-1", 1, ["take"]) is None


def test_live_runs_are_counted(bench: Bench) -> None:
    for n in range(3):
        opened(bench, n + 1)
    bench.ledger.end_run("signup-1", 1, "finished", START)
    assert [bench.ledger.live_runs(START, of) for of in (None, "team", "other")] == [2, 2, 0]
    assert bench.ledger.live_runs(START + timedelta(minutes=15)) == 0


def test_rates_tell_what_goes_wrong(bench: Bench) -> None:
    told = [("forbidden", "run_not_yours"), ("forbidden", "deadline_over_cap"), ("timeout", "no_message_yet")]
    for n, (state, reason) in enumerate([*told, ("found", "matched")]):
        bench.ledger.record(a_receipt(n, state, reason=reason))
    rates = bench.ledger.tool_rates(START)
    assert (rates.calls, rates.forbidden, rates.timeout, rates.inconsistent_run) == (4, 2, 1, 1)
    assert rates.share(rates.forbidden) == 0.5
    assert bench.ledger.tool_rates(START + timedelta(days=1)).share(1) == 0.0


def test_a_refused_login_is_remembered_for_a_while(bench: Bench) -> None:
    bench.ledger.remember_login("team", "fingerprint")
    assert bench.ledger.login_refusal("team") == "fingerprint"
    bench.clock.advance(timedelta(minutes=16))
    assert bench.ledger.login_refusal("team") is None


def test_tokens_end(bench: Bench) -> None:
    bench.ledger.issue_token("t1", ["b", "a"], START + timedelta(minutes=1))
    assert bench.ledger.token_runs("t1", START) == {"a", "b"}
    assert bench.ledger.token_runs("t1", START + timedelta(minutes=2)) is None
    assert bench.ledger.token_runs("t2", START) is None
