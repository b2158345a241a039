"""Forgetting: records leave the ledger, and the chain still tells that nothing else did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, takewhile

from sqlalchemy import ColumnElement, Connection, delete, select, update

from triage.domain.record import RunState
from triage.ledger.chain import GENESIS, HOLDS_RECEIPTS, Kind, Link, append, digest
from triage.ledger.schema import chains, corrections, decisions, events, runs, states
from triage.ledger.states import SUMS_OF_DAY
from triage.ledger.store import Store

_AT_ONCE = 500  # rows a transaction: short enough that no run waits for it

_CORRECTIONS = frozenset({Kind.CORRECTED, Kind.CONFIRMED, Kind.UNDOING, Kind.UNDONE})


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many records went."""

    decisions: int = 0
    runs: int = 0

    def __add__(self, other: Forgotten) -> Forgotten:
        return Forgotten(self.decisions + other.decisions, self.runs + other.runs)


class ForgetPart(Store):
    """Removing records on request (`forget`) and by age (`enforce_retention`)."""

    def forget(self, *, decision_ids: Sequence[str] = (), sender_domain: str | None = None) -> int:
        """Remove decisions, by id or all of one sender's domain; how many went. Their links stay, as bare digests.

        An unfinished decision goes too: its message is decided anew.
        """
        gone = 0
        for start in range(0, len(decision_ids), _AT_ONCE):
            gone += self._forget_all(decisions.c.id.in_(decision_ids[start : start + _AT_ONCE]))
        if sender_domain:
            gone += self._forget_all(decisions.c.sender_domain == sender_domain)
        return gone

    def enforce_retention(self, before: datetime) -> Forgotten:
        """Remove what was recorded before an instant, and shorten each account's chain by it. Repeatable.

        Receipts of the mail tool are kept for a time of their own; see `forget_receipts`.
        """
        with self._reading() as connection:
            ends = connection.execute(select(chains.c.account, chains.c.seq).where(~HOLDS_RECEIPTS)).all()
        total = Forgotten(runs=self._write(lambda connection: _drop_coalesced(connection, before)))
        counted = delete(states).where(states.c.kind == SUMS_OF_DAY, states.c.key < before.date().isoformat())
        self._write(lambda connection: connection.execute(counted).rowcount)
        for account, end in ends:  # each cut tells of itself in a new link, which is not cut in its turn
            while gone := self._write(lambda connection, a=account, e=end: self._prune(connection, a, before, e)):  # type: ignore[misc]
                total += gone
        return total

    def _forget_all(self, which: ColumnElement[bool]) -> int:
        def work(connection: Connection) -> int:
            some = select(decisions.c.id).where(which).order_by(decisions.c.id).limit(_AT_ONCE)
            statement = delete(decisions).where(decisions.c.id.in_(some))
            rows = list(connection.execute(statement.returning(decisions.c.account, decisions.c.id)))
            count = len(rows)
            theirs = delete(corrections).where(corrections.c.decision_id.in_([row.id for row in rows]))
            rows += connection.execute(theirs.returning(corrections.c.account, corrections.c.id))
            for account, group in groupby(sorted(tuple(row) for row in rows), key=lambda row: row[0]):
                links = [Link(Kind.FORGOTTEN, decision_id, digest([decision_id])) for _, decision_id in group]
                append(connection, self._backend, account, self._clock.now(), links)
            return count

        gone = 0
        while some := self._write(work):
            gone += some
        return gone

    def _prune(self, connection: Connection, account: str, before: datetime, last: int) -> Forgotten | None:
        """Cut the oldest links of one chain up to `last`, with the records they tell of; None if none is old enough."""
        chain = connection.execute(select(chains).where(chains.c.account == account).with_for_update()).one()
        oldest = (
            select(events.c.seq, events.c.at, events.c.kind, events.c.subject, events.c.hash)
            .where(events.c.account == account, events.c.seq > chain.base_seq, events.c.seq <= last)
            .order_by(events.c.seq)
            .limit(_AT_ONCE)
        )
        old = list(takewhile(lambda event: event.at < before, connection.execute(oldest)))
        if not old:
            return None
        decided = [event.subject for event in old if event.kind == Kind.DECIDED]
        corrected = [event.subject for event in old if event.kind in _CORRECTIONS]
        finished = [event.subject for event in old if event.kind == Kind.RUN_FINISHED]
        gone = Forgotten(
            decisions=connection.execute(delete(decisions).where(decisions.c.id.in_(decided))).rowcount,
            runs=connection.execute(delete(runs).where(runs.c.id.in_(finished))).rowcount,
        )
        connection.execute(delete(corrections).where(corrections.c.id.in_(corrected)))
        base = old[-1]
        connection.execute(delete(events).where(events.c.account == account, events.c.seq <= base.seq))
        connection.execute(
            update(chains).where(chains.c.account == account).values(base_seq=base.seq, base_hash=base.hash)
        )
        told = Link(Kind.PRUNED, str(base.seq), base_digest(base.seq, base.hash))
        append(connection, self._backend, account, self._clock.now(), [told])
        return gone


def base_digest(seq: int, base_hash: bytes = GENESIS) -> bytes:
    """What a pruned link says of the place where the chain begins now."""
    return digest([seq, base_hash.hex()])


def _drop_coalesced(connection: Connection, before: datetime) -> int:
    # Coalesced fires never ran: they have no links.
    old = delete(runs).where(runs.c.state == RunState.COALESCED.value, runs.c.enqueued_at < before)
    return connection.execute(old).rowcount
