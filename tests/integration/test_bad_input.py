"""Whatever is wrong with the configuration or the server: one calm message with file, line and remedy, exit 2, nothing
changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.dovecot import Dovecot, Mail
from support.command import change, configure, triage


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir", tls=True) as dovecot:
        yield dovecot


@pytest.fixture
def config(server: Dovecot, tmp_path: Path) -> Path:
    """A configuration that works: plain text on loopback."""
    return configure(tmp_path / "config", server, f"u{tmp_path.name}".replace("_", ""))


CASES = [
    ("port: ", "prot: ", "triage.yaml", "did you mean port?"),
    ("schedule: {cron: ", "schedule: {cron: '61 * * * *', x: ", "triage.yaml", "61"),
    ("schedule: {", "schedule: {timezone: Mars/Olympus}  # {", "triage.yaml", "Europe/Madrid"),
    ("batch: 20", "batch: 21", "triage.yaml", "20"),
    ('host: "127.0.0.1"', "host: imap.example.com", "triage.yaml", "loopback"),
    ("- id: conversation", "- id: action-required", "categories.yaml", "already"),
    ("parent: Triage", "parent: Tri age", "categories.yaml", "parent"),
]


@pytest.mark.parametrize(("old", "new", "file", "told"), CASES)
def test_a_mistake_in_a_file_is_told_with_file_and_line(
    config: Path, server: Dovecot, old: str, new: str, file: str, told: str
) -> None:
    change(config, old, new, file)
    code, out, err = triage(config, "run", password=server.password)
    assert (code, out) == (2, "")
    assert f"{file}:" in err
    assert told in err
    assert "Traceback" not in err


def test_one_category_is_too_few_and_256_are_too_many(config: Path, server: Dovecot) -> None:
    category = "  - {{id: c{n}, name: C{n}, criteria: Something., action: keep}}\n"
    for n in (1, 256):
        text = "parent: Triage\nfallback: {id: unclassified, name: Unclassified}\ncategories:\n"
        (config / "categories.yaml").write_text(text + "".join(category.format(n=i) for i in range(n)))
        code, _, err = triage(config, "run", password=server.password)
        assert code == 2
        assert "categories.yaml:" in err
        assert "255" in err or "2 to" in err or "at least" in err


SERVER_CASES = [
    ("the secret is missing", "", "", None, "TRIAGE_TEAM_PASSWORD is not set"),
    ("the password is wrong", "", "", "wrong", "refused the login"),
    ("nobody listens", "port: ", "port: 1 # ", "good", "Check host, port"),
    ("the host is unknown", 'host: "127.0.0.1"', "host: nosuch.invalid\n    security: tls\n    #", "good", "resolved"),
    ("the inbox is not there", "inbox: INBOX", "inbox: Nope", "good", "Check inbox"),
]


@pytest.mark.parametrize(("why", "old", "new", "password", "told"), SERVER_CASES)
def test_a_server_that_cannot_be_used_is_told_in_one_line(
    config: Path, server: Dovecot, why: str, old: str, new: str, password: str | None, told: str
) -> None:
    if "security" in new:
        change(config, "security: plain", "# security")
    if old:
        change(config, old, new)
    code, out, err = triage(config, "run", password=server.password if password == "good" else password)
    assert (code, out) == (2, ""), why
    assert "triage.yaml:" in err
    assert told in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err


def test_a_certificate_nobody_vouches_for_is_refused(config: Path, server: Dovecot) -> None:
    """Verified by default; naming the authority makes it work, and the password is not sent before."""
    change(config, "security: plain", "security: tls")
    change(config, f"port: {server.port}", f"port: {server.tls_port}")
    code, _, err = triage(config, "run", password=server.password)
    assert code == 2
    assert "certificate" in err
    assert "ca_file" in err
    change(config, "ca_file: null", f"ca_file: {server.ca_file}")
    code, out, _ = triage(config, "run", password=server.password)
    assert code == 0
    assert "done" in out


def test_check_proves_the_mailbox_and_changes_nothing(config: Path, server: Dovecot, tmp_path: Path) -> None:
    user = f"u{tmp_path.name}".replace("_", "")
    server.append(user, [Mail("Hello")])
    before = server.state(user)
    code, out, err = triage(config, "check", password=server.password)
    assert (code, err) == (0, "")
    for what in ("labels", "archive", "MOVE", "CONDSTORE", "threads", "waiting"):
        assert what in out
    assert server.state(user) == before
    code, out, _ = triage(config, "check", password="wrong")
    assert code == 1
    assert "refused the login" in " ".join(out.split())


def test_no_configuration_at_all_says_how_to_get_one(tmp_path: Path) -> None:
    code, _, err = triage(tmp_path, "run", password=None)
    assert code == 2
    assert "triage init" in err
