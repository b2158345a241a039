"""A ledger of a million decisions: how long report and audit take there, and how much memory.

    python -m bench.ledger_scale [--decisions 1000000] [--keep FILE]

The ledger is built by bulk insert with a chain that verifies, over 90 days and one account; each command then runs in a
process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from triage.clock import SystemClock
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, RunState, Trigger
from triage.ledger import open_ledger
from triage.ledger.chain import GENESIS, Kind, digest, link_hash
from triage.ledger.rows import CONTENT, RUN, decision_content, to_json
from triage.policy.confidence import confidence

ACCOUNT = "team"
DAYS = 90
BATCH = 20
IDS = (
    "action-required",
    "conversation",
    "notification",
    "receipt",
    "newsletter",
    "promotion",
    "spam",
    "hijack-attempt",
)
SHARES = (0.12, 0.16, 0.22, 0.10, 0.22, 0.13, 0.04, 0.01)
ARCHIVES = {"notification", "receipt", "newsletter", "promotion", "spam"}
COMMANDS = (
    ("report", ["report", "--since", f"{DAYS + 1}d", "--no-look", "--json"]),
    ("report --html", ["report", "--since", f"{DAYS + 1}d", "--no-look", "--html", "report.html"]),
    ("audit", ["audit", "--since", f"{DAYS + 1}d", "--json"]),
    ("audit --since 7d", ["audit", "--json"]),
)
_RUN_COLUMNS = (
    "id", "account", "trigger", "fire_time", "state", "enqueued_at", "started_at", "finished_at", "counts", "options"
)  # fmt: skip


def build(path: Path, decisions: int, now: datetime) -> None:
    """Fill an empty ledger. The clock of its records runs through the 90 days before `now`."""
    open_ledger(f"sqlite:///{path}", SystemClock()).close()
    db = sqlite3.connect(path, isolation_level=None)
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    db.execute("PRAGMA synchronous=OFF")
    db.execute("BEGIN")
    chain = _Chain()
    names = [c.name for c in CONTENT]
    state = ["labelled_at", "archived_at", "archived_mailbox", "archived_uidvalidity", "archived_uid", "salt"]
    put = f"INSERT INTO decisions ({', '.join([*names, *state])}) VALUES ({', '.join('?' * (len(names) + len(state)))})"
    start = now - timedelta(days=DAYS)
    rng = random.Random(7)
    runs = -(-decisions // BATCH)
    for n in range(runs):
        at = start + (now - start) * (n / runs)
        size = min(BATCH, decisions - n * BATCH)
        rows = []
        for record in _batch(rng, n, size, at):
            values, salt = decision_content(record), secrets.token_bytes(16)
            content = [values[name] for name in names]
            chain.add(Kind.DECIDED, record.id, digest(content, salt), at)
            done = at + timedelta(seconds=2)
            chain.add(Kind.LABELLED, record.id, digest([done], salt), done)
            moved: list[Any] = [None] * 4
            if record.archive:
                moved = [done, "Archive", 1, n * BATCH + record.ref.uid % BATCH + 1]
                chain.add(Kind.ARCHIVED, record.id, digest(moved, salt), done)
            rows.append([*map(_plain, content), _plain(done), *map(_plain, moved), salt])
        db.executemany(put, rows)
        _finish(db, chain, n, size, at)
        if n % 500 == 0:
            chain.flush(db)
    chain.flush(db)
    db.execute("INSERT INTO chains VALUES (?, ?, ?, 0, ?)", (ACCOUNT, chain.seq, chain.last, GENESIS))
    db.execute("COMMIT")
    for _, sql in indexes:
        db.execute(sql)
    db.execute("ANALYZE")
    db.close()


class _Chain:
    def __init__(self) -> None:
        self.seq, self.last, self._rows = 0, GENESIS, []  # type: ignore[var-annotated]

    def add(self, kind: Kind, subject: str, content: bytes, at: datetime) -> None:
        self.seq += 1
        self.last = link_hash(self.last, ACCOUNT, self.seq, at, kind, subject, content)
        self._rows.append((ACCOUNT, self.seq, _plain(at), str(kind), subject, content, self.last))

    def flush(self, db: sqlite3.Connection) -> None:
        db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", self._rows)
        self._rows.clear()


def _finish(db: sqlite3.Connection, chain: _Chain, n: int, size: int, at: datetime) -> None:
    run = Run(
        id=f"r{n:09}",
        account=ACCOUNT,
        trigger=Trigger.SCHEDULE,
        fire_time=at,
        state=RunState.DONE,
        enqueued_at=at,
        started_at=at,
        finished_at=at + timedelta(seconds=4),
        counts={"selected": size, "labelled": size},
    )
    told = {**{c.name: getattr(run, c.name) for c in RUN}, "counts": to_json(dict(run.counts)), "options": "{}"}
    told |= {"trigger": run.trigger.value, "state": run.state.value}
    assert run.finished_at is not None
    chain.add(Kind.RUN_FINISHED, run.id, digest([told[c.name] for c in RUN]), run.finished_at)
    values = [_plain(told[name]) for name in _RUN_COLUMNS]
    db.execute(f"INSERT INTO runs ({', '.join(_RUN_COLUMNS)}) VALUES ({', '.join('?' * len(values))})", values)


def _batch(rng: random.Random, n: int, size: int, at: datetime) -> Iterator[DecisionRecord]:
    for m in range(size):
        number = n * BATCH + m
        label = rng.choices(IDS, SHARES)[0]
        rest = [i for i in IDS if i != label]
        top = rng.betavariate(6, 1.4)
        shares = sorted((rng.random() ** 6 for _ in rest), reverse=True)
        scale = (1 - top) / sum(shares)
        probabilities = {label: top, **{i: s * scale for i, s in zip(rng.sample(rest, len(rest)), shares, strict=True)}}
        choice = max(probabilities, key=lambda i: probabilities[i])
        sure = confidence(probabilities)
        below = sure < 0.5
        inherited = rng.random() < 0.18 and not below
        fallback = rng.random() < 0.004
        yield DecisionRecord(
            id=f"d{number:023}",
            run_id=f"r{n:09}",
            account=ACCOUNT,
            ref=MessageRef("INBOX", 1, number + 1),
            message_key=f"{number:032x}",
            message_id_key=f"{number + 2**100:032x}",
            category_set="0123456789abcdef",
            outcome=Outcome.INHERITED if inherited else Outcome.BELOW_FLOOR if below else Outcome.APPLIED,
            label_id="unclassified" if below else choice,
            choice=choice,
            confidence=sure,
            floor=0.5,
            archive_floor=0.5,
            archive=not below and choice in ARCHIVES and not fallback,
            reason="inherited" if inherited else "below_floor" if below else "chosen",
            why=f"{choice} at {sure:.2f}, floor 0.50.",
            decided_at=at + timedelta(milliseconds=50 * m),
            probabilities={} if inherited else probabilities,
            provider=None if inherited else "embedded" if fallback else "systemone",
            model=None if inherited else "embedded-1.abcdef" if fallback else "jev-1.13.2",
            chain_position=None if inherited else int(fallback),
            latency_ms=0 if inherited else int(rng.lognormvariate(5, 0.5)),
            input_tokens=0 if inherited else int(rng.lognormvariate(6.5, 0.6)),
            question_tokens=0 if inherited else 310,
            cost_usd=0.0 if inherited else 0.00004,
            inherited_from=f"{number:032x}" if inherited else None,
            inherited_rule="reference" if inherited else None,
            inherited_source="person" if inherited else None,
            sender_domain=f"sender{int(rng.paretovariate(0.6)) % 4000}.example",
            received_at=at - timedelta(minutes=4),
            body_chars=1500,
            links_removed=rng.randrange(6),
        )


def _plain(value: object) -> object:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value


def measure(directory: Path, arguments: list[str]) -> tuple[float, float, int, int, str]:
    """Run one command; seconds, of them on the processor, peak memory in MB, exit code, and what it said."""
    watched = (
        "import resource, sys; from triage.cli.main import run_cli; code = run_cli(sys.argv[1:]); "
        "used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", watched, *arguments, "--config", str(directory)],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, "PW": "x"},
    )
    took = time.perf_counter() - began
    *_, cpu, kilobytes = done.stderr.split()
    return took, float(cpu), int(kilobytes) // 1024, done.returncode, done.stdout


def configure(directory: Path) -> None:
    """A configuration whose mailbox does not answer: what is measured is the ledger."""
    (directory / "triage.yaml").write_text(
        "ledger: sqlite:///ledger.db\nhttp: false\naccounts:\n"
        "  - {name: team, host: 127.0.0.1, port: 1, security: plain, username: u, password: {env: PW}, "
        "since: 2026-01-01}\n"
    )
    rows = "".join(
        f"  - {{id: {i}, name: {i}, criteria: x, action: {'archive' if i in ARCHIVES else 'keep'}}}\n" for i in IDS
    )
    (directory / "categories.yaml").write_text(f"categories:\n{rows}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="Build the ledger in this directory and leave it there.")
    parser.add_argument("--whole", action="store_true", help="Verify every link and record too (minutes).")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.keep or Path(scratch)
        directory.mkdir(exist_ok=True)
        ledger = directory / "ledger.db"
        if not ledger.exists():
            began = time.perf_counter()
            build(ledger, options.decisions, datetime.now(UTC))
            print(f"built {options.decisions:,} decisions in {time.perf_counter() - began:.0f} s, "
                  f"{ledger.stat().st_size / 2**20:,.0f} MB")  # fmt: skip
        configure(directory)
        commands = list(COMMANDS) + ([("audit --whole", ["audit", "--whole", "--json"])] if options.whole else [])
        for name, arguments in commands:
            took, cpu, megabytes, code, said = measure(directory, arguments)
            told = f"{took:6.1f} s ({cpu:.1f} s of a core) {megabytes:5} MB  exit {code}  {_told(said)}"
            print(f"triage {name:<18} {told}", flush=True)


def _told(said: str) -> str:
    try:
        value = json.loads(said)
    except ValueError:
        return ""
    if isinstance(value, list):
        return f"{value[0]['decisions']:,} decisions, {len(value[0]['competing_pairs'])} competing pairs"
    broken = [i["id"] for i in value["invariants"] if not i["holds"]]
    chain = value["chain"]
    holds = "holds" if chain["holds"] else str(chain["violations"][:1])
    return f"broken {broken}, chain {holds} over {chain['checked']:,} links"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
