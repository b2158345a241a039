"""One message: every decision about it, and what people made of them."""

from __future__ import annotations

from collections.abc import Sequence

from triage.domain.record import DecisionRecord
from triage.report.story import Event
from triage.report.story import tell as tell_story
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
    decisions = _all_decisions(room, key)
    if not decisions:
        raise NotThere(f"No single message has a key that begins with {key}.")
    archiving = room.archiving(decisions[0].account)
    values = {
        "told": [tell(decision, archiving, ALL_OPTIONS) for decision in decisions],
        "story": _story(room, decisions),
        "parent": _parent(room, decisions[0].account),
    }
    return Page("decision.html", f"Message {decisions[0].message_key[:8]}", "runs", values)


def _all_decisions(room: Room, key: str) -> Sequence[DecisionRecord]:
    """Newest first, those under its other keys too: a message that was moved has another one there."""
    found = room.ledger.decision_by_key(key)
    if not found:
        return ()
    same = {decision.id: decision for decision in found}
    if found[0].message_id_key:
        others = room.ledger.decisions_by_message(found[0].account, found[0].message_id_key)
        same |= {decision.id: decision for decision in others}
    return sorted(same.values(), key=lambda decision: (decision.decided_at, decision.id), reverse=True)


def _story(room: Room, decisions: Sequence[DecisionRecord]) -> Sequence[Event]:
    """The sentences of `triage show --message`."""
    ledger = room.ledger
    runs = {d.run_id: run for d in decisions if (run := ledger.run(d.run_id)) is not None}
    heirs = [d.inherited_from for d in decisions if d.inherited_from]
    ancestors = ledger.explained(decisions[0].account, heirs) if heirs else {}
    return tell_story(decisions[::-1], ledger.corrections_of([d.id for d in decisions]), runs, ancestors)


def _parent(room: Room, account: str) -> str:
    settings = room.settings_of(account)
    return settings.categories.parent if settings else ""
