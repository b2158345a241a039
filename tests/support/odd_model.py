"""Whole runs on a real mail server with a real provider, against a model server that is wrong in some way."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.http_stub import Behaviour, Seen, drip, endless, head, raw, reply, silence
from services.dovecot import Dovecot, Mail
from support.office import CATEGORIES, make_run, settings_for
from triage.bootstrap import App
from triage.config.secret import Secret
from triage.config.settings import DecisionSettings, ProviderSettings
from triage.domain.category import Action
from triage.domain.record import DecisionRecord, Run

MAILS = tuple(
    Mail(f"Mail {n}", f"<m{n}@x.example>", body=f"Thank you for order {n}. Total paid 12.00 EUR. " * n)
    for n in range(8)
)


@dataclass(frozen=True)
class Aftermath:
    """What a run left: the record of it, labels by UID in the inbox and the archive ("" for none), the decisions."""

    run: Run
    inbox: dict[int, str]
    archive: dict[int, str]
    decisions: tuple[DecisionRecord, ...]
    wrong: tuple[str, ...]

    def row(self) -> str:
        """One line of a table."""
        outcomes = Counter(str(d.outcome) for d in self.decisions)
        reasons = sorted({d.reason for d in self.decisions if d.provider is None} | {self.run.reason or ""} - {""})
        told = ", ".join(f"{name} {n}" for name, n in sorted(outcomes.items())) or "nothing labelled"
        left = sum(not label for label in self.inbox.values())
        return f"{self.run.state!s:<8}{len(self.archive):>9}{left:>11}  {told}" + (
            f" ({', '.join(reasons)})" if reasons else ""
        )


HEAD = f"{'state':<8}{'archived':>9}{'unlabelled':>11}  outcomes (reasons)"


def run_against(server: Dovecot, user: str, directory: Path, url: str, **provider: Any) -> Aftermath:
    """Deliver mail, make one whole run with the model at `url`, and check what must hold whatever it answered."""
    server.append(user, MAILS)
    terms: dict[str, Any] = {"model": "jev-latest", "retries": 0, "timeout_s": 1.0, "api_key": Secret.of("a-key")}
    chain = (ProviderSettings("systemone", base_url=url, **(terms | provider)),)
    decision = DecisionSettings(chain=chain, deadline_s=4.0, floor=0.2)
    app = App(settings_for(directory, server.port, user, server.password, decision=decision))
    try:
        run = make_run(app)
        decisions = app.ledger.decisions(run.id)
    finally:
        app.close()
    inbox = {uid: _ours(flags) for uid, flags in server.flags(user).items()}
    archive = {uid: _ours(flags) for uid, flags in server.flags(user, "Archive").items()}
    return Aftermath(run, inbox, archive, decisions, tuple(_wrong(inbox, archive, decisions)))


def _wrong(inbox: dict[int, str], archive: dict[int, str], decisions: tuple[DecisionRecord, ...]) -> list[str]:
    """No mail lost, no label but ours and at most one, nothing archived but what a usable answer sent there."""
    bad = []
    if len(inbox) + len(archive) != len(MAILS):
        bad.append(f"{len(inbox)} + {len(archive)} mails of {len(MAILS)}")
    bad += [
        f"label {label!r}" for label in (*inbox.values(), *archive.values()) if label not in ("", *CATEGORIES.labels)
    ]
    sent = [d for d in decisions if d.archived_at is not None]
    if len(sent) != len(archive):
        bad.append(f"{len(archive)} archived, {len(sent)} decided so")
    for d in sent:
        usable = d.provider == "systemone" and d.choice == d.label_id and abs(sum(d.probabilities.values()) - 1) < 1e-6
        if not usable or CATEGORIES.action(d.label_id) is not Action.ARCHIVE or d.confidence < d.archive_floor:
            bad.append(f"archived by {d.provider}: {d.reason}")
    return bad


def _ours(flags: set[str]) -> str:
    return " ".join(sorted(flag for flag in flags if flag.startswith(f"{CATEGORIES.parent}/")))


def answer_to(seen: Seen, **changes: Any) -> dict[str, Any]:
    """A sure and well-formed answer "receipt" to the very question that was asked."""
    ids = list(seen.json["questions"]["category"]["criteria"])
    probabilities = {i: 0.96 if i == "receipt" else 0.04 / (len(ids) - 1) for i in ids}
    fields = {"type": "choice", "choice": "receipt", "probabilities": probabilities}
    return {"model": "adversary-1", "answers": {"category": fields | changes}, "usage": {"input_tokens": 9}}


def _other_question(seen: Seen) -> Behaviour:
    others = {"type": "choice", "choice": "archive-all", "probabilities": {"archive-all": 0.99, "delete": 0.01}}
    return reply(answer_to(seen) | {"answers": {"category": others}})


def _other_name(seen: Seen) -> Behaviour:
    return reply(answer_to(seen) | {"answers": {"folder": answer_to(seen)["answers"]["category"]}})


def _by_turns(seen: Seen) -> Behaviour:
    """Well for every other mail, nonsense for the rest."""
    good = int(seen.json["state"]["subject"].split()[-1]) % 2 if "Mail" in seen.json["state"]["subject"] else True
    return reply(answer_to(seen)) if good else reply(answer_to(seen, probabilities={"receipt": 7}))


ADVERSARIES = {
    "behaves": lambda seen: reply(answer_to(seen)),
    "streams garbage": lambda _: endless(random.Random(5).randbytes(4096), b""),
    "garbage as JSON": lambda _: reply(random.Random(6).randbytes(60_000)),
    "never ends": lambda _: endless(b" " * 8192),
    "head never ends": lambda _: endless(b"X-Pad: 1\r\n", b"HTTP/1.1 200 OK\r\n"),
    "drips": lambda _: drip(head(200, {"Content-Length": "9000"}) + b" " * 9000, 50),
    "never answers": lambda _: silence,
    "hangs up": lambda _: raw(b""),
    "ten megabytes": lambda seen: reply(json.dumps(answer_to(seen)) + " " * 10_000_000),
    "packed bomb": lambda _: reply(gzip.compress(b" " * 50_000_000), headers={"Content-Encoding": "gzip"}),
    "another question": _other_question,
    "another name": _other_name,
    "a label of its own": lambda seen: reply(answer_to(seen, choice="\\Deleted")),
    "sure of everything": lambda seen: reply(
        answer_to(seen, probabilities=dict.fromkeys(answer_to(seen)["answers"]["category"]["probabilities"], 1.0))
    ),
    "percent": lambda seen: reply(answer_to(seen, probabilities={"receipt": 96, "conversation": 4})),
    "NaN": lambda seen: reply(json.dumps(answer_to(seen)).replace("0.96", "NaN")),
    "deep nesting": lambda _: reply(b'{"answers":' + b"[" * 300_000),
    "login page": lambda _: reply("<html><form>Log in</form></html>"),
    "error as answer": lambda _: reply({"error": {"code": 502, "message": "Provider returned error"}}),
    "good by turns": _by_turns,
}
"""What an adversarial server does to each request."""

ANSWERS_ALL = frozenset({"behaves"})
