"""The running commentary of a run as structured log lines: run, account and step on every one."""

from __future__ import annotations

from typing import Any

import structlog

from triage.domain.record import DecisionRecord, Run, StepRecord


class StructuredRunLog:
    """`triage.pipeline.plan.RunLog` on structlog. Says what the ledger keeps, and nothing more private than that."""

    def __init__(self, run: Run) -> None:
        self._log: Any = structlog.get_logger().bind(run=run.id, account=run.account)
        self._step = ""

    def begin(self, step: str) -> None:
        self._step = step

    def step(self, step: StepRecord) -> None:
        self._log.info("step", step=step.name, ms=step.duration_ms, **dict(step.counts))
        self._step = ""

    def decision(self, record: DecisionRecord) -> None:
        self._log.info(
            "decision",
            step=self._step,
            message_key=record.message_key,
            uid=record.ref.uid,
            outcome=str(record.outcome),
            label=record.label_id,
            archive=record.archive,
            confidence=round(record.confidence, 4),
            provider_confidence=record.provider_confidence,
            floor=record.floor,
            archive_floor=record.archive_floor,
            probabilities={i: round(p, 4) for i, p in record.probabilities.items()},
            provider=record.provider,
            model=record.model,
            chain_position=record.chain_position,
            latency_ms=record.latency_ms,
            input_tokens=record.input_tokens,
            cost_usd=record.cost_usd,
            inherited_from=record.inherited_from,
            warnings=list(record.warnings),
            reason=record.reason,
            why=record.why,
        )

    def event(self, name: str, **facts: object) -> None:
        level = "warning" if name.endswith(("refused", "failed")) else "info"
        getattr(self._log, level)(name, step=self._step, **facts)
