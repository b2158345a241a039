"""Figures of the mail tool on a real Dovecot: how soon mail is seen, what a wait costs the server, claims a second.

    python bench/mail_tool.py [--mails 20]

Prints one line a figure. Found latency is from the end of delivery to the look that shows the message; the settling
look that follows takes `settle_seconds` more, by agreement.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from services.dovecot import Dovecot
from services.postgres import PostgresServer, find_programs
from support.mail_tool import policy
from support.tool_site import Site, wait_request
from triage.clock import SystemClock
from triage.domain.errors import LedgerError
from triage.domain.mail import MessageRef
from triage.domain.tool import Claim, Receipt
from triage.ledger import open_ledger
from triage.mailbox.wire import Wire


def seen_latencies(site: Site, mails: int, *, idle: bool) -> tuple[list[float], list[float], int]:
    """Milliseconds from delivery to the first look that shows it; the widest slot that was open; IMAP commands."""
    import random
    import threading

    site.write_policy(runs__idle="early_slot" if idle else "off", runs__settle_seconds=0)
    app = site.app()
    tool = app.tool()
    chance, sent = random.Random(3), [0]
    run_wire = Wire.run

    def counted(self: Wire, *commands: bytes) -> object:
        sent[0] += len(commands)
        return run_wire(self, *commands)

    Wire.run = counted  # type: ignore[method-assign,assignment]
    latencies, gaps = [], []
    try:
        for n in range(mails):
            opened = tool.open({"run_id": f"signup-{'i' if idle else 'o'}{n:03}", "purpose": "verify_signup"})
            assert opened.run is not None, opened
            delivered: list[float] = []
            run, after_s = opened.run, chance.uniform(0.2, 6.5)

            def deliver(address: str = run.address, delivered: list[float] = delivered) -> None:
                site.deliver(address)
                delivered.append(time.monotonic())

            began = time.monotonic()
            timer = threading.Timer(after_s, deliver)
            timer.start()
            result = tool.wait(wait_request(run, deadline_seconds=20))
            timer.join()
            assert result.state == "found", result
            receipt = app.ledger.receipt(str(result.receipt_id))
            assert receipt is not None
            looks = [int(str(poll["at_ms"])) for poll in receipt.polls]
            latencies.append(max(0.0, (began - delivered[0]) * 1000 + looks[-1]))
            gaps.append(looks[-1] - (looks[-2] if len(looks) > 1 else 0))
    finally:
        Wire.run = run_wire  # type: ignore[method-assign]
        tool.close()
        app.close()
    return latencies, gaps, sent[0]


def contend(url: str, me: int, claims: int, start: Any, won: Any) -> None:
    ledger = open_ledger(url, SystemClock())
    ledger.key("drawn once")
    mine = 0
    start.wait()
    began = time.monotonic()
    for n in range(claims):
        now = datetime.now(UTC)
        receipt = Receipt(
            f"rct-{me}-{n}", "team", "signup-1", 1, None, "wait", "bench", None, "found", "matched",
            "evidence_obtained", now, 1, 1, 1,
        )  # fmt: skip
        claim = Claim(
            "team", f"k{n}", "signup-1", 1, "m", MessageRef("INBOX", 1, n + 1), "f", "r", now, now, receipt.id
        )
        while True:
            try:
                mine += ledger.claim_message(claim, None, receipt, None)
            except LedgerError as error:
                if not error.temporary:
                    raise
            else:
                break
    won.put((mine, time.monotonic() - began))
    ledger.close()


def claims_per_second(url: str, processes: int, claims: int) -> tuple[float, int]:
    """Attempts a second of so many processes for the same messages, and how many were won."""
    open_ledger(url, SystemClock()).close()
    context = multiprocessing.get_context("spawn")
    start, won = context.Barrier(processes), context.Queue()
    workers = [context.Process(target=contend, args=(url, me, claims, start, won)) for me in range(processes)]
    for worker in workers:
        worker.start()
    told = [won.get() for _ in workers]
    for worker in workers:
        worker.join()
    return processes * claims / max(seconds for _, seconds in told), sum(mine for mine, _ in told)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--mails", type=int, default=20, help="0 leaves the latencies out")
    mails = arguments.parse_args().mails
    assert policy().runs.settle_seconds == 2
    with Dovecot("sdbox") as server, tempfile.TemporaryDirectory() as directory:
        for idle in (True, False) if mails else ():
            place = Path(directory) / str(idle)
            place.mkdir()
            latencies, gaps, commands = seen_latencies(Site(place, server, f"bench{idle}"), mails, idle=idle)
            latencies.sort()
            print(
                f"{'IDLE   ' if idle else 'no IDLE'}: seen after median {statistics.median(latencies):.0f} ms, "
                f"worst {latencies[-1]:.0f} ms; widest slot {max(gaps):.0f} ms; "
                f"{commands / mails:.1f} IMAP commands a run (open, wait, close)"
            )
        print_claims("SQLite", f"sqlite:///{directory}/claims.db")
    if programs := find_programs():
        with PostgresServer(programs, durable=True) as postgres:
            print_claims("PostgreSQL", postgres.create_database())
    else:
        print("claims : no PostgreSQL is installed")


def print_claims(ledger: str, url: str) -> None:
    rate, won = claims_per_second(url, 8, 100)
    print(f"claims : {rate:.0f} attempts a second by 8 processes on {ledger}, {won} of 100 messages won, each once")


if __name__ == "__main__":
    main()
