"""/healthz and the pages beside the real daemon and a real mail server."""

from __future__ import annotations

import json
import signal
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.killing import CommandProxy
from support.office import TestApp, make_run, settings_for
from support.premises import Premises, wait_until
from triage.checkup import look_into_mailboxes
from triage.clock import SystemClock
from triage.config.settings import HttpSettings
from triage.domain.record import Trigger
from triage.web.messages import Request
from triage.web.site import Site

SECRET = "a token nobody guesses"


class AheadClock(SystemClock):
    """The real clock, moved ahead by hand: what waits for the mail server really waits."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead.total_seconds()

    def advance(self, span: timedelta) -> None:
        self._ahead += span


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine under load is no mail server that hangs."""
    monkeypatch.setattr("triage.web.site.PROBE_PATIENCE_S", 30.0)


def office(directory: Path, port: int, user: str, password: str) -> tuple[TestApp, AheadClock]:
    clock = AheadClock()
    settings = replace(settings_for(directory, port, user, password), http=HttpSettings(port=0))
    return TestApp(settings, [TableProvider({}, default=("conversation", 0.97))], clock), clock


def probe(site: Site) -> tuple[int, dict[str, Any]]:
    response = site.answer(Request("/healthz", headers={"host": "localhost"}))
    return int(response.status), json.loads(response.body)


def fire(app: TestApp) -> None:
    """What the daemon does at a fire time: the ledger has it, and a worker has made it."""
    make_run(app, trigger=Trigger.SCHEDULE)


def test_mail_that_waits_too_long_is_unhealthy_whatever_the_records_say(server: Dovecot, tmp_path: Path) -> None:
    """The mailbox itself is asked: runs that finish and sort nothing must not look fine."""
    app, clock = office(tmp_path, server.port, "waits", server.password)
    site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
    fire(app)
    assert probe(site) == (200, {"healthy": True, "accounts": [_any(site)]})
    server.append("waits", [Mail("Hello", "<1@x.example>", received=clock.now() - timedelta(minutes=40))])
    clock.advance(timedelta(seconds=61))
    status, report = probe(site)
    assert (status, report["healthy"]) == (503, False)
    assert "a message has waited 4" in report["accounts"][0]["problems"][0]
    assert report["accounts"][0]["oldest_age_s"] == pytest.approx(41 * 60, abs=120)
    page = site.answer(Request("/", headers={"host": "localhost"})).body.decode()
    assert "Something needs attention" in page
    assert "a message has waited 4" in page
    fire(app)
    clock.advance(timedelta(seconds=61))
    assert probe(site)[0] == 200
    app.close()


def _any(site: Site) -> Any:
    return probe(site)[1]["accounts"][0]


def test_a_daemon_that_stopped_is_unhealthy(server: Dovecot, tmp_path: Path) -> None:
    app, clock = office(tmp_path, server.port, "stops", server.password)
    site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
    fire(app)
    assert probe(site)[0] == 200
    clock.advance(timedelta(minutes=20))
    status, report = probe(site)
    assert status == 503
    assert "Is `triage serve` running?" in report["accounts"][0]["problems"][0]
    app.close()


def test_a_mailbox_out_of_reach_is_unhealthy(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    app, clock = office(tmp_path, port, "gone", "x")
    app.ledger.enqueue("team", Trigger.SCHEDULE, clock.now())
    status, report = probe(Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1"))
    assert (status, report["healthy"]) == (503, False)
    app.close()


def test_a_mailbox_is_looked_into_once_a_minute_however_often_probes_come(server: Dovecot, tmp_path: Path) -> None:
    app, clock = office(tmp_path, server.port, "often", server.password)
    site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
    fire(app)
    looked: list[str] = []
    real = app.mailbox

    def counted(account: Any) -> Any:
        looked.append(account.name)
        return real(account)

    app.mailbox = counted  # type: ignore[method-assign]  # the real one, counted
    for _ in range(20):
        assert probe(site)[0] == 200
    assert looked == ["team"]
    clock.advance(timedelta(seconds=61))
    probe(site)
    assert looked == ["team", "team"]
    app.close()


def test_a_mail_server_that_hangs_keeps_no_probe_waiting_and_hides_no_dead_daemon(
    server: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    answers.set()

    def hang(n: int, line: bytes) -> bool:
        answers.wait()
        return False

    with CommandProxy(server.port, hang, lambda n: False) as proxy:
        app, clock = office(tmp_path, proxy.port, "hangs", server.password)
        site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
        fire(app)
        assert probe(site)[0] == 200
        answers.clear()
        monkeypatch.setattr("triage.web.site.PROBE_PATIENCE_S", 0.2)
        clock.advance(timedelta(seconds=61))
        assert probe(site)[0] == 200, "the mailbox was fine a minute ago, and the ledger still is"
        clock.advance(timedelta(minutes=20))
        status, report = probe(site)
        assert status == 503
        assert "Is `triage serve` running?" in report["accounts"][0]["problems"][0]
        answers.set()
        app.close()


def test_a_mailbox_that_does_not_answer_in_time_is_named_and_the_others_are_seen(
    server: Dovecot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triage.checkup.LOOK_S", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app, _ = office(tmp_path, server.port, "fine", server.password)
        first = app.settings.accounts[0]
        hung = replace(first, name="hung", port=silent.getsockname()[1])
        app.settings = replace(app.settings, accounts=(hung, first))
        looks = look_into_mailboxes(app)
        assert looks["hung"].error == "account hung: the mailbox was not looked into within 3 s"
        assert looks[first.name].error is None
        app.close()


def test_serve_shows_its_pages_and_stops_with_them(server: Dovecot, tmp_path: Path) -> None:
    """The whole of it: `triage serve` with a token, asked over HTTP, then told to stop."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    premises = Premises(tmp_path, server.port, server.password, "http://127.0.0.1:9")
    premises.write({"team": "serves"})
    text = premises.path.read_text().replace(
        "http: false", f"http: {{listen: '127.0.0.1:{port}', token: {{env: WEB_TOKEN}}}}"
    )
    premises.path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEB_TOKEN", SECRET)
        with premises.process("serve") as process:
            wait_until(lambda: process.events("http_listening"), 120)
            address = f"http://127.0.0.1:{port}"
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(address + "/", timeout=20)
            assert refused.value.code == 401
            refused.value.close()
            for path, expected in (("/", "Accounts"), ("/metrics", "triage_build_info"), ("/healthz", '"team"')):
                request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {SECRET}"})
                with urllib.request.urlopen(request, timeout=20) as answer:
                    assert expected in answer.read().decode()
            code, seconds = process.end(signal.SIGTERM)
    assert (code, seconds < 10) == (0, True)
    assert SECRET not in (tmp_path / "serve.log").read_text()
