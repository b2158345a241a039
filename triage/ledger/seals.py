"""Seals: a chain of millions of links is verified anew only where something is not as it was.

A seal is the SHA-256 of a block of links and of the records that they introduce, byte for byte as stored, at a moment
when links and records bore each other out. Each verification reads all of it again, which the database does a hundred
times quicker than Python can recompute every digest; a block that is not as it was sealed is verified link by link, and
sealed anew if it holds. So a seal is never trusted instead of a record, only instead of the arithmetic.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain as chained
from itertools import islice, pairwise

from sqlalchemy import Connection, delete, func, select

from triage.domain.errors import LedgerError
from triage.ledger.chain import receipts_chain
from triage.ledger.schema import events, seals
from triage.ledger.verify import (
    PARTS,
    Chain,
    VerifyPart,
    chain_of,
    ends,
    links_hang_together,
    portion,
    unlinked,
    whole_chain,
)

BLOCK = 10_000
"""Links in a block: about 3,700 decisions, some 5 MB of text at a time."""
_SIDE_BY_SIDE = 2
_MOST_SPANS = 8
"""A span in the middle of the chain costs a look through all links after it: of more, everything is verified."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The links of an account's chain, how many of them were verified one by one, and what is wrong.

    The others are, with their records, as they were when they were verified one by one. `pruned`: retention took the
    oldest links.
    """

    links: int
    anew: int
    problems: tuple[str, ...]
    pruned: bool = False


@dataclass(frozen=True, slots=True)
class _Block:
    """A block as it is: its digest, and of each table how many records its links introduce."""

    digest: bytes
    records: tuple[int, ...]


class SealsPart(VerifyPart):
    """Verification that remembers."""

    def verify_receipts(self, account: str, limit: int = 100) -> Verified:
        """Every receipt of the mail tool, and the chain that they hang on."""
        name = receipts_chain(account)
        with self._snapshot() as connection, closing(whole_chain(connection, name)) as problems:
            chain = chain_of(connection, name)
            links = chain.seq - chain.base_seq
            return Verified(links, links, tuple(islice(problems, limit)), chain.base_seq > 0)

    def verify(self, account: str, *, whole: bool = False, limit: int = 100) -> Verified:
        """As `verify_chain`, with the seals of former verifications; `whole` breaks them all. Renews them."""
        with self._snapshot() as connection:
            before = chain_of(connection, account)
            sealed = {} if whole else _seals(connection, account)
            known = _numbers(connection, account, before)
        blocks = self._read_all(account, before, known)
        with self._snapshot() as connection:
            chain = chain_of(connection, account)
            numbers = _numbers(connection, account, chain)
            doubtful = [n for n in numbers if n not in blocks or sealed.get(n) != blocks[n].digest]
            full = [n for n in doubtful if (n + 1) * BLOCK <= chain.seq]
            fresh = {n: self._read(connection, account, chain, n).digest for n in full}
            spans = _spans(doubtful, chain)
            with closing(_problems(connection, account, chain, spans, blocks)) as found:
                problems = tuple(islice(found, limit))
        if fresh and not problems:
            self._seal(account, fresh, chain)
        anew = sum(last - first + 1 for first, last in spans)
        return Verified(chain.seq - chain.base_seq, anew, problems, chain.base_seq > 0)

    def _read_all(self, account: str, chain: Chain, numbers: Sequence[int]) -> Mapping[int, _Block]:
        """Every block, two at a time: the work is the database's, outside Python's lock."""

        def read(number: int) -> _Block:
            with self._snapshot() as connection:
                return self._read(connection, account, chain, number)

        with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="verify") as pool:
            return dict(zip(numbers, pool.map(read, numbers), strict=True))

    def _read(self, connection: Connection, account: str, chain: Chain, number: int) -> _Block:
        first, last = _bounds(number, chain)
        here = (events.c.account == account, events.c.seq.between(first, last))
        sha, counts = hashlib.sha256(), []
        for table, kinds in ((events, None), *((part.table, part.begins) for part in PARTS)):
            text = self._backend.row_text(table).label("text")
            rows = select(text).where(*here).order_by(events.c.seq)
            if kinds is not None:
                rows = rows.join_from(events, table, table.c.id == events.c.subject).where(events.c.kind.in_(kinds))
            of_rows = rows.subquery()
            together = select(func.count(), self._backend.together(of_rows.c.text))
            count, content = connection.execute(together).one()
            sha.update(b"%d\n" % count + (content or b""))
            counts.append(count)
        return _Block(sha.digest(), tuple(counts[1:]))

    def _seal(self, account: str, fresh: Mapping[int, bytes], chain: Chain) -> None:
        at = self._clock.now()
        insert = self._backend.insert(seals)
        renewed = {name: insert.excluded[name] for name in ("digest", "sealed_at")}
        statement = insert.on_conflict_do_update(index_elements=["account", "block"], set_=renewed)
        rows = [{"account": account, "block": n, "digest": value, "sealed_at": at} for n, value in fresh.items()]

        def work(connection: Connection) -> None:
            connection.execute(delete(seals).where(seals.c.account == account, seals.c.block < chain.base_seq // BLOCK))
            connection.execute(statement, rows)

        with suppress(LedgerError):  # without them the next verification takes longer, and that is all
            self._write(work)


def _seals(connection: Connection, account: str) -> dict[int, bytes]:
    rows = connection.execute(select(seals.c.block, seals.c.digest).where(seals.c.account == account))
    return {row.block: row.digest for row in rows}


def _numbers(connection: Connection, account: str, chain: Chain) -> range:
    newest = select(func.max(events.c.seq)).where(events.c.account == account)
    last = min(chain.seq, connection.execute(newest).scalar_one() or 0)
    return range(chain.base_seq // BLOCK, -(-last // BLOCK))


def _bounds(number: int, chain: Chain) -> tuple[int, int]:
    return max(chain.base_seq, number * BLOCK) + 1, min(chain.seq, (number + 1) * BLOCK)


def _spans(numbers: Sequence[int], chain: Chain) -> list[tuple[int, int]]:
    """First and last link of each row of neighbouring blocks."""
    breaks = [0, *(i for i, (a, b) in enumerate(pairwise(numbers), 1) if b != a + 1), len(numbers)]
    groups = [numbers[a:b] for a, b in pairwise(breaks) if b > a]
    return [(_bounds(group[0], chain)[0], _bounds(group[-1], chain)[1]) for group in groups]


def _problems(
    connection: Connection,
    account: str,
    chain: Chain,
    spans: Sequence[tuple[int, int]],
    blocks: Mapping[int, _Block],
) -> Generator[str]:
    everything = (chain.base_seq + 1, chain.seq)
    if chain.seq == 0 or len(spans) > _MOST_SPANS or list(spans) == [everything]:
        yield from whole_chain(connection, account)
        return
    yield from ends(connection, account, chain)
    yield from links_hang_together(connection, account, chain, everything[0], everything[0])
    yield from chained.from_iterable(portion(connection, account, chain, *span) for span in spans)
    for index, part in enumerate(PARTS):
        held = select(func.count()).select_from(part.table).where(part.table.c.account == account, part.linked)
        if connection.execute(held).scalar_one() != sum(block.records[index] for block in blocks.values()):
            # Something was put in, or a run went on meanwhile.
            yield from unlinked(connection, account, part)
