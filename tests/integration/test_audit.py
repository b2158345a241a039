"""The audit over a real mailbox and its ledger: silent about what is in order, and it finds what is planted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from services.ledger import run_sql
from support.inbox import TABLE, fill
from support.office import TestApp, make_run, settings_for
from support.tool_past import use_tool
from triage.cli.audit import audit_account, audit_json
from triage.report.audit import RECEIPT_WORDS, Audit

EVER = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


class World:
    """A mailbox that was sorted by two ordinary runs."""

    def __init__(self, server: Dovecot, user: str, directory: Path) -> None:
        self.server, self.user = server, user
        self.settings = settings_for(directory, server.port, user, server.password)
        self.app = TestApp(self.settings, [TableProvider(TABLE, default=("conversation", 0.99))])
        fill(server, user)
        self.runs = [make_run(self.app)]
        server.append(user, [Mail("Later", "<later@x.example>")])
        self.runs.append(make_run(self.app))

    def audit(self, *, whole: bool = False) -> Audit:
        return audit_account(self.app, self.settings.accounts[0], EVER, whole=whole)

    def sql(self, *statements: str) -> list[tuple[object, ...]]:
        return run_sql(self.settings.ledger, *statements)

    def ids(self, where: str = "1=1") -> list[str]:
        return [str(row[0]) for row in self.sql(f"SELECT id FROM decisions WHERE {where} ORDER BY decided_at, id")]

    def imap(self, *commands: tuple[str, ...], mailbox: str = "INBOX") -> None:
        client = self.server.client(self.user)
        client.select(mailbox)
        for command in commands:
            status, told = client.uid(*command)
            assert status == "OK", told
        client.logout()

    def uid(self, subject: str, mailbox: str = "INBOX") -> str:
        client = self.server.client(self.user)
        client.select(mailbox, readonly=True)
        _, told = client.uid("SEARCH", "SUBJECT", f'"{subject}"')
        client.logout()
        return told[0].split()[0].decode()


@pytest.fixture
def world(server: Dovecot, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    user = "a" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    world = World(server, user, tmp_path)
    yield world
    world.app.close()


def violations(audit: Audit, number: int) -> tuple[str, ...]:
    return audit.invariants[number - 1].violations


def copied(world: World, where: str, **changes: str) -> str:
    """A statement that puts a changed copy of a decision into the ledger."""
    columns = [str(row[1]) for row in world.sql("PRAGMA table_info(decisions)")]
    values = [changes.get(name, name) for name in columns]
    return f"INSERT INTO decisions ({', '.join(columns)}) SELECT {', '.join(values)} FROM decisions WHERE {where}"


def test_what_ordinary_runs_leave_behind_is_in_order(world: World) -> None:
    """A label by a person's hand (the old archived mail) is told, and is no violation."""
    audit = world.audit()
    assert audit.holds, audit_json(audit, EVER)
    assert [i.checked > 0 for i in audit.invariants] == [True] * 6
    assert audit.chain.checked > 20
    assert any("1 labels were put there by another hand" in note for note in audit.invariants[0].notes)
    assert "labelled messages in INBOX and Archive" in audit.looked[0]


def test_the_mailbox_is_only_read(world: World) -> None:
    before = [world.server.state(world.user, box) for box in ("INBOX", "Archive")]
    world.audit()
    assert [world.server.state(world.user, box) for box in ("INBOX", "Archive")] == before


def test_what_people_do_is_no_violation(world: World) -> None:
    """A label changed, one taken off and decided again, a message moved back, one archived after it was read."""
    world.imap(
        ("STORE", world.uid("Plan"), "-FLAGS", "(Triage/conversation)"),
        ("STORE", world.uid("Plan"), "+FLAGS", "(Triage/action-required)"),
        ("STORE", world.uid("Later"), "-FLAGS", "(Triage/conversation)"),
        ("STORE", world.uid("Odd one"), "+FLAGS", "(\\Seen)"),
        ("MOVE", world.uid("Odd one"), "Archive"),
    )
    world.imap(("MOVE", world.uid("News A", "Archive"), "INBOX"), mailbox="Archive")
    make_run(world.app)
    audit = world.audit()
    assert audit.holds, audit_json(audit, EVER)
    found = {c.kind.value for c in world.app.ledger.corrections("team")}
    assert found == {"relabelled", "unlabelled", "moved_back"}


PLANTS: dict[str, tuple[int, str, str]] = {
    "1 a message decided once more": (1, "copy", "label_id = 'action-required'"),
    "1 a message decided in another run": (1, "copy later", "label_id = 'conversation'"),
    "2 archived under its floor": (2, "UPDATE decisions SET confidence = 0.2 WHERE {}", "archived_at IS NOT NULL"),
    "2 archived though it was to stay": (2, "UPDATE decisions SET archive = 0 WHERE {}", "archived_at IS NOT NULL"),
    "2 archived before its label": (2, "UPDATE decisions SET labelled_at = NULL WHERE {}", "archived_at IS NOT NULL"),
    "2 archived as a label that stays": (
        2,
        "UPDATE decisions SET label_id = 'hijack-attempt' WHERE {}",
        "archived_at IS NOT NULL",
    ),
    "2 an heir more sure than its ancestor": (
        2,
        "UPDATE decisions SET inherited_from = (SELECT message_key FROM decisions WHERE outcome = 'below_floor'), "
        "inherited_source = 'decision', decided_at = datetime(decided_at, '+1 minute') || '.000000' WHERE {}",
        "outcome = 'inherited' AND archived_at IS NOT NULL",
    ),
    "3 a label that is no category": (3, "UPDATE decisions SET label_id = 'lottery' WHERE {}", "outcome = 'applied'"),
    "3 a choice that is no category": (3, "UPDATE decisions SET choice = 'lottery' WHERE {}", "outcome = 'applied'"),
    "3 moved elsewhere": (3, "UPDATE decisions SET archived_mailbox = 'Bin' WHERE {}", "archived_at IS NOT NULL"),
    "6 nobody answered": (6, "UPDATE decisions SET provider = NULL WHERE {}", "outcome = 'applied'"),
    "6 no model": (6, "UPDATE decisions SET model = NULL WHERE {}", "outcome = 'below_floor'"),
    "6 no probabilities": (6, "UPDATE decisions SET probabilities = '{{}}' WHERE {}", "outcome = 'applied'"),
    "6 a confidence that does not follow": (
        6,
        "UPDATE decisions SET confidence = 0.91 WHERE {}",
        "outcome = 'applied'",
    ),
    "6 an heir without an ancestor": (
        6,
        "UPDATE decisions SET inherited_from = NULL WHERE {}",
        "outcome = 'inherited'",
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_decision_is_found_with_its_id(world: World, plant: str) -> None:
    number, statement, where = PLANTS[plant]
    if statement.startswith("copy"):
        (victim, *_) = world.ids(where)
        later = "datetime(decided_at, '+1 day') || '.000000'" if "later" in statement else "decided_at"
        world.sql(copied(world, f"id = '{victim}'", id="'planted'", decided_at=later))
        named = "planted"
    else:
        named = world.ids(where)[0]
        world.sql(statement.format(f"id = '{named}'"))
    audit = world.audit()
    assert any(named in told for told in violations(audit, number)), audit_json(audit, EVER)
    assert any(named in told for told in audit.chain.violations), "and the chain tells that the record was changed"


def test_a_run_of_more_than_twenty_is_found_by_its_decisions_and_by_its_count(world: World) -> None:
    first, second = world.runs
    victim = world.ids(f"run_id = '{second.id}'")[0]
    for n in range(20):
        changes = {"id": f"'planted{n:02}'", "message_key": f"'{n:032x}'", "uid": f"{1000 + n}"}
        world.sql(copied(world, f"id = '{victim}'", **changes))
    world.sql(f"""UPDATE runs SET counts = '{{"selected"\\:25}}' WHERE id = '{first.id}'""")
    found = violations(world.audit(), 4)
    assert sorted(found) == sorted(
        [f"account team, run {first.id}: holds 25 messages", f"account team, run {second.id}: holds 21 messages"]
    )


def test_runs_that_overlap_are_found(world: World) -> None:
    first, second = world.runs
    world.sql(f"UPDATE runs SET finished_at = datetime(finished_at, '+1 hour') || '.000000' WHERE id = '{first.id}'")
    found = violations(world.audit(), 5)
    assert found == (f"account team, run {second.id}: began while {first.id} was not over",)


def test_a_cut_run_that_went_on_is_found(world: World) -> None:
    first, _ = world.runs
    late = world.ids(f"run_id = '{first.id}'")[-1]
    world.sql(f"UPDATE decisions SET decided_at = datetime(decided_at, '+1 hour') || '.000000' WHERE id = '{late}'")
    assert violations(world.audit(), 5) == (
        f"account team, run {first.id}: decision {late} was made when the run was not on",
    )


def test_a_run_that_was_closed_twice_is_found(world: World) -> None:
    first, _ = world.runs
    world.sql(
        "INSERT INTO events SELECT account, seq + 1, at, kind, subject, digest, hash FROM events WHERE seq = 1 AND 1=0",
        f"UPDATE events SET subject = '{first.id}' WHERE kind = 'run_finished'",
    )
    assert violations(world.audit(), 5) == (f"account team, run {first.id}: closed more than once",)


def test_a_label_whose_decision_was_removed_is_found(world: World) -> None:
    """The chain tells that a record is missing, the mailbox which message it was about."""
    victim = world.ids("label_id = 'action-required'")[0]
    uid = world.uid("Sign this")
    world.sql(f"DELETE FROM decisions WHERE id = '{victim}'")
    audit = world.audit()
    assert any(f"INBOX:{_uidvalidity(world)}:{uid}" in told for told in violations(audit, 1)), audit_json(audit, EVER)
    assert any(victim in told for told in audit.chain.violations)


def test_two_labels_that_were_both_decided_are_found(world: World) -> None:
    victim = world.ids("label_id = 'action-required'")[0]
    uid = world.uid("Sign this")
    world.sql(copied(world, f"id = '{victim}'", id="'planted'", label_id="'receipt'"))
    world.imap(("STORE", uid, "+FLAGS", "(Triage/receipt)"))
    assert any("both decided" in told and f":{uid}:" in told for told in violations(world.audit(), 1))


def test_a_doubtful_message_that_vanished_into_the_archive_unread_is_found(world: World) -> None:
    world.imap(("MOVE", world.uid("Odd one"), "Archive"), ("MOVE", world.uid("Sign this"), "Archive"))
    found = violations(world.audit(), 2)
    there = {world.uid("Odd one", "Archive"), world.uid("Sign this", "Archive")}
    assert {
        match[1] for told in found if (match := re.search(r"Archive:\d+:(\d+): archived and unread", told))
    } == there


def test_keywords_under_our_parent_that_are_none_of_ours_are_found(world: World) -> None:
    uids = world.uid("Plan"), world.uid("Sign this")
    world.imap(*(("STORE", uid, "+FLAGS", "(Triage/lottery)") for uid in uids))
    found = violations(world.audit(), 3)
    assert len(found) == 2
    assert all("Triage/lottery, which is no configured id" in told for told in found)


def test_an_unreachable_mailbox_is_told_and_the_records_are_checked(world: World) -> None:
    from dataclasses import replace

    away = replace(world.settings.accounts[0], port=1)
    audit = audit_account(world.app, away, EVER)
    assert audit.holds
    assert "the mailbox was not read" in audit.unread[0]
    assert audit.invariants[0].checked == 10


def test_receipts_of_the_mail_tool_are_checked_and_the_records_are_judged_without_them(world: World) -> None:
    """One edited, one taken away: both are named; labels are still known to be explained by the chain of records."""
    told = use_tool(world.settings.ledger, datetime.now(UTC))
    audit = world.audit()
    assert (audit.holds, audit.receipts.checked) == (True, len(told))
    edited, missing = (str(result.receipt_id) for result in told[:2])
    world.sql(f"UPDATE tool_receipts SET state = 'found' WHERE id = '{edited}'")
    world.sql(f"DELETE FROM tool_receipts WHERE id = '{missing}'")
    audit = world.audit()
    assert not audit.holds
    assert sorted(audit.receipts.violations) == sorted(
        (
            f"account team, receipt {edited}: edited after it was written",
            f"account team, receipt {missing}: the record is missing",
        )
    )
    assert audit.chain.holds
    assert all(invariant.holds for invariant in audit.invariants)
    assert audit_json(audit, EVER)["receipts"]["holds"] is False
    assert [check.words for check in audit.checks if not check.holds] == [RECEIPT_WORDS]


def test_what_was_verified_before_is_compared_and_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.seals.BLOCK", 6)
    assert world.audit().chain.notes == ()
    audit = world.audit()
    assert audit.chain.holds
    assert "byte for byte as when they were" in audit.chain.notes[0]
    assert world.audit(whole=True).chain.notes == ()
    oldest, newest = world.ids()[0], world.ids()[-1]
    for victim in (oldest, newest):
        world.sql(f"UPDATE decisions SET why = 'x' WHERE id = '{victim}'")
    told = world.audit().chain.violations
    assert [any(victim in each for each in told) for victim in (oldest, newest)] == [True, True]


def _uidvalidity(world: World) -> int:
    return int(str(world.sql("SELECT uidvalidity FROM decisions WHERE mailbox = 'INBOX' LIMIT 1")[0][0]))
