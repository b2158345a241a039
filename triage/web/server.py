"""The HTTP server: the standard library's, held to small requests, few connections and reading only."""

from __future__ import annotations

import io
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from triage.bootstrap import App
from triage.config.settings import HttpSettings
from triage.domain.errors import ConfigError
from triage.web.incoming import Incoming
from triage.web.messages import Request, Response, plain
from triage.web.site import Site

MOST_CONNECTIONS = 64
"""More than these are closed unanswered: the dashboard must not take threads from the sorting."""
ANSWER_S = 15.0
"""How long a client may take to read its answer."""

Answer = Callable[[Request], Response]


@contextmanager
def web_server(app: Callable[[], App], log: Any) -> Iterator[str]:
    """Serve the pages of the App in force beside whatever the caller does; the address.

    The App's `http` must not be switched off. Where to listen is read once, the token again and again. Raises
    ConfigError if the address cannot be listened on or the token cannot be read.
    """
    http = app().settings.http
    assert http is not None
    site = Site(app, log, listens_on=http.host)
    server = open_server(http, site.answer, log, where=str(app().settings.file))
    thread = threading.Thread(target=server.serve_forever, name="web", daemon=True)
    thread.start()
    site.warm_up()
    log.info("http_listening", host=http.host, port=server.server_port)
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join(ANSWER_S)


def open_server(http: HttpSettings, answer: Answer, log: Any, where: str = "") -> WebServer:
    """A server that listens already. Port 0 takes a free one. Raises ConfigError."""
    try:
        return WebServer(http.host, http.port, answer, log)
    except OSError as error:
        raise ConfigError(
            f"{where}: http.listen: cannot listen on {http.host} port {http.port}: {error.strerror}; "
            "choose another address, or http: false"
        ) from error


class WebServer(ThreadingHTTPServer):
    """Answers every request on a thread of its own, of which there is a bounded number."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, host: str, port: int, answer: Answer, log: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.answer, self.log = answer, log
        self._slots = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        """The URL of the first page."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"

    def server_bind(self) -> None:
        """Without the look-up of this machine's name in HTTPServer.server_bind, which may take seconds."""
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the library's signature
        """A connection that broke is nothing to tell of; anything else is a fault of ours, told in the log."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log.error("http_failed", exc_info=error)


class Handler(BaseHTTPRequestHandler):
    """One connection: read a request, have it answered, write the answer."""

    protocol_version = "HTTP/1.1"
    server: WebServer

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._incoming = Incoming(self.connection)
        self.rfile = io.BufferedReader(self._incoming)

    def handle_one_request(self) -> None:
        self._incoming.begin()
        self._method = "GET"
        try:
            super().handle_one_request()
        except OSError:  # the client went away, or took too long
            self.close_connection = True

    def do_GET(self) -> None:
        self._method = self.command
        if self._incoming.exceeded:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request is too large.")
        elif self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            self._refuse(HTTPStatus.BAD_REQUEST, "A request here has no body.")
        else:
            self._answer()

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _answer(self) -> None:
        started = time.monotonic()
        try:
            request = Request.of(self.path, {name.casefold(): value for name, value in self.headers.items()})
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "The address cannot be read.")
            return
        response = self.server.answer(request)
        self._write(response)
        took = round(1000 * (time.monotonic() - started))
        self.server.log.debug("http_request", path=request.path, status=int(response.status), ms=took)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.close_connection = True
        self._write(plain(status, text, Connection="close"))

    def _write(self, response: Response) -> None:
        self.connection.settimeout(ANSWER_S)
        self.request_version = self.protocol_version  # else no status line for what could not be read
        self.send_response_only(response.status)
        self.send_header("Date", self.date_time_string())
        for name, value in response.all_headers().items():
            self.send_header(name, value)
        self.end_headers()
        if self._method != "HEAD":
            self.wfile.write(response.body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself, in our form: 501 for a method it finds no handler of becomes 405."""
        del message, explain
        if code == HTTPStatus.NOT_IMPLEMENTED:
            self.close_connection = True
            self._write(
                plain(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD.", Allow="GET, HEAD", Connection="close")
            )
            return
        status = HTTPStatus(code)
        self._refuse(status, f"{status.phrase}.")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Nothing: what is worth a line is logged where it is known."""
