"""From a request to a response: who may read, which page, and what to say when something fails."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from triage.bootstrap import App
from triage.config.secret import Secret
from triage.config.settings import is_loopback
from triage.domain.errors import ConfigError, LedgerError, TriageError
from triage.report.health_json import health_report, is_healthy
from triage.web.guard import refusal, shows_token
from triage.web.kept import TooSlow
from triage.web.messages import JSON, Request, Response, plain
from triage.web.metrics import Metrics
from triage.web.page import STATIC_TYPES, NotThere, Page, render, static_file, static_path
from triage.web.pages import category, corrections, cost, message, overview, run, tool
from triage.web.room import Room

PROBE_PATIENCE_S = 1.0
"""How long a probe waits for the mailboxes: probes have time-outs of their own, often of a few seconds."""
TOKEN_S = 60.0
"""How long a token is used before its source is asked again: a rotated file is picked up without a restart."""

PageOf = Callable[..., Page]

ROUTES: tuple[tuple[re.Pattern[str], PageOf], ...] = tuple(
    (re.compile(pattern), page)
    for pattern, page in (
        ("/", overview.overview),
        ("/runs", run.all_runs),
        ("/runs/(?P<run_id>[^/]+)", run.one_run),
        ("/messages", message.find),
        ("/messages/(?P<key>[^/]+)", message.one_message),
        ("/categories", category.all_categories),
        ("/categories/(?P<account>[^/]+)/(?P<category_id>[^/]+)", category.one_category),
        ("/cost", cost.cost),
        ("/corrections", corrections.corrections),
        ("/tool", tool.all_runs),
        ("/tool/(?P<run_id>[^/]+)", tool.one_run),
    )
)
"""Every page by its path. A new subject is a module in `pages` and a line here."""


class Site:
    """Answers every request; raises nothing."""

    def __init__(self, app: Callable[[], App], log: Any, *, listens_on: str) -> None:
        self._app, self._log, self._listens_on = app, log, listens_on
        self._room = Room(app)
        self._metrics = Metrics(self._room)
        self._tokens = _Token(app)
        self._tokens.current()

    def answer(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except NotThere as error:
            return self._page(
                Page("message.html", "Not here", values={"text": str(error), "again_s": 0}, status=HTTPStatus.NOT_FOUND)
            )
        except TooSlow:
            text = "This is being counted for the first time. The page loads itself again in a moment."
            return self._trouble("Not yet", text, again_s=2)
        except TriageError as error:
            self._log.warning("page_failed", path=request.path, detail=str(error))
            return self._trouble("The records cannot be read", str(error))
        except Exception as error:  # noqa: BLE001 - one page that fails must not end the server
            self._log.error("page_failed", path=request.path, exc_info=error)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, "This page failed; the log says why.")

    def warm_up(self) -> None:
        """Begin to find out what the first visitor would have to wait for."""
        threading.Thread(target=self._warm_up, name="web-warm-up", daemon=True).start()

    def _warm_up(self) -> None:
        try:
            self._room.warm_up()
            self._metrics.text("")
        except TriageError as error:
            self._log.warning("warm_up_failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - the visitor will be told
            self._log.error("warm_up_failed", exc_info=error)

    def _answer(self, request: Request) -> Response:
        token = self._tokens.current()
        if self._app().settings.http is None or (token is None and not is_loopback(self._listens_on)):
            # Reread configuration: the socket is still the old one, and what it lets through must not grow.
            return plain(HTTPStatus.SERVICE_UNAVAILABLE, "The configuration of http was changed: restart triage.")
        if request.path == "/healthz":
            return self._health(entitled=token is None or shows_token(request, token))
        refused = refusal(request, token, self._listens_on)
        if refused is not None:
            return refused
        if request.path == "/metrics":
            body, content_type = self._metrics.text(request.headers.get("accept", ""))
            return Response(body, content_type=content_type)
        for name, content_type in STATIC_TYPES.items():
            if request.path == static_path(name):
                kept = {"Cache-Control": "public, max-age=31536000, immutable"}
                return Response(static_file(name), content_type=content_type, headers=kept)
        for pattern, page in ROUTES:
            if match := pattern.fullmatch(request.path):
                return self._page(page(self._room, request, **match.groupdict()), request.query.get("account", ""))
        raise NotThere(f"There is no page {request.path}.")

    def _health(self, *, entitled: bool) -> Response:
        """200 or 503, with the report of `triage health --json` for whoever may read the pages."""
        try:
            accounts = self._room.health_now(PROBE_PATIENCE_S)
            healthy, report = is_healthy(accounts), health_report(accounts)
        except TooSlow:
            told = "the mailboxes have not been looked into yet; ask again in a moment"
            healthy, report = False, {"healthy": False, "error": told}
        except LedgerError as error:
            healthy, report = False, {"healthy": False, "error": str(error)}
        body = json.dumps(report if entitled else {"healthy": healthy}, ensure_ascii=False, indent=2)
        status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
        return Response(f"{body}\n".encode(), status, JSON)

    def _page(self, page: Page, account: str = "") -> Response:
        return render(page, account_asked=account, now=self._room.now())

    def _trouble(self, title: str, text: str, again_s: int = 0) -> Response:
        values = {"text": text, "again_s": again_s}
        return self._page(Page("message.html", title, values=values, status=HTTPStatus.SERVICE_UNAVAILABLE))


class _Token:
    """The token in force, fetched from its source once a minute."""

    def __init__(self, app: Callable[[], App]) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._known: tuple[Secret, str, float] | None = None

    def current(self) -> str | None:
        """None if none is configured. Raises ConfigError if it cannot be read."""
        app = self._app()
        secret = app.settings.http.token if app.settings.http else None
        if secret is None:
            return None
        with self._lock:
            now = app.clock.monotonic()
            if self._known is None or self._known[0] != secret or now >= self._known[2]:
                value = secret.get()
                if not value:
                    raise ConfigError(f"{secret.label}: the token is empty")
                self._known = (secret, value, now + TOKEN_S)
            return self._known[1]
