"""Who may read: the token where there is one, and on loopback only who came by a name of this machine. Pure."""

from __future__ import annotations

import base64
import binascii
import hmac
from http import HTTPStatus

from triage.config.settings import is_loopback
from triage.web.messages import Request, Response, plain

_CHALLENGE = 'Basic realm="triage", charset="UTF-8"'


def refusal(request: Request, token: str | None, listens_on: str) -> Response | None:
    """The answer to a request that may not be served, None if it may.

    With a token, the token decides. Without one the server listens on loopback, and a browser that was led here by a
    foreign name whose address was rebound to this machine is turned away by its Host header.
    """
    if token is not None:
        if shows_token(request, token):
            return None
        return plain(HTTPStatus.UNAUTHORIZED, "This needs the token of http.token.", WWW_Authenticate=_CHALLENGE)
    name = _host_name(request.headers.get("host", ""))
    if is_loopback(name) or name == listens_on.casefold():
        return None
    return plain(
        HTTPStatus.MISDIRECTED_REQUEST,
        "Without http.token only names of this machine are answered, such as 127.0.0.1 or localhost.",
    )


def shows_token(request: Request, token: str) -> bool:
    """Is the token in the Authorization header: as Bearer (RFC 6750), or as the password of any user (RFC 7617)?"""
    scheme, _, value = request.headers.get("authorization", "").strip().partition(" ")
    match scheme.casefold():
        case "bearer":
            shown = value.strip()
        case "basic":
            shown = _password(value.strip())
        case _:
            return False
    return hmac.compare_digest(shown.encode(), token.encode())


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _host_name(host: str) -> str:
    """The name in a Host header (RFC 9110, 7.2), without the port and without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].casefold()
    return host.partition(":")[0].casefold()
