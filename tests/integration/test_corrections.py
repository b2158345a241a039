"""What people do in a real mailbox is found, recorded beside the decisions, told, and turned into suggestions."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.office import CATEGORIES, TestApp, make_run, settings_for
from triage.cli.export import export
from triage.cli.story import find, story_command
from triage.cli.suggest import suggestions_for
from triage.config.settings import CorrectionsSettings, Settings
from triage.domain.record import Trigger
from triage.pipeline.corrections import look_for_corrections
from triage.report.suggest import as_diff
from triage.report.tuning_build import build
from triage.report.tuning_html import report_html

EVER = datetime(2020, 1, 1, tzinfo=UTC)
NEWS, ACTION, TALK = "Triage/newsletter", "Triage/action-required", "Triage/conversation"
TABLE = {
    "News A": ("newsletter", 0.99),
    "News B": ("newsletter", 0.98),
    "Sign": ("action-required", 0.97),
    "Lunch": ("conversation", 0.99),
    "Odd": ("receipt", 0.45),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


class World:
    def __init__(self, server: Dovecot, user: str, directory: Path, settings: Settings | None = None) -> None:
        self.server, self.user = server, user
        self.settings = settings or settings_for(directory, server.port, user, server.password)
        self.account = self.settings.accounts[0]
        self.app = TestApp(self.settings, [TableProvider(TABLE)])
        server.append(user, [Mail(subject, f"<{n}@x.example>") for n, subject in enumerate(TABLE)])
        self.run = make_run(self.app)

    def look(self) -> dict[str, list[tuple[str, str | None]]]:
        """What a look finds, by kind: what was decided and what stands now."""
        mailbox = self.app.mailbox(self.account)
        try:
            looked = look_for_corrections(
                mailbox, self.app.ledger, "team", CATEGORIES, self.app.look_terms, self.app.clock.now()
            )
        finally:
            mailbox.close()
        found: dict[str, list[tuple[str, str | None]]] = {}
        for c in looked.found:
            found.setdefault(c.kind.value, []).append((c.from_label, c.to_label))
        return {kind: sorted(pairs) for kind, pairs in found.items()}

    def imap(self, *commands: tuple[str, ...], mailbox: str = "INBOX") -> None:
        client = self.server.client(self.user)
        client.select(mailbox)
        for command in commands:
            status, told = client.uid(*command)
            assert status == "OK", told
        client.logout()

    def uid(self, subject: str, mailbox: str = "INBOX") -> str:
        client = self.server.client(self.user)
        client.select(mailbox, readonly=True)
        _, told = client.uid("SEARCH", "SUBJECT", f'"{subject}"')
        client.logout()
        return told[0].split()[0].decode()

    def meddle(self) -> None:
        """A person relabels one, takes a label off, moves one back, reads one, and leaves the rest."""
        self.imap(
            ("STORE", self.uid("Lunch"), "+FLAGS", f"({ACTION})"),
            ("STORE", self.uid("Sign"), "-FLAGS", f"({ACTION})"),
            ("STORE", self.uid("Odd"), "+FLAGS", "(\\Seen)"),
        )
        self.imap(
            ("STORE", self.uid("News B", "Archive"), "-FLAGS", f"({NEWS})"),
            ("STORE", self.uid("News B", "Archive"), "+FLAGS", f"({TALK})"),
            ("MOVE", self.uid("News A", "Archive"), "INBOX"),
            mailbox="Archive",
        )


@pytest.fixture
def world(server: Dovecot, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    user = "c" + hashlib.sha256(request.node.name.encode()).hexdigest()[:16]
    world = World(server, user, tmp_path)
    yield world
    world.app.close()


def test_every_kind_of_correction_is_found_once(world: World) -> None:
    assert world.look() == {}
    world.meddle()
    before = [world.server.state(world.user, box) for box in ("INBOX", "Archive")]
    assert world.look() == {
        "relabelled": [("conversation", "action-required"), ("newsletter", "conversation")],
        "unlabelled": [("action-required", None)],
        "moved_back": [("newsletter", None)],
        "confirmed": [("unclassified", "unclassified")],
    }
    assert world.look() == {}, "what is known is not recorded again"
    assert [world.server.state(world.user, box) for box in ("INBOX", "Archive")] == before, "a look only reads"
    assert world.app.ledger.verify_chain("team") == []
    labels = {d.ref.uid: d.label_id for d in world.app.ledger.decisions(world.run.id)}
    assert len(labels) == 5, "the decisions stand as they were recorded"


def test_a_second_change_of_mind_is_recorded_too(world: World) -> None:
    uid = world.uid("Lunch")
    world.imap(("STORE", uid, "+FLAGS", f"({ACTION})"))
    world.look()
    world.imap(("STORE", uid, "-FLAGS", f"({ACTION} {TALK})"))
    assert world.look() == {"unlabelled": [("conversation", None)]}


def test_a_label_taken_off_is_recorded_by_the_run_that_decides_again(world: World) -> None:
    world.imap(("STORE", world.uid("Sign"), "-FLAGS", f"({ACTION})"))
    make_run(world.app)
    assert [c.kind.value for c in world.app.ledger.corrections("team")] == ["unlabelled"]


def test_scheduled_runs_look_once_an_hour(world: World) -> None:
    world.imap(("STORE", world.uid("Lunch"), "+FLAGS", f"({ACTION})"))
    first = make_run(world.app, trigger=Trigger.SCHEDULE)
    world.imap(("STORE", world.uid("Odd"), "+FLAGS", f"({ACTION})"))
    second = make_run(world.app, trigger=Trigger.SCHEDULE)
    steps = [[s.name for s in world.app.ledger.steps(run.id)] for run in (first, second)]
    assert ["review" in names for names in steps] == [True, False]
    assert len(world.app.ledger.corrections("team")) == 1


def test_looking_can_be_switched_off_and_bounded(server: Dovecot, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, server.port, "bounded", server.password)
    world = World(server, "bounded", tmp_path, replace(settings, corrections=CorrectionsSettings(messages=1)))
    world.meddle()
    assert sum(map(len, world.look().values())) <= 1
    world.app.close()
    off = TestApp(replace(settings, corrections=None), [TableProvider(TABLE)])
    run = make_run(off, trigger=Trigger.SCHEDULE)
    assert "review" not in [s.name for s in off.ledger.steps(run.id)]
    off.close()


def test_the_report_counts_them_and_the_suggestion_is_a_diff(world: World) -> None:
    world.meddle()
    world.look()
    now = world.app.clock.now() + timedelta(seconds=1)
    report = build(world.app.ledger, "team", CATEGORIES, EVER, now)
    assert report.corrections.relabelled == (("conversation", "action-required", 1), ("newsletter", "conversation", 1))
    assert (report.corrections.unlabelled, report.corrections.moved_back) == ({"action-required": 1}, {"newsletter": 1})
    assert (report.decisions, report.asked, report.below_floor, report.archived) == (5, 5, 1, 2)
    everything = report.calibration[0]
    assert (everything.reviewed, everything.right) == (4, 0)
    page = report_html([report], (0.5,))
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    suggestions = {s.category: s for s in suggestions_for(world.app, world.account, EVER)}
    assert suggestions["action-required"].examples == ("Lunch",)
    assert suggestions["conversation"].examples == ("News B",)
    text = "categories:\n  - id: action-required\n    name: A\n    criteria: Asks.\n  - id: conversation\n    name: C\n"
    diff = as_diff(text, list(suggestions.values()), "categories.yaml")
    assert '+      - "Lunch"\n' in diff
    assert "+  # people made action-required of conversation once" in diff


def test_a_subject_in_a_suggestion_is_never_kept(world: World) -> None:
    world.meddle()
    world.look()
    suggestions_for(world.app, world.account, EVER)
    ledger = Path(world.settings.ledger.removeprefix("sqlite:///"))
    kept = b"".join(path.read_bytes() for path in ledger.parent.glob("triage.db*"))
    assert b"Lunch" not in kept


def test_the_story_of_a_message_says_why_it_landed_there(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.meddle()
    world.look()
    archived = next(d for d in world.app.ledger.decisions(world.run.id) if d.archived_at is not None)
    assert story_command(world.app, archived.message_key[:10], as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    story = "\n".join(event["what"] for event in told["story"])
    for part in (
        "manual run",
        "table (table-1) answered",
        "newsletter 0.9",
        "floor 0.50",
        "label newsletter was stored",
        "moved to Archive",
        "Found: a person had",
    ):
        assert part in story
    assert told["story"][0]["at"] is not None
    assert story_command(world.app, archived.message_key[:10], as_json=False) == 0
    assert "moved to Archive" in capsys.readouterr().out
    assert len(find(world.app, archived.message_key)) == 1


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_everything_can_be_exported(world: World, form: str) -> None:
    out = io.StringIO()
    export(world.app, "team", EVER, form, out)
    lines = out.getvalue().splitlines()
    rows = [json.loads(line) for line in lines] if form == "jsonl" else list(csv.DictReader(lines))
    assert len(rows) == 5
    shares = rows[0]["probabilities"]
    assert sum((json.loads(shares) if isinstance(shares, str) else shares).values()) == pytest.approx(1)
    assert {row["account"] for row in rows} == {"team"}


def test_what_was_found_is_forgotten_with_its_decision(world: World) -> None:
    world.meddle()
    world.look()
    assert world.app.ledger.forget(sender_domain="sender.example") == 5
    assert world.app.ledger.corrections("team") == ()
    assert world.app.ledger.verify_chain("team") == []


def test_retention_takes_corrections_with_their_time(world: World) -> None:
    world.meddle()
    world.look()
    world.app.ledger.enforce_retention(world.app.clock.now() + timedelta(minutes=1))
    assert world.app.ledger.corrections("team") == ()
    assert world.app.ledger.verify_chain("team") == []


def test_a_correction_that_was_edited_or_removed_is_found(world: World) -> None:
    from services.ledger import run_sql

    world.meddle()
    world.look()
    victims = [c.id for c in world.app.ledger.corrections("team")][:2]
    run_sql(world.settings.ledger, f"UPDATE corrections SET to_label = 'receipt' WHERE id = '{victims[0]}'")
    run_sql(world.settings.ledger, f"DELETE FROM corrections WHERE id = '{victims[1]}'")
    told = "\n".join(world.app.ledger.verify_chain("team"))
    assert all(victim in told for victim in victims)
