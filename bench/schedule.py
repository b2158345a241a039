"""What a schedule of many accounts costs one server.

    python bench/schedule.py [--accounts 10000] [--seconds 20] [--urls postgresql://... postgresql://...]

How long the timetable takes to wake from a week's sleep, how long a daemon takes to begin, what share of a core it uses
while nothing is due, and what a fire of every account at once costs the server that puts it into the queue and one that
comes second, log lines included. Without --urls a throw-away PostgreSQL with its durable settings is started. Exit 1 if
ticking and firing every five minutes use more than 5 percent of a core; making the runs is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import structlog  # noqa: E402

from services.ledger import HandClock  # noqa: E402
from services.postgres import PostgresServer, find_programs  # noqa: E402
from triage import logs  # noqa: E402
from triage.clock import SystemClock  # noqa: E402
from triage.ledger.ledger import SqlLedger, open_ledger  # noqa: E402
from triage.schedule.cron import Cron  # noqa: E402
from triage.schedule.daemon import Daemon  # noqa: E402
from triage.schedule.timetable import FireTimes, Timetable  # noqa: E402
from triage.schedule.worker import Workplace  # noqa: E402

MOST_IDLE = 0.05
INTERVAL_S = 300


class Desks:
    """An office of many accounts that all have the same schedule."""

    def __init__(self, accounts: int, times: FireTimes, place: Workplace) -> None:
        self.times: Mapping[str, FireTimes] = {f"account-{n:05d}": times for n in range(accounts)}
        self.accounts = list(self.times)
        self._place = place

    def workplace(self) -> Workplace:
        return self._place

    def keep_house(self, now: datetime) -> None:
        del now


def wake(accounts: int, *, alike: bool) -> float:
    """Seconds until every account that slept for a week knows its fire."""
    zones = [ZoneInfo(z) for z in ("UTC", "Europe/Madrid", "America/New_York", "Asia/Tokyo")]
    lines = ["*/5 * * * *"] if alike else [f"{m}-59/5 * * * *" for m in range(5)] + [f"{m} * * * *" for m in range(60)]
    crons = {f"a{n}": Cron(lines[n % len(lines)], zones[n % (1 if alike else len(zones))]) for n in range(accounts)}
    table, start = Timetable(), datetime(2026, 3, 2, tzinfo=UTC)
    table.set(crons, start)
    begin = time.perf_counter()
    assert len(table.due(start + timedelta(days=7))) == accounts
    return time.perf_counter() - begin


def idle(ledger: SqlLedger, accounts: int, seconds: float) -> float:
    """The share of a core that a daemon with nothing to do uses."""
    clock, stop = SystemClock(), threading.Event()
    place = Workplace(ledger=ledger, desk=None, gate=None, clock=clock, owner="bench", stop=stop)  # type: ignore[arg-type]
    desks = Desks(accounts, Cron("0 0 1 1 *", ZoneInfo("UTC")), place)
    daemon = Daemon(lambda: desks, ledger, clock, stop, structlog.get_logger())
    ticking = threading.Event()
    serving = threading.Thread(target=daemon.run, args=(ticking.set,))
    begin = time.perf_counter()
    serving.start()
    ticking.wait()
    print(f"a daemon with {accounts:,} accounts has begun after {time.perf_counter() - begin:.1f} s")
    time.sleep(3)
    before, begin = time.process_time(), time.perf_counter()
    time.sleep(seconds)
    share = (time.process_time() - before) / (time.perf_counter() - begin)
    stop.set()
    serving.join()
    return share


def fire_all(ledger: SqlLedger, accounts: int, when: datetime) -> tuple[float, float]:
    """Seconds of wall time and of our own CPU that a daemon's tick takes when every account is due."""
    every = Cron("*/5 * * * *", ZoneInfo("UTC"))
    clock, stop = HandClock(when - timedelta(seconds=1)), threading.Event()
    desks = Desks(accounts, every, None)  # type: ignore[arg-type]  # no worker is started
    daemon = Daemon(lambda: desks, ledger, clock, stop, structlog.get_logger())
    daemon.tick()  # expiry and retention are due at once; they are no part of a fire
    daemon.reload()
    clock.step(timedelta(seconds=2))
    begin, cpu = time.perf_counter(), time.process_time()
    daemon.tick()
    assert ledger.depth() == accounts
    return time.perf_counter() - begin, time.process_time() - cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--urls", nargs=2, help="two empty databases to measure on")
    options = parser.parse_args()
    logs.configure("info")
    n = options.accounts
    print(f"{n:,} accounts wake from a week's sleep: {wake(n, alike=True):.2f} s alike, "
          f"{wake(n, alike=False):.2f} s on 260 different schedules")  # fmt: skip
    with ExitStack() as stack:
        busy, quiet = _ledgers(stack, options.urls)
        begin, fires = datetime(2026, 3, 2, tzinfo=UTC), 3
        costs: dict[str, list[float]] = {"first": [], "second": []}
        for fire in range(fires):
            for who, cpus in costs.items():
                wall, cpu = fire_all(busy, n, begin + fire * timedelta(seconds=INTERVAL_S))
                cpus.append(cpu)
                print(f"{n:,} fires at once, {who} server: {wall:.1f} s, {cpu:.2f} s of CPU, every five minutes "
                      f"{cpu / INTERVAL_S:.1%} of a core")  # fmt: skip
        share = idle(quiet, n, options.seconds)
        print(f"a daemon with {n:,} accounts and nothing due: {share:.1%} of a core")
        share += statistics.median(costs["first"]) / INTERVAL_S
        print(f"ticking and firing every five minutes: {share:.1%} of a core")
    return 0 if share < MOST_IDLE else 1


def _ledgers(stack: ExitStack, urls: list[str] | None) -> list[SqlLedger]:
    """Two empty ledgers: one to fire into, one that stays idle."""
    if urls is None:
        programs = find_programs()
        if programs is None:
            sys.exit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        server = stack.enter_context(PostgresServer(programs, durable=True))
        urls = [server.create_database(), server.create_database()]
    ledgers = [open_ledger(url, SystemClock()) for url in urls]
    for ledger in ledgers:
        stack.callback(ledger.close)
    return ledgers


if __name__ == "__main__":
    sys.exit(main())
