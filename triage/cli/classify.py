"""`triage classify FILE`: what the chain says of one mail and what the policy makes of it, for a person or as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triage.domain.decision import Answer, Verdict

SHOWN_OPTIONS = 8


def classification_json(answer: Answer | None, verdict: Verdict, label: str) -> dict[str, Any]:
    """The object of DESIGN 7. `label` is the keyword as it would be stored; without an answer its fields are null."""
    return {
        "choice": answer.choice if answer else None,
        "confidence": verdict.confidence,
        "probabilities": dict(answer.probabilities) if answer else {},
        "label": label,
        "action": verdict.action.value,
        "outcome": verdict.outcome.value,
        "provider": answer.provider if answer else None,
        "model": answer.model if answer else None,
        "latency_ms": answer.latency_ms if answer else 0,
        "input_tokens": answer.input_tokens if answer else 0,
        "vetoes": list(verdict.vetoes),
        "why": verdict.why,
    }


def render_classification(answer: Answer | None, verdict: Verdict, label: str) -> RenderableType:
    """The label, what becomes of the mail and why, then the likeliest options with a bar each."""
    head = Text.assemble((label, "bold"), f"  {verdict.action.value}, confidence {verdict.confidence:.2f}")
    parts: list[RenderableType] = [head, Text(verdict.why)]
    if verdict.vetoes:
        parts.append(Text("Kept in the inbox by: " + ", ".join(v.replace("_", " ") for v in verdict.vetoes) + "."))
    if answer:
        parts.append(_options(answer))
        told = f"{answer.provider}, {answer.model}, {answer.latency_ms} ms"
        parts.append(Text(f"{told}, {answer.input_tokens} input tokens" if answer.input_tokens else told, style="dim"))
    return Group(*parts)


def _options(answer: Answer) -> Table:
    table = Table.grid(padding=(0, 1))
    ranked = sorted(answer.probabilities.items(), key=lambda item: (-item[1], item[0]))
    for option, probability in ranked[:SHOWN_OPTIONS]:
        table.add_row(option, f"{probability:.2f}", "█" * round(probability * 30))
    return table
