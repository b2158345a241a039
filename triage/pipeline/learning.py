"""What one account's embedded classifier learned, for as long as this process lives: made anew daily, never stored.

Learned weights are words and senders of somebody's mail, so they stay in memory. The ledger keeps a summary of figures,
so that another process can tell what was learned, and need not try again what was tried on the very same lessons.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from triage.decide.embedded.learn import LearnReport, Trial, fit_residual
from triage.decide.embedded.learned import LearnedWeights
from triage.decide.embedded.provider import EmbeddedProvider
from triage.domain.category import CategorySet
from triage.domain.decision import Question
from triage.domain.errors import LedgerError, TriageError
from triage.pipeline.confirmed import Book as ConfirmedBook
from triage.pipeline.confirmed import Window
from triage.pipeline.lessons import Lessons, fetch_lessons, find_lessons
from triage.ports import Clock, Decider, Mailbox

EVERY_S = 24 * 3600.0
AGAIN_S = 3600.0
"""When learning that failed is tried again."""
NO_TRIAL = Trial(0, 0)
KEPT, TOO_FEW, FAILED = "kept", "too_few", "failed"


class Book(ConfirmedBook, Protocol):
    """The ledger's side of it."""

    def first_record(self, account: str) -> datetime | None: ...
    def learning(self, account: str) -> Mapping[str, Any]:
        """The last summary that was saved; {} if none was."""
        ...

    def save_learning(self, account: str, value: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Course:
    """What is to be learned, as values. `archiving` are the options whose mail leaves the inbox, `junk` the mailbox of
    mail that people call spam ("" for none)."""

    account: str
    categories: CategorySet
    question: Question
    archiving: frozenset[str]
    max_chars: int
    junk: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What learning came to, without any word of a mail. `reason` is one of LearnReport's, or failed if it never
    worked; `detail` says what went wrong with the last try, if anything did.

    `lessons` is a digest of what there was to learn from, `model` the model as served since.
    """

    at: datetime
    reason: str
    model: str = ""
    detail: str = ""
    lessons: str = ""
    used: int = 0
    ignored: int = 0
    held: int = 0
    protected: int = 0
    by_source: Mapping[str, int] = field(default_factory=dict)
    by_label: Mapping[str, int] = field(default_factory=dict)
    before: Trial = NO_TRIAL
    after: Trial = NO_TRIAL

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"at": self.at.isoformat()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Summary | None:
        """Read what `to_json` made; None if it is something else, or of another version."""
        try:
            trials = {name: Trial(**value[name]) for name in ("before", "after")}
            return cls(**(dict(value) | trials | {"at": datetime.fromisoformat(value["at"])}))
        except (KeyError, TypeError, ValueError):
            return None


class Study:
    """One account's learning: `triage.pipeline.plan.Learner`. Used by one run at a time.

    `mailbox_at` gives a connection of its own, not yet open, with that folder as its inbox ("" for the account's);
    `decider_of` a decider in which these learned weights take part.
    """

    def __init__(
        self,
        course: Course,
        base: EmbeddedProvider,
        *,
        book: Book,
        mailbox_at: Callable[[str], Mailbox],
        decider_of: Callable[[LearnedWeights | None], Decider],
        clock: Clock,
    ) -> None:
        self._course, self._base, self._book = course, base, book
        self._mailbox_at, self._decider_of, self._clock = mailbox_at, decider_of, clock
        self._due_at = clock.monotonic()
        self.learned: LearnedWeights | None = None

    @property
    def due(self) -> bool:
        """Is it a day since the last time, or an hour since it failed?"""
        return self._clock.monotonic() >= self._due_at

    @property
    def decider(self) -> Decider:
        """Who decides this account's mail, with what was learned."""
        return self._decider_of(self.learned)

    def learn(self, stop: threading.Event) -> Summary:
        """Gather, fit, and keep what proved harmless. Raises nothing: if it fails, what was learned before stays in
        use, and the summary says what happened."""
        self._due_at = self._clock.monotonic() + EVERY_S
        try:
            return self._learn(stop)
        except Exception as failure:  # noqa: BLE001 - no run may end because nothing could be learned
            self._due_at = self._clock.monotonic() + AGAIN_S
            detail = str(failure) if isinstance(failure, TriageError) else f"{type(failure).__name__} while learning"
            return self._failed(detail)

    def _failed(self, detail: str) -> Summary:
        """The last summary, with what went wrong since."""
        summary = Summary(self._clock.now(), FAILED, detail=detail)
        with suppress(LedgerError):
            known = Summary.from_json(self._book.learning(self._course.account))
            summary = replace(known, detail=detail) if known is not None else summary
            self._book.save_learning(self._course.account, summary.to_json())
        return summary

    def _learn(self, stop: threading.Event) -> Summary:
        course = self._course
        since = self._book.first_record(course.account)
        known = Summary.from_json(self._book.learning(course.account))
        if since is None:
            self.learned = None
            return self._conclude(Summary(self._clock.now(), TOO_FEW), known)
        mailbox = self._mailbox_at("")
        try:
            lessons = find_lessons(
                mailbox, self._book, course.account, course.categories, course.question, Window(since), course.junk
            )
        finally:
            mailbox.close()
        digest = self._digest(lessons)
        same = known if known is not None and known.lessons == digest else None
        if same is not None and same.reason != KEPT:
            self.learned = None
            return self._conclude(replace(same, at=self._clock.now(), detail=""), known)
        corrections, held = fetch_lessons(lessons, self._mailbox_at, course.max_chars, stop) if lessons else ([], [])
        if stop.is_set():
            return known or Summary(self._clock.now(), TOO_FEW)
        report = fit_residual(
            self._base, corrections, course.question, course.archiving, held, tried=same.after if same else None
        )
        self.learned = report.learned
        return self._conclude(self._summary(report, digest), known)

    def _conclude(self, summary: Summary, known: Summary | None) -> Summary:
        """Save what is worth telling; where nothing was ever learned and nothing is, nothing is written."""
        if known is not None or summary.used:
            self._book.save_learning(self._course.account, summary.to_json())
        return summary

    def _summary(self, report: LearnReport, lessons: str) -> Summary:
        taught = EmbeddedProvider(clock=self._clock, learned=report.learned) if report.learned else self._base
        return Summary(
            at=self._clock.now(),
            reason=report.reason,
            model=taught.model,
            lessons=lessons,
            used=report.used,
            ignored=report.ignored,
            held=report.held,
            protected=report.protected,
            by_source=report.by_source,
            by_label=report.by_label,
            before=report.before,
            after=report.after,
        )

    def _digest(self, lessons: Lessons) -> str:
        """Changes with the lessons, and with whatever else decides what a fit on them comes to."""
        options = [(o.id, o.criteria, o.examples, o.like) for o in self._course.question.options]
        text = f"{self._base.model} {options} {sorted(self._course.archiving)} {lessons.digest}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
