"""A small web application with a sign-up: it accepts a form, delivers a confirmation mail, and knows who confirmed.

Its mail goes into an IMAP mailbox by APPEND, as a delivery agent would put it there; nothing is sent over SMTP.
"""

from __future__ import annotations

import imaplib
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HOST = "app.acme.example"
MAIL = (
    "From: Acme <no-reply@acme.example>\r\nTo: {address}\r\nSubject: Confirm your account\r\n"
    "Message-ID: <{token}@acme.example>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    "Welcome to Acme.\r\n\r\nPlease confirm your account: https://{host}/verify/{token}\r\n"
)
Deliver = Callable[[bytes], None]


class SignupApp:
    """POST /signup with `email=...` answers 202 and delivers a mail; GET /verify/TOKEN confirms it."""

    def __init__(self, deliver: Deliver, delay_s: float = 0.5) -> None:
        self.pending: dict[str, str] = {}
        self.confirmed: set[str] = set()
        self._deliver = deliver
        self._delay_s = delay_s
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._deliveries: list[threading.Timer] = []

    def __enter__(self) -> SignupApp:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for delivery in self._deliveries:
            delivery.cancel()
            delivery.join()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def sign_up(self, address: str) -> int:
        """The status of the answer."""
        if "@" not in address or address in self.pending.values():
            return 422
        token = secrets.token_urlsafe(16)
        self.pending[token] = address
        raw = MAIL.format(address=address, token=token, host=HOST).encode()
        delivery = threading.Timer(self._delay_s, self._deliver, [raw])
        self._deliveries.append(delivery)
        delivery.start()
        return 202

    def confirm(self, token: str) -> int:
        address = self.pending.get(token)
        if address is None:
            return 404
        self.confirmed.add(address)
        return 200

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        app = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                path = urlsplit(self.path).path
                self._answer(app.sign_up(form.get("email", [""])[0]) if path == "/signup" else 404)

            def do_GET(self) -> None:
                kind, _, token = urlsplit(self.path).path.lstrip("/").partition("/")
                self._answer(app.confirm(token) if kind == "verify" else 404)

            def _answer(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        return Handler


def imap_delivery(host: str, port: int, user: str, password: str) -> Deliver:
    """Deliver into this mailbox."""

    def deliver(raw: bytes) -> None:
        connection = imaplib.IMAP4(host, port, timeout=30)
        connection.login(user, password)
        connection.append("INBOX", "", None, raw)
        connection.logout()

    return deliver
