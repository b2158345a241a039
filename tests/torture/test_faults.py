"""The connection is cut, the ledger refuses, the run is told to stop: at every point there is."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest

from support.accidents import count
from support.form import Tally, some
from support.killing import KillPoint, at_steps
from support.ledger_faults import Fault, break_at
from support.office import make_run
from support.shards import failures_of
from support.site import Site
from triage.domain.errors import LedgerError
from triage.domain.record import RunState
from triage.runlog import StructuredRunLog

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),  # proxies have threads; we fork
    pytest.mark.timeout(1800),
]


@pytest.mark.parametrize("world", ["whole", "poor"])
def test_a_connection_cut_at_every_command_is_survived(
    world: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    """Cut before the command reaches the server, and after the server obeyed but before we know."""
    template: Site = request.getfixturevalue(world)
    commands = len(count(template, "uncut").commands)
    points = [KillPoint(where, n) for where in ("command", "reply") for n in range(1, commands + 1)]

    def trial(point: KillPoint) -> list[str]:
        site = template.copy(f"cut-{point}")
        at = lambda where, n: (where, n) == (point.where, point.n)  # noqa: E731
        with site.proxy(lambda n, line: at("command", n), lambda n: at("reply", n)) as proxy:
            site.run(proxy.port)
        return site.put_right()

    chosen = some(points, 4)
    failures = failures_of(trial, chosen)
    tally.add(f"connection cut, {world} server", len(chosen), len(failures), len(points))
    assert failures == {}


def test_a_ledger_that_refuses_at_every_transaction_is_survived(whole: Site, tally: Tally) -> None:
    """Locked, full or broken: once, and from some point on for good. The next run has a ledger that works."""
    commits = count(whole, "unbroken").commits
    faults = [
        Fault(what, n, lasting)
        for lasting in (False, True)
        for what in ("locked", "full", "broken")
        for n in range(1, commits + 1)
    ]

    def trial(fault: Fault) -> list[str]:
        site = whole.copy(str(fault))
        struck: list[list[int]] = []
        with site.proxy() as proxy, contextlib.suppress(LedgerError):
            site.run(proxy.port, lambda app: struck.append(break_at(app.ledger, fault)))
        return ([] if struck[0] else ["the fault never happened"]) + site.put_right()

    chosen = some(faults, 6)
    failures = failures_of(trial, chosen)
    tally.add("ledger refuses", len(chosen), len(failures), len(faults))
    assert failures == {}


def test_a_stop_at_every_step_ends_the_run_in_order(whole: Site, tally: Tally) -> None:
    """What is decided is finished, the lease is given back, nothing is left half done."""
    steps = count(whole, "unstopped").steps
    points = [KillPoint(where, n) for where in ("step", "stepped") for n in range(1, steps + 1)]

    def trial(point: KillPoint) -> list[str]:
        site, stop = whole.copy(f"stop-{point}"), threading.Event()
        at = lambda where: lambda n: stop.set() if (where, n) == (point.where, point.n) else None  # noqa: E731
        app = site.app(site.server.port)
        undo: Callable[[], None] = at_steps(StructuredRunLog, at("step"), at("stepped"))
        try:
            run = make_run(app, stop=stop)
            bad = [] if run.state is RunState.DONE else [f"ended {run.state}: {run.reason} {run.error}"]
            bad += [f"left half done: {d.ref}" for d in app.ledger.unfinished("team")]
        finally:
            undo()
            app.close()
        return bad + site.put_right()

    chosen = some(points, 4)
    failures = failures_of(trial, chosen)
    tally.add("told to stop", len(chosen), len(failures), len(points))
    assert failures == {}
