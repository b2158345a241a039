"""What a server's error status means for the message and for the rest of the batch. Pure.

Servers quote their input in error texts, so nothing of an error text is ever repeated: only its structured codes and
the number of a limit are read, and a free text only where the mail it may quote is our own (`neutral`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.decide.answers import mapping, sequence
from triage.domain.decision import FailureKind

CREDIT_CODES = frozenset({"insufficient_quota", "insufficient_credits", "billing_hard_limit_reached"})
LENGTH_CODES = frozenset({"context_length_exceeded", "string_above_max_length", "request_too_large"})
MODEL_CODES = frozenset({"model_not_found", "invalid_model", "model_not_supported"})
REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation"})

_PASSING = frozenset({408, 409, 421, 425, 429})
"""Client errors that are about this moment or this connection, not about the request."""

_AT_MOST = re.compile(
    r"(?:at most|max(?:imum)?(?: of| is|:)?|limit(?: of| is|:)?|up to|more than|exceeds?|[<>]=?)\s*([0-9]{1,4})\b", re.I
)
_OPTIONS = re.compile(r"\b(option|choice|criteria|categor|label|items after validation)", re.I)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status read: the kind of failure, its code, a sentence that says what to do, and a limit the server named."""

    kind: FailureKind
    code: str
    message: str
    option_limit: int | None = None


def read_refusal(status: int, body: object, *, neutral: bool = False) -> Refusal:
    """Read an HTTP status outside 2xx with its parsed body (None if it was no JSON).

    `neutral` says that the mail was our own, so that a refusal of the request is a refusal of every request.
    """
    codes = _codes(body)
    if status == 401:
        return _configuration("unauthorized", "The server refuses the API key (401). Set a valid api_key.")
    if status == 402 or codes & CREDIT_CODES:
        return _configuration("out_of_credit", f"The account at the server is out of credit ({status}). Top it up.")
    if status == 403:
        return _configuration(
            "forbidden", "The server forbids this request (403). Check the api_key and what it may use."
        )
    if status == 404 or codes & MODEL_CODES:
        return _configuration(
            "not_found",
            f"The server does not know this address or model ({status}). Check base_url, provider and model.",
        )
    if status in (405, 410, 501):
        return _configuration("no_such_service", f"The server offers no such service ({status}). Check base_url.")
    if status in _PASSING or status < 400 or status >= 500:
        return Refusal(FailureKind.TRANSIENT, f"http_{status}", f"The server is busy or failing ({status}).")
    return _client_error(status, body, codes, neutral)


def read_error_in_answer(data: object, *, neutral: bool = False) -> Refusal | None:
    """Routers report an error of the server behind them with status 200 and an error object in place of an answer; its
    `code` is the status then. None if this is no such thing."""
    body = mapping(data)
    error = body.get("error")
    if not error or body.keys() & {"answers", "choices"}:
        return None
    code = mapping(error).get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return read_refusal(code, data, neutral=neutral)
    return Refusal(FailureKind.TRANSIENT, "error_in_answer", "The server sends an error in place of an answer.")


def _client_error(status: int, body: object, codes: frozenset[str], neutral: bool) -> Refusal:
    limit = _option_limit(body, neutral)
    if limit is not None:
        return _configuration(
            "too_many_options",
            f"The server takes at most {limit} options in one question. Use fewer categories or another provider.",
            limit,
        )
    if status == 413 or codes & LENGTH_CODES:
        return Refusal(FailureKind.MESSAGE, "too_large", f"The mail is too long for the model ({status}).")
    if codes & REFUSAL_CODES:
        return Refusal(FailureKind.MESSAGE, "refused", f"The server refuses this mail's content ({status}).")
    if neutral or _blames_request(body):
        return _configuration(
            "request_refused",
            f"The server refuses the request as such, whatever the mail ({status}). Check provider, model and the "
            "number of categories.",
        )
    return Refusal(FailureKind.MESSAGE, f"http_{status}", f"The server refuses this one mail ({status}).")


def _configuration(code: str, message: str, option_limit: int | None = None) -> Refusal:
    return Refusal(FailureKind.CONFIGURATION, code, message, option_limit)


def _codes(body: object) -> frozenset[str]:
    """Machine codes of the error shapes in use: {"error": {"code", "type"}}, {"detail": {"error_type"}}."""
    found = set()
    for part in (mapping(body).get("error"), mapping(body).get("detail"), body):
        for key in ("code", "type", "error_type"):
            value = mapping(part).get(key)
            if isinstance(value, str) and len(value) <= 64:
                found.add(value.lower())
    return frozenset(found)


def _blames_request(body: object) -> bool:
    """Does the server's structured error point at the model or the question, and nowhere at the mail?"""
    param = mapping(mapping(body).get("error")).get("param")
    places = [param.partition(".")[0].partition("[")[0]] if isinstance(param, str) else []
    for item in sequence(mapping(body).get("detail")):
        loc = [part for part in sequence(mapping(item).get("loc")) if part != "body"]
        places.append(str(loc[0]) if loc else "")
    return bool(places) and all(place in ("model", "questions") for place in places)


def _option_limit(body: object, neutral: bool) -> int | None:
    for item in sequence(mapping(body).get("detail")):
        loc = sequence(mapping(item).get("loc"))
        if "questions" in loc and mapping(item).get("type") == "too_long":
            told = mapping(mapping(item).get("ctx")).get("max_length")
            limit = told if isinstance(told, int) else _number(mapping(item).get("msg"))
            if limit is not None:
                return limit
    if not neutral:
        return None
    return next((limit for text in _texts(body) if _OPTIONS.search(text) and (limit := _number(text))), None)


def _number(text: object) -> int | None:
    found = _AT_MOST.search(text[:2000]) if isinstance(text, str) else None
    return int(found[1]) if found and 2 <= int(found[1]) <= 4096 else None


def _texts(value: object, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    if depth > 4:
        return []
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for child in children for text in _texts(child, depth + 1)]
