"""The thread cases once more, end to end: appended to a real server, one whole run, read from the ledger and the
mailbox. Left to the unit driver are cases that need a server's own threads or a history of decisions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.office import TestApp, make_run, settings_for
from triage.domain.category import NONE_ID
from triage.domain.decision import Answer, Failure, Question
from triage.domain.mail import MessageRef, PreparedMail
from triage.domain.record import DecisionRecord, RunState
from unit.threads.threads_play import CASES, CATEGORIES, Case, Expected, StoredMail, read_case

NEEDS_MORE = {"thread", "floor", "moved_back", "arrives"}
NO_SERVER_HOLDS = {"96-mbox-line-and-nul"}
"""IMAP cannot carry NUL: the server changes the ids before the program sees them."""
SURE = 0.99


def one_run_tells(case: Case) -> bool:
    """Can a single run over labels set by hand play this case?"""
    return not any(NEEDS_MORE & set(m.settings) or m.settings.get("by", "person") != "person" for m in case.mails)


FILES = [
    path for path in sorted(CASES.glob("*.case")) if path.stem not in NO_SERVER_HOLDS and one_run_tells(read_case(path))
]


class ByBody(TableProvider):
    """Answers by the name in the body: subjects are part of what the cases try."""

    def ask(
        self, question: Question, mail: PreparedMail, deadline: float, stop: threading.Event | None = None
    ) -> Answer | Failure:
        return super().ask(question, replace(mail, subject=mail.body), deadline, stop)


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot() as dovecot:
        yield dovecot


def deliver(server: Dovecot, user: str, mails: tuple[StoredMail, ...]) -> dict[str, MessageRef]:
    """Append in the order of the UIDs; where each mail is now."""
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    refs = {}
    for folder in dict.fromkeys(m.folder for m in mails):
        if folder != "INBOX":
            connection = server.client(user)
            connection.create(folder)
            connection.logout()
        stored = sorted((m for m in mails if m.folder == folder), key=lambda m: m.uid)
        made = [
            Mail(
                raw=m.headers + m.name.encode() + b"\r\n",
                flags=[f"Triage/{label}" for label in m.labels],
                received=start + timedelta(minutes=float(m.settings.get("minute", m.uid))),
            )
            for m in stored
        ]
        uids = server.append(user, made, folder)
        refs |= {m.name: MessageRef(folder, 0, uid) for m, uid in zip(stored, uids, strict=True)}
    return refs


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_case_ends_on_a_server_as_it_says(server: Dovecot, tmp_path: Path, path: Path) -> None:
    """Label, folder, ancestor, rule and participation, as the ledger records them and the mailbox holds them."""
    case = read_case(path)
    refs = deliver(server, path.stem, case.mails)
    answers = dict(pair.split("=") for pair in case.settings.get("answers", "").split())
    default = answers.pop("default", "other")
    table = {name: (label if label != CATEGORIES.fallback_id else NONE_ID, SURE) for name, label in answers.items()}
    provider = ByBody(table, default=(default, SURE))
    addresses = tuple(case.settings.get("owner", "desk@example.org").split())
    settings = settings_for(
        tmp_path, server.port, path.stem, server.password, categories=CATEGORIES, addresses=addresses
    )
    app = TestApp(settings, [provider])
    run = make_run(app)
    records = {d.ref.uid: d for d in app.ledger.decisions(run.id)}
    app.close()
    assert run.state is RunState.DONE
    names = {
        d.message_key: name for name, ref in refs.items() if (d := records.get(ref.uid)) and ref.mailbox == "INBOX"
    }
    wrong = [
        problem
        for expected in case.expected
        if not expected.advisory
        for problem in differences(expected, records[refs[expected.name].uid], names)
    ]
    assert wrong == []
    for expected in case.expected:
        uid = refs[expected.name].uid
        archived = "Archive" in expected.facts.get("folder", "")
        if not expected.advisory:
            assert (uid not in server.flags(path.stem)) == archived
            if not archived:
                assert f"Triage/{expected.label}" in server.flags(path.stem)[uid]


def differences(expected: Expected, record: DecisionRecord, names: dict[str, str]) -> list[str]:
    """What the record says otherwise. `names` are the mails of the batch by their keys: a labelled ancestor's key is
    the ledger's own secret, so of it only that it is none of the batch can be told."""
    outcome = "inherit" if record.inherited_from else "ask"
    found = [] if outcome in expected.outcomes else [f"{expected.name}: {outcome} {record.why}"]
    if record.label_id != expected.label:
        found.append(f"{expected.name}: labelled {record.label_id}, not {expected.label}")
    seen = {"rule": record.inherited_rule, "part": record.participation, "source": record.inherited_source}
    found += [
        f"{expected.name}: {fact} is {seen[fact]}, not {value}"
        for fact, value in expected.facts.items()
        if fact in seen and seen[fact] != value
    ]
    parent = names.get(record.inherited_from or "")
    wanted = expected.facts.get("from")
    if wanted and parent != (wanted if wanted in names.values() else None):
        found.append(f"{expected.name}: inherits from {parent}, not {wanted}")
    return found
