"""One message: every decision about it, and what people made of them."""

from __future__ import annotations

from triage.web.messages import Request
from triage.web.page import NotThere, Page
from triage.web.pages.telling import tell
from triage.web.room import Room

ALL_OPTIONS = 255
LEAST_DIGITS = 4


def find(room: Room, request: Request) -> Page:
    """The message whose key is given in the search field."""
    return one_message(room, request, request.query.get("key", "").strip().casefold())


def one_message(room: Room, request: Request, key: str) -> Page:
    """Why a message is where it is: its decisions, newest first, each with every probability."""
    del request
    if len(key) < LEAST_DIGITS:
        raise NotThere(f"A message is found by its key, of which at least the first {LEAST_DIGITS} digits are needed.")
    decisions = room.ledger.decision_by_key(key)
    if not decisions:
        raise NotThere(f"No single message has a key that begins with {key}.")
    archiving = room.archiving(decisions[0].account)
    values = {
        "told": [tell(decision, archiving, ALL_OPTIONS) for decision in decisions],
        "corrections": room.ledger.corrections_of([decision.id for decision in decisions]),
        "parent": _parent(room, decisions[0].account),
    }
    return Page("decision.html", f"Message {decisions[0].message_key[:8]}", "runs", values)


def _parent(room: Room, account: str) -> str:
    settings = room.settings_of(account)
    return settings.categories.parent if settings else ""
