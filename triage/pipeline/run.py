"""One run of one account, from selection to archive.

select -> recover -> thread -> fetch -> prepare -> decide -> label -> archive. Parents are decided before their
replies, so a batch goes through the middle steps in waves; nearly always there is one. Everything that was decided is
durable before the first label is stored, so the whole body may be cut anywhere and made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from triage.domain.correction import BY_A_PERSON
from triage.domain.decision import Ruling
from triage.domain.errors import KeywordsRefused, MailboxError, MailboxLost
from triage.domain.mail import Head, MailSource, MessageRef, PreparedMail
from triage.domain.record import DecisionRecord, Trigger
from triage.pipeline.ancestry import decided_candidate, gather_threads
from triage.pipeline.corrections import WordsBefore, is_due, look_for_corrections, words_before
from triage.pipeline.learning import KEPT
from triage.pipeline.plan import Counts, RunScope, add_counts
from triage.pipeline.records import decision_record
from triage.pipeline.recover import plan_recovery
from triage.pipeline.run_mail import leave_run_mail
from triage.pipeline.steps import step
from triage.pipeline.texts import fetch_sources
from triage.pipeline.writeback import archive, write_back
from triage.policy.judge import judge, judge_inherited, judge_outage, judge_unreadable
from triage.ports import MailboxFacts
from triage.prepare import prepare
from triage.threads.candidate import WHY, Ask, AskReason, Candidate
from triage.threads.headers import ThreadHeaders, read_thread_headers
from triage.threads.rounds import Gathered, next_round

ROUNDS = 3
PREVIEW_AHEAD = 500
"""How many unsorted messages a schedule in preview looks through for those it has not decided yet."""
_TIRED_OF_WAITING = Ask(AskReason.UNLABELLED, WHY[AskReason.UNLABELLED])


@dataclass(slots=True)
class Batch:
    """The messages of a run on their way: what is known of each, and what has been decided."""

    heads: dict[int, Head]
    gathered: Gathered
    before: WordsBefore = field(default_factory=WordsBefore)
    decided: dict[int, DecisionRecord] = field(default_factory=dict)
    candidates: dict[int, Candidate] = field(default_factory=dict)

    @property
    def mails(self) -> Mapping[int, ThreadHeaders]:
        return self.gathered.mails

    def settle(self, uid: int, record: DecisionRecord) -> None:
        self.decided[uid] = record
        self.candidates[uid] = decided_candidate(record, self.mails[uid], self.heads[uid])

    def pass_over(self, uid: int) -> None:
        """Nobody could decide this message now; its replies need not wait for it."""
        self.candidates.setdefault(uid, Candidate(self.mails[uid], self.gathered.keys[uid]))


def execute(scope: RunScope, counts: Counts) -> None:
    """Make the run, adding to `counts` what was done; raises what ended it (MailboxError, LeaseLost, LedgerError).

    A connection that breaks is made anew once: the journal makes the second try safe.
    """
    try:
        taken: set[MessageRef] = set()
        try:
            _body(scope, counts, taken)
        except MailboxLost as lost:
            if scope.stop.is_set():
                raise
            scope.tools.log.event("reconnecting", reason=lost.code, detail=str(lost))
            # Not closed: so the mailbox knows its UIDVALIDITY, and a renumbered inbox ends the run at `open`.
            _body(scope, counts, taken)
        _look_back(scope)
    finally:
        scope.tools.mailbox.close()


def _body(scope: RunScope, counts: Counts, taken: set[MessageRef]) -> None:
    """One try at the run; `taken` collects the messages that took a place in its batch, over both tries."""
    plan, tools = scope.plan, scope.tools
    room = plan.batch - counts.get("labelled", 0)
    if room <= 0:
        return
    with step(scope, "select") as found:
        facts = tools.mailbox.open()
        if plan.writes:
            require_labels_kept(facts)
        if facts.label_store == "folder" and plan.archives:
            # The label is the folder a message moves to; there is nothing left to archive.
            plan = replace(plan, mode="label")
            scope = replace(scope, plan=plan)
        uids = leave_run_mail(scope, room, lambda n: _select(scope, facts, n))
        found.update(messages=facts.messages, selected=len(uids))
    finished = _recover(scope, facts, room, counts) if plan.writes else frozenset()
    uids = tuple(u for u in uids if u not in finished)[: max(0, room - len(finished))]
    taken.update(MessageRef(facts.inbox, facts.uidvalidity, uid) for uid in (*uids, *finished))
    counts["selected"] = len(taken)
    if not uids or scope.stop.is_set():
        return
    scope = _learn(scope)
    batch = _gather(scope, facts.inbox, uids)
    _decide(scope, batch, counts)
    if plan.writes:
        add_counts(counts, write_back(scope, list(batch.decided.values()), batch.heads))


def _select(scope: RunScope, facts: MailboxFacts, room: int) -> tuple[int, ...]:
    """The messages of this run. A schedule in preview moves on to what it has not decided yet: nothing is labelled, so
    the same oldest messages would be paid for every five minutes."""
    plan, tools = scope.plan, scope.tools
    again = not plan.writes and scope.run.trigger is Trigger.SCHEDULE
    uids = tools.mailbox.select_unlabelled(
        plan.categories.settled_labels,
        plan.since,
        PREVIEW_AHEAD if again else room,
        before=plan.before,
        newest_first=plan.newest_first,
    )
    if not again:
        return uids
    keys = {uid: tools.journal.key(str(MessageRef(facts.inbox, facts.uidvalidity, uid))) for uid in uids}
    known = tools.journal.previewed(plan.account, plan.categories.fingerprint, list(keys.values()))
    return tuple(uid for uid in uids if keys[uid] not in known)[:room]


def _learn(scope: RunScope) -> RunScope:
    """Once a day, before anything is decided: what do people's corrections teach? The run with what was learned."""
    learner = scope.tools.learner
    if learner is None:
        return scope
    if learner.due:
        with step(scope, "learn") as found:
            summary = learner.learn(scope.stop)
            found.update(corrections=summary.used, held=summary.held, kept=int(summary.reason == KEPT))
        if summary.detail:
            scope.tools.log.event("learning_failed", detail=summary.detail)
    return replace(scope, tools=replace(scope.tools, decider=learner.decider))


def _look_back(scope: RunScope) -> None:
    """Now and then, at the end of a scheduled run: what did people do about earlier decisions? It never fails a run."""
    tools, plan = scope.tools, scope.plan
    if tools.corrections is None or plan.look is None or scope.run.trigger is not Trigger.SCHEDULE:
        return
    now = tools.clock.now()
    if scope.stop.is_set() or not plan.writes or not is_due(tools.corrections, plan.account, plan.look, now):
        return
    with step(scope, "review") as found:
        try:
            looked = look_for_corrections(
                tools.mailbox, tools.corrections, plan.account, plan.categories, plan.look, now
            )
        except MailboxError as failure:
            tools.log.event("review_failed", reason=failure.code, detail=str(failure))
            return
        found.update(messages=looked.seen, corrections=sum(c.kind in BY_A_PERSON for c in looked.found))


def require_labels_kept(facts: MailboxFacts) -> None:
    """Refuse to pay for decisions that the mailbox cannot keep. Raises KeywordsRefused."""
    if facts.read_only:
        raise KeywordsRefused(
            f"{facts.inbox} opens read-only, so no label can be stored. "
            "Give this login the right to write flags, or set mode: preview."
        )
    if facts.label_store == "keyword" and not facts.keeps_keywords:
        raise KeywordsRefused(
            f"{facts.inbox} keeps no custom keywords (PERMANENTFLAGS lacks \\*). "
            "Give this login the right to write flags, or use labels: folder."
        )


def _recover(scope: RunScope, facts: MailboxFacts, room: int, counts: Counts) -> frozenset[int]:
    """Finish what earlier runs left half done; the UIDs that took a place in this batch."""
    tools = scope.tools
    unfinished = tools.journal.unfinished(scope.plan.account)
    if not unfinished:
        return frozenset()
    inbox = (facts.inbox, facts.uidvalidity)
    with step(scope, "recover") as found:
        here = [r.ref.uid for r in unfinished if (r.ref.mailbox, r.ref.uidvalidity) == inbox]
        heads = dict(tools.mailbox.flags_of(here)) if here else {}
        recovery = plan_recovery(unfinished, heads, inbox, scope.plan.categories, archives=scope.plan.archives)
        now = tools.clock.now()
        for reason, ids in recovery.closed.items():
            tools.journal.mark_closed(ids, reason, now)
        if recovery.labelled:
            tools.journal.mark_labelled([r.id for r in recovery.labelled], now)
        to_label = recovery.to_label[:room]
        to_keep = recovery.to_keep[: room - len(to_label)]
        others = [
            r for r in (*to_label, *to_keep, *recovery.labelled, *recovery.to_archive) if r.run_id != scope.run.id
        ]
        if others:
            tools.journal.mark_recovered(sorted({r.id for r in others}), scope.run.id, now)
        found.update(
            label=len(to_label) + len(to_keep),
            archive=len(recovery.to_archive),
            closed=sum(map(len, recovery.closed.values())),
        )
    add_counts(counts, {"recovered": len({r.id for r in others})})
    add_counts(counts, write_back(scope, [*to_label, *(replace(r, archive=False) for r in to_keep)], heads))
    if to_keep:
        tools.journal.mark_closed([r.id for r in to_keep], "person_touched", tools.clock.now())
    add_counts(counts, archive(scope, recovery.to_archive[: scope.plan.batch]))
    return frozenset(r.ref.uid for r in (*to_label, *to_keep))


def _gather(scope: RunScope, inbox: str, uids: tuple[int, ...]) -> Batch:
    with step(scope, "thread") as found:
        heads = dict(scope.tools.mailbox.fetch_heads(uids))
        mails = {uid: read_thread_headers(head.headers) for uid, head in heads.items()}
        gathered = gather_threads(scope, inbox, heads, mails)
        before = words_before(
            scope.tools.corrections,
            scope.plan.account,
            heads,
            mails,
            scope.tools.clock.now(),
            record=scope.plan.writes,
        )
        found.update(heads=len(heads), gone=len(uids) - len(heads), ancestors=sum(map(len, gathered.found.values())))
    return Batch(heads, gathered, before)


def _decide(scope: RunScope, batch: Batch, counts: Counts) -> None:
    """Decide in rounds: what the threads settle, then what the model is asked, until nothing waits for anything.

    A chain of replies that comes to nothing would need a round a mail; the last round asks about all that still wait.
    """
    for n in range(1, ROUNDS + 1):
        if scope.stop.is_set():
            return
        round_ = next_round(batch.gathered, batch.candidates)
        settled: dict[int, DecisionRecord] = {}
        for uid, word in round_.inherited.items():
            verdict = judge_inherited(word.ancestor, scope.plan.policy, word.archive_floor, word.keep_reason)
            verdict = batch.before.bind(uid, verdict)
            settled[uid] = decision_record(scope, batch.heads[uid], batch.mails[uid], verdict, ancestor=word.ancestor)
        _settle(scope, batch, settled, counts)
        asks = dict(round_.to_ask)
        if n == ROUNDS:
            asks |= dict.fromkeys(round_.waiting, _TIRED_OF_WAITING)
        if asks:
            _ask(scope, batch, asks, counts)
        if not round_.waiting:
            return


def _ask(scope: RunScope, batch: Batch, asks: Mapping[int, Ask], counts: Counts) -> None:
    try:
        mails = _read(scope, batch, sorted(asks), counts)
        if mails and not scope.stop.is_set():
            _put_question(scope, batch, asks, mails, counts)
    finally:
        for uid in asks:
            batch.pass_over(uid)


def _read(scope: RunScope, batch: Batch, uids: list[int], counts: Counts) -> dict[int, PreparedMail]:
    with step(scope, "fetch") as found:
        sources = fetch_sources(scope.tools.mailbox, {uid: batch.heads[uid] for uid in uids})
        found.update(messages=len(sources), bytes=sum(len(t.data) for s in sources.values() for t in s.texts))
    mails: dict[int, PreparedMail] = {}
    with step(scope, "prepare") as found:
        for uid, source in sources.items():
            mail = _prepare(scope, batch, uid, source, counts)
            if mail is not None:
                mails[uid] = mail
        found.update(
            messages=len(mails),
            chars=sum(len(m.body) for m in mails.values()),
            links_removed=sum(m.links_removed for m in mails.values()),
        )
    return mails


def _put_question(
    scope: RunScope, batch: Batch, asks: Mapping[int, Ask], mails: Mapping[int, PreparedMail], counts: Counts
) -> None:
    plan, tools = scope.plan, scope.tools
    with step(scope, "decide") as found:

        def on_rulings(rulings: Mapping[int, Ruling]) -> None:
            settled: dict[int, DecisionRecord] = {}
            for uid, ruling in rulings.items():
                verdict = judge(ruling, mails[uid], plan.policy, asks[uid].keep_reason)
                if verdict is None and plan.label_on_outage and not scope.stop.is_set():
                    verdict = judge_outage(plan.policy, ruling.reason or "No provider could be asked.")
                if verdict is None:
                    add_counts(found, {"not_asked": 1})
                    tools.log.event("not_asked", uid=uid, reason=ruling.reason)
                    continue
                verdict = batch.before.bind(uid, verdict)
                settled[uid] = decision_record(
                    scope, batch.heads[uid], batch.mails[uid], verdict, mail=mails[uid], ruling=ruling
                )
            _settle(scope, batch, settled, counts)

        tools.decider.decide(
            plan.question,
            mails,
            deadline=tools.clock.monotonic() + plan.batch_deadline_s,
            stop=scope.stop,
            on_rulings=on_rulings,
        )
        found["asked"] = len(mails) - found.get("not_asked", 0)
    add_counts(counts, {"not_asked": found.get("not_asked", 0)})


def _prepare(scope: RunScope, batch: Batch, uid: int, source: MailSource, counts: Counts) -> PreparedMail | None:
    """One message's text for the model. One that cannot be read is settled here and never blocks the batch."""
    try:
        return prepare(source, max_chars=scope.plan.max_chars)
    except Exception as error:  # noqa: BLE001 - whatever a mail can provoke is that mail's own; it is recorded
        name = type(error).__name__
        scope.tools.log.event("unreadable", uid=uid, error=name)
        verdict = judge_unreadable(scope.plan.policy, f"The message could not be read ({name}).")
        _settle(scope, batch, {uid: decision_record(scope, batch.heads[uid], batch.mails[uid], verdict)}, counts)
        return None


def _settle(scope: RunScope, batch: Batch, records: Mapping[int, DecisionRecord], counts: Counts) -> None:
    """Make these decisions durable, before anything else knows of them."""
    if not records:
        return
    scope.tools.journal.record_decisions(list(records.values()))
    for uid, record in records.items():
        scope.tools.log.decision(record)
        batch.settle(uid, record)
        add_counts(counts, {str(record.outcome): 1})
