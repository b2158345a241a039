"""The words of the mail tool: intents, states, stages, what to do next. One word has one meaning on every surface."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Intent(StrEnum):
    """What a caller may want. None of them is to send."""

    VERIFY_EXISTING = "verify_existing_message"
    WAIT_MESSAGE = "wait_for_message"
    TAKE_LINK = "take_link"
    TAKE_CODE = "take_code"
    REQUEST_NEW = "request_new_message"
    REPORT_STATUS = "report_status"


class State(StrEnum):
    """How a call ended. Exactly one of them, never a yes or no."""

    FOUND = "found"
    PENDING = "pending"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    EXPIRED = "expired"
    AMBIGUOUS = "ambiguous"
    CANCELLED = "cancelled"
    FORBIDDEN = "forbidden"
    REJECTED = "rejected"
    INVALID = "invalid_request"
    REVIEW = "needs_review"


class Stage(StrEnum):
    """How far a call came: a wrong intent, a refused action and a missing mail are three different incidents."""

    INTENT = "intent_detected"
    AUTHORIZED = "action_authorized"
    EVIDENCE = "evidence_obtained"


class NextAction(StrEnum):
    """The one safe next step of the caller."""

    USE = "use_artifact"
    CONTINUE = "continue"
    RETRY_LATER = "retry_after_delay"
    STOP = "stop"
    NEW_RUN = "open_new_run"
    FIX = "fix_request"
    PERSON = "ask_a_person"


TO_DO: Mapping[NextAction, str] = {
    NextAction.USE: "use what was taken",
    NextAction.CONTINUE: "go on",
    NextAction.RETRY_LATER: "try again later, within the limits",
    NextAction.STOP: "stop; asking again changes nothing",
    NextAction.NEW_RUN: "open a new run",
    NextAction.FIX: "mend the request",
    NextAction.PERSON: "leave it to a person",
}
"""Each next step in words for people."""


class Kind(StrEnum):
    """What can be taken from an accepted message."""

    LINK = "link"
    CODE = "code"


NEVER_RETRYABLE = frozenset({State.FORBIDDEN, State.REJECTED, State.INVALID})

EXIT: Mapping[State, int] = {
    State.FOUND: 0,
    State.INVALID: 2,
    State.PENDING: 10,
    State.NOT_FOUND: 11,
    State.TIMEOUT: 12,
    State.EXPIRED: 13,
    State.AMBIGUOUS: 14,
    State.CANCELLED: 15,
    State.FORBIDDEN: 16,
    State.REJECTED: 17,
    State.REVIEW: 18,
}
"""The exit code of each state on the command line."""

_VOCABULARIES = ("gate", "budget", "receipt", "poll")
_DIALECT: Mapping[State, tuple[str | None, str | None, str | None, str | None]] = {
    State.FOUND: ("found", "observed", "received", "found"),
    State.PENDING: (None, "pending", "pending", None),
    State.NOT_FOUND: ("not_found", None, "pending", None),
    State.TIMEOUT: ("timeout", "expired", "expired", "timeout"),
    State.EXPIRED: ("expired", "expired", "expired", None),
    State.AMBIGUOUS: (None, "ambiguous", None, "ambiguous"),
    State.CANCELLED: (None, "cancelled", None, None),
    State.FORBIDDEN: ("forbidden", None, "rejected", None),
    State.REJECTED: (None, None, "rejected", None),
    State.INVALID: (None, None, None, "invalid_request"),
    State.REVIEW: ("needs_review", None, None, None),
}

DIALECT: Mapping[State, Mapping[str, str | None]] = {
    state: dict(zip(_VOCABULARIES, words, strict=True)) for state, words in _DIALECT.items()
}
"""Each state in four smaller vocabularies that callers may already speak; None where one has no word for it.

`gate` tells intents from permission, `budget` waits within a latency budget, `receipt` returns typed receipts, `poll`
counts polls. `expired` stands for two things in three of them: here the run's end and the wait's deadline are two.
"""
