"""The demo as a newcomer sees it: the whole program on the sample mailbox."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog
from imapclient import IMAPClient
from rich.console import Console

from triage.cli.demo import demo_command
from triage.domain.errors import ConfigError

KEEP = "import sys; from triage.cli.demo import demo_command; sys.exit(demo_command(keep=True))"


@pytest.fixture(scope="module")
def output() -> Iterator[str]:
    """What one demo prints; logging is put back, so that no later test writes to a stream that is gone."""
    stream, root = StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    assert demo_command(console=Console(file=stream, width=120, highlight=False)) == 0
    yield stream.getvalue()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def section(output: str, start: str, end: str) -> list[str]:
    after = output.split(start, 1)[1]
    return [line.rstrip() for line in after.split(end, 1)[0].splitlines() if line.strip()]


def test_it_takes_three_runs_of_at_most_twenty(output: str) -> None:
    runs = [line.split()[:3] for line in output.splitlines() if line.startswith("Run ")]
    assert runs == [["Run", "1", "20"], ["Run", "2", "20"], ["Run", "3", "14"]]


def test_the_table_has_every_mail_with_sender_and_subject(output: str) -> None:
    rows = section(output, "Sender ", "What stayed")[2:]
    assert len(rows) == 54
    assert any("Lease renewal for unit 7" in row and "Helen Marsh" in row for row in rows)
    assert any("¿Podéis enviarnos 12 kg" in row for row in rows)


def test_every_message_is_said_to_have_left_or_stayed(output: str) -> None:
    archived = sum(" archived" in row for row in section(output, "Sender ", "What stayed")[2:])
    stayed = [line for line in section(output, "and why (", "\nAudit")[1:] if line.startswith("  ")]
    assert archived + len(stayed) == 54
    assert f"({len(stayed)} of 54)" in output


def test_replies_follow_their_thread_and_the_thief_does_not(output: str) -> None:
    rows = section(output, "Sender ", "What stayed")
    assert "archived with thread" in next(row for row in rows if "RESOLVED" in row)
    assert "kept with thread" in next(row for row in rows if "Re: Pedido" in row)
    assert "thread" not in next(row for row in rows if row.startswith("Energy Deals"))


def test_no_hijack_leaves_the_inbox(output: str) -> None:
    rows = section(output, "Sender ", "What stayed")
    for subject in ("Question about openi", "Statement for your r", "Five recipes for col", "Consulta sobre env"):
        assert "archived" not in next(row for row in rows if subject in row)


def test_the_audit_holds_and_the_cost_is_nothing(output: str) -> None:
    audit = section(output, "\nAudit", "Cost:")
    assert [line.split()[:2] for line in audit] == [["✓", sign] for sign in ("1", "2", "3", "4", "5", "6", "=")]
    assert "Cost: 0 USD for 54 mails" in output


def test_it_says_that_the_classifier_is_modest_and_what_helps(output: str) -> None:
    assert "The embedded classifier is modest" in output
    assert "about 25 corrections" in " ".join(output.split())
    assert "decision model" in output
    assert "provider: systemone" in output


def test_it_leaves_no_thread_behind(output: str) -> None:
    assert output
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("demo-")]


def test_a_taken_port_is_one_calm_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"--port {port}: cannot be used .*free one"):
            demo_command(port=port, console=Console(file=StringIO()))


@pytest.fixture
def kept() -> Iterator[subprocess.Popen[str]]:
    environ = {**os.environ, "COLUMNS": "120", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", KEEP], stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environ
    ) as process:
        yield process
        process.kill()


def what_is_printed(process: subprocess.Popen[str]) -> dict[str, str]:
    told: dict[str, str] = {}
    assert process.stdout
    for line in process.stdout:
        for name in ("IMAP server", "User", "Password", "Records"):
            if line.strip().startswith(name):
                told[name] = line.strip().removeprefix(name).strip()
        if "Thunderbird" in line:
            break
    return told


def test_keep_holds_the_sorted_mailbox_open_until_it_is_interrupted(kept: subprocess.Popen[str]) -> None:
    """A client can log in with what was printed and finds the labels; SIGINT ends it with exit 0 and cleans up."""
    told = what_is_printed(kept)
    port = int(told["IMAP server"].partition("port ")[2].partition(",")[0])
    with IMAPClient("127.0.0.1", port, ssl=False, timeout=10) as client:
        client.login(told["User"], told["Password"])
        client.select_folder("Archive", readonly=True)
        assert len(client.search(["KEYWORD", "Triage/notification", "SUBJECT", "Hopper"])) == 2
    directory = Path(told["Records"].partition("TRIAGE_CONFIG=")[2].split()[0])
    assert (directory / "triage.db").exists()
    kept.send_signal(signal.SIGINT)
    assert kept.wait(timeout=20) == 0
    assert not directory.exists()
