"""`triage eval --from-mailbox`: measured on what people did, on a real server, with nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.dovecot import Dovecot, Mail
from support.command import configure, triage
from triage.cli.main import run_cli

RECEIPT = "Thank you for your payment. Receipt number 4411, total paid 41.00 EUR, card ending in 4242."
CONVERSATION = "Triage/conversation"
LETTER = "Hi Tom, it was good to see you on Sunday. How is the garden? We had rain all week. Love, Ann"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


@pytest.fixture
def user(tmp_path: Path) -> str:
    return f"u{tmp_path.name}".replace("_", "")


@pytest.fixture
def config(server: Dovecot, user: str, tmp_path: Path) -> Path:
    return configure(tmp_path / "config", server, user)


def store(server: Dovecot, user: str, uid: int, *changes: tuple[str, str]) -> None:
    """What a person does in another client."""
    client = server.client(user)
    client.select("INBOX")
    for how, flags in changes:
        client.uid("STORE", str(uid), how, f"({flags})")
    client.logout()


def ours(flags: set[str]) -> str:
    return " ".join(sorted(flag for flag in flags if flag.startswith("Triage/")))


def evaluate(config: Path, server: Dovecot, *arguments: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = triage(config, "eval", "--from-mailbox", "--json", *arguments, password=server.password)
    return code, json.loads(out) if code == 0 else {}, err


def test_labels_put_changed_and_left_standing_are_measured(
    config: Path, server: Dovecot, user: str, tmp_path: Path
) -> None:
    """A label by hand counts, a changed one, and one that was read and left; two at once or an unread one do not."""
    server.append(user, [Mail(f"Garden {n}", f"<{n}@x.example>", body=LETTER) for n in (1, 2, 3)])
    assert triage(config, "run", password=server.password)[0] == 0
    assert {uid: ours(flags) for uid, flags in server.flags(user).items()} == dict.fromkeys((1, 2, 3), CONVERSATION)
    store(server, user, 1, ("-FLAGS", CONVERSATION), ("+FLAGS", "Triage/spam"))
    store(server, user, 2, ("+FLAGS", "\\Seen"))
    server.append(
        user,
        [
            Mail("By hand", "<4@x.example>", body=LETTER, flags=[CONVERSATION]),
            Mail("Both", "<5@x.example>", flags=["Triage/receipt", CONVERSATION]),
        ],
    )
    server.append(user, [Mail("Filed", "<6@x.example>", body=RECEIPT, flags=["Triage/receipt"])], "Archive")
    assert triage(config, "report", password=server.password)[0] == 0  # looks for corrections
    before = server.state(user), server.state(user, "Archive")

    code, found, _ = evaluate(config, server, "--predictions", str(tmp_path / "p.jsonl"))

    assert code == 0
    assert found["labels"] == {"put": 2, "changed": 1, "left": 1}
    assert found["mails"] == 4
    assert sorted(found["by_category"]) == ["conversation", "receipt", "spam"]
    assert len((tmp_path / "p.jsonl").read_text().splitlines()) == 4
    assert (server.state(user), server.state(user, "Archive")) == before


def test_a_mailbox_nobody_has_touched_is_said_to_hold_nothing(config: Path, server: Dovecot, user: str) -> None:
    server.append(user, [Mail("Receipt 1", "<1@x.example>", body=RECEIPT)])
    code, _, err = evaluate(config, server)
    assert code == 2
    assert "no labelled mail" in err


def test_one_source_of_labels_is_named_and_only_one(config: Path, server: Dovecot, tmp_path: Path) -> None:
    assert triage(config, "eval", password=None)[0] == 2
    code, _, err = triage(config, "eval", str(tmp_path), "--from-mailbox", password=server.password)
    assert code == 2
    assert "one of the two" in err


def test_without_a_configuration_there_is_no_mailbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TRIAGE_CONFIG", raising=False)
    assert run_cli(["eval", "--from-mailbox"]) == 2
    assert "triage init" in capsys.readouterr().err
