"""Corrections: what became of decisions afterwards, recorded beside them and never over them."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import BindParameter, Connection, Select, bindparam, func, insert, or_, select

from triage.domain.correction import TAKEN_BACK, Correction, CorrectionKind
from triage.domain.record import DecisionRecord
from triage.ledger.chain import Link, append, digest
from triage.ledger.journal import JournalPart
from triage.ledger.rows import CORRECTION, correction_link, correction_values, to_correction, to_decision
from triage.ledger.schema import corrections, decisions

_AT_ONCE = 500
_KEYS: BindParameter[str] = bindparam("keys", expanding=True)
_LABELLED_BEFORE = (
    select(decisions)
    .where(
        decisions.c.message_key.in_(_KEYS), decisions.c.account == bindparam("of"), decisions.c.labelled_at.is_not(None)
    )
    .order_by(decisions.c.decided_at, decisions.c.id)
)
_TAKEN_BACK = tuple(
    select(column).where(
        corrections.c.account == bindparam("of"),
        corrections.c.kind.in_([kind.value for kind in TAKEN_BACK]),
        column.in_(_KEYS),
    )
    for column in (corrections.c.message_id_key, corrections.c.message_key)
)
_Said = tuple[CorrectionKind, str | None, str]


class CorrectionsPart(JournalPart):
    """`triage.pipeline.corrections.Corrections`, and what reports and undo read."""

    def record_corrections(self, found: Sequence[Correction]) -> tuple[Correction, ...]:
        """Record what is news: what the latest record of the same decision and matter says already is passed over.

        Each is chained. Returns those recorded.
        """

        def work(connection: Connection) -> tuple[Correction, ...]:
            known = _latest(connection, [c.decision_id for c in found])
            fresh = [c for c in found if (c.kind, c.to_label, c.message_key) not in known.get(c.decision_id, ())]
            links: dict[str, list[Link]] = defaultdict(list)
            for correction in fresh:
                values, salt = correction_values(correction), secrets.token_bytes(16)
                connection.execute(insert(corrections).values(**values, salt=salt))
                content = digest([values[column.name] for column in CORRECTION], salt)
                links[correction.account].append(Link(correction_link(correction.kind), correction.id, content))
            for account in sorted(links):
                append(connection, self._backend, account, self._clock.now(), links[account])
            return tuple(fresh)

        return self._write(work) if found else ()

    def corrections(
        self, account: str | None = None, since: datetime | None = None, limit: int = 10_000
    ) -> tuple[Correction, ...]:
        """What was found since an instant, newest first."""
        statement = select(corrections).order_by(corrections.c.at.desc(), corrections.c.id.desc()).limit(limit)
        if account is not None:
            statement = statement.where(corrections.c.account == account)
        if since is not None:
            statement = statement.where(corrections.c.at >= since)
        return self._corrections(statement)

    def corrections_of(self, decision_ids: Sequence[str]) -> tuple[Correction, ...]:
        """All that was found about these decisions, oldest first."""
        found: list[Correction] = []
        for some in _portions(decision_ids):
            found += self._corrections(
                select(corrections)
                .where(corrections.c.decision_id.in_(some))
                .order_by(corrections.c.at, corrections.c.id)
            )
        return tuple(found)

    def reviewed(
        self, account: str, since: datetime, limit: int = 20_000
    ) -> tuple[tuple[Correction, DecisionRecord], ...]:
        """Corrections found since an instant with the decisions they are about, newest first."""
        statement = (
            select(corrections.c.id.label("correction_id"), *decisions.c)
            .join(decisions, decisions.c.id == corrections.c.decision_id)
            .where(corrections.c.account == account, corrections.c.at >= since)
            .order_by(corrections.c.at.desc(), corrections.c.id.desc())
            .limit(limit)
        )
        by_id = {c.id: c for c in self.corrections(account, since, limit)}
        with self._reading() as connection:
            rows = connection.execute(statement).all()
        return tuple((by_id[r.correction_id], to_decision(r)) for r in rows if r.correction_id in by_id)

    def recent_labelled(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]:
        """The newest decisions whose label was stored, at most `limit`, newest first."""
        statement = (
            select(decisions)
            .where(
                decisions.c.account == account, decisions.c.decided_at >= since, decisions.c.labelled_at.is_not(None)
            )
            .order_by(decisions.c.decided_at.desc(), decisions.c.id.desc())
            .limit(limit)
        )
        return self._decisions(statement)

    def earlier_decisions(self, account: str, message_keys: Sequence[str]) -> Mapping[str, DecisionRecord]:
        """By message key the newest decision whose label was once stored on that very message."""
        found: dict[str, DecisionRecord] = {}
        with self._reading() as connection:
            for some in _portions(message_keys):
                rows = connection.execute(_LABELLED_BEFORE, {"of": account, "keys": some})
                found |= {row.message_key: to_decision(row) for row in rows}
        return found

    def taken_back(self, account: str, keys: Sequence[str]) -> frozenset[str]:
        """Those of these fingerprints (of messages or Message-IDs) that `triage undo` took back, or was about to."""
        found: set[str] = set()
        with self._reading() as connection:
            for some in _portions([key for key in dict.fromkeys(keys) if key]):
                for statement in _TAKEN_BACK:
                    found.update(connection.execute(statement, {"of": account, "keys": some}).scalars())
        return frozenset(found)

    def looked_for_corrections(self, account: str) -> datetime | None:
        """When corrections were last looked for, None if never."""
        state = self._load("corrections", account)
        return datetime.fromisoformat(str(state["at"])) if state else None

    def note_look(self, account: str, at: datetime) -> None:
        self._save("corrections", account, {"at": at.isoformat()})

    def correction_counts(self, account: str, since: datetime) -> Mapping[tuple[str, str, str | None], int]:
        """How often each (kind, from label, to label) was found since an instant."""
        columns = (corrections.c.kind, corrections.c.from_label, corrections.c.to_label)
        statement = (
            select(*columns, func.count())
            .where(corrections.c.account == account, corrections.c.at >= since)
            .group_by(*columns)
        )
        with self._reading() as connection:
            return {(kind, before, after): n for kind, before, after, n in connection.execute(statement)}

    def decisions_by_message(self, account: str, key: str) -> tuple[DecisionRecord, ...]:
        """All decisions of one message, by its key or its Message-ID's, oldest first."""
        same = or_(decisions.c.message_key == key, decisions.c.message_id_key == key)
        return self._decisions(
            select(decisions)
            .where(decisions.c.account == account, same)
            .order_by(decisions.c.decided_at, decisions.c.id)
        )

    def _corrections(self, statement: Select[tuple[object, ...]]) -> tuple[Correction, ...]:
        with self._reading() as connection:
            return tuple(to_correction(row) for row in connection.execute(statement))


def new_correction_id() -> str:
    return secrets.token_hex(12)


def _latest(connection: Connection, decision_ids: Iterable[str]) -> Mapping[str, set[_Said]]:
    """For each decision what its newest record of each kind says."""
    found: dict[str, dict[str, _Said]] = defaultdict(dict)
    for some in _portions(list(dict.fromkeys(decision_ids))):
        statement = (
            select(corrections.c.decision_id, corrections.c.kind, corrections.c.to_label, corrections.c.message_key)
            .where(corrections.c.decision_id.in_(some))
            .order_by(corrections.c.at, corrections.c.id)
        )
        for row in connection.execute(statement):
            matter = "place" if row.kind == CorrectionKind.MOVED_BACK else "label"
            found[row.decision_id][matter] = (CorrectionKind(row.kind), row.to_label, row.message_key)
    return {decision_id: set(by_matter.values()) for decision_id, by_matter in found.items()}


def _portions(items: Sequence[str]) -> list[Sequence[str]]:
    return [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
