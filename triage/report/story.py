"""Why a message landed where it is, as sentences in the order in which it happened. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord, Run
from triage.report.text import truncated
from triage.report.words import spaced

_PARTS = {
    "sender_in_thread": "its sender had part in the thread",
    "same_list": "it is of the same list",
    "same_automated_sender": "it is of the same automatic sender",
}
_RULES = {
    "reference": "it names the message that it answers",
    "thread_id": "the server counts it to the same thread",
    "same_batch": "the message that it answers was decided in the same run",
}
_CLOSED = {
    "gone": "The message had left the inbox before that could be done.",
    "person_touched": "A person had touched the message meanwhile, so it was left as it is.",
    "superseded": "The categories had changed before the label was stored, so it was decided anew.",
    "preview": "That was a preview: nothing was written to the mailbox.",
    "label_refused": "The server did not keep the label.",
    "undone": "`triage undo` took it back before it was archived.",
    "archiving_off": "Archiving had been switched off before it was archived.",
    "uidvalidity_changed": "The server renumbered the mailbox, so the decision no longer named a message.",
    "inbox_changed": "Another mailbox was sorted by then, so the decision no longer named a message.",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, and when (None: with the one before it)."""

    at: datetime | None
    what: str


def tell(
    decisions: Sequence[DecisionRecord],
    corrections: Sequence[Correction],
    runs: Mapping[str, Run],
    ancestors: Mapping[str, DecisionRecord],
) -> tuple[Event, ...]:
    """The story of one message from its decisions (oldest first) and what was found about them."""
    events: list[Event] = []
    for decision in decisions:
        events += _decision(decision, runs.get(decision.run_id), ancestors.get(decision.inherited_from or ""))
    events += [Event(c.at, _correction(c)) for c in corrections]
    timed: list[tuple[datetime, int, Event]] = []
    at = datetime.min.replace(tzinfo=UTC)
    for n, event in enumerate(events):
        at = event.at or at
        timed.append((at, n, event))
    return tuple(event for *_, event in sorted(timed, key=lambda item: item[:2]))


def _decision(d: DecisionRecord, run: Run | None, ancestor: DecisionRecord | None) -> Iterator[Event]:
    trigger = f"{run.trigger.value} run" if run else "run"
    sender = f" from {d.sender_domain}" if d.sender_domain else ""
    yield Event(
        d.decided_at, f"A {trigger} ({d.run_id}) took up the message{sender}, UID {d.ref.uid} of {d.ref.mailbox}."
    )
    if d.outcome is Outcome.INHERITED:
        yield Event(None, _inherited(d, ancestor))
    elif d.provider is not None:
        yield Event(None, _answered(d))
    else:
        yield Event(None, f"Nobody answered usably ({spaced(d.reason)}).")
    yield Event(None, d.why)
    yield Event(None, _wanted(d))
    if d.repaired:
        yield Event(None, f"The answer had to be mended: {', '.join(map(spaced, d.repaired))}.")
    if d.warnings:
        yield Event(None, f"Noted about the message: {', '.join(map(spaced, d.warnings))}.")
    if d.recovered_by is not None:
        yield Event(d.labelled_at or d.archived_at, f"That run was cut short; run {d.recovered_by} finished its work.")
    if d.labelled_at is not None:
        yield Event(d.labelled_at, f"The label {d.label_id} was stored and read back.")
    if d.archived_at is not None:
        to = f"{d.archived_ref.mailbox}, UID {d.archived_ref.uid}" if d.archived_ref else "the archive"
        yield Event(d.archived_at, f"It was moved to {to}.")
    if d.closed_reason is not None:
        last = d.archived_at or d.labelled_at
        yield Event(last, _CLOSED.get(d.closed_reason, f"It was closed: {spaced(d.closed_reason)}."))
    elif d.labelled_at is None:
        yield Event(None, "The label is still to be stored: the next run does that.")
    elif d.archive and d.archived_at is None:
        yield Event(None, "It is still to be archived: the next run does that, if nobody touched it.")


def _inherited(d: DecisionRecord, ancestor: DecisionRecord | None) -> str:
    rule = _RULES.get(d.inherited_rule or "", spaced(d.inherited_rule or "its thread"))
    part = _PARTS.get(d.participation or "")
    who = "a person had labelled that message" if d.inherited_source == "person" else "a decision had labelled it"
    named = f" (message {d.inherited_from[:8]}" if d.inherited_from else ""
    named += f", decision {ancestor.id})" if ancestor and named else ")" if named else ""
    why = f"{rule}, {part}" if part else rule
    return f"It took over {d.label_id} from its thread{named}: {why}; {who}. No model was asked."


def _answered(d: DecisionRecord) -> str:
    ranked = sorted(d.probabilities.items(), key=lambda item: (-item[1], item[0]))
    shares = ", ".join(f"{name} {p:.2f}" for name, p in ranked[:4] if p >= 0.005)
    place = f", number {d.chain_position + 1} of the chain" if d.chain_position else ""
    cost = f", {d.input_tokens:,} tokens, {d.cost_usd:.6f} USD" if d.input_tokens else ""
    own = f" (it says {d.provider_confidence:.2f})" if d.provider_confidence is not None else ""
    return (
        f"{d.provider} ({d.model}){place} answered in {d.latency_ms} ms{cost}: {shares}. "
        f"Confidence {truncated(d.confidence)}{own}."
    )


def _wanted(d: DecisionRecord) -> str:
    if d.archive:
        return f"So: label {d.label_id}, then archive (floor {d.floor:.2f}, archive floor {d.archive_floor:.2f})."
    return (
        f"So: label {d.label_id}, and it stays in the inbox (floor {d.floor:.2f}, archive floor {d.archive_floor:.2f})."
    )


def _correction(c: Correction) -> str:
    match c.kind:
        case CorrectionKind.RELABELLED:
            return f"Found: a person had made it {c.to_label}."
        case CorrectionKind.UNLABELLED:
            return f"Found: a person had taken the label {c.from_label} off; so it is decided again."
        case CorrectionKind.MOVED_BACK:
            return "Found: a person had moved it back to the inbox; it stays there."
        case CorrectionKind.CONFIRMED:
            return f"Found: a person had read it and left it as {c.from_label}."
        case CorrectionKind.UNDOING:
            return "`triage undo` began to take it back."
        case CorrectionKind.UNDONE:
            return "`triage undo` took it back: label off, in the inbox. No decision archives it again."
