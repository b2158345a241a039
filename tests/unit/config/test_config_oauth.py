"""Access tokens: asked for once, kept until shortly before they end, refusals told with a remedy."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

import pytest

from triage.config.oauth import RefreshedToken
from triage.config.secret import Secret
from triage.domain.errors import ConfigError, MailboxLost


class Endpoint:
    """A token endpoint that answers from a list and remembers what it was asked."""

    def __init__(self, *answers: tuple[int, object]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.now = 1_000.0

    def post(self, url: str, form: bytes) -> tuple[int, bytes]:
        self.asked.append((url, parse_qs(form.decode())))
        status, body = self.answers.pop(0)
        if status == 0:
            raise OSError("hunter2")
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()

    def token(self, provider: str = "google") -> RefreshedToken:
        return RefreshedToken(
            provider, "client-1", Secret.of("refresh-1"), Secret.of("secret-1"), "example.com", "f:1: oauth",
            post=self.post, monotonic=lambda: self.now,
        )  # fmt: skip


def test_a_token_is_kept_until_two_minutes_before_it_ends() -> None:
    endpoint = Endpoint((200, {"access_token": "tok-1", "expires_in": 3600}), (200, {"access_token": "tok-2"}))
    token = endpoint.token()
    assert [token.get(), token.get()] == ["tok-1", "tok-1"]
    endpoint.now += 3_479
    assert token.get() == "tok-1"
    endpoint.now += 1
    assert token.get() == "tok-2"


def test_the_request_is_the_one_of_rfc_6749() -> None:
    endpoint = Endpoint((200, {"access_token": "tok-1"}), (200, {"access_token": "tok-2"}))
    endpoint.token("google").get()
    endpoint.token("microsoft").get()
    (google, form), (microsoft, scoped) = endpoint.asked
    assert google == "https://oauth2.googleapis.com/token"
    assert form == {
        "grant_type": ["refresh_token"],
        "client_id": ["client-1"],
        "refresh_token": ["refresh-1"],
        "client_secret": ["secret-1"],
    }
    assert microsoft == "https://login.microsoftonline.com/example.com/oauth2/v2.0/token"
    assert scoped["scope"] == ["https://outlook.office.com/IMAP.AccessAsUser.All offline_access"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            (400, {"error": "invalid_grant", "error_description": "hunter2"}),
            "(invalid_grant); the refresh token has ended",
        ),
        ((401, {"error": "hunter2"}), "(HTTP 401); check client_id and refresh_token"),
        ((200, {"expires_in": 5}), "(HTTP 200)"),
        ((200, b"<html>hunter2"), "(HTTP 200)"),
        ((200, [1]), "(HTTP 200)"),
        ((302, b""), "(HTTP 302)"),
    ],
)
def test_a_refusal_is_a_configuration_error_without_the_answer_s_text(answer: tuple[int, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint(answer).token().get()
    assert str(caught.value).startswith("f:1: oauth: google refused to give a token ")
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("answer", [(0, b""), (503, b""), (429, b"{}")])
def test_a_provider_that_cannot_be_reached_is_a_passing_trouble(answer: tuple[int, object]) -> None:
    endpoint = Endpoint(answer, (200, {"access_token": "tok-1"}))
    token = endpoint.token()
    with pytest.raises(MailboxLost) as caught:
        token.get()
    assert "hunter2" not in str(caught.value)
    assert token.get() == "tok-1"


def test_nothing_of_it_shows() -> None:
    token = Endpoint((200, {"access_token": "tok-1"})).token()
    token.get()
    assert not any(word in repr(token) for word in ("tok-1", "refresh-1", "secret-1"))
