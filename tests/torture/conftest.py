"""What the accidents are tried on, and the sum of what was tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from services.dovecot import Dovecot
from support.form import Tally
from support.site import POOR, WHOLE, Site, build
from triage import logs


@pytest.fixture(scope="session", autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of runs would fill the screen; failures tell what they need by themselves."""
    logs.configure("critical")
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def tally() -> Iterator[Tally]:
    tally = Tally()
    yield tally
    print(
        f"\naccidents survived / tried: {tally.survived} / {tally.tried}, of {tally.points} distinct points there are"
    )


@pytest.fixture(scope="session")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture(scope="session")
def whole(server: Dovecot, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A mailbox that was never sorted, on a server that has everything."""
    return build(server, WHOLE, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def poor(server: Dovecot, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The same on a server without MOVE and CONDSTORE."""
    return build(server, POOR, tmp_path_factory.mktemp("poor"))
