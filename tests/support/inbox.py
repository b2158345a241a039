"""One inbox that exercises everything a run does, and what must be true of it after any mishap."""

from __future__ import annotations

import email
from collections import Counter
from dataclasses import dataclass, field

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.audited import disagreements
from support.office import CATEGORIES
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord, RunState
from triage.ledger.ledger import SqlLedger

LIST = "List-Id: Weekly <weekly.sender.example>\r\n"
PARENT = "Triage/"

OLD = (Mail("Weekly 1", "<w1@x.example>", flags=["Triage/newsletter"], headers=LIST),)
"""In the archive already, labelled by a person: replies of the same list inherit."""

NEW = (
    Mail("News A", "<n1@x.example>"),
    Mail("Sign this", "<s1@x.example>"),
    Mail("Re: Weekly 1", "<w2@x.example>", headers=LIST + "In-Reply-To: <w1@x.example>\r\n"),
    Mail("Odd one", "<o1@x.example>"),
    Mail("Paid", "<p1@x.example>", flags=["\\Seen"]),
    Mail("Re: Plan", "<q2@x.example>", headers="In-Reply-To: <q1@x.example>\r\n"),
    Mail("Plan", "<q1@x.example>"),
    Mail("News B", "<n2@x.example>", flags=["\\Flagged"]),
    Mail("No id at all"),
)
TABLE = {
    "News A": ("newsletter", 0.97),
    "Sign this": ("action-required", 0.97),
    "Odd one": ("receipt", 0.45),
    "Paid": ("receipt", 0.97),
    "Plan": ("conversation", 0.97),
    "News B": ("newsletter", 0.97),
    "No id at all": ("conversation", 0.97),
    "Re: Weekly 1": ("newsletter", 0.97),
    "Re: Plan": ("conversation", 0.97),
}
LABELS = {
    "News A": "newsletter",
    "Sign this": "action-required",
    "Re: Weekly 1": "newsletter",
    "Odd one": "unclassified",
    "Paid": "receipt",
    "Re: Plan": "conversation",
    "Plan": "conversation",
    "News B": "newsletter",
    "No id at all": "conversation",
    "Weekly 1": "newsletter",
}
ARCHIVES = {"newsletter", "receipt"}


def provider() -> TableProvider:
    return TableProvider(TABLE)


def fill(server: Dovecot, user: str) -> None:
    server.append(user, OLD, "Archive")
    server.append(user, NEW)


@dataclass
class Found:
    """What is in the mailbox: (mailbox, flags) of every message by subject."""

    places: dict[str, list[tuple[str, frozenset[str]]]] = field(default_factory=dict)


def look(server: Dovecot, user: str) -> Found:
    """Read INBOX and Archive with another client."""
    found = Found()
    client = server.client(user)
    for mailbox in ("INBOX", "Archive"):
        client.select(mailbox, readonly=True)
        _, lines = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
        for line in lines:
            if isinstance(line, tuple):
                flags = line[0].decode().split("FLAGS (")[1].split(")")[0].split()
                subject = email.message_from_bytes(line[1])["Subject"]
                found.places.setdefault(subject, []).append((mailbox, frozenset(flags) - {"\\Recent"}))
    client.logout()
    return found


def violations(
    found: Found, ledger: SqlLedger, account: str = "team", *, finished: bool = True, most_copies: int = 1
) -> list[str]:
    """What is wrong with mailbox and ledger: the six invariants, and nothing lost, deleted, decided twice or archived
    without its label. `finished` demands that every message bears its label by now."""
    bad: list[str] = []
    for subject, label in LABELS.items():
        places = found.places.get(subject, [])
        if not 1 <= len(places) <= most_copies:
            bad.append(f"{subject}: {len(places)} copies")
        if not any("\\Deleted" not in flags for _, flags in places):
            bad.append(f"{subject}: marked deleted")
        for mailbox, flags in places:
            ours = {f for f in flags if f.startswith(PARENT)}
            if len(ours) > 1:
                bad.append(f"{subject}: labels {sorted(ours)}")
            if (mailbox == "Archive" or finished) and ours != {PARENT + label}:
                bad.append(f"{subject}: in {mailbox} with {sorted(ours)}, not {label}")
            if mailbox == "Archive" and label not in ARCHIVES:
                bad.append(f"{subject}: archived as {label}")
    runs = ledger.runs(account, limit=1000)
    decisions = [d for run in runs for d in ledger.decisions(run.id)]
    bad += _ledger_violations(decisions)
    bad += [f"run {r.id} is still {r.state}" for r in runs if finished and r.state is RunState.RUNNING]
    bad += [f"run {r.id} holds {r.counts['selected']}" for r in runs if r.counts.get("selected", 0) > 20]
    bad += ledger.verify_chain(account)
    bad += disagreements(ledger, account, CATEGORIES)
    return bad


def _ledger_violations(decisions: list[DecisionRecord]) -> list[str]:
    bad = []
    for ref, n in Counter(d.ref for d in decisions if d.closed_reason is None).items():
        if n > 1:
            bad.append(f"{ref}: decided {n} times")
    for d in decisions:
        if d.archived_at is not None and not d.confidence >= d.archive_floor >= d.floor:
            bad.append(f"{d.ref}: archived at {d.confidence:.2f}, floor {d.archive_floor:.2f}")
        if d.archived_at is not None and d.labelled_at is None:
            bad.append(f"{d.ref}: archived before its label was recorded")
        if d.outcome is Outcome.APPLIED and not (d.provider and d.model and d.probabilities):
            bad.append(f"{d.ref}: nobody knows who answered")
    return bad
