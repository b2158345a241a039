"""Counts and headers that travel beside the text, and the two roads to the same result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from triage.domain.mail import Part, PartBytes
from triage.prepare import prepare, read_message

FOLDER = Path(__file__).parents[2] / "cases" / "prepare"


def test_signal_headers_are_decoded_and_unfolded() -> None:
    raw = b"List-Id: =?utf-8?q?Ca=C3=B1a?=\r\n <cana.example>\r\nPrecedence: bulk\r\nSubject: x\r\n\r\nHi\r\n"
    assert prepare(read_message(raw)).signals.headers == {"list-id": "Caña <cana.example>", "precedence": "bulk"}


def test_links_hosts_addresses_and_images_are_counted() -> None:
    html = (
        b'<a href="https://a.example/1">x</a><a href="https://A.example/2">y</a><a href="http://192.0.2.7/z">z</a>'
        b'<img src="x.png"><img src="y.png">'
    )
    signals = prepare(read_message(b"Content-Type: text/html\r\n\r\n" + html)).signals
    assert (signals.links, signals.link_hosts, signals.address_links, signals.images) == (3, 2, 1, 2)
    assert signals.has_html
    assert signals.html_chars == len(html)


def test_hidden_characters_are_counted_without_white_space() -> None:
    raw = b'Content-Type: text/html\r\n\r\n<p>Shown</p><p style="display:none">ab cd</p>'
    mail = prepare(read_message(raw))
    assert mail.signals.hidden_chars == 4
    assert mail.warnings == ("hidden_text",)


def test_quoted_lines_and_attachments_are_counted() -> None:
    raw = (FOLDER / "mime-text-attachment.eml").read_bytes()
    assert prepare(read_message(raw)).signals.attachments == 1
    assert prepare(read_message((FOLDER / "quote-top.eml").read_bytes())).signals.quoted_lines == 3


@pytest.mark.parametrize("name", ["html-stub", "mime-related", "transfer-base64-cut", "quote-gmail", "mime-calendar"])
def test_parts_fetched_under_a_stub_of_their_path_read_the_same(name: str) -> None:
    """The mailbox hands back a part that knows only its path; everything else is looked up in the structure."""
    source = read_message((FOLDER / f"{name}.eml").read_bytes())
    stubs = tuple(PartBytes(Part(t.part.path, "", ""), t.data, t.cut) for t in source.texts)
    assert prepare(replace(source, texts=stubs)) == prepare(source)


def test_a_part_cut_by_its_cap_is_recorded_as_truncated() -> None:
    mail = prepare(read_message(b"Content-Type: text/plain\r\n\r\n" + b"word " * 20_000))
    assert mail.truncated
    assert "truncated" in mail.warnings


@pytest.mark.parametrize("limit", [0, 1, 7, 47, 200, 6000])
def test_the_body_never_exceeds_the_cap(limit: int) -> None:
    raw = b"Content-Type: text/plain\r\n\r\n" + b"alpha beta gamma " * 900
    assert len(prepare(read_message(raw), max_chars=limit).body) <= limit
