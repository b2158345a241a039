"""What is taken out of a text before it leaves the program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.redact import conceal, redact


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("from ana.lopez+x@example.com today", "from @example.com today"),
        ("<ana@mail.example.com>", "<@mail.example.com>"),
        ('"Ana Lopez"@example.com', "@example.com"),
        ("Message-ID: <CAF=abc.123@mail.gmail.com>", "Message-ID: <@mail.gmail.com>"),
        ("bounce+ana=example.org@lists.example.com;", "@lists.example.com;"),
        ("o'brien@example.com", "@example.com"),
        ("ñandú@ejemplo.es", "@ejemplo.es"),
        ("see https://example.com/reset?token=abc now", "see [url] now"),
        ("HTTP://EXAMPLE.COM/X", "[url]"),
        ("imaps://ana@example.com:993/INBOX", "[url]"),
        ("www.example.com/x", "[url]"),
        ("mailto:ana@example.com?subject=x", "[url]"),
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [hidden]"),
        ("three messages, 20 of 1.2.3", "three messages, 20 of 1.2.3"),
        ("a @ b", "a @ b"),
        ("accounts[0].port", "accounts[0].port"),
    ],
)
def test_addresses_and_urls_go_and_the_rest_stays(text: str, left: str) -> None:
    assert redact(text) == left


def test_a_known_secret_goes_wherever_it_stands() -> None:
    conceal("kept-in-a-drawer")
    conceal("kept-in-a-drawer-too")
    assert redact("xkept-in-a-drawer-toox kept-in-a-drawer") == "x[hidden]x [hidden]"


def test_words_too_short_to_be_secrets_are_left_alone() -> None:
    conceal("is")
    conceal("")
    assert redact("this is it") == "this is it"


def test_old_tokens_make_room_for_new_ones() -> None:
    for i in range(600):
        conceal(f"token-number-{i:04}")
    assert redact("token-number-0599") == "[hidden]"
    assert redact("token-number-0000") == "token-number-0000"


def test_a_secret_is_found_before_the_text_is_cut() -> None:
    conceal("across-the-border")
    assert "across" not in redact("x" * 3_995 + "across-the-border")


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "@" * 100_000, "a@" * 100_000, "http://" * 50_000, '"' * 100_000, "a.a." * 1_000 + "@"]
)
def test_no_text_takes_long_or_stays_long(text: str) -> None:
    began = time.process_time()
    assert len(redact(text)) <= 4_003
    assert time.process_time() - began < 1


@given(
    local=st.from_regex(r"[A-Za-z0-9._+-]{1,30}", fullmatch=True),
    before=st.text(max_size=30),
    after=st.text(max_size=30),
)
def test_no_local_part_survives(local: str, before: str, after: str) -> None:
    assert f"{local}@example.com" not in redact(f"{before} {local}@example.com {after}")
