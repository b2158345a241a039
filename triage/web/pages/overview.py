"""The first page: is everything all right, and what happened lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from triage.report.health import AccountHealth
from triage.report.health_json import is_healthy
from triage.web.kept import Seen, TooSlow
from triage.web.messages import Request
from triage.web.page import Page
from triage.web.room import AUDITED, Room
from triage.web.sums import Sums

RUNS = 8
DAY = 1
MOST_CARDS = 24
"""Accounts whose last day is summed up on the first page; more than these are only listed."""


@dataclass(frozen=True, slots=True)
class Card:
    """One account: how it is doing (None: not looked at yet), and its last 24 hours (None: not summed up)."""

    account: str
    health: AccountHealth | None
    day: Sums | None


def overview(room: Room, request: Request) -> Page:
    """Health, the last runs, what waits, the invariants."""
    del request
    health = _health(room)
    by_name = {each.account: each for each in health.value} if health else {}
    cards = [
        Card(name, by_name.get(name), _day(room, name) if number < MOST_CARDS else None)
        for number, name in enumerate(room.accounts())
    ]
    try:
        audit = room.audit()
    except TooSlow:
        audit = None
    values = {
        "cards": cards,
        "looked_at": _when(health),
        "headline": _headline(health),
        "checks": audit.value.checks if audit else (),
        "audited_at": audit.at if audit else None,
        "audited_days": AUDITED.days,
        "breakers": _breakers(health),
        "runs": room.ledger.page_of_runs(None, None, RUNS),
    }
    return Page("overview.html", "Overview", "overview", values)


def _health(room: Room) -> Seen[tuple[AccountHealth, ...]] | None:
    try:
        return room.health()
    except TooSlow:
        return None


def _day(room: Room, account: str) -> Sums | None:
    try:
        return room.sums(account, DAY).value
    except TooSlow:
        return None


def _when(seen: Seen[tuple[AccountHealth, ...]] | None) -> datetime | None:
    return seen.at if seen else None


def _headline(seen: Seen[tuple[AccountHealth, ...]] | None) -> str:
    """How everything is, in a few words."""
    if seen is None:
        return "Overview"
    if not is_healthy(seen.value):
        return "Something needs attention"
    return "Mail is being sorted" if any(each.enabled for each in seen.value) else "The schedule is switched off"


def _breakers(seen: Seen[tuple[AccountHealth, ...]] | None) -> dict[str, str]:
    """Every provider that is not asked now, and why."""
    if seen is None:
        return {}
    return {name: state for each in seen.value for name, state in each.breakers.items() if state != "closed"}
