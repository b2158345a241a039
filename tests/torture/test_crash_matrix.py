"""A run is killed at every point there is; the next run must put everything right.

SIGKILL at every IMAP command, before it reaches the server and after the server obeyed, at every ledger commit, before
and after it is durable, and at every step boundary. The points are counted on an undisturbed run first, so that none
is forgotten when the program changes.
"""

from __future__ import annotations

import pytest

from support.accidents import Counts, count, kill, kill_and_put_right
from support.form import Tally, some
from support.killing import KillPoint, at_commits, die
from support.shards import failures_of, fork
from support.site import Site
from triage.domain.record import RunState, Trigger
from triage.schedule.worker import work

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # proxies have threads; we fork


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("world", ["whole", "poor"])
def test_every_point_a_run_can_be_killed_at_is_survived(
    world: str, request: pytest.FixtureRequest, tally: Tally
) -> None:
    template: Site = request.getfixturevalue(world)
    points = count(template, "undisturbed").points()
    chosen = some(points, 7)
    failures = failures_of(lambda point: kill_and_put_right(template, point), chosen)
    tally.add(f"first run killed, {world} server", len(chosen), len(failures), len(points))
    assert failures == {}
    assert len(points) >= 75


HALF_DONE = {
    "decided": lambda counts: KillPoint("command", counts.first(b"UID STORE")),
    "labelled, not recorded": lambda counts: KillPoint("reply", counts.last(b"UID STORE")),
    "labelled, not archived": lambda counts: KillPoint("command", counts.first(b"UID MOVE")),
    "archived, not recorded": lambda counts: KillPoint("reply", counts.first(b"UID MOVE")),
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("left", HALF_DONE)
def test_the_run_that_puts_things_right_may_be_killed_at_every_point_too(left: str, whole: Site, tally: Tally) -> None:
    name = left.replace(", ", "-").replace(" ", "-")
    half_done = whole.copy(f"half-{name}")
    first: Counts = count(whole, f"counted-{name}")
    assert kill(half_done, HALF_DONE[left](first)) == []
    second = half_done.later()
    points = count(second, f"recounted-{name}").points()
    chosen = some(points, 3)
    failures = failures_of(lambda point: kill_and_put_right(second, point, f"{name}-"), chosen)
    tally.add(f"second run killed, the first one when {left}", len(chosen), len(failures), len(points))
    assert failures == {}


def test_a_cut_run_is_recorded_failed_and_never_repeated(whole: Site) -> None:
    site = whole.copy("never-repeated")
    app = site.app(site.server.port)
    queued = app.ledger.enqueue("team", Trigger.MANUAL, app.clock.now())
    assert queued is not None
    app.close()

    def body() -> None:
        mine = site.app(site.server.port)
        at_commits(mine.ledger, lambda n: None, lambda n: die() if n == 3 else None)
        work(mine.workplace(), run_id=queued.id)

    child = fork.Process(target=body)
    child.start()
    child.join(60)
    assert child.exitcode == -9
    next_app = site.later().app(site.server.port)
    next_app.ledger.expire()
    assert work(next_app.workplace()) is None
    cut = next_app.ledger.run(queued.id)
    assert cut is not None
    assert (cut.state, cut.reason) == (RunState.FAILED, "cut")
    next_app.close()
