"""What counts as the message: one head judged by the policy's rule, the run's window and the run's address. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from triage.agent.identity import addresses_in, names_another, names_run, recipients, values
from triage.agent.patterns import TooSlowError, found
from triage.agent.policy import AcceptKeys, AuthenticationKeys
from triage.domain.mail import Head, PreparedMail
from triage.prepare.headers import Fields, decode_words

FIELDS = (
    "From", "To", "Cc", "Subject", "Date", "Message-ID", "Delivered-To", "X-Original-To", "Authentication-Results",
    "Content-Type", "Content-Transfer-Encoding",
)  # fmt: skip
"""The header fields that are read of a candidate, beside those that a policy names."""

_SECRET = re.compile(r"https?://\S+|[^\s@]+@[^\s@]+|\w*\d[\w-]{2,}|[A-Za-z0-9_-]{16,}")
_SUBJECT_CHARS = 120
_RESULT = re.compile(r"\b(dkim|spf|dmarc)\s*=\s*pass\b([^;]*)", re.IGNORECASE)
_DOMAIN_OF = {
    "dkim": re.compile(r"\bheader\.(?:d|i)\s*=\s*@?([\w.-]+)", re.IGNORECASE),
    "spf": re.compile(r"\bsmtp\.(?:mailfrom|helo)\s*=\s*(?:[^\s@;]*@)?([\w.-]+)", re.IGNORECASE),
    "dmarc": re.compile(r"\bheader\.from\s*=\s*([\w.-]+)", re.IGNORECASE),
}


class Class(StrEnum):
    """What a message addressed to a run is."""

    MATCHED = "matched"
    OLD = "old"
    LATE = "late"
    DUPLICATE = "duplicate"
    UNCORRELATED = "uncorrelated"
    RULE_MISMATCH = "rule_mismatch"
    CONSUMED = "already_consumed"
    UNPARSEABLE = "unparseable"
    SUSPECT = "suspect"


@dataclass(frozen=True, slots=True)
class Window:
    """When and from where on a message may count: UIDs of one UIDVALIDITY from the baseline on, times as aware UTC."""

    uidvalidity: int
    baseline_uid: int
    after: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Terms:
    """One wait's acceptance rule: the policy's conditions, narrowed by what the caller asked for."""

    run_id: str
    address: str
    evidence: str
    accept: AcceptKeys
    rules: Mapping[str, str]
    window: Window
    subject_contains: str | None = None
    rule: str | None = None
    tie: str = "ambiguous"

    @property
    def fields(self) -> tuple[str, ...]:
        """The header fields to fetch of a candidate."""
        names = [self.accept.header.name] if self.accept.header else []
        if self.tie.startswith("by_header:"):
            names.append(self.tie.partition(":")[2])
        return (*FIELDS, *names)

    @property
    def name(self) -> str:
        """The rule in a word, for evidence: which conditions had to hold."""
        subject = self.accept.subject
        parts = []
        if self.rule or (subject and subject.rule):
            parts.append(f"subject_rule:{self.rule or (subject.rule if subject else '')}")
        if self.subject_contains or (subject and subject.contains):
            parts.append("subject_contains")
        parts += ["from_domain"] if self.accept.from_domain else []
        parts += [f"header:{self.accept.header.name}"] if self.accept.header else []
        parts += [f"authentication:{self.accept.authentication.require}"] if self.accept.authentication else []
        return "+".join(parts)


@dataclass(frozen=True, slots=True)
class Judged:
    """One message's class, and a code that says why."""

    kind: Class
    reason: str = ""


def judge(head: Head, terms: Terms, live_addresses: Sequence[str], bad_labels: Collection[str]) -> Judged | None:
    """The class of one message by its head alone; None if it is not addressed to this run at all."""
    if terms.evidence != "folder":
        to = recipients(head.headers, terms.evidence)
        if not names_run(to, terms.address):
            return None
        named = to | addresses_in([*values(head.headers, "to"), *values(head.headers, "cc")])
        if names_another(named, terms.address, live_addresses):
            return Judged(Class.UNCORRELATED, "names_two_live_runs")
    window = terms.window
    if head.ref.uidvalidity != window.uidvalidity or head.ref.uid < window.baseline_uid:
        return Judged(Class.OLD, "before_the_run")
    if head.received is None:
        return Judged(Class.UNPARSEABLE, "no_receive_time")
    if head.received < window.after.replace(microsecond=0):
        return Judged(Class.OLD, "before_the_trigger")
    if head.received > window.until:
        return Judged(Class.LATE, "after_the_run")
    if reason := _mismatch(head, terms):
        return Judged(Class.RULE_MISMATCH, reason)
    if any(flag.casefold() in bad_labels for flag in head.flags):
        return Judged(Class.SUSPECT, "hijack_label")
    if head.size > terms.accept.max_bytes:
        return Judged(Class.SUSPECT, "too_large")
    return Judged(Class.MATCHED, terms.name)


def _mismatch(head: Head, terms: Terms) -> str:
    """The first condition that does not hold, "" if all do. The cheap ones come first."""
    accept = terms.accept
    fields = Fields(head.headers)
    senders = {address.rpartition("@")[2] for address in addresses_in(values(head.headers, "from"))}
    if accept.from_domain and (len(senders) != 1 or not senders <= set(accept.from_domain)):
        return "from_domain"
    subject = decode_words(fields.first("subject"))
    contains = [accept.subject.contains if accept.subject else None, terms.subject_contains]
    if any(phrase and normal(phrase) not in normal(subject) for phrase in contains):
        return "subject_contains"
    header = accept.header
    if header and header.value.replace("{run_id}", terms.run_id) not in values(head.headers, header.name):
        return "header"
    if accept.authentication and not authenticated(head.headers, accept.authentication, senders):
        return "authentication"
    for name in (accept.subject.rule if accept.subject else None, terms.rule):
        try:
            if name and not found(terms.rules[name], subject[:500]):
                return "subject_rule"
        except TooSlowError:
            return "subject_rule_too_slow"
    return ""


def authenticated(headers: bytes, wanted: AuthenticationKeys, senders: Collection[str]) -> bool:
    """Did the operator's own server say `pass`, for the very domain the mail claims to be from (RFC 8601)?

    Only the topmost result of that server counts: it stamps above what a sender may have written in its name.
    """
    for result in values(headers, "authentication-results"):
        name, _, rest = result.partition(";")
        if (name.split() or [""])[0].casefold() != wanted.authserv_id:
            continue
        for method, details in _RESULT.findall(re.sub(r"\([^()]*\)", "", rest)):
            if method.casefold() == wanted.require:
                domains = {d.casefold() for d in _DOMAIN_OF[wanted.require].findall(details)}
                if any(_aligned(domain, sender) for domain in domains for sender in senders):
                    return True
        return False
    return False


def _aligned(domain: str, sender: str) -> bool:
    return sender == domain or sender.endswith("." + domain)


def normal(text: str) -> str:
    """A subject made comparable: compatibility forms, case and white space do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def masked_subject(headers: bytes) -> str:
    """A subject fit to be shown: one line, short, and without anything that may be a code, a token or an address."""
    text = " ".join(decode_words(Fields(headers).first("subject")).split())
    text = "".join(c if c.isprintable() else " " for c in text)
    return _SECRET.sub("***", text)[:_SUBJECT_CHARS]


def age_seconds(received: datetime, now: datetime) -> float:
    return max(0.0, round((now - received) / timedelta(seconds=1), 1))


def count(classes: Collection[Judged]) -> dict[str, int]:
    """How many of each class."""
    counts: dict[str, int] = {}
    for judged in classes:
        counts[str(judged.kind)] = counts.get(str(judged.kind), 0) + 1
    return counts


HijackSigns = Callable[[PreparedMail], int]
"""How many signs of an injection a mail carries."""
