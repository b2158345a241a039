"""The commands and their arguments. Each imports what it needs only when it is called: `--help` must be quick.

Exit codes: 0 fine, 1 the check found something or the run failed, 2 usage or configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from triage import __version__
from triage.cli.tool import tool_app
from triage.domain.errors import TriageError

app = typer.Typer(
    name="triage",
    help="Sorts a shared inbox: one decision per mail, written back as a label in the mailbox.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Config = Annotated[str | None, typer.Option("--config", metavar="DIR", help="Directory of triage.yaml.")]
Account = Annotated[str | None, typer.Option("--account", metavar="NAME", help="Only this account.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def run_cli(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Errors the program raises on purpose become one calm message on stderr."""
    try:
        code = app(args=list(arguments), prog_name="triage", standalone_mode=False)
    except TriageError as error:
        for line in str(error).splitlines():
            print(line, file=sys.stderr)  # noqa: T201
        return 2
    except typer.Exit as exit_:
        return exit_.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        return int(getattr(error, "exit_code", 2))
    return int(code or 0)


def _version(value: bool) -> None:
    if value:
        print(f"triage {__version__}")  # noqa: T201
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep the mail server up and say how to connect.")] = False,
    port: Annotated[int | None, typer.Option("--port", help="Port of the demo's mail server.")] = None,
) -> int:
    """Sort a sample inbox on this machine: no key, no network, nothing to set up."""
    from triage.cli.demo import demo_command

    return demo_command(keep=keep, port=port)


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Where to write.")] = Path("config"),
    preset: Annotated[str, typer.Option("--preset", help="Language of the categories: en or es.")] = "en",
    host: Annotated[str, typer.Option("--host", help="IMAP server.")] = "imap.example.com",
    username: Annotated[str, typer.Option("--username", help="Login.")] = "team@example.com",
    name: Annotated[str, typer.Option("--name", help="Name of the account here.")] = "team",
    force: Annotated[bool, typer.Option("--force", help="Overwrite.")] = False,
) -> int:
    """Write a commented triage.yaml and categories.yaml."""
    from triage.cli.init import init_command

    return init_command(directory, preset, force, host=host, username=username, name=name)


@app.command()
def check(
    config: Config = None,
    account: Account = None,
    ask: Annotated[bool, typer.Option("--ask", help="Also put one tiny question to each decision model.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check the configuration and prove what each mailbox can do."""
    from triage.cli.check import check_command

    return check_command(config, account, ask=ask, as_json=as_json)


@app.command()
def serve(config: Config = None) -> int:
    """Run on schedule until told to stop (SIGTERM). SIGHUP rereads the configuration."""
    from triage.cli.serve import serve_command

    return serve_command(config)


@app.command()
def run(
    config: Config = None,
    account: Account = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, max=20, help="At most this many messages.")] = None,
    as_json: AsJson = False,
) -> int:
    """Make one run now, through the same queue as the schedule."""
    from triage.cli.run import run_command

    return run_command(config, account, limit=limit, as_json=as_json)


@app.command()
def preview(
    config: Config = None,
    account: Account = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=20, help="At most this many messages.")] = 20,
    as_json: AsJson = False,
) -> int:
    """Decide as a run would, and write nothing to the mailbox."""
    from triage.cli.run import run_command

    return run_command(config, account, limit=limit, mode="preview", as_json=as_json)


@app.command()
def backfill(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Sort at most this many older messages.")],
    config: Config = None,
    account: Account = None,
) -> int:
    """Sort mail older than `since`, in ordinary runs, until done or stopped."""
    from triage.cli.backfill import backfill_command

    return backfill_command(config, account, limit=limit)


@app.command()
def runs(
    config: Config = None,
    account: Account = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 20,
    as_json: AsJson = False,
) -> int:
    """List the latest runs."""
    from triage.cli.show import runs_command

    return runs_command(config, account, limit=limit, as_json=as_json)


@app.command()
def show(
    run_id: Annotated[str | None, typer.Argument(metavar="RUN", help="Run id, or the beginning of one.")] = None,
    config: Config = None,
    message: Annotated[
        str | None, typer.Option("--message", metavar="KEY", help="Why one message landed there.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Tell the whole story of a run, or of one message. Without RUN: the latest."""
    from triage.cli.show import show_command

    return show_command(config, run_id, message=message, as_json=as_json)


@app.command()
def health(config: Config = None, as_json: AsJson = False) -> int:
    """Is the service doing its work? Exit 1 if not."""
    from triage.cli.health import health_command

    return health_command(config, as_json=as_json)


@app.command()
def prepare(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A message (.eml) or an mbox; - is stdin.")],
    as_json: AsJson = False,
) -> int:
    """Show exactly what a model would read of a message."""
    from triage.cli.prepare import prepare_command

    return prepare_command(file, as_json)


@app.command()
def classify(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A message (.eml); - is stdin.")],
    config: Config = None,
    account: Account = None,
    as_json: AsJson = False,
) -> int:
    """Decide one message from a file, as a run would."""
    from triage.cli.classify_file import classify_command

    return classify_command(file, config, account, as_json=as_json)


@app.command("eval")
def evaluate(
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Labelled mail: .jsonl[.gz], or a folder CATEGORY/*.eml.")
    ] = None,
    config: Config = None,
    account: Account = None,
    from_mailbox: Annotated[
        bool, typer.Option("--from-mailbox", help="Measure on labels that people confirmed in the mailbox.")
    ] = False,
    predictions: Annotated[Path | None, typer.Option("--predictions", help="Write one prediction a line.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a reliability plot (SVG).")] = None,
    as_json: AsJson = False,
) -> int:
    """Measure the configured decision models on labelled mail."""
    from triage.cli.evaluate_data import evaluate_command

    return evaluate_command(
        data, config, account, from_mailbox=from_mailbox, predictions=predictions, plot=plot, as_json=as_json
    )


@app.command()
def mcp(
    run: Annotated[list[str] | None, typer.Option("--run", metavar="ID", help="A run this client owns.")] = None,
    http: Annotated[
        str | None, typer.Option("--http", metavar="ADDRESS", help="Serve over HTTP, such as 127.0.0.1:8026.")
    ] = None,
    policy: Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="The mail tool's policy.")] = None,
    config: Config = None,
) -> int:
    """Serve the mail tool to an agent that speaks MCP: on stdin and stdout, or over HTTP."""
    from triage.cli.mcp import mcp_command

    return mcp_command(config, policy, run or (), http)


app.add_typer(tool_app)


Since = Annotated[str, typer.Option("--since", metavar="SPAN", help="How far back: 7d, 12h, or a day.")]
Key = Annotated[str | None, typer.Option("--message", metavar="KEY", help="One message, by its key or its beginning.")]


@app.command()
def audit(
    config: Config = None,
    account: Account = None,
    since: Since = "7d",
    whole: Annotated[
        bool, typer.Option("--whole", help="Recompute the whole chain, whatever was verified before.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Prove the six invariants, in the records and in the mailbox. Exit 1 if one is broken."""
    from triage.cli.audit import audit_command

    return audit_command(config, account, since=since, whole=whole, as_json=as_json)


@app.command()
def report(
    config: Config = None,
    account: Account = None,
    since: Since = "30d",
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML file.")] = None,
    look: Annotated[bool, typer.Option(help="Look in the mailbox for corrections first.")] = True,
    as_json: AsJson = False,
) -> int:
    """Tell how well the categories work, what competes, what it costs: the tuning report."""
    from triage.cli.report import report_command

    return report_command(config, account, since=since, html=html, look=look, as_json=as_json)


@app.command()
def undo(
    run_id: Annotated[str | None, typer.Argument(metavar="RUN", help="Run id, or the beginning of one.")] = None,
    config: Config = None,
    message: Key = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan, change nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Take back what a run did: labels off, archived mail to the inbox, where nobody touched it since."""
    from triage.cli.undo import undo_command

    return undo_command(config, run_id, message=message, dry_run=dry_run, as_json=as_json)


@app.command()
def export(
    config: Config = None,
    account: Account = None,
    since: Since = "30d",
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="jsonl or csv.")] = "jsonl",
) -> int:
    """Write every decision of a period to stdout."""
    from triage.cli.export import export_command

    return export_command(config, account, since=since, form=form)


@app.command()
def forget(
    config: Config = None,
    sender_domain: Annotated[str | None, typer.Option("--sender-domain", metavar="DOMAIN", help="A domain.")] = None,
    message: Key = None,
    as_json: AsJson = False,
) -> int:
    """Remove the records of a sender's domain or of one message. The mailbox stays as it is."""
    from triage.cli.forget import forget_command

    return forget_command(config, sender_domain=sender_domain, message=message, as_json=as_json)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(metavar="CATEGORIES.yaml", help="The edited categories.")],
    config: Config = None,
    account: Account = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=5000, help="At most this many messages.")] = 200,
    spend_limit: Annotated[float, typer.Option("--spend", min=0, help="Ask before spending more USD.")] = 0.10,
    yes: Annotated[bool, typer.Option("--yes", help="Spend it without asking.")] = False,
    as_json: AsJson = False,
) -> int:
    """Decide recent mail by edited categories and show what would flip. Writes nothing."""
    from triage.cli.replay import replay_command

    return replay_command(config, account, file, limit=limit, yes=yes, spend_limit=spend_limit, as_json=as_json)


@app.command()
def learn(
    config: Config = None,
    account: Account = None,
    status: Annotated[bool, typer.Option("--status", help="Only show what was learned last.")] = False,
    as_json: AsJson = False,
) -> int:
    """Try what the embedded classifier learns from people's corrections, and show why it is used or not."""
    from triage.cli.learn import learn_command

    return learn_command(config, account, status=status, as_json=as_json)


@app.command()
def suggest(config: Config = None, account: Account = None, since: Since = "30d", as_json: AsJson = False) -> int:
    """Turn corrections into a diff of categories.yaml, for you to review. Applies nothing."""
    from triage.cli.suggest import suggest_command

    return suggest_command(config, account, since=since, as_json=as_json)
