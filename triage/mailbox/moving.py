"""Moving messages between mailboxes so that no failure on the way can lose one.

MOVE (RFC 6851) where the server has it. Else COPY and, only for what COPY has copied, \\Deleted and UID EXPUNGE of just
those UIDs (RFC 4315); a bare EXPUNGE would also remove what other people have marked. Without both, nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from triage.domain.mail import MessageRef
from triage.mailbox import sets
from triage.mailbox.answers import Reply, refusal, write_refusal
from triage.mailbox.names import mailbox_argument
from triage.mailbox.searching import hits_of, search_command
from triage.mailbox.session import Session
from triage.ports import Moved

NEITHER = "the server has neither MOVE nor UIDPLUS: a message cannot be moved safely, it stays where it is"
STILL_THERE = "the server answered OK but the message is still there"


@dataclass
class _Tally:
    moved: dict[int, MessageRef | None] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)

    def result(self) -> Moved:
        return Moved(self.moved, frozenset(self.gone), self.refused)


def move(session: Session, source: str, uids: Sequence[int], target: str) -> Moved:
    """Move messages of `source` to `target`, creating `target` once if it is missing.

    With MOVE safe to repeat: what was moved before is `gone`. Without MOVE a connection lost between COPY and EXPUNGE
    leaves a message in both mailboxes; repeated, it is copied twice, never lost.
    Raises MailboxBusy where the server asks to stop writing, CommandRefused if `source` cannot be opened.
    """
    tally = _Tally()
    if not uids:
        return tally.result()
    if source == target:
        return Moved({}, frozenset(), dict.fromkeys(uids, f"{source} is source and target"))
    if session.use(source, read_only=False).read_only:
        return Moved({}, frozenset(), dict.fromkeys(uids, f"{source} is open read-only"))
    step = _step(session.capabilities)
    if step is None:
        return Moved({}, frozenset(), dict.fromkeys(uids, NEITHER))
    created = False
    for uid_set, members in sets.chunks(uids, sets.ROOM - 500):
        reply = step(session, uid_set, members, target, tally)
        if not reply.ok and reply.code == "TRYCREATE" and not created:
            create(session, target)
            created = True
            reply = step(session, uid_set, members, target, tally)
        if not reply.ok:
            reason = write_refusal(reply, f"to move to {target}")
            tally.refused.update({u: reason for u in members if u not in tally.gone and u not in tally.moved})
    return tally.result()


def _step(capabilities: frozenset[str]) -> Callable[[Session, str, Sequence[int], str, _Tally], Reply] | None:
    if "MOVE" in capabilities:
        return _move
    if "UIDPLUS" in capabilities and "X-GM-EXT-1" not in capabilities:  # at Gmail \\Deleted may mean the bin
        return _copy_and_expunge
    return None


def create(session: Session, mailbox: str) -> None:
    """CREATE and SUBSCRIBE. Raises MailboxBusy or CommandRefused, but not where the mailbox is there already."""
    name = mailbox_argument(mailbox)
    created, _ = session.run(b"CREATE " + name, b"SUBSCRIBE " + name)
    if not created.ok and created.code != "ALREADYEXISTS":
        raise refusal(created, f"to create {mailbox}")


def _move(session: Session, uid_set: str, members: Sequence[int], target: str, tally: _Tally) -> Reply:
    """MOVE behind a look, in one round trip: what was not there is gone, what COPYUID names is moved.

    Only where that leaves a message open, another look follows. It cannot go with the MOVE: Dovecot would answer it
    before it has let go of the messages.
    """
    look = _look(session, uid_set)
    before, moved = session.run(look, f"UID MOVE {uid_set} ".encode("ascii") + mailbox_argument(target))
    present = _present(before)
    places = copied(moved, target)
    tally.gone.update(uid for uid in members if uid not in present and uid not in places)
    tally.moved.update({uid: places[uid] for uid in members if uid in places})
    unsure = [uid for uid in members if uid in present and uid not in places]
    if unsure and _may_have_moved(moved):
        remaining = _present(session.run(look)[0])
        tally.moved.update(dict.fromkeys((uid for uid in unsure if uid not in remaining), None))
        if moved.ok:
            tally.refused.update({uid: STILL_THERE for uid in unsure if uid in remaining})
    return moved


def _may_have_moved(moved: Reply) -> bool:
    """A MOVE that failed half way may have moved some messages (RFC 6851, 3.3), one without a target none."""
    return moved.ok or (moved.status == "NO" and moved.code != "TRYCREATE")


def _look(session: Session, uid_set: str) -> bytes:
    return search_command(session.capabilities, f"UID {uid_set}")


def _copy_and_expunge(session: Session, uid_set: str, members: Sequence[int], target: str, tally: _Tally) -> Reply:
    before, copy = session.run(
        _look(session, uid_set), f"UID COPY {uid_set} ".encode("ascii") + mailbox_argument(target)
    )
    present = _present(before)
    tally.gone.update(uid for uid in members if uid not in present)
    if not copy.ok:
        return copy
    places = copied(copy, target)
    safe = [uid for uid in members if uid in (places or present)]
    if safe:
        _expunge(session, safe, places, tally)
    return copy


def _expunge(session: Session, uids: Sequence[int], places: dict[int, MessageRef], tally: _Tally) -> None:
    """Remove the originals. Where that fails, \\Deleted is taken off again: nobody else's EXPUNGE shall remove them."""
    for uid_set, members in sets.chunks(uids):
        marked, expunged = session.run(
            f"UID STORE {uid_set} +FLAGS.SILENT (\\Deleted)".encode("ascii"),
            f"UID EXPUNGE {uid_set}".encode("ascii"),
        )
        left = _present(session.run(_look(session, uid_set))[0]) & set(members)
        tally.moved.update({uid: places.get(uid) for uid in members if uid not in left})
        if left:
            session.run(*(f"UID STORE {s} -FLAGS.SILENT (\\Deleted)".encode("ascii") for s, _ in sets.chunks(left)))
            failed = next((r for r in (marked, expunged) if not r.ok), None)
            reason = write_refusal(failed, "UID EXPUNGE") if failed else STILL_THERE
            tally.refused.update(dict.fromkeys(left, reason))


def _present(reply: Reply) -> set[int]:
    if not reply.ok:
        raise refusal(reply, "SEARCH")
    return set(hits_of(reply))


def copied(reply: Reply, target: str) -> dict[int, MessageRef]:
    """Where messages went, from COPYUID (RFC 4315, 3); nothing if the server did not say, or said it wrongly."""
    places: dict[int, MessageRef] = {}
    for told in reply.code_values("COPYUID"):
        try:
            validity, sources, targets = told.split(" ")
            pairs = list(zip(sets.parse(sources), sets.parse(targets), strict=True))
            places.update({source: MessageRef(target, int(validity), uid) for source, uid in pairs})
        except ValueError:
            continue
    return places
