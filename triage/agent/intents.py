"""Plain words to an intent, by a few rules. What they cannot sort is for a person; nothing is ever done by default.

The words of a request are data. A misspelt search phrase ("fake e mail com") is no instruction, and no signal to go
and use another tool; and no phrase turns a query into a send, because there is nothing here that could send.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from triage.agent.states import Intent

FLOOR = 0.5
"""A decision model's answer below this counts as none, as everywhere in the program."""

_SENDING = re.compile(
    r"\b(?:(?:send|forward|reply(?: to)?|write) (?:\w+ ){0,3}(?:e-?mail|mail|message|it|them|him|her)\b"
    r"|(?:send|forward|reply)\b.{0,40}\b(?:to|from)\b.{0,40}@"
    r"|ignore (?:the|your|all|any)\b.{0,30}\b(?:policy|rules?|limits?|instructions?)"
    r"|(?:env[ií]a|reenv[ií]a|manda|responde)\w*\b.{0,20}\b(?:correo|mensaje|email|mail)\b"
    r"|ignora\b.{0,30}\b(?:pol[ií]tica|reglas?|l[ií]mites?|instrucciones))",
    re.IGNORECASE | re.DOTALL,
)
_AGAIN = (
    r"(?:re-?send|send again|new (?:e-?mail|mail|message|code|link)"
    r"|(?:otro|nuevo) (?:correo|mensaje|email|c[oó]digo|enlace))"
)
_ASKING = r"(?:request|ask for|trigger|cause|solicita|pide)"
_RULES: tuple[tuple[Intent, re.Pattern[str]], ...] = tuple(
    (intent, re.compile(pattern, re.IGNORECASE))
    for intent, pattern in (
        (
            Intent.REQUEST_NEW,
            rf"\b(?:request|ask for|trigger|cause|solicita|pide)\b.{{0,40}}{_AGAIN}|\b{_AGAIN} (?:request|please)\b",
        ),
        (Intent.TAKE_LINK, r"\b(?:take|get|extract|read|toma|saca|lee)\b.{0,40}\b(?:link|url|enlace)\b"),
        (Intent.TAKE_CODE, r"\b(?:take|get|extract|read|toma|saca|lee)\b.{0,40}\b(?:code|otp|pin|c[oó]digo)\b"),
        (Intent.WAIT_MESSAGE, r"\b(?:wait|espera)\w*\b"),
        (
            Intent.VERIFY_EXISTING,
            r"\b(?:check|verify|confirm|look|see|find|comprueba|verifica|busca|mira)\w*\b.{0,60}"
            r"\b(?:message|e-?mail|mail|arrived|came|correo|mensaje|lleg[oó])\b",
        ),
        (Intent.REPORT_STATUS, r"\b(?:status|state of|report|estado|informa)\b"),
    )
)

AskModel = Callable[[str], tuple[Intent | None, float]]
"""The deciding chain's word on a text: an intent or none, and the confidence."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read out of a text: one intent, or the reason why not."""

    intent: Intent | None
    reason: str


def read_intent(text: str, ask_model: AskModel | None = None) -> Read:
    """The one intent of a text. `sending_is_impossible` where it wants to send, or to get round the policy."""
    if _SENDING.search(text) and not _RULES[0][1].search(text):
        return Read(None, "sending_is_impossible")
    found = [intent for intent, pattern in _RULES if pattern.search(text)]
    if len(found) == 1:
        return Read(found[0], "rules")
    if len(found) > 1:
        return Read(None, "several_intents")
    if ask_model is not None:
        intent, confidence = ask_model(text)
        if intent is not None and confidence >= FLOOR:
            return Read(intent, "decision_model")
    return Read(None, "unknown_intent")
