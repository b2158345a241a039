"""From an answer to a label: floors, none-of-these, vetoes, threads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.category import HIJACK_ID, NONE_ID, Action, Category, CategorySet
from triage.domain.decision import Ancestor, Answer, Failure, FailureKind, Outcome, Ruling
from triage.domain.mail import PreparedMail
from triage.policy.confidence import confidence, runner_up
from triage.policy.judge import Policy, Terms, judge, judge_inherited, judge_outage, judge_unreadable

CATEGORIES = CategorySet(
    "Triage",
    "unclassified",
    "Unclassified",
    (
        Category("action-required", "A", "a"),
        Category("newsletter", "N", "n", action=Action.ARCHIVE),
        Category("spam", "S", "s", action=Action.ARCHIVE, floor=0.8),
        Category(HIJACK_ID, "H", "h", action=Action.ARCHIVE),
    ),
)
MAIL = PreparedMail("a@b.example", "c@d.example", "s", "body")
HIDING = replace(MAIL, warnings=("hidden_text",))
PLAIN, CAUTIOUS, FALLBACK = Terms(), Terms(archive_floor=0.7, cautious=True), Terms(may_archive=False)
POLICY = Policy(CATEGORIES, 0.5, (PLAIN, CAUTIOUS, FALLBACK))
OPTIONS = (*CATEGORIES.ids, NONE_ID)


def answer(choice: str, sure: float, **changes: object) -> Answer:
    """An answer whose confidence is exactly `sure`, the rest shared evenly."""
    n = len(OPTIONS)
    top = sure * (1 - 1 / n) + 1 / n
    probabilities = {o: top if o == choice else (1 - top) / (n - 1) for o in OPTIONS}
    return replace(Answer(choice, probabilities, "p", "m"), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("choice", "sure", "position", "label", "action", "outcome"),
    [
        ("newsletter", 0.51, 0, "newsletter", Action.ARCHIVE, Outcome.APPLIED),
        ("newsletter", 0.49, 0, "unclassified", Action.KEEP, Outcome.BELOW_FLOOR),
        ("action-required", 0.99, 0, "action-required", Action.KEEP, Outcome.APPLIED),
        ("spam", 0.79, 0, "unclassified", Action.KEEP, Outcome.BELOW_FLOOR),
        ("spam", 0.81, 0, "spam", Action.ARCHIVE, Outcome.APPLIED),
        ("newsletter", 0.69, 1, "newsletter", Action.KEEP, Outcome.APPLIED),
        ("newsletter", 0.71, 1, "newsletter", Action.ARCHIVE, Outcome.APPLIED),
        ("newsletter", 0.99, 2, "newsletter", Action.KEEP, Outcome.APPLIED),
        (NONE_ID, 0.9, 0, "unclassified", Action.KEEP, Outcome.APPLIED),
        (NONE_ID, 0.2, 0, "unclassified", Action.KEEP, Outcome.BELOW_FLOOR),
        (HIJACK_ID, 0.99, 0, HIJACK_ID, Action.KEEP, Outcome.APPLIED),
    ],
)
def test_floor_and_terms_decide(
    choice: str, sure: float, position: int, label: str, action: Action, outcome: Outcome
) -> None:
    verdict = judge(Ruling(answer(choice, sure), position), MAIL, POLICY)
    assert verdict is not None
    assert (verdict.label_id, verdict.action, verdict.outcome) == (label, action, outcome)
    assert verdict.confidence == pytest.approx(sure)


def test_exactly_at_the_floor_counts() -> None:
    exact = Answer("newsletter", {"newsletter": 0.75, "action-required": 0.25}, "p", "m")
    verdict = judge(Ruling(exact, 0), MAIL, POLICY)
    assert verdict is not None
    assert verdict.confidence == verdict.floor == 0.5
    assert verdict.action is Action.ARCHIVE


@pytest.mark.parametrize(
    ("mail", "changes", "veto"),
    [
        (HIDING, {}, "hidden_text"),
        (MAIL, {"hijack_signs": 1}, "injection_pattern"),
        (MAIL, {"vetoes": ("asks_for_action",)}, "asks_for_action"),
    ],
)
def test_a_cautious_provider_archives_nothing_suspicious(
    mail: PreparedMail, changes: dict[str, object], veto: str
) -> None:
    cautious = judge(Ruling(answer("newsletter", 0.99, **changes), 1), mail, POLICY)
    assert cautious is not None
    assert (cautious.label_id, cautious.action, cautious.vetoes) == ("newsletter", Action.KEEP, (veto,))


def test_a_chance_of_a_hijack_is_enough_to_keep_it() -> None:
    told = Answer("newsletter", {"newsletter": 0.84, HIJACK_ID: 0.15, "spam": 0.01}, "p", "m")
    verdict = judge(Ruling(told, 1), MAIL, POLICY)
    assert verdict is not None
    assert verdict.vetoes == ("may_be_hijack",)


def test_a_thread_the_owner_wrote_in_stays_whatever_the_answer() -> None:
    verdict = judge(Ruling(answer("newsletter", 0.99), 0), MAIL, POLICY, "owner_wrote")
    assert verdict is not None
    assert (verdict.action, verdict.vetoes) == (Action.KEEP, ("owner_wrote",))


def failure(kind: FailureKind) -> Failure:
    return Failure("p", kind, "code", "Sentence.")


@pytest.mark.parametrize(
    ("kinds", "outcome"),
    [
        ([FailureKind.UNUSABLE], Outcome.UNUSABLE_ANSWER),
        ([FailureKind.UNUSABLE, FailureKind.TRANSIENT], Outcome.CHAIN_FAILED),
        ([FailureKind.MESSAGE], Outcome.CHAIN_FAILED),
    ],
)
def test_without_an_answer_the_fallback_label(kinds: list[FailureKind], outcome: Outcome) -> None:
    verdict = judge(Ruling(None, failures=tuple(map(failure, kinds))), MAIL, POLICY)
    assert verdict is not None
    assert (verdict.label_id, verdict.action, verdict.outcome, verdict.why) == (
        "unclassified",
        Action.KEEP,
        outcome,
        "Sentence.",
    )


def test_a_message_nobody_was_asked_about_gets_no_verdict() -> None:
    assert judge(Ruling(None, asked=False), MAIL, POLICY) is None


@pytest.mark.parametrize(
    ("confidence_", "archive_floor", "keep", "action"),
    [
        (1.0, 0.0, "", Action.ARCHIVE),
        (0.6, 0.5, "", Action.ARCHIVE),
        (0.6, 0.7, "", Action.KEEP),
        (0.9, float("inf"), "", Action.KEEP),
        (1.0, 0.0, "owner_wrote", Action.KEEP),
    ],
)
def test_an_inherited_archive_needs_the_confidence_its_ancestor_needed(
    confidence_: float, archive_floor: float, keep: str, action: Action
) -> None:
    ancestor = Ancestor("k", "newsletter", confidence_, "decision", "reference", "same_list")
    verdict = judge_inherited(ancestor, POLICY, archive_floor, keep)
    assert (verdict.label_id, verdict.action, verdict.outcome) == ("newsletter", action, Outcome.INHERITED)
    assert verdict.archive_floor <= 1


def test_what_cannot_be_read_or_asked_stays_visible() -> None:
    for verdict in (judge_unreadable(POLICY, "why"), judge_outage(POLICY, "why")):
        assert (verdict.label_id, verdict.action, verdict.outcome) == (
            "unclassified",
            Action.KEEP,
            Outcome.CHAIN_FAILED,
        )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=255).filter(lambda p: sum(p) > 0))
def test_confidence_is_a_share_and_grows_with_the_best_option(weights: list[float]) -> None:
    total = sum(weights)
    p = {str(i): w / total for i, w in enumerate(weights)}
    assert 0 <= confidence(p) <= 1


@given(st.sampled_from(OPTIONS), st.floats(0, 1), st.sampled_from([0, 1, 2]))
def test_nothing_is_archived_under_its_floor(choice: str, sure: float, position: int) -> None:
    verdict = judge(Ruling(answer(choice, sure), position), MAIL, POLICY)
    assert verdict is not None
    assert verdict.label_id in CATEGORIES.label_ids
    if verdict.action is Action.ARCHIVE:
        assert verdict.confidence >= verdict.archive_floor >= verdict.floor >= POLICY.floor
        assert verdict.label_id in {"newsletter", "spam"}


def test_a_uniform_guess_is_no_confidence_and_one_option_tells_nothing() -> None:
    assert confidence({"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}) == 0
    assert confidence({"a": 1.0}) == 0
    assert confidence({}) == 0
    assert confidence({"a": 0.75, "b": 0.25}) == 0.5


def test_the_runner_up_is_the_second_most_probable() -> None:
    assert runner_up({"a": 0.2, "b": 0.5, "c": 0.3}) == ("c", 0.3)
    assert runner_up({"a": 1.0}) is None
