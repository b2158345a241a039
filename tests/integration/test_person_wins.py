"""A run is cut half way, a person does something to the message, the next run comes: the person's hand wins."""

from __future__ import annotations

import imaplib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.later import LaterClock
from support.office import TestApp, make_run, settings_for
from triage.clock import SystemClock
from triage.domain.errors import TriageError
from triage.domain.record import DecisionRecord, RunState
from triage.mailbox.imap import ImapMailbox
from triage.ports import Labelled, Moved

NEWS, RECEIPT, CONVERSATION = "Triage/newsletter", "Triage/receipt", "Triage/conversation"
Act = Callable[[imaplib.IMAP4], object]


class Cut(TriageError):
    """The run ends here, as if the process had died."""


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return f"u{abs(hash(request.node.name)):x}"


def store(what: str, *flags: str) -> Act:
    return lambda client: client.uid("STORE", "1", what, f"({' '.join(flags)})")


def delete(client: imaplib.IMAP4) -> None:
    store("+FLAGS", "\\Deleted")(client)
    client.expunge()


def put(target: str) -> Act:
    def move(client: imaplib.IMAP4) -> None:
        client.create(target)
        client.uid("MOVE", "1", target)

    return move


def nothing(client: imaplib.IMAP4) -> None:
    """Nobody touches the message."""


def half_done(server: Dovecot, user: str, place: Path, cut_before: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended right before its labels, or right before its archive."""
    server.append(user, [Mail("News", "<1@x.example>", flags=["$Forwarded"])])

    def cut(*args: object) -> Labelled | Moved:
        raise Cut("cut here")

    with monkeypatch.context() as patched:
        patched.setattr(ImapMailbox, "store_labels" if cut_before == "label" else "archive", cut)
        app = TestApp(settings_for(place, server.port, user, server.password), [provider()])
        assert make_run(app).state is RunState.FAILED
        assert len(app.ledger.unfinished("team")) == 1
        app.close()


def provider() -> TableProvider:
    return TableProvider({"News": ("newsletter", 0.97)})


def act(server: Dovecot, user: str, deed: Act) -> None:
    client = server.client(user)
    client.select("INBOX")
    deed(client)
    client.logout()


def next_run(server: Dovecot, user: str, place: Path) -> tuple[list[DecisionRecord], int]:
    """Every decision on record after the next run, and how often a model was asked in it."""
    model = provider()
    clock = LaterClock(SystemClock(), timedelta(minutes=10))
    app = TestApp(settings_for(place, server.port, user, server.password), [model], clock)
    assert make_run(app).state is RunState.DONE
    assert app.ledger.unfinished("team") == ()
    assert app.ledger.verify_chain("team") == []
    decisions = [d for run in app.ledger.runs("team") for d in app.ledger.decisions(run.id)]
    app.close()
    return decisions, model.asked.total()


KEPT = frozenset({"$Forwarded"})
TOUCHED = ["person_touched"]


@pytest.mark.parametrize(
    ("deed", "inbox", "archive", "closed"),
    [
        pytest.param(nothing, {}, {1: KEPT | {NEWS}}, [None], id="untouched"),
        pytest.param(store("+FLAGS", "\\Seen"), {1: KEPT | {NEWS, "\\Seen"}}, {}, TOUCHED, id="read"),
        pytest.param(store("+FLAGS", "\\Flagged"), {1: KEPT | {NEWS, "\\Flagged"}}, {}, TOUCHED, id="flagged"),
        pytest.param(store("+FLAGS", "Project-X"), {1: KEPT | {NEWS, "Project-X"}}, {}, TOUCHED, id="tagged"),
        pytest.param(store("-FLAGS", "$Forwarded"), {1: {NEWS}}, {}, TOUCHED, id="a flag taken off"),
        pytest.param(store("FLAGS", "$Forwarded", RECEIPT), {1: KEPT | {RECEIPT}}, {}, TOUCHED, id="label changed"),
        pytest.param(store("+FLAGS", CONVERSATION), {1: KEPT | {NEWS, CONVERSATION}}, {}, TOUCHED, id="label added"),
        pytest.param(store("+FLAGS", "\\Deleted"), {1: KEPT | {NEWS, "\\Deleted"}}, {}, TOUCHED, id="marked deleted"),
        pytest.param(delete, {}, {}, ["gone"], id="deleted"),
        pytest.param(put("Kept"), {}, {}, ["gone"], id="moved elsewhere"),
        pytest.param(put("Archive"), {}, {1: KEPT | {NEWS}}, ["gone"], id="archived by hand"),
    ],
)  # fmt: skip
def test_between_label_and_archive(
    server: Dovecot, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    deed: Act, inbox: dict[int, set[str]], archive: dict[int, set[str]], closed: list[str | None],
) -> None:  # fmt: skip
    half_done(server, user, tmp_path, "archive", monkeypatch)
    act(server, user, deed)
    decisions, asks = next_run(server, user, tmp_path)
    assert (server.flags(user), server.flags(user, "Archive")) == (inbox, archive)
    assert [d.closed_reason for d in decisions] == closed
    assert asks == 0


def test_a_label_taken_off_between_label_and_archive_means_decide_again(
    server: Dovecot, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_done(server, user, tmp_path, "archive", monkeypatch)
    act(server, user, store("-FLAGS", NEWS))
    decisions, asks = next_run(server, user, tmp_path)
    assert asks == 1
    assert sorted(str(d.closed_reason) for d in decisions) == ["None", "person_touched"]


@pytest.mark.parametrize(
    ("deed", "inbox", "archive", "closed"),
    [
        pytest.param(nothing, {}, {1: KEPT | {NEWS}}, [None], id="untouched"),
        pytest.param(store("+FLAGS", "\\Seen"), {1: KEPT | {NEWS, "\\Seen"}}, {}, TOUCHED, id="read"),
        pytest.param(store("+FLAGS", "\\Flagged"), {1: KEPT | {NEWS, "\\Flagged"}}, {}, TOUCHED, id="flagged"),
        pytest.param(store("+FLAGS", RECEIPT), {1: KEPT | {RECEIPT}}, {}, TOUCHED, id="labelled by hand"),
        pytest.param(store("+FLAGS", "\\Deleted"), {1: KEPT | {"\\Deleted"}}, {}, TOUCHED, id="marked deleted"),
        pytest.param(delete, {}, {}, ["gone"], id="deleted"),
        pytest.param(put("Kept"), {}, {}, ["gone"], id="moved elsewhere"),
    ],
)  # fmt: skip
def test_between_decision_and_label(
    server: Dovecot, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    deed: Act, inbox: dict[int, set[str]], archive: dict[int, set[str]], closed: list[str | None],
) -> None:  # fmt: skip
    """A message that somebody touched meanwhile still gets its label, and stays where it is."""
    half_done(server, user, tmp_path, "label", monkeypatch)
    act(server, user, deed)
    decisions, asks = next_run(server, user, tmp_path)
    assert (server.flags(user), server.flags(user, "Archive")) == (inbox, archive)
    assert [d.closed_reason for d in decisions] == closed
    assert asks == 0, "nothing is paid for twice"


@pytest.mark.parametrize(
    ("deed", "inbox", "archive", "closed"),
    [
        pytest.param(nothing, {}, {1: {NEWS}}, [None], id="untouched"),
        pytest.param(store("+FLAGS", "\\Seen"), {1: {NEWS, "\\Seen"}}, {}, TOUCHED, id="read"),
        pytest.param(store("+FLAGS", "\\Flagged"), {1: {NEWS, "\\Flagged"}}, {}, TOUCHED, id="flagged"),
        pytest.param(store("+FLAGS", RECEIPT), {1: {RECEIPT}}, {}, TOUCHED, id="labelled by hand"),
        pytest.param(delete, {}, {}, ["gone"], id="deleted"),
    ],
)  # fmt: skip
def test_while_the_model_thinks(
    server: Dovecot, user: str, tmp_path: Path,
    deed: Act, inbox: dict[int, set[str]], archive: dict[int, set[str]], closed: list[str | None],
) -> None:  # fmt: skip
    """The same hand in the middle of a run that is not cut at all."""
    server.append(user, [Mail("News", "<1@x.example>")])

    class Busybody(TableProvider):
        def ask(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            act(server, user, deed)
            return super().ask(*args, **kwargs)  # type: ignore[arg-type]

    app = TestApp(
        settings_for(tmp_path, server.port, user, server.password), [Busybody({"News": ("newsletter", 0.97)})]
    )
    run = make_run(app)
    assert run.state is RunState.DONE
    assert (server.flags(user), server.flags(user, "Archive")) == (inbox, archive)
    assert [d.closed_reason for d in app.ledger.decisions(run.id)] == closed
    assert app.ledger.unfinished("team") == ()
    app.close()


def test_a_message_moved_back_to_the_inbox_stays_there(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    app = TestApp(settings_for(tmp_path, server.port, user, server.password), [provider()])
    assert make_run(app).counts["archived"] == 1
    client = server.client(user)
    client.select("Archive")
    client.uid("MOVE", "1", "INBOX")
    client.logout()
    assert make_run(app).counts["selected"] == 0
    assert server.flags(user) == {2: {NEWS}}
    app.close()


def test_archiving_switched_off_leaves_half_done_archives_in_the_inbox(
    server: Dovecot, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_done(server, user, tmp_path, "archive", monkeypatch)
    settings = settings_for(tmp_path, server.port, user, server.password, mode="label")
    app = TestApp(replace(settings), [provider()], LaterClock(SystemClock(), timedelta(minutes=10)))
    assert make_run(app).state is RunState.DONE
    assert server.flags(user) == {1: KEPT | {NEWS}}
    app.close()
