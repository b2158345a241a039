"""Tired and hostile servers: whatever they do, the adapter ends in time with an error of ours, and can begin anew."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fakes.imap_mailboxes import FakeMail
from fakes.mailbox_worlds import mailbox_at, scripted_boxes, settings_for
from fakes.scripted_imap import ALWAYS, FULL, PLAIN, Rule, ScriptedImap
from services.dovecot import Dovecot, Mail
from triage.domain.errors import (
    CommandRefused,
    ConfigError,
    LoginRefused,
    MailboxBusy,
    MailboxChanged,
    MailboxLost,
    MailboxRefused,
)
from triage.domain.mail import MessageRef
from triage.mailbox.imap import ImapMailbox

LABELS = ["Triage/news", "Triage/work"]
COMMANDS = (
    "^LOGIN",
    "^NAMESPACE",
    "^LIST",
    "^SELECT",
    "^UID SEARCH",
    "^UID FETCH .*BODYSTRUCTURE",
    r"^UID FETCH .*BODY\.PEEK\[1",
    "^STATUS",
    "^EXAMINE",
    "^UID STORE",
    "^UID MOVE",
)
RUBBISH = (
    "complete rubbish",
    "* 1 FETCH (UID 1 FLAGS (",
    "Z9 OK who was that?",
    "+ go on",
    "* 1 FETCH (UID 1 BODY[1] {99999999999}",
    "* 1 FETCH (UID 1 BODY[1] {70000000}",
    "\x00\x01\x02\x7f",
    "",
    "* ESEARCH (TAG",
)


def serving(*rules: Rule, **told: Any) -> ScriptedImap:
    boxes = scripted_boxes()
    boxes[0].mails = [FakeMail(1), FakeMail(2, message_id="<two@x.example>"), FakeMail(3)]
    boxes[1].mails = [FakeMail(1, message_id="<there@x.example>", flags=["Triage/news"])]
    return ScriptedImap(boxes, rules=rules, **{"capabilities": FULL, **told})


def run(mailbox: ImapMailbox) -> frozenset[int]:
    """What a run does, to the end."""
    mailbox.open()
    uids = mailbox.select_unlabelled(LABELS, None, 20)
    heads = mailbox.fetch_heads(uids)
    mailbox.locate(["<two@x.example>", "<none@x.example>"], {})
    mailbox.fetch_texts({uid: [("1", 100)] for uid in uids})
    stored = mailbox.store_labels(dict.fromkeys(uids, LABELS[0]), heads, LABELS).stored
    mailbox.archive(uids[:1])
    return stored


def attempt(port: int, **changes: Any) -> frozenset[int]:
    """A run on a connection of its own, closed whatever happens."""
    mailbox = mailbox_at(port, **changes)
    try:
        return run(mailbox)
    finally:
        mailbox.close()


def all_labelled(server: ScriptedImap) -> bool:
    return all("Triage/news" in m.flags for box in server.boxes for m in box.mails)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("then", ["close", "reset"])
def test_a_connection_cut_at_any_command_is_lost_and_the_next_one_finishes(command: str, then: str) -> None:
    with serving(Rule(command, then=then)) as server:
        mailbox = mailbox_at(server.port)
        with pytest.raises(MailboxLost):
            run(mailbox)
        run(mailbox)
        assert all_labelled(server)
        mailbox.close()


@pytest.mark.parametrize("command", COMMANDS)
def test_goodbye_at_any_command_is_lost_or_busy_as_the_server_says(command: str) -> None:
    tired = Rule(command, reply=["* BYE shutting down"], then="close")
    crowded = Rule(command, reply=["* BYE [UNAVAILABLE] come back later"], then="close")
    with serving(tired) as server, pytest.raises(MailboxLost, match="shutting down"):
        attempt(server.port)
    with serving(crowded) as server, pytest.raises(MailboxBusy):
        attempt(server.port)


@pytest.mark.parametrize("command", ["^LOGIN", "^SELECT", "^UID SEARCH", "^UID FETCH", "^UID STORE"])
def test_a_server_that_stops_answering_is_left_at_the_deadline(command: str) -> None:
    with serving(Rule(command, then="stall")) as server:
        started = time.monotonic()
        with pytest.raises(MailboxLost, match="in time"):
            attempt(server.port, command_timeout_s=0.3)
        assert time.monotonic() - started < 3


@pytest.mark.parametrize("command", ["^SELECT", "^UID SEARCH", "^UID FETCH"])
def test_an_answer_that_drips_in_ends_at_the_deadline_too(command: str) -> None:
    """Each byte comes well within any time-out of a single read."""
    with serving(Rule(command, then="drip"), drip_s=0.02) as server:
        started = time.monotonic()
        with pytest.raises(MailboxLost, match="in time"):
            attempt(server.port, command_timeout_s=0.4)
        assert time.monotonic() - started < 3


def test_each_command_of_a_batch_has_the_whole_time() -> None:
    def pause(server: ScriptedImap) -> None:
        server.wait(0.4)

    with serving(Rule("^UID SEARCH", times=ALWAYS, do=pause)) as server:
        mailbox = mailbox_at(server.port, command_timeout_s=0.7, select_window=1)
        mailbox.open()
        assert mailbox.select_unlabelled(LABELS, None, 20) == (1, 2, 3)
        mailbox.close()


@pytest.mark.parametrize("line", RUBBISH)
@pytest.mark.parametrize("command", ["^SELECT", "^UID SEARCH", "^UID FETCH", "^UID STORE"])
def test_rubbish_is_an_error_of_ours_or_nothing_and_the_next_try_finishes(command: str, line: str) -> None:
    with serving(Rule(command, before=[line])) as server:
        mailbox = mailbox_at(server.port, command_timeout_s=1.0)
        with contextlib.suppress(MailboxLost):
            run(mailbox)
        run(mailbox)
        assert all_labelled(server)
        mailbox.close()


def test_what_could_not_be_read_is_not_repeated_in_the_error() -> None:
    """It may be mail."""
    with serving(Rule("^UID FETCH", before=["Dear Dana, the password is rosebud"])) as server:
        with pytest.raises(MailboxLost, match="could not be read") as caught:
            attempt(server.port)
        assert "rosebud" not in str(caught.value)


def test_an_answer_of_more_than_a_megabyte_in_one_line_is_not_read() -> None:
    with (
        serving(Rule("^UID SEARCH", before=["* SEARCH" + " 4294967295" * 120_000])) as server,
        pytest.raises(MailboxLost, match="longer"),
    ):
        attempt(server.port)


@pytest.mark.parametrize("code", ["THROTTLED", "UNAVAILABLE", "LIMIT", "OVERQUOTA", "INUSE"])
@pytest.mark.parametrize("command", ["^LOGIN", "^SELECT", "^UID SEARCH", "^UID FETCH"])
def test_a_busy_server_is_busy(command: str, code: str) -> None:
    with (
        serving(Rule(command, times=ALWAYS, reply=[f"{{tag}} NO [{code}] slow down"])) as server,
        pytest.raises(MailboxBusy),
    ):
        attempt(server.port)


@pytest.mark.parametrize("command", ["^UID STORE", "^UID MOVE"])
def test_a_busy_server_ends_the_writing(command: str) -> None:
    with (
        serving(Rule(command, times=ALWAYS, reply=["{tag} NO [THROTTLED] slow down"])) as server,
        pytest.raises(MailboxBusy),
    ):
        attempt(server.port)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("NO [AUTHENTICATIONFAILED] wrong", LoginRefused),
        ("NO [AUTHORIZATIONFAILED] not you", LoginRefused),
        ("NO [EXPIRED] too old", LoginRefused),
        ("NO no", LoginRefused),
        ("BAD what", LoginRefused),
        ("NO [AUTHENTICATIONFAILED] too many failures", LoginRefused),
        ("NO [ALERT] Too many simultaneous connections. (Failure)", MailboxBusy),
        ("NO [UNAVAILABLE] later", MailboxBusy),
        ("NO [INUSE] later", MailboxBusy),
        ("NO Temporary authentication failure", MailboxBusy),
    ],
)
def test_a_refused_login_and_a_crowded_server_are_told_apart(reply: str, error: type[Exception]) -> None:
    with serving(login_reply=reply) as server:
        with pytest.raises(error):
            mailbox_at(server.port).open()
        assert len(server.sent("^LOGIN")) == 1


def test_the_secret_is_in_no_message_even_where_the_server_repeats_it() -> None:
    secret = "hunter2-and-more"
    for rule in (
        Rule("^LOGIN", reply=[f"{{tag}} NO [AUTHENTICATIONFAILED] {secret} is wrong"]),
        Rule("^LOGIN", reply=[f"* BYE {secret}?"], then="close"),
        Rule("^LOGIN", reply=[f"{secret}"]),
        Rule("^SELECT", reply=[f"{{tag}} NO {secret}"]),
    ):
        with serving(rule) as server:
            mailbox = mailbox_at(server.port, secret=lambda: secret)
            with pytest.raises((LoginRefused, MailboxLost, CommandRefused)) as caught:
                mailbox.open()
            assert secret not in str(caught.value)
            assert caught.value.__cause__ is None


def test_a_secret_that_cannot_be_had_is_no_login_at_all() -> None:
    def fail() -> str:
        raise OSError("hunter2 lies in /secret")

    with serving() as server:
        with pytest.raises(LoginRefused, match=r"could not be obtained \(FileNotFoundError|OSError\)") as caught:
            mailbox_at(server.port, secret=fail).open()
        assert "hunter2" not in str(caught.value)
        with pytest.raises(LoginRefused, match="line break"):
            mailbox_at(server.port, secret=lambda: "a\r\nx LOGOUT").open()
        assert server.sent("^LOG") == []


def test_a_password_beyond_ascii_goes_by_authenticate_plain() -> None:
    with serving(capabilities=(*PLAIN, "AUTH=PLAIN")) as server:
        mailbox = mailbox_at(server.port, secret=lambda: "contraseña")
        mailbox.open()
        mailbox.close()
        assert server.sent("^AUTHENTICATE PLAIN$")
    with serving() as server, pytest.raises(LoginRefused, match="AUTH=PLAIN"):
        mailbox_at(server.port, secret=lambda: "contraseña").open()


def test_a_refused_token_is_told_in_one_round_and_not_sent_twice() -> None:
    with serving(capabilities=(*PLAIN, "AUTH=OAUTHBEARER", "SASL-IR"), tokens=["right"]) as server:
        with pytest.raises(LoginRefused):
            mailbox_at(server.port, auth="oauthbearer", secret=lambda: "wrong").open()
        assert len(server.sent("^AUTHENTICATE")) == 1
        mailbox = mailbox_at(server.port, auth="oauthbearer", secret=lambda: "right")
        mailbox.open()
        mailbox.close()


def test_a_greeting_of_goodbye_is_lost_or_busy() -> None:
    with serving(greeting="* BYE go away") as server, pytest.raises(MailboxLost, match="go away"):
        mailbox_at(server.port).open()
    with serving(greeting="* BYE Too many connections") as server, pytest.raises(MailboxBusy):
        mailbox_at(server.port).open()


def test_a_server_that_never_greets_and_one_that_is_not_there_are_lost() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(MailboxLost, match="in time"):
            mailbox_at(port, connect_timeout_s=0.2).open()
    with pytest.raises(MailboxLost, match="refused"):
        mailbox_at(port).open()


def test_a_server_without_starttls_gets_no_password() -> None:
    with serving() as server:
        with pytest.raises(MailboxRefused, match="STARTTLS"):
            mailbox_at(server.port, security="starttls").open()
        assert server.sent("^(LOGIN|AUTHENTICATE)") == []
    with (
        serving(greeting="* PREAUTH [CAPABILITY IMAP4rev1 STARTTLS] you are in") as server,
        pytest.raises(MailboxRefused, match="STARTTLS"),
    ):
        mailbox_at(server.port, security="starttls").open()


def test_an_inbox_renumbered_between_two_connections_is_told_once() -> None:
    def renumber(server: ScriptedImap) -> None:
        server.inbox().uidvalidity = 99

    with serving(Rule("^UID STORE", do=renumber, then="close")) as server:
        mailbox = mailbox_at(server.port)
        with pytest.raises(MailboxLost):
            run(mailbox)
        with pytest.raises(MailboxChanged):
            mailbox.open()
        assert mailbox.open().uidvalidity == 99
        mailbox.close()


def test_an_inbox_renumbered_while_another_mailbox_was_open_ends_the_run() -> None:
    def renumber(server: ScriptedImap) -> None:
        server.inbox().uidvalidity = 99

    with serving(Rule("^EXAMINE", do=renumber)) as server:
        with pytest.raises(MailboxChanged):
            attempt(server.port)
        assert server.sent("^UID (STORE|MOVE)") == []


def test_a_new_run_after_close_accepts_a_renumbered_inbox() -> None:
    with serving() as server:
        mailbox = mailbox_at(server.port)
        mailbox.open()
        mailbox.close()
        server.inbox().uidvalidity = 99
        assert mailbox.open().uidvalidity == 99
        mailbox.close()


def test_a_kept_connection_that_died_is_replaced_by_open() -> None:
    with serving(Rule("^NOOP", then="reset")) as server:
        mailbox = mailbox_at(server.port)
        mailbox.open()
        assert mailbox.open().messages == 3
        assert server.connections == 2
        mailbox.close()


def test_gmail_labels_are_refused_where_there_are_none() -> None:
    with serving() as server, pytest.raises(MailboxRefused, match="Gmail"):
        mailbox_at(server.port, labels="gmail").open()


def test_a_server_that_does_not_answer_logout_does_not_hold_us_up() -> None:
    with serving(Rule("^LOGOUT", then="stall")) as server:
        mailbox = mailbox_at(server.port, command_timeout_s=0.3)
        mailbox.open()
        started = time.monotonic()
        mailbox.close()
        mailbox.close()
        assert time.monotonic() - started < 2


def test_nothing_works_before_open_and_says_so() -> None:
    with pytest.raises(MailboxLost, match="not open"):
        mailbox_at(1).fetch_heads([1])


def test_a_missing_inbox_is_refused() -> None:
    with serving() as server, pytest.raises(CommandRefused, match="Elsewhere"):
        mailbox_at(server.port, inbox="Elsewhere").open()


def test_nothing_is_asked_that_the_server_does_not_announce() -> None:
    with serving(capabilities=("IMAP4rev1",)) as server:
        attempt(server.port)
        words = r"NAMESPACE|ENABLE|MOVE|EXPUNGE|RETURN|SPECIAL-USE|MODSEQ|UNCHANGEDSINCE|X-GM|THREADID|IDLE|ID\b"
        assert [c for c in server.log if re.match(rf"(UID )?({words})", c) or re.search(rf"\((?:{words})", c)] == []


def test_answers_completed_late_and_together_reach_the_command_that_asked() -> None:
    """Dovecot answers pipelined commands first and completes them afterwards, not always in their order."""
    held = {"^LIST": 1, r"^UID FETCH .*\[1": 2, "^STATUS": 1, "^UID STORE": 2}
    hold = [Rule(command, times=times, then="hold") for command, times in held.items()]
    with serving(*hold) as server:
        server.inbox().mails[0].structure = '(("TEXT" "PLAIN" NIL NIL NIL "8BIT" 9 1) "MIXED")'
        mailbox = mailbox_at(server.port, select_window=1)
        mailbox.open()
        uids = mailbox.select_unlabelled(LABELS, None, 20)
        assert uids == (1, 2, 3)
        heads = mailbox.fetch_heads(uids)
        asked = {1: [("1", 100)], 2: [("1", 50)], 3: [("1", 25)]}
        assert mailbox.fetch_texts(asked).keys() == {1, 2, 3}
        found = mailbox.locate(["<there@x.example>", "<two@x.example>"], {})
        assert found["<there@x.example>"][0].ref == MessageRef("Archive", 8, 1)
        assert found["<two@x.example>"][0].ref.uid == 2
        done = mailbox.store_labels({1: LABELS[0], 2: LABELS[1], 3: LABELS[0]}, heads, LABELS)
        assert done.stored == {1, 2, 3}
        mailbox.close()


@pytest.fixture(scope="module")
def secure() -> Iterator[Dovecot]:
    with Dovecot("sdbox", tls=True) as server:
        yield server


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_trusted_certificate_opens_and_an_unknown_one_never_sees_the_password(secure: Dovecot, security: str) -> None:
    port = secure.tls_port if security == "tls" else secure.port
    asked: list[str] = []

    def secret() -> str:
        asked.append("once")
        return secure.password

    mailbox = mailbox_at(port, security=security, ca_file=str(secure.ca_file), secret=secret)
    mailbox.open()
    mailbox.close()
    assert asked == ["once"]
    with pytest.raises(MailboxRefused, match="certificate cannot be trusted"):
        mailbox_at(port, security=security, secret=secret).open()
    assert asked == ["once"]


def test_a_wrong_password_is_asked_once_by_a_real_server(secure: Dovecot) -> None:
    before = secure.log().count("auth failed")
    with pytest.raises(LoginRefused):
        mailbox_at(secure.port, secret=lambda: "wrong").open()
    assert secure.log().count("auth failed") - before <= 1


def test_plain_text_is_refused_off_this_machine_and_a_broken_ca_file_is_named() -> None:
    with pytest.raises(ConfigError, match="plain"):
        settings_for("imap.example.com", 143)
    with pytest.raises(MailboxRefused, match=r"nowhere\.pem"):
        mailbox_at(143, security="tls", ca_file="nowhere.pem").open()


def test_a_real_server_with_prefix_and_dot_gets_its_archive_and_its_folders() -> None:
    with Dovecot("maildir", prefix="INBOX.", separator=".", special_use=False) as server:
        uids = server.append("desk", [Mail(), Mail()])
        mailbox = mailbox_at(server.port, labels="folder", secret=lambda: server.password)
        facts = mailbox.open()
        assert (facts.archive, facts.archive_to_create) == (None, "INBOX.Archive")
        done = mailbox.store_labels({uids[0]: "Triage/news"}, mailbox.fetch_heads(uids), LABELS)
        assert done.stored == {uids[0]}
        assert mailbox.archive([uids[1]]).moved.keys() == {uids[1]}
        mailbox.close()
        assert len(server.flags("desk", "INBOX.Triage.news")) == len(server.flags("desk", "INBOX.Archive")) == 1
