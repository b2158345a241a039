"""Bearer tokens for the tool over HTTP: each is bound to runs, ends with its time, and is known only by its key."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import timedelta
from typing import Any

from triage.agent.ports import ToolLedger
from triage.ports import Clock

RUNS = "triage.runs"
"""Where a request carries the runs its token is bound to."""

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]

_REFUSAL = b'{"error":"unauthorized","detail":"send Authorization: Bearer TOKEN; triage tool token issues one"}'


def new_token(ledger: ToolLedger, clock: Clock, runs: list[str], seconds: int) -> str:
    """A token for these runs. It is shown once and kept nowhere."""
    token = "tmt-" + secrets.token_urlsafe(32)
    ledger.issue_token(token_key(ledger, token), runs, clock.now() + timedelta(seconds=seconds))
    return token


def token_key(ledger: ToolLedger, token: str) -> str:
    return ledger.key(f"bearer {token}")


def guarded(app: App, ledger: ToolLedger, clock: Clock) -> App:
    """The application behind a check of the token: no token, no answer, and nothing told about why."""

    async def check(
        scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        runs = _runs_of(scope, ledger, clock)
        if runs is None:
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})
            return
        scope[RUNS] = runs
        await app(scope, receive, send)

    return check


def _runs_of(scope: Scope, ledger: ToolLedger, clock: Clock) -> frozenset[str] | None:
    found = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(found) != 1:
        return None
    kind, _, token = found[0].decode("latin-1").partition(" ")
    if kind.lower() != "bearer" or not 20 <= len(token) <= 200:
        return None
    return ledger.token_runs(token_key(ledger, token.strip()), clock.now())
