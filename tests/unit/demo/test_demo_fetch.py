"""What a run fetches of the sample, part by part, is read as the whole file is read."""

from __future__ import annotations

from datetime import UTC, datetime

from triage.clock import SystemClock
from triage.demo.mails import sample_mails
from triage.demo.server import DemoServer
from triage.mailbox.imap import ImapMailbox
from triage.mailbox.settings import ConnectionSettings
from triage.pipeline.texts import fetch_sources
from triage.prepare import prepare, read_message

SAMPLES = sample_mails(datetime(2026, 11, 30, 12, 0, tzinfo=UTC))


def test_parts_fetched_from_the_server_read_like_the_whole_message() -> None:
    """Sender, recipient, subject, body and warnings of every message, broken ones included."""
    inbox = [sample for sample in SAMPLES if sample.mailbox == "INBOX"]
    with DemoServer(SAMPLES) as server:
        at = server.address
        mailbox = ImapMailbox(
            ConnectionSettings(at.host, at.port, at.user, lambda: at.password, security="plain"), clock=SystemClock()
        )
        try:
            mailbox.open()
            uids = mailbox.search("INBOX", ["ALL"])
            mailbox.open()
            sources = fetch_sources(mailbox, mailbox.fetch_heads(uids))
        finally:
            mailbox.close()
    for uid, sample in zip(sorted(uids), inbox, strict=True):
        fetched, whole = prepare(sources[uid]), prepare(read_message(sample.raw))
        for field in ("sender", "recipient", "subject", "body", "warnings"):
            assert getattr(fetched, field) == getattr(whole, field), (sample.id, field)
