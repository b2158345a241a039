"""What people and programs read of a run: tables at 80 and 120 columns, words, JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from triage.cli import theme
from triage.cli.jsonview import run_json
from triage.cli.render import batch_table, check_report, cost_line, inbox_left_table, run_view, runs_table
from triage.cli.tables import Face
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, RunState, StepRecord, Trigger
from triage.report import words
from triage.report.finding import Finding

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def a_run(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "id": "9f31c2aa77b0",
        "account": "team",
        "trigger": Trigger.MANUAL,
        "fire_time": NOON,
        "state": RunState.DONE,
        "enqueued_at": NOON,
        "started_at": NOON + timedelta(seconds=1),
        "finished_at": NOON + timedelta(seconds=3.5),
        "counts": {"selected": 5, "archived": 2, "below_floor": 1},
    }
    return Run(**values | changes)


def a_step(**changes: Any) -> StepRecord:
    values: dict[str, Any] = {
        "name": "select",
        "started_at": NOON,
        "duration_ms": 41,
        "counts": {"messages": 1200, "selected": 5},
    }
    return StepRecord(**values | changes)


def a_decision(uid: int = 7, **changes: Any) -> DecisionRecord:
    values: dict[str, Any] = {
        "id": f"d{uid}",
        "run_id": "9f31c2aa77b0",
        "account": "team",
        "ref": MessageRef("INBOX", 1, uid),
        "message_key": f"{uid:032x}",
        "message_id_key": "",
        "category_set": "0123456789abcdef",
        "outcome": Outcome.APPLIED,
        "label_id": "receipt",
        "choice": "receipt",
        "confidence": 0.83,
        "floor": 0.5,
        "archive_floor": 0.7,
        "archive": True,
        "reason": "chosen",
        "why": "receipt at 0.83, floor 0.50.",
        "decided_at": NOON,
        "probabilities": {"receipt": 0.85, "notification": 0.08, "promotion": 0.07},
        "provider": "embedded",
        "model": "triage-linear-1",
        "chain_position": 0,
        "latency_ms": 3,
        "input_tokens": 210,
        "sender_domain": "paperworks.example",
        "labelled_at": NOON,
        "archived_at": NOON,
    }
    return DecisionRecord(**values | changes)


KEPT: dict[str, Any] = {"archive": False, "archived_at": None}

A_BATCH = (
    a_decision(1),
    a_decision(2, label_id="action-required", choice="action-required", confidence=0.71, **KEPT,
               probabilities={"action-required": 0.73, "conversation": 0.2, "receipt": 0.07}),
    a_decision(3, outcome=Outcome.BELOW_FLOOR, label_id="unclassified", choice="newsletter", confidence=0.34, **KEPT,
               probabilities={"newsletter": 0.41, "promotion": 0.37, "receipt": 0.22}, why="Unsure."),
    a_decision(4, label_id="newsletter", choice="newsletter", confidence=0.61, **KEPT,
               probabilities={"newsletter": 0.65, "promotion": 0.35}),
    a_decision(5, outcome=Outcome.INHERITED, label_id="notification", confidence=1.0, probabilities={}, provider=None,
               model=None, chain_position=None, inherited_from="ab" * 16, inherited_source="person"),
    a_decision(6, label_id="hijack-attempt", choice="hijack-attempt", confidence=0.9, **KEPT),
)  # fmt: skip

ARCHIVING = frozenset({"receipt", "notification", "newsletter", "promotion", "spam"})
FACES = {
    MessageRef("INBOX", 1, 1): Face("Paperworks Packaging", "Order confirmation 50912"),
    MessageRef("INBOX", 1, 2): Face("Marta Ibáñez", "Re: Pedido de café para la temporada que viene, y otra cosa"),
    MessageRef("INBOX", 1, 3): Face("The Weekly Grind", "Issue 212: why your decaf got better"),
    MessageRef("INBOX", 1, 4): Face("デカフェ新聞", "今週のコーヒーニュースと豆の話"),
    MessageRef("INBOX", 1, 5): Face("Roastery Monitor", "RESOLVED: hopper"),
    MessageRef("INBOX", 1, 6): Face("Paul \x1b[31mVerne", "Hours\u202e [bold]today[/bold]\r\nBcc: x"),
}


def shown(what: RenderableType, width: int, encoding: str = "utf-8") -> str:
    stream = TextIOWrapper(BytesIO(), encoding=encoding, errors="replace")
    Console(file=stream, width=width, force_terminal=False).print(what)
    stream.seek(0)
    return stream.read()


def row(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.lstrip().startswith(start))


EVERYTHING = (
    batch_table(A_BATCH, FACES, ARCHIVING),
    inbox_left_table(A_BATCH, FACES, ARCHIVING),
    runs_table([a_run(), a_run(state=RunState.FAILED, reason="unreachable")]),
    run_view(a_run(error="the server went away"), [a_step()], A_BATCH, FACES, ARCHIVING),
    check_report([Finding("warn", "MOVE", "not offered " * 20, "Nothing to do. " * 20)]),
)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("what", EVERYTHING)
def test_no_line_is_wider_than_the_terminal(what: RenderableType, width: int) -> None:
    assert max(cell_len(line) for line in shown(what, width).splitlines()) <= width


def test_the_subject_has_room_at_every_width() -> None:
    """Between the two layouts nothing is squeezed: the subject keeps at least twenty columns."""
    for width in range(80, 200):
        head = shown(batch_table(A_BATCH, FACES), width).splitlines()[0]
        assert head.index("Label") - head.index("Subject") > 20, width


@pytest.mark.parametrize("width", [80, 120])
def test_every_message_of_a_run_is_one_line(width: int) -> None:
    """Head, rule, six messages: long subjects and wide characters are cut, never wrapped."""
    assert len(shown(batch_table(A_BATCH, FACES, ARCHIVING), width).splitlines()) == 8


def test_a_narrow_table_has_number_runner_up_and_outcome() -> None:
    text = shown(batch_table(A_BATCH, FACES, ARCHIVING), 80)
    assert row(text, "Sender").split() == ["Sender", "Subject", "Label", "Sure", "Runner-up", "Outcome"]
    assert row(text, "Paperworks").split()[-5:] == ["receipt", "0.83", "notific…", ".08", "archived"]
    assert row(text, "The Weekly").split()[-5:] == ["unclassified", "0.34", "newslet…", ".41", "unsure"]


def test_a_wide_table_draws_the_confidence_with_both_floors_and_says_the_outcome_in_words() -> None:
    text = shown(batch_table(A_BATCH, FACES, ARCHIVING), 120)
    assert "0.83 ━━━━━╋━╋── notification .08  archived" in row(text, "Paperworks")
    assert "0.34 ━━━──┼─┼── newsletter .41    unsure: stays in inbox" in row(text, "The Weekly")
    assert "held back: under 0.70" in row(text, "デカフェ新聞")
    assert "archived with thread" in row(text, "Roastery")
    assert "kept: do not trust it" in row(text, "Paul")


def test_an_output_without_unicode_gets_plain_signs() -> None:
    text = shown(batch_table(A_BATCH[:1], FACES), 120, encoding="ascii")
    assert "0.83 =====|=|.." in text


@pytest.mark.parametrize(("confidence", "drawn"), [(0.499, "━━━━─┼────"), (0.5, "━━━━━╋────"), (1.0, "━━━━━╋━━━━")])
def test_the_bar_passes_the_tick_exactly_when_the_floor_is_reached(confidence: float, drawn: str) -> None:
    assert shown(theme.ConfidenceBar(confidence, (0.5,)), 40).strip().endswith(drawn)


def test_a_confidence_is_never_rounded_up_to_a_floor() -> None:
    assert theme.truncated(0.6999) == "0.69"
    assert theme.truncated(0.29) == "0.29"


def test_text_of_a_mail_cannot_command_the_terminal() -> None:
    """No escape sequence, no bidirectional override, no second line, no markup."""
    text = shown(batch_table(A_BATCH[5:], FACES), 120)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "Hours [bold]today[/bold] Bcc… " in text


def test_without_a_mailbox_the_table_shows_the_domain_and_the_fingerprint() -> None:
    text = shown(batch_table(A_BATCH[:1]), 120)
    assert "paperworks.examp…" in text
    assert "message 00000000" in text


def test_a_message_without_a_subject_says_so() -> None:
    text = shown(batch_table(A_BATCH[:1], {A_BATCH[0].ref: Face("A", " \u200b")}), 80)
    assert "(no subject)" in text


def test_what_stayed_is_grouped_by_why_and_what_left_is_absent() -> None:
    text = shown(inbox_left_table(A_BATCH, FACES, ARCHIVING), 120)
    assert "For a person to read (1)" in text
    assert "Written to give orders: do not trust (1)" in text
    assert "Unsure, so it stays (1)" in text
    assert "Sorted, but held back from the archive (1)" in text
    assert "newsletter .41 or promotion .37?" in text
    assert "newsletter: 0.61 is under 0.70" in text
    assert "Paperworks" not in text


def test_an_inbox_that_is_empty_says_so() -> None:
    assert "Nothing stayed in the inbox." in shown(inbox_left_table(A_BATCH[:1]), 80)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "archived"),
        ({**KEPT, "outcome": Outcome.UNUSABLE_ANSWER}, "no usable answer"),
        ({**KEPT, "outcome": Outcome.CHAIN_FAILED}, "nobody could decide"),
        ({**KEPT, "reason": "none_of_these", "label_id": "unclassified"}, "nothing fits: stays"),
        ({**KEPT, "warnings": ("hidden_text",)}, "held back: hidden text"),
        ({**KEPT, "outcome": Outcome.INHERITED, "label_id": "conversation"}, "kept with thread"),
        ({"archived_at": None, "closed_reason": "person_touched"}, "left alone: a person was faster"),
        ({"archived_at": None}, "archive still to come"),
        ({"archived_at": None, "labelled_at": None}, "not written yet"),
        ({"recovered_by": "another run"}, "archived (finished later)"),
        ({**KEPT, "labelled_at": None, "closed_reason": "preview"}, "would be archived"),
        ({**KEPT, "labelled_at": None, "closed_reason": "preview", "confidence": 0.6}, "held back: under 0.70"),
    ],
)
def test_every_fate_has_its_words(changes: dict[str, Any], expected: str) -> None:
    assert words.fate(a_decision(**changes), ARCHIVING).long == expected


def test_nothing_that_stays_is_left_out_of_the_groups() -> None:
    """A message that is still in the inbox belongs to exactly one group that is shown."""
    for outcome in Outcome:
        fate = words.fate(a_decision(outcome=outcome, **KEPT), ARCHIVING)
        assert fate.group in words.GROUPS


def test_the_story_of_a_run_has_steps_decisions_reasons_and_cost() -> None:
    text = shown(run_view(a_run(), [a_step(), a_step(name="decide", duration_ms=1233)], A_BATCH, FACES), 120)
    assert "Run 9f31c2aa77b0" in text
    assert "Account team, manual, fired 2026-11-30 12:00 UTC, done after 2.5 s" in text
    assert row(text, "decide").split()[:3] == ["decide", "1,233", "ms"]
    assert "Answered by embedded (triage-linear-1) in 3 ms." in text
    assert "Cost: 0 USD for 6 mails, 1 of them free" in text


def test_a_failed_run_says_why() -> None:
    text = shown(run_view(a_run(state=RunState.FAILED, reason="cut", error="lease ran out"), [], []), 80)
    assert "failed: cut" in text
    assert "lease ran out" in text
    assert "No decisions" in text


def test_a_fallback_names_its_place_in_the_chain() -> None:
    text = shown(run_view(a_run(), [], [a_decision(chain_position=1)]), 120)
    assert "number 2 of the chain" in text


def test_times_of_other_zones_are_shown_in_utc() -> None:
    madrid = datetime.fromisoformat("2026-11-30T13:05:00+01:00")
    assert "2026-11-30 12:05" in shown(runs_table([a_run(fire_time=madrid)]), 120)


def test_the_id_of_a_run_can_be_copied_from_a_narrow_table() -> None:
    assert "20261130-155314-bzqe8z" in shown(runs_table([a_run(id="20261130-155314-bzqe8z")]), 80)


def test_no_runs_yet_says_how_to_make_one() -> None:
    assert "triage run" in shown(runs_table([]), 80)


def test_the_cost_counts_inherited_mail_as_free() -> None:
    line = cost_line([a_decision(1, cost_usd=0.0004), replace(A_BATCH[4])]).plain
    assert line == (
        "Cost: 0.0004 USD for 2 mails, 1 of them free (inherited from their thread); "
        "0.2000 USD per 1,000 mails; 420 tokens read by models."
    )


def test_a_check_shows_state_finding_and_remedy() -> None:
    items = [Finding("ok", "Login", "works"), Finding("fail", "Keywords", "none kept", "Use labels: folder.")]
    lines = [line.rstrip() for line in shown(check_report(items), 80).splitlines()]
    assert lines == ["✓  Login     works", "✗  Keywords  none kept", "             Use labels: folder."]


AGREED = ["uid", "message_key", "outcome", "label", "confidence", "probabilities", "provider", "model"]
AGREED += ["chain_position", "latency_ms", "input_tokens", "cost_usd", "archived", "inherited_from"]


def test_the_json_of_a_run_has_the_agreed_keys_first() -> None:
    value = json.loads(json.dumps(run_json(a_run(), [a_step()], A_BATCH)))
    assert list(value)[:6] == ["id", "account", "trigger", "fire_time", "state", "counts"]
    assert value["fire_time"] == "2026-11-30T12:00:00.000Z"
    assert value["steps"][0] == {
        "name": "select", "started_at": "2026-11-30T12:00:00.000Z", "duration_ms": 41,
        "counts": {"messages": 1200, "selected": 5},
    }  # fmt: skip
    first = value["decisions"][0]
    assert list(first)[: len(AGREED)] == AGREED
    assert first["label"] == "Triage/receipt"
    assert first["archived"] is True
    assert value["decisions"][1]["archived"] is False
    assert value["decisions"][4]["inherited_from"] == "ab" * 16


def test_a_label_without_parent_is_the_bare_id() -> None:
    assert run_json(a_run(), [], [a_decision()], parent="")["decisions"][0]["label"] == "receipt"


def test_a_console_survives_an_encoding_without_the_character(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = BytesIO()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(raw, encoding="ascii", errors="strict"))
    console = theme.make_console()
    console.print("café")
    console.file.flush()
    assert raw.getvalue() == b"caf?\n"


def test_not_a_terminal_means_no_colours() -> None:
    stream = StringIO()
    Console(file=stream, width=80).print(batch_table(A_BATCH, FACES))
    assert "\x1b" not in stream.getvalue()
