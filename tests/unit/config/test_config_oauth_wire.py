"""The POST to a token endpoint, over real TLS on this machine."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from triage.config.oauth import MAX_ANSWER_BYTES, post_form

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make a certificate")


class Endpoint(BaseHTTPRequestHandler):
    seen: ClassVar[list[tuple[str, str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Content-Type"], body))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/token")
            self.end_headers()
            return
        self.send_response(200 if self.path == "/token" else 400)
        self.end_headers()
        self.wfile.write(b"x" * 1_000_000 if self.path == "/large" else b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=IP:127.0.0.1 -keyout {path} -out {path}.crt"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def endpoint(certificate: Path) -> Iterator[str]:
    Endpoint.seen = []
    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a refused handshake is what a test wants
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.mark.usefixtures("trusted")
def test_the_form_arrives_as_it_was_given(endpoint: str) -> None:
    assert post_form(f"{endpoint}/token", b"a=1&b=2") == (200, b"{}")
    assert Endpoint.seen == [("/token", "application/x-www-form-urlencoded", b"a=1&b=2")]


@pytest.mark.usefixtures("trusted")
def test_a_refusal_is_an_answer_too(endpoint: str) -> None:
    assert post_form(f"{endpoint}/other", b"") == (400, b"{}")


@pytest.mark.usefixtures("trusted")
def test_a_redirect_is_not_followed(endpoint: str) -> None:
    """The form holds the refresh token."""
    assert post_form(f"{endpoint}/moved", b"refresh_token=x")[0] == 302
    assert [path for path, _, _ in Endpoint.seen] == ["/moved"]


@pytest.mark.usefixtures("trusted")
def test_no_answer_is_read_without_end(endpoint: str) -> None:
    assert len(post_form(f"{endpoint}/large", b"")[1]) == MAX_ANSWER_BYTES


def test_a_server_with_an_unknown_certificate_gets_nothing(endpoint: str) -> None:
    with pytest.raises(OSError, match="certificate"):
        post_form(f"{endpoint}/token", b"refresh_token=x")
    assert Endpoint.seen == []


def test_nobody_listening_is_an_os_error() -> None:
    with pytest.raises(OSError, match="refused"):
        post_form("https://127.0.0.1:1/token", b"")
