"""The mail tool over the Model Context Protocol, stdio and streamable HTTP. The only file that imports `mcp`.

The low-level server is used on purpose: its high-level sister drops misspelt arguments in silence and repeats values in
its errors. Here the same checks run as on every other surface, and an error never holds what was sent.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from triage import __version__
from triage.agent.bearer import RUNS, guarded
from triage.agent.descriptions import TOOLS, Described
from triage.agent.ports import ToolLedger
from triage.agent.result import Result
from triage.agent.states import NEVER_RETRYABLE
from triage.agent.tool import MailTool
from triage.agent.waiting import Signals
from triage.domain.errors import LedgerError
from triage.ports import Clock

_BY_NAME: Mapping[str, Described] = {tool.name: tool for tool in TOOLS}
_INSTRUCTIONS = (
    "A bounded mail tool: open a run, trigger your action with the address it gives, wait, take the link or code. "
    "Every answer names its state, its reason and the one safe next_action. The tool cannot send mail."
)
_THREADS = 64
_PATIENCE_S = 1.0
Context = ServerRequestContext[Any, Any]
ToolFor = Callable[[Context], MailTool]
"""The tool as the caller of a request may use it."""


def mail_server(tool_for: ToolFor) -> Server[Any]:
    """An MCP server with the tools of `descriptions`."""

    limiter: list[anyio.CapacityLimiter] = []

    async def list_tools(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        described = _BY_NAME.get(params.name)
        if described is None:
            return _failed("There is no tool of that name; tools/list names them.")
        if not limiter:
            limiter.append(anyio.CapacityLimiter(_THREADS))
        try:
            return _told(await _called(ctx, tool_for(ctx), described, params.arguments or {}, limiter[0]))
        except LedgerError:
            return _failed("The ledger cannot be used now, so nothing was done. Ask the operator.")

    return Server(
        "triage-mail", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _called(
    ctx: Context,
    tool: MailTool,
    described: Described,
    arguments: Mapping[str, object],
    limiter: anyio.CapacityLimiter,
) -> Result:
    """Run one call in a thread. A cancelled one gets no answer, so its receipt is written before this returns."""
    if described.name != "mail_wait":
        return await anyio.to_thread.run_sync(described.call, tool, arguments, limiter=limiter)
    signals, done = Signals(), anyio.Event()
    results: list[Result] = []

    async def report(used: int, allowed: int, shown: str) -> None:
        with anyio.move_on_after(_PATIENCE_S):
            await ctx.session.report_progress(used, allowed, shown)

    def progress(used: int, allowed: int, shown: str) -> None:
        # Whoever does not listen any more must not end the wait by it.
        with suppress(Exception):
            anyio.from_thread.run(report, used, allowed, shown)

    async def work() -> None:
        try:
            results.append(
                await anyio.to_thread.run_sync(
                    lambda: tool.wait(arguments, signals=signals, progress=progress), limiter=limiter
                )
            )
        finally:
            done.set()

    async def stop_when_cancelled() -> None:
        try:
            await done.wait()
        finally:
            signals.stop()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_when_cancelled)
        with anyio.CancelScope(shield=True):
            await work()
    return results[0]


async def serve_stdio(tool: MailTool) -> None:
    """Serve one client over standard input and output, until it hangs up."""
    server = mail_server(lambda _ctx: tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(tool: MailTool, ledger: ToolLedger, clock: Clock, host: str) -> Any:
    """The ASGI application at /mcp: each request is bound to the runs of its own token."""

    def tool_for(ctx: Context) -> MailTool:
        runs = ctx.request.scope.get(RUNS, frozenset()) if ctx.request is not None else frozenset()
        return tool.bound_to(runs, "mcp")

    return guarded(mail_server(tool_for).streamable_http_app(host=host), ledger, clock)


async def serve_http(tool: MailTool, ledger: ToolLedger, clock: Clock, host: str, port: int) -> None:
    """Serve over streamable HTTP until told to stop."""
    import uvicorn

    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks may quote what a client sent
    config = uvicorn.Config(
        http_app(tool, ledger, clock, host), host=host, port=port, log_level="warning", access_log=False
    )
    await uvicorn.Server(config).serve()


def _described(tool: Described) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.text,
        input_schema=tool.request.model_json_schema(),
        output_schema=Result.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=False,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _told(result: Result) -> types.CallToolResult:
    short = result.model_dump(mode="json", exclude_defaults=True)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(short, ensure_ascii=False, separators=(",", ":")))],
        structured_content=result.model_dump(mode="json"),
        is_error=result.state in NEVER_RETRYABLE,
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
