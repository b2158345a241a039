"""The demo's configuration, score and estimate."""

from __future__ import annotations

import stat
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from triage.config.load import load
from triage.decide.cost import Price, PriceEntry
from triage.demo.address import Address
from triage.demo.config import ACCOUNT, write_config
from triage.demo.cost import estimate
from triage.demo.score import score
from triage.domain.category import Action, Category, CategorySet
from triage.domain.decision import Option, Outcome, Question
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ADDRESS = Address("127.0.0.1", 40143, "hello@harbourlane.example", "s3cret: with 'quotes'")
CATEGORIES = CategorySet(
    "Triage",
    "unclassified",
    "Unclassified",
    (
        Category("action-required", "Action", "Asks."),
        Category("receipt", "Receipt", "Confirms.", action=Action.ARCHIVE),
    ),
)


def a_decision(uid: int, label_id: str, **changes: Any) -> DecisionRecord:
    values: dict[str, Any] = {
        "id": f"d{uid}", "run_id": "r", "account": ACCOUNT, "ref": MessageRef("INBOX", 1, uid), "message_key": "k",
        "message_id_key": "", "category_set": "c", "outcome": Outcome.APPLIED, "label_id": label_id, "choice": label_id,
        "confidence": 0.9, "floor": 0.5, "archive_floor": 0.7, "archive": False, "reason": "chosen", "why": "",
        "decided_at": NOON,
    }  # fmt: skip
    return DecisionRecord(**values | changes)


def test_the_configuration_is_an_ordinary_one(tmp_path: Path) -> None:
    write_config(tmp_path, ADDRESS, date(2026, 11, 27))
    settings = load(tmp_path, {})
    account = settings.account(ACCOUNT)
    assert account is not None
    assert (account.host, account.port, account.security) == ("127.0.0.1", 40143, "plain")
    assert account.credential.get() == ADDRESS.password
    assert account.since == date(2026, 11, 27)
    assert not account.schedule.enabled
    assert settings.http is None
    assert str(tmp_path) in settings.ledger
    assert [p.provider for p in settings.decision.chain] == ["embedded"]
    assert not settings.warnings


def test_the_password_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_config(tmp_path, ADDRESS, date(2026, 11, 27))
    assert stat.S_IMODE((tmp_path / "password").stat().st_mode) == 0o600


def test_the_score_counts_right_unsure_and_wrongly_archived() -> None:
    decisions = [
        a_decision(1, "receipt", archived_at=NOON),
        a_decision(2, "receipt", archived_at=NOON),
        a_decision(3, "unclassified"),
        a_decision(4, "action-required"),
        a_decision(5, "receipt"),
    ]
    truth = {MessageRef("INBOX", 1, n): c for n, c in enumerate(["receipt", "action-required"] * 2, 1)}
    result = score(decisions, truth, CATEGORIES)
    assert (result.decided, result.labelled, result.right, result.unsure) == (4, 3, 2, 1)
    assert (result.archived, result.wrongly_archived) == (2, 1)


def test_the_fallback_is_never_wrongly_kept_nor_right() -> None:
    result = score([a_decision(1, "unclassified")], {MessageRef("INBOX", 1, 1): "unclassified"}, CATEGORIES)
    assert (result.labelled, result.right, result.wrongly_archived) == (0, 0, 0)


def test_the_estimate_counts_inherited_mail_as_free() -> None:
    question = Question("x" * 40, (Option("aaaa", "b" * 36), Option("cccc", "d" * 36)))
    price = PriceEntry("*", "m", Price(1.0), date(2026, 10, 1))
    decisions = [a_decision(1, "receipt", body_chars=280), a_decision(2, "receipt", outcome=Outcome.INHERITED)]
    result = estimate(decisions, question, price)
    assert result.tokens == 10 + 10 + 10 + 100
    assert result.usd == pytest.approx(130e-6)
    assert result.usd_per_thousand == pytest.approx(0.065)


def test_an_estimate_of_nothing_is_nothing() -> None:
    price = PriceEntry("*", "m", Price(1.0), date(2026, 10, 1))
    assert estimate([], Question("", ()), price).usd_per_thousand == 0
