"""Access tokens from a refresh token (RFC 6749, section 6), for mail servers that no longer take passwords."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from triage.config.secret import Secret
from triage.domain.errors import ConfigError, MailboxLost
from triage.redact import conceal

TIMEOUT_S = 15.0
MAX_ANSWER_BYTES = 100_000
RENEW_BEFORE_S = 120.0

_ENDPOINTS = {
    "google": "https://oauth2.googleapis.com/token",
    "microsoft": "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
}
_SCOPES = {"microsoft": "https://outlook.office.com/IMAP.AccessAsUser.All offline_access"}

Post = Callable[[str, bytes], tuple[int, bytes]]
"""POST a form to a URL: status and body. Raises OSError."""


def post_form(url: str, form: bytes) -> tuple[int, bytes]:
    """POST over HTTPS, bounded in time and size. Raises OSError.

    Redirects are not followed: a token endpoint does not move, and the refresh token must not go elsewhere.
    """
    from http.client import HTTPException, HTTPSConnection

    parts = urlsplit(url)
    connection = HTTPSConnection(parts.netloc, timeout=TIMEOUT_S)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    try:
        connection.request("POST", parts.path, form, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_ANSWER_BYTES)
    except HTTPException as error:
        raise ConnectionError(type(error).__name__) from None
    finally:
        connection.close()


@dataclass(slots=True)
class RefreshedToken:
    """A credential that keeps an access token until shortly before it ends. Thread-safe.

    `get` raises ConfigError when the provider refuses (log in there again), MailboxLost when it cannot be reached.
    """

    provider: str
    client_id: str
    refresh_token: Secret
    client_secret: Secret | None = None
    tenant: str = "common"
    label: str = "oauth"
    post: Post = field(default=post_form, repr=False)
    monotonic: Callable[[], float] = field(default=time.monotonic, repr=False)
    _token: str = field(default="", init=False, repr=False)
    _good_until: float = field(default=0.0, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def get(self) -> str:
        with self._lock:
            if not self._token or self.monotonic() >= self._good_until:
                self._renew()
            return self._token

    @property
    def sources(self) -> tuple[Secret, ...]:
        return (self.refresh_token,) if self.client_secret is None else (self.refresh_token, self.client_secret)

    def _renew(self) -> None:
        form = {
            "grant_type": "refresh_token",
            "client_id": self.client_id,
            "refresh_token": self.refresh_token.get(),
        }
        if self.client_secret is not None:
            form["client_secret"] = self.client_secret.get()
        if scope := _SCOPES.get(self.provider):
            form["scope"] = scope
        url = _ENDPOINTS[self.provider].format(tenant=self.tenant)
        try:
            status, body = self.post(url, urlencode(form).encode())
        except OSError as error:
            raise MailboxLost(f"{self.label}: {self.provider} gave no token ({type(error).__name__})") from None
        answer = _object(body)
        token, seconds = answer.get("access_token"), answer.get("expires_in", 0)
        if status in {408, 429} or status >= 500:
            raise MailboxLost(f"{self.label}: {self.provider} gave no token (HTTP {status})")
        if status != 200 or not isinstance(token, str) or not token:
            code = answer.get("error")
            known = code if code in _REFUSALS else f"HTTP {status}"
            remedy = _REFUSALS.get(str(code), "check client_id and refresh_token")
            raise ConfigError(f"{self.label}: {self.provider} refused to give a token ({known}); {remedy}")
        conceal(token)
        self._token = token
        lasts = float(seconds) if isinstance(seconds, int | float) else 0.0
        self._good_until = self.monotonic() + max(0.0, lasts - RENEW_BEFORE_S)


_REFUSALS = {
    "invalid_grant": "the refresh token has ended or was withdrawn: grant access again and store the new one",
    "invalid_client": "client_id or client_secret is wrong",
    "unauthorized_client": "this application may not use refresh tokens: change it at the provider",
    "invalid_scope": "the application has no permission for IMAP: add it at the provider",
}


def _object(body: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
