"""A call of the mail tool is killed at every ledger commit and IMAP command; its caller comes back and asks again.

Whoever comes back gets the same message, a message is a run's once, and nothing is given twice that may be given once.
The points are counted on an undisturbed call first.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from services.dovecot import Dovecot
from support.form import Tally, some
from support.killing import CommandProxy, KillPoint, at_commits, die
from support.later import LaterClock
from support.mail_tool import LINK
from support.shards import failures_of, fork
from support.tool_site import Site, wait_request
from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool
from triage.bootstrap import App
from triage.clock import SystemClock
from triage.domain.tool import Claim, Taking

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # proxies have threads; we fork

RUN = "signup-1842"
QUICK = {
    "runs__intervals": [0.2],
    "runs__settle_seconds": 0.05,
    "runs__idle": "off",
    "runs__min_read_seconds": 0.2,
    "purposes__verify_signup__deadline_seconds": 600,  # the machine may be slow, and so may whoever comes back
}
AFTER_THE_HOLD = timedelta(seconds=20)
Call = Callable[[MailTool, "Scene"], object]
At = Callable[[int], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Scene:
    """An installation at some moment. The mailbox is only read, so that all copies share it."""

    site: Site
    run: RunView | None = None
    handle: str = ""

    def copied(self, name: str) -> Scene:
        site = copy.copy(self.site)
        site.directory = self.site.directory.parent / name
        shutil.copytree(self.site.directory, site.directory)
        return replace(self, site=site)

    @property
    def opened(self) -> RunView:
        assert self.run is not None
        return self.run

    def request(self, wait_id: str | None = None, **changes: object) -> dict[str, object]:
        named = {"wait_id": wait_id} if wait_id else {}
        return wait_request(self.opened, deadline_seconds=600, max_polls=12, **named, **changes)


@dataclass(frozen=True)
class Kept:
    """What the ledger holds of the run."""

    claims: tuple[Claim, ...]
    takings: tuple[Taking, ...]
    attempts: int

    @classmethod
    def of(cls, app: App) -> Kept:
        run = app.ledger.tool_run(RUN)
        return cls(app.ledger.claims_of(RUN, 1), app.ledger.takings_of(RUN, 1), run.attempts_used if run else 0)


# ------------------------------------------------------------ the calls, and coming back after each


def opens(tool: MailTool, scene: Scene) -> Result:
    return tool.open({"run_id": RUN, "purpose": "verify_signup"})


def waits(tool: MailTool, scene: Scene) -> Result:
    return tool.wait(scene.request(take="link"))


def finds(tool: MailTool, scene: Scene) -> Result:
    return tool.find({"run_id": RUN, "mailbox_scope": RUN, "max_reads": 3})


def takes(tool: MailTool, scene: Scene) -> Result:
    return tool.take({"run_id": RUN, "mailbox_id": scene.opened.mailbox_id, "kind": "link"})


def redeems(tool: MailTool, scene: Scene) -> tuple[Result, str | None]:
    return tool.redeem({"run_id": RUN, "handle": scene.handle})


def opened_again(tool: MailTool, scene: Scene, before: Kept) -> list[str]:
    """Either nothing was opened, or `status` gives what the lost answer held."""
    told = tool.status({"run_id": RUN})
    if told.run is None:
        told = opens(tool, scene)
    if told.run is None or not told.run.live:
        return [f"no live run: {told.state} {told.reason}"]
    address = told.run.address
    again = opens(tool, scene)
    return [] if again.reason == "run_exists" and address else [f"opened twice: {again.reason}"]


def waited_again(tool: MailTool, scene: Scene, before: Kept) -> list[str]:
    """The run's status names the wait; going on with it gives the message, and the same one whenever it is asked."""
    told: list[Result] = []
    for _ in range(2):
        result = tool.wait(scene.request(tool.status({"run_id": RUN}).wait_id, take="link"))
        while result.state == "pending":
            time.sleep((result.next_retry_after_ms or 0) / 1000)
            result = tool.wait(scene.request(result.wait_id, take="link"))
        told.append(result)
    bad = [f"{r.state} {r.reason}" for r in told if r.artifact is None or r.artifact.verification_url != LINK]
    expected = "accepted_before" if before.claims else "matched"
    if [r.reason for r in told] != [expected, "accepted_before"]:
        bad.append(f"{[r.reason for r in told]} after {len(before.claims)} claims")
    if len({r.accepted.message_id for r in told if r.accepted}) != 1:
        bad.append("two messages")
    return bad


def found_again(tool: MailTool, scene: Scene, before: Kept) -> list[str]:
    told = [finds(tool, scene) for _ in range(2)]
    expected = ["accepted_before" if before.claims else "matched", "accepted_before"]
    return [] if [r.reason for r in told] == expected else [f"{[r.reason for r in told]}, {len(before.claims)} claims"]


def taken_again(tool: MailTool, scene: Scene, before: Kept) -> list[str]:
    """A value is given by `take` once at most: a lost answer stays lost, and is said to be."""
    told = [takes(tool, scene) for _ in range(2)]
    expected = ["already_taken" if before.takings else "taken", "already_taken"]
    given = [r.artifact.verification_url for r in told if r.artifact]
    bad = [] if [r.reason for r in told] == expected else [f"{[r.reason for r in told]}"]
    return bad if given == [LINK] * (not before.takings) else [*bad, f"given: {len(given)}"]


def redeemed_again(tool: MailTool, scene: Scene, before: Kept) -> list[str]:
    """The same of a handle; and the wait goes on naming the same one."""
    used = before.takings[0].redeemed_at is not None
    told = [redeems(tool, scene) for _ in range(2)]
    bad = [] if [value for _, value in told] == [None if used else LINK, None] else ["redeemed otherwise than once"]
    again = tool.wait(scene.request(tool.status({"run_id": RUN}).wait_id, take="link"))
    named = again.artifact.handle if again.artifact else None
    return bad if named == scene.handle else [*bad, "another handle"]


CALLS: dict[str, tuple[Call, Callable[[MailTool, Scene, Kept], list[str]]]] = {
    "open": (opens, opened_again),
    "wait": (waits, waited_again),
    "find": (finds, found_again),
    "take": (takes, taken_again),
    "redeem": (redeems, redeemed_again),
}


# ------------------------------------------------------------ accidents


def quiet(_n: int) -> None:
    """Nothing happens at a commit."""


def points_of(scene: Scene, call: Call) -> list[KillPoint]:
    """Every point of an undisturbed call."""
    commits = [0]
    with CommandProxy(scene.site.server.port) as proxy:
        scene.site.write_settings(proxy.port)
        with_tool(scene, call, lambda n: commits.__setitem__(0, n))
        totals = {"commit": commits[0], "command": len(proxy.commands)}
    after = {"commit": "committed", "command": "reply"}
    return [KillPoint(where, n) for of in totals for where in (of, after[of]) for n in range(1, totals[of] + 1)]


def with_tool(scene: Scene, call: Callable[[MailTool, Scene], T], before: At = quiet, after: At = quiet) -> T:
    app = scene.site.app()
    at_commits(app.ledger, before, after)
    tool = app.tool()
    try:
        return call(tool, scene)
    finally:
        tool.close()
        app.close()


def killed(scene: Scene, call: Call, point: KillPoint) -> list[str]:
    """Kill the call there; what is wrong if it did not die."""
    ready, child = fork.Event(), None

    def at(where: str) -> Callable[[int], None]:
        return lambda n: die() if (where, n) == (point.where, point.n) else None

    def kill_child(where: str, n: int) -> bool:
        if (where, n) != (point.where, point.n):
            return False
        assert child is not None
        child.kill()
        return True

    def body() -> None:
        ready.wait()
        with_tool(scene, call, at("commit"), at("committed"))

    with CommandProxy(
        scene.site.server.port, lambda n, line: kill_child("command", n), lambda n: kill_child("reply", n)
    ) as proxy:
        scene.site.write_settings(proxy.port)
        child = fork.Process(target=body)
        child.start()
        ready.set()
        child.join(60)
        return [] if child.exitcode == -9 else [f"survived its kill point (exit {child.exitcode})"]


def come_back(scene: Scene, again: Callable[[MailTool, Scene, Kept], list[str]]) -> list[str]:
    """Ask again once the dead caller's hold has run out; then look at what the ledger holds."""
    scene.site.write_settings(scene.site.server.port)
    app = scene.site.app(LaterClock(SystemClock(), AFTER_THE_HOLD))
    tool = app.tool()
    try:
        bad = again(tool, scene, Kept.of(app))
        kept = Kept.of(app)
        if len(kept.claims) > 1 or len(kept.takings) > 1 or kept.attempts > 1:
            bad.append(f"{len(kept.claims)} claims, {len(kept.takings)} takings, {kept.attempts} attempts")
        return [*bad, *app.ledger.verify_receipts("team").problems]
    finally:
        tool.close()
        app.close()


# ------------------------------------------------------------ scenes


@pytest.fixture(autouse=True)
def as_many_commits_however_slow_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that lasts renews its hold now and then, which is a commit."""
    monkeypatch.setattr("triage.agent.waiting.RENEW_MS", 10**9)


@pytest.fixture(scope="module")
def scenes(server: Dovecot, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """By the call that is to be killed: before a run, with mail waiting, with a message accepted, with a handle."""
    place = tmp_path_factory.mktemp("killed")
    value, handle = (begun(server, place / deliver, deliver) for deliver in ("value", "handle"))
    accepted, handed = value.copied("accepted"), handle.copied("handed")
    with_tool(accepted, lambda tool, scene: told_found(tool.wait(scene.request())))
    told = with_tool(handed, lambda tool, scene: told_found(tool.wait(scene.request(take="link"))))
    assert told.artifact is not None
    empty = Scene(Site(directory(place / "empty"), server, "killed-empty", **QUICK))
    with_tool(empty, lambda tool, scene: tool.status({"run_id": RUN}))
    return {
        "open": empty,
        "wait": value,
        "find": value,
        "take": accepted,
        "redeem": replace(handed, handle=str(told.artifact.handle)),
    }


def begun(server: Dovecot, place: Path, deliver: str) -> Scene:
    """A run whose mail has come."""
    site = Site(
        directory(place), server, f"killed-{deliver}", **QUICK, purposes__verify_signup__take__link__deliver=deliver
    )
    run = with_tool(Scene(site), opens).run
    assert run is not None
    site.deliver(run.address)
    return Scene(site, run)


def directory(place: Path) -> Path:
    place.mkdir()
    return place


def told_found(result: Result) -> Result:
    assert result.state == "found", result
    return result


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CALLS)
def test_whoever_comes_back_after_a_kill_gets_the_same_and_nothing_twice(
    name: str, scenes: dict[str, Scene], tally: Tally
) -> None:
    call, again = CALLS[name]
    template = scenes[name]
    points = points_of(template.copied(f"{name}-counted"), call)
    at_ledger = [point for point in points if point.where.startswith("commit")]
    chosen = [*at_ledger, *some([point for point in points if point not in at_ledger], 4)]

    def trial(point: KillPoint) -> list[str]:
        scene = template.copied(f"{name}-{point}")
        return killed(scene, call, point) + come_back(scene, again)

    failures = failures_of(trial, chosen)
    tally.add(f"mail tool: {name} killed", len(chosen), len(failures), len(points))
    assert failures == {}
    assert at_ledger
