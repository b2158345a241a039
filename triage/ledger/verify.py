"""Verification of an account's chain: against itself, then against the records it tells of."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, select, true

from triage.domain.record import RunState
from triage.ledger.chain import GENESIS, RECEIPTS, Kind, digest, link_hash
from triage.ledger.forget import base_digest
from triage.ledger.rows import CONTENT, CORRECTION, RUN, correction_link, state_values, values_of
from triage.ledger.schema import chains, corrections, decisions, events, runs
from triage.ledger.store import Store
from triage.ledger.tool_rows import RECEIPT_COLUMNS
from triage.ledger.tool_schema import tool_receipts

_BATCH = 2_000
_NO_LINK = "recorded without a link in the chain"
_RUN_KINDS = (Kind.RUN_FINISHED.value,)
_CORRECTION_KINDS = tuple(kind.value for kind in (Kind.CORRECTED, Kind.CONFIRMED, Kind.UNDOING, Kind.UNDONE))
_RECEIPT_KINDS = (Kind.RECEIPT.value,)
_ELSEWHERE = (*_RUN_KINDS, *_CORRECTION_KINDS, *_RECEIPT_KINDS, Kind.PRUNED.value)
_DECISION_KINDS = tuple(kind.value for kind in Kind if kind.value not in _ELSEWHERE)


class VerifyPart(Store):
    """Finding records that were edited, removed, inserted or reordered behind the program's back."""

    def verify_chain(self, account: str, limit: int = 100) -> list[str]:
        """What is wrong with an account's records, at most `limit` sentences; [] if all is as it was written.

        Reads everything once, in one state of the ledger, in bounded memory.
        """
        with self._snapshot() as connection, closing(whole_chain(connection, account)) as problems:
            return list(islice(problems, limit))


def whole_chain(connection: Connection, account: str) -> Generator[str]:
    """Every link against the one before it, and every record against its links."""
    chain = chain_of(connection, account)
    yield from ends(connection, account, chain)
    yield from links_hang_together(connection, account, chain, chain.base_seq + 1, chain.seq)
    for part in RECEIPTS_ONLY if account.startswith(RECEIPTS) else PARTS:
        yield from _subjects(connection, account, part)


def portion(connection: Connection, account: str, chain: Chain, first: int, last: int) -> Generator[str]:
    """The same for the links from `first` to `last`, and all that they tell of.

    Of a record that began before them, only what is told here or later is compared.
    """
    yield from links_hang_together(connection, account, chain, first, last)
    for part in PARTS:
        here = (events.c.account == account, events.c.seq.between(first, last), events.c.kind.in_(part.kinds))
        yield from _subjects(connection, account, part, first, select(events.c.subject).where(*here))


@dataclass(frozen=True, slots=True)
class Chain:
    """Where an account's chain hangs and where it ends, as its own row says."""

    seq: int = 0
    hash: bytes = GENESIS
    base_seq: int = 0
    base_hash: bytes = GENESIS


@dataclass(frozen=True, slots=True)
class Part:
    """One table that links tell of: by which kinds of links, and which of them introduce a record."""

    noun: str
    table: Table
    kinds: tuple[str, ...]
    begins: tuple[str, ...]
    told: Callable[[Row[Any]], Mapping[str, bytes]]
    linked: ColumnElement[bool] = field(default_factory=true)

    def rows(self, account: str) -> Select[Any]:
        """The account's records that must have a link, in the order of their ids."""
        of = self.table.c.account == account.removeprefix(RECEIPTS)
        return select(self.table).where(of, self.linked).order_by(self.table.c.id)


@contextmanager
def _stream(connection: Connection, statement: Select[Any]) -> Iterator[Iterator[Row[Any]]]:
    with connection.execution_options(yield_per=_BATCH).execute(statement) as result:
        yield iter(result)


def chain_of(connection: Connection, account: str) -> Chain:
    row = connection.execute(select(chains).where(chains.c.account == account)).one_or_none()
    return Chain(row.seq, row.hash, row.base_seq, row.base_hash) if row else Chain()


def ends(connection: Connection, account: str, chain: Chain) -> Iterator[str]:
    """Does the chain begin where retention cut it, or at its first link, and end where it is said to end?"""
    of_account = select(events.c.seq, events.c.hash, events.c.digest).where(events.c.account == account)
    newest = of_account.order_by(events.c.seq.desc()).limit(1)
    last = connection.execute(newest).one_or_none()
    seq, end = (last.seq, last.hash) if last else (chain.base_seq, chain.base_hash)
    if seq < chain.seq:
        yield _missing_links(account, seq + 1, chain.seq)
    elif (seq, end) != (chain.seq, chain.hash):
        yield f"{_whose(account)}: the chain ends at link {seq}, which is not the end that was recorded"
    oldest = connection.execute(select(func.min(events.c.seq)).where(events.c.account == account)).scalar_one()
    if oldest is not None and oldest <= chain.base_seq:
        yield f"{_whose(account)}: link {oldest} lies before the first of the chain ({chain.base_seq + 1})"
    if chain.base_seq > 0:
        cut = connection.execute(newest.where(events.c.kind == Kind.PRUNED.value)).one_or_none()
        if cut is None or cut.digest != base_digest(chain.base_seq, chain.base_hash):
            yield f"{_whose(account)}: links up to {chain.base_seq} were cut off, and not by retention"


def links_hang_together(connection: Connection, account: str, chain: Chain, first: int, last: int) -> Generator[str]:
    """Each link from `first` to `last` against the one before it, and the one after them against the last."""
    before = chain.base_hash
    if first > chain.base_seq + 1:
        anchor = select(events.c.hash).where(events.c.account == account, events.c.seq == first - 1)
        before = connection.execute(anchor).scalar_one_or_none() or b""
    statement = select(events).where(events.c.account == account, events.c.seq.between(first, last + 1))
    seq = first - 1
    with _stream(connection, statement.order_by(events.c.seq)) as links:
        for link in links:
            if link.seq != seq + 1:
                yield _missing_links(account, seq + 1, link.seq - 1)
            elif link_hash(before, account, link.seq, link.at, link.kind, link.subject, link.digest) != link.hash:
                yield f"{_whose(account)}: link {link.seq} ({link.kind} {link.subject}) was edited or reordered"
            seq, before = link.seq, link.hash
    if seq < last < chain.seq:
        yield _missing_links(account, seq + 1, last)


def _missing_links(account: str, first: int, last: int) -> str:
    if last < first:
        return f"{_whose(account)}: link {first - 1} is there twice or was moved"
    return f"{_whose(account)}: links {first} to {last} are missing"


def _whose(chain: str) -> str:
    account = chain.removeprefix(RECEIPTS)
    return f"account {account}" if account == chain else f"account {account}, receipts of the mail tool"


def unlinked(connection: Connection, account: str, part: Part) -> Iterator[str]:
    """Records that no link introduces."""
    begun = select(events.c.subject).where(events.c.account == account, events.c.kind.in_(part.begins))
    statement = part.rows(account).with_only_columns(part.table.c.id).where(part.table.c.id.not_in(begun))
    for record_id in connection.execute(statement).scalars():
        yield f"account {account}, {part.noun} {record_id}: {_NO_LINK}"


def _of_correction(row: Row[Any]) -> Mapping[str, bytes]:
    return {correction_link(row.kind).value: digest(values_of(row, CORRECTION), row.salt)}


def _of_decision(row: Row[Any]) -> Mapping[str, bytes]:
    told = {Kind.DECIDED: values_of(row, CONTENT), **state_values(row._mapping)}
    return {kind.value: digest(values, row.salt) for kind, values in told.items()}


def _of_receipt(row: Row[Any]) -> Mapping[str, bytes]:
    return {Kind.RECEIPT.value: digest(values_of(row, RECEIPT_COLUMNS), row.salt)}


def _of_run(row: Row[Any]) -> Mapping[str, bytes]:
    return {Kind.RUN_FINISHED.value: digest(values_of(row, RUN))}


PARTS = (
    Part("decision", decisions, _DECISION_KINDS, (Kind.DECIDED.value,), _of_decision),
    Part("run", runs, _RUN_KINDS, _RUN_KINDS, _of_run, runs.c.state.in_([RunState.DONE.value, RunState.FAILED.value])),
    Part("correction", corrections, (*_CORRECTION_KINDS, Kind.FORGOTTEN.value), _CORRECTION_KINDS, _of_correction),
)
RECEIPTS_ONLY = (Part("receipt", tool_receipts, _RECEIPT_KINDS, _RECEIPT_KINDS, _of_receipt),)
"""What a chain of receipts tells of."""


def _subjects(
    connection: Connection, account: str, part: Part, first: int = 0, only: Select[Any] | None = None
) -> Iterator[str]:
    """Rows and links side by side, both in the order of their ids: each must bear the other out.

    With `first`, links before it are not read, and with `only`, nothing but these records and their links.
    """
    links_of = (
        select(events.c.subject, events.c.kind, events.c.digest)
        .where(events.c.account == account, events.c.kind.in_(part.kinds), events.c.seq >= first)
        .order_by(events.c.subject, events.c.seq)
    )
    rows = part.rows(account)
    if only is not None:
        links_of, rows = links_of.where(events.c.subject.in_(only)), rows.where(part.table.c.id.in_(only))
    with _stream(connection, links_of) as linked, _stream(connection, rows) as recorded:
        for subject, links, row in _side_by_side(linked, recorded):
            name = f"account {account.removeprefix(RECEIPTS)}, {part.noun} {subject}"
            if row is None:
                if _must_exist(links):
                    yield f"{name}: the record is missing"
            elif not links:
                yield f"{name}: {_NO_LINK}"
            else:
                told = part.told(row)
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
    return Kind.DECIDED in links or any(kind in links for kind in (*_RUN_KINDS, *_CORRECTION_KINDS, *_RECEIPT_KINDS))


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
            yield "edited after it was written" if kind in _RECEIPT_KINDS else f"edited after it was {kind}"
