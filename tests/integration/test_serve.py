"""A real `triage serve` process: it fires, works, rereads its configuration, and ends when told to."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.http_stub import HttpStub, silence
from services.dovecot import Dovecot, Mail
from support.premises import Premises, Process, answers, wait_until
from triage.domain.record import Run, RunState, Trigger
from triage.schedule.daemon import GRACE_S

NEWS = "Triage/newsletter"
TABLE = {"News": ("newsletter", 0.97)}
YEARLY = "0 0 1 1 *"
"""Fires that do not come by themselves while a test runs."""


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return f"u{abs(hash(request.node.name)):x}"


@pytest.fixture
def model() -> Iterator[HttpStub]:
    with HttpStub(answers(TABLE)) as stub:
        yield stub


@pytest.fixture
def premises(server: Dovecot, model: HttpStub, tmp_path: Path) -> Premises:
    return Premises(tmp_path, server.port, server.password, model.url)


def fired_before(premises: Premises, account: str, ago: timedelta = timedelta(days=400)) -> None:
    """The schedule has fired once, long ago: the daemon that begins now makes up for what it missed since."""
    with premises.ledger() as ledger:
        run = ledger.enqueue(account, Trigger.SCHEDULE, datetime.now(UTC) - ago)
        assert run is not None
        assert ledger.claim("before", timedelta(minutes=1), run_id=run.id) is not None
        ledger.finish(run.id, "before")


def manual(premises: Premises, account: str = "team") -> Run:
    """Queue a run and wait until the daemon has made it."""
    with premises.ledger() as ledger:
        queued = ledger.enqueue(account, Trigger.MANUAL, datetime.now(UTC))
        assert queued is not None
        wait_until(lambda: ended(premises, queued.id))
    run = ended(premises, queued.id)
    assert run is not None
    return run


def ended(premises: Premises, run_id: str) -> Run | None:
    with premises.ledger() as ledger:
        run = ledger.run(run_id)
    return run if run is not None and run.state not in (RunState.QUEUED, RunState.RUNNING) else None


def test_it_makes_up_for_fires_missed_while_it_was_down_once_and_says_so(
    premises: Premises, server: Dovecot, user: str
) -> None:
    server.append(user, [Mail("News", "<1@x.example>"), Mail("Hello", "<2@x.example>")])
    premises.write({"team": user}, enabled=["team"], cron=YEARLY)
    fired_before(premises, "team")
    with premises.process("serve") as serve:
        serve.wait_for("run_finished")
        code, _ = serve.end()
    assert code == 0
    with premises.ledger() as ledger:
        run = ledger.runs("team")[0]
    assert (run.trigger, run.state, run.counts["labelled"]) == (Trigger.SCHEDULE, RunState.DONE, 2)
    assert run.fire_time == datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC)
    assert "missed_since" in run.options or run.options == {}
    assert server.flags(user, "Archive") == {1: {NEWS}}


def test_a_schedule_that_never_fired_waits_for_its_first_time(premises: Premises, user: str) -> None:
    premises.write({"team": user}, enabled=["team"], cron=YEARLY)
    with premises.process("serve") as serve:
        serve.wait_for("serving")
        assert serve.end()[0] == 0
    with premises.ledger() as ledger:
        assert ledger.runs() == ()


def test_a_manual_run_is_made_by_the_daemon_beside_it(premises: Premises, server: Dovecot, user: str) -> None:
    """Two processes on one SQLite file: one queues, the other works."""
    server.append(user, [Mail("News", "<1@x.example>")])
    premises.write({"team": user})
    with premises.process("serve") as serve:
        serve.wait_for("serving")
        assert manual(premises).state is RunState.DONE
        assert serve.end()[0] == 0


def test_off_means_off_and_changes_nothing_else(premises: Premises, server: Dovecot, user: str) -> None:
    """The account that is switched off does not fire; the other one does; by hand both can be run."""
    for name in ("on", "off"):
        server.append(user + name, [Mail("News", "<1@x.example>")])
        fired_before(premises, name)
    users = {"on": user + "on", "off": user + "off"}
    premises.write(users, enabled=["on"], cron=YEARLY)
    with premises.process("serve") as serve:
        serve.wait_for("run_finished")
        assert server.flags(users["off"]) == {1: set()}
        assert manual(premises, "off").state is RunState.DONE
        assert serve.end()[0] == 0
    with premises.ledger() as ledger:
        assert [run.trigger for run in ledger.runs("off")] == [Trigger.MANUAL, Trigger.SCHEDULE]


def test_a_fire_that_waits_when_its_account_is_switched_off_is_not_made(
    premises: Premises, server: Dovecot, user: str
) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    premises.write({"team": user})
    with premises.ledger() as ledger:
        waiting = ledger.enqueue("team", Trigger.SCHEDULE, datetime.now(UTC))
    assert waiting is not None
    with premises.process("serve") as serve:
        wait_until(lambda: ended(premises, waiting.id))
        assert serve.end()[0] == 0
    run = ended(premises, waiting.id)
    assert run is not None
    assert run.reason == "configuration"
    assert "switched off" in (run.error or "")
    assert server.flags(user) == {1: set()}


def test_sighup_takes_the_new_files_and_a_broken_one_keeps_the_old(
    premises: Premises, server: Dovecot, user: str
) -> None:
    premises.write({"team": user}, level="warning")
    with premises.process("serve") as serve:
        wait_until(lambda: _handles_sighup(serve))
        premises.write({"team": user, "second": user + "2"}, level="debug")
        serve.popen.send_signal(signal.SIGHUP)
        serve.wait_for("configuration_reread")
        assert serve.events("serving") == [], "the level was warning then"
        assert manual(premises, "second").state is RunState.DONE
        premises.path.write_text(
            premises.path.read_text().replace("batch", "").replace("security: plain", "secuirty: x")
        )
        serve.popen.send_signal(signal.SIGHUP)
        serve.wait_for("configuration_kept")
        refused = serve.events("configuration_refused")
        assert "triage.yaml:" in refused[0]["detail"]
        assert manual(premises, "second").state is RunState.DONE
        assert serve.end()[0] == 0


def _handles_sighup(serve: Process) -> bool:
    """Has the process installed its handler? (SigCgt of /proc/PID/status, bit of the signal)"""
    status = Path(f"/proc/{serve.popen.pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1], 16)
    return bool(caught >> (signal.SIGHUP - 1) & 1)


def test_it_ends_at_once_while_it_waits(premises: Premises, user: str) -> None:
    premises.write({"team": user}, enabled=["team"], cron=YEARLY)
    for number in (signal.SIGTERM, signal.SIGINT):
        with premises.process("serve") as serve:
            serve.wait_for("serving")
            code, seconds = serve.end(number)
            assert code == 0
            assert seconds < 5


@pytest.mark.parametrize("model_is", ["slow", "silent"])
def test_it_ends_in_time_while_a_model_is_being_asked(
    server: Dovecot, user: str, tmp_path: Path, model_is: str
) -> None:
    """What was answered by then is labelled, the rest is left for the next run, and nothing is left half done."""
    server.append(user, [Mail(f"M{n}", f"<{n}@x.example>") for n in range(5)])
    script = answers({}, delay_s=1.0) if model_is == "slow" else lambda _: silence
    with HttpStub(script) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user})
        with premises.ledger() as ledger:
            assert ledger.enqueue("team", Trigger.MANUAL, datetime.now(UTC)) is not None
        with premises.process("serve") as serve:
            wait_until(lambda: model.seen)
            code, seconds = serve.end(within_s=GRACE_S)
    assert code == 0
    assert seconds < 10
    with premises.ledger() as ledger:
        assert [run.state for run in ledger.runs()] == [RunState.DONE]
        assert ledger.unfinished("team") == ()
        decided = len(ledger.decisions(ledger.runs()[0].id))
    assert sum(bool(flags) for flags in server.flags(user).values()) == decided


def test_an_exception_in_every_run_does_not_end_the_schedule(
    premises: Premises, server: Dovecot, user: str, tmp_path: Path
) -> None:
    """A port where nobody listens: each run fails, is recorded, and the daemon goes on."""
    premises.write({"team": user})
    premises.path.write_text(premises.path.read_text().replace(f"port: {server.port}", "port: 9"))
    with premises.process("serve") as serve:
        serve.wait_for("serving")
        assert [manual(premises).reason for _ in range(3)] == ["unreachable"] * 3
        assert serve.end()[0] == 0
