"""Asking an application, over HTTP, to cause its mail once more: to an address that only the policy names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from triage.agent.policy import HookKeys
from triage.agent.ports import HookPost

ACCEPTED, REJECTED, UNKNOWN = "accepted", "rejected", "unknown"
_MOST_ANSWER_BYTES = 4_096


def send_request(method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> int:
    """One HTTP request; its status. Redirects are not followed: a policy names one address, not where it points.

    Raises OSError where no answer came in time.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.netloc, timeout=seconds)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, target, body, dict(headers))
        answer = connection.getresponse()
        answer.read(_MOST_ANSWER_BYTES)
    except HTTPException as error:
        raise ConnectionError(type(error).__name__) from None
    else:
        return answer.status
    finally:
        connection.close()


def request_new(post: HookPost, hook: HookKeys, run_id: str, idempotency_key: str, seconds: float) -> str:
    """Call the hook once: accepted, rejected (asking again changes nothing) or unknown (no answer, or a server error).

    409 says that a request with this key was taken before: that is accepted too.
    """
    body = json.dumps({name: value.replace("{run_id}", run_id) for name, value in hook.body.items()}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Idempotency-Key": idempotency_key}
    try:
        status = post(hook.method, hook.url, body, headers, min(seconds, hook.timeout_seconds))
    except OSError:
        return UNKNOWN
    if status in hook.ok or status == 409:
        return ACCEPTED
    return UNKNOWN if status >= 500 or status in (408, 425, 429) else REJECTED
