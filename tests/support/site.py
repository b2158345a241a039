"""One account on a test server with its ledger, as many times over as there are accidents to try on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from services.dovecot import Dovecot
from support import inbox
from support.killing import CommandProxy
from support.later import LaterClock
from support.office import TestApp, make_run, settings_for
from triage.clock import SystemClock
from triage.domain.record import RunState

AFTER_THE_LEASE = timedelta(minutes=10)


@dataclass(frozen=True)
class World:
    """What kind of server it is: capabilities that the proxy hides from the program."""

    name: str
    hides: frozenset[bytes] = frozenset()

    @property
    def most_copies(self) -> int:
        """Without MOVE a crash between COPY and EXPUNGE leaves two copies; never none."""
        return 2 if b"MOVE" in self.hides else 1


WHOLE = World("whole")
POOR = World("poor", frozenset({b"MOVE", b"CONDSTORE", b"QRESYNC"}))
"""Without MOVE: COPY and UID EXPUNGE. Without CONDSTORE: a look at the flags instead of UNCHANGEDSINCE."""


@dataclass(frozen=True)
class Site:
    """A mailbox and a ledger in some state. `ahead` is how much later it is there than outside."""

    server: Dovecot
    user: str
    place: Path
    world: World
    ahead: timedelta = timedelta(0)

    def copy(self, name: str) -> Site:
        """The same mailbox and ledger once more. Nobody may be connected to this one."""
        user = f"{self.world.name}-{name}"
        place = self.place.parent / user
        shutil.copytree(self.place, place)
        self.server.copy_store(self.user, user)
        return replace(self, user=user, place=place)

    def later(self) -> Site:
        """The same site once the leases of the dead have run out."""
        return replace(self, ahead=self.ahead + AFTER_THE_LEASE)

    def app(self, port: int) -> TestApp:
        settings = settings_for(self.place, port, self.user, self.server.password)
        return TestApp(settings, [inbox.provider()], LaterClock(SystemClock(), self.ahead))

    def proxy(
        self,
        at_command: Callable[[int, bytes], bool] = lambda n, line: False,
        at_reply: Callable[[int], bool] = lambda n: False,
    ) -> CommandProxy:
        return CommandProxy(self.server.port, at_command, at_reply, self.world.hides)

    def run(self, port: int, prepare: Callable[[TestApp], object] = lambda app: None) -> TestApp:
        """One run in this process, of a worker that `prepare` arms; the closed App."""
        app = self.app(port)
        app.ledger.expire()
        prepare(app)
        try:
            make_run(app)
        finally:
            app.close()
        return app

    def violations(self, *, finished: bool = True) -> list[str]:
        app = self.app(self.server.port)
        try:
            found = inbox.look(self.server, self.user)
            return inbox.violations(found, app.ledger, finished=finished, most_copies=self.world.most_copies)
        finally:
            app.close()

    def put_right(self) -> list[str]:
        """Make the next runs, as the next fires would, and say what is wrong then."""
        site = self.later()
        bad = site.violations(finished=False)
        with site.proxy() as proxy:
            app = site.app(proxy.port)
            try:
                bad += [f"{run.id} ended as {run.reason}" for run in app.ledger.expire() if run.reason != "cut"]
                for _ in range(3):
                    run = make_run(app)
                    if run.state is not RunState.DONE:
                        bad.append(f"the next run failed: {run.reason} {run.error}")
                    if not run.counts.get("selected"):
                        break
                left = app.ledger.unfinished("team")
                bad += [f"never finished: {d.ref}" for d in left]
                asked = app.providers[0].asked  # type: ignore[attr-defined]
                bad += [f"{subject}: asked {n} times after the accident" for subject, n in asked.items() if n > 1]
            finally:
                app.close()
        return bad + site.violations()


def build(server: Dovecot, world: World, directory: Path) -> Site:
    """The inbox of `support.inbox` and an empty ledger."""
    site = Site(server, f"{world.name}-template", directory / f"{world.name}-template", world)
    site.place.mkdir()
    inbox.fill(server, site.user)
    app = site.app(server.port)
    app.ledger.depth()
    app.close()
    return site
