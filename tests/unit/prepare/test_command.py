"""`triage prepare FILE`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from triage.cli.prepare import prepare_command

MAIL = b"From: Nora <nora@example.com>\nTo: desk@example.org\nSubject: Hi\n\nSee https://t.example/x now.\n"


def test_json_is_one_object_with_exactly_the_documented_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.eml").write_bytes(MAIL)
    assert prepare_command(str(tmp_path / "a.eml"), as_json=True) == 0
    assert json.loads(capsys.readouterr().out) == {
        "from": "Nora <nora@example.com>", "to": "desk@example.org", "subject": "Hi", "body": "See now.",
        "links_removed": 1, "truncated": False, "warnings": [],
    }  # fmt: skip


def test_an_mbox_gives_one_line_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = b"From a Tue Mar  3 09:14:00 2026\n" + MAIL + b">From here on.\n\nFrom b Tue Mar  3 09:15:00 2026\n" + MAIL
    (tmp_path / "box").write_bytes(box)
    assert prepare_command(str(tmp_path / "box"), as_json=True) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["body"] == "See now.\nFrom here on."
    assert second["subject"] == "Hi"


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MAIL)))
    assert prepare_command("-", as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["subject"] == "Hi"


def test_a_person_sees_text_and_what_was_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.eml").write_bytes(MAIL)
    assert prepare_command(str(tmp_path / "a.eml"), as_json=False) == 0
    shown = capsys.readouterr().out
    assert "Subject: Hi" in shown
    assert "See now." in shown
    assert "Not read: 1 link\n" in shown


def test_a_missing_file_is_named_and_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare_command("/nowhere/x.eml", as_json=False) == 2
    assert "/nowhere/x.eml" in capsys.readouterr().err
