"""The preparation cases once more by way of a real server: appended, fetched in parts, prepared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.dovecot import Dovecot, Mail
from triage.clock import SystemClock
from triage.mailbox.imap import ImapMailbox
from triage.mailbox.settings import ConnectionSettings
from triage.pipeline.texts import fetch_sources
from triage.prepare import prepare
from unit.prepare.test_cases import CASES, FOLDER, faults

NO_SERVER_HOLDS = {
    "header-empty-file": "a server refuses an empty message",
}
BATCH = 20


@pytest.fixture(scope="module", params=["maildir", "sdbox"])
def server(request: pytest.FixtureRequest) -> Iterator[Dovecot]:
    with Dovecot(request.param) as dovecot:
        yield dovecot


def test_mail_from_a_server_becomes_what_its_case_says(server: Dovecot) -> None:
    """Parts chosen by BODYSTRUCTURE and fetched alone tell the same as the file: the server's view of broken mail
    (empty types, swallowed bodies, NUL as 0x80, us-ascii for nothing) makes no difference."""
    cases = [case for case in CASES if case["id"] not in NO_SERVER_HOLDS]
    mails = [Mail(raw=(FOLDER / f"{case['id']}.eml").read_bytes()) for case in cases]
    uids = server.append("reader", mails)
    settings = ConnectionSettings(
        host=server.host, port=server.port, username="reader", secret=lambda: server.password, security="plain"
    )
    mailbox = ImapMailbox(settings, clock=SystemClock())
    mailbox.open()
    wrong: dict[str, list[str]] = {}
    for start in range(0, len(cases), BATCH):
        sources = fetch_sources(mailbox, mailbox.fetch_heads(uids[start : start + BATCH]))
        for uid, case in zip(uids[start : start + BATCH], cases[start : start + BATCH], strict=True):
            asked = {k: v for k, v in case.items() if k not in ("no_warns", "links")}
            found = faults(asked, prepare(sources[uid]))
            if found:
                wrong[case["id"]] = found
    mailbox.close()
    assert wrong == {}
