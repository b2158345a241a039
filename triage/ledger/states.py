"""Small values that outlive a process: breakers, what is remembered of an account, the ledger's own key."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, select

from triage.ledger.rows import to_json
from triage.ledger.schema import states
from triage.ledger.store import Store

_VALUE = select(states.c.value).where(states.c.kind == bindparam("of_kind"), states.c.key == bindparam("of_key"))
SUMS_OF_DAY = "day"
"""The kind of what pages counted for a day; its keys begin with the day."""


class StatesPart(Store):
    """BreakerStore of `triage.ports`, and the same for accounts."""

    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return self._load("breaker", key)

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        self._save("breaker", key, value)

    def account_state(self, account: str) -> Mapping[str, object]:
        """What is remembered of an account from run to run (a refused login, say); {} if nothing is."""
        return self._load("account", account) or {}

    def save_account_state(self, account: str, value: Mapping[str, object]) -> None:
        """Replace what is remembered of an account. `value` must be JSON."""
        self._save("account", account, value)

    def learning(self, account: str) -> Mapping[str, object]:
        """What learning from an account's mailbox came to last; {} if nothing was learned yet."""
        return self._load("learning", account) or {}

    def save_learning(self, account: str, value: Mapping[str, object]) -> None:
        """Replace the summary of what was learned. `value` must be JSON."""
        self._save("learning", account, value)

    def _load(self, kind: str, key: str) -> dict[str, object] | None:
        with self._reading() as connection:
            value = connection.execute(_VALUE, {"of_kind": kind, "of_key": key}).scalar_one_or_none()
        return None if value is None else json.loads(value)

    def _save(self, kind: str, key: str, value: Mapping[str, object]) -> None:
        now = self._clock.now()
        fresh = {"value": to_json(dict(value)), "updated_at": now}
        statement = (
            self._backend.insert(states)
            .values(kind=kind, key=key, **fresh)
            .on_conflict_do_update(index_elements=["kind", "key"], set_=fresh)
        )

        def work(connection: Connection) -> None:
            connection.execute(statement)

        self._write(work)

    def _fingerprint_key(self) -> bytes:
        """The 32 random bytes that message fingerprints are keyed with, drawn by whoever needs them first."""
        drawn = to_json({"hex": secrets.token_hex(32)})
        statement = (
            self._backend.insert(states)
            .values(kind="meta", key="fingerprint", value=drawn, updated_at=self._clock.now())
            .on_conflict_do_nothing()
        )
        known = self._load("meta", "fingerprint")
        if known is None:
            self._write(lambda connection: connection.execute(statement).rowcount)
            known = self._load("meta", "fingerprint")
        assert known is not None
        return bytes.fromhex(str(known["hex"]))
