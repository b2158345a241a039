"""`triage run` and `triage preview`: one manual run of each account, through the queue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli.jsonview import run_json
from triage.cli.render import run_view
from triage.cli.theme import make_console
from triage.config.settings import AccountSettings
from triage.domain.category import Action
from triage.domain.record import Run, RunState, Trigger
from triage.schedule.worker import LEASE, work

REMEDIES = {
    "configuration": "",
    "login_refused": "",
    "keywords_refused": "",
    "refused": "",
    "ledger": "",
    "unreachable": "Check host, port and security there, and whether the server is up.",
    "command_refused": "Check inbox and archive there; `triage check` says what the server offers.",
}
"""Failures that an operator mends in the configuration or at the server: exit 2. What to do, where the error itself
does not say it."""
STOPPED = "stopped"
"""Why a run failed whose caller was told to stop before it began."""


def run_command(
    config: str | None, account: str | None, *, limit: int | None, mode: str | None = None, as_json: bool = False
) -> int:
    """Make one run of each chosen account and show it; 0 done, 1 failed, 2 failed by configuration or server."""
    options = {k: v for k, v in (("limit", str(limit) if limit else None), ("mode", mode)) if v}
    codes, shown = [], []
    with parts.opened(config) as app, stop_on_signals(app.stop):
        for settings in parts.chosen(app, account):
            run = make_run(app, settings.name, options)
            if run is None:
                codes.append(1)
                continue
            codes.append(exit_code(run))
            if run.error:
                parts.say(failure_line(run, settings))
            if exit_code(run) == 2 and not as_json:
                continue
            steps, decisions = app.ledger.steps(run.id), app.ledger.decisions(run.id)
            if as_json:
                shown.append(run_json(run, steps, decisions, parent=settings.categories.parent))
            else:
                archiving = [c.id for c in settings.categories.categories if c.action is Action.ARCHIVE]
                make_console().print(run_view(run, steps, decisions, archiving=archiving))
    if as_json:
        parts.print_json(shown[0] if account and shown else shown)
    return max(codes, default=0)


def make_run(app: App, account: str, options: dict[str, str]) -> Run | None:
    """Queue a manual run and see it through, here or wherever a worker takes it."""
    queued = queue_run(app, account, Trigger.MANUAL, options)
    place = app.workplace()
    return see_through(app, queued, lambda: work(place, run_id=queued.id))


def queue_run(app: App, account: str, trigger: Trigger, options: dict[str, str]) -> Run:
    queued = app.ledger.enqueue(account, trigger, app.clock.now(), options)
    assert queued is not None, "its fire time is this very microsecond"
    return queued


def see_through(app: App, queued: Run, take: Callable[[], Run | None]) -> Run | None:
    """Wait until `queued` is closed, calling `take` to work at the queue meanwhile. Withdrawn if told to stop before
    it began. The run as it is in the end."""
    told = False
    while not app.stop.is_set():
        done = take()
        current = done if done is not None and done.id == queued.id else app.ledger.run(queued.id)
        if current is None or current.state not in (RunState.QUEUED, RunState.RUNNING):
            return current
        if done is not None:
            continue
        if not told:
            parts.say(f"account {queued.account}: another run is under way; waiting for it to end.")
            told = True
        app.ledger.expire()
        app.clock.wait(app.stop, 0.25)
    return _withdraw(app, queued)


def _withdraw(app: App, queued: Run) -> Run | None:
    """Nobody waits for this run any more: unless it has begun, it is closed as stopped."""
    if app.ledger.claim(app.owner, LEASE, run_id=queued.id) is not None:
        app.ledger.finish(queued.id, app.owner, failed=STOPPED, error="told to stop before it began")
    return app.ledger.run(queued.id)


def exit_code(run: Run) -> int:
    if run.state in (RunState.DONE, RunState.QUEUED) or run.reason == STOPPED:
        return 0
    return 2 if run.reason in REMEDIES else 1


def failure_line(run: Run, settings: AccountSettings) -> str:
    """Where, what, and what to do, in one line."""
    error = (run.error or "").rstrip(".")
    where = "" if ".yaml:" in error else f"{settings.where}: account {settings.name}: "
    remedy = REMEDIES.get(run.reason or "", "")
    return f"{where}{error}. {remedy}".rstrip()


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and Ctrl-C ask to stop: what is decided is finished, nothing new is begun."""

    def handler(number: int, frame: object) -> None:
        del number, frame
        stop.set()

    before = {s: signal.signal(s, handler) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
