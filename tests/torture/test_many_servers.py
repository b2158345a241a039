"""Many servers fire and work for many accounts (eight and fifty in the full form) on one PostgreSQL and one Dovecot.
They are killed, paused beyond their leases and woken again, and PostgreSQL is restarted under them.

What must hold is checked in the ledger and, independently, in the mail server's own log of every change.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from services.dovecot import Dovecot, Mail
from services.ledger import postgres_or_reason
from services.postgres import PostgresServer
from support.audited import disagreements
from support.fleet import LEASE, MAIL_LOG, Fleet, overlaps, settings_with, writes_of
from support.form import FULL, Tally
from support.office import CATEGORIES, settings_for
from triage.clock import SystemClock
from triage.domain.record import RunState, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),  # the database driver may have threads
    pytest.mark.timeout(1800),
]

SERVERS, ACCOUNTS = (8, 50) if FULL else (4, 12)
EVERY_S = 4
MAILS = 70 if FULL else 8
HARM_S = 180 if FULL else 8
RESTARTS = 8 if FULL else 1
REST_S = 300 if FULL else 60


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer(postgres_or_reason()) as server:
        yield server


@pytest.fixture(scope="module")
def mail_server() -> Iterator[Dovecot]:
    with Dovecot("sdbox", extra=MAIL_LOG) as server:
        yield server


def test_many_servers_share_the_work_and_never_do_it_twice(
    postgres: PostgresServer, mail_server: Dovecot, tmp_path: Path, tally: Tally
) -> None:
    users = [f"desk{n:02d}" for n in range(ACCOUNTS)]
    mail_server.append("template", [Mail(f"Mail {n}", f"<{n}@x.example>") for n in range(MAILS)])
    for user in users:
        mail_server.copy_store("template", user)
    url = postgres.create_database()
    ledger = open_ledger(url, SystemClock())
    settings = settings_with(settings_for(tmp_path, mail_server.port, password=mail_server.password, ledger=url), users)
    fleet = Fleet(settings, tmp_path / "asked", EVERY_S)
    for _ in range(SERVERS):
        fleet.start()
    try:
        disturb(fleet, postgres)
        rest(ledger, users)
    finally:
        codes = fleet.end()
    asked = len((tmp_path / "asked").read_text().splitlines())
    found = violations(ledger, mail_server, users)
    runs = [run for user in users for run in ledger.runs(user, limit=10_000)]
    states = Counter(run.reason if run.state is RunState.FAILED else str(run.state) for run in runs)
    ledger.close()
    done = fleet.done
    print(
        f"\n{SERVERS} servers, {ACCOUNTS} accounts: {done['killed']} killed, {done['paused']} paused beyond the lease, "
        f"PostgreSQL restarted {done['restarted']} times; {len(runs)} fires {dict(states)}; "
        f"{ACCOUNTS * MAILS} messages, {asked} asks"
    )
    accidents = done.total()
    tally.add("many servers", accidents, accidents if found else 0)
    assert found == []
    assert set(codes) == {0}


def disturb(fleet: Fleet, postgres: PostgresServer) -> None:
    """Do harm for a while, at random."""
    rng = random.Random(11)
    begin = time.monotonic()
    restarts = [begin + HARM_S * (n + 0.5) / RESTARTS for n in range(RESTARTS)]
    while time.monotonic() < begin + HARM_S:
        time.sleep(rng.uniform(0.3, 1.2))
        fleet.harm()
        if restarts and time.monotonic() > restarts[0]:
            restarts.pop(0)
            # An orderly shutdown waits for clients paused in the middle of an answer; a crash waits for nobody.
            postgres.stop(signal.SIGQUIT if fleet.paused else rng.choice((signal.SIGINT, signal.SIGQUIT)))
            time.sleep(rng.uniform(0.1, 1.0))
            postgres.start()
            fleet.done["restarted"] += 1
    fleet.wake_all()


def rest(ledger: SqlLedger, users: list[str]) -> None:
    """Let the fleet work undisturbed until every account has had a run that found nothing left."""
    time.sleep(LEASE.total_seconds() * 2)
    deadline = time.monotonic() + REST_S
    waiting = list(users)
    while waiting and time.monotonic() < deadline:
        time.sleep(0.5)
        waiting = [user for user in waiting if not _idle(ledger, user)]
    assert not waiting, f"not sorted in time: {waiting}"


def _idle(ledger: SqlLedger, user: str) -> bool:
    done = next((r for r in ledger.runs(user, limit=10) if r.state is RunState.DONE), None)
    return done is not None and not done.counts.get("selected") and ledger.unfinished(user) == ()


def violations(ledger: SqlLedger, server: Dovecot, users: list[str]) -> list[str]:
    bad = [f"{user}: {problem}" for user in users for problem in ledger.verify_chain(user)]
    for user in users:
        bad += ledger_violations(ledger, user)
        bad += disagreements(ledger, user, CATEGORIES)
        places = [*server.flags(user).values(), *server.flags(user, "Archive").values()]
        if len(places) != MAILS or any(flags != {"Triage/newsletter"} for flags in places):
            bad.append(f"{user}: {len(places)} messages of {MAILS}, labels {Counter(map(str, places))}")
    writes = writes_of(server)
    bad += overlaps(writes)
    labelled = Counter((w.user, w.uid) for w in writes if w.what == "flag_change")
    bad += [f"{user} UID {uid}: labelled {n} times" for (user, uid), n in labelled.items() if n > 1]
    if len(labelled) != MAILS * len(users):
        bad.append(f"the server's log tells of {len(labelled)} labels")
    return bad


def ledger_violations(ledger: SqlLedger, user: str) -> list[str]:
    runs = ledger.runs(user, limit=10_000)
    bad = []
    fires = Counter(run.fire_time for run in runs if run.trigger is Trigger.SCHEDULE)
    bad += [f"{user}: fired {n} times for {when}" for when, n in fires.items() if n > 1]
    bad += [f"{user}: fired off the timetable, {when}" for when in fires if when.timestamp() % EVERY_S]
    ran = sorted((r for r in runs if r.started_at), key=lambda r: r.started_at or r.enqueued_at)
    for one, next_one in pairwise(ran):
        if one.finished_at is None or next_one.started_at is None or next_one.started_at < one.finished_at:
            bad.append(f"{user}: run {next_one.id} began before {one.id} had ended")
    decided = defaultdict(list)
    for run in runs:
        for decision in ledger.decisions(run.id):
            decided[decision.ref].append(decision.closed_reason or "applied")
    bad += [f"{user} {ref.uid}: decided {n}" for ref, n in decided.items() if len(n) > 1]
    return bad
