"""What people do in a real mailbox is learned: decisions change, harm is not kept, nothing of it lies on the disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from services.dovecot import Dovecot, Mail
from support.command import change, configure, triage
from support.office import make_run
from support.premises import wait_until
from triage.bootstrap import App
from triage.clock import SystemClock
from triage.config.load import load
from triage.domain.record import RunState, Trigger
from triage.ledger.ledger import open_ledger

RECEIPT = "Triage/receipt"
WORD = "obsidianware"
"""A word that stands in no other mail."""


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def user(tmp_path: Path) -> str:
    return f"l{tmp_path.name}".replace("_", "")


@pytest.fixture
def config(server: Dovecot, user: str, tmp_path: Path) -> Path:
    return configure(tmp_path / "config", server, user)


def mail(subject: str, sender: str, body: str, *, headers: str = "", flags: Sequence[str] = ()) -> Mail:
    """A message that arrives now."""
    number = hashlib.sha256(f"{subject} {sender}".encode()).hexdigest()[:12]
    raw = f"From: {sender}\r\nTo: desk@desk.example\r\nSubject: {subject}\r\nMessage-ID: <{number}@x.example>\r\n"
    raw += f"{headers}\r\n{body}\r\n"
    return Mail(subject, raw=raw.encode(), flags=flags, received=datetime.now(UTC) + timedelta(minutes=1))


def kiln(n: int, flags: Sequence[str] = ()) -> Mail:
    """A kind of mail the shipped weights take for talk."""
    body = f"Kiln {n} ran at temperature, {WORD} batch {n * 7} fired, cones dropped as planned. Two tiles cracked. Ada"
    return mail(f"Kiln {n} shift log", f"Ada Quist <ada{n}@plant{n % 5}.example>", body, flags=flags)


def relabel(server: Dovecot, user: str, labels: Mapping[int, str]) -> None:
    """What a person does with another mail client: every label of ours comes off, these go on."""
    flags = server.flags(user)
    client = server.client(user)
    client.select("INBOX")
    for uid, label in labels.items():
        ours = " ".join(flag for flag in flags[uid] if flag.startswith("Triage/"))
        client.uid("STORE", str(uid), "-FLAGS", f"({ours})")
        client.uid("STORE", str(uid), "+FLAGS", f"({label})")
    client.logout()


def run(config: Path, server: Dovecot) -> dict[str, Any]:
    code, out, err = triage(config, "run", "--json", "--account", "team", password=server.password)
    assert code == 0, err
    return json.loads(out)


def learned(config: Path, server: Dovecot, *arguments: str) -> dict[str, Any]:
    code, out, err = triage(config, "learn", "--json", *arguments, password=server.password)
    assert code == 0, err
    return json.loads(out)[0]


def corrected(config: Path, server: Dovecot, user: str, count: int = 25) -> None:
    """`count` mails of one kind are filed as the shipped weights have it, and a person says what they are."""
    server.append(user, [kiln(n) for n in range(count)])
    while run(config, server)["counts"].get("selected"):
        pass
    relabel(server, user, dict.fromkeys(server.flags(user), RECEIPT))


def test_twenty_five_corrections_change_what_is_decided(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user)
    server.append(user, [kiln(40)])

    made = run(config, server)

    (decision,) = made["decisions"]
    assert decision["label"] == RECEIPT
    assert "+learned-" in decision["model"], "the record says that learned weights took part"
    (step,) = [s for s in made["steps"] if s["name"] == "learn"]
    assert (step["counts"]["corrections"], step["counts"]["kept"]) == (25, 1)
    told = learned(config, server, "--status")
    assert (told["reason"], told["in_use"], told["used"]) == ("kept", True, 25)
    assert told["by_source"] == {"relabelled": 25}
    assert told["by_label"] == {"receipt": 25}
    assert told["after"]["right"] > told["before"]["right"]
    assert told["after"]["wrongly_archived"] <= told["before"]["wrongly_archived"]
    assert told["model"] == decision["model"], "the same lessons give the same weights, in every process"
    assert told["until_it_makes_a_difference"] == 0


def test_no_word_and_no_sender_of_what_was_learned_is_written_to_disk(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user, 6)
    assert learned(config, server)["reason"] == "kept"
    kept = b"".join(path.read_bytes() for path in config.glob("triage.db*"))
    for secret in (WORD, "Quist", "ada3", "shift log", "cones"):
        assert secret.encode() not in kept


def test_learning_only_reads(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user, 6)
    before = server.state(user), server.state(user, "Archive")
    learned(config, server)
    assert (server.state(user), server.state(user, "Archive")) == before


def test_the_programs_own_filing_is_never_learned_from(config: Path, server: Dovecot, user: str) -> None:
    server.append(user, [kiln(n) for n in range(6)])
    run(config, server)
    told = learned(config, server)
    assert (told["reason"], told.get("used", 0)) == ("never", 0)


def test_mail_moved_back_and_labels_put_by_hand_are_learned_from(config: Path, server: Dovecot, user: str) -> None:
    letters = [
        mail(
            f"The Fen Almanac, issue {n}",
            f"The Fen Almanac <letter{n}@fen.example>",
            f"In issue {n} we walk the old railway line, and read three books. Read the full story. See you next week."
            "\r\n\r\nYou are receiving this because you subscribed. Unsubscribe",
            headers="List-Unsubscribe: <https://fen.example/u>\r\nList-Id: <letter.fen.example>\r\n",
        )
        for n in range(4)
    ]
    server.append(user, letters)
    run(config, server)
    archived = server.flags(user, "Archive")
    assert archived, "the shipped weights archive newsletters"
    client = server.client(user)
    client.select("Archive")
    client.uid("MOVE", "1:*", "INBOX")
    client.logout()
    server.append(user, [kiln(77, flags=[RECEIPT])])
    told = learned(config, server)
    assert told["by_source"] == {"labelled": 1, "moved_back": len(archived)}


def test_what_proves_no_better_is_dropped_and_told(config: Path, server: Dovecot, user: str) -> None:
    """The same kind of mail, a different word each time: nothing holds on what was left out."""
    server.append(user, [kiln(n) for n in range(6)])
    run(config, server)
    kinds = ("spam", "receipt", "promotion", "newsletter", "notification", "action-required")
    relabel(server, user, {uid: f"Triage/{kind}" for uid, kind in enumerate(kinds, 1)})
    told = learned(config, server)
    assert told["used"] == 6
    assert (told["reason"], told["in_use"]) == ("no_better", False)
    code, out, _ = triage(config, "learn", "--status", password=server.password)
    assert code == 0
    assert "Not in use" in out
    server.append(user, [kiln(60)])
    assert "+learned" not in run(config, server)["decisions"][0]["model"]


def test_it_is_off_where_the_configuration_says_so(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user, 6)
    change(config, "    schedule:", "    learning: false\n    schedule:")
    server.append(user, [kiln(60)])
    made = run(config, server)
    assert "learn" not in [s["name"] for s in made["steps"]]
    assert "+learned" not in made["decisions"][0]["model"]
    assert learned(config, server)["reason"] == "off"


def test_the_junk_mailbox_teaches_spam_if_it_is_named(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user, 4)
    client = server.client(user)
    client.create("Junk")
    client.logout()
    server.append(user, [mail(f"Deal {n}", f"s{n}@deal.example", "Buy now.") for n in range(3)], "Junk")
    assert learned(config, server)["by_source"] == {"relabelled": 4}
    change(config, "    schedule:", "    learning: {junk: Junk}\n    schedule:")
    assert learned(config, server)["by_source"] == {"junk": 3, "relabelled": 4}


def test_a_failure_to_learn_is_told_and_stops_no_run(config: Path, server: Dovecot, user: str) -> None:
    corrected(config, server, user, 4)
    change(config, "    schedule:", "    learning: {junk: Nowhere}\n    schedule:")
    server.append(user, [kiln(60)])
    made = run(config, server)
    assert (made["state"], made["counts"]["labelled"]) == ("done", 1)
    told = learned(config, server, "--status")
    assert "Nowhere" in told["detail"]
    code, out, _ = triage(config, "learn", password=server.password)
    assert code == 1
    assert "failed: " in out


class MovingClock(SystemClock):
    """The system's clock, that a test can set ahead."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


def test_a_process_that_goes_on_learns_daily(
    config: Path, server: Dovecot, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIAGE_TEAM_PASSWORD", server.password)
    clock = MovingClock()
    app = App(load(config), clock)
    models = []
    try:
        server.append(user, [kiln(n) for n in range(12)])
        make_run(app)
        relabel(server, user, dict.fromkeys(server.flags(user), RECEIPT))
        for n in (40, 41):
            server.append(user, [kiln(n)])
            models.append(app.ledger.decisions(make_run(app).id)[0].model or "")
            clock.ahead += timedelta(hours=25)
    finally:
        app.close()
    assert ["+learned-" in model for model in models] == [False, True]


def test_a_service_learns_when_it_starts_again(config: Path, server: Dovecot, user: str) -> None:
    """A daemon that ran while the mail was corrected learns a day later; one that starts then learns at once."""
    corrected(config, server, user, 12)
    server.append(user, [kiln(60)])
    with serving(config, server):
        run_id = by_the_daemon(config)
    code, out, _ = triage(config, "show", run_id, "--json", password=server.password)
    assert code == 0
    (decision,) = json.loads(out)["decisions"]
    assert (decision["label"], "+learned-" in decision["model"]) == (RECEIPT, True)


@contextmanager
def serving(config: Path, server: Dovecot) -> Iterator[None]:
    """A real `triage serve`, ended at the end."""
    log = config / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "triage", "serve", "--config", str(config)],
            env=os.environ | {"TRIAGE_TEAM_PASSWORD": server.password}, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        yield
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def by_the_daemon(config: Path) -> str:
    """Queue a run and wait until the daemon has made it; its id."""
    ledger = open_ledger(f"sqlite:///{config}/triage.db", SystemClock())
    try:
        queued = ledger.enqueue("team", Trigger.MANUAL, datetime.now(UTC))
        assert queued is not None
        wait_until(lambda: (made := ledger.run(queued.id)) is not None and made.state is RunState.DONE, 60.0)
    finally:
        ledger.close()
    return queued.id
