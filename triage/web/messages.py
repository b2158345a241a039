"""A request and a response as values, so that everything but the socket can be tested without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_MOST_FIELDS = 20

SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""On every response: no script, nothing from elsewhere, no framing, no trace in another site's logs."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for. `headers` have lower-case names; `query` keeps the last value of a name."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, target: str, headers: Mapping[str, str] | None = None) -> Request:
        """From a request target (RFC 9112, 3.2.1). Raises ValueError for one that cannot be read."""
        if not target.startswith("/") or target.startswith("//"):
            raise ValueError("the request target is no path")
        url = urlsplit(target)
        query = dict(parse_qsl(url.query, max_num_fields=_MOST_FIELDS))
        return cls(unquote(url.path, errors="strict"), query, headers or {})


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered. Pages hold records of somebody's mail, so nothing is kept by a cache unless it says so."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self) -> dict[str, str]:
        own = {"Content-Type": self.content_type, "Content-Length": str(len(self.body)), "Cache-Control": "no-store"}
        return {**own, **SECURITY_HEADERS, **self.headers}


def plain(status: HTTPStatus, text: str, **headers: str) -> Response:
    """An answer in one line of text, for a client that gets no page."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(f"{text}\n".encode(), status, TEXT, named)
