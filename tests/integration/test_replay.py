"""Replay on a real server: what edited categories would change, at what cost, and nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from services.ledger import run_sql
from support.office import CATEGORIES, TestApp, make_run, settings_for
from triage.cli.replay import _agree, question_tokens, replay, replay_json
from triage.decide.question import build_question
from triage.domain.category import Action, CategorySet
from triage.domain.errors import ConfigError
from triage.pipeline.replay import Estimate, candidates, estimate

EVER = datetime(2020, 1, 1, tzinfo=UTC)
TABLE = {
    "News": ("newsletter", 0.99),
    "Sign": ("action-required", 0.99),
    "Paid": ("receipt", 0.99),
    "Odd": ("receipt", 0.4),
}
AFTER = TABLE | {"Sign": ("receipt", 0.99), "News": ("conversation", 0.99), "Odd": ("receipt", 0.9)}


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


@pytest.fixture
def app(server: Dovecot, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestApp]:
    user = "r" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    app = TestApp(settings_for(tmp_path, server.port, user, server.password), [TableProvider(TABLE)])
    server.append(user, [Mail(subject, f"<{n}@x.example>") for n, subject in enumerate(TABLE)])
    server.append(user, [Mail("Re: Sign", "<re@x.example>", headers="In-Reply-To: <1@x.example>\r\n")])
    make_run(app)
    yield app
    app.close()


def again(app: TestApp, categories: CategorySet = CATEGORIES) -> tuple[object, ...]:
    app.close_chain()
    app.providers = [TableProvider(AFTER)]
    account = app.settings.accounts[0]
    records = candidates(app.ledger, "team", EVER, 200)
    return replay(app, account, categories, build_question(categories, True), records)


def test_flips_are_found_and_what_would_newly_be_archived(app: TestApp) -> None:
    replayed, missing = again(app)
    told = replay_json(replayed, missing, Estimate(4, 0, 0.0))  # type: ignore[arg-type]
    assert (told["messages"], told["not_found"], told["not_answered"]) == (4, 0, 0)
    assert [(f["from"], f["to"]) for f in told["newly_kept"]] == [("newsletter", "conversation")]
    assert sorted((f["from"], f["to"]) for f in told["newly_archived"]) == [
        ("action-required", "receipt"),
        ("unclassified", "receipt"),
    ]
    assert (told["below_floor_before"], told["below_floor_after"]) == (0.25, 0.0)


def test_nothing_is_written_to_the_mailbox_or_the_records(app: TestApp, server: Dovecot) -> None:
    """Proved with the server's MODSEQ: no flag of any message moved, in the inbox or in the archive."""
    user = app.settings.accounts[0].username
    before = [server.state(user, box) for box in ("INBOX", "Archive")]
    counts = run_sql(app.settings.ledger, "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM events)")
    again(app)
    assert [server.state(user, box) for box in ("INBOX", "Archive")] == before
    after = run_sql(app.settings.ledger, "SELECT (SELECT count(*) FROM decisions), (SELECT count(*) FROM events)")
    assert after == counts


def test_a_message_that_is_gone_is_counted_as_not_found(app: TestApp, server: Dovecot) -> None:
    client = server.client(app.settings.accounts[0].username)
    client.select("Archive")
    client.store("1", "+FLAGS", "(\\Deleted)")
    client.expunge()
    client.logout()
    replayed, missing = again(app)
    assert (len(replayed), missing) == (3, 1)  # type: ignore[arg-type]


def test_other_actions_and_floors_count_too(app: TestApp) -> None:
    """An edit that changes no label but keeps receipts in the inbox is told as newly kept."""
    kept = replace(
        CATEGORIES,
        categories=tuple(replace(c, action=Action.KEEP) if c.id == "receipt" else c for c in CATEGORIES.categories),
    )
    replayed, _ = again(app, kept)
    assert {r.record.label_id for r in replayed if r.newly_kept} == {"newsletter", "receipt"}  # type: ignore[attr-defined]


def test_the_estimate_knows_the_messages_own_tokens_and_the_new_question(app: TestApp) -> None:
    records = candidates(app.ledger, "team", EVER, 200)
    question = build_question(CATEGORIES, True)
    told = estimate(records, question_tokens(question), lambda tokens: tokens * 1e-6)
    own = sum(r.input_tokens for r in records)
    assert told == Estimate(4, own + 4 * question_tokens(question), told.input_tokens * 1e-6)


def test_more_than_the_limit_needs_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    _agree(Estimate(10, 1000, 0.05), yes=False, spend_limit=0.10)
    _agree(Estimate(10, 1000, 5.0), yes=True, spend_limit=0.10)
    with pytest.raises(ConfigError, match=r"about 5\.00 USD"):
        _agree(Estimate(10, 1000, 5.0), yes=False, spend_limit=0.10)
    with pytest.raises(ConfigError, match="price is not known"):
        _agree(Estimate(10, 1000, None), yes=False, spend_limit=0.10)
