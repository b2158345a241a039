"""Values of the domain to rows and back. Digests are made of what a row holds, so values are made plain here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Row

from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.errors import LedgerError
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, RunState, StepRecord, Trigger
from triage.ledger.chain import Kind
from triage.ledger.schema import corrections, decisions, runs
from triage.redact import redact

_STATE = ("labelled_at", "archived_at", "archived_mailbox", "archived_uidvalidity", "archived_uid", "closed_reason",
          "recovered_by")  # fmt: skip
CONTENT: tuple[Column[Any], ...] = tuple(c for c in decisions.c if c.name not in (*_STATE, "salt"))
"""The columns of a decision that are written once and never change."""
STATE: tuple[Column[Any], ...] = tuple(decisions.c[name] for name in _STATE)
"""The columns of a decision that are filled in as the work gets done."""

_DIRECT = ("id", "run_id", "account", "message_key", "message_id_key", "category_set", "label_id", "choice", "reason",
           "why", "provider", "model", "inherited_from", "inherited_rule", "inherited_source", "participation",
           "sender_domain", "subject")  # fmt: skip
_INTS = ("latency_ms", "input_tokens", "output_tokens", "question_tokens", "body_chars", "links_removed")
_FLOATS = ("confidence", "floor", "archive_floor", "cost_usd")
_LISTS = ("warnings", "repaired", "flags")
_LEASE = ("lease_until", "lease_renewed_ms", "lease_expires_ms")
RUN: tuple[Column[Any], ...] = tuple(c for c in runs.c if c.name not in _LEASE)
"""The columns of a run that never change once it is over."""

CORRECTION: tuple[Column[Any], ...] = tuple(c for c in corrections.c if c.name != "salt")
"""The columns of a correction; none ever changes."""
_CORRECTION_TEXT = ("id", "account", "decision_id", "message_key", "message_id_key", "from_label", "to_label")


def to_json(value: object) -> str:
    """Canonical: the same value gives the same text."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(text: str | None) -> str | None:
    """Text that every database takes: a hostile model name must not make a decision unrecordable."""
    if text is None:
        return None
    return str(text).encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def whole(number: int) -> int:
    """An integer within 64 bits, whatever a server counted."""
    return max(-(2**63), min(int(number), 2**63 - 1))


def decision_content(record: DecisionRecord) -> dict[str, Any]:
    """The content columns of a decision, as they will read back."""
    values: dict[str, Any] = {name: plain(getattr(record, name)) for name in _DIRECT}
    values |= {name: whole(getattr(record, name)) for name in _INTS}
    values |= {name: _number(record, name, getattr(record, name)) for name in _FLOATS}
    values |= {name: to_json(list(getattr(record, name))) for name in _LISTS}
    confidence = record.provider_confidence
    # A server's own words may have come along: they are kept without addresses, URLs and secrets.
    values["why"] = redact(values["why"])
    return values | {
        "mailbox": record.ref.mailbox,
        "uidvalidity": record.ref.uidvalidity,
        "uid": record.ref.uid,
        "outcome": str(record.outcome),
        "archive": bool(record.archive),
        "decided_at": _utc(record.decided_at),
        "probabilities": to_json({str(k): _number(record, "probability", p) for k, p in record.probabilities.items()}),
        "chain_position": record.chain_position,
        "provider_confidence": None if confidence is None else _number(record, "confidence", confidence),
        "received_at": _utc(record.received_at),
    }


def decision_state(record: DecisionRecord) -> dict[str, Any]:
    """The state columns of a decision, for a record that comes with some."""
    moved = record.archived_ref
    return {
        "labelled_at": _utc(record.labelled_at),
        "archived_at": _utc(record.archived_at),
        "archived_mailbox": moved.mailbox if moved else None,
        "archived_uidvalidity": moved.uidvalidity if moved else None,
        "archived_uid": moved.uid if moved else None,
        "closed_reason": plain(record.closed_reason),
        "recovered_by": record.recovered_by,
    }


def state_values(state: Mapping[Any, Any]) -> dict[Kind, tuple[Any, ...]]:
    """For each thing that has been done about a decision, the values its link in the chain is a digest of."""
    done: dict[Kind, tuple[Any, ...]] = {}
    if state["labelled_at"] is not None:
        done[Kind.LABELLED] = (state["labelled_at"],)
    if state["archived_at"] is not None:
        names = ("archived_at", "archived_mailbox", "archived_uidvalidity", "archived_uid")
        done[Kind.ARCHIVED] = tuple(state[name] for name in names)
    if state["closed_reason"] is not None:
        done[Kind.CLOSED] = (state["closed_reason"],)
    if state["recovered_by"] is not None:
        done[Kind.RECOVERED] = (state["recovered_by"],)
    return done


def to_decision(row: Row[Any]) -> DecisionRecord:
    """A decision from a row of all its columns."""
    r = row._mapping
    as_they_are: dict[str, Any] = {name: r[name] for name in (*_DIRECT, *_INTS, *_FLOATS)}
    moved = None
    if r["archived_uid"] is not None:
        moved = MessageRef(r["archived_mailbox"], r["archived_uidvalidity"], r["archived_uid"])
    return DecisionRecord(
        **as_they_are,
        ref=MessageRef(r["mailbox"], r["uidvalidity"], r["uid"]),
        outcome=Outcome(r["outcome"]),
        archive=r["archive"],
        decided_at=r["decided_at"],
        probabilities=json.loads(r["probabilities"]),
        warnings=tuple(json.loads(r["warnings"])),
        repaired=tuple(json.loads(r["repaired"])),
        flags=tuple(json.loads(r["flags"])),
        chain_position=r["chain_position"],
        provider_confidence=r["provider_confidence"],
        received_at=r["received_at"],
        labelled_at=r["labelled_at"],
        archived_at=r["archived_at"],
        archived_ref=moved,
        closed_reason=r["closed_reason"],
        recovered_by=r["recovered_by"],
    )


def to_run(row: Row[Any]) -> Run:
    """A run from a row of all its columns."""
    r = row._mapping
    return Run(
        id=r["id"],
        account=r["account"],
        trigger=Trigger(r["trigger"]),
        fire_time=r["fire_time"],
        state=RunState(r["state"]),
        enqueued_at=r["enqueued_at"],
        started_at=r["started_at"],
        finished_at=r["finished_at"],
        lease_owner=r["lease_owner"],
        lease_until=r["lease_until"],
        reason=r["reason"],
        error=r["error"],
        counts=json.loads(r["counts"]),
        options=json.loads(r["options"]),
    )


def correction_values(correction: Correction) -> dict[str, Any]:
    """The columns of a correction, as they will read back."""
    place = correction.ref
    return {name: plain(getattr(correction, name)) for name in _CORRECTION_TEXT} | {
        "kind": correction.kind.value,
        "at": _utc(correction.at),
        "mailbox": place.mailbox if place else None,
        "uidvalidity": place.uidvalidity if place else None,
        "uid": place.uid if place else None,
    }


def correction_link(kind: str) -> Kind:
    """What the chain calls a correction of this kind."""
    own = {CorrectionKind.CONFIRMED: Kind.CONFIRMED, CorrectionKind.UNDOING: Kind.UNDOING}
    own |= {CorrectionKind.UNDONE: Kind.UNDONE}
    return own.get(CorrectionKind(kind), Kind.CORRECTED)


def to_correction(row: Row[Any]) -> Correction:
    r = row._mapping
    texts: dict[str, Any] = {name: r[name] for name in _CORRECTION_TEXT}
    place = None if r["uid"] is None else MessageRef(r["mailbox"], r["uidvalidity"], r["uid"])
    return Correction(**texts, kind=CorrectionKind(r["kind"]), at=r["at"], ref=place)


def to_step(row: Row[Any]) -> StepRecord:
    r = row._mapping
    return StepRecord(r["name"], r["started_at"], r["duration_ms"], json.loads(r["counts"]))


def values_of(row: Row[Any], columns: Sequence[Column[Any]]) -> tuple[Any, ...]:
    """The values of some columns of a row, in the order of the columns."""
    mapping: Mapping[str, Any] = row._mapping  # type: ignore[assignment]
    return tuple(mapping[c.name] for c in columns)


def _number(record: DecisionRecord, name: str, value: float) -> float:
    if not math.isfinite(value):
        raise LedgerError(f"account {record.account}, decision {record.id}: {name} is not a number ({value})")
    return float(value)


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise LedgerError(f"a time without a timezone cannot be recorded: {moment.isoformat()}")
    return moment.astimezone(UTC)
