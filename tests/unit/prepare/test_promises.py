"""What holds for every input: no exception, output within bounds, nothing that runs away.

`make fuzz` looks longer, and holds every input to a second; here other tests' garbage is collected in that time.
"""

from __future__ import annotations

import base64
import importlib.util
import random
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.domain.mail import MailSource, Part, PartBytes
from triage.prepare import choose_parts, prepare, read_message
from triage.prepare.charset import decode
from triage.prepare.html import render
from triage.prepare.links import remove_links
from triage.prepare.transfer import decode_transfer

SCRIPT = Path(__file__).parents[3] / "scripts" / "fuzz_prepare.py"


def _fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_prepare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


FUZZ = _fuzz()
FUZZ.LIMIT_S = 10.0


@pytest.mark.parametrize("block", range(6))
def test_mutated_mail_breaks_no_promise(block: int) -> None:
    """Five hundred mutations a block, the same in every run."""
    rng = random.Random(f"unit/{block}")
    mails = FUZZ.seeds()
    for n in range(500):
        raw = FUZZ.mutate(rng, mails)
        found, _ = FUZZ.fault(raw, rng.choice((6000, 400, 20)))
        assert not found, f"{found} (mutation {n} of block {block})"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(FUZZ.hostile_messages())
def test_hostile_messages_break_no_promise(raw: bytes) -> None:
    assert FUZZ.fault(raw, 6000)[0] == ""


def test_the_fuzzer_sees_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail: an exception and an overlong output are both reported."""

    def broken(source: MailSource, *, max_chars: int) -> None:
        raise ValueError("no")

    assert FUZZ.fault(b"Subject: x\n\nlong text\n", 4)[0] == ""
    monkeypatch.setattr(FUZZ, "prepare", broken)
    assert FUZZ.fault(b"Subject: x\n\nlong text\n", 4)[0] == "ValueError: no"


@given(st.text())
def test_text_survives_every_codec_it_was_written_in(text: str) -> None:
    """Valid UTF-8 always comes back as it was, labelled or not."""
    data = text.encode("utf-8", "ignore")
    wanted = data.decode("utf-8").removeprefix("\ufeff")
    if not any(mark in data for mark in (b"\x1b$", b"\xff\xfe", b"\xfe\xff")):
        assert decode(data, "utf-8") == (wanted, False)


@given(st.binary(max_size=400), st.integers(0, 400))
def test_cut_base64_gives_the_beginning_of_the_bytes(data: bytes, cut: int) -> None:
    encoded = base64.encodebytes(data)
    assert data.startswith(decode_transfer(encoded[:cut], "base64"))
    assert decode_transfer(encoded, "base64") == data


@given(st.text(max_size=60), st.integers(0, 200))
def test_a_part_cut_anywhere_gives_no_replacement_character(text: str, cut: int) -> None:
    data = text.encode("utf-8", "ignore").replace(b"\xef\xbf\xbd", b"")[:cut]
    part = Part("1", "text", "plain", {"charset": "utf-8"}, "8bit", len(data))
    assert "\ufffd" not in prepare(MailSource(b"", part, (PartBytes(part, data, cut=True),))).body


WORDS = ("word", "node.js", "1.2.3", "e.g.", "file.txt", "10:30", "and/or", "(x)", "a@b.example")
LINKS = (
    "https://t.example/SECRET1", "www.t.example/SECRET2", "<mailto:SECRET3@t.example>", "t.example.com/SECRET4",
    "[w](http://t.example/SECRET5)", "word", "(", ")", ",", "\n",
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS)))
def test_text_without_links_is_left_alone(words: list[str]) -> None:
    text = " ".join(words)
    assert remove_links(text).text == text


@given(st.lists(st.sampled_from(LINKS)))
def test_no_link_survives_whatever_stands_around_it(words: list[str]) -> None:
    assert "SECRET" not in remove_links(" ".join(words)).text


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 20_000,
        "".join(f"<b a={n}><p>" for n in range(5_000)),
        "".join(f"<b a={n}>" for n in range(300)) + "<p>x" * 15_000,
        "<p " + " ".join(f"a{n}" for n in range(12_000)) + ">",
        "<table><td>" * 8_000,
        "<style>" + "".join(f".a.b{n}{{color:red}}" for n in range(3_000)) + "</style>" + "<p class='a b1'>x" * 3_000,
        "<style>" * 9_000 + "</style>" + " " * 40_000,
        "<!--" + " " * 60_000 + "<-->",
        "<p " + "/ " * 40_000 + "=",
        "<svg>" * 15_000,
        "&" * 90_000,
    ],
    ids=[
        "nesting",
        "reopened",
        "reopened-late",
        "attributes",
        "tables",
        "rules",
        "raw-text",
        "comment",
        "slashes",
        "svg",
        "amp",
    ],
)
def test_markup_made_to_explode_costs_under_a_second(html: str) -> None:
    """64 KB of markup can become millions of nodes in a parser that is handed it as it is."""
    started = time.process_time()
    render(html)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("depth", [30, 3_000])
def test_absurd_structures_are_chosen_from_without_recursion(depth: int) -> None:
    part = Part("1", "text", "plain", size=10)
    for _ in range(depth):
        part = Part("", "multipart", "mixed", children=(part,))
    wide = Part("", "multipart", "mixed", children=(part, *(Part("9", "image", "gif") for _ in range(5_000))))
    assert len(choose_parts(wide)) <= 1
    assert prepare(MailSource(b"Subject: x", wide)).subject == "x"


def test_a_large_message_costs_its_text_part_only() -> None:
    head = b"Subject: s\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    text = b"--b\r\nContent-Type: text/plain\r\n\r\nHello.\r\n"
    blob = b"--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n" + b"QUJD" * 6_500_000
    started = time.process_time()
    mail = prepare(read_message(head + text + blob + b"\r\n--b--\r\n"))
    assert time.process_time() - started < 0.5
    assert mail.body == "Hello."
    assert mail.signals.attachments == 1
