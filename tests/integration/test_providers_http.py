"""A provider against servers that misbehave at every byte: bounded in time and memory, one kind of failure each."""

from __future__ import annotations

import gzip
import json
import random
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.http_stub import Behaviour, HttpStub, Seen, always, drip, endless, head, in_order, raw, reply, silence
from triage.clock import SystemClock
from triage.decide.http import JsonHttp
from triage.decide.providers import remote_provider
from triage.decide.question import build_question
from triage.decide.remote import RemoteProvider
from triage.decide.systemone import SystemOne
from triage.domain.category import Category, CategorySet
from triage.domain.decision import Answer, Failure, FailureKind
from triage.domain.mail import PreparedMail

NAMES = ("work", "family", "billing")
QUESTION = build_question(CategorySet("", "rest", "Rest", tuple(Category(n, n, n) for n in NAMES)), offer_none=False)
MAIL = PreparedMail("ann@example.com", "team@example.com", "Invoice", "Please find the invoice attached. " * 20)
GOOD: dict[str, Any] = {
    "model": "stub-1.0",
    "answers": {
        "category": {
            "type": "choice",
            "choice": "work",
            "probabilities": {"work": 0.9, "family": 0.06, "billing": 0.04},
        }
    },
    "usage": {"input_tokens": 300, "output_tokens": 0},
}
KEY = "sk-secret-key-0123456789"


class ClockByHand:
    """Time stands still but for the waits that are asked for; they are recorded and take no time."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._now = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)
        self._passed = 0.0

    def now(self) -> datetime:
        return self._now + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        self._passed += timeout_s
        return event.is_set()


def ask(stub: HttpStub, *, seconds: float = 10.0, **options: Any) -> Answer | Failure:
    provider = remote_provider(
        "systemone", base_url=stub.url, model="jev-latest", clock=SystemClock(), api_key=KEY, **options
    )
    try:
        return provider.ask(QUESTION, MAIL, time.monotonic() + seconds)
    finally:
        provider.close()


def failure_of(behaviour: Behaviour, **options: Any) -> Failure:
    with HttpStub(always(behaviour)) as stub:
        found = ask(stub, **{"retries": 0, **options})
    assert isinstance(found, Failure), found
    assert KEY not in repr(found)
    return found


def test_the_mail_travels_in_its_own_field_and_the_key_in_the_header() -> None:
    with HttpStub(always(reply(GOOD))) as stub:
        found = ask(stub)
    assert isinstance(found, Answer)
    assert (found.choice, found.model, found.input_tokens) == ("work", "stub-1.0", 300)
    (seen,) = stub.seen
    assert (seen.method, seen.path) == ("POST", "/v1/systemone")
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.json["state"] == {"from": MAIL.sender, "to": MAIL.recipient, "subject": MAIL.subject, "body": MAIL.body}
    assert MAIL.subject not in json.dumps(seen.json["questions"])


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_a_base_url_works_with_and_without_v1(suffix: str) -> None:
    with HttpStub(always(reply(GOOD))) as stub:
        provider = remote_provider("systemone", base_url=stub.url + suffix, model="m", clock=SystemClock())
        provider.ask(QUESTION, MAIL, time.monotonic() + 5)
        provider.close()
    assert [seen.path for seen in stub.seen] == ["/v1/systemone"]


@pytest.mark.parametrize(
    "behaviour",
    [
        drip(head(200, {"Content-Type": "application/json", "Content-Length": "600"}) + b" " * 600, 200),
        drip(b"HTTP/1.1 200 OK\r\n" + b"X-Pad: 1\r\n" * 1000, 200),
        silence,
        raw(b""),
    ],
    ids=["drips_its_body", "drips_its_head", "never_answers", "hangs_up"],
)
def test_a_deadline_holds_against_a_server_that_keeps_the_line_busy(behaviour: Behaviour) -> None:
    started = time.monotonic()
    found = failure_of(behaviour, seconds=0.7, timeout_s=30, retries=5)
    assert time.monotonic() - started < 1.2
    assert found.kind is FailureKind.TRANSIENT
    assert found.code in ("timeout", "cut_short")


@pytest.mark.parametrize(
    "behaviour",
    [
        endless(b" " * 8192),
        endless(b"1000\r\n" + b" " * 4096 + b"\r\n", head(200, {"Transfer-Encoding": "chunked"})),
        reply(b" " * 10_000_000),
        reply(gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"}),
    ],
    ids=["never_ends", "never_ends_chunked", "ten_megabytes", "packed_bomb"],
)
def test_an_answer_without_end_is_given_up_at_one_mebibyte(behaviour: Behaviour) -> None:
    found = failure_of(behaviour, retries=2)
    assert (found.kind, found.code) == (FailureKind.TRANSIENT, "too_big")


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(random.Random(3).randbytes(5000)),
        raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
        raw(b"HTTP/1.1 abc Fine\r\n\r\n"),
        raw(head(200, {"Transfer-Encoding": "chunked"}) + b"zz\r\nhello\r\n0\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        endless(b"X-Pad: 1\r\n", b"HTTP/1.1 200 OK\r\n"),
        endless(b"HTTP/1.1 100 Continue\r\n\r\n", b""),
        endless(random.Random(4).randbytes(4096), b""),
    ],
    ids=["noise", "ssh", "no_status", "bad_chunk", "two_lengths", "endless_head", "endless_continue", "endless_noise"],
)
def test_what_is_not_even_http_is_a_broken_connection(behaviour: Behaviour) -> None:
    started = time.monotonic()
    found = failure_of(behaviour, seconds=1.0)
    assert time.monotonic() - started < 2
    assert (found.kind, found.code in ("cut_short", "timeout")) == (FailureKind.TRANSIENT, True)


def test_a_packed_answer_is_read_although_none_was_asked_for() -> None:
    packed = gzip.compress(json.dumps(GOOD).encode())
    with HttpStub(always(reply(packed, headers={"Content-Encoding": "gzip"}))) as stub:
        assert isinstance(ask(stub), Answer)
    assert stub.seen[0].headers["accept-encoding"] == "identity"


def test_answers_cut_short_are_asked_for_again_and_never_guessed_from() -> None:
    """A body shorter than its Content-Length, then a chunked body without an end, then the whole answer."""
    text = json.dumps(GOOD).encode()
    short = raw(head(200, {"Content-Type": "application/json", "Content-Length": str(len(text))}) + text[:-30])
    chunked = raw(head(200, {"Transfer-Encoding": "chunked"}) + b"fff\r\n" + text[:-30])
    with HttpStub(in_order(short, chunked, reply(GOOD))) as stub:
        found = ask(stub)
    assert isinstance(found, Answer)
    assert len(stub.seen) == 3


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("web_page", "<!DOCTYPE html><html><body><form>Sign in</form></body></html>"),
        ("web_page", "  <html>"),
        ("not_json", b"\x00\xff" * 1000),
        ("not_json", b""),
        ("not_json", "work"),
        ("not_json", b")]}'\n{}"),
        ("not_json", b"[" * 200_000),
    ],
)
def test_what_is_no_json_is_no_answer(code: str, body: bytes | str) -> None:
    found = failure_of(reply(body))
    assert (found.kind, found.code) == (FailureKind.TRANSIENT, code)
    assert "base_url" in found.message


@pytest.mark.parametrize(
    "body",
    [
        [],
        "null",
        {},
        {"answers": []},
        {"answers": {"other": GOOD["answers"]["category"]}},
        {"answers": {"category": {"type": "choice", "choice": "sales", "probabilities": {"sales": 0.9, "tech": 0.1}}}},
        {"answers": {"category": {"type": "noul", "noul": 0.7}}},
        {"answers": {"category": {"type": "choice", "choice": "work"}}},
        json.dumps(GOOD).replace('"work": 0.9', '"work": 0.9, "work": 0.1'),
        json.dumps(GOOD).replace("0.9,", "NaN,"),
    ],
)
def test_an_answer_to_something_else_is_unusable(body: Any) -> None:
    assert failure_of(reply(body)).kind is FailureKind.UNUSABLE


def test_extra_answers_and_fields_do_no_harm() -> None:
    extra = {**GOOD, "x_debug": None, "answers": {**GOOD["answers"], "extra": {"type": "noul", "noul": 0.5}}}
    with HttpStub(always(reply(extra))) as stub:
        assert isinstance(ask(stub), Answer)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_the_key_stays_with_the_configured_host(status: int) -> None:
    with HttpStub(always(reply(GOOD))) as elsewhere:
        target = elsewhere.url.replace("127.0.0.1", "localhost") + "/v1/systemone?token=abc"
        found = failure_of(reply(b"", status, {"Location": target}))
    assert elsewhere.seen == []
    assert (found.kind, found.code) == (FailureKind.CONFIGURATION, "redirect")
    assert "localhost" in found.message
    assert "abc" not in found.message


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpStub(always(reply(GOOD))) as proxy, HttpStub(always(reply(GOOD))) as stub:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert isinstance(ask(stub), Answer)
    assert proxy.seen == []


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (401, {"detail": {"error_type": "authentication_error"}}, FailureKind.CONFIGURATION, "unauthorized"),
        (401, "Unauthorized", FailureKind.CONFIGURATION, "unauthorized"),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, FailureKind.CONFIGURATION, "out_of_credit"),
        (429, {"error": {"code": "insufficient_quota"}}, FailureKind.CONFIGURATION, "out_of_credit"),
        (403, "", FailureKind.CONFIGURATION, "forbidden"),
        (404, {"detail": "Not Found"}, FailureKind.CONFIGURATION, "not_found"),
        (400, {"error": {"code": "model_not_found", "param": "model"}}, FailureKind.CONFIGURATION, "not_found"),
        (405, "", FailureKind.CONFIGURATION, "no_such_service"),
        (400, {"error": "bad"}, FailureKind.MESSAGE, "http_400"),
        (422, {"detail": "text must not be empty"}, FailureKind.MESSAGE, "http_422"),
        (422, {"detail": [{"loc": ["body", "state"], "msg": "x"}]}, FailureKind.MESSAGE, "http_422"),
        (422, {"detail": [{"loc": ["body", "model"], "msg": "x"}]}, FailureKind.CONFIGURATION, "request_refused"),
        (413, "", FailureKind.MESSAGE, "too_large"),
        (400, {"error": {"code": "context_length_exceeded"}}, FailureKind.MESSAGE, "too_large"),
        (408, "", FailureKind.TRANSIENT, "http_408"),
        (429, "", FailureKind.TRANSIENT, "http_429"),
        (500, "", FailureKind.TRANSIENT, "http_500"),
        (503, "<html>", FailureKind.TRANSIENT, "http_503"),
        (529, "", FailureKind.TRANSIENT, "http_529"),
    ],
)
def test_a_status_means_one_thing(status: int, body: Any, kind: FailureKind, code: str) -> None:
    found = failure_of(reply(body, status))
    assert (found.kind, found.code) == (kind, code)


def test_nothing_a_server_writes_is_repeated() -> None:
    """Error texts quote their input: the mail, and what an attacker put there."""
    hostile = {"detail": [{"loc": ["body", "state"], "msg": MAIL.body, "input": MAIL.body}], "error": {"message": KEY}}
    found = failure_of(reply(hostile, 422))
    assert "invoice" not in repr(found).lower()


def test_a_mail_that_quotes_a_limit_does_not_pass_for_the_servers_word() -> None:
    found = failure_of(reply({"error": "bad request: choice option limit is 2, at most 2 options"}, 400))
    assert found.kind is FailureKind.MESSAGE


def test_a_dead_port_is_an_outage() -> None:
    with HttpStub(always(reply(GOOD))) as stub:
        url = stub.url
    provider = remote_provider("systemone", base_url=url, model="m", clock=SystemClock(), retries=0)
    found = provider.ask(QUESTION, MAIL, time.monotonic() + 5)
    assert isinstance(found, Failure)
    assert (found.kind, found.code) == (FailureKind.TRANSIENT, "unreachable")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed, with its key in the same file."""
    found = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", found, "-out", tmp_path / "crt"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    found.write_text(found.read_text() + (tmp_path / "crt").read_text())
    return found


def test_a_certificate_nobody_signed_is_refused_and_one_the_operator_trusts_is_not(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with HttpStub(always(reply(GOOD)), tls=tls) as stub:
        refused = ask(stub, retries=0)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("crt")))
        trusted = ask(stub)
    assert isinstance(refused, Failure)
    assert (refused.kind, refused.code) == (FailureKind.CONFIGURATION, "certificate")
    assert isinstance(trusted, Answer)
    assert len(stub.seen) == 1


def test_a_mail_too_long_is_sent_once_more_with_half_its_text() -> None:
    with HttpStub(in_order(reply(b"", 413), reply(GOOD))) as stub:
        found = ask(stub)
    assert isinstance(found, Answer)
    assert "mail_shortened" in found.repaired
    assert [len(seen.json["state"]["body"]) for seen in stub.seen] == [len(MAIL.body), len(MAIL.body) // 2]


def test_a_mail_too_long_even_then_is_not_sent_a_third_time() -> None:
    with HttpStub(always(reply(b"", 413))) as stub:
        found = ask(stub)
    assert isinstance(found, Failure)
    assert (found.kind, found.code, len(stub.seen)) == (FailureKind.MESSAGE, "too_large", 2)


# ---------------------------------------------------------------- waiting


@pytest.fixture
def clock() -> ClockByHand:
    return ClockByHand()


def ask_with(
    clock: ClockByHand,
    stub: HttpStub,
    *,
    deadline: float = 120.0,
    retries: int = 2,
    stop: threading.Event | None = None,
) -> Answer | Failure:
    http = JsonHttp(
        name="systemone", base_url=stub.url, clock=clock, timeout_s=20, retries=retries, rng=random.Random(1)
    )
    provider = RemoteProvider(SystemOne(), http, "m")
    try:
        return provider.ask(QUESTION, MAIL, deadline, stop)
    finally:
        provider.close()


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "5"}, 5, 5.2),
        ({"Retry-After": "0"}, 0, 0.2),
        ({"Retry-After": "Tue, 03 Mar 2026 12:00:30 GMT"}, 30, 30.2),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0.2),
        ({"Retry-After": "-5"}, 0.25, 0.5),
        ({"Retry-After": "2abc"}, 0.25, 0.5),
        ({"Retry-After": "1.5"}, 0.25, 0.5),
        ({"Retry-After": ""}, 0.25, 0.5),
        ({"Retry-After": "Tue, 99 Foo 2026 12:00:30 GMT"}, 0.25, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.7),
        ({"retry-after-ms": "soon", "Retry-After": "3"}, 3, 3.2),
        ({}, 0.25, 0.5),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_is_as_long_as_the_server_asks(
    clock: ClockByHand, status: int, headers: Mapping[str, str], least: float, most: float
) -> None:
    with HttpStub(in_order(reply(b"", status, headers), reply(GOOD))) as stub:
        found = ask_with(clock, stub)
    assert isinstance(found, Answer)
    (waited,) = clock.waits
    assert least <= waited <= most


@pytest.mark.parametrize("asked", ["999999", "Fri, 01 Jan 2100 00:00:00 GMT", "61"])
def test_a_wait_over_the_cap_ends_the_ask_at_once_and_says_so(clock: ClockByHand, asked: str) -> None:
    with HttpStub(always(reply(b"", 429, {"Retry-After": asked}))) as stub:
        found = ask_with(clock, stub)
    assert isinstance(found, Failure)
    assert (found.kind, found.code) == (FailureKind.TRANSIENT, "retry_later")
    assert (clock.waits, len(stub.seen)) == ([], 1)


def test_a_wait_past_the_deadline_is_not_begun(clock: ClockByHand) -> None:
    with HttpStub(always(reply(b"", 429, {"Retry-After": "30"}))) as stub:
        found = ask_with(clock, stub, deadline=20)
    assert isinstance(found, Failure)
    assert (found.code, clock.waits, len(stub.seen)) == ("http_429", [], 1)


def test_a_pause_that_one_message_was_told_of_holds_for_the_next(clock: ClockByHand) -> None:
    """Twenty askers are one client to the server: it need not tell each of them."""
    with HttpStub(in_order(reply(b"", 429, {"Retry-After": "10"}), reply(GOOD))) as stub:
        http = JsonHttp(name="systemone", base_url=stub.url, clock=clock, retries=0)
        provider = RemoteProvider(SystemOne(), http, "m")
        provider.ask(QUESTION, MAIL, 20)
        short = provider.ask(QUESTION, MAIL, 5)
        assert clock.waits == []
        long = provider.ask(QUESTION, MAIL, 20)
        provider.close()
    assert isinstance(short, Failure)
    assert short.code == "paced"
    assert isinstance(long, Answer)
    assert 10 <= clock.waits[0] <= 10.2


def test_retries_are_bounded_by_attempts(clock: ClockByHand) -> None:
    with HttpStub(always(reply(b"", 503))) as stub:
        ask_with(clock, stub, retries=2)
    assert len(stub.seen) == 3
    assert 0.25 <= clock.waits[0] <= 0.5 <= clock.waits[1] <= 1.0


def test_retries_are_bounded_by_time(clock: ClockByHand) -> None:
    with HttpStub(always(reply(b"", 503, {"Retry-After": "4"}))) as stub:
        ask_with(clock, stub, retries=50, deadline=10)
    assert len(stub.seen) == 3


def test_a_struggling_server_is_spared_retries(clock: ClockByHand) -> None:
    """Five failures in a row, over all messages, and each further ask is one call."""
    with HttpStub(always(reply(b"", 503))) as stub:
        http = JsonHttp(name="systemone", base_url=stub.url, clock=clock, retries=5)
        provider = RemoteProvider(SystemOne(), http, "m")
        calls = []
        for _ in range(3):
            provider.ask(QUESTION, MAIL, clock.monotonic() + 100)
            calls.append(len(stub.seen))
        provider.close()
    assert calls == [5, 6, 7]


def test_a_wait_ends_when_the_run_is_told_to_stop() -> None:
    stop = threading.Event()
    with HttpStub(always(reply(b"", 429, {"Retry-After": "15"}))) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        threading.Timer(0.2, stop.set).start()
        started = time.monotonic()
        found = provider.ask(QUESTION, MAIL, started + 20, stop)
        provider.close()
    assert time.monotonic() - started < 2
    assert isinstance(found, Failure)
    assert found.code == "stopped"


# ---------------------------------------------------------------- options


def options(n: int) -> CategorySet:
    return CategorySet("", "rest", "Rest", tuple(Category(f"c{i}", f"C{i}", "-") for i in range(n)))


def limited(limit: int) -> Callable[[Seen], Behaviour]:
    """A server that takes so many options, and says no in FastAPI's way."""

    def script(seen: Seen) -> Behaviour:
        asked = seen.json["questions"]["category"]["criteria"]
        if len(asked) > limit:
            where = ["body", "questions", "category", "choice", "criteria"]
            text = f"Dictionary should have at most {limit} items after validation, not {len(asked)}"
            return reply({"detail": [{"loc": where, "msg": text, "type": "too_long"}]}, 422)
        probabilities = {option: (0.9 if i == 0 else 0.1 / (len(asked) - 1)) for i, option in enumerate(asked)}
        return reply({"model": "m", "answers": {"category": {"choice": "c0", "probabilities": probabilities}}})

    return script


@pytest.mark.parametrize("limit", [26, 50, 64, 128])
def test_none_of_these_gives_way_where_it_would_pass_a_servers_limit(limit: int) -> None:
    question = build_question(options(limit), offer_none=True)
    with HttpStub(limited(limit)) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        first = provider.ask(question, MAIL, time.monotonic() + 5)
        second = provider.ask(question, MAIL, time.monotonic() + 5)
        provider.close()
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert provider.option_limit == limit
    assert "none_not_offered" in second.repaired
    assert len(second.probabilities) == limit
    assert len(stub.seen) == 3  # the limit is learned once


def test_too_many_options_are_refused_with_the_limit_named() -> None:
    question = build_question(options(65), offer_none=True)
    with HttpStub(limited(64)) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        found = provider.probe(question, time.monotonic() + 5)
        provider.close()
    assert isinstance(found, Failure)
    assert (found.kind, found.code) == (FailureKind.CONFIGURATION, "too_many_options")
    assert "limit is 64" in found.message


@pytest.mark.parametrize("said", ["too many choices: 66 > 26", {"error": "A question takes up to 26 options."}])
def test_a_probe_understands_a_limit_told_in_free_text(said: Any) -> None:
    question = build_question(options(65), offer_none=True)
    with HttpStub(always(reply(said, 400))) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        found = provider.probe(question, time.monotonic() + 5)
        provider.close()
    assert isinstance(found, Failure)
    assert "26" in found.message


def test_what_can_never_fit_is_not_even_sent() -> None:
    question = build_question(options(256), offer_none=True)
    with HttpStub(always(reply(GOOD))) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        found = provider.ask(question, MAIL, time.monotonic() + 5)
        provider.close()
    assert isinstance(found, Failure)
    assert "255" in found.message
    assert stub.seen == []
