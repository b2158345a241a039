"""The server at its socket: small requests, reading only, and the same headers on every answer."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import structlog

from triage.config.settings import HttpSettings
from triage.domain.errors import ConfigError
from triage.web import incoming, server
from triage.web.messages import SECURITY_HEADERS, Request, Response
from triage.web.server import WebServer, open_server

Address = tuple[str, int]


def echo(request: Request) -> Response:
    return Response(f"{request.path} {sorted(request.query.items())}".encode())


@contextmanager
def running(web: WebServer) -> Iterator[Address]:
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield ("127.0.0.1", web.server_port)
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


@pytest.fixture
def address() -> Iterator[Address]:
    with running(open_server(HttpSettings(port=0), echo, structlog.get_logger())) as where:
        yield where


def exchange(address: Address, *pieces: bytes, pause_s: float = 0.0) -> bytes:
    """Send the pieces and read until the server hangs up."""
    with closing(socket.create_connection(address, timeout=10)) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause_s)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def ask(address: Address, method: str, target: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_a_path_and_its_query_reach_the_site_decoded(address: Address) -> None:
    status, _, body = ask(address, "GET", "/runs/a%2Fb?account=caf%C3%A9&days=7")
    assert (status, body.decode()) == (200, "/runs/a/b [('account', 'café'), ('days', '7')]")


def test_head_has_the_headers_and_no_body(address: Address) -> None:
    status, headers, body = ask(address, "HEAD", "/")
    assert (status, headers["Content-Length"], body) == (200, str(len("/ []")), b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_nothing_but_reading_is_answered(address: Address, method: str) -> None:
    status, headers, _ = ask(address, method, "/")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert headers["Content-Security-Policy"] == SECURITY_HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET http://evil.example/ HTTP/1.1\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\n\r\n", 400),
        (b"GET /?" + b"&".join(b"a=1" for _ in range(30)) + b" HTTP/1.1\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 5_000 + b"\r\n", 431),
    ],
    ids=[
        "body",
        "chunked",
        "proxy",
        "not UTF-8",
        "many fields",
        "nonsense",
        "long line",
        "long header",
        "many headers",
    ],
)
def test_a_request_out_of_bounds_is_refused_and_the_connection_closed(
    address: Address, request_: bytes, status: int
) -> None:
    received = exchange(address, request_)
    assert f" {status} ".encode() in received.partition(b"\r\n")[0]
    assert b"default-src 'none'" in received


def test_every_answer_carries_the_security_headers_and_no_name_of_the_software(address: Address) -> None:
    _, headers, _ = ask(address, "GET", "/")
    assert SECURITY_HEADERS.items() <= headers.items()
    assert headers["Cache-Control"] == "no-store"
    assert "Server" not in headers
    assert "script-src" not in headers["Content-Security-Policy"]


def test_several_requests_share_a_connection(address: Address) -> None:
    connection = http.client.HTTPConnection(*address, timeout=10)
    bodies = []
    for path in ("/one", "/two"):
        connection.request("GET", path)
        bodies.append(connection.getresponse().read())
    connection.close()
    assert bodies == [b"/one []", b"/two []"]


def test_a_request_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then resets a timeout of a single read, but not the time of the whole request."""
    monkeypatch.setattr(incoming.Incoming.__init__, "__defaults__", (0.4,))
    with running(open_server(HttpSettings(port=0), echo, structlog.get_logger())) as address:
        started = time.monotonic()
        with closing(socket.create_connection(address, timeout=10)) as connection:
            received = None
            connection.settimeout(0.1)
            while received is None and time.monotonic() - started < 8:
                try:
                    connection.sendall(b"a")
                    received = connection.recv(10)
                except TimeoutError:
                    continue
                except ConnectionError:
                    received = b""
        assert received == b""
        assert time.monotonic() - started < 5


def test_more_connections_than_allowed_are_closed_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with running(open_server(HttpSettings(port=0), echo, structlog.get_logger())) as address:
        held = [socket.create_connection(address, timeout=10) for _ in range(2)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert each.recv(65536).startswith(b"HTTP/1.1 200")
        with closing(socket.create_connection(address, timeout=10)) as third:
            assert third.recv(10) == b""
        for each in held:
            each.close()
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                assert ask(address, "GET", "/")[0] == 200
                break
            except (http.client.HTTPException, ConnectionError):
                time.sleep(0.05)
        else:
            pytest.fail("the places of closed connections were not given back")


def test_a_taken_port_is_a_problem_of_the_configuration(address: Address) -> None:
    with pytest.raises(ConfigError, match=r"triage\.yaml: http\.listen: cannot listen on 127\.0\.0\.1 port"):
        open_server(HttpSettings(port=address[1]), echo, structlog.get_logger(), where="triage.yaml")


def test_the_address_of_the_first_page_is_told(address: Address) -> None:
    with closing(open_server_on("127.0.0.1")) as web:
        assert web.address == f"http://127.0.0.1:{web.server_port}/"


def open_server_on(host: str) -> WebServer:
    web = open_server(HttpSettings(host, 0), echo, structlog.get_logger())
    web.close = web.server_close  # type: ignore[attr-defined]  # for contextlib.closing
    return web
