"""`triage backfill`: ordinary runs over older mail, resumable, stoppable, never in the schedule's way."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.http_stub import HttpStub, always, reply
from services.dovecot import Dovecot, Mail
from support.premises import Premises, answers, wait_until
from triage.domain.record import Run, RunState, Trigger

OLD = datetime(2026, 2, 1, tzinfo=UTC)
NEW = datetime(2026, 3, 5, tzinfo=UTC)
SINCE = "2026-03-01"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return f"u{abs(hash(request.node.name)):x}"


def fill(server: Dovecot, user: str, old: int, new: int = 0) -> None:
    hour = timedelta(hours=1)
    server.append(user, [Mail(f"Old {n}", f"<o{n}@x.example>", received=OLD + n * hour) for n in range(old)])
    server.append(user, [Mail(f"New {n}", f"<n{n}@x.example>", received=NEW + n * hour) for n in range(new)])


def runs_of(premises: Premises) -> list[Run]:
    with premises.ledger() as ledger:
        return list(ledger.runs("team", limit=1000))


def backfill(premises: Premises, limit: int) -> int:
    with premises.process("backfill", "--limit", str(limit)) as process:
        return process.popen.wait(120)


def labelled(server: Dovecot, user: str) -> set[int]:
    return {uid for uid, flags in server.flags(user).items() if flags}


def test_it_goes_on_where_it_ended_newest_first_and_leaves_newer_mail_alone(
    server: Dovecot, user: str, tmp_path: Path
) -> None:
    fill(server, user, old=30, new=5)
    with HttpStub(answers({})) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, since=SINCE)
        assert backfill(premises, 24) == 0
        assert labelled(server, user) == set(range(7, 31))
        assert backfill(premises, 100) == 0
        assert labelled(server, user) == set(range(1, 31))
        asked = len(model.seen)
    assert asked == 30
    runs = runs_of(premises)
    assert {run.trigger for run in runs} == {Trigger.BACKFILL}
    assert max(run.counts["selected"] for run in runs) <= 20


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_can_be_stopped_at_any_time_and_called_again(
    server: Dovecot, user: str, tmp_path: Path, number: signal.Signals
) -> None:
    fill(server, user, old=45)
    with HttpStub(answers({}, delay_s=0.5)) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, since=SINCE)
        with premises.process("backfill", "--limit", "45") as process:
            wait_until(lambda: len(model.seen) > 25)
            assert process.end(number)[0] == 0
        with premises.ledger() as ledger:
            assert ledger.unfinished("team") == ()
            assert ledger.depth() == 0
        assert 20 <= len(labelled(server, user)) < 45
        assert backfill(premises, 100) == 0
        assert len(labelled(server, user)) == 45
    assert all(run.state is RunState.DONE for run in runs_of(premises))


def test_the_schedule_gets_its_turn_while_a_backfill_works(server: Dovecot, user: str, tmp_path: Path) -> None:
    """A daemon beside it, a fire every second: none waits for more than a run or two of the backfill."""
    fill(server, user, old=200)
    with HttpStub(answers({}, delay_s=0.1)) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, enabled=["team"], cron="0 0 1 1 *", since=SINCE)
        with premises.process("serve") as serve, premises.ledger() as ledger:
            serve.wait_for("serving")
            with premises.process("backfill", "--limit", "200") as process:
                wait_until(lambda: model.seen)
                while process.popen.poll() is None:
                    ledger.enqueue("team", Trigger.SCHEDULE, datetime.now(UTC))
                    time.sleep(1)
                assert process.popen.returncode == 0
            wait_until(lambda: ledger.depth() == 0)
            assert serve.end()[0] == 0
    runs = runs_of(premises)
    fires = [run for run in runs if run.trigger is Trigger.SCHEDULE and run.state is RunState.DONE]
    assert len(fires) >= 2
    for fire in fires:
        assert fire.started_at is not None
        between = [r for r in runs if r.trigger is Trigger.BACKFILL and r.started_at
                   and fire.enqueued_at < r.started_at < fire.started_at]  # fmt: skip
        assert len(between) <= 1, f"{len(between)} backfill runs went before a fire that waited"
    assert len(labelled(server, user)) == 200


def test_models_that_cannot_be_asked_end_it_with_a_word(server: Dovecot, user: str, tmp_path: Path) -> None:
    fill(server, user, old=5)
    with HttpStub(always(reply({"error": "no credit"}, status=402))) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, since=SINCE)
        assert backfill(premises, 100) == 1
    assert labelled(server, user) == set()
