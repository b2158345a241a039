"""Results and receipts of the mail tool as text: a few calm lines, or JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from triage.agent.result import Result
from triage.agent.states import TO_DO
from triage.domain.tool import Receipt


def result_text(result: Result, *, as_json: bool) -> str:
    """A result for a program, or for a person."""
    if as_json:
        return json.dumps(result.model_dump(mode="json"), ensure_ascii=False, indent=2) + "\n"
    lines = [f"{result.state}: {result.reason}"]
    if result.run is not None:
        lines.append(f"  run       {result.run_id} ({result.run.purpose}), until {result.run.expires_at:%H:%M:%S} UTC")
        lines += [f"  address   {result.run.address}", f"  mailbox   {result.run.mailbox_id}"]
    if result.accepted is not None:
        accepted = result.accepted
        lines.append(f"  message   {accepted.message_id}, {accepted.age_seconds:g} s old, by {accepted.matched_rule}")
    if result.artifact is not None:
        artifact = result.artifact
        value = artifact.verification_url or artifact.code or artifact.handle or "there, and withheld"
        lines.append(f"  {artifact.kind:<9} {value}")
    lines += [f"  candidate {candidate}" for candidate in result.candidates]
    lines += [_error(error) for error in result.errors]
    seen = {name: n for name, n in result.counts.model_dump().items() if n}
    if seen:
        lines.append("  seen      " + ", ".join(f"{n} {name}" for name, n in seen.items()))
    if result.wait_id is not None:
        left = f"{result.polls_used} looks, {result.polls_remaining} and {result.remaining_ms / 1000:.0f} s left"
        lines.append(f"  wait      {result.wait_id}, {left}")
    lines.append(f"  next      {TO_DO[result.next_action]}")
    lines.append(f"  receipt   {result.receipt_id}")
    return "\n".join(lines) + "\n"


def _error(error: dict[str, str]) -> str:
    near = f"; did you mean {error['nearest']}?" if "nearest" in error else ""
    return f"  {error['field'] or 'request'}: {error['code']}{near}"


def receipts_text(receipts: Sequence[Receipt], *, as_json: bool) -> str:
    """Receipts, newest first."""
    if as_json:
        rows = [dataclasses.asdict(receipt) | {"at": receipt.at.isoformat()} for receipt in receipts]
        return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"
    if not receipts:
        return "No receipts yet.\n"
    lines = [
        f"{r.at:%Y-%m-%d %H:%M:%S}  {r.call:<8} {r.run_id or '-':<24} {r.state:<16} {r.reason:<28} "
        f"{r.polls_used} looks, {r.elapsed_ms / 1000:.1f} s"
        for r in receipts
    ]
    return "\n".join(lines) + "\n"
