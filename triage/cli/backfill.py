"""`triage backfill`: ordinary capped runs over mail older than `since`, until done or stopped."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli.run import exit_code, queue_run, see_through, stop_on_signals
from triage.cli.theme import make_console
from triage.domain.record import Run, Trigger
from triage.schedule.worker import work

FRUITLESS_RUNS = 3
"""So many runs in a row that label nothing end a backfill: what is left cannot be sorted now."""


def backfill_command(config: str | None, account: str | None, *, limit: int) -> int:
    """Sort at most `limit` older messages, newest first; 0 done or stopped, otherwise as a run fails.

    The label is the state, so a later call goes on where this one ended.
    """
    with parts.opened(config) as app, stop_on_signals(app.stop):
        settings = parts.one_account(app, account)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"backfill {settings.name}", total=limit)
            started = time.monotonic()
            done, code, ended = backfill(app, settings.name, limit, lambda n: progress.update(task, completed=n))
        parts.say(f"Sorted {done} older messages in {time.monotonic() - started:.0f} s; {ended}")
        return code


def backfill(app: App, account: str, limit: int, on_progress: Callable[[int], None]) -> tuple[int, int, str]:
    """Make runs until `limit` messages are sorted; how many were, the exit code, and a sentence on why it ended."""
    done, fruitless = 0, 0
    while done < limit:
        run = _one_run(app, account, min(limit - done, app.account(account).batch))
        done += run.counts.get("labelled", 0) if run else 0
        on_progress(done)
        if app.stop.is_set():
            return done, 0, "stopped. Call again to go on."
        if run is None or exit_code(run):
            return (
                done,
                exit_code(run) if run else 1,
                f"a run failed: {run.error or run.reason if run else 'it is gone'}",
            )
        if not run.counts.get("selected"):
            return done, 0, "nothing older is left."
        fruitless = 0 if run.counts.get("labelled") else fruitless + 1
        if fruitless and run.counts.get("not_asked"):
            return done, 1, "the decision models cannot be asked now. Call again later to go on."
        if fruitless == FRUITLESS_RUNS:
            return done, 1, "what is left could not be labelled; see `triage show`."
    return done, 0, "the limit is reached."


def _one_run(app: App, account: str, size: int) -> Run | None:
    """One run through the queue. Whatever of this account waits there for longer is done first, so that a backfill
    never keeps the schedule waiting for more than one run."""
    queued = queue_run(app, account, Trigger.BACKFILL, {"limit": str(size)})
    place = app.workplace()
    return see_through(app, queued, lambda: work(place, [account]))
