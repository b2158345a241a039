"""A ledger of as many decisions as asked for, over 90 days and one account, whose hash chain verifies.

Every row goes through the product's own conversion, schema, digests and links. What makes it quick: rows are written in
one transaction without indexes, and a decision is one of a few thousand that were converted once, with what names it
(ids, keys, times, place) put in anew.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import time
from dataclasses import dataclass
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
ARCHIVES = frozenset({"notification", "receipt", "newsletter", "promotion", "spam"})
_SHARES = (0.12, 0.16, 0.22, 0.10, 0.22, 0.13, 0.04, 0.01)
_PATTERNS = 3_000
_FRESH_FOR = timedelta(hours=12)
_CONTENT = [c.name for c in CONTENT]
_STATE = ["labelled_at", "archived_at", "archived_mailbox", "archived_uidvalidity", "archived_uid", "salt"]
_RUN = [c.name for c in RUN]


def kept(decisions: int, directory: Path | None = None) -> Path:
    """A directory with such a ledger and a configuration over it, built unless one of today is there already."""
    directory = directory or Path(tempfile.gettempdir()) / f"triage-bench-{decisions}"
    directory.mkdir(exist_ok=True)
    ledger = directory / "ledger.db"
    age = time.time() - ledger.stat().st_mtime if ledger.exists() else float("inf")
    if age > _FRESH_FOR.total_seconds():
        for old in directory.glob("ledger.db*"):
            old.unlink()
        began, used = time.perf_counter(), time.process_time()
        build(ledger, decisions, datetime.now(UTC))
        print(
            f"built {decisions:,} decisions in {time.perf_counter() - began:.0f} s "
            f"({time.process_time() - used:.0f} s of a core), {ledger.stat().st_size / 2**20:,.0f} MB",
            flush=True,
        )
    configure(directory)
    return directory


def build(path: Path, decisions: int, now: datetime) -> None:
    """Fill an empty ledger. The clock of its records runs through the 90 days before `now`."""
    open_ledger(f"sqlite:///{path}", SystemClock()).close()
    db = sqlite3.connect(path, isolation_level=None)
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    for pragma in ("synchronous=OFF", "cache_size=-200000", "temp_store=MEMORY"):
        db.execute(f"PRAGMA {pragma}")
    db.execute("BEGIN")
    _Builder(db, decisions, now).build()
    db.execute("COMMIT")
    for _, sql in indexes:
        db.execute(sql)
    db.execute("ANALYZE")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


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


class _Builder:
    def __init__(self, db: sqlite3.Connection, decisions: int, now: datetime) -> None:
        self._db, self._decisions = db, decisions
        self._start = now - timedelta(days=DAYS)
        self._span = now - self._start
        self._rng = random.Random(7)
        self._patterns = [_pattern(self._rng) for _ in range(_PATTERNS)]
        self._seq, self._last = 0, GENESIS
        self._rows: list[list[Any]] = []
        self._links: list[tuple[Any, ...]] = []

    def build(self) -> None:
        runs = -(-self._decisions // BATCH)
        for n in range(runs):
            self._run(n, self._start + self._span * (n / runs), min(BATCH, self._decisions - n * BATCH))
            if n % 500 == 0:
                self._flush()
        self._flush()
        chain = (ACCOUNT, self._seq, self._last, 0, GENESIS)
        self._db.execute(f"INSERT INTO chains (account, seq, hash, base_seq, base_hash) VALUES {_places(chain)}", chain)

    def _run(self, n: int, at: datetime, size: int) -> None:
        """Decided, labelled, archived, finished, as a run does it: each step with its links."""
        done = at + timedelta(seconds=2)
        made = [self._decision(n * BATCH + m, n, at + timedelta(milliseconds=50 * m)) for m in range(size)]
        self._link(at, [(Kind.DECIDED, d.id, digest(d.content, d.salt)) for d in made])
        self._link(done, [(Kind.LABELLED, d.id, digest([done], d.salt)) for d in made])
        archived = [d for d in made if d.archive]
        moved = {d.id: [done, "Archive", 1, d.number + 1] for d in archived}
        self._link(done, [(Kind.ARCHIVED, d.id, digest(moved[d.id], d.salt)) for d in archived])
        told_done, not_moved = _plain(done), [None] * 4
        for d in made:
            where = [told_done, *moved[d.id][1:]] if d.archive else not_moved
            self._rows.append([*d.stored(), told_done, *where, d.salt])
        self._finish(n, size, at)

    def _decision(self, number: int, run: int, at: datetime) -> _Made:
        pattern = self._patterns[self._rng.randrange(_PATTERNS)]
        content = list(pattern.content)
        own = {
            "id": f"d{number:023}",
            "run_id": f"r{run:09}",
            "uid": number + 1,
            "message_key": f"{number:032x}",
            "message_id_key": f"{number + 2**100:032x}",
            "decided_at": at,
            "received_at": at - timedelta(minutes=4),
        }
        for name, value in own.items():
            content[_PLACE[name]] = value
        return _Made(number, content, pattern.archive, self._rng.randbytes(16))

    def _finish(self, n: int, size: int, at: datetime) -> None:
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
        told = {name: getattr(run, name) for name in _RUN} | {"counts": to_json(dict(run.counts)), "options": "{}"}
        told |= {"trigger": run.trigger.value, "state": run.state.value}
        assert run.finished_at is not None
        values = [told[name] for name in _RUN]
        self._link(run.finished_at, [(Kind.RUN_FINISHED, run.id, digest(values))])
        self._db.execute(f"INSERT INTO runs ({', '.join(_RUN)}) VALUES {_places(values)}", list(map(_plain, values)))

    def _link(self, at: datetime, links: list[tuple[Kind, str, bytes]]) -> None:
        told_at = _plain(at)
        for kind, subject, content in links:
            self._seq += 1
            self._last = link_hash(self._last, ACCOUNT, self._seq, at, kind, subject, content)
            self._links.append((ACCOUNT, self._seq, told_at, kind.value, subject, content, self._last))

    def _flush(self) -> None:
        names = [*_CONTENT, *_STATE]
        self._db.executemany(f"INSERT INTO decisions ({', '.join(names)}) VALUES {_places(names)}", self._rows)
        columns = "account, seq, at, kind, subject, digest, hash"
        self._db.executemany(f"INSERT INTO events ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", self._links)
        self._rows.clear()
        self._links.clear()


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A decision's columns, converted; what names it is put in later."""

    content: list[Any]
    archive: bool


@dataclass(frozen=True, slots=True)
class _Made:
    number: int
    content: list[Any]
    archive: bool
    salt: bytes

    @property
    def id(self) -> str:
        return str(self.content[_PLACE["id"]])

    def stored(self) -> list[Any]:
        row = list(self.content)
        for name in ("decided_at", "received_at"):
            row[_PLACE[name]] = _plain(row[_PLACE[name]])
        return row


_PLACE = {name: index for index, name in enumerate(_CONTENT)}


def _pattern(rng: random.Random) -> _Pattern:
    record = _record(rng)
    values = decision_content(record)
    return _Pattern([values[name] for name in _CONTENT], record.archive)


def _record(rng: random.Random) -> DecisionRecord:
    """One of the answers that a mailbox gets: sure, unsure, inherited, and now and then from a fallback."""
    label = rng.choices(IDS, _SHARES)[0]
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
    now = datetime.now(UTC)
    return DecisionRecord(
        id="",
        run_id="",
        account=ACCOUNT,
        ref=MessageRef("INBOX", 1, 0),
        message_key="",
        message_id_key="",
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
        decided_at=now,
        probabilities={} if inherited else probabilities,
        provider=None if inherited else "embedded" if fallback else "systemone",
        model=None if inherited else "embedded-1.abcdef" if fallback else "jev-1.13.2",
        chain_position=None if inherited else int(fallback),
        latency_ms=0 if inherited else int(rng.lognormvariate(5, 0.5)),
        input_tokens=0 if inherited else int(rng.lognormvariate(6.5, 0.6)),
        question_tokens=0 if inherited else 310,
        cost_usd=0.0 if inherited else 0.00004,
        inherited_from=f"{rng.getrandbits(128):032x}" if inherited else None,
        inherited_rule="reference" if inherited else None,
        inherited_source="person" if inherited else None,
        sender_domain=f"sender{int(rng.paretovariate(0.6)) % 4000}.example",
        received_at=now,
        body_chars=1500,
        links_removed=rng.randrange(6),
    )


def _places(values: Any) -> str:
    return f"({', '.join('?' * len(values))})"


def _plain(value: object) -> object:
    """As the schema's types store it."""
    return value.replace(tzinfo=None).isoformat(" ", "microseconds") if isinstance(value, datetime) else value
