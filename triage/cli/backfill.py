"""`triage backfill`: ordinary capped runs over mail older than `since`, until done or stopped."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from triage.cli import open as parts
from triage.cli.run import exit_code, make_run, stop_on_signals
from triage.cli.theme import make_console
from triage.domain.record import Trigger


def backfill_command(config: str | None, account: str | None, *, limit: int) -> int:
    """Sort at most `limit` older messages, newest first; 0 done or stopped, otherwise as a run fails.

    The label is the state, so a later call goes on where this one ended. Between two runs the schedule gets its turn:
    a fire that waits is older than the next run of a backfill, and the queue takes the oldest first.
    """
    with parts.opened(config) as app, stop_on_signals(app.stop):
        settings = parts.one_account(app, account)
        done, left, started = 0, limit, time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"backfill {settings.name}", total=limit)
            while left > 0 and not app.stop.is_set():
                run = make_run(app, settings.name, {"limit": str(min(left, settings.batch))}, Trigger.BACKFILL)
                if run is None:
                    break
                code = exit_code(run)
                if code:
                    parts.say(run.error or f"run {run.id} failed: {run.reason}")
                    return code
                sorted_now = run.counts.get("labelled", 0)
                if not sorted_now:
                    if run.counts.get("not_asked"):
                        parts.say("The decision models cannot be asked now; call again later to go on.")
                        return 1
                    break
                done, left = done + sorted_now, left - sorted_now
                progress.update(task, advance=sorted_now)
        seconds = time.monotonic() - started
        ended = "stopped" if app.stop.is_set() else "limit reached" if left <= 0 else "nothing older is left"
        parts.say(f"Sorted {done} older messages in {seconds:.0f} s; {ended}.")
    return 0
