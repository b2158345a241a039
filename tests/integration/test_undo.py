"""Undo on a real server: what a run did is taken back where nobody touched it, once, and stays taken back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.office import TestApp, make_run, settings_for
from triage.cli.audit import audit_account, audit_json
from triage.cli.undo import message_decision, run_decisions, undo, undo_json
from triage.domain.correction import CorrectionKind
from triage.domain.errors import ConfigError, MailboxLost
from triage.pipeline.undo import Undone, UndoStep

NEWS, ACTION, FALLBACK = "Triage/newsletter", "Triage/action-required", "Triage/unclassified"
TABLE = {
    "News A": ("newsletter", 0.99),
    "News B": ("newsletter", 0.99),
    "Sign": ("action-required", 0.99),
    "Odd": ("receipt", 0.4),
}
MAILS = [
    Mail("News A", "<a@x.example>"),
    Mail("News B", flags=["\\Flagged"]),
    Mail("Sign", "<s@x.example>"),
    Mail("Odd", "<o@x.example>"),
]


@pytest.fixture(scope="module", params=["maildir", "sdbox"])
def server(request: pytest.FixtureRequest) -> Iterator[Dovecot]:
    with Dovecot(request.param) as dovecot:
        yield dovecot


class World:
    def __init__(self, server: Dovecot, user: str, directory: Path) -> None:
        self.server, self.user = server, user
        self.settings = settings_for(directory, server.port, user, server.password)
        self.account = self.settings.accounts[0]
        self.app = TestApp(self.settings, [TableProvider(TABLE)])
        server.append(user, MAILS)
        self.run = make_run(self.app)

    def undo(self, *, dry_run: bool = False) -> tuple[tuple[UndoStep, ...], Undone]:
        return undo(self.app, self.account, run_decisions(self.app, self.run.id), dry_run=dry_run)

    def flags(self, mailbox: str = "INBOX") -> list[set[str]]:
        return sorted(self.server.flags(self.user, mailbox).values(), key=sorted)

    def imap(self, *command: str, mailbox: str = "INBOX") -> None:
        client = self.server.client(self.user)
        client.select(mailbox)
        status, told = client.uid(*command)
        assert status == "OK", told
        client.logout()

    def why(self, steps: tuple[UndoStep, ...]) -> dict[str, str]:
        return {s.record.label_id: s.why for s in steps if s.deed == "none"}


@pytest.fixture
def world(server: Dovecot, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    user = "u" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    world = World(server, user, tmp_path)
    yield world
    world.app.close()


def test_a_run_is_taken_back_whole(world: World) -> None:
    """Labels are off, archived mail is in the inbox again, the reader's own flags are as they were."""
    steps, undone = world.undo()
    assert sorted(s.deed for s in steps) == ["label_off", "label_off", "move_back", "move_back"]
    assert (len(undone.taken_back), undone.left) == (4, {})
    assert world.flags() == [set(), set(), set(), {"\\Flagged"}]
    assert world.flags("Archive") == []
    assert world.app.ledger.verify_chain("team") == []


def test_what_was_taken_back_is_decided_again_and_not_archived_again(world: World) -> None:
    world.undo()
    again = make_run(world.app)
    assert (again.counts["labelled"], again.counts.get("archived", 0)) == (4, 0)
    assert sorted(map(sorted, world.flags())) == sorted(
        map(sorted, [{ACTION}, {NEWS}, {FALLBACK}, {"\\Flagged", NEWS}])
    )
    assert world.flags("Archive") == []
    held = [d for d in world.app.ledger.decisions(again.id) if d.label_id == "newsletter"]
    assert [("taken_back" in d.warnings, d.archive) for d in held] == [(True, False)] * 2
    assert all("took it back" in d.why for d in held)
    audit = audit_account(world.app, world.account, datetime(2020, 1, 1, tzinfo=UTC))
    assert audit.holds, audit_json(audit, datetime(2020, 1, 1, tzinfo=UTC))


def test_a_dry_run_shows_the_plan_and_changes_nothing(world: World) -> None:
    before = [world.server.state(world.user, box) for box in ("INBOX", "Archive")]
    steps, undone = world.undo(dry_run=True)
    assert [world.server.state(world.user, box) for box in ("INBOX", "Archive")] == before
    assert world.app.ledger.corrections("team") == ()
    told = undo_json(steps, undone, dry_run=True)
    assert json.loads(json.dumps(told))["taken_back"] == 0
    assert sum(step["deed"] == "move_back" for step in told["steps"]) == 2  # type: ignore[attr-defined]


def test_undoing_twice_does_nothing_the_second_time(world: World) -> None:
    world.undo()
    before = [world.server.state(world.user, box) for box in ("INBOX", "Archive")]
    steps, undone = world.undo()
    assert {s.why for s in steps} == {"taken back already"}
    assert undone.taken_back == ()
    assert [world.server.state(world.user, box) for box in ("INBOX", "Archive")] == before


def test_what_somebody_touched_is_left_alone(world: World) -> None:
    """Read in the archive, relabelled, moved back by hand, deleted: each stays as the person left it."""
    archived = sorted(world.server.flags(world.user, "Archive"))
    uids = {frozenset(flags): uid for uid, flags in world.server.flags(world.user).items()}
    world.imap("STORE", str(archived[0]), "+FLAGS", "(\\Seen)", mailbox="Archive")
    world.imap("MOVE", str(archived[1]), "INBOX", mailbox="Archive")
    world.imap("STORE", str(uids[frozenset({ACTION})]), "-FLAGS", f"({ACTION})")
    world.imap("STORE", str(uids[frozenset({FALLBACK})]), "+FLAGS", "(\\Deleted)")
    before = [world.server.state(world.user, box) for box in ("INBOX", "Archive")]
    steps, undone = world.undo()
    assert [world.server.state(world.user, box) for box in ("INBOX", "Archive")] == before
    assert undone.taken_back == ()
    assert "bears no label" in world.why(steps)["action-required"]
    assert "flags changed" in world.why(steps)["unclassified"]


def test_one_message_is_taken_back_by_its_key(world: World) -> None:
    key = next(d.message_key for d in world.app.ledger.decisions(world.run.id) if d.label_id == "action-required")
    (record,) = message_decision(world.app, key[:12])
    undo(world.app, world.account, (record,))
    assert world.flags() == [set(), {FALLBACK}]
    with pytest.raises(ConfigError, match="No message's key begins with zzz"):
        message_decision(world.app, "zzz")


def test_a_message_decided_again_since_is_left_to_its_newer_decision(world: World) -> None:
    uid = next(uid for uid, flags in world.server.flags(world.user).items() if flags == {ACTION})
    world.imap("STORE", str(uid), "-FLAGS", f"({ACTION})")
    make_run(world.app)
    steps, _ = world.undo()
    assert world.why(steps)["action-required"] == "it was decided again since"
    assert {ACTION} in world.flags()


@pytest.mark.parametrize("point", ["move_back", "remove_labels", "record"])
def test_an_undo_that_was_cut_is_finished_by_the_next(
    world: World, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut before or after any step: nothing is lost or archived again, and the second undo does the rest."""
    mailbox_type = type(world.app.mailbox(world.account))

    def cut(*_: object, **__: object) -> object:
        raise MailboxLost("the line is cut")

    with monkeypatch.context() as patch:
        if point == "record":
            real = world.app.ledger.record_corrections
            calls: list[int] = []

            def second_fails(found: object) -> object:
                calls.append(1)
                return cut() if len(calls) == 3 else real(found)  # type: ignore[arg-type]

            patch.setattr(world.app.ledger, "record_corrections", second_fails)
        else:
            patch.setattr(mailbox_type, point, cut)
        with pytest.raises(MailboxLost):
            world.undo()
    kinds = {c.kind for c in world.app.ledger.corrections("team")}
    assert kinds == {CorrectionKind.UNDOING}
    steps, undone = world.undo()
    assert len(undone.taken_back) == 4, steps
    assert len(world.flags()) == 4
    again = make_run(world.app)
    assert again.counts.get("archived", 0) == 0


def test_a_preview_has_nothing_to_take_back(world: World) -> None:
    world.server.append(world.user, [Mail("Sign", "<s2@x.example>")])
    run = make_run(world.app, options={"mode": "preview"})
    steps, undone = undo(world.app, world.account, run_decisions(world.app, run.id))
    assert [s.why for s in steps] == ["nothing was written to the mailbox"]
    assert undone.taken_back == ()
