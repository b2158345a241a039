"""Putting labels on messages and taking them off, guarded against whoever else is at work in the mailbox.

With CONDSTORE each STORE is conditional on nothing having changed since the message was read (RFC 7162, 3.1.3). Without
it, the flags are read again right before. Both look back afterwards: a server may answer OK and keep nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.domain.errors import CommandRefused
from triage.domain.mail import Head
from triage.mailbox import sets
from triage.mailbox.answers import Reply, write_refusal
from triage.mailbox.fetched import Fetched
from triage.mailbox.heads import answered, fetch_commands, fetch_flags, flag_items
from triage.mailbox.session import Session
from triage.mailbox.stores import GmailStore, KeywordStore, bears, borne
from triage.ports import Labelled

_ROUNDS = 3
NOT_KEPT = "the server answered OK but did not keep the label"
RESTLESS = "the message keeps changing; the label is left for the next run"
READ_ONLY = "the mailbox is open read-only"


@dataclass
class _Tally:
    stored: dict[int, frozenset[str]] = field(default_factory=dict)
    yielded: dict[int, frozenset[str]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)

    def result(self) -> Labelled:
        return Labelled(frozenset(self.stored), self.yielded, frozenset(self.gone), self.refused, self.stored)


@dataclass(frozen=True)
class _Store:
    """One STORE command: a label, the UIDs it names, the MODSEQ it is conditional on (0: unconditional)."""

    label: str
    uids: tuple[int, ...]
    line: bytes


def store_labels(
    session: Session,
    store: KeywordStore | GmailStore,
    plan: Mapping[int, str],
    heads: Mapping[int, Head],
    others: Sequence[str],
) -> Labelled:
    """Label inbox messages, one STORE a label, all in one round trip with the look back.

    Safe to repeat: a message that already bears its label is `stored` if nothing else of `others` stands on it.
    Raises MailboxBusy where the server asks to stop writing.
    """
    tally = _Tally()
    todo = _storable(store, plan, tally)
    if todo and session.use_inbox().read_only:
        tally.refused.update(dict.fromkeys(todo, READ_ONLY))
        return tally.result()
    known = {uid: heads[uid] for uid in todo if uid in heads}
    conditional = isinstance(store, KeywordStore) and session.has_modseq
    for _ in range(_ROUNDS):
        unsure = [u for u in todo if u not in known or not (conditional and known[u].modseq)]
        if unsure:
            fresh = fetch_flags(session, unsure)
            known.update(fresh)
            tally.gone.update(uid for uid in unsure if uid not in fresh)
        _give_way(todo, known, others, tally)
        todo = _left(todo, tally)
        if not todo:
            break
        changed = _store_once(session, store, todo, known, tally, conditional=conditional)
        todo = {uid: label for uid, label in todo.items() if uid in changed}
        known = {}
    tally.refused.update(dict.fromkeys(todo, RESTLESS))
    return tally.result()


def remove_labels(
    session: Session, store: KeywordStore | GmailStore, mailbox: str, plan: Mapping[int, Sequence[str]]
) -> frozenset[int]:
    """Take labels off messages of any mailbox; the UIDs that no longer bear them. Safe to repeat.

    Raises CommandRefused if the mailbox cannot be opened.
    """
    if session.use(mailbox, read_only=False).read_only:
        return frozenset()
    groups: dict[str, list[int]] = {}
    for uid, labels in plan.items():
        for label in labels:
            groups.setdefault(label, []).append(uid)
    commands = [c.line for label, uids in groups.items() for c in _commands(store, "-", label, uids, 0)]
    looks = fetch_commands(plan, flag_items(session))
    replies = session.run(*commands, *looks)
    for reply in replies[: len(commands)]:
        if not reply.ok:
            write_refusal(reply, "STORE")
    after = answered(replies[len(commands) :], "FETCH")
    return frozenset(
        uid
        for uid, labels in plan.items()
        if (item := after.get(uid)) and item.flags is not None and not borne(item.flags | item.labels, labels)
    )


def _storable(store: KeywordStore | GmailStore, plan: Mapping[int, str], tally: _Tally) -> dict[int, str]:
    todo = {}
    for uid, label in plan.items():
        try:
            store.item(label)
        except (CommandRefused, ValueError) as exc:
            tally.refused[uid] = str(exc)
        else:
            todo[uid] = label
    return todo


def _give_way(todo: Mapping[int, str], known: Mapping[int, Head], others: Sequence[str], tally: _Tally) -> None:
    """Whoever labelled a message since it was selected wins; our own label, found there alone, is as good as stored."""
    for uid, label in todo.items():
        if uid in known:
            _judge(uid, label, known[uid].flags, others, tally)


def _judge(uid: int, label: str, flags: frozenset[str], others: Sequence[str], tally: _Tally) -> None:
    foreign = frozenset(o for o in borne(flags, others) if o.casefold() != label.casefold())
    if foreign:
        tally.yielded[uid] = foreign
    elif bears(flags, label):
        tally.stored[uid] = flags


def _left(todo: Mapping[int, str], tally: _Tally) -> dict[int, str]:
    done = tally.stored.keys() | tally.gone | tally.yielded.keys() | tally.refused.keys()
    return {uid: label for uid, label in todo.items() if uid not in done}


def _store_once(
    session: Session,
    store: KeywordStore | GmailStore,
    todo: Mapping[int, str],
    known: Mapping[int, Head],
    tally: _Tally,
    *,
    conditional: bool,
) -> set[int]:
    """Send the STOREs and the look back; the UIDs that changed since they were read and need another look."""
    groups: dict[tuple[str, int], list[int]] = {}
    for uid, label in todo.items():
        modseq = known[uid].modseq if conditional else 0
        ceiling = session.modseq_ceilings.get((uid, modseq), modseq)
        groups.setdefault((label, ceiling), []).append(uid)
    stores = [c for (label, ceiling), uids in groups.items() for c in _commands(store, "+", label, uids, ceiling)]
    looks = fetch_commands(todo, flag_items(session))
    replies = session.run(*(s.line for s in stores), *looks)
    reasons: dict[int, str] = {}
    modified: set[int] = set()
    for sent, reply in zip(stores, replies, strict=False):
        modified.update(_modified(reply, sent.uids))
        if not reply.ok and reply.code != "MODIFIED":
            reasons.update(dict.fromkeys(sent.uids, write_refusal(reply, "STORE")))
    after = answered(replies[len(stores) :], "FETCH")
    return _settle(todo, after, reasons, modified, tally)


def _settle(
    todo: Mapping[int, str],
    after: Mapping[int, Fetched],
    reasons: Mapping[int, str],
    modified: Iterable[int],
    tally: _Tally,
) -> set[int]:
    again: set[int] = set()
    for uid, label in todo.items():
        item = after.get(uid)
        if item is None or item.flags is None:
            tally.gone.add(uid)
        elif uid in modified:
            again.add(uid)
        elif bears(item.flags | item.labels, label):
            tally.stored[uid] = item.flags | item.labels
        else:
            tally.refused[uid] = reasons.get(uid, NOT_KEPT)
    return again


def _commands(
    store: KeywordStore | GmailStore, sign: str, label: str, uids: Iterable[int], ceiling: int
) -> list[_Store]:
    item, value = store.item(label)
    guard = f" (UNCHANGEDSINCE {ceiling})" if ceiling else ""
    return [
        _Store(label, members, f"UID STORE {uid_set}{guard} {sign}{item}.SILENT ({value})".encode("ascii"))
        for uid_set, members in sets.chunks(uids, sets.ROOM - 300)
    ]


def _modified(reply: Reply, uids: Sequence[int]) -> set[int]:
    """The UIDs of [MODIFIED set]: changed since, and not stored. A set that cannot be read counts for all of them."""
    told = reply.code_values("MODIFIED")
    if not told:
        return set()
    try:
        return set(sets.parse(told[-1])) & set(uids)
    except ValueError:
        return set(uids)
