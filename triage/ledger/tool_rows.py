"""The mail tool's values to rows and back."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Row

from triage.domain.mail import MessageRef
from triage.domain.tool import Claim, Receipt, RunRecord, Taking, WaitRecord
from triage.ledger.rows import plain, to_json
from triage.ledger.tool_schema import tool_receipts, tool_runs, tool_takings, tool_waits

_RUN = tuple(c.name for c in tool_runs.c)
_TAKING = tuple(c.name for c in tool_takings.c)
_WAIT = ("id", "run_id", "generation", "account", "attempt", "started_at", "start_delay_ms", "spent_ms", "slots_done",
         "polls_used",
         "polls_failed", "state", "reason", "cancelled", "receipt_id")  # fmt: skip
_RECEIPT_JSON = ("counts", "stages", "polls", "candidates")
RECEIPT_COLUMNS = tuple(c for c in tool_receipts.c if c.name != "salt")
RECEIPT = tuple(c.name for c in RECEIPT_COLUMNS)
"""The columns of a receipt, in the order of its digest."""


def run_values(run: RunRecord) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _RUN}


def to_tool_run(row: Row[Any]) -> RunRecord:
    return RunRecord(**{name: row._mapping[name] for name in _RUN})


def wait_values(wait: WaitRecord) -> dict[str, Any]:
    return {name: getattr(wait, name) for name in _WAIT} | {"terms": to_json(dict(wait.terms))}


def to_wait(row: Row[Any]) -> WaitRecord:
    known = row._mapping
    assert set(_WAIT) <= {c.name for c in tool_waits.c}
    return WaitRecord(**{name: known[name] for name in _WAIT}, terms=json.loads(known["terms"]))


def claim_values(claim: Claim) -> dict[str, Any]:
    return {
        "account": claim.account,
        "message_key": claim.message_key,
        "run_id": claim.run_id,
        "generation": claim.generation,
        "wait_id": claim.wait_id,
        "message_id": claim.message_id,
        "mailbox": claim.ref.mailbox,
        "uidvalidity": claim.ref.uidvalidity,
        "uid": claim.ref.uid,
        "fingerprint": claim.fingerprint,
        "matched_rule": claim.matched_rule,
        "received_at": claim.received_at,
        "claimed_at": claim.claimed_at,
        "receipt_id": claim.receipt_id,
    }


def to_claim(row: Row[Any]) -> Claim:
    r = row._mapping
    return Claim(
        account=r["account"],
        message_key=r["message_key"],
        run_id=r["run_id"],
        generation=r["generation"],
        message_id=r["message_id"],
        ref=MessageRef(r["mailbox"], r["uidvalidity"], r["uid"]),
        fingerprint=r["fingerprint"],
        matched_rule=r["matched_rule"],
        received_at=r["received_at"],
        claimed_at=r["claimed_at"],
        receipt_id=r["receipt_id"],
        wait_id=r["wait_id"],
    )


def taking_values(taking: Taking) -> dict[str, Any]:
    return {name: getattr(taking, name) for name in _TAKING}


def to_taking(row: Row[Any]) -> Taking:
    return Taking(**{name: row._mapping[name] for name in _TAKING})


def receipt_values(receipt: Receipt) -> dict[str, Any]:
    """The columns of a receipt as they will read back."""
    values: dict[str, Any] = {}
    for name in RECEIPT:
        value = getattr(receipt, name)
        if name in _RECEIPT_JSON:
            values[name] = to_json(dict(value) if name in ("counts", "stages") else [*value])
        else:
            values[name] = plain(value) if isinstance(value, str) else value
    return values


def to_receipt(row: Row[Any]) -> Receipt:
    r = row._mapping
    values = {name: json.loads(r[name]) if name in _RECEIPT_JSON else r[name] for name in RECEIPT}
    return Receipt(**(values | {"polls": tuple(values["polls"]), "candidates": tuple(values["candidates"])}))
