"""What a run costs on the wire, on a real Dovecot: round trips do not grow with messages, labels or ids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from fakes.mailbox_worlds import mailbox_at
from fakes.metering_proxy import MeteringProxy
from services.dovecot import Dovecot, Mail
from triage.mailbox.imap import ImapMailbox

LABELS = [f"Triage/kind-{n}" for n in range(10)]


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as server:
        yield server


def whole_run(mailbox: ImapMailbox, since: date | None) -> int:
    mailbox.open()
    uids = mailbox.select_unlabelled(LABELS, since, 20)
    if uids:
        heads = mailbox.fetch_heads(uids)
        mailbox.locate([f"<parent-{n}@x.example>" for n in range(60)], {})
        mailbox.fetch_texts({uid: [("1", 65_536)] for uid in uids})
        mailbox.store_labels({uid: LABELS[n % len(LABELS)] for n, uid in enumerate(uids)}, heads, LABELS)
        mailbox.archive(uids[::2])
    mailbox.close()
    return len(uids)


@pytest.mark.parametrize(("since", "most"), [(None, 12), (date(2026, 3, 1), 13)])
def test_a_run_of_twenty_and_an_idle_run(dovecot: Dovecot, since: date | None, most: int) -> None:
    """A since day costs one round trip more: INTERNALDATE is looked at."""
    user = f"user-{since}"
    dovecot.append(user, [Mail(message_id=f"<parent-{n}@x.example>") for n in range(0, 60, 7)], "Archive")
    dovecot.append(user, [Mail(message_id=f"<parent-{n}@x.example>", flags=LABELS[:1]) for n in range(0, 60, 5)])
    dovecot.append(user, [Mail(subject=f"Mail {n}") for n in range(20)])
    with MeteringProxy(dovecot.port) as meter:
        changes = {"username": user, "secret": lambda: dovecot.password}
        assert whole_run(mailbox_at(meter.port, **changes), since) == 20
        assert meter.round_trips <= most
        busy = meter.round_trips, meter.octets_down
        assert whole_run(mailbox_at(meter.port, **changes), since) == 0
        assert meter.round_trips - busy[0] <= 6
        assert meter.octets_down - busy[1] <= 5_000


def test_old_mail_costs_an_idle_run_no_more(dovecot: Dovecot) -> None:
    """Unlabelled mail from before the since day is there for ever."""
    dovecot.append("old", [Mail(received=datetime(2025, 1, 1, tzinfo=UTC)) for _ in range(300)])
    dovecot.append("old", [Mail(received=datetime(2026, 2, 28, 23, 59, tzinfo=UTC)) for _ in range(3)])
    with MeteringProxy(dovecot.port) as meter:
        changes = {"username": "old", "secret": lambda: dovecot.password, "select_window": 100}
        mailbox = mailbox_at(meter.port, **changes)
        costs = []
        for _ in range(4):
            before = meter.round_trips, meter.octets_down
            assert whole_run(mailbox, date(2026, 3, 1)) == 0
            costs.append((meter.round_trips - before[0], meter.octets_down - before[1]))
        assert all(trips <= 8 and octets <= 5_000 for trips, octets in costs)
        assert costs[-1][0] <= 5
