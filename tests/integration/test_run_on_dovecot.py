"""Whole runs on a real server: what is labelled, what is archived, what is left alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.office import TestApp, make_run, settings_for
from triage.config.settings import DecisionSettings, ProviderSettings
from triage.domain.decision import Failure, FailureKind, Outcome
from triage.domain.record import RunState, Trigger

SURE = 0.99
NEWS, ACTION, RECEIPT = "Triage/newsletter", "Triage/action-required", "Triage/receipt"
FALLBACK = "Triage/unclassified"


@pytest.fixture(scope="module", params=["maildir", "sdbox"])
def server(request: pytest.FixtureRequest) -> Iterator[Dovecot]:
    with Dovecot(request.param) as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return "u" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]


def app_for(server: Dovecot, user: str, tmp_path: Path, provider: TableProvider, **changes: object) -> TestApp:
    return TestApp(settings_for(tmp_path, server.port, user, server.password, **changes), [provider])


def test_a_run_labels_archives_and_leaves_the_rest_alone(server: Dovecot, user: str, tmp_path: Path) -> None:
    """Sure noise goes to the archive with its label; doubt and requests stay; flags of the reader are untouched."""
    server.append(
        user,
        [
            Mail("News", "<1@x.example>", flags=["\\Seen"]),
            Mail("Please sign", "<2@x.example>"),
            Mail("Odd", "<3@x.example>", flags=["\\Flagged", "Work"]),
        ],
    )
    provider = TableProvider(
        {"News": ("newsletter", SURE), "Please sign": ("action-required", SURE), "Odd": ("receipt", 0.5)}
    )
    app = app_for(server, user, tmp_path, provider)
    run = make_run(app)
    assert (run.state, run.counts["labelled"], run.counts["archived"]) == (RunState.DONE, 3, 1)
    assert server.flags(user) == {2: {ACTION}, 3: {FALLBACK, "\\Flagged", "Work"}}
    assert server.flags(user, "Archive") == {1: {NEWS, "\\Seen"}}
    decisions = {d.ref.uid: d for d in app.ledger.decisions(run.id)}
    assert decisions[1].archived_at is not None
    assert decisions[3].outcome is Outcome.BELOW_FLOOR
    assert sum(decisions[3].probabilities.values()) == pytest.approx(1)
    app.close()


def test_twenty_of_many_oldest_first_and_nothing_twice(server: Dovecot, user: str, tmp_path: Path) -> None:
    start = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    server.append(user, [Mail(f"M{i}", f"<{i}@x.example>", received=start + timedelta(minutes=i)) for i in range(45)])
    provider = TableProvider({}, default=("conversation", SURE))
    app = app_for(server, user, tmp_path, provider)
    sizes = [make_run(app).counts.get("labelled", 0) for _ in range(4)]
    assert sizes == [20, 20, 5, 0]
    assert max(provider.asked.values()) == 1
    first = app.ledger.decisions(app.ledger.runs(limit=10)[-1].id)
    assert sorted(d.ref.uid for d in first) == list(range(1, 21))
    app.close()


def test_mail_from_before_the_configured_day_is_left_alone(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail("Old", received=datetime(2026, 2, 27, 23, tzinfo=UTC)), Mail("New")])
    provider = TableProvider({"New": ("conversation", SURE)})
    app = app_for(server, user, tmp_path, provider, since=date(2026, 3, 1))
    make_run(app)
    assert server.flags(user)[1] == set()
    app.close()


def test_preview_changes_nothing_on_the_server(server: Dovecot, user: str, tmp_path: Path) -> None:
    """Proved with the server's own MODSEQ: no flag of any message moved."""
    server.append(user, [Mail("News", "<1@x.example>"), Mail("Odd", "<2@x.example>")])
    provider = TableProvider({"News": ("newsletter", SURE), "Odd": ("receipt", 0.4)})
    app = app_for(server, user, tmp_path, provider)
    before = server.state(user)
    run = make_run(app, options={"mode": "preview"})
    assert server.state(user) == before
    assert [d.label_id for d in app.ledger.decisions(run.id)] == ["newsletter", "unclassified"]
    assert app.ledger.unfinished("team") == ()
    app.close()


def test_a_schedule_in_preview_pays_for_no_message_twice(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail(f"M{i}", f"<{i}@x.example>") for i in range(25)])
    provider = TableProvider({}, default=("conversation", SURE))
    app = app_for(server, user, tmp_path, provider, mode="preview")
    sizes = [make_run(app, trigger=Trigger.SCHEDULE).counts.get("selected", 0) for _ in range(3)]
    assert sizes == [20, 5, 0]
    assert max(provider.asked.values()) == 1
    app.close()


def test_mode_label_labels_and_archives_nothing(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    app = app_for(server, user, tmp_path, TableProvider({"News": ("newsletter", SURE)}), mode="label")
    make_run(app)
    assert server.flags(user) == {1: {NEWS}}
    app.close()


def test_a_reply_on_the_list_inherits_and_a_stranger_is_asked(server: Dovecot, user: str, tmp_path: Path) -> None:
    """A person's label in the archive is passed on to the same list, never to a stranger who quotes its id."""
    listed = "List-Id: Weekly <weekly.sender.example>\r\n"
    server.append(user, [Mail("Weekly", "<root@x.example>", flags=[NEWS], headers=listed)], "Archive")
    reply = "In-Reply-To: <root@x.example>\r\n"
    stranger = (
        b"From: Eve <eve@elsewhere.example>\r\nTo: desk@desk.example\r\nSubject: Re: Weekly\r\n"
        b"Message-ID: <3@x.example>\r\nIn-Reply-To: <root@x.example>\r\n\r\nLook at this.\r\n"
    )
    server.append(user, [Mail("Re: Weekly", "<2@x.example>", headers=listed + reply), Mail(raw=stranger)])
    provider = TableProvider({"Re: Weekly": ("action-required", SURE)})
    app = app_for(server, user, tmp_path, provider)
    run = make_run(app)
    outcomes = {d.ref.uid: d for d in app.ledger.decisions(run.id)}
    assert outcomes[1].outcome is Outcome.INHERITED
    assert outcomes[1].participation == "same_list"
    assert outcomes[1].inherited_source == "person"
    assert outcomes[2].outcome is Outcome.APPLIED
    assert provider.asked.total() == 1
    assert NEWS in server.flags(user, "Archive")[2]
    assert server.flags(user) == {2: {ACTION}}
    app.close()


def test_a_reply_in_the_same_batch_waits_for_its_parent(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(
        user,
        [
            Mail("Re: Plan", "<b@x.example>", headers="In-Reply-To: <a@x.example>\r\n"),
            Mail("Plan", "<a@x.example>"),
        ],
    )
    provider = TableProvider({"Plan": ("conversation", SURE)})
    app = app_for(server, user, tmp_path, provider)
    make_run(app)
    assert server.flags(user) == {1: {"Triage/conversation"}, 2: {"Triage/conversation"}}
    assert provider.asked == {"Plan": 1}
    app.close()


def test_a_message_the_model_refuses_gets_the_fallback_label(server: Dovecot, user: str, tmp_path: Path) -> None:
    refused = Failure("table", FailureKind.MESSAGE, "refused", "The server does not take this message (422).")
    server.append(user, [Mail("Bad", "<1@x.example>"), Mail("Good", "<2@x.example>")])
    app = app_for(server, user, tmp_path, TableProvider({"Bad": refused, "Good": ("conversation", SURE)}))
    run = make_run(app)
    assert server.flags(user) == {1: {FALLBACK}, 2: {"Triage/conversation"}}
    assert {d.ref.uid: d.outcome for d in app.ledger.decisions(run.id)}[1] is Outcome.CHAIN_FAILED
    app.close()


@pytest.mark.parametrize(("on_outage", "labelled"), [("leave", 0), ("label", 3)])
def test_an_outage_leaves_the_inbox_to_the_next_run_unless_told_otherwise(
    server: Dovecot, user: str, tmp_path: Path, on_outage: str, labelled: int
) -> None:
    """A dead provider is asked a few times, then no more; mail nobody was asked about keeps no label by default."""
    down = Failure(
        "table", FailureKind.CONFIGURATION, "no_credit", "The account at the provider is out of credit (402)."
    )
    server.append(user, [Mail(f"M{i}", f"<{i}@x.example>") for i in range(3)])
    decision = DecisionSettings(chain=(ProviderSettings("systemone", model="table-1"),), on_outage=on_outage)  # type: ignore[arg-type]
    app = app_for(server, user, tmp_path, TableProvider({}, default=down), decision=decision)  # type: ignore[arg-type]
    run = make_run(app)
    assert sum(FALLBACK in flags for flags in server.flags(user).values()) == labelled
    assert run.state is RunState.DONE
    app.close()


def test_a_person_who_files_a_message_meanwhile_wins(server: Dovecot, user: str, tmp_path: Path) -> None:
    """A label put on by another client while the model thinks is not overwritten, and nothing is archived."""
    server.append(user, [Mail("News", "<1@x.example>")])

    class Busybody(TableProvider):
        def ask(self, *args: object, **kwargs: object) -> object:  # type: ignore[override]
            client = server.client(user)
            client.select("INBOX")
            client.uid("STORE", "1", "+FLAGS", f"({RECEIPT})")
            client.logout()
            return super().ask(*args, **kwargs)  # type: ignore[arg-type]

    app = app_for(server, user, tmp_path, Busybody({"News": ("newsletter", SURE)}))
    run = make_run(app)
    assert server.flags(user) == {1: {RECEIPT}}
    assert [d.closed_reason for d in app.ledger.decisions(run.id)] == ["person_touched"]
    app.close()


def test_a_wrong_password_is_tried_once_until_it_is_changed(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    good = settings_for(tmp_path, server.port, user, server.password)
    bad = settings_for(tmp_path, server.port, user, "wrong")
    provider = TableProvider({"News": ("conversation", SURE)})
    app = TestApp(bad, [provider])
    first, logins = make_run(app), server.log().count("auth failed")
    second = make_run(app)
    assert (first.reason, second.reason) == ("login_refused", "login_refused")
    assert server.log().count("auth failed") == logins
    assert "wrong" not in f"{first.error}{second.error}"
    app.close()
    mended = TestApp(replace(good), [provider])
    assert make_run(mended).state is RunState.DONE
    mended.close()
