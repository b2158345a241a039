"""Whole runs on a real mail server against model servers that are wrong: no crash, no label outside the categories,
nothing archived on an answer that cannot be used. `bench/decide.py --faults` prints the table of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.http_stub import HttpStub
from services.dovecot import Dovecot
from services.jevcompat import faulty
from support.odd_model import ADVERSARIES, MAILS, Aftermath, run_against
from triage.domain.decision import Outcome
from triage.domain.record import RunState

SOME_FAULTS = ("none", "choice-sum", "choice-second", "xssi-200", "wrong-route", "auth-x-api-key", "confidence-over")
"""One of each kind; each of the others does what one of these does."""

UNUSABLE = ("another question", "another name", "a label of its own", "sure of everything", "percent", "NaN")


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return "u" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]


def adversary(name: str, server: Dovecot, user: str, directory: Path) -> Aftermath:
    with HttpStub(ADVERSARIES[name]) as stub:
        return run_against(server, user, directory, stub.url)


@pytest.mark.parametrize("fault", SOME_FAULTS)
def test_a_run_against_a_faulty_server_does_no_harm(fault: str, server: Dovecot, user: str, tmp_path: Path) -> None:
    with faulty(fault) as url:
        found = run_against(server, user, tmp_path, url)
    assert found.wrong == ()
    assert found.run.state is RunState.DONE
    if fault in ("choice-sum", "choice-second"):
        assert set(found.inbox.values()) == {"Triage/unclassified"}
        assert {d.outcome for d in found.decisions} == {Outcome.UNUSABLE_ANSWER}
    if fault in ("xssi-200", "wrong-route", "auth-x-api-key"):
        assert set(found.inbox.values()) == {""}, "an outage leaves the mail for the next run"


@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_run_against_an_adversary_does_no_harm(name: str, server: Dovecot, user: str, tmp_path: Path) -> None:
    found = adversary(name, server, user, tmp_path)
    assert found.wrong == ()
    assert found.run.state is RunState.DONE
    if name == "behaves":
        assert set(found.archive.values()) == {"Triage/receipt"}
        assert len(found.archive) == len(MAILS)
    elif name == "good by turns":
        assert (len(found.archive), set(found.inbox.values())) == (len(MAILS) // 2, {"Triage/unclassified"})
    elif name in UNUSABLE:
        assert (found.archive, set(found.inbox.values())) == ({}, {"Triage/unclassified"})
    else:
        assert (found.archive, set(found.inbox.values())) == ({}, {""})
