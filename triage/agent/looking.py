"""One look at a run's mail: what arrived for it, what each message is, and which of them counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from triage.agent.acceptance import Class, HijackSigns, Judged, Terms, count, judge
from triage.agent.ports import MailReader, Place, ToolLedger
from triage.agent.sharing import SharedMailbox
from triage.domain.errors import MailboxChanged
from triage.domain.mail import Head, MailSource, PreparedMail
from triage.domain.tool import RunRecord
from triage.prepare import prepare
from triage.prepare.choose import choose_parts
from triage.prepare.headers import Fields

HINDSIGHT = 500
"""So many UIDs before the run are looked at, only to be able to say that a message is old."""
MOST_OPENED = 4
"""Messages whose text is fetched in one look; what matches beyond that is ambiguous anyway."""
MOST_HEADS = 200
SILENCE = "no_message_yet"
_HIDDEN = "hidden_text"
_RECIPIENT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "to_header": ("To", "Cc"),
    "delivered_to": ("Delivered-To", "X-Original-To"),
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A matching message whose text was read: what it is made of, and its fingerprint."""

    source: MailSource
    mail: PreparedMail
    fingerprint: str
    message_id_header: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that meets the rule. `message_id` is the tool's own."""

    head: Head
    key: str
    message_id: str
    reason: str
    opened: Opened | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What one look showed."""

    candidates: tuple[Candidate, ...]
    classes: Mapping[int, Judged]
    suspect: str | None
    cursor: str

    @property
    def counts(self) -> dict[str, int]:
        return count(self.classes.values())


@dataclass(slots=True)
class Looker:
    """Looks for one run. Heads and texts that were read once are not fetched again."""

    mailbox: SharedMailbox
    ledger: ToolLedger
    run: RunRecord
    terms: Terms
    bad_labels: Collection[str]
    hijack_signs: HijackSigns
    _heads: dict[int, Head] = field(default_factory=dict)
    _opened: dict[int, Opened | str] = field(default_factory=dict)

    def look(self, seconds: float, live_addresses: Callable[[], Sequence[str]]) -> Look:
        """Raises MailboxError; MailboxChanged if the folder was renumbered since the run was opened."""
        return self.mailbox.call(lambda reader: self._look(reader, live_addresses), seconds)

    def _look(self, reader: MailReader, live_addresses: Callable[[], Sequence[str]]) -> Look:
        run = self.run
        fields = _RECIPIENT_FIELDS.get(self.terms.evidence)
        first = max(1, run.baseline_uid - HINDSIGHT)
        place, uids = reader.arrived(run.folder, first, (fields, run.address) if fields else None)
        self._same(place)
        old = {uid: Judged(Class.OLD, "before_the_run") for uid in uids if uid < run.baseline_uid}
        uids = tuple(uid for uid in uids if uid >= run.baseline_uid)[:MOST_HEADS]
        missing = [uid for uid in uids if uid not in self._heads]
        self._heads.update(reader.heads(run.folder, missing, self.terms.fields))
        heads = {uid: self._heads[uid] for uid in uids if uid in self._heads}
        live = live_addresses() if heads else ()
        classes: dict[int, Judged] = dict(old)
        for uid, head in heads.items():
            judged = judge(head, self.terms, live, self.bad_labels)
            if judged is not None:
                classes[uid] = judged
        matching = [uid for uid, judged in classes.items() if judged.kind is Class.MATCHED]
        candidates = self._candidates(reader, heads, matching, classes)
        suspects = [judged.reason for judged in classes.values() if judged.kind is Class.SUSPECT]
        cursor = f"{run.uidvalidity}:{max([run.baseline_uid - 1, *uids])}"
        return Look(candidates, classes, suspects[0] if suspects else None, cursor)

    def _same(self, place: Place) -> None:
        if place.uidvalidity != self.run.uidvalidity:
            raise MailboxChanged("the folder was renumbered since the run was opened; its baseline is void")

    def _candidates(
        self, reader: MailReader, heads: Mapping[int, Head], matching: Sequence[int], classes: dict[int, Judged]
    ) -> tuple[Candidate, ...]:
        """What matches, less what is claimed, suspect or the same mail again."""
        keys = {uid: message_key(self.ledger, self.run.account, heads[uid]) for uid in matching}
        claimed = self.ledger.claims(self.run.account, list(keys.values())) if keys else {}
        known = {c.fingerprint for c in self.ledger.claims_of(self.run.id, self.run.generation)} if keys else set()
        found: list[Candidate] = []
        seen: set[tuple[str, str]] = set()
        for uid in sorted(matching):
            if keys[uid] in claimed:
                classes[uid] = Judged(Class.CONSUMED, "already_consumed")
                continue
            opened = self._open(reader, heads[uid])
            if isinstance(opened, str):
                classes[uid] = Judged(Class.SUSPECT, opened)
                continue
            if opened is not None and opened.message_id_header:
                same = (opened.message_id_header, opened.fingerprint)
                if same in seen or opened.fingerprint in known:
                    classes[uid] = Judged(Class.DUPLICATE, "same_message_again")
                    continue
                seen.add(same)
            found.append(Candidate(heads[uid], keys[uid], message_name(keys[uid]), classes[uid].reason, opened))
        return tuple(found)

    def _open(self, reader: MailReader, head: Head) -> Opened | str | None:
        """A message's text, or why it may not count; None if enough were opened already."""
        uid = head.ref.uid
        if uid not in self._opened:
            if len(self._opened) >= MOST_OPENED:
                return None
            source = reader.source(self.run.folder, head, choose_parts(head.structure))
            self._opened[uid] = open_source(source, self.ledger.key, self.hijack_signs)
        return self._opened[uid]


def open_source(source: MailSource, key: Callable[[str], str], hijack_signs: HijackSigns) -> Opened | str:
    """What a message is made of, or the reason why no program may act on it."""
    mail = prepare(source)
    if _HIDDEN in mail.warnings or mail.signals.hidden_chars:
        return _HIDDEN
    if any(fetched.cut for fetched in source.texts):
        return "too_large"
    if hijack_signs(mail):
        return "hijack_signs"
    message_id = Fields(source.headers).first("message-id").strip()
    print_ = key("\n".join(("fingerprint", message_id, mail.subject, mail.body)))[:16]
    return Opened(source, mail, print_, message_id)


def message_key(ledger: ToolLedger, account: str, head: Head) -> str:
    """What a message is claimed under."""
    return ledger.key(f"message {account} {head.ref}")


def message_name(key: str) -> str:
    """A message's id for callers: stable, and meaningless elsewhere."""
    return f"m-{key[:12]}"


def why_nothing(counts: Mapping[str, int]) -> str:
    """Why a look that could read the mailbox found no message that counts: the most telling cause, else silence."""
    for kind in ("uncorrelated", "already_consumed", "rule_mismatch", "late", "duplicate", "old", "unparseable"):
        if counts.get(kind):
            return f"only_{kind}"
    return SILENCE


def settle_tie(candidates: Sequence[Candidate], tie: str, requested: bool) -> Candidate | None:
    """The one candidate that the policy's rule chooses, None if it chooses none. Never by what a text says."""
    if len(candidates) == 1:
        return candidates[0]
    name, _, header = tie.partition(":")
    if name == "newest_of_run" and requested:
        return max(candidates, key=lambda c: c.head.ref.uid)
    if name == "by_header":
        versions = {c.key: _version(c, header) for c in candidates}
        best = max((v for v in versions.values() if v is not None), default=None)
        chosen = [c for c in candidates if best is not None and versions[c.key] == best]
        if len(chosen) == 1 and None not in versions.values():
            return chosen[0]
    return None


def _version(candidate: Candidate, header: str) -> int | None:
    text = Fields(candidate.head.headers).first(header.lower())
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
