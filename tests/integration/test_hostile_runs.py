"""Whole runs against tired and hostile servers: the run ends in time with a reason, and the next one puts all right.

The adapter's own tests show that each command survives each misdeed; here it is the run, the ledger and the next run.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakes.imap_mailboxes import FakeBox, FakeMail
from fakes.scripted_imap import ALWAYS, FULL, PLAIN, Rule, ScriptedImap
from fakes.table_provider import TableProvider
from support.form import some
from support.later import LaterClock
from support.office import TestApp, make_run, settings_for
from triage.clock import SystemClock
from triage.config.settings import AccountSettings
from triage.domain.record import Run, RunState, Trigger
from triage.ledger.migrate import upgrade
from triage.mailbox.imap import ImapMailbox

TABLE = {
    "News": ("newsletter", 0.97),
    "Sign this": ("action-required", 0.97),
    "Odd": ("receipt", 0.45),
    "Plan": ("conversation", 0.97),
    "Paid": ("receipt", 0.97),
}
LABELS = {
    "News": "newsletter", "Sign this": "action-required", "Odd": "unclassified", "Plan": "conversation",
    "Paid": "receipt",
}  # fmt: skip
ARCHIVED = {"News", "Paid"}
COMMANDS = (
    "^LOGIN", "^NAMESPACE", "^LIST", "^SELECT", "^UID SEARCH", "^UID FETCH .*BODYSTRUCTURE", r"^UID FETCH .*PEEK\[1",
    "^UID STORE", "^UID FETCH .*FLAGS", "^UID MOVE", "^UID COPY", "^UID EXPUNGE", "^ENABLE",
)  # fmt: skip
THROTTLES = ("THROTTLED", "UNAVAILABLE", "LIMIT", "INUSE", "SERVERBUG")


def boxes(archive: str = "Archive", special: str = "\\Archive") -> list[FakeBox]:
    mails = [FakeMail(n, subject=subject) for n, subject in enumerate(TABLE, 1)]
    return [
        FakeBox("INBOX", mails),
        FakeBox(archive, special=special, uidvalidity=8),
        FakeBox("Sent", special="\\Sent"),
    ]


def serving(*rules: Rule, **told: Any) -> ScriptedImap:
    return ScriptedImap(told.pop("boxes", None) or boxes(), rules=rules, **told)


@cache
def empty_ledger() -> Path:
    """A ledger with its tables, to be copied: making one takes longer than a run."""
    directory = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    upgrade(f"sqlite:///{directory}/triage.db")
    return directory / "triage.db"


class HastyApp(TestApp):
    """Does not wait a minute for a command, but `patience_s`."""

    patience_s = 1.0

    def mailbox(self, account: AccountSettings) -> ImapMailbox:
        hasty = replace(self.connection(account), command_timeout_s=self.patience_s, connect_timeout_s=self.patience_s)
        return ImapMailbox(hasty, clock=self.clock)


class Account:
    """One account on a scripted server: its runs, and what must be true in the end."""

    def __init__(
        self, server: ScriptedImap, place: Path, most_copies: int = 1, patience_s: float = 1.0, **changes: Any
    ) -> None:
        self.server, self.most_copies, self.patience_s = server, most_copies, patience_s
        shutil.copyfile(empty_ledger(), place / "triage.db")
        self.settings = settings_for(place, server.port, **changes)
        self.model = TableProvider(TABLE)
        self.now = timedelta(0)

    def run(self, trigger: Trigger = Trigger.SCHEDULE) -> Run:
        app = HastyApp(self.settings, [self.model], LaterClock(SystemClock(), self.now))
        app.patience_s = self.patience_s
        try:
            return make_run(app, trigger=trigger)
        finally:
            app.close()

    def pass_time(self, span: timedelta = timedelta(hours=2)) -> None:
        self.now += span

    def recovers(self) -> None:
        """The next runs put everything right."""
        for _ in range(3):
            self.pass_time()
            run = self.run()
            if run.state is RunState.DONE and not run.counts.get("selected"):
                break
        assert run.state is RunState.DONE, run.error
        assert self.wrong() == []

    def wrong(self, archive: str = "Archive") -> list[str]:
        bad = []
        everywhere = [(box.name, mail) for box in self.server.boxes for mail in box.mails]
        for subject, label in LABELS.items():
            found = [(name, mail) for name, mail in everywhere if mail.subject == subject]
            if not 1 <= len(found) <= self.most_copies:
                bad.append(f"{subject}: {len(found)} copies")
            for name, mail in found:
                # Killed between STORE \\Deleted and EXPUNGE, without MOVE: the copy is in the archive.
                if set(mail.flags) - ({"\\Deleted"} if len(found) > 1 else set()) != {f"Triage/{label}"}:
                    bad.append(f"{subject}: {mail.flags}")
                if (name == archive) != (subject in ARCHIVED) and len(found) == 1:
                    bad.append(f"{subject}: in {name}")
        return bad

    def decided_once(self) -> None:
        assert max(self.model.asked.values()) == 1, self.model.asked


@pytest.fixture
def undisturbed(tmp_path: Path) -> Iterator[Account]:
    with serving() as server:
        yield Account(server, tmp_path)


def test_a_server_that_behaves_is_sorted_in_one_run(undisturbed: Account) -> None:
    run = undisturbed.run()
    assert (run.state, run.counts["labelled"], run.counts["archived"]) == (RunState.DONE, 5, 2)
    assert undisturbed.wrong() == []


MISDEEDS: dict[str, dict[str, Any]] = {
    "goodbye": {"reply": ["* BYE tired"], "then": "close"},
    "reset": {"then": "reset"},
    "goodbye after work": {"after": ["* BYE tired"]},
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
@pytest.mark.parametrize("capabilities", [FULL, ("IMAP4rev1", "UIDPLUS")], ids=["full", "old"])
def test_a_connection_that_ends_at_any_command_is_put_right(
    tmp_path: Path, capabilities: tuple[str, ...], misdeed: str
) -> None:
    """Nothing is asked twice, nothing is lost. Only where there is no MOVE may a COPY be made a second time."""
    (tmp_path / "0").mkdir()
    with serving(capabilities=capabilities) as server:
        Account(server, tmp_path / "0").run()
        total = len(server.log)
    chosen = some(range(1, total + 1), 8)
    for n in chosen:
        (tmp_path / str(n)).mkdir()
        with serving(Rule(".", nth=n, **MISDEEDS[misdeed]), capabilities=capabilities) as server:
            # The connection ends by itself: a busy machine must not add a time-out of ours to that.
            copies = 1 if "MOVE" in capabilities else 2
            account = Account(server, tmp_path / str(n), most_copies=copies, patience_s=10.0)
            account.run()
            account.recovers()
            account.decided_once()
    print(f"\n{misdeed} survived at {len(chosen)} of {total} commands")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("then", ["drip", "stall"])
def test_an_answer_that_drips_or_never_comes_ends_in_time(tmp_path: Path, command: str, then: str) -> None:
    with serving(Rule(command, times=ALWAYS, then=then), drip_s=0.2) as server:
        account = Account(server, tmp_path)
        begin = time.monotonic()
        run = account.run()
        assert time.monotonic() - begin < 10
        if server.sent(command) and command != "^UID MOVE":  # what was moved before the answer failed is seen as moved
            assert run.reason == "unreachable"
        server.rules = ()
        account.recovers()
        account.decided_once()


@pytest.mark.parametrize("code", THROTTLES)
@pytest.mark.parametrize("command", ["^LOGIN", "^SELECT", "^UID SEARCH", "^UID FETCH", "^UID STORE", "^UID MOVE"])
def test_a_throttled_account_is_left_alone_for_a_while(tmp_path: Path, command: str, code: str) -> None:
    rule = Rule(command, times=ALWAYS, reply=[f"{{tag}} NO [{code}] not now"])
    with serving(rule) as server:
        account = Account(server, tmp_path)
        first = account.run()
        logins = server.connections
        second = account.run()
        if first.reason == "busy":
            assert second.reason == "busy"
            assert server.connections == logins, "a pause means that nobody knocks"
        server.rules = ()
        account.recovers()
        account.decided_once()


def test_the_pause_grows_while_the_server_stays_throttled(tmp_path: Path) -> None:
    """Fires every three minutes for three hours: a handful of logins, not 60."""
    with serving(Rule("^SELECT", times=ALWAYS, reply=["{tag} NO [UNAVAILABLE] not now"])) as server:
        account = Account(server, tmp_path)
        for _ in range(60):
            account.pass_time(timedelta(minutes=3))
            account.run()
        assert 3 <= len(server.sent("^LOGIN")) <= 10


def test_a_wrong_password_is_sent_once_whatever_fires(tmp_path: Path) -> None:
    with serving(login_reply="NO [AUTHENTICATIONFAILED] no") as server:
        account = Account(server, tmp_path)
        for _ in range(5):
            account.pass_time()
            assert account.run().reason == "login_refused"
        assert account.run(Trigger.MANUAL).reason == "login_refused"
        assert len(server.sent("^LOGIN")) == 1


def test_an_inbox_renumbered_in_the_middle_voids_every_uid_and_starts_afresh(tmp_path: Path) -> None:
    """Nothing is stored on a UID that may be another message by now."""

    def renumber(server: ScriptedImap) -> None:
        inbox = server.inbox()
        inbox.uidvalidity = 99
        for mail in inbox.mails:
            mail.uid = 6 - mail.uid
        inbox.mails.reverse()

    with serving(Rule("^UID STORE", do=renumber, then="close")) as server:
        account = Account(server, tmp_path)
        first = account.run()
        assert first.reason == "uidvalidity_changed", first.error
        assert [m for box in server.boxes for m in box.mails if m.flags] == []
        account.recovers()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_message_that_vanishes_at_any_command_is_let_go(tmp_path: Path, command: str) -> None:
    """Told with an unsolicited EXPUNGE right inside the answer, as another client's deletion is."""

    def vanish(server: ScriptedImap) -> None:
        server.vanish(2)

    with serving(Rule(command, before=["* 2 EXPUNGE"], do=vanish)) as server:
        account = Account(server, tmp_path)
        first = account.run()
        assert first.state is RunState.DONE, first.error
        account.pass_time()
        assert account.run().counts.get("selected", 0) == 0
        gone = {"Sign this: 0 copies"} if server.sent(command) else set()
        assert set(account.wrong()) == gone


UNASKED = (
    "* 99 FETCH (UID 99 FLAGS ())", "* 5 EXISTS", "* 0 RECENT",
    "* OK [ALERT] maintenance at noon", "* VANISHED 77",
)  # fmt: skip


@pytest.mark.parametrize("line", UNASKED)
def test_what_nobody_asked_for_disturbs_nothing(tmp_path: Path, line: str) -> None:
    with serving(Rule(".", times=ALWAYS, before=[line])) as server:
        account = Account(server, tmp_path)
        account.run()
        account.recovers()
        account.decided_once()


def test_a_header_of_more_than_a_megabyte_is_one_message_like_any_other(tmp_path: Path) -> None:
    references = b"\r\n ".join(b"<%d@far.example>" % n for n in range(70_000))
    raw = b"From: Dana <dana@sender.example>\r\nTo: desk@desk.example\r\nSubject: News\r\nReferences: " + references
    raw += b"\r\n\r\nBody.\r\n"
    assert len(raw) > 1_200_000
    mailboxes = boxes()
    mailboxes[0].mails[0] = FakeMail(1, subject="News", raw=raw)
    with serving(boxes=mailboxes) as server:
        account = Account(server, tmp_path)
        begin = time.monotonic()
        assert account.run().state is RunState.DONE
        assert time.monotonic() - begin < 15
        assert account.wrong() == []


def test_a_search_answer_of_more_than_a_megabyte_is_bounded_to_one_batch(tmp_path: Path) -> None:
    mailboxes = boxes()
    mailboxes[0].mails = [FakeMail(4_000_000_000 + n, subject="Plan") for n in range(120_000)]
    with serving(boxes=mailboxes, capabilities=PLAIN) as server:
        account = Account(server, tmp_path, patience_s=30.0)
        run = account.run()
        assert (run.state, run.counts.get("labelled")) == (RunState.DONE, 20), run.error
        assert max(map(len, server.log)) < 8000


def test_a_move_that_does_not_say_where_to_is_still_an_archive(tmp_path: Path) -> None:
    with serving(capabilities=("IMAP4rev1", "MOVE")) as server:
        account = Account(server, tmp_path)
        assert account.run().counts["archived"] == 2
        assert account.wrong() == []


def test_without_move_and_uidplus_nothing_is_archived_and_nothing_deleted(tmp_path: Path) -> None:
    with serving(capabilities=("IMAP4rev1",)) as server:
        account = Account(server, tmp_path)
        for _ in range(3):
            run = account.run()
            account.pass_time()
        assert run.state is RunState.DONE
        assert server.sent("EXPUNGE|Deleted") == []
        assert set(account.wrong()) == {"News: in INBOX", "Paid: in INBOX"}
        account.decided_once()


def test_a_namespace_with_prefix_and_dot_and_a_name_beyond_ascii(tmp_path: Path) -> None:
    """Mailbox names travel in modified UTF-7 (RFC 3501, 5.1.3)."""
    wire_name = "INBOX.Arch&AO0-vo &- m&AOE-s"
    with serving(boxes=boxes(wire_name, special=""), prefix="INBOX.", delimiter=".") as server:
        account = Account(server, tmp_path, archive="INBOX.Archívo & más")
        assert account.run().state is RunState.DONE
        assert account.wrong(wire_name) == []


def test_a_read_only_mailbox_costs_no_ask_and_says_so(tmp_path: Path) -> None:
    mailboxes = boxes()
    mailboxes[0].read_only = True
    with serving(boxes=mailboxes) as server:
        account = Account(server, tmp_path)
        run = account.run()
        assert run.reason == "keywords_refused"
        assert "read-only" in (run.error or "")
        assert account.model.asked.total() == 0
        assert server.sent("^UID (STORE|MOVE|COPY)") == []


def test_a_server_that_answers_ok_and_keeps_nothing_is_not_paid_for_twice(tmp_path: Path) -> None:
    with serving(keeps_stores=False) as server:
        account = Account(server, tmp_path)
        runs = []
        for _ in range(4):
            runs.append(account.run())
            account.pass_time()
        assert {run.reason for run in runs} == {"keywords_refused"}
        assert all(re.search("check", run.error or "") for run in runs)
        assert server.sent("^UID (MOVE|COPY)") == []
        account.decided_once()
