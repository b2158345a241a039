"""How fast the queue is: empty runs, claimed and finished by many worker processes on one PostgreSQL.

    python bench/claims.py [--accounts 100 1000 10000] [--workers 8] [--url postgresql://...]

Without --url a throw-away PostgreSQL with its durable settings (fsync on) is started. For every size each account has
the same number of waiting runs; the time a run takes must not grow with the number of accounts. Exit 1 if the smallest
rate is below --least.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import threading
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from multiprocessing.pool import Pool
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from services.postgres import PostgresServer, find_programs  # noqa: E402
from triage.domain.record import Trigger  # noqa: E402
from triage.ledger import SqlLedger, open_ledger  # noqa: E402

LEASE = timedelta(seconds=60)
FIRST_FIRE = datetime(2026, 1, 1, tzinfo=UTC)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(timeout_s)


_ledger: SqlLedger


def start_worker(url: str) -> None:
    global _ledger
    _ledger = open_ledger(url, SystemClock())


def fire(job: tuple[list[str], int]) -> int:
    accounts, rounds = job
    for n in range(rounds):
        for account in accounts:
            _ledger.enqueue(account, Trigger.MANUAL, FIRST_FIRE + timedelta(minutes=5 * n))
    return len(accounts) * rounds


def work(number: int) -> tuple[list[float], float]:
    """Claim and finish until nothing waits; the seconds each claim took, and this worker's CPU seconds."""
    took, cpu = [], time.process_time()
    owner = f"bench:{number}"
    while True:
        start = time.perf_counter()
        run = _ledger.claim(owner, LEASE)
        if run is None:
            if _ledger.depth() == 0:
                return took, time.process_time() - cpu
            continue
        took.append(time.perf_counter() - start)
        assert _ledger.finish(run.id, owner, counts={"selected": 0})


def measure(pool: Pool, accounts: int, runs: int, workers: int) -> float:
    names = [f"of-{accounts}-{n:05d}" for n in range(accounts)]
    rounds = max(1, runs // accounts)
    start = time.perf_counter()
    total = sum(pool.map(fire, [(names[n::workers], rounds) for n in range(workers)], chunksize=1))
    fired = time.perf_counter() - start
    start = time.perf_counter()
    done = pool.map(work, range(workers), chunksize=1)
    spent = time.perf_counter() - start
    took, cpu = [seconds for some, _ in done for seconds in some], sum(cpu for _, cpu in done)
    assert len(took) == total, f"{total} runs were fired, {len(took)} claimed"
    slowest = sorted(took)[int(len(took) * 0.99)]
    print(
        f"{accounts:6,} accounts {total:7,} runs: fired {total / fired:6.0f}/s; claimed and finished "
        f"{total / spent:6.0f}/s; a claim {statistics.median(took) * 1000:.1f} ms, p99 {slowest * 1000:.1f} ms, "
        f"{cpu / total * 1000:.1f} ms of the workers' CPU a run",
        flush=True,
    )
    return total / spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accounts", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--runs", type=int, default=3000, help="at least so many runs a size")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--least", type=float, default=300.0, help="runs a second that are asked for")
    parser.add_argument("--url", help="an empty database to measure on")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = options.url
        if url is None:
            programs = find_programs()
            if programs is None:
                print("PostgreSQL is not installed (Debian: apt-get install postgresql)", file=sys.stderr)
                return 2
            server = stack.enter_context(PostgresServer(programs, durable=True))
            url = server.create_database()
        spawn = multiprocessing.get_context("spawn")
        pool = stack.enter_context(spawn.Pool(options.workers, start_worker, (url,)))
        rates = [measure(pool, accounts, options.runs, options.workers) for accounts in options.accounts]
        pool.close()
        pool.join()
    return 0 if min(rates) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
