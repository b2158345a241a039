"""What the Mailbox port promises, on Dovecot (maildir in the clear, sdbox over TLS) and on the scripted server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest

from fakes.mailbox_worlds import DovecotWorld, ScriptedWorld, World, scripted_boxes
from fakes.scripted_imap import FULL, PLAIN, ScriptedImap
from services.dovecot import Dovecot, Mail
from triage.domain.mail import MessageRef
from triage.mailbox.imap import ImapMailbox

LABELS = ["Triage/action-required", "Triage/newsletter", "Triage/receipt", "Triage/unsure"]
ACTION, NEWS, RECEIPT, UNSURE = LABELS
WITHOUT_MOVE = tuple(c for c in PLAIN if c != "MOVE")
PARTIAL = (*FULL, "CONTEXT=SEARCH")


@pytest.fixture(scope="module")
def maildir() -> Iterator[Dovecot]:
    with Dovecot("maildir") as server:
        yield server


@pytest.fixture(scope="module")
def sdbox() -> Iterator[Dovecot]:
    with Dovecot("sdbox", tls=True) as server:
        yield server


@pytest.fixture(params=["maildir", "sdbox", "scripted", "scripted-partial", "scripted-plain", "scripted-without-move"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    name: str = request.param
    if name in ("maildir", "sdbox"):
        yield DovecotWorld(request.getfixturevalue(name))
        return
    kinds = {"scripted-partial": PARTIAL, "scripted-plain": PLAIN, "scripted-without-move": WITHOUT_MOVE}
    with ScriptedImap(scripted_boxes(), capabilities=kinds.get(name, FULL)) as server:
        yield ScriptedWorld(server)


@pytest.fixture
def mailbox(world: World) -> Iterator[ImapMailbox]:
    """The adapter, not yet open: what is delivered after SELECT need not be seen at once."""
    mailbox = world.mailbox()
    yield mailbox
    mailbox.close()


def test_open_tells_what_the_server_and_the_inbox_are(world: World) -> None:
    world.append([Mail(), Mail()])
    mailbox = world.mailbox()
    facts = mailbox.open()
    mailbox.close()
    assert (facts.inbox, facts.messages, facts.archive, facts.sent) == ("INBOX", 2, "Archive", "Sent")
    assert facts.keeps_keywords
    assert not facts.read_only
    assert facts.label_store == "keyword"


def test_open_twice_connects_once_and_tells_the_same(mailbox: ImapMailbox) -> None:
    assert mailbox.open() == mailbox.open()


def test_oldest_unlabelled_messages_come_first_and_never_more_than_asked_for(
    world: World, mailbox: ImapMailbox
) -> None:
    uids = world.append([Mail(), Mail(flags=[NEWS]), Mail(flags=["\\Deleted"]), Mail(), Mail(flags=["Other"]), Mail()])
    mailbox.open()
    assert mailbox.select_unlabelled(LABELS, None, 3) == (uids[0], uids[3], uids[4])
    assert mailbox.select_unlabelled(LABELS, None, 2, newest_first=True) == (uids[5], uids[4])


def test_labels_are_compared_without_regard_to_case(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(flags=[NEWS.upper()]), Mail()])
    mailbox.open()
    assert mailbox.select_unlabelled(LABELS, None, 20) == (uids[1],)


def test_the_day_is_a_day_of_utc_whatever_zone_the_server_compares_in(world: World, mailbox: ImapMailbox) -> None:
    """SEARCH SINCE goes by the server's own day; INTERNALDATE decides, to the second."""
    midnight = datetime(2026, 3, 5, tzinfo=UTC)
    steps = [timedelta(days=-3), timedelta(seconds=-1), timedelta(), timedelta(hours=23), timedelta(days=1)]
    uids = world.append([Mail(received=midnight + step) for step in steps])
    mailbox.open()
    assert mailbox.select_unlabelled(LABELS, date(2026, 3, 5), 20) == tuple(uids[2:])
    assert mailbox.select_unlabelled(LABELS, date(2026, 3, 5), 20, before=date(2026, 3, 6)) == tuple(uids[2:4])
    assert mailbox.select_unlabelled(LABELS, None, 20, before=date(2026, 3, 5)) == tuple(uids[:2])
    assert mailbox.select_unlabelled(LABELS, date(2026, 3, 5), 20) == tuple(uids[2:]), "the same when asked again"


def test_old_mail_delivered_late_is_found_where_its_uid_is(world: World, mailbox: ImapMailbox) -> None:
    """UIDs follow delivery, INTERNALDATE need not: nothing may rely on their order agreeing."""
    days = [10, 2, 11, 3, 12]
    uids = world.append([Mail(received=datetime(2026, 3, day, tzinfo=UTC)) for day in days])
    mailbox.open()
    assert mailbox.select_unlabelled(LABELS, date(2026, 3, 10), 20) == (uids[0], uids[2], uids[4])


def test_mail_older_than_many_windows_is_not_skipped(world: World) -> None:
    uids = world.append([Mail(subject=f"Mail {n}", flags=[] if n in (1, 17) else [NEWS]) for n in range(40)])
    mailbox = world.mailbox(select_window=3)
    mailbox.open()
    for _ in range(4):  # what is remembered between calls changes nothing
        assert mailbox.select_unlabelled(LABELS, date(2026, 3, 1), 20) == (uids[1], uids[17])
        assert mailbox.select_unlabelled(LABELS, date(2026, 3, 3), 20) == ()
    assert mailbox.select_unlabelled(LABELS, None, 20, newest_first=True) == (uids[17], uids[1])
    mailbox.close()


def test_many_labels_do_not_make_a_command_too_long(world: World) -> None:
    many = [f"Triage/category-with-a-rather-long-name-{n:03d}" for n in range(255)]
    uids = world.append([Mail(flags=[many[0]]), Mail(flags=[many[254]]), Mail()])
    mailbox = world.mailbox()
    mailbox.open()
    assert mailbox.select_unlabelled(many, None, 20) == (uids[2],)
    mailbox.close()


def test_oldest_unlabelled_is_the_date_of_the_first_selected(world: World, mailbox: ImapMailbox) -> None:
    early = datetime(2026, 3, 4, 7, 30, tzinfo=UTC)
    world.append([Mail(flags=[NEWS]), Mail(received=early), Mail()])
    mailbox.open()
    assert mailbox.oldest_unlabelled(LABELS, None) == early
    assert mailbox.oldest_unlabelled(LABELS, date(2026, 3, 4)) == early
    assert mailbox.oldest_unlabelled(LABELS, date(2026, 3, 5)) is None


def test_heads_tell_headers_structure_flags_and_date(world: World, mailbox: ImapMailbox) -> None:
    mail = Mail(subject="Quarter", message_id="<q@x.example>", flags=["\\Seen", "Mine"], headers="X-Secret: no\r\n")
    (uid,) = world.append([mail])
    mailbox.open()
    head = mailbox.fetch_heads([uid, 4_000_000])[uid]
    assert b"Subject: Quarter\r\n" in head.headers
    assert b"<q@x.example>" in head.headers
    assert b"X-Secret" not in head.headers
    assert (head.structure.mime_type, head.structure.path) == ("text/plain", "1")
    assert {"\\Seen", "Mine"} <= head.flags
    assert head.received == mail.received
    assert head.size == len(mail.octets())
    assert head.ref == MessageRef("INBOX", mailbox.open().uidvalidity, uid)


def test_texts_are_cut_at_the_cap_and_say_so(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(body="0123456789"), Mail(body="01234567")])
    mailbox.open()
    texts = mailbox.fetch_texts({uids[0]: [("1", 10)], uids[1]: [("1", 10), ("7", 10)], 4_000_000: [("1", 10)]})
    assert (texts[uids[0]]["1"].data, texts[uids[0]]["1"].cut) == (b"0123456789", True)
    assert (texts[uids[1]]["1"].data, texts[uids[1]]["1"].cut) == (b"01234567\r\n", False)
    assert texts.keys() == set(uids)
    assert mailbox.fetch_whole(uids[0], 5) == b"From:"
    assert mailbox.fetch_whole(4_000_000, 5) is None


def test_reading_changes_neither_flags_nor_modseq(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(message_id="<a@x.example>"), Mail(message_id="<b@x.example>", flags=["\\Seen"])])
    world.append([Mail(message_id="<c@x.example>")], "Archive")
    before = world.state(), world.state("Archive")
    mailbox.open()
    mailbox.select_unlabelled(LABELS, date(2026, 1, 1), 20)
    mailbox.fetch_heads(uids)
    mailbox.fetch_texts({uid: [("1", 100)] for uid in uids})
    mailbox.fetch_whole(uids[0], 1000)
    mailbox.locate(["<a@x.example>", "<c@x.example>"], {})
    mailbox.flags_of(uids)
    mailbox.search("Archive", ["ALL"])
    mailbox.fetch_flags("Archive", [1])
    mailbox.oldest_unlabelled(LABELS, None)
    assert (world.state(), world.state("Archive")) == before


def test_flags_are_those_of_now_whoever_set_them(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail()])
    mailbox.open()
    before = mailbox.fetch_heads(uids)
    world.set_flags(uids[0], f"\\Seen {NEWS}")
    now = mailbox.flags_of([*uids, 4_000_000])
    assert now.keys() == set(uids)
    assert {"\\Seen", NEWS} <= now[uids[0]].flags
    assert now[uids[1]].flags == before[uids[1]].flags
    assert now[uids[0]].modseq >= before[uids[0]].modseq


def test_mail_that_comes_in_while_the_mailbox_is_open_is_seen_by_the_next_run(
    world: World, mailbox: ImapMailbox
) -> None:
    mailbox.open()
    assert mailbox.select_unlabelled(LABELS, None, 20) == ()
    uids = world.append([Mail(), Mail()])
    assert mailbox.open().messages == 2
    assert mailbox.select_unlabelled(LABELS, None, 20) == tuple(uids)


def test_located_by_exact_message_id_in_inbox_archive_and_sent(world: World, mailbox: ImapMailbox) -> None:
    """SEARCH finds parts of an id and ignores case; only the very id counts."""
    here, *_ = world.append([Mail(message_id="<Ab.1@x.example>", flags=[NEWS]), Mail(message_id="<ab.1@x.example>")])
    world.append([Mail(message_id="<xAb.1@x.example>")])
    (there,) = world.append([Mail(message_id="<folded-id@x.example>", flags=[RECEIPT])], "Archive")
    (mine,) = world.append([Mail(message_id="<mine@x.example>")], "Sent")
    asked = ["<Ab.1@x.example>", "<folded-id@x.example>", "<mine@x.example>", "<none@x.example>", "<é@x.example>"]
    mailbox.open()
    found = mailbox.locate(asked, {})
    places = {i: [(p.ref.mailbox, p.ref.uid) for p in located] for i, located in found.items()}
    assert places == {
        "<Ab.1@x.example>": [("INBOX", here)],
        "<folded-id@x.example>": [("Archive", there)],
        "<mine@x.example>": [("Sent", mine)],
    }
    assert RECEIPT in found["<folded-id@x.example>"][0].flags
    assert b"Message-ID: <mine@x.example>" in found["<mine@x.example>"][0].headers
    assert mailbox.select_unlabelled(LABELS, None, 1), "the inbox is selected again"


def test_hints_find_what_the_windows_leave_out_and_wrong_ones_find_nothing(world: World) -> None:
    uids = world.append([Mail(message_id=f"<n{n}@x.example>") for n in range(6)])
    mailbox = world.mailbox(thread_window=2)
    validity = mailbox.open().uidvalidity
    ids = ["<n0@x.example>", "<n1@x.example>", "<n2@x.example>"]
    hints = {
        ids[0]: MessageRef("INBOX", validity, uids[0]),
        ids[1]: MessageRef("INBOX", validity, uids[3]),
        ids[2]: MessageRef("INBOX", validity + 1, uids[2]),
    }
    assert {i: [p.ref.uid for p in ps] for i, ps in mailbox.locate(ids, hints).items()} == {ids[0]: [uids[0]]}
    mailbox.close()


def test_hundreds_of_ids_are_cut_by_the_length_of_the_command(world: World, mailbox: ImapMailbox) -> None:
    world.append([Mail(message_id="<wanted@x.example>")])
    ids = [f"<{'0123456789' * 5}.{n}@a-long-host-name.example>" for n in range(320)]
    mailbox.open()
    assert mailbox.locate([*ids, "<wanted@x.example>"], {}).keys() == {"<wanted@x.example>"}


def test_labels_are_stored_and_nothing_else_is_touched(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(flags=["\\Seen", "Mine"]), Mail(), Mail()])
    plan = {uids[0]: NEWS, uids[1]: ACTION, uids[2]: NEWS}
    mailbox.open()
    done = mailbox.store_labels(plan, mailbox.fetch_heads(uids), LABELS)
    assert done.stored == set(uids)
    assert world.flags() == {uids[0]: {"\\Seen", "Mine", NEWS}, uids[1]: {ACTION}, uids[2]: {NEWS}}
    assert mailbox.select_unlabelled(LABELS, None, 20) == ()


def test_storing_the_same_labels_again_changes_nothing(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail()])
    mailbox.open()
    plan, heads = dict.fromkeys(uids, NEWS), mailbox.fetch_heads(uids)
    mailbox.store_labels(plan, heads, LABELS)
    before = world.state()
    assert mailbox.store_labels(plan, heads, LABELS).stored == set(uids)
    assert world.state() == before


def test_a_label_a_person_set_meanwhile_wins(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail(), Mail()])
    mailbox.open()
    heads = mailbox.fetch_heads(uids)
    world.set_flags(uids[0], RECEIPT)
    world.set_flags(uids[1], "\\Flagged")
    done = mailbox.store_labels(dict.fromkeys(uids, NEWS), heads, LABELS)
    assert done.yielded == {uids[0]: frozenset({RECEIPT})}
    assert done.stored == {uids[1], uids[2]}
    assert {uid: flags - {"\\Recent"} for uid, flags in done.flags.items()} == {
        uids[1]: {"\\Flagged", NEWS}, uids[2]: {NEWS},
    }  # fmt: skip
    assert world.flags() == {uids[0]: {RECEIPT}, uids[1]: {"\\Flagged", NEWS}, uids[2]: {NEWS}}


def test_a_message_that_went_away_is_gone_and_the_rest_is_labelled(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail()])
    mailbox.open()
    heads = mailbox.fetch_heads(uids)
    world.remove(uids[0])
    done = mailbox.store_labels(dict.fromkeys(uids, NEWS), heads, LABELS)
    assert (done.gone, done.stored) == ({uids[0]}, {uids[1]})


def test_a_label_no_keyword_can_hold_is_refused_and_the_rest_is_labelled(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail()])
    mailbox.open()
    done = mailbox.store_labels({uids[0]: "Triage/two words", uids[1]: NEWS}, mailbox.fetch_heads(uids), LABELS)
    assert done.refused.keys() == {uids[0]}
    assert world.flags() == {uids[0]: set(), uids[1]: {NEWS}}


def test_archived_messages_keep_their_label_and_flags(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(subject="A", flags=[NEWS, "\\Seen"]), Mail(subject="B", flags=["\\Deleted"]), Mail()])
    mailbox.open()
    done = mailbox.archive([uids[0], 4_000_000])
    assert done.moved.keys() == {uids[0]}
    assert done.gone == {4_000_000}
    assert world.flags().keys() == {uids[1], uids[2]}, "what somebody else marked as deleted stays"
    ((there, flags),) = world.flags("Archive").items()
    assert flags == {NEWS, "\\Seen"}
    place = done.moved[uids[0]]
    assert place is not None
    assert (place.mailbox, place.uid) == ("Archive", there)


def test_archived_again_a_message_is_gone(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(), Mail()])
    mailbox.open()
    mailbox.archive(uids)
    done = mailbox.archive(uids)
    assert (done.moved, done.gone) == ({}, set(uids))


def test_moved_back_messages_are_in_the_inbox_again(world: World, mailbox: ImapMailbox) -> None:
    (uid,) = world.append([Mail(flags=[NEWS])])
    mailbox.open()
    place = mailbox.archive([uid]).moved[uid]
    assert place is not None
    back = mailbox.move_back([place.uid]).moved[place.uid]
    assert back is not None
    assert back.mailbox == "INBOX"
    assert world.flags() == {back.uid: {NEWS}}
    assert world.flags("Archive") == {}


def test_a_missing_archive_is_created(world: World) -> None:
    (uid,) = world.append([Mail(flags=[NEWS])])
    mailbox = world.mailbox(archive="Old/März")
    facts = mailbox.open()
    assert (facts.archive, facts.archive_to_create) == (None, "Old/März")
    assert mailbox.archive([uid]).moved.keys() == {uid}
    assert len(mailbox.search("Old/März", ["ALL"])) == 1
    mailbox.close()
    again = world.mailbox(archive="Old/März")
    assert again.open().archive == "Old/März"
    again.close()


def test_labels_can_be_taken_off_again(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(flags=[NEWS, "Mine"]), Mail(flags=[RECEIPT])], "Archive")
    plan = {uids[0]: [NEWS], uids[1]: [RECEIPT, NEWS], 4_000_000: [NEWS]}
    mailbox.open()
    assert mailbox.remove_labels("Archive", plan) == set(uids)
    assert world.flags("Archive") == {uids[0]: {"Mine"}, uids[1]: set()}


def test_search_and_flags_of_any_mailbox(world: World, mailbox: ImapMailbox) -> None:
    uids = world.append([Mail(flags=[NEWS]), Mail(message_id="<s@x.example>"), Mail(flags=[NEWS])], "Archive")
    mailbox.open()
    assert mailbox.search("Archive", ["KEYWORD", NEWS]) == (uids[0], uids[2])
    assert mailbox.search("Archive", ["KEYWORD", NEWS], window=1) == (uids[2],)
    head = mailbox.fetch_flags("Archive", [uids[1], 4_000_000])[uids[1]]
    assert (head.ref.mailbox, head.received) == ("Archive", Mail().received)
    assert b"<s@x.example>" in head.headers


def test_with_a_folder_store_a_label_is_the_folder(world: World) -> None:
    uids = world.append([Mail(), Mail(), Mail()])
    mailbox = world.mailbox(labels="folder")
    assert mailbox.open().label_store == "folder"
    assert mailbox.select_unlabelled(LABELS, None, 2) == tuple(uids[:2])
    done = mailbox.store_labels({uids[0]: NEWS, uids[1]: ACTION}, mailbox.fetch_heads(uids), LABELS)
    assert done.stored == set(uids[:2])
    assert mailbox.select_unlabelled(LABELS, None, 20) == (uids[2],)
    assert mailbox.remove_labels(NEWS, {1: [NEWS]}) == {1}
    assert len(mailbox.select_unlabelled(LABELS, None, 20)) == 2
    mailbox.close()
    assert len(world.flags(ACTION)) == 1


@pytest.mark.parametrize("world", ["maildir", "sdbox", "scripted", "scripted-partial"], indirect=True)
def test_two_runs_at_once_never_label_a_message_twice(world: World) -> None:
    """UNCHANGEDSINCE lets one of them win each message; the other gives way and says so. This needs CONDSTORE."""
    uids = world.append([Mail(subject=f"Mail {n}") for n in range(30)])
    runs = [(world.mailbox(), label) for label in (NEWS, ACTION, RECEIPT)]
    heads = []
    for mailbox, _ in runs:
        mailbox.open()
        heads.append(mailbox.fetch_heads(uids))
    with ThreadPoolExecutor(len(runs)) as pool:
        done = list(
            pool.map(lambda run, known: run[0].store_labels(dict.fromkeys(uids, run[1]), known, LABELS), runs, heads)
        )
    for mailbox, _ in runs:
        mailbox.close()
    assert all(len(flags & set(LABELS)) == 1 for flags in world.flags().values())
    for (_, label), result in zip(runs, done, strict=True):
        mine = {uid for uid, flags in world.flags().items() if label in flags}
        assert result.stored == mine
        assert result.yielded.keys() == set(uids) - mine
