"""A ledger with a past, and the pages served over it: for tests of the web pages."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from services.ledger import HandClock
from support.office import settings_for
from support.premises import wait_until
from support.tool_past import use_tool
from triage.bootstrap import App
from triage.config.secret import Secret
from triage.config.settings import HttpSettings, ScheduleSettings
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, StepRecord, Trigger
from triage.ports import Clock
from triage.web.messages import Request, Response
from triage.web.server import open_server
from triage.web.site import Site

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOSTILE = '<script>alert("1")</script>\u202egnp.exe & <img src=https://evil.example/x.png>'
LEASE = timedelta(minutes=5)


class World:
    """An App whose schedule is off, so that no mailbox is looked into, with a ledger to fill."""

    def __init__(self, directory: Path, clock: Clock | None = None, **http: Any) -> None:
        settings = settings_for(directory, port=1, schedule=ScheduleSettings(enabled=False))
        self.clock = clock or HandClock(NOON)
        self.app = App(dataclasses.replace(settings, http=HttpSettings(**({"port": 0} | http))), self.clock)
        self._uid = 0

    @property
    def site(self) -> Site:
        http = self.app.settings.http
        assert http is not None
        return Site(lambda: self.app, structlog.get_logger(), listens_on=http.host)

    def run(self, *decisions: dict[str, Any], account: str = "team", trigger: Trigger = Trigger.MANUAL) -> Run:
        """A finished run with these decisions, each described by what is special about it."""
        ledger, now = self.app.ledger, self.clock.now()
        queued = ledger.enqueue(account, trigger, now)
        assert queued is not None
        assert ledger.claim("test", LEASE, run_id=queued.id) is not None
        for index, name in enumerate(("select", "thread", "fetch", "prepare", "decide", "label", "archive")):
            ledger.record_step(queued.id, StepRecord(name, now + timedelta(milliseconds=40 * index), 35, {"mails": 2}))
        records = [self.decision(queued.id, account=account, **special) for special in decisions]
        if records:
            ledger.record_decisions(records)
            ledger.mark_labelled([r.id for r in records], now)
            ledger.mark_archived({r.id: None for r in records if r.archive}, now)
        counts = {
            "selected": len(records),
            "archived": sum(r.archive for r in records),
            "below_floor": sum(r.outcome is Outcome.BELOW_FLOOR for r in records),
        }
        assert ledger.finish(queued.id, "test", counts=counts)
        if isinstance(self.clock, HandClock):
            self.clock.advance(timedelta(seconds=1))
        run = ledger.run(queued.id)
        assert run is not None
        return run

    def decision(self, run_id: str, **special: Any) -> DecisionRecord:
        """One decision of `newsletter` at 0.96, unless told otherwise."""
        self._uid += 1
        now = self.clock.now()
        values: dict[str, Any] = {
            "id": f"{self._uid:024x}",
            "run_id": run_id,
            "account": "team",
            "ref": MessageRef("INBOX", 7, self._uid),
            "message_key": f"{self._uid:08x}" + "ab" * 12,
            "message_id_key": f"{self._uid:08x}" + "cd" * 12,
            "category_set": "0123456789abcdef",
            "outcome": Outcome.APPLIED,
            "label_id": "newsletter",
            "choice": "newsletter",
            "confidence": 0.95,
            "floor": 0.5,
            "archive_floor": 0.6,
            "archive": True,
            "reason": "above_floor",
            "why": "newsletter at 0.96, floor 0.50.",
            "decided_at": now,
            "probabilities": {"newsletter": 0.96, "receipt": 0.02, "conversation": 0.01, "action-required": 0.01},
            "provider": "systemone",
            "model": "table-1",
            "chain_position": 0,
            "latency_ms": 180,
            "input_tokens": 900,
            "output_tokens": 1,
            "question_tokens": 400,
            "cost_usd": 0.0004,
            "sender_domain": "letters.example",
            "received_at": now - timedelta(minutes=3),
            "body_chars": 1200,
            "links_removed": 3,
        }
        return DecisionRecord(**(values | special))

    def correct(self, decision: DecisionRecord, kind: CorrectionKind, to: str | None = None) -> None:
        number = f"{decision.id[-12:]}{kind.value:.12}"
        keys = (decision.message_key, decision.message_id_key)
        found = Correction(number, decision.account, decision.id, *keys, kind, decision.label_id, to, self.clock.now())
        self.app.ledger.record_corrections([found])

    def lived_in(self) -> Run:
        """Fill the ledger with a bit of everything; the run with the most to show."""
        unsure = {
            "outcome": Outcome.BELOW_FLOOR, "label_id": "unclassified", "choice": "receipt", "archive": False,
            "confidence": 0.21, "why": "Unsure: receipt 0.41, then newsletter 0.38.", "reason": "below_floor",
            "probabilities": {"receipt": 0.41, "newsletter": 0.38, "conversation": 0.15, "action-required": 0.06},
            "sender_domain": "shop.example",
        }  # fmt: skip
        inherited = {
            "outcome": Outcome.INHERITED, "label_id": "conversation", "choice": "conversation", "archive": False,
            "provider": None, "model": None, "chain_position": None, "probabilities": {}, "latency_ms": 0,
            "input_tokens": 0, "question_tokens": 0, "output_tokens": 0, "cost_usd": 0.0, "confidence": 1.0,
            "inherited_from": "f" * 32, "inherited_rule": "reference", "inherited_source": "person",
            "participation": "not_needed", "why": "The thread is already conversation, by a person's hand.",
        }  # fmt: skip
        hostile = {"subject": HOSTILE, "why": f"newsletter at 0.96 {HOSTILE}", "sender_domain": "evil.example"}
        run = self.run({}, unsure, inherited, hostile, {"warnings": ("hidden_text",), "archive": False})
        decisions = self.app.ledger.decisions(run.id)
        self.correct(decisions[0], CorrectionKind.RELABELLED, "receipt")
        self.correct(decisions[3], CorrectionKind.CONFIRMED, "newsletter")
        for number in range(12):
            self.run({"confidence": number / 12, "choice": "receipt", "label_id": "receipt"}, {})
        use_tool(self.app.settings.ledger, self.clock.now(), reuse_reason=HOSTILE)
        return run

    def close(self) -> None:
        self.app.close()


@contextmanager
def served(world: World) -> Iterator[str]:
    """The pages on a free port; the address without the last slash."""
    http = world.app.settings.http
    assert http is not None
    server = open_server(http, world.site.answer, structlog.get_logger())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.address.rstrip("/")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def patient_get(site: Site, target: str, **headers: str) -> Response:
    """What a visitor sees who loads a page again while it says "not yet"."""
    request = Request.of(target, {"host": "localhost"} | headers)
    answers: list[Response] = []

    def answered() -> bool:
        answers.append(site.answer(request))
        return b"being counted for the first time" not in answers[-1].body

    wait_until(answered)
    return answers[-1]


def token(value: str) -> Secret:
    return Secret.of(value)
