"""`triage mcp`: the mail tool for an agent that speaks the Model Context Protocol."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from triage.domain.errors import ConfigError


def mcp_command(config: str | None, policy: Path | None, runs: Sequence[str], listen: str | None) -> int:
    """Serve on standard input and output, bound to `runs`, or over HTTP, where each bearer token is bound to its own.

    Raises ConfigError if the `mcp` package is not installed, or the address is open to other machines unasked.
    """
    from triage.cli.tool import opened_app

    try:
        import anyio

        from triage.agent import mcp_server
    except ModuleNotFoundError as error:
        raise ConfigError("`triage mcp` needs the mcp package: pip install 'triage[mcp]'") from error
    if listen is None and not runs:
        raise ConfigError("say which runs this client owns, --run ID (repeatable), or serve tokens with --http ADDRESS")
    with opened_app(config) as app:
        tool = app.tool(policy, surface="mcp")
        try:
            if listen is None:
                anyio.run(mcp_server.serve_stdio, tool.bound_to(runs))
            else:
                host, port = _address(listen)
                print(f"serving http://{host}:{port}/mcp; Ctrl-C stops", file=sys.stderr)  # noqa: T201
                anyio.run(mcp_server.serve_http, tool, app.ledger, app.clock, host, port)
        finally:
            tool.close()
    return 0


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise ConfigError("--http needs an address and a port, such as 127.0.0.1:8026")
    return host.strip("[]"), int(port)
