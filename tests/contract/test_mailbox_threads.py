"""Threads that the server itself knows: X-GM-THRID at Gmail, THREADID where there is OBJECTID (RFC 8474)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fakes.imap_mailboxes import FakeBox, FakeMail
from fakes.mailbox_worlds import mailbox_at, scripted_boxes
from fakes.scripted_imap import FULL, ScriptedImap

GMAIL = (*FULL, "X-GM-EXT-1")


def boxes(archive: str, special: str, first: str, second: str) -> list[FakeBox]:
    return [
        FakeBox("INBOX", [FakeMail(1, thread=first, labels=["Work"], flags=["Work"]), FakeMail(2, thread=second)]),
        FakeBox(archive, [FakeMail(4, thread=first), FakeMail(5, thread=first)], uidvalidity=8, special=special),
    ]


@pytest.mark.parametrize(
    ("capabilities", "archive", "special", "ids"),
    [
        ((*FULL, "OBJECTID"), "Archive", "\\Archive", ("T64b478a", "T77")),
        (GMAIL, "[Gmail]/All Mail", "\\All", ("1278455344230334865", "9")),
    ],
)
def test_messages_of_a_thread_are_found_in_inbox_and_archive(
    capabilities: Sequence[str], archive: str, special: str, ids: tuple[str, str]
) -> None:
    with ScriptedImap(boxes(archive, special, *ids), capabilities=capabilities) as server:
        mailbox = mailbox_at(server.port)
        mailbox.open()
        assert mailbox.fetch_heads([1])[1].thread_id == ids[0]
        found = mailbox.locate_threads([ids[0], "T-unknown-0", 'x" LOGOUT', "1:*"])
        assert [(p.ref.mailbox, p.ref.uid) for p in found[ids[0]]] == [("INBOX", 1), (archive, 4), (archive, 5)]
        assert "Work" in found[ids[0]][0].flags
        assert found.keys() == {ids[0]}
        assert server.sent("LOGOUT") == []
        mailbox.close()


def test_a_server_without_threads_is_not_asked() -> None:
    with ScriptedImap(scripted_boxes()) as server:
        mailbox = mailbox_at(server.port)
        mailbox.open()
        before = len(server.log)
        assert mailbox.locate_threads(["T1"]) == {}
        assert len(server.log) == before
        mailbox.close()


def test_the_whole_mailbox_is_searched_only_if_configured() -> None:
    for wide in (False, True):
        mails = [FakeMail(n, message_id=f"<n{n}@x.example>") for n in range(1, 8)]
        with ScriptedImap([FakeBox("INBOX", mails)]) as server:
            mailbox = mailbox_at(server.port, thread_window=2, wide_thread_search=wide)
            mailbox.open()
            found = mailbox.locate([f"<n{n}@x.example>" for n in range(1, 8)], {})
            assert len(found) == (7 if wide else 2)
            mailbox.close()
