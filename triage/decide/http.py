"""One JSON request to a decision server, and everything that can go wrong with it mapped once to a Failure.

Redirects are refused, so a key reaches the configured host and no other. Proxies of the environment are not used: the
mail goes where the configuration says. SSL_CERT_FILE and SSL_CERT_DIR are honoured for private certificate authorities.
"""

from __future__ import annotations

import json
import random
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpcore
import httpx

from triage.decide.answers import DuplicateKey, NotJson, parse_json
from triage.decide.endpoint import clean_key, endpoint_root
from triage.decide.pacing import Pacing
from triage.decide.refusals import read_error_in_answer, read_refusal
from triage.decide.reply import HttpFailure, Reply
from triage.decide.retry import asked_wait_s
from triage.decide.sockets import Deadline, DeadlineBackend
from triage.decide.unpack import Garbled, TooBig, read_body
from triage.domain.decision import FailureKind
from triage.domain.errors import ConfigError
from triage.ports import Clock

MAX_BODY_BYTES = 1 << 20
MAX_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class _Problem:
    """A failed try. `wait_s` is what the server asked for, None if it did not say; `option_limit` if it named one."""

    kind: FailureKind
    code: str
    message: str
    wait_s: float | None = None
    option_limit: int | None = None


_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_STOPPED = _Problem(FailureKind.TRANSIENT, "stopped", "Stopped while waiting.")
_FINAL = frozenset({"stopped", "paced", "too_big"})


class JsonHttp:
    """A pool of connections to one server, shared by a batch; thread-safe.

    `timeout_s` bounds one try, the deadline of `post` all of them with their waits. `retries` counts tries after the
    first, `connections` those kept open between asks. Raises ConfigError if the base URL cannot be used. Neither repr
    nor any failure shows the key.
    """

    def __init__(
        self,
        *,
        name: str,
        base_url: str,
        clock: Clock,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        retries: int = 2,
        connections: int = 20,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_wait_s: float = MAX_WAIT_S,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self.root = endpoint_root(base_url, has_key=bool(api_key))
        try:
            self.host = httpx.URL(self.root).host
        except httpx.InvalidURL:
            raise ConfigError("base_url names no host that can exist.") from None
        self._clock = clock
        self._timeout_s = timeout_s
        self._retries = retries
        self._max_body_bytes = max_body_bytes
        self._deadline = Deadline(clock)
        self._pacing = Pacing(clock, rng or random.Random(), max_wait_s)  # noqa: S311 - jitter, not a secret
        self._headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "triage",
        }
        if api_key:
            self._headers["Authorization"] = f"Bearer {clean_key(api_key)}"
        self._client = httpx.Client(
            follow_redirects=False,
            trust_env=False,
            transport=_Transport(self._deadline, connections, encrypted=self.root.startswith("https:")),
        )

    def __repr__(self) -> str:
        return f"JsonHttp({self.name!r}, {self.root!r})"

    def close(self) -> None:
        self._client.close()

    def post(
        self,
        path: str,
        payload: Mapping[str, object],
        *,
        deadline: float,
        stop: threading.Event | None = None,
        neutral: bool = False,
    ) -> Reply | HttpFailure:
        """Ask, with bounded retries, until `deadline` (a `Clock.monotonic` instant); `stop` ends a wait at once.

        `neutral` says that the payload holds no stranger's text (see `read_refusal`).
        """
        started = self._clock.monotonic()
        stop = stop or threading.Event()
        attempt = 0
        while True:
            attempt += 1
            result = self._hold(deadline, stop) or self._try(path, payload, deadline, neutral)
            if not isinstance(result, _Problem):
                self._pacing.up()
                return Reply(result.data, self._since(started))
            if result.kind is not FailureKind.TRANSIENT:
                self._pacing.up()
                return self._failure(result, started)
            if result.code in _FINAL:
                return self._failure(result, started)
            self._pacing.failed(result.wait_s)
            pause = self._pacing.pause_s(attempt, result.wait_s)
            if pause is None:
                message = f"The server asks to wait {result.wait_s:.0f} s. It is left in peace until the next run."
                return self._failure(replace(result, code="retry_later", message=message), started)
            spent = attempt > self._retries or self._pacing.struggling
            if spent or self._clock.monotonic() + pause >= deadline:
                return self._failure(result, started)
            if self._clock.wait(stop, pause):
                return self._failure(_STOPPED, started)

    def _hold(self, deadline: float, stop: threading.Event) -> _Problem | None:
        wait_s = self._pacing.hold_s()
        if not wait_s:
            return None
        if self._clock.monotonic() + wait_s >= deadline:
            message = f"The server asks to wait {wait_s:.0f} s, more than is left for this message."
            return _Problem(FailureKind.TRANSIENT, "paced", message)
        return _STOPPED if self._clock.wait(stop, wait_s) else None

    def _try(self, path: str, payload: Mapping[str, object], deadline: float, neutral: bool) -> Reply | _Problem:
        now = self._clock.monotonic()
        until = min(deadline, now + self._timeout_s)
        if until <= now:
            return _Problem(FailureKind.TRANSIENT, "timeout", "No time was left to ask the server.")
        request = httpx.Request(
            "POST",
            self.root + path,
            headers=self._headers,
            content=json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
            extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), until - now)},
        )
        try:
            with self._deadline.until(until), closing(self._client.send(request, stream=True)) as response:
                encoding = response.headers.get("content-encoding", "")
                body = read_body(response.iter_raw(), encoding, self._max_body_bytes)
        except (httpx.HTTPError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            return self._network_problem(error)
        except TooBig:
            size = f"{self._max_body_bytes // 1024} KiB"
            return _Problem(FailureKind.TRANSIENT, "too_big", f"The server's answer is longer than {size}.")
        except Garbled:
            return _Problem(FailureKind.TRANSIENT, "not_json", "The server's answer cannot be unpacked.")
        if response.status_code >= 300 or response.status_code < 200:
            return self._status_problem(response, body, neutral)
        return self._parse(body, neutral)

    def _parse(self, body: bytes, neutral: bool) -> Reply | _Problem:
        try:
            data = parse_json(body)
        except DuplicateKey:
            return _Problem(FailureKind.UNUSABLE, "duplicate_key", "The answer names a key twice.")
        except NotJson:
            start = body[:512].lstrip().lower()
            if start.startswith(b"<"):
                message = f"{self.host} sends a web page instead of an answer. Check base_url, and what stands between."
                return _Problem(FailureKind.TRANSIENT, "web_page", message)
            message = f"{self.host} sends something that is no JSON. Check base_url and provider."
            return _Problem(FailureKind.TRANSIENT, "not_json", message)
        refusal = read_error_in_answer(data, neutral=neutral)
        if refusal is not None:
            return _Problem(refusal.kind, refusal.code, refusal.message, None, refusal.option_limit)
        return Reply(data, 0)

    def _status_problem(self, response: httpx.Response, body: bytes, neutral: bool) -> _Problem:
        status = response.status_code
        if 300 <= status < 400:
            # Only the host: a redirect's path and query may carry a token.
            target = _host_of(response.headers.get("location", "")) or "another address"
            message = f"{self.host} redirects to {target}, which is refused. Set base_url to the final address."
            return _Problem(FailureKind.CONFIGURATION, "redirect", message)
        try:
            parsed: object = parse_json(body)
        except NotJson:
            parsed = body[:4096].decode("utf-8", "replace")
        refusal = read_refusal(status, parsed, neutral=neutral)
        wait_s = None
        if refusal.kind is FailureKind.TRANSIENT:
            wait_s = asked_wait_s(response.headers, self._clock.now())
        return _Problem(refusal.kind, refusal.code, refusal.message, wait_s, refusal.option_limit)

    def _network_problem(self, error: Exception) -> _Problem:
        if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException):
            return _Problem(FailureKind.TRANSIENT, "timeout", f"{self.host} did not answer in time.")
        if _caused_by(error, ssl.SSLCertVerificationError):
            message = f"The certificate of {self.host} cannot be verified. Check base_url, or set SSL_CERT_FILE."
            return _Problem(FailureKind.CONFIGURATION, "certificate", message)
        if isinstance(error, httpx.ConnectError | httpcore.ConnectError):
            return _Problem(FailureKind.TRANSIENT, "unreachable", f"{self.host} cannot be reached.")
        return _Problem(FailureKind.TRANSIENT, "cut_short", f"The connection to {self.host} broke before the answer.")

    def _failure(self, problem: _Problem, started: float) -> HttpFailure:
        return HttpFailure(
            provider=self.name,
            kind=problem.kind,
            code=problem.code,
            message=problem.message,
            latency_ms=self._since(started),
            option_limit=problem.option_limit,
        )

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)


class _Transport(httpx.BaseTransport):
    """httpx over a connection pool of ours: the stock transport takes no network backend, and only there can a
    deadline be kept against headers that drip. Errors stay httpcore's; `JsonHttp` maps them."""

    def __init__(self, deadline: Deadline, connections: int, *, encrypted: bool) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=True) if encrypted else None,
            # The askers are bounded by their number; one that waited here would look like a server that is slow.
            max_connections=None,
            max_keepalive_connections=connections,
            keepalive_expiry=30.0,
            network_backend=DeadlineBackend(deadline),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.read(),
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Stream(answer))

    def close(self) -> None:
        self._pool.close()


class _Stream(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _host_of(location: str) -> str | None:
    """The host a Location names, if it is one that can be shown."""
    try:
        host = urlsplit(location).hostname or ""
    except ValueError:
        return None
    return host if _HOST.fullmatch(host) else None


def _caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
