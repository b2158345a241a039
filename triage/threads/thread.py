"""The known part of one mail's thread: who is in it, who wrote what, what came later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from triage.domain.category import HIJACK_ID
from triage.threads.ancestry import ancestors, descendants, edges
from triage.threads.candidate import Candidate, Found, KeepReason
from triage.threads.headers import ThreadHeaders


@dataclass(frozen=True, slots=True)
class Bearer:
    """One mail that bears a certain Message-ID, and when it came (None: not known)."""

    headers: ThreadHeaders
    received: datetime | None


@dataclass(frozen=True, slots=True)
class Thread:
    """A mail and the mails known around it by Message-ID: `located` in the mailbox, `settled` in the batch.

    `pending` maps the ids of the batch that nobody has decided yet to their UIDs. `later` are the mail's own
    id and those that descend from it. `line` are the ids it descends from, nearest first:
    those it names, then those that only the known among them name. `kin` are the mails of that line that are known,
    `authors` whoever stands in their From.
    """

    mail: ThreadHeaders
    located: Found
    settled: Found
    pending: Mapping[str, tuple[int, ...]]
    bearers: Mapping[str, tuple[Bearer, ...]]
    later: frozenset[str]
    line: tuple[str, ...]
    kin: tuple[Candidate, ...]
    authors: frozenset[str]

    def copies(self, message_id: str) -> tuple[Candidate, ...]:
        """Every mail bearing this id that could be inherited from."""
        return (*self.located.get(message_id, ()), *self.settled.get(message_id, ()))

    def took_part(self, sender: str, ancestor: Candidate) -> bool:
        """Did `sender` write a mail that the ancestor says it descends from, and that was here before the ancestor?

        Only the ancestor's word counts: what the asking mail or any third one says of the thread is no evidence.
        A mail that came after the ancestor may have borrowed an id out of its References, and where two senders use
        one id, one of them has borrowed it: neither gains by it.
        """
        if ancestor.received is None:
            return False
        for message_id in ancestor.headers.parents:
            bearers = self.bearers.get(message_id, ())
            if {b.headers.sender for b in bearers} == {sender} and any(
                b.received is not None and b.received < ancestor.received for b in bearers
            ):
                return True
        return False

    def holds_hijack(self) -> bool:
        return any(HIJACK_ID in c.label_ids for c in self.kin)

    def keep_reason(self, owner: frozenset[str]) -> KeepReason:
        """Does the thread stay in the inbox whatever its category?"""
        if self.authors & owner:
            return KeepReason.OWNER_WROTE
        if any(c.moved_back for c in self.kin):
            return KeepReason.MOVED_BACK
        return KeepReason.NONE


def build_thread(
    uid: int,
    batch: Mapping[int, ThreadHeaders],
    found: Found,
    decided: Mapping[int, Candidate],
    received: Mapping[int, datetime],
    server_thread: Sequence[Candidate],
) -> Thread:
    """Put together what is known around one mail. Found mails whose own Message-ID is not exactly the key are left out:
    servers search without regard to case and by parts of words (RFC 9051, 6.4.4)."""
    mail = batch[uid]
    located = {key: tuple(c for c in mails if c.headers.message_id == key) for key, mails in found.items()}
    settled: dict[str, list[Candidate]] = {}
    pending: dict[str, tuple[int, ...]] = {}
    bearers: dict[str, list[Bearer]] = {}
    for other, headers in batch.items():
        if other == uid or not headers.message_id:
            continue
        bearers.setdefault(headers.message_id, []).append(Bearer(headers, received.get(other)))
        if other in decided:
            settled.setdefault(headers.message_id, []).append(decided[other])
        else:
            pending[headers.message_id] = (*pending.get(headers.message_id, ()), other)
    for candidate in (*chain.from_iterable(located.values()), *server_thread):
        if candidate.headers.message_id:
            bearer = Bearer(candidate.headers, candidate.received)
            bearers.setdefault(candidate.headers.message_id, []).append(bearer)
    graph = edges((i, b.headers.parents) for i, mails in bearers.items() for b in mails)
    later = descendants(mail.message_id, graph) | {mail.message_id} - {""}
    line = ancestors(mail.parents, graph)
    kin = (*(c for i in line for c in (*located.get(i, ()), *settled.get(i, ()))), *server_thread)
    # Not the mail's own author: spam likes to come under its recipient's address.
    earlier = (*(b.headers for i in line for b in bearers.get(i, ())), *(c.headers for c in server_thread))
    return Thread(
        mail=mail,
        located=located,
        settled=settled,
        pending=pending,
        bearers={i: tuple(mails) for i, mails in bearers.items()},
        later=later,
        line=tuple(i for i in line if i not in later),
        kin=kin,
        authors=frozenset(author for m in earlier for author in m.authors),
    )
