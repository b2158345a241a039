"""One tool, four surfaces: Python, the command line, MCP over stdio and over HTTP say the same of the same request."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from services.dovecot import Dovecot
from support.bad_requests import BAD, CANARY
from support.killing import CommandProxy
from support.mail_tool import LINK
from support.tool_site import REPOSITORY, Site, wait_request
from triage.agent.bearer import new_token
from triage.agent.descriptions import TOOLS
from triage.agent.mcp_server import http_app
from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool
from triage.bootstrap import App
from triage.cli.main import run_cli

ON_THE_COMMAND_LINE = {"request_new": "request", "status": "show"}
RUNS = ("signup-1842", "signup-2", "signup-77", "login-1", "signup-404")


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def site(server: Dovecot, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path, server, "s" + str(abs(hash(request.node.name)) % 10**12))
    monkeypatch.setenv("TOOL_TEST_PASSWORD", server.password)
    return site


@pytest.fixture
def app(site: Site) -> Iterator[App]:
    app = site.app()
    yield app
    app.close()


def opened(tool: Any, run_id: str) -> RunView:
    result = tool.open({"run_id": run_id, "purpose": "verify_signup"})
    assert result.run is not None, result
    return result.run


@asynccontextmanager
async def over_stdio(site: Site, *runs: str) -> AsyncIterator[Client]:
    bound = [word for run in runs for word in ("--run", run)]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "triage", "mcp", "--config", str(site.directory), *bound],
        env=site.environ,
        cwd=str(REPOSITORY),
    )
    async with Client(parameters) as client:
        yield client


class HttpServing:
    """The HTTP surface, served by a thread of the test."""

    def __init__(self, app: App) -> None:
        import uvicorn

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.app, self.tool = app, app.tool(surface="mcp")
        config = uvicorn.Config(
            http_app(self.tool, app.ledger, app.clock, "127.0.0.1"), port=self.port, log_level="error", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> HttpServing:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.tool.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def token(self, *runs: str) -> str:
        return new_token(self.app.ledger, self.app.clock, list(runs), 600)

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(self.url, http_client=http)) as client,
        ):
            yield client


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(work)


def essence(result: dict[str, Any]) -> tuple[str, str, str]:
    return result["state"], result["reason"], json.dumps(result["errors"], sort_keys=True)


async def call(client: Client, name: str, request: dict[str, Any]) -> dict[str, Any]:
    told = await client.call_tool(name, request)
    assert isinstance(told.structured_content, dict), told
    Result.model_validate(told.structured_content)
    return told.structured_content


def test_bad_input_is_told_alike_on_every_surface_and_the_mailbox_is_not_touched(
    site: Site, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of the table, over Python, command line, stdio and HTTP, and not one command reaches the server."""
    with CommandProxy(site.server.port) as proxy:
        site.write_settings(proxy.port)
        app = site.app()
        tool = app.tool()
        mine, other = opened(tool, "signup-1842"), opened(tool, "signup-2")
        before = list(proxy.commands)
        assert before, "opening a run looks into the mailbox, and the proxy sees it"
        _tell_alike(site, app, tool, mine, other, capfd)
        assert proxy.commands == before
        tool.close()
        app.close()


def _tell_alike(
    site: Site, app: App, tool: MailTool, mine: RunView, other: RunView, capfd: pytest.CaptureFixture[str]
) -> None:
    requests = [(bad, bad.request(mine, other)) for bad in BAD]
    expected = {bad.name: (bad.state, bad.reason, json.dumps(list(bad.errors), sort_keys=True)) for bad in BAD}
    python = {bad.name: essence(getattr(tool, bad.call)(r).model_dump(mode="json")) for bad, r in requests}
    command_line = {}
    for bad, request in requests:
        capfd.readouterr()
        command = ON_THE_COMMAND_LINE.get(bad.call, bad.call)
        code = run_cli(["tool", command, "--request", json.dumps(request), "--json", "--config", str(site.directory)])
        out, err = capfd.readouterr()
        assert CANARY not in out + err
        assert code == {"invalid_request": 2, "forbidden": 16}[bad.state]
        command_line[bad.name] = essence(json.loads(out))
    texts: list[str] = []

    async def ask(client: Client) -> dict[str, tuple[str, str, str]]:
        found = {}
        for bad, request in requests:
            told = await client.call_tool(f"mail_{bad.call}", request)
            assert told.is_error
            texts.append(told.model_dump_json())
            found[bad.name] = essence(told.structured_content)
        return found

    async def stdio() -> dict[str, tuple[str, str, str]]:
        async with over_stdio(site, *RUNS) as client:
            return await ask(client)

    over_pipe = run(stdio)
    with HttpServing(app) as serving:

        async def http() -> dict[str, tuple[str, str, str]]:
            async with serving.client(serving.token(*RUNS)) as client:
                return await ask(client)

        over_http = run(http)
    assert python == expected
    assert command_line == expected
    assert over_pipe == expected
    assert over_http == expected
    assert not any("CANARY" in text for text in texts)
    assert not any("CANARY" in repr(receipt) for receipt in app.ledger.receipts(limit=1000))


def test_an_agent_on_stdio_finds_its_mail(site: Site, app: App) -> None:
    """Open, wait, link; each look is told as progress; the tools say what expired and ambiguous mean."""
    looks: list[tuple[float, float | None, str | None]] = []

    async def on_progress(used: float, allowed: float | None, shown: str | None) -> None:
        looks.append((used, allowed, shown))

    async def agent() -> dict[str, Any]:
        async with over_stdio(site, "signup-1842") as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(listed) == {tool.name for tool in TOOLS}
            for tool in listed.values():
                assert tool.input_schema["additionalProperties"] is False
                assert tool.output_schema is not None
                assert tool.annotations is not None
                assert "expired" in str(tool.description)
                assert "ambiguous" in str(tool.description)
            begun = await call(client, "mail_open", {"run_id": "signup-1842", "purpose": "verify_signup"})
            address = begun["run"]["address"]
            await anyio.to_thread.run_sync(lambda: site.deliver(address))
            request = {
                "run_id": "signup-1842", "mailbox_id": begun["run"]["mailbox_id"],
                "after": begun["run"]["opened_at"], "deadline_seconds": 20, "max_polls": 9, "take": "link",
            }  # fmt: skip
            told = await client.call_tool("mail_wait", request, progress_callback=on_progress)
            foreign = await call(client, "mail_status", {"run_id": "signup-2"})
            assert foreign["reason"] == "run_not_yours"
            assert isinstance(told.structured_content, dict)
            return told.structured_content

    result = run(agent)
    assert (result["state"], result["artifact"]["verification_url"]) == ("found", LINK)
    assert looks
    assert looks[-1][1] == 9
    receipt = app.ledger.receipts("signup-1842", 1)
    assert receipt
    assert {r.surface for r in app.ledger.receipts("signup-1842")} == {"mcp"}


def test_a_command_loads_neither_mcp_nor_pages_nor_a_schedule(site: Site) -> None:
    """Each `triage tool ...` is a process of its own: it pays for what it needs."""
    code = (
        "import sys; from triage.cli.main import run_cli\n"
        "assert run_cli(['tool', 'receipts', '--config', sys.argv[1]]) == 0\n"
        "print({name.partition('.')[0] for name in sys.modules} & "
        "{'mcp', 'mcp_types', 'uvicorn', 'starlette', 'jinja2', 'prometheus_client', 'apscheduler'} or 'none')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(site.directory)],
        capture_output=True, text=True, cwd=REPOSITORY, env=site.environ, timeout=240, check=True,
    )  # fmt: skip
    assert ended.stdout.splitlines()[-1] == "none"


def test_http_tokens_are_bound_to_their_runs(site: Site, app: App) -> None:
    tool = app.tool()
    mine, other = opened(tool, "signup-1842"), opened(tool, "signup-2")
    site.deliver(mine.address)
    with HttpServing(app) as serving:
        token = serving.token("signup-1842")

        async def agent() -> None:
            async with serving.client(token) as client:
                found = await call(client, "mail_wait", wait_request(mine, take="link"))
                assert found["state"] == "found"
                foreign = await call(client, "mail_wait", wait_request(other))
                assert (foreign["state"], foreign["reason"], foreign["run_id"]) == ("forbidden", "run_not_yours", None)
                unknown = await client.call_tool("mail_send", {"to": CANARY})
                assert unknown.is_error
                assert CANARY not in unknown.model_dump_json()

        run(agent)
        for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong-wrong"}, {"Authorization": "Basic eA=="}):
            answer = httpx2.post(serving.url, json={}, headers=headers)
            assert answer.status_code == 401
        assert token.encode() not in b"".join(p.read_bytes() for p in site.directory.glob("triage.db*"))
    tool.close()


def test_a_token_ends_with_its_time(site: Site, app: App) -> None:
    from triage.agent.bearer import token_key

    token = new_token(app.ledger, app.clock, ["signup-1842"], 60)
    key = token_key(app.ledger, token)
    now = app.clock.now()
    from datetime import timedelta

    assert app.ledger.token_runs(key, now) == {"signup-1842"}
    assert app.ledger.token_runs(key, now + timedelta(seconds=61)) is None


@pytest.mark.parametrize("surface", ["stdio", "http"])
def test_a_cancelled_call_leaves_its_receipt_and_looks_no_more(site: Site, app: App, surface: str) -> None:
    """The caller gets no answer to a cancelled call; what became of it is in the ledger."""
    tool = app.tool()
    mine = opened(tool, "signup-1842")

    async def give_up(client: Client) -> None:
        with anyio.move_on_after(2.5):
            await client.call_tool("mail_wait", wait_request(mine))
        for _ in range(100):
            wait = app.ledger.last_wait("signup-1842", 1)
            if wait is not None and wait.state == "cancelled":
                return
            await anyio.sleep(0.1)

    if surface == "stdio":

        async def agent() -> None:
            async with over_stdio(site, "signup-1842") as client:
                await give_up(client)

        run(agent)
    else:
        with HttpServing(app) as serving:

            async def agent() -> None:
                async with serving.client(serving.token("signup-1842")) as client:
                    await give_up(client)

            run(agent)
    wait = app.ledger.last_wait("signup-1842", 1)
    assert wait is not None
    assert (wait.state, wait.receipt_id is not None) == ("cancelled", True)
    assert wait.polls_used <= 3
    tool.close()


def test_the_command_line_tells_each_state_by_its_exit_code(
    site: Site, app: App, capfd: pytest.CaptureFixture[str]
) -> None:
    site.write_policy(purposes__verify_signup__take__link__deliver="handle")
    at = ["--config", str(site.directory)]

    def triage(*words: str) -> tuple[int, str]:
        capfd.readouterr()
        code = run_cli(["tool", *words, *at])
        return code, capfd.readouterr().out

    code, out = triage("open", "--run", "signup-1842", "--purpose", "verify_signup", "--json")
    assert code == 0
    view = json.loads(out)["run"]
    who = ["--run", "signup-1842", "--mailbox", view["mailbox_id"]]
    limits = ["--after", view["opened_at"], "--max-polls", "9"]
    assert triage("find", "--run", "signup-1842", "--max-reads", "1")[0] == 11
    assert triage("wait", *who, *limits, "--deadline", "2")[0] == 12
    assert triage("wait", *who, *limits, "--deadline", "600")[0] == 16
    assert triage("wait", *who, *limits)[0] == 2
    assert triage("ask", "tamp mail com", "--run", "signup-1842", "--max-reads", "1")[0] == 18
    site.deliver(view["address"])
    code, out = triage("wait", *who, *limits, "--deadline", "20", "--take", "link", "--json")
    assert code == 0
    handle = json.loads(out)["artifact"]["handle"]
    assert triage("redeem", handle, "--run", "signup-1842") == (0, LINK + "\n")
    assert triage("redeem", handle, "--run", "signup-1842")[0] == 17
    assert triage("take", "link", *who)[0] == 17
    assert triage("show", "--run", "signup-1842")[0] == 0
    assert triage("show", "--run", "signup-1842", "--bound-to", "signup-2")[0] == 16
    assert triage("cancel", "--run", "signup-1842")[0] == 0
    assert triage("wait", *who, *limits, "--deadline", "20")[0] == 15
    code, out = triage("receipts", "--run", "signup-1842", "--json")
    assert code == 0
    assert {r["surface"] for r in json.loads(out)} == {"cli"}
    assert LINK not in out
