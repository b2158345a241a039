"""Verification of an account's chain: against itself, then against the records it tells of."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, Select, func, or_, select

from triage.domain.record import RunState
from triage.ledger.chain import GENESIS, Kind, digest, link_hash
from triage.ledger.forget import base_digest
from triage.ledger.rows import CONTENT, CORRECTION, RUN, correction_link, state_values, values_of
from triage.ledger.schema import chains, corrections, decisions, events, runs
from triage.ledger.store import Store

_BATCH = 2_000
_SLACK = timedelta(minutes=10)  # a record's own time and its link's are two readings of a clock that may be set
_Teller = Callable[[Row[Any]], Mapping[str, bytes]]
_RUN_KINDS = (Kind.RUN_FINISHED.value,)
_CORRECTION_KINDS = tuple(kind.value for kind in (Kind.CORRECTED, Kind.CONFIRMED, Kind.UNDOING, Kind.UNDONE))
_DECISION_KINDS = tuple(
    kind.value for kind in Kind if kind.value not in (*_RUN_KINDS, *_CORRECTION_KINDS) and kind is not Kind.PRUNED
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verified:
    """Links `first` to `last` of a chain whose oldest kept link is `oldest`, and what is wrong with them."""

    first: int
    last: int
    oldest: int
    problems: tuple[str, ...]

    @property
    def links(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> bool:
        return self.first == self.oldest


class VerifyPart(Store):
    """Finding records that were edited, removed, inserted or reordered behind the program's back."""

    def verify_chain(self, account: str, limit: int = 100) -> list[str]:
        """What is wrong with an account's records, at most `limit` sentences; [] if all is as it was written.

        Reads everything once, in one state of the ledger, in bounded memory.
        """
        found: list[str] = []
        with self._snapshot() as connection, closing(self._problems(connection, account)) as problems:
            for problem in problems:
                found.append(problem)
                if len(found) == limit:
                    break
        return found

    def verify_newest(self, account: str, links: int, limit: int = 100) -> Verified:
        """As `verify_chain`, over the newest `links` of the chain and the records they tell of; all if they are few.

        The links before are only counted: none is missing. What was changed in their records is found by
        `verify_chain`.
        """
        found: list[str] = []
        with self._snapshot() as connection:
            chain = connection.execute(select(chains).where(chains.c.account == account)).one_or_none()
            if chain is None or chain.seq - chain.base_seq <= links:
                problems, first = self._problems(connection, account), (chain.base_seq if chain else 0) + 1
            else:
                first = chain.seq - links + 1
                problems = _newest_problems(connection, account, first, chain.seq - chain.base_seq)
            with closing(problems):
                for problem in problems:
                    found.append(problem)
                    if len(found) == limit:
                        break
        return Verified(first, chain.seq if chain else 0, chain.base_seq + 1 if chain else 1, tuple(found))

    def _problems(self, connection: Connection, account: str) -> Generator[str]:
        yield from _links(connection, account)
        yield from _subjects(connection, account, "decision", _DECISION_KINDS, _decision_rows(account), _of_decision)
        yield from _subjects(connection, account, "run", _RUN_KINDS, _run_rows(account), _of_run)
        kinds = (*_CORRECTION_KINDS, Kind.FORGOTTEN.value)
        yield from _subjects(connection, account, "correction", kinds, _correction_rows(account), _of_correction)


@contextmanager
def _stream(connection: Connection, statement: Select[Any]) -> Iterator[Iterator[Row[Any]]]:
    with connection.execution_options(yield_per=_BATCH).execute(statement) as result:
        yield iter(result)


def _newest_problems(connection: Connection, account: str, first: int, expected: int) -> Generator[str]:
    """As `_problems`, from link `first` on; `expected` is how many links there must be in all."""
    held = connection.execute(select(func.count()).select_from(events).where(events.c.account == account)).scalar_one()
    if held != expected:
        yield f"account {account}: {held:,} links are there, {expected:,} should be"
    yield from _links(connection, account, first)
    here = (events.c.account == account, events.c.seq >= first)
    began = connection.execute(select(func.min(events.c.at)).where(*here)).scalar_one()
    told_of = select(events.c.subject).where(*here)
    newest = {
        "decision": (_DECISION_KINDS, _decision_rows(account), decisions.c.id, decisions.c.decided_at, _of_decision),
        "run": (_RUN_KINDS, _run_rows(account), runs.c.id, runs.c.finished_at, _of_run),
        "correction": (
            (*_CORRECTION_KINDS, Kind.FORGOTTEN.value),
            _correction_rows(account),
            corrections.c.id,
            corrections.c.at,
            _of_correction,
        ),
    }
    for noun, (kinds, rows, row_id, at, told_by) in newest.items():
        rows = rows.where(or_(row_id.in_(told_of.where(events.c.kind.in_(kinds))), at > began + _SLACK))
        yield from _subjects(connection, account, noun, kinds, rows, told_by, first)


def _links(connection: Connection, account: str, first: int = 0) -> Iterator[str]:
    """Every link against the one before it, from the base (or link `first`) to the end that the account's row names."""
    chain = connection.execute(select(chains).where(chains.c.account == account)).one_or_none()
    if chain is None:
        seq, before, end = 0, GENESIS, (0, GENESIS)
    else:
        seq, before, end = chain.base_seq, chain.base_hash, (chain.seq, chain.hash)
    base, pruned = (seq, before), None
    if first > seq + 1:
        anchor = select(events.c.hash).where(events.c.account == account, events.c.seq == first - 1)
        seq, before, base = first - 1, connection.execute(anchor).scalar_one_or_none() or b"", (0, GENESIS)
    statement = select(events).where(events.c.account == account, events.c.seq > seq).order_by(events.c.seq)
    with _stream(connection, statement) as links:
        for link in links:
            if link.seq != seq + 1:
                yield _missing_links(account, seq + 1, link.seq - 1)
            elif link_hash(before, account, link.seq, link.at, link.kind, link.subject, link.digest) != link.hash:
                yield f"account {account}: link {link.seq} ({link.kind} {link.subject}) was edited or reordered"
            if link.kind == Kind.PRUNED:
                pruned = link.digest
            seq, before = link.seq, link.hash
    if seq < end[0]:
        yield _missing_links(account, seq + 1, end[0])
    elif (seq, before) != end:
        yield f"account {account}: the chain ends at link {seq}, which is not the end that was recorded"
    if base[0] > 0 and pruned != base_digest(*base):
        yield f"account {account}: links up to {base[0]} were cut off, and not by retention"


def _missing_links(account: str, first: int, last: int) -> str:
    if last < first:
        return f"account {account}: link {first - 1} is there twice or was moved"
    return f"account {account}: links {first} to {last} are missing"


def _decision_rows(account: str) -> Select[Any]:
    return select(decisions).where(decisions.c.account == account).order_by(decisions.c.id)


def _run_rows(account: str) -> Select[Any]:
    over = runs.c.state.in_([RunState.DONE.value, RunState.FAILED.value])
    return select(runs).where(runs.c.account == account, over).order_by(runs.c.id)


def _correction_rows(account: str) -> Select[Any]:
    return select(corrections).where(corrections.c.account == account).order_by(corrections.c.id)


def _of_correction(row: Row[Any]) -> Mapping[str, bytes]:
    return {correction_link(row.kind).value: digest(values_of(row, CORRECTION), row.salt)}


def _of_decision(row: Row[Any]) -> Mapping[str, bytes]:
    told = {Kind.DECIDED: values_of(row, CONTENT), **state_values(row._mapping)}
    return {kind.value: digest(values, row.salt) for kind, values in told.items()}


def _of_run(row: Row[Any]) -> Mapping[str, bytes]:
    return {Kind.RUN_FINISHED.value: digest(values_of(row, RUN))}


def _subjects(
    connection: Connection,
    account: str,
    noun: str,
    kinds: tuple[str, ...],
    rows: Select[Any],
    told_by: _Teller,
    first: int = 0,
) -> Iterator[str]:
    """Rows and links side by side, both in the order of their ids: each must bear the other out.

    With `first`, links before it are not read: of a record that began before, only what is told here is compared.
    """
    in_order = (
        select(events.c.subject, events.c.kind, events.c.digest)
        .where(events.c.account == account, events.c.kind.in_(kinds), events.c.seq >= first)
        .order_by(events.c.subject, events.c.seq)
    )
    with _stream(connection, in_order) as linked, _stream(connection, rows) as recorded:
        for subject, links, row in _side_by_side(linked, recorded):
            name = f"account {account}, {noun} {subject}"
            if row is None:
                if _must_exist(links):
                    yield f"{name}: the record is missing"
            elif not links:
                yield f"{name}: recorded without a link in the chain"
            else:
                told = told_by(row)
                if first and Kind.DECIDED in told and Kind.DECIDED not in links:
                    told = {kind: digest for kind, digest in told.items() if kind in links}
                yield from (f"{name}: {what}" for what in _compare(links, told))


def _side_by_side(
    linked: Iterator[Row[Any]], recorded: Iterator[Row[Any]]
) -> Iterator[tuple[str, Mapping[str, bytes], Row[Any] | None]]:
    """For each id that either side knows: its links by kind (none: {}), and its row (none: None)."""
    groups = groupby(linked, key=lambda link: str(link.subject))
    group, row = next(groups, None), next(recorded, None)
    while group is not None or row is not None:
        subject = min(([group[0]] if group else []) + ([row.id] if row else []))
        links: Mapping[str, bytes] = {}
        found = None
        if group is not None and group[0] == subject:
            links = {link.kind: link.digest for link in group[1]}
            group = next(groups, None)
        if row is not None and row.id == subject:
            found, row = row, next(recorded, None)
        yield subject, links, found


def _must_exist(links: Mapping[str, bytes]) -> bool:
    """Runs always; decisions, unless they were forgotten, or retention took them and left the last of their links."""
    if Kind.FORGOTTEN in links:
        return False
    return Kind.DECIDED in links or any(kind in links for kind in (*_RUN_KINDS, *_CORRECTION_KINDS))


def _compare(links: Mapping[str, bytes], told: Mapping[str, bytes]) -> Iterator[str]:
    if Kind.FORGOTTEN in links:
        yield "forgotten, and back again"
        return
    for kind in sorted(links.keys() | told.keys()):
        if kind not in links:
            yield f"says {kind}, which the chain does not"
        elif kind not in told:
            yield f"does not say {kind}, which the chain does"
        elif links[kind] != told[kind]:
            yield f"edited after it was {kind}"
