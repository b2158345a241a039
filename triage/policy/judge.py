"""The policy's word on one message: which label it gets, and whether it may leave the inbox.

The order of evidence: no usable answer -> fallback; none of these -> fallback; below the floor -> fallback; else the
chosen category. A label that asks for the archive is obeyed only if the provider may archive, the confidence reaches
the archive floor, and nothing vetoes it. Whatever is doubtful stays in the inbox.
"""

from __future__ import annotations

from dataclasses import dataclass

from triage.domain.category import HIJACK_ID, NONE_ID, Action, CategorySet
from triage.domain.decision import Ancestor, Answer, FailureKind, Outcome, Ruling, Verdict
from triage.domain.mail import PreparedMail
from triage.policy.confidence import confidence, runner_up

HIJACK_SUSPICION = 0.15
"""From this probability of the hijack category on, a cautious provider archives nothing."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a provider at one position of the chain may do.

    `archive_floor` is the confidence (0..1) it needs to archive, never below the general floor. `cautious` providers
    (the embedded classifier) archive nothing that hides text, carries an injection pattern or may be a hijack.
    """

    may_archive: bool = True
    archive_floor: float = 0.0
    cautious: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """An account's rules: the general floor and the terms of each position of the chain."""

    categories: CategorySet
    floor: float
    terms: tuple[Terms, ...]

    def floor_of(self, label_id: str) -> float:
        """The floor a label needs: the general one, or the category's own if that asks for more."""
        category = self.categories.get(label_id)
        return max(self.floor, (category.floor if category else None) or 0.0)


def judge(ruling: Ruling, mail: PreparedMail, policy: Policy, keep_reason: str = "") -> Verdict | None:
    """The verdict on a message that the chain was asked about; None if nobody was asked: it stays unlabelled.

    `keep_reason` is a code from its thread that keeps it in the inbox whatever the answer (the owner wrote in it)."""
    if not ruling.asked:
        return None
    if ruling.answer is None or ruling.position is None:
        return _no_answer(ruling, policy)
    return _answered(ruling.answer, policy.terms[ruling.position], mail, policy, keep_reason)


def judge_inherited(ancestor: Ancestor, policy: Policy, archive_floor: float, keep_reason: str = "") -> Verdict:
    """The verdict on a reply that takes its thread's category.

    `archive_floor` is the floor the ancestor's own decision had to reach; a decision that was too unsure to archive
    itself does not archive its replies either. `keep_reason` is a code from the thread that keeps it in the inbox.
    """
    label_id = ancestor.label_id
    floor = policy.floor_of(label_id)
    needed = max(floor, min(archive_floor, 1.0))
    vetoes = (str(keep_reason),) if keep_reason else ()
    wanted = policy.categories.action(label_id)
    archive = wanted is Action.ARCHIVE and not vetoes and ancestor.confidence >= needed
    who = "a person's hand" if ancestor.source == "person" else f"a decision at {ancestor.confidence:.2f}"
    why = f"The thread is already {label_id}, by {who}."
    if wanted is Action.ARCHIVE and not archive:
        why += " It stays in the inbox: " + _kept_because(vetoes, needed)
    return Verdict(
        label_id=label_id,
        action=Action.ARCHIVE if archive else Action.KEEP,
        outcome=Outcome.INHERITED,
        confidence=ancestor.confidence,
        floor=floor,
        archive_floor=needed,
        reason="inherited",
        why=why,
        vetoes=vetoes,
    )


def judge_unreadable(policy: Policy, why: str) -> Verdict:
    """The verdict on a message that could not be read at all: the fallback label, in the inbox."""
    return _fallback(policy, Outcome.CHAIN_FAILED, "unreadable", why)


def judge_outage(policy: Policy, why: str) -> Verdict:
    """The verdict on a message nobody was asked about, where the operator wants a label even then."""
    return _fallback(policy, Outcome.CHAIN_FAILED, "outage", why)


def _no_answer(ruling: Ruling, policy: Policy) -> Verdict:
    kinds = {f.kind for f in ruling.failures}
    outcome = Outcome.UNUSABLE_ANSWER if kinds == {FailureKind.UNUSABLE} else Outcome.CHAIN_FAILED
    last = ruling.failures[-1] if ruling.failures else None
    reason = last.code if last else ruling.reason or "no_answer"
    why = last.message if last else "No provider gave a usable answer."
    return _fallback(policy, outcome, reason, why)


def _answered(answer: Answer, terms: Terms, mail: PreparedMail, policy: Policy, keep_reason: str) -> Verdict:
    sure = confidence(answer.probabilities)
    floor = policy.floor_of(answer.choice)
    if sure < floor:
        return _fallback(policy, Outcome.BELOW_FLOOR, "below_floor", _unsure(answer, sure, floor), sure, floor)
    if answer.choice == NONE_ID:
        why = f"None of the categories fits, says {answer.provider} at {sure:.2f}."
        return _fallback(policy, Outcome.APPLIED, "none_of_these", why, sure, floor)
    needed = max(floor, terms.archive_floor)
    vetoes = (*((str(keep_reason),) if keep_reason else ()), *_vetoes(answer, terms, mail))
    wanted = policy.categories.action(answer.choice)
    archive = wanted is Action.ARCHIVE and not vetoes and sure >= needed
    why = f"{answer.choice} at {sure:.2f}, floor {floor:.2f}."
    if wanted is Action.ARCHIVE and not archive:
        why += " It stays in the inbox: " + _kept_because(vetoes, needed)
    return Verdict(
        label_id=answer.choice,
        action=Action.ARCHIVE if archive else Action.KEEP,
        outcome=Outcome.APPLIED,
        confidence=sure,
        floor=floor,
        archive_floor=needed,
        reason="chosen",
        why=why,
        vetoes=vetoes,
    )


def _vetoes(answer: Answer, terms: Terms, mail: PreparedMail) -> tuple[str, ...]:
    """Why this mail may not leave the inbox whatever the confidence, as codes."""
    vetoes = [] if terms.may_archive else ["fallback_provider"]
    if terms.cautious:
        vetoes += answer.vetoes
        if answer.hijack_signs:
            vetoes.append("injection_pattern")
        if "hidden_text" in mail.warnings:
            vetoes.append("hidden_text")
        if answer.probabilities.get(HIJACK_ID, 0.0) >= HIJACK_SUSPICION:
            vetoes.append("may_be_hijack")
    return tuple(dict.fromkeys(vetoes))


_IN_WORDS = {
    "owner_wrote": "the owner wrote in this thread",
    "ancestor_moved_back": "a person moved this thread back to the inbox",
    "ancestor_below_archive_floor": "its thread was too unsure to be archived",
    "fallback_provider": "a fallback answered, and it may not archive",
    "injection_pattern": "it holds wording that gives orders to a machine",
    "hidden_text": "it hides text from its reader",
    "may_be_hijack": "it may be a hijack attempt",
    "asks_for_action": "it may ask for something to be done",
    "persons_question": "a person seems to ask something",
}


def _kept_because(vetoes: tuple[str, ...], needed: float) -> str:
    if not vetoes:
        return f"archiving asks for {needed:.2f}."
    return "; ".join(_IN_WORDS.get(code, code.replace("_", " ")) for code in vetoes) + "."


def _unsure(answer: Answer, sure: float, floor: float) -> str:
    second = runner_up(answer.probabilities)
    between = f", then {second[0]} {second[1]:.2f}" if second else ""
    first = answer.probabilities[answer.choice]
    return f"Unsure: {answer.choice} {first:.2f}{between}; confidence {sure:.2f} is under the floor {floor:.2f}."


def _fallback(
    policy: Policy, outcome: Outcome, reason: str, why: str, sure: float = 0.0, floor: float | None = None
) -> Verdict:
    needed = policy.floor if floor is None else floor
    return Verdict(
        label_id=policy.categories.fallback_id,
        action=Action.KEEP,
        outcome=outcome,
        confidence=sure,
        floor=needed,
        archive_floor=needed,
        reason=reason,
        why=why,
    )
