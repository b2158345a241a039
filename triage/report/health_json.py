"""Health as programs read it: `triage health --json` and /healthz give the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from triage.report.health import AccountHealth
from triage.report.text import stamp


def is_healthy(accounts: Iterable[AccountHealth]) -> bool:
    return all(account.healthy for account in accounts)


def health_report(accounts: Sequence[AccountHealth]) -> dict[str, object]:
    """The whole answer: is everything healthy, and how is each account doing."""
    return {"healthy": is_healthy(accounts), "accounts": [health_json(account) for account in accounts]}


def health_json(health: AccountHealth) -> dict[str, object]:
    """One account's health as `triage health --json` and /healthz give it."""
    value = dataclasses.asdict(health)
    for name in ("last_finished", "last_failed"):
        run = getattr(health, name)
        value[name] = run and {"id": run.id, "finished_at": stamp(run.finished_at), "reason": run.reason}
    value["oldest_unlabelled"] = stamp(health.oldest_unlabelled)
    return value
