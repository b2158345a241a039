"""What became of a message, in words for people: the same on a terminal and on a page. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from triage.domain.category import HIJACK_ID
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord
from triage.report.text import joined, truncated

Tone = Literal["plain", "calm", "doubt", "bad"]
"""How a fate is to look, whatever it is shown on."""

_CLOSED = {
    "gone": "gone from the inbox meanwhile",
    "person_touched": "left alone: a person was faster",
    "superseded": "decided anew later",
}
_HELD = {
    "fallback_provider": ("fallback", "a fallback provider may not archive"),
    "hidden_text": ("hidden text", "it hides text"),
    "injection_pattern": ("gives orders", "it tries to give orders"),
    "may_be_hijack": ("hijack?", "it may be a hijack"),
    "asks_for_action": ("it asks", "it asks for action"),
    "persons_question": ("a question", "a person seems to ask something"),
    "owner_in_thread": ("you wrote", "you wrote in this thread"),
}


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a message: one word for a narrow column, a few for a wide one, a tone, and which group of
    "what stayed" it belongs to ("" if it left the inbox)."""

    short: str
    long: str
    tone: Tone
    group: str


NEEDS = "For a person to read"
SUSPECT = "Written to give orders: do not trust"
UNSURE = "Unsure, so it stays"
HELD = "Sorted, but held back from the archive"
OPEN = "Not decided"
GROUPS = (NEEDS, SUSPECT, UNSURE, HELD, OPEN)


def fate(decision: DecisionRecord, archiving: Collection[str] = ()) -> Fate:
    """What became of one message. `archiving` names the categories whose action is archive, where that is known."""
    if decision.closed_reason == "preview":
        return _preview(decision, archiving)
    if decision.labelled_at is None:
        why = _CLOSED.get(decision.closed_reason or "", decision.closed_reason or "not written yet")
        return Fate("not written", spaced(why), "calm", OPEN)
    if decision.archived_at is not None:
        return Fate("archived", _archived(decision), "calm", "")
    if decision.archive:
        closed = decision.closed_reason
        return Fate("kept", _CLOSED.get(closed or "", "archive still to come"), "doubt", HELD)
    return _kept(decision, archiving)


def spaced(code: str) -> str:
    return code.replace("_", " ")


def held_back(decision: DecisionRecord) -> tuple[str, str]:
    """Why a message with an archiving label stayed: in two words, and in a few more."""
    codes = _held_codes(decision)
    if codes:
        return _HELD[codes[0]][0], joined([_HELD[code][1] for code in codes])
    if decision.confidence < decision.archive_floor:
        floor = f"under {decision.archive_floor:.2f}"
        return floor, f"{truncated(decision.confidence)} is {floor}"
    return "archive off", "this account does not archive"


def leanings(decision: DecisionRecord, count: int) -> tuple[tuple[str, float], ...]:
    """The `count` most probable options that did not become the label."""
    ranked = sorted(decision.probabilities.items(), key=lambda item: (-item[1], item[0]))
    return tuple([(name, p) for name, p in ranked if name != decision.label_id][:count])


def share(p: float) -> str:
    """A probability in three characters: `.41`."""
    return f"{p:.2f}".removeprefix("0")


def _held_codes(decision: DecisionRecord) -> list[str]:
    return [code for code in _HELD if code in decision.warnings]


def _preview(decision: DecisionRecord, archiving: Collection[str]) -> Fate:
    reaches = decision.confidence >= decision.archive_floor and not _held_codes(decision)
    if decision.archive or (decision.label_id in archiving and reaches):
        return Fate("would go", "would be archived", "calm", "")
    kept = _kept(decision, archiving)
    return Fate("would stay", kept.long, kept.tone, kept.group)


def _archived(decision: DecisionRecord) -> str:
    if decision.outcome is Outcome.INHERITED:
        return "archived with thread"
    if decision.outcome is Outcome.RECOVERED or decision.recovered_by:
        return "archived (finished later)"
    return "archived"


def _kept(decision: DecisionRecord, archiving: Collection[str]) -> Fate:
    match decision.outcome:
        case Outcome.BELOW_FLOOR:
            return Fate("unsure", "unsure: stays in inbox", "doubt", UNSURE)
        case Outcome.UNUSABLE_ANSWER:
            return Fate("no answer", "no usable answer", "bad", OPEN)
        case Outcome.CHAIN_FAILED:
            return Fate("no answer", "nobody could decide", "bad", OPEN)
    if decision.reason == "none_of_these":
        return Fate("unsure", "nothing fits: stays", "doubt", UNSURE)
    if decision.label_id == HIJACK_ID:
        return Fate("kept", "kept: do not trust it", "bad", SUSPECT)
    if decision.label_id in archiving:
        return Fate("held back", f"held back: {held_back(decision)[0]}", "doubt", HELD)
    if decision.outcome is Outcome.INHERITED:
        return Fate("kept", "kept with thread", "plain", NEEDS)
    return Fate("kept", "kept", "plain", NEEDS)
