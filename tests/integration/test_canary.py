"""No body, address, URL, subject or secret of a run ever reaches the log, the ledger or an error text (DESIGN 9).

Every private thing in these runs is a canary: a word that stands nowhere else.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import pytest
import structlog
from rich.console import Console

from fakes.http_stub import Behaviour, HttpStub, Seen, reply
from fakes.imap_mailboxes import FakeBox, FakeMail
from fakes.scripted_imap import ALWAYS, Rule, ScriptedImap
from services.dovecot import PASSWORD, Dovecot, Mail
from support.office import CATEGORIES, make_run, settings_for
from support.web_world import patient_get
from triage import logs
from triage.bootstrap import App
from triage.cli.audit import audit_account, audit_json
from triage.cli.export import export
from triage.cli.report import show as show_report
from triage.cli.show import find_run
from triage.cli.story import story_command
from triage.cli.undo import run_decisions, undo
from triage.config.secret import Secret
from triage.config.settings import DecisionSettings, HttpSettings, ProviderSettings, Settings
from triage.domain.record import Run
from triage.report.tuning_build import build
from triage.report.tuning_html import report_html
from triage.report.tuning_json import report_json
from triage.web.site import Site

EVER = datetime(2020, 1, 1, tzinfo=UTC)
API_KEY = "sk-canarykey-7b1e0f"
BODY = "canarybodyword"
SUBJECT = "canarysubjectword"
NAME = "Canaryname"
SENDER = "canarysender"
TO = "canaryrecipient"
URL = "canaryhost.example/canarypath?canaryquery=1"
QUOTED = "canaryquotedword"
HIDDEN = "canaryhiddenword"
FILE = "canaryfilename"
ID = "canarymessageid"
CANARIES = (
    API_KEY, PASSWORD, BODY, SUBJECT, NAME, SENDER, TO, "canaryhost", "canarypath", "canaryquery", QUOTED, HIDDEN,
    FILE, ID,
)  # fmt: skip
LETTER = f"""From: "{NAME}" <{SENDER}@sender.example>\r
To: {TO}@desk.example\r
Subject: {SUBJECT} {{n}}\r
Message-ID: <{ID}-{{n}}@sender.example>\r
Reply-To: {SENDER}@sender.example\r
List-Unsubscribe: <https://{URL}>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=b\r
\r
--b\r
Content-Type: text/html; charset=utf-8\r
\r
<p>{BODY} <a href="https://{URL}">here</a></p><p style="display:none">{HIDDEN}</p>\r
<blockquote>{QUOTED}</blockquote>\r
--b\r
Content-Type: application/pdf; name={FILE}.pdf\r
Content-Disposition: attachment; filename={FILE}.pdf\r
\r
{BODY}\r
--b--\r
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture(params=["json", "console"])
def log(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.configure("debug", request.param, stream)
    yield stream
    logs.configure("info")


def letters(count: int) -> list[Mail]:
    return [Mail(raw=LETTER.format(n=n).encode()) for n in range(count)]


def answer(seen: Seen) -> Behaviour:
    """What a well-behaved server says: sure of newsletters for all of them."""
    options = list(seen.json["questions"]["category"]["criteria"])
    shares = {o: 0.95 if o == "newsletter" else 0.05 / (len(options) - 1) for o in options}
    told = {"type": "choice", "choice": "newsletter", "confidence": 0.9, "probabilities": shares}
    usage = {"input_tokens": 300, "output_tokens": 1}
    return reply({"model": "jev-1.13", "answers": {"category": told}, "usage": usage})


def echoing(status: int) -> Callable[[Seen], Behaviour]:
    """An error whose text repeats the whole request, its key too."""

    def script(seen: Seen) -> Behaviour:
        echo = f"cannot handle: {seen.body.decode()} with {seen.headers.get('authorization')} of https://{URL}"
        return reply({"error": {"message": echo, "code": echo[:60]}, "detail": echo}, status)

    return script


def answering_as(model: str) -> Callable[[Seen], Behaviour]:
    def script(seen: Seen) -> Behaviour:
        options = list(seen.json["questions"]["category"]["criteria"])
        shares = dict.fromkeys(options, model)
        told = {"type": "choice", "choice": options[0], "confidence": "x", "probabilities": shares}
        return reply({"model": seen.json["state"]["body"], "answers": {"category": told, model: model}})

    return script


SCRIPTS: dict[str, Callable[[Seen], Behaviour]] = {
    "answers": answer,
    "an error of the message": echoing(422),
    "a refused key": echoing(401),
    "a broken server": echoing(500),
    "throttled": echoing(429),
    "an answer that cannot be used": answering_as(BODY),
    "no JSON at all": lambda seen: reply(seen.body + b" <html>" + BODY.encode()),
}


def settings_of(directory: Path, port: int, user: str, url: str) -> Settings:
    provider = ProviderSettings(
        "systemone", base_url=url, model="jev-1", api_key=Secret.of(API_KEY), timeout_s=5.0, retries=0
    )
    settings = settings_for(
        directory, port, user, PASSWORD, decision=DecisionSettings(chain=(provider,)), addresses=(f"{TO}@desk.example",)
    )
    return dataclasses.replace(settings, http=HttpSettings(port=0))


def told_of(app: App, run: Run, capsys: pytest.CaptureFixture[str]) -> str:
    """Everything the commands say of a run."""
    ledger, name = app.ledger, "team"
    account = app.settings.accounts[0]
    now = app.clock.now()
    out = io.StringIO()
    for form in ("jsonl", "csv"):
        export(app, name, EVER, form, out)
    report = build(ledger, name, CATEGORIES, EVER, now)
    out.write(json.dumps(report_json(report)) + report_html([report]))
    show_report(Console(file=out, width=200), report)
    for decision in ledger.decisions(run.id):
        story_command(app, decision.message_key, as_json=True)
    out.write(json.dumps(audit_json(audit_account(app, account, EVER), EVER)))
    out.write(pages_of(app, run))
    steps, undone = undo(app, account, run_decisions(app, run.id))
    return f"{out.getvalue()}{capsys.readouterr().out}{find_run(app, run.id)}{steps}{undone}"


def pages_of(app: App, run: Run) -> str:
    """Every page of the dashboard about a run, and /metrics."""
    keys = [decision.message_key for decision in app.ledger.decisions(run.id)]
    paths = ["/", "/runs", f"/runs/{run.id}", "/categories", "/categories/team/newsletter", "/cost", "/corrections",
             "/metrics", *(f"/messages/{key}" for key in keys)]  # fmt: skip
    site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
    answers = [patient_get(site, path) for path in paths]
    assert [answer.status for answer in answers] == [HTTPStatus.OK] * len(paths)
    return "".join(answer.body.decode() for answer in answers)


def ledger_bytes(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.glob("triage.db*"))


def assert_no_canary(where: str, text: str | bytes) -> None:
    found = [c for c in CANARIES if (c if isinstance(text, str) else c.encode()) in text]
    assert not found, f"{where}: {found}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_nothing_private_leaves_a_run(
    server: Dovecot, log: io.StringIO, script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = f"canary-{list(SCRIPTS).index(script)}-{tmp_path.name[-20:]}".lower().replace("_", "-")
    server.append(user, letters(5))
    with HttpStub(SCRIPTS[script]) as model:
        app = App(settings_of(tmp_path, server.port, user, model.url))
        run = make_run(app)
        again = make_run(app)
        assert any(BODY in seen.body.decode() for seen in model.seen), "the model did read the mail"
        said = told_of(app, run, capsys) + f"{again}"
        app.close()
    assert len(log.getvalue()) > 500
    assert_no_canary("log", log.getvalue())
    assert_no_canary("ledger", ledger_bytes(tmp_path))
    assert_no_canary("what commands say", said)


@pytest.mark.parametrize("command", ["LOGIN", "SELECT", "SEARCH", "FETCH", "STORE", "MOVE"])
def test_a_mail_server_that_repeats_private_things_is_not_repeated(
    log: io.StringIO, command: str, tmp_path: Path
) -> None:
    """Its refusal quotes an address, a URL and the password; the run's error, the ledger and the log do not."""
    echo = f"no {SENDER}@sender.example with {PASSWORD} at https://{URL}"
    rule = Rule(rf"\b{command}\b", reply=[f"{{tag}} NO {echo}"], times=ALWAYS)
    mail = FakeMail(1, raw=LETTER.format(n=1).encode())
    with (
        ScriptedImap([FakeBox("INBOX", [mail]), FakeBox("Archive", [])], rules=[rule]) as imap,
        HttpStub(answer) as model,
    ):
        app = App(settings_of(tmp_path, imap.port, "desk", model.url))
        run = make_run(app)
        app.close()
    assert_no_canary("run", f"{run}")
    assert_no_canary("log", log.getvalue())
    assert_no_canary("ledger", ledger_bytes(tmp_path))


def test_subjects_are_recorded_only_on_request(server: Dovecot, tmp_path: Path) -> None:
    """The counterpart: with record_subjects the subject is there, and still nothing else."""
    server.append("subjects", letters(1))
    with HttpStub(answer) as model:
        settings = settings_of(tmp_path, server.port, "subjects", model.url)
        app = App(dataclasses.replace(settings, record_subjects=True))
        make_run(app)
        app.close()
    kept = ledger_bytes(tmp_path)
    assert SUBJECT.encode() in kept
    assert not [c for c in CANARIES if c != SUBJECT and c.encode() in kept]
