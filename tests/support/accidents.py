"""The points at which a run can have an accident, and the accidents themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from support.killing import KillPoint, at_commits, at_steps, die
from support.office import TestApp
from support.shards import fork
from support.site import Site
from triage.runlog import StructuredRunLog


@dataclass(frozen=True)
class Counts:
    """What an undisturbed run does: its commands, and how many commits and steps it has."""

    commands: tuple[bytes, ...]
    commits: int
    steps: int

    def first(self, words: bytes) -> int:
        """The number, from 1, of the first command that holds these words."""
        return next(n for n, line in enumerate(self.commands, 1) if words in line)

    def last(self, words: bytes) -> int:
        return max(n for n, line in enumerate(self.commands, 1) if words in line)

    def points(self) -> list[KillPoint]:
        totals = {"command": len(self.commands), "commit": self.commits, "step": self.steps}
        return [
            KillPoint(where, n)
            for total, pair in ((name, (name, after)) for name, after in AFTER.items())
            for where in pair
            for n in range(1, totals[total] + 1)
        ]


AFTER = {"command": "reply", "commit": "committed", "step": "stepped"}


def count(site: Site, name: str) -> Counts:
    """Count on a copy of the site; it must end in good order."""
    site = site.copy(name)
    numbers = {"commit": 0, "step": 0}
    undo = at_steps(StructuredRunLog, lambda n: numbers.__setitem__("step", n), lambda n: None)
    try:
        with site.proxy() as proxy:
            arm = lambda app: at_commits(app.ledger, lambda n: numbers.__setitem__("commit", n), lambda n: None)  # noqa: E731
            site.run(proxy.port, arm)
            commands = tuple(proxy.commands)
    finally:
        undo()
    assert site.violations() == []
    return Counts(commands, numbers["commit"], numbers["step"])


def kill(site: Site, point: KillPoint) -> list[str]:
    """Make a run and kill it at this point; what is wrong if it did not die there."""
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
        child.kill()  # not joined here: two threads that wait for one child get in each other's way
        return True

    with site.proxy(lambda n, line: kill_child("command", n), lambda n: kill_child("reply", n)) as proxy:

        def body() -> None:
            ready.wait()
            site.run(proxy.port, arm)

        child = fork.Process(target=body)
        child.start()
        ready.set()
        child.join(60)
        return [] if child.exitcode == -9 else [f"survived its kill point (exit {child.exitcode})"]


def kill_and_put_right(template: Site, point: KillPoint, name: str = "") -> list[str]:
    site = template.copy(f"{name}{point}")
    return kill(site, point) + site.put_right()
