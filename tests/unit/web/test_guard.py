"""Who may read the pages."""

from __future__ import annotations

import base64

import pytest

from triage.web.guard import refusal
from triage.web.messages import Request

TOKEN = "correct horse: battery staple ñ"


def asked(**headers: str) -> Request:
    return Request("/", headers=headers)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    "shown",
    [f"Bearer {TOKEN}", f"bearer   {TOKEN}", basic("anybody", TOKEN), basic("", TOKEN)],
    ids=["bearer", "lower case", "basic", "basic without a user"],
)
def test_the_token_lets_in_from_anywhere(shown: str) -> None:
    assert refusal(asked(authorization=shown, host="triage.example.com"), TOKEN, "0.0.0.0") is None


@pytest.mark.parametrize(
    "shown",
    [
        "", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Digest {TOKEN}", TOKEN, basic(TOKEN, ""), "Basic %%%",
        "Basic /////w==", basic("a", TOKEN[:-1]),
    ],
)  # fmt: skip
def test_everything_else_is_asked_for_the_token(shown: str) -> None:
    refused = refusal(asked(authorization=shown, host="127.0.0.1:8025"), TOKEN, "127.0.0.1")
    assert refused is not None
    assert refused.status == 401
    assert refused.headers["WWW-Authenticate"].startswith("Basic ")
    assert TOKEN.encode() not in refused.body


@pytest.mark.parametrize("host", ["127.0.0.1:8025", "localhost", "LOCALHOST:1", "[::1]:8025", "127.0.0.2", "dash.test"])
def test_without_a_token_names_of_this_machine_are_answered(host: str) -> None:
    assert refusal(asked(host=host), None, "dash.test") is None


@pytest.mark.parametrize("host", ["", "evil.example", "evil.example:8025", "127.0.0.1.evil.example", "[2001:db8::1]"])
def test_a_name_that_was_rebound_to_this_machine_is_turned_away(host: str) -> None:
    """DNS rebinding: the browser comes to loopback with the attacker's name in Host."""
    refused = refusal(asked(host=host), None, "127.0.0.1")
    assert refused is not None
    assert refused.status == 421
