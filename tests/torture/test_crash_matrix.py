"""A run is killed, cut off, or told to stop at every point there is; the next run must put everything right.

The points are counted on an undisturbed run first, so that none is forgotten when the program changes. The short form
takes every n-th point (TRIAGE_TORTURE=full takes all: `make torture`).
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from triage.clock import SystemClock
from triage.domain.record import RunState, Trigger
from triage.runlog import StructuredRunLog
from triage.schedule.worker import work

from services.dovecot import Dovecot
from support import inbox
from support.killing import CommandProxy, KillPoint, at_commits, at_steps, die
from support.later import LaterClock
from support.office import TestApp, make_run, settings_for

FULL = os.environ.get("TRIAGE_TORTURE") == "full"
STRIDE = 1 if FULL else 6
fork = multiprocessing.get_context("fork")


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


def fresh(server: Dovecot, name: str, directory: Path) -> tuple[str, Path]:
    place = directory / name
    place.mkdir()
    inbox.fill(server, name)
    return name, place


def run_here(
    port: int, user: str, place: Path, password: str, prepare: Callable[[TestApp], object] = lambda app: None
) -> None:
    """One run in this process; `prepare` arms it."""
    app = TestApp(settings_for(place, port, user, password), [inbox.provider()])
    app.ledger.depth()
    prepare(app)
    make_run(app)
    app.close()


def count_points(server: Dovecot, directory: Path) -> dict[str, int]:
    """How many commands, commits and steps an undisturbed run has."""
    user, place = fresh(server, "undisturbed", directory)
    counts = {"commit": 0, "step": 0}

    def arm(app: TestApp) -> None:
        at_commits(app.ledger, lambda n: counts.__setitem__("commit", n), lambda n: None)

    undo = at_steps(StructuredRunLog, lambda n: counts.__setitem__("step", n), lambda n: None)
    try:
        with CommandProxy(server.port) as proxy:
            run_here(proxy.port, user, place, server.password, arm)
            counts["command"] = len(proxy.commands)
    finally:
        undo()
    assert inbox.violations(inbox.look(server, user), later(server, user, place).ledger) == []
    return counts


def later(server: Dovecot, user: str, place: Path) -> TestApp:
    """The same account in a process that starts ten minutes later: leases of the dead have run out."""
    settings = settings_for(place, server.port, user, server.password)
    return TestApp(settings, [inbox.provider()], LaterClock(SystemClock(), timedelta(minutes=10)))


def put_right(server: Dovecot, user: str, place: Path) -> list[str]:
    """Make the next runs, as the next fires would, and say what is wrong then."""
    app = later(server, user, place)
    bad = inbox.violations(inbox.look(server, user), app.ledger, finished=False)
    cut = app.ledger.expire()
    bad += [f"{run.id} was cut and is {run.state}" for run in cut if run.reason != "cut"]
    for _ in range(3):
        run = make_run(app)
        if run.state is not RunState.DONE:
            bad.append(f"the next run failed: {run.reason} {run.error}")
        if not run.counts.get("selected"):
            break
    bad += inbox.violations(inbox.look(server, user), app.ledger)
    asked_twice = {s: n for s, n in app.providers[0].asked.items() if n > 1}  # type: ignore[attr-defined]
    bad += [f"asked twice after the crash: {asked_twice}"] if asked_twice else []
    app.close()
    return bad


def kill_at(server: Dovecot, point: KillPoint, directory: Path) -> list[str]:
    """Kill a run at one point, then put things right."""
    user, place = fresh(server, str(point), directory)
    ready, child = fork.Event(), None

    def at(where: str) -> Callable[[int], None]:
        return lambda n: die() if (where, n) == (point.where, point.n) else None

    def arm(app: TestApp) -> None:
        at_commits(app.ledger, at("commit"), at("committed"))
        at_steps(StructuredRunLog, at("step"), at("stepped"))

    def kill_child(where: str, n: int) -> bool:
        if (where, n) != (point.where, point.n):
            return False
        assert child is not None
        child.kill()
        child.join()
        return True

    with CommandProxy(server.port, lambda n, line: kill_child("command", n), lambda n: kill_child("reply", n)) as proxy:

        def body() -> None:
            ready.wait()
            run_here(proxy.port, user, place, server.password, arm)

        child = fork.Process(target=body, daemon=True)
        child.start()
        ready.set()
        child.join(60)
        died = child.exitcode == -9
    return ([] if died else [f"survived its kill point (exit {child.exitcode})"]) + put_right(server, user, place)


def test_every_point_a_run_can_be_killed_at_is_survived(server: Dovecot, tmp_path: Path) -> None:
    """SIGKILL at every IMAP command, before and after it reached the server, at every ledger commit, before and after
    it was durable, and at every step boundary."""
    counts = count_points(server, tmp_path)
    points = [
        KillPoint(where, n)
        for where, total in (
            ("command", counts["command"]),
            ("reply", counts["command"]),
            ("commit", counts["commit"]),
            ("committed", counts["commit"]),
            ("step", counts["step"]),
            ("stepped", counts["step"]),
        )
        for n in range(1, total + 1)
    ]
    chosen = points[::STRIDE]
    failures = {str(p): bad for p in chosen if (bad := kill_at(server, p, tmp_path))}
    print(f"\nkill points survived / tried: {len(chosen) - len(failures)} / {len(chosen)} (of {len(points)} there are)")
    assert failures == {}
    assert len(points) >= 150


def test_a_connection_cut_at_every_command_is_survived(server: Dovecot, tmp_path: Path) -> None:
    """Cut before the command reaches the server, and after the server obeyed but before we know."""
    counts = count_points(server, tmp_path)
    failures, tried = {}, 0
    for where in ("command", "reply"):
        for n in range(1, counts["command"] + 1, 1 if FULL else 4):
            tried += 1
            user, place = fresh(server, f"cut-{where}-{n}", tmp_path)

            def cut(wanted: str, now: int, where: str = where, n: int = n) -> bool:
                return (wanted, now) == (where, n)

            at_command = lambda now, line: cut("command", now)  # noqa: E731
            with CommandProxy(server.port, at_command, lambda now: cut("reply", now)) as proxy:
                run_here(proxy.port, user, place, server.password)
            bad = put_right(server, user, place)
            if bad:
                failures[f"{where}-{n}"] = bad
    print(f"\nconnection cuts survived / tried: {tried - len(failures)} / {tried}")
    assert failures == {}


def test_a_stop_at_every_step_ends_the_run_in_order(server: Dovecot, tmp_path: Path) -> None:
    """SIGTERM sets the stop signal: what is decided is finished, the lease is given back, nothing is left half done."""
    counts = count_points(server, tmp_path)
    failures = {}
    points = [KillPoint(w, n) for w in ("step", "stepped") for n in range(1, counts["step"] + 1)]
    for point in points:
        user, place = fresh(server, f"stop-{point}", tmp_path)
        app = TestApp(settings_for(place, server.port, user, server.password), [inbox.provider()])
        stop = threading.Event()

        def at(where: str, point: KillPoint = point, stop: threading.Event = stop) -> Callable[[int], None]:
            return lambda n: stop.set() if (where, n) == (point.where, point.n) else None

        undo = at_steps(StructuredRunLog, at("step"), at("stepped"))
        try:
            run = make_run(app, stop=stop)
        finally:
            undo()
        bad = [] if run.state is RunState.DONE else [f"ended {run.state}: {run.reason} {run.error}"]
        bad += [f"left half done: {d.ref}" for d in app.ledger.unfinished("team")]
        app.close()
        bad += put_right(server, user, place)
        if bad:
            failures[str(point)] = bad
    print(f"\nstops survived / tried: {len(points) - len(failures)} / {len(points)}")
    assert failures == {}


def test_a_cut_run_is_recorded_failed_and_never_repeated(server: Dovecot, tmp_path: Path) -> None:
    user, place = fresh(server, "never-repeated", tmp_path)
    kill = KillPoint("committed", 12)
    app = TestApp(settings_for(place, server.port, user, server.password), [inbox.provider()])
    queued = app.ledger.enqueue("team", Trigger.MANUAL, app.clock.now())
    assert queued is not None
    app.close()

    def body() -> None:
        mine = TestApp(settings_for(place, server.port, user, server.password), [inbox.provider()])
        at_commits(mine.ledger, lambda n: None, lambda n: die() if n == kill.n else None)
        work(mine.workplace(), run_id=queued.id)

    child = fork.Process(target=body, daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == -9
    next_app = later(server, user, place)
    next_app.ledger.expire()
    assert work(next_app.workplace()) is None
    cut = next_app.ledger.run(queued.id)
    assert cut is not None
    assert (cut.state, cut.reason) == (RunState.FAILED, "cut")
    next_app.close()
