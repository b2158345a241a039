"""The only road from a decision to the mailbox: label, then archive, each recorded before the next (DESIGN 4).

Labels are grouped, one STORE a label, and so is the move; the journal makes the grouping safe. The lease is checked
before every write.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from triage.domain.decision import Outcome
from triage.domain.errors import KeywordsRefused
from triage.domain.mail import Head
from triage.domain.record import DecisionRecord
from triage.pipeline.plan import Counts, RunScope, add_counts
from triage.pipeline.recover import untouched
from triage.pipeline.steps import step
from triage.ports import Labelled


def write_back(scope: RunScope, records: Sequence[DecisionRecord], heads: Mapping[int, Head]) -> Counts:
    """Label these decided messages, then archive those that are to leave the inbox."""
    total: Counts = {}
    if not records:
        return total
    with step(scope, "label") as counts:
        stored = _label(scope, records, heads, counts)
        add_counts(total, counts)
    add_counts(total, archive(scope, [r for r in stored if r.archive]))
    return total


def archive(scope: RunScope, records: Sequence[DecisionRecord]) -> Counts:
    """Archive labelled messages; what the server refuses stays in the inbox and is tried again by the next run."""
    if not records or not scope.plan.archives:
        return {}
    tools = scope.tools
    with step(scope, "archive") as counts:
        scope.lease.check()
        by_uid = {r.ref.uid: r for r in records}
        moved = tools.mailbox.archive(sorted(by_uid))
        if moved.moved:
            tools.journal.mark_archived({by_uid[u].id: to for u, to in moved.moved.items()}, tools.clock.now())
        if moved.gone:
            tools.journal.mark_closed([by_uid[u].id for u in moved.gone], "gone", tools.clock.now())
        for uid, reason in moved.refused.items():
            tools.log.event("archive_refused", message_key=by_uid[uid].message_key, reason=reason)
        counts.update(archived=len(moved.moved), gone=len(moved.gone), archive_refused=len(moved.refused))
    return counts


def _label(
    scope: RunScope, records: Sequence[DecisionRecord], heads: Mapping[int, Head], counts: Counts
) -> list[DecisionRecord]:
    by_uid = {r.ref.uid: r for r in records}
    done = _store(scope, by_uid, heads, counts)
    stored = _leave_touched(scope, [by_uid[u] for u in done.stored], done.flags, counts)
    if done.refused:
        stored += _label_refused(scope, {u: by_uid[u] for u in done.refused}, done.refused, heads, counts)
    return stored


def _leave_touched(
    scope: RunScope, stored: list[DecisionRecord], flags: Mapping[int, frozenset[str]], counts: Counts
) -> list[DecisionRecord]:
    """Those without what was to leave the inbox and was read or flagged by somebody since its flags were fetched."""
    if not scope.plan.archives:
        return stored
    label = scope.plan.categories.label
    touched = {
        r.id
        for r in stored
        if r.archive and r.ref.uid in flags and not untouched(r, flags[r.ref.uid], label(r.label_id))
    }
    if touched:
        scope.tools.journal.mark_closed(sorted(touched), "person_touched", scope.tools.clock.now())
        counts["left_in_inbox"] = len(touched)
    return [r for r in stored if r.id not in touched]


def _store(
    scope: RunScope, by_uid: Mapping[int, DecisionRecord], heads: Mapping[int, Head], counts: Counts
) -> Labelled:
    categories, tools = scope.plan.categories, scope.tools
    scope.lease.check()
    plan = {uid: categories.label(r.label_id) for uid, r in by_uid.items()}
    done = tools.mailbox.store_labels(plan, {u: heads[u] for u in plan if u in heads}, categories.labels)
    now = tools.clock.now()
    if done.stored:
        tools.journal.mark_labelled([by_uid[u].id for u in done.stored], now)
    if done.yielded:
        tools.journal.mark_closed([by_uid[u].id for u in done.yielded], "person_touched", now)
    if done.gone:
        tools.journal.mark_closed([by_uid[u].id for u in done.gone], "gone", now)
    add_counts(counts, {"labelled": len(done.stored), "given_way": len(done.yielded), "gone": len(done.gone)})
    return done


def _label_refused(
    scope: RunScope,
    records: Mapping[int, DecisionRecord],
    reasons: Mapping[int, str],
    heads: Mapping[int, Head],
    counts: Counts,
) -> list[DecisionRecord]:
    """The server will not keep this label: the message gets the fallback label instead, so that it is not asked again.

    Raises KeywordsRefused if the fallback label is refused too: then nothing can be kept in this mailbox. The decisions
    stay open, so that the next run tries their labels again and nobody is paid twice.
    """
    tools, fallback = scope.tools, scope.plan.categories.fallback_id
    now = tools.clock.now()
    for uid, record in records.items():
        tools.log.event("label_refused", label=record.label_id, message_key=record.message_key, reason=reasons[uid])
    counts["label_refused"] = len(records)
    hopeless = [r for r in records.values() if r.label_id == fallback]
    if hopeless:
        raise KeywordsRefused(
            f"The server does not keep the label {scope.plan.categories.label(fallback)} on UID {hopeless[0].ref.uid}: "
            f"{reasons[hopeless[0].ref.uid]}. Run `triage check` to see what this mailbox can keep."
        )
    tools.journal.mark_closed([r.id for r in records.values()], "label_refused", now)
    substitutes = {}
    for uid, record in records.items():
        substitutes[uid] = replace(
            record,
            id=secrets.token_hex(12),
            run_id=scope.run.id,
            outcome=Outcome.CHAIN_FAILED,
            label_id=fallback,
            archive=False,
            reason="label_refused",
            why=f"The server refused to keep the label {record.label_id}; the message stays in the inbox.",
            cost_usd=0.0,
            input_tokens=0,
            output_tokens=0,
            question_tokens=0,
            decided_at=now,
        )
    tools.journal.record_decisions(list(substitutes.values()))
    done = _store(scope, substitutes, heads, counts)
    if done.refused:
        return _label_refused(scope, {u: substitutes[u] for u in done.refused}, done.refused, heads, counts)
    return [substitutes[u] for u in done.stored]
