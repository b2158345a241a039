"""What worker processes do in tests of the ledger. A module of its own: spawned processes import it by name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import Any

from services.ledger import START, SystemClock, make_decision
from triage.ledger import open_ledger

LEASE = timedelta(seconds=60)


def report(results: SimpleQueue[Any], call: Callable[..., Any], arguments: list[Any]) -> None:
    """What a worker process runs: call, and hand the result to the test."""
    results.put(call(*arguments))


def open_together(url: str, start: Barrier) -> str:
    """Wait for all others, then open the ledger; its fingerprint of a fixed text."""
    start.wait()
    ledger = open_ledger(url, SystemClock())
    try:
        return ledger.key("a fixed text")
    finally:
        ledger.close()


def claim_until_empty(url: str, owner: str, start: Barrier) -> list[tuple[str, str, float, float]]:
    """Claim, hold for a moment, finish, until the queue is empty: (run, account, began, ended) each."""
    ledger = open_ledger(url, SystemClock())
    done = []
    start.wait()
    while ledger.depth():
        run = ledger.claim(owner, LEASE)
        if run is None:
            continue
        began = time.monotonic()
        time.sleep(0.002)
        ended = time.monotonic()
        assert ledger.finish(run.id, owner), "a live run is nobody else's"
        done.append((run.id, run.account, began, ended))
    ledger.close()
    return done


def write_for_ever(url: str, first: int) -> None:
    """Record, label and archive decisions until somebody kills this process."""
    ledger = open_ledger(url, SystemClock())
    number = first
    while True:
        ledger.record_decisions([make_decision(number)])
        ledger.mark_labelled([f"d{number:06d}"], START)
        ledger.mark_archived({f"d{number:06d}": None}, START)
        number += 1


def claim_and_vanish(url: str, owner: str) -> None:
    """Take a run and die without a word."""
    ledger = open_ledger(url, SystemClock())
    assert ledger.claim(owner, timedelta(seconds=1)) is not None
    os._exit(1)
