"""What servers that call themselves compatible send besides: an answer for certain, or one plain failure."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from typing import Any

import pytest

from fakes.http_stub import Behaviour, HttpStub, always, head, in_order, raw, reply
from triage.clock import SystemClock
from triage.decide.providers import remote_provider
from triage.decide.question import build_question
from triage.domain.category import Category, CategorySet
from triage.domain.decision import Answer, Failure, FailureKind
from triage.domain.mail import PreparedMail

NAMES = ("work", "family", "billing")
QUESTION = build_question(CategorySet("", "rest", "Rest", tuple(Category(n, n, n) for n in NAMES)), offer_none=False)
MAIL = PreparedMail("ann@example.com", "team@example.com", "Invoice", "Please find the invoice attached.")
SURE: dict[str, Any] = {"work": 0.9, "family": 0.06, "billing": 0.04}


def body(**answer: Any) -> dict[str, Any]:
    fields = {"type": "choice", "choice": "work", "probabilities": SURE}
    return {"model": "stub-1.0", "answers": {"category": fields | answer}, "usage": {"input_tokens": 3}}


GOOD = json.dumps(body())


def ask(behaviour: Behaviour, *more: Behaviour, retries: int = 0) -> Answer | Failure:
    with HttpStub(in_order(behaviour, *more) if more else always(behaviour)) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock(), retries=retries)
        try:
            return provider.ask(QUESTION, MAIL, time.monotonic() + 10)
        finally:
            provider.close()


@pytest.mark.parametrize(
    "behaviour",
    [
        reply(GOOD, headers={"Content-Type": "text/plain"}),
        reply(GOOD, headers={"Content-Type": "text/html; charset=utf-16"}),
        reply(b"\xef\xbb\xbf" + GOOD.encode()),
        reply(b"\r\n\t " + GOOD.encode() + b"\n"),
        reply(GOOD, 201),
        reply(GOOD, headers={"Set-Cookie": "a=b; Domain=example.com"}),
        reply(GOOD, headers={"Refresh": "0; url=http://elsewhere.example/"}),
        reply(zlib.compress(GOOD.encode()), headers={"Content-Encoding": "deflate"}),
        reply(gzip.compress(GOOD.encode()), headers={"Content-Encoding": " GZIP "}),
        reply(body(confidence=17)),
        reply(body(confidence="high")),
        reply(body() | {"error": None}),
        reply(body() | {"model": None, "usage": None}),
        raw(
            head(200, {"Transfer-Encoding": "chunked", "Trailer": "X-Sum", "Connection": "close"})
            + b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(GOOD), GOOD.encode())
        ),
        raw(b"HTTP/1.1 100 Continue\r\n\r\n" + head(200, {"Connection": "close"}) + GOOD.encode()),
        raw(head(200, {"Connection": "close"}) + GOOD.encode()),
    ],
)  # fmt: skip
def test_what_does_not_touch_the_meaning_does_no_harm(behaviour: Behaviour) -> None:
    found = ask(behaviour)
    assert isinstance(found, Answer), found
    assert found.choice == "work"
    assert found.provider_confidence is None


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"probabilities": {"work": "90%", "family": "6%", "billing": "4%"}}, "not_a_number"),
        ({"probabilities": {"work": 90, "family": 6, "billing": 4}}, "out_of_range"),
        ({"probabilities": [0.9, 0.06, 0.04]}, "no_probabilities"),
        ({"probabilities": [["work", 0.9], ["family", 0.06], ["billing", 0.04]]}, "no_probabilities"),
        ({"probabilities": SURE | {"other": 0.0}}, "unknown_option"),
        ({"probabilities": SURE | {"Work": 0.0}}, "unknown_option"),
        ({"probabilities": {"work": 0.9, "family": None, "billing": 0.1}}, "not_a_number"),
        ({"probabilities": {"work": {"p": 0.9}, "family": 0.06, "billing": 0.04}}, "not_a_number"),
        ({"probabilities": {"work": -0.1, "family": 1.0, "billing": 0.1}}, "out_of_range"),
        ({"probabilities": {"work": True, "family": 0, "billing": 0}}, "not_a_number"),
        ({"probabilities": {"work": 0.5}}, "sum"),
        ({"probabilities": {}}, "no_probabilities"),
        ({"choice": " work"}, "unknown_choice"),
        ({"choice": "family"}, "not_argmax"),
        ({"choice": ["work"]}, "choice_type"),
        ({"choice": 0}, "choice_type"),
        ({"type": "refusal", "choice": None}, "answer_type"),
        ({"type": None}, "answer_type"),
    ],
)
def test_an_answer_that_leaves_room_for_doubt_is_unusable(answer: dict[str, Any], code: str) -> None:
    found = ask(reply(body(**answer)))
    assert isinstance(found, Failure), found
    assert (found.kind, found.code) == (FailureKind.UNUSABLE, code)


@pytest.mark.parametrize("value", [None, [], "work", 3, {"category": None}, {"category": []}, {"category": "work"}])
def test_answers_of_another_shape_are_unusable(value: object) -> None:
    found = ask(reply({"answers": value}))
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNUSABLE


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "-1e-3"])
def test_numbers_that_are_no_probabilities_are_found_out(literal: str) -> None:
    found = ask(reply(GOOD.replace("0.06", literal)))
    assert isinstance(found, Failure)
    assert (found.kind, found.code) == (FailureKind.UNUSABLE, "out_of_range")


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (raw(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), "not_json"),
        (reply("", 205), "not_json"),
        (reply(GOOD[:40], 206), "not_json"),
        (reply("data: " + GOOD + "\n\ndata: [DONE]\n\n", headers={"Content-Type": "text/event-stream"}), "not_json"),
        (reply(GOOD + "\n" + GOOD), "not_json"),
        (reply(GOOD.encode("utf-16")), "not_json"),
        (reply("```json\n" + GOOD + "\n```"), "not_json"),
        (reply("//" + GOOD), "not_json"),
        (reply(GOOD.replace('"', "'")), "not_json"),
        (reply(gzip.compress(GOOD.encode())), "not_json"),
        (reply(gzip.compress(GOOD.encode())[:-20], headers={"Content-Encoding": "gzip"}), "not_json"),
        (reply(gzip.compress(gzip.compress(GOOD.encode())), headers={"Content-Encoding": "gzip, gzip"}), "not_json"),
        (reply(GOOD, headers={"Content-Encoding": "gzip"}), "not_json"),
        (reply("<?xml version='1.0'?><Error/>"), "web_page"),
        (reply("\n\n<!-- proxy -->\n<html>", headers={"Content-Type": "text/html"}), "web_page"),
        (raw(GOOD.encode()), "cut_short"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + GOOD.encode()), "cut_short"),
        (reply({"error": {"message": "Provider returned error"}}), "error_in_answer"),
        (reply({"error": "overloaded"}), "error_in_answer"),
        (reply({"error": {"code": 502, "message": "Provider returned error"}}), "http_502"),
        (reply({"error": {"code": 429, "message": "slow down"}}), "http_429"),
        *((reply("", status), f"http_{status}") for status in (408, 409, 421, 425, 429, 502, 504, 520, 529, 598)),
    ],
)
def test_a_moments_trouble_is_nobodys_fault_and_tried_again(behaviour: Behaviour, code: str) -> None:
    found = ask(behaviour)
    assert isinstance(found, Failure), found
    assert (found.kind, found.code) == (FailureKind.TRANSIENT, code)
    assert isinstance(ask(behaviour, reply(GOOD), retries=1), Answer)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (reply({"error": {"code": 402, "message": "Insufficient credits"}}), "out_of_credit"),
        (reply({"error": {"code": 401}}), "unauthorized"),
        (reply(GOOD, 302, {"Location": "/v1/systemone/"}), "redirect"),
        (reply("", 308, {"Location": "https://127.0.0.1/v1/systemone"}), "redirect"),
        (reply("", 300, {"Location": "http://[bad"}), "redirect"),
        (reply("", 304), "redirect"),
        (reply("", 501), "no_such_service"),
    ],
)
def test_what_only_an_operator_can_change_stops_the_asking(behaviour: Behaviour, code: str) -> None:
    found = ask(behaviour)
    assert isinstance(found, Failure), found
    assert (found.kind, found.code) == (FailureKind.CONFIGURATION, code)


def test_an_error_in_place_of_an_answer_may_be_one_mails_own() -> None:
    found = ask(reply({"error": {"code": 400, "message": "context"}}))
    assert isinstance(found, Failure)
    assert (found.kind, found.code) == (FailureKind.MESSAGE, "http_400")


def test_a_cookie_is_not_sent_back() -> None:
    with HttpStub(always(reply(GOOD, headers={"Set-Cookie": "track=1; Path=/"}))) as stub:
        provider = remote_provider("systemone", base_url=stub.url, model="m", clock=SystemClock())
        for _ in range(2):
            assert isinstance(provider.ask(QUESTION, MAIL, time.monotonic() + 10), Answer)
        provider.close()
    assert [seen.headers.get("cookie") for seen in stub.seen] == [None, None]
