"""Figures on labelled mail, reading it, and what `triage eval` and `triage classify` show."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from embedded_world import ARCHIVING, EIGHT, ORDER, provider
from rich.console import Console

from triage.cli.classify import classification_json, render_classification
from triage.cli.evaluate import evaluation_json, render_evaluation, run_evaluation
from triage.domain.category import Action
from triage.domain.decision import Answer, Outcome, Verdict
from triage.domain.errors import ConfigError
from triage.domain.mail import PreparedMail
from triage.prepare import prepare, read_message
from triage.report.evaluation import Judged, evaluate, figures
from triage.report.labelled_mail import message_of, read_labelled
from triage.report.reliability_svg import reliability_svg

ROWS = [
    {"id": "a", "category": "receipt", "lang": "en", "from": "Shop <orders@shop.example>", "to": "me@x.example",
     "subject": "Order 1 confirmed", "body_text": "Thank you for your order. Total paid 9 EUR.", "headers": {}},
    {"id": "b", "category": "conversation", "lang": "es", "from": "Ana Gil <ana.gil@y.example>", "to": "me@x.example",
     "subject": "Re: ayer", "body_text": "Qué bien lo pasamos, gracias por todo. Un abrazo",
     "body_html": "<p>Qué bien</p>", "headers": {"In-Reply-To": "<1@x.example>\r\nX-Evil: 1"}},
    {"id": "c", "category": "spam", "lang": "en",
     "raw": "From: w@z.example\nSubject: You won\n\nClaim your prize now\n"},
]  # fmt: skip


def _judged(id_: str, truth: str, p: dict[str, float], *, archived: bool = False, lang: str = "en") -> Judged:
    return Judged(id_, truth, p, archived, 1.0, lang)


SET = [
    _judged("1", "spam", {"spam": 0.9, "conversation": 0.1}, archived=True),
    _judged("2", "conversation", {"spam": 0.8, "conversation": 0.2}, archived=True),
    _judged("3", "conversation", {"spam": 0.45, "conversation": 0.55}, lang="es"),
    _judged("4", "spam", {}),
]


def test_figures_are_what_the_definitions_say() -> None:
    f = figures(SET, floor=0.5, archiving=ARCHIVING)
    assert (f.mails, f.unanswered, f.accuracy) == (4, 1, 0.5)
    assert (f.coverage, f.accuracy_covered) == (0.5, 0.5)
    assert (f.wrongly_archived, f.protected, f.wrongly_archived_share) == (1, 2, 0.5)
    assert f.noise_archived == 0.5
    assert f.f1 == {"conversation": pytest.approx(2 / 3), "spam": pytest.approx(0.5)}
    assert f.ece == pytest.approx((0.1 + 0.8 + 0.45) / 3)


def test_figures_are_broken_down_by_category_and_language() -> None:
    found = evaluate(SET, floor=0.5, archiving=ARCHIVING)
    assert {name: f.mails for name, f in found.by_category.items()} == {"conversation": 2, "spam": 2}
    assert found.by_lang["es"].accuracy == 1.0


def test_no_mail_gives_no_division_by_zero() -> None:
    f = figures([], floor=0.5, archiving=ARCHIVING)
    assert (f.mails, f.accuracy, f.ece, f.wrongly_archived_share) == (0, 0.0, 0.0, 0.0)


def test_the_plot_is_xml_with_a_bar_for_each_bin() -> None:
    bins = figures(SET, floor=0.5, archiving=ARCHIVING).bins
    root = ET.fromstring(reliability_svg(bins, "a < b & c"))
    assert len([e for e in root.iter() if e.tag.endswith("title")]) == len(bins) + 1


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "mail.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in ROWS)
    return path


def test_a_row_without_raw_becomes_a_message_that_reads_back(data: Path) -> None:
    first, second, third = (prepare(read_message(m.raw)) for m in read_labelled(data))
    assert first.subject == "Order 1 confirmed"
    assert "Total paid" in first.body
    assert "Qué bien" in second.body
    assert second.signals.has_html
    assert third.subject == "You won"


def test_a_header_value_cannot_smuggle_in_another_header() -> None:
    assert b"\nX-Evil" not in message_of(ROWS[1])


def test_folders_named_after_categories_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "spam").mkdir()
    (tmp_path / "spam" / "1.eml").write_bytes(b"Subject: win\n\nwin")
    (tmp_path / "receipt.mbox").write_bytes(b"From a@b Mon Jan  5 09:00:00 2026\nSubject: paid\n\nthanks\n")
    assert [(m.category, b"Subject" in m.raw) for m in read_labelled(tmp_path)] == [("spam", True), ("receipt", True)]


@pytest.mark.parametrize("line", ["{", "[]", '{"id": "x"}', "3"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "mail.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mail\.jsonl:2"):
        list(read_labelled(path))


def test_what_is_no_labelled_mail_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        list(read_labelled(tmp_path / "mail.txt"))
    with pytest.raises(ConfigError, match="no mail found"):
        list(read_labelled(tmp_path))


def _decide(mail: PreparedMail) -> tuple[Answer | None, bool]:
    if "prize" in mail.body:
        return None, False
    return provider().ask(EIGHT, mail, 0.0), False


def test_an_evaluation_writes_a_prediction_a_mail_and_the_plot(data: Path, tmp_path: Path) -> None:
    predictions, plot = tmp_path / "p.jsonl", tmp_path / "plot.svg"
    found = run_evaluation(
        data, lambda raw: prepare(read_message(raw)), _decide,
        floor=0.5, archiving=ARCHIVING, predictions=predictions, plot=plot,
    )  # fmt: skip
    lines = [json.loads(line) for line in predictions.read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", "c"]
    assert set(lines[0]) == {"id", "probabilities", "confidence", "archive", "ms"}
    assert set(lines[0]["probabilities"]) == set(EIGHT.ids)
    assert ET.fromstring(plot.read_text(encoding="utf-8")).tag.endswith("svg")
    assert (found.all.mails, found.all.unanswered) == (3, 1)
    assert json.loads(json.dumps(evaluation_json(found)))["by_lang"]["es"]["mails"] == 1
    assert "wrongly archived: 0 of 1" in _shown(render_evaluation(found))


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="no labelled mail"):
        run_evaluation(path, lambda raw: ORDER, _decide, floor=0.5, archiving=ARCHIVING)


VERDICT = Verdict(
    "receipt", Action.KEEP, Outcome.APPLIED, 0.91, 0.5, 0.7, "chosen", "receipt at 0.91.", ("hidden_text",)
)


def test_a_classification_has_the_agreed_fields() -> None:
    answer = provider().ask(EIGHT, ORDER, 0.0)
    shown = classification_json(answer, VERDICT, "Triage/receipt")
    agreed = {
        "choice",
        "confidence",
        "probabilities",
        "label",
        "action",
        "outcome",
        "provider",
        "model",
        "latency_ms",
        "input_tokens",
    }
    assert agreed <= set(shown)
    assert (shown["label"], shown["action"], shown["outcome"]) == ("Triage/receipt", "keep", "applied")
    assert "Kept in the inbox by: hidden text." in _shown(render_classification(answer, VERDICT, "Triage/receipt"))


def test_a_classification_without_an_answer_says_so() -> None:
    verdict = Verdict(
        "unclassified", Action.KEEP, Outcome.CHAIN_FAILED, 0.0, 0.5, 0.5, "timeout", "No provider answered."
    )
    shown = classification_json(None, verdict, "Triage/unclassified")
    assert (shown["choice"], shown["probabilities"], shown["provider"]) == (None, {}, None)
    assert "No provider answered." in _shown(render_classification(None, verdict, "Triage/unclassified"))


def _shown(what: object) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(what)
    return out.getvalue()
