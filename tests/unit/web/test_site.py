"""Every page over a ledger with a past: what it shows, what it escapes, what it answers when something is missing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from support.premises import wait_until
from support.tool_past import use_tool
from support.web_world import HOSTILE, World, token
from support.web_world import patient_get as get
from triage.agent.states import TO_DO
from triage.config.settings import HttpSettings
from triage.domain.errors import ConfigError, LedgerError
from triage.domain.record import Run
from triage.web.messages import Request, Response
from triage.web.site import Site

SECRET = "a token nobody guesses"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A ledger with a past, which these tests only read."""
    world = World(tmp_path_factory.mktemp("lived"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def run(lived: World) -> Run:
    return lived.lived_in()


@pytest.fixture(scope="module")
def site(lived: World, run: Run) -> Site:
    return lived.site


def text_of(response: Response) -> str:
    """The words of a page without its tags."""

    class Words(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []

        def handle_data(self, data: str) -> None:
            self.found.append(data)

    parser = Words()
    parser.feed(response.body.decode())
    return " ".join(" ".join(parser.found).split())


def paths(world: World, run: Run) -> list[str]:
    key = world.app.ledger.decisions(run.id)[1].message_key
    return [
        "/", "/runs", f"/runs/{run.id}", f"/messages/{key}", "/categories", "/categories/team/receipt",
        "/categories/team/unclassified", "/cost", "/corrections", "/runs?account=team", "/cost?days=7&account=TEAM",
        "/tool", "/tool?days=1&account=team", "/tool/signup-1842", "/tool/signup-1843",
    ]  # fmt: skip


def test_every_page_is_there_well_formed_and_without_a_word_of_the_mail_unescaped(
    lived: World, run: Run, site: Site
) -> None:
    """Subjects, reasons and domains come from mail: they are text, wherever they are shown."""
    for path in paths(lived, run):
        response = get(site, path)
        html = response.body.decode()
        assert response.status == 200, path
        ET.fromstring(re.sub(r"<(meta|link|img|input)\b([^>]*[^/])>", r"<\1\2/>", html).replace("<!doctype html>", "")
                      .replace(" required/>", ' required=""/>').replace(" open>", ' open="">'))  # fmt: skip
        assert "<script" not in html
        assert "https://evil" not in html.replace("https://evil.example/x.png&gt;", "")
        assert "\u202e" not in html
        assert not re.search(r'\s(style|on\w+)="', html), "the content security policy forbids it"


def test_a_run_tells_its_steps_and_why_each_message_is_where_it_is(run: Run, site: Site) -> None:
    words = text_of(get(site, f"/runs/{run.id}"))
    assert "Account team, manual, fired 2026-11-30 12:00." in words
    assert "Unsure: receipt 0.41, then newsletter 0.38." in words
    assert "unsure: stays in inbox" in words
    assert "held back: hidden text" in words
    assert "which a person had labelled. No model was asked." in words
    assert '<script>alert("1")</script>gnp.exe & <img src=https://evil.example/x.png>' in words
    assert HOSTILE not in words
    html = get(site, f"/runs/{run.id}").body.decode()
    assert html.count('class="plot distribution"') == 4
    assert html.count('class="plot timeline"') == 1


def test_a_run_is_found_by_the_beginning_of_its_id(run: Run, site: Site) -> None:
    assert f"Run {run.id}" in text_of(get(site, f"/runs/{run.id[:-2]}"))


def test_a_message_tells_all_its_decisions_and_what_people_made_of_them(lived: World, run: Run, site: Site) -> None:
    decision = lived.app.ledger.decisions(run.id)[0]
    words = text_of(get(site, f"/messages/{decision.message_key[:12]}"))
    assert "0.95; floor 0.50, to archive 0.60" in words
    assert "900 tokens read, of them 400 the question" in words
    assert "The label newsletter was stored and read back." in words
    assert "Found: a person had made it receipt." in words
    assert get(site, f"/messages?key={decision.message_key.upper()}").status == 200


def test_categories_show_who_is_unsure_and_who_competes(site: Site) -> None:
    words = text_of(get(site, "/categories"))
    assert "29 mails" in words
    assert "receipt and newsletter" in words
    words = text_of(get(site, "/categories/team/receipt"))
    assert "Settled payments." in words
    assert "Named by models 13" in words
    assert 'class="plot histogram"' in get(site, "/categories/team/receipt").body.decode()
    newsletter = get(site, "/categories/team/newsletter").body.decode()
    assert 'class="plot calibration"' in newsletter
    assert "Of 2 reviewed 1 were right" in newsletter


def test_cost_adds_up(site: Site) -> None:
    words = text_of(get(site, "/cost"))
    assert "Cost 0.0112 USD" in words  # 28 answers at 0.0004, one mail for free
    assert "Per 1,000 mails 0.3862 USD" in words
    assert "letters.example" in words


def test_corrections_are_counted_and_listed(site: Site) -> None:
    words = text_of(get(site, "/corrections"))
    assert "Labels changed 1" in words
    assert "Wrong, of those reviewed 50%" in words
    assert "another label was put on it newsletter receipt" in words


def test_the_mail_tools_page_counts_how_calls_ended_and_names_every_run(site: Site) -> None:
    words = text_of(get(site, "/tool?days=1"))
    assert "3 runs live now" in words
    assert "Calls 11 Found 1 Forbidden 1 9.1% Timeout 1 9.1% Of a foreign run 1 9.1%" in words
    assert "signup-1842 ✓ found matched use what was taken verify_signup 1 0" in words
    assert "signup-1844 ? ambiguous several messages leave it to a person" in words
    assert "signup-1843 use 2 … pending call is over go on" in words
    assert "signup-1843 – timeout no message yet try again later" in words, "what was refused did not move the run"
    assert "find ✗ invalid request request malformed none of the caller's" in words


def test_a_run_of_the_mail_tool_tells_what_its_callers_were_told(world: World) -> None:
    """State, reason, next step, polls and message of every result are on the page; its values are on none."""
    told = use_tool(world.app.settings.ledger, world.clock.now())
    for run_id in ("signup-1842", "signup-1843", "signup-1844"):
        words = text_of(get(world.site, f"/tool/{run_id}"))
        mine = [result for result in told if result.run_id == run_id]
        assert len(mine) >= 2
        for result in mine:
            assert str(result.receipt_id) in words
            assert f"{str(result.state).replace('_', ' ')} {result.reason.replace('_', ' ')}" in words
            assert f"To do: {TO_DO[result.next_action]}." in words
            assert result.accepted is None or result.accepted.message_id in words
            assert all(candidate in words for candidate in result.candidates)
            assert result.run is None or result.run.address not in words
            assert result.artifact is None or str(result.artifact.verification_url) not in words
            assert result.run is None or result.run.mailbox_id not in words


def test_a_run_is_shown_with_each_look_and_why_its_id_was_used_again(site: Site) -> None:
    html = get(site, "/tool/signup-1843").body.decode()
    words = text_of(get(site, "/tool/signup-1843"))
    assert "The run id was used before; the reason given: <script>alert" in words
    assert HOSTILE not in words
    assert "<script>alert" not in html
    assert "Of this run's mail: 1 rule mismatch." in words
    assert "intent detected at 11:5" in words
    assert "action authorized at" in words
    assert "looks in this call" in words
    assert "slot" in words


def test_the_overview_tells_the_invariants_and_the_last_day(site: Site) -> None:
    wait_until(lambda: "29 checked" in text_of(get(site, "/")))
    words = text_of(get(site, "/"))
    assert "The schedule is switched off" in words
    assert "No message is decided twice" in words
    assert "29 checked" in words
    assert "Mails, 24 h 29" in words


def test_runs_are_shown_a_page_at_a_time(world: World) -> None:
    made = [world.run().id for _ in range(53)]
    site = world.site
    first = get(site, "/runs").body.decode()
    assert made[-1] in first
    assert made[2] not in first
    older = re.search(r'href="(/runs\?before=[^"]+)">Older', first)
    assert older is not None
    second = get(site, older[1].replace("&amp;", "&")).body.decode()
    assert [made[2] in second, made[0] in second, made[3] in second] == [True, True, False]
    assert "Older" not in second


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/runs/no-such-run", "/messages/ffffffffffff", "/messages/ab", "/messages?key=%3Cscript%3E",
     "/categories/team/no-such", "/categories/nobody/receipt", "/cost?account=nobody", "/static/triage.css", "//",
     "/runs/../etc/passwd", "/tool/signup-404", "/tool?account=nobody"],
)  # fmt: skip
def test_what_is_not_there_is_said_calmly(site: Site, path: str) -> None:
    response = site.answer(Request(path.partition("?")[0], _query(path), {"host": "localhost"}))
    assert response.status == 404
    assert b"Traceback" not in response.body
    assert b"<script" not in response.body


@pytest.mark.parametrize("path", ["/runs?before=never", "/cost?days=never", "/cost?days=-1", "/runs?before=2026-01-01"])
def test_nonsense_in_a_query_gives_the_usual_page(site: Site, path: str) -> None:
    assert get(site, path).status == 200


def test_an_empty_ledger_has_every_page(world: World) -> None:
    site = world.site
    for path in ("/", "/runs", "/categories", "/categories/team/receipt", "/cost", "/corrections", "/tool"):
        assert get(site, path).status == 200


def test_static_files_may_be_kept_for_ever_and_change_their_name_with_their_content(site: Site) -> None:
    html = get(site, "/").body.decode()
    for name in re.findall(r'(?:href|src)="(/static/[^"]+)"', html):
        response = get(site, name)
        assert response.status == 200
        assert "immutable" in response.headers["Cache-Control"]
        assert re.fullmatch(r"/static/[0-9a-f]{12}/[a-z.]+", name)


def test_with_a_token_nothing_but_the_state_is_told_without_it(world: World) -> None:
    world.app.settings = replace(world.app.settings, http=HttpSettings(port=0, token=token(SECRET)))
    site = world.site
    for path in ("/", "/runs", "/metrics", "/nothing", "/static/0/triage.css"):
        assert get(site, path).status == 401
    probe = get(site, "/healthz")
    assert json.loads(probe.body) == {"healthy": True}
    entitled = get(site, "/healthz", authorization=f"Bearer {SECRET}")
    assert json.loads(entitled.body)["accounts"][0]["account"] == "team"
    assert get(site, "/", authorization=f"Bearer {SECRET}").status == 200


def test_a_token_that_cannot_be_read_is_told_at_the_start(world: World) -> None:
    world.app.settings = replace(world.app.settings, http=HttpSettings(port=0, token=token("")))
    with pytest.raises(ConfigError, match="the token is empty"):
        _ = world.site


@pytest.mark.parametrize("http", [None, HttpSettings("127.0.0.1", 0)])
def test_a_reload_never_opens_what_listens_to_the_network(world: World, http: HttpSettings | None) -> None:
    """The socket stays where it was: without the token it had, it answers nothing."""
    world.app.settings = replace(world.app.settings, http=HttpSettings("0.0.0.0", 0, token(SECRET)))
    site = world.site
    world.app.settings = replace(world.app.settings, http=http)
    for path in ("/", "/healthz", "/metrics"):
        assert get(site, path).status == 503


def test_a_ledger_that_cannot_be_read_is_told_and_not_healthy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    site = world.site
    assert get(site, "/healthz").status == 200

    def broken(*_: Any, **__: Any) -> Any:
        raise LedgerError("ledger x.db: disk I/O error", temporary=True)

    for name in ("_reading", "_snapshot"):
        monkeypatch.setattr(world.app.ledger, name, broken)
    page = get(site, "/runs")
    assert (page.status, b"disk I/O error" in page.body) == (503, True)
    world.clock.advance(timedelta(seconds=61))  # type: ignore[attr-defined]
    probe = get(site, "/healthz")
    assert (probe.status, json.loads(probe.body)["healthy"]) == (503, False)


def test_a_fault_of_a_page_is_logged_and_not_shown(site: Site, lived: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("inner workings")

    monkeypatch.setattr(lived.app.ledger, "page_of_runs", broken)
    response = get(site, "/runs")
    assert (response.status, b"inner workings" in response.body) == (500, False)


def _query(path: str) -> dict[str, str]:
    name, _, value = path.partition("?")[2].partition("=")
    return {name: value} if name else {}
