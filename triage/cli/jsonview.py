"""The JSON forms of runs (DESIGN 7): plain dicts, times as ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triage.domain.correction import Correction
from triage.domain.record import DecisionRecord, Run, StepRecord
from triage.report.text import stamp as stamp


def run_json(
    run: Run, steps: Sequence[StepRecord], decisions: Sequence[DecisionRecord], *, parent: str = "Triage"
) -> dict[str, Any]:
    """`triage show RUN --json`. `parent` is the account's label parent, so that `label` is the keyword as stored."""
    return {
        **run_head_json(run),
        "steps": [step_json(step) for step in steps],
        "decisions": [decision_json(decision, parent=parent) for decision in decisions],
    }


def run_head_json(run: Run) -> dict[str, Any]:
    """One run without its steps and decisions: an element of `triage runs --json`."""
    return {
        "id": run.id,
        "account": run.account,
        "trigger": run.trigger.value,
        "fire_time": stamp(run.fire_time),
        "state": run.state.value,
        "counts": dict(run.counts),
        "reason": run.reason,
        "error": run.error,
        "enqueued_at": stamp(run.enqueued_at),
        "started_at": stamp(run.started_at),
        "finished_at": stamp(run.finished_at),
    }


def step_json(step: StepRecord) -> dict[str, Any]:
    return {
        "name": step.name,
        "started_at": stamp(step.started_at),
        "duration_ms": step.duration_ms,
        "counts": dict(step.counts),
    }


def decision_json(decision: DecisionRecord, *, parent: str = "Triage") -> dict[str, Any]:
    """One decision; the first fourteen keys are the agreed ones, the rest tells why."""
    return {
        "uid": decision.ref.uid,
        "message_key": decision.message_key,
        "outcome": decision.outcome.value,
        "label": f"{parent}/{decision.label_id}" if parent else decision.label_id,
        "confidence": decision.confidence,
        "probabilities": dict(decision.probabilities),
        "provider": decision.provider,
        "model": decision.model,
        "chain_position": decision.chain_position,
        "latency_ms": decision.latency_ms,
        "input_tokens": decision.input_tokens,
        "cost_usd": decision.cost_usd,
        "archived": decision.archived_at is not None,
        "inherited_from": decision.inherited_from,
        "id": decision.id,
        "uidvalidity": decision.ref.uidvalidity,
        "choice": decision.choice,
        "floor": decision.floor,
        "archive_floor": decision.archive_floor,
        "reason": decision.reason,
        "why": decision.why,
        "provider_confidence": decision.provider_confidence,
        "inherited_rule": decision.inherited_rule,
        "inherited_source": decision.inherited_source,
        "participation": decision.participation,
        "warnings": list(decision.warnings),
        "repaired": list(decision.repaired),
        "sender_domain": decision.sender_domain,
        "subject": decision.subject,
        "received_at": stamp(decision.received_at),
        "decided_at": stamp(decision.decided_at),
        "labelled_at": stamp(decision.labelled_at),
        "archived_at": stamp(decision.archived_at),
        "closed_reason": decision.closed_reason,
        "recovered_by": decision.recovered_by,
    }


def correction_json(correction: Correction) -> dict[str, Any]:
    """What was found about a decision afterwards."""
    return {
        "decision": correction.decision_id,
        "kind": correction.kind.value,
        "from": correction.from_label,
        "to": correction.to_label,
        "at": stamp(correction.at),
    }
