"""What tests of the ledger need: a clock moved by hand, a ledger with its surroundings, decisions to record."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from services.postgres import find_programs
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord
from triage.ledger import SqlLedger

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


class HandClock:
    """A clock that a test moves: time passes with `advance`, the wall clock is set with `step`."""

    def __init__(self, now: datetime = START, monotonic_s: float = 1000.0) -> None:
        self._now = now
        self._monotonic_s = monotonic_s

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic_s

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        self.advance(timedelta(seconds=timeout_s))
        return event.is_set()

    def advance(self, span: timedelta) -> None:
        self._now += span
        self._monotonic_s += span.total_seconds()

    def step(self, span: timedelta) -> None:
        self._now += span

    def reboot(self) -> None:
        """The monotonic clock begins anew."""
        self._monotonic_s = 1.0


class SystemClock:
    """The real clock, for tests with many processes."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        import time

        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(timeout_s)


@dataclass
class Bench:
    """A ledger under test, with what a test needs around it."""

    ledger: SqlLedger
    url: str
    clock: HandClock

    @property
    def kind(self) -> str:
        return make_url(self.url).get_backend_name()

    def pass_lease_time(self, span: timedelta) -> None:
        """Let time pass for leases. PostgreSQL counts them on its own clock: there, they are moved back instead."""
        self.clock.advance(span)
        if self.kind == "postgresql":
            ms = int(span.total_seconds() * 1000)
            self.sql(f"UPDATE runs SET lease_renewed_ms = lease_renewed_ms - {ms}")
            self.sql(f"UPDATE runs SET lease_expires_ms = lease_expires_ms - {ms}")

    def sql(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        """Go behind the ledger's back."""
        return run_sql(self.url, statement, **values)


def run_sql(url: str, *statements: str, **values: object) -> list[tuple[object, ...]]:
    """Run statements in one transaction; the rows of the last one."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            for statement in statements:
                result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


def postgres_or_reason() -> Path:
    """Where PostgreSQL's programs are. Without them a test is skipped, but never in CI."""
    programs = find_programs()
    if programs is None:
        reason = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return programs


def make_decision(number: int = 1, **changes: object) -> DecisionRecord:
    """A decision as a run would record it. Each `number` is another message of the same mailbox."""
    values: dict[str, object] = {
        "id": f"d{number:06d}",
        "run_id": "20261130-090000-aaaaaa",
        "account": "support",
        "ref": MessageRef("INBOX", 7, number),
        "message_key": f"{number:032x}",
        "message_id_key": f"{number + 2**64:032x}",
        "category_set": "0123456789abcdef",
        "outcome": Outcome.APPLIED,
        "label_id": "newsletters",
        "choice": "newsletters",
        "confidence": 0.9,
        "floor": 0.5,
        "archive_floor": 0.6,
        "archive": True,
        "reason": "above_floor",
        "why": "confidence 0.90 is at or above the floor 0.50",
        "decided_at": START + timedelta(seconds=number),
        "probabilities": {"newsletters": 0.93, "receipts": 0.07},
        "provider": "embedded",
        "model": "embedded-1",
        "chain_position": 0,
        "provider_confidence": 0.86,
        "latency_ms": 2,
        "input_tokens": 300,
        "cost_usd": 0.001,
        "warnings": ("hidden_text",),
        "flags": ("\\Seen",),
        "sender_domain": "example.org",
        "received_at": START - timedelta(hours=1),
        "body_chars": 900,
    }
    return DecisionRecord(**(values | changes))  # type: ignore[arg-type]
