"""`triage tool ...`: the bounded mail tool on the command line. Options make the same request every surface takes.

The exit code is the state's: found 0, invalid_request 2, pending 10, not_found 11, timeout 12, expired 13,
ambiguous 14, cancelled 15, forbidden 16, rejected 17, needs_review 18. A command that did just what it is there for
exits 0: `open` a run, `cancel` it, `request` a mail, `show` a status.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from triage.agent.result import Result
    from triage.agent.tool import MailTool
    from triage.bootstrap import App

tool_app = typer.Typer(
    name="tool",
    help="The bounded mail tool: open a run, wait for its mail, take the link or code. docs/mail-tool.md",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Text = str | None
Config = Annotated[Text, typer.Option("--config", metavar="DIR", help="Directory of triage.yaml.")]
PolicyFile = Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="Default: policy.yaml there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Run = Annotated[Text, typer.Option("--run", metavar="ID", help="The run.")]
MaxReads = Annotated[Text, typer.Option("--max-reads", metavar="N", help="Looks this run may spend.")]
Mailbox = Annotated[Text, typer.Option("--mailbox", metavar="ID", help="The run's mailbox_id.")]
Request = Annotated[Text, typer.Option("--request", metavar="JSON", help="The whole request; - reads it from stdin.")]
Bound = Annotated[
    list[str] | None, typer.Option("--bound-to", metavar="ID", help="Act as a caller who owns only this.")
]
_SHARED = tuple(
    Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
    for name, kind, default in (
        ("request", Request, None),
        ("config", Config, None),
        ("policy", PolicyFile, None),
        ("bound", Bound, None),
        ("as_json", AsJson, False),
    )
)

Fields = Mapping[str, object]
Call = Callable[["MailTool", Fields], "Result"]
Done = Callable[["Result"], bool]


def _asks(name: str, call: Call, done: Done = lambda _result: False) -> Callable[[Callable[..., Fields]], None]:
    """A command of the tool: what it decorates makes a request of the options that are the command's own.

    The options that all commands share are added here. `done` says whether the command did just what it is there for.
    """

    def register(fields: Callable[..., Fields]) -> None:
        def command(
            *, request: Text, config: Text, policy: Path | None, bound: list[str] | None, as_json: bool, **own: object
        ) -> int:
            with _tool(config, policy, bound) as tool:
                result = call(tool, _request(request, fields(**own)))
                return _told(result, as_json, done=done(result))

        options = [*signature(fields, eval_str=True).parameters.values(), *_SHARED]
        command.__signature__ = Signature(options)  # type: ignore[attr-defined]
        command.__annotations__ = {option.name: option.annotation for option in options}
        command.__doc__ = fields.__doc__
        tool_app.command(name)(command)

    return register


@_asks("open", lambda tool, request: tool.open(request), lambda result: result.reason == "run_opened")
def _open(
    run: Run = None,
    purpose: Annotated[Text, typer.Option("--purpose", help="A purpose of the policy.")] = None,
    reuse: Annotated[Text, typer.Option("--reuse-reason", help="Why a used run id is used again.")] = None,
    prompt_version: Annotated[Text, typer.Option("--prompt-version", help="Version of the caller's prompt.")] = None,
) -> Fields:
    """Begin a run, before the action that will cause the mail."""
    return {"run_id": run, "purpose": purpose, "reuse_reason": reuse, "prompt_version": prompt_version}


@_asks("find", lambda tool, request: tool.find(request))
def _find(
    run: Run = None,
    scope: Annotated[Text, typer.Option("--scope", help="The run's scope; its own id.")] = None,
    max_reads: MaxReads = None,
) -> Fields:
    """Look once: is the message there?"""
    return {"run_id": run, "mailbox_scope": scope or run, "max_reads": max_reads}


@_asks("ask", lambda tool, request: tool.ask(request))
def _ask(
    text: Annotated[Text, typer.Argument(help="What is wanted, in plain words.")] = None,
    run: Run = None,
    max_reads: MaxReads = None,
) -> Fields:
    """Say in plain words what is wanted; rules read one intent out of it, or it is for a person."""
    return {"run_id": run, "mailbox_scope": run, "max_reads": max_reads, "text": text}


@tool_app.command()
def wait(
    run: Run = None,
    mailbox: Mailbox = None,
    after: Annotated[Text, typer.Option("--after", metavar="TIME", help="When the action was triggered.")] = None,
    deadline: Annotated[Text, typer.Option("--deadline", metavar="S", help="Seconds for the whole wait.")] = None,
    max_polls: Annotated[Text, typer.Option("--max-polls", metavar="N", help="Looks at the mailbox.")] = None,
    interval: Annotated[Text, typer.Option("--interval", metavar="S", help="Must be the policy's own.")] = None,
    subject: Annotated[Text, typer.Option("--subject", help="Narrows the policy's rule.")] = None,
    rule: Annotated[Text, typer.Option("--rule", help="Name of a rule of the policy.")] = None,
    take: Annotated[Text, typer.Option("--take", help="none, link or code.")] = None,
    wait_id: Annotated[Text, typer.Option("--wait", metavar="ID", help="Go on with this wait.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on, call by call, until the wait is over.")] = False,
    request: Request = None,
    config: Config = None,
    policy: PolicyFile = None,
    bound: Bound = None,
    as_json: AsJson = False,
) -> int:
    """Wait for the run's message; `pending` is continued with --wait."""
    fields = {
        "run_id": run,
        "mailbox_id": mailbox,
        "after": after,
        "deadline_seconds": deadline,
        "max_polls": max_polls,
        "poll_interval_seconds": interval,
        "subject_contains": subject,
        "rule": rule,
        "take": take,
        "wait_id": wait_id,
    }
    with _tool(config, policy, bound) as tool:
        from triage.cli.tool_wait import wait_until_told

        return _told(wait_until_told(tool, _request(request, fields), follow=follow), as_json)


@_asks("take", lambda tool, request: tool.take(request))
def _take(
    kind: Annotated[Text, typer.Argument(help="link or code.")] = None, run: Run = None, mailbox: Mailbox = None
) -> Fields:
    """Take the link or code from the message the run has accepted, once."""
    return {"run_id": run, "mailbox_id": mailbox, "kind": kind}


@tool_app.command()
def redeem(
    handle: Annotated[Text, typer.Argument(help="The handle.")] = None,
    run: Run = None,
    request: Request = None,
    config: Config = None,
    policy: PolicyFile = None,
    bound: Bound = None,
) -> int:
    """Print the value behind a handle, once. For the program that acts; keep it out of a model's sight."""
    with _tool(config, policy, bound) as tool:
        result, value = tool.redeem(_request(request, {"run_id": run, "handle": handle}))
    if value is None:
        return _told(result, as_json=False)
    sys.stdout.write(f"{value}\n")
    return 0


@_asks("request", lambda tool, request: tool.request_new(request), lambda result: result.reason == "requested")
def _request_new(run: Run = None, mailbox: Mailbox = None) -> Fields:
    """Ask the application, through the policy's hook, to cause its mail once more."""
    return {"run_id": run, "mailbox_id": mailbox}


@_asks("cancel", lambda tool, request: tool.cancel(request), lambda result: result.state == "cancelled")
def _cancel(
    run: Run = None,
    wait_id: Annotated[Text, typer.Option("--wait", metavar="ID", help="Only this wait.")] = None,
    reason: Annotated[Text, typer.Option("--reason", help="cancelled, trigger_rejected or finished.")] = None,
) -> Fields:
    """Stop a wait, or end the run."""
    return {"run_id": run, "wait_id": wait_id, "reason": reason}


@_asks("show", lambda tool, request: tool.status(request), lambda result: result.run is not None)
def _show(run: Run = None) -> Fields:
    """How a run stands, from the ledger alone."""
    return {"run_id": run}


@tool_app.command()
def receipts(
    run: Run = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    config: Config = None,
    policy: PolicyFile = None,
    as_json: AsJson = False,
) -> int:
    """What was asked of the tool and how it ended, newest first."""
    from triage.cli.tool_text import receipts_text

    with _tool(config, policy, None) as tool:
        sys.stdout.write(receipts_text(tool.receipts(run, limit), as_json=as_json))
    return 0


@tool_app.command()
def token(
    run: Annotated[list[str], typer.Option("--run", metavar="ID", help="A run the bearer owns; repeatable.")],
    seconds: Annotated[int, typer.Option("--seconds", min=60, max=604_800, help="How long it is good for.")] = 3600,
    config: Config = None,
) -> int:
    """Print a bearer token for `triage mcp --http`, bound to these runs. It is shown this once."""
    from triage.agent.bearer import new_token

    with opened_app(config) as app:
        sys.stdout.write(f"{new_token(app.ledger, app.clock, run, seconds)}\n")
    return 0


# ---------------------------------------------------------------- what the commands share


@contextmanager
def opened_app(config: str | None) -> Iterator[App]:
    """The configured App, closed afterwards. Raises ConfigError."""
    from triage.cli import open as parts

    with parts.opened(config) as app:
        yield app


@contextmanager
def _tool(config: str | None, policy: Path | None, bound: list[str] | None) -> Iterator[MailTool]:
    with opened_app(config) as app:
        tool = app.tool(policy, surface="cli")
        try:
            yield tool.bound_to(bound) if bound else tool
        finally:
            tool.close()


def _request(whole: str | None, fields: Mapping[str, object]) -> Mapping[str, object]:
    """The request: the JSON that was given, or the options that were."""
    if whole is None:
        return {name: value for name, value in fields.items() if value is not None}
    import json

    try:
        raw = json.loads(sys.stdin.read() if whole == "-" else whole)
    except (ValueError, RecursionError):
        raw = None
    return cast("Mapping[str, object]", raw)  # whatever else it is, the tool says so, as on every surface


def _told(result: Result, as_json: bool, *, done: bool = False) -> int:
    """Print the result; its exit code."""
    from triage.agent.states import EXIT
    from triage.cli.tool_text import result_text

    sys.stdout.write(result_text(result, as_json=as_json))
    return 0 if done else EXIT[result.state]
