"""`triage classify` and `triage eval` on files of every kind, without any configuration: an answer or one calm line."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
from pathlib import Path

import pytest

from triage.cli.main import run_cli

MAIL = b"From: shop@shop.example\r\nSubject: Receipt 4411\r\n\r\nThank you for your payment. Total paid 41.00 EUR.\r\n"
ROW = {"id": "1", "category": "receipt", "raw": MAIL.decode()}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory and a home without any configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TRIAGE_CONFIG", raising=False)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_cli(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    "raw", [MAIL, b"", b"\x00" * 100, random.Random(1).randbytes(4000), b"no header at all", b"\n\n\n"]
)
def test_any_bytes_get_an_answer_and_doubt_stays_in_the_inbox(raw: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mail.eml").write_bytes(raw)
    code, out, _ = told(capsys, "classify", "mail.eml", "--json")
    found = json.loads(out)
    assert code == 0
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert raw == MAIL or found["action"] == "keep"


def test_stdin_is_read_where_the_file_is_a_dash(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MAIL)))
    code, out, _ = told(capsys, "classify", "-", "--json")
    assert (code, json.loads(out)["choice"]) == (0, "receipt")


@pytest.mark.parametrize("name", ["missing.eml", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "classify", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"{name}: cannot be read")


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("d.jsonl", None, "d.jsonl: cannot be read"),
        ("d.jsonl.gz", b"no gzip", "d.jsonl.gz: cannot be read (not a whole gzip file)"),
        ("d.jsonl.gz", gzip.compress(json.dumps(ROW).encode() * 50)[:-12], "cannot be read (not a whole gzip file)"),
        ("d.jsonl", b"\xff\xfe\n", "d.jsonl:1: not a labelled mail"),
        ("d.jsonl", b"[" * 100_000, "d.jsonl:1: not a labelled mail"),
        ("d.jsonl", b'{"id": 1, "category": "x", "headers": "y"}', "d.jsonl:1: not a labelled mail"),
        ("d.jsonl", b"\n \n", "no labelled mail in it"),
        ("d.csv", b"a,b", "labelled mail is a .jsonl"),
        ("d.jsonl", json.dumps(ROW).encode() + b"\n{", "d.jsonl:2: not a labelled mail"),
    ],
)
def test_data_that_is_no_labelled_mail_is_told_by_file_and_line(
    name: str, data: bytes | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        Path(name).write_bytes(data)
    code, out, err = told(capsys, "eval", name)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())


@pytest.mark.parametrize("option", ["--predictions", "--plot"])
def test_a_file_that_cannot_be_written_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("d.jsonl").write_text(json.dumps(ROW), encoding="utf-8")
    code, _, err = told(capsys, "eval", "d.jsonl", option, "missing/out")
    assert code == 2
    assert "missing/out: cannot be written" in err


def test_categories_that_are_not_configured_are_named_and_count_as_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [ROW, ROW | {"id": "2", "category": "invoices"}]
    Path("d.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    code, out, err = told(capsys, "eval", "d.jsonl", "--json")
    assert code == 0
    assert "invoices (1)" in err
    assert json.loads(out)["by_category"]["invoices"]["accuracy"] == 0


def test_a_folder_of_categories_is_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    Path("data/receipt").mkdir(parents=True)
    Path("data/receipt/1.eml").write_bytes(MAIL)
    code, out, _ = told(capsys, "eval", "data", "--json")
    assert (code, json.loads(out)["mails"]) == (0, 1)
