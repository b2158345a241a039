"""Plays thread cases end to end: an in-memory mailbox, the product's own rounds, and a stub that answers by name.

A case file holds a title (`#`), settings (`key: value`), mails (`@ name | folder | key: value ...`, then the header
block up to an empty line) and expectations:

    ! name inherit|ask[,..] label [from=name rule=.. part=.. keep=.. reason=.. confidence=.. folder=..]

`?` instead of `!` marks an expectation that is counted and reported but does not fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from triage.domain.category import HIJACK_ID, Action, Category, CategorySet
from triage.threads.candidate import Candidate, Found
from triage.threads.headers import ThreadHeaders, read_thread_headers
from triage.threads.inherit import Ask, Inherit
from triage.threads.lookups import further_lookups, lookups
from triage.threads.rounds import Gathered, next_round

CASES = Path(__file__).parents[2] / "cases" / "threads"
BATCH = 20
START = datetime(2026, 3, 3, 9, 0, tzinfo=UTC)

CATEGORIES = CategorySet(
    parent="Triage",
    fallback_id="unclassified",
    fallback_name="Unclassified",
    categories=(
        *(Category(i, i.title(), "what belongs here") for i in ("work", "family", "billing", "other")),
        *(Category(i, i.title(), "what belongs here", action=Action.ARCHIVE) for i in ("news", "alerts")),
        Category(HIJACK_ID, "Hijack attempt", "what belongs here"),
    ),
)


@dataclass
class StoredMail:
    name: str
    folder: str
    uid: int
    headers: bytes
    labels: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def run(self) -> int:
        return int(self.settings.get("arrives", "1"))

    @property
    def received(self) -> datetime:
        return START + timedelta(minutes=float(self.settings.get("minute", str(self.uid))))


@dataclass(frozen=True)
class Expected:
    name: str
    outcomes: tuple[str, ...]
    label: str
    facts: Mapping[str, str]
    advisory: bool


@dataclass(frozen=True)
class Case:
    title: str
    settings: Mapping[str, str]
    mails: tuple[StoredMail, ...]
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class Settled:
    word: Inherit | Ask
    label: str


@dataclass
class Played:
    settled: dict[str, Settled] = field(default_factory=dict)
    searched: list[tuple[str, ...]] = field(default_factory=list)
    asked_together: list[int] = field(default_factory=list)


class MemoryMailbox:
    """Finds as IMAP servers do: parts of the header, whatever their case (RFC 9051, 6.4.4)."""

    def __init__(self, mails: tuple[StoredMail, ...]) -> None:
        self.mails = mails

    def unlabelled(self, run: int) -> list[StoredMail]:
        there = (m for m in self.mails if m.folder == "INBOX" and not m.labels and m.run <= run)
        return sorted(there, key=lambda m: m.uid)[:BATCH]

    def locate(self, message_ids: tuple[str, ...], run: int) -> Found:
        return {
            wanted: [self._candidate(m) for m in self.mails if m.run <= run and self._matches(m, wanted)]
            for wanted in message_ids
        }

    def server_thread(self, mail: StoredMail, run: int) -> list[Candidate]:
        thread = mail.settings.get("thread")
        return [
            self._candidate(m) for m in self.mails if thread and m.settings.get("thread") == thread and m.run <= run
        ]

    @staticmethod
    def _matches(mail: StoredMail, wanted: str) -> bool:
        message_id = read_thread_headers(mail.headers).message_id
        return wanted.strip("<>").lower() in message_id.lower()

    @staticmethod
    def _candidate(mail: StoredMail) -> Candidate:
        by = mail.settings.get("by", "person")
        return Candidate(
            headers=read_thread_headers(mail.headers),
            message_key=mail.name,
            label_ids=mail.labels,
            confidence=1.0 if by == "person" else float(by),
            source="person" if by == "person" else "decision",
            archive_floor=float(mail.settings.get("floor", "0.5")),
            received=mail.received,
            moved_back="moved_back" in mail.settings,
        )


def play(case: Case) -> Played:
    """One run after another over the case's mailbox, labels written as the program would write them."""
    mailbox, played = MemoryMailbox(case.mails), Played()
    answers = dict(pair.split("=") for pair in case.settings.get("answers", "").split())
    for run in range(1, max(m.run for m in case.mails) + 1):
        _run(case, mailbox, run, answers, played)
    return played


def _run(case: Case, mailbox: MemoryMailbox, run: int, answers: Mapping[str, str], played: Played) -> None:
    mails = {m.uid: m for m in mailbox.unlabelled(run)}
    batch: dict[int, ThreadHeaders] = {uid: read_thread_headers(m.headers) for uid, m in mails.items()}
    found = dict(mailbox.locate(wanted := lookups(batch), run))
    found |= mailbox.locate(further := further_lookups(batch, found), run)
    played.searched.append(wanted + further)
    gathered = Gathered(
        mails=batch,
        keys={uid: m.name for uid, m in mails.items()},
        found=found,
        owner=frozenset(case.settings.get("owner", "desk@example.org").split()),
        categories=CATEGORIES,
        server_threads={uid: mailbox.server_thread(m, run) for uid, m in mails.items()},
        received={uid: m.received for uid, m in mails.items()},
    )
    decided: Mapping[int, Candidate] = {}
    while len(decided) < len(batch):
        step = next_round(gathered, decided)
        if step.to_ask:
            played.asked_together.append(len(step.to_ask))
        answered = dict(step.decided)
        for uid, inherit in step.inherited.items():
            _write(mails[uid], inherit, inherit.ancestor.label_id, played)
        for uid, ask in step.to_ask.items():
            label = answers.get(mails[uid].name, answers.get("default", "other"))
            _write(mails[uid], ask, label, played)
            answered[uid] = Candidate(
                batch[uid], mails[uid].name, (label,), confidence=0.9, archive_floor=0.5, received=mails[uid].received
            )
        assert len(answered) > len(decided), "mails wait for one another for ever"
        decided = answered


def _write(mail: StoredMail, word: Inherit | Ask, label: str, played: Played) -> None:
    mail.labels = (label,)
    if CATEGORIES.action(label) is Action.ARCHIVE and not word.keep_in_inbox:
        mail.folder = "Archive"
    played.settled[mail.name] = Settled(word, label)


def problems(case: Case, played: Played, *, advisory: bool = False) -> list[str]:
    """What differs from the case's expectations, the advisory ones or the others."""
    return [p for e in case.expected if e.advisory is advisory for p in _differences(case, played, e)]


def _differences(case: Case, played: Played, expected: Expected) -> list[str]:
    settled = played.settled[expected.name]
    word = settled.word
    seen = {
        "folder": next(m.folder for m in case.mails if m.name == expected.name),
        "keep": str(word.keep_reason) or "no",
    }
    if isinstance(word, Inherit):
        ancestor = word.ancestor
        seen |= {"from": ancestor.message_key, "rule": ancestor.rule, "part": ancestor.participation}
        seen |= {"source": ancestor.source, "confidence": f"{ancestor.confidence:g}"}
    else:
        seen["reason"] = str(word.reason)
    outcome = "inherit" if isinstance(word, Inherit) else "ask"
    found = [] if outcome in expected.outcomes else [f"{expected.name}: {outcome} {seen}"]
    if settled.label != expected.label:
        found.append(f"{expected.name}: labelled {settled.label}, not {expected.label}")
    return found + [
        f"{expected.name}: {k} is {seen.get(k)}, not {v}" for k, v in expected.facts.items() if seen.get(k) != v
    ]


def read_case(path: Path) -> Case:
    """Read a case file; bytes of header blocks are kept, line ends become CRLF."""
    title = ""
    settings: dict[str, str] = {}
    mails: list[StoredMail] = []
    expected: list[Expected] = []
    lines = iter(path.read_bytes().split(b"\n"))
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        if text.startswith("#"):
            title = title or text.lstrip("# ")
        elif text.startswith("@"):
            block = []
            for header in lines:
                if not header:
                    break
                block.append(header)
            mails.append(_read_mail(text, b"\r\n".join(block) + b"\r\n\r\n", len(mails) + 1))
        elif text[:1] in ("!", "?"):
            name, outcomes, label, *facts = text[1:].split()
            expected.append(
                Expected(name, tuple(outcomes.split(",")), label, dict(f.split("=") for f in facts), text[0] == "?")
            )
        elif text:
            key, _, value = text.partition(":")
            settings[key.strip()] = value.strip()
    assert title, path
    assert expected, path
    return Case(title, settings, tuple(mails), tuple(expected))


def _read_mail(text: str, headers: bytes, place: int) -> StoredMail:
    name, folder, *rest = (part.strip() for part in text[1:].split("|"))
    settings = {k.strip(): v.strip() for k, _, v in (part.partition(":") for part in rest)}
    labels = tuple(settings.get("labels", "").split())
    assert all(i in CATEGORIES.label_ids for i in labels), labels
    assert math.isfinite(float(settings.get("floor", "0")))
    return StoredMail(name, folder, int(settings.get("uid", place)), headers, labels, settings)
