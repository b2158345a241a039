"""`triage runs` and `triage show`."""

from __future__ import annotations

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli.jsonview import run_head_json, run_json
from triage.cli.render import run_view, runs_table
from triage.cli.theme import make_console
from triage.domain.category import Action
from triage.domain.errors import ConfigError
from triage.domain.record import Run


def runs_command(config: str | None, account: str | None, *, limit: int, as_json: bool) -> int:
    """List the latest runs, newest first."""
    with parts.opened(config) as app:
        name = app.account(account).name if account else None
        runs = app.ledger.runs(name, limit=limit)
    if as_json:
        parts.print_json([run_head_json(run) for run in runs])
    else:
        make_console().print(runs_table(runs))
    return 0


def show_command(config: str | None, run_id: str | None, *, message: str | None, as_json: bool) -> int:
    """Tell one run, or one message's decision."""
    with parts.opened(config) as app:
        if message is not None:
            from triage.cli.story import story_command

            return story_command(app, message, as_json=as_json)
        run = find_run(app, run_id)
        steps, decisions = app.ledger.steps(run.id), app.ledger.decisions(run.id)
        account = app.settings.account(run.account)
    parent = account.categories.parent if account else "Triage"
    if as_json:
        parts.print_json(run_json(run, steps, decisions, parent=parent))
    else:
        categories = account.categories.categories if account else ()
        archiving = [c.id for c in categories if c.action is Action.ARCHIVE]
        make_console().print(run_view(run, steps, decisions, archiving=archiving))
    return 0


def find_run(app: App, run_id: str | None) -> Run:
    """The run of that id or unique prefix, else the latest. Raises ConfigError if there is none."""
    if run_id is None:
        latest = app.ledger.runs(limit=1)
        if not latest:
            raise ConfigError("No runs yet. `triage run` makes one.")
        return latest[0]
    run = app.ledger.run(run_id)
    if run is None:
        raise ConfigError(f"No run begins with {run_id}, or several do. `triage runs` lists them.")
    return run
