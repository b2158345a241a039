"""What makes an answer usable, and the few repairs that are certain."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from decide_world import CATEGORIES, QUESTION, SURE
from hypothesis import given
from hypothesis import strategies as st

from triage.decide.answers import (
    Distribution,
    DuplicateKey,
    NotJson,
    Unusable,
    check_distribution,
    count,
    fraction,
    model_name,
    parse_json,
    usage,
)
from triage.decide.question import build_question
from triage.domain.category import Category, CategorySet


def check(probabilities: object, choice: object = "receipt") -> Distribution | Unusable:
    return check_distribution(QUESTION, choice, probabilities)


def test_a_clean_answer_is_taken_as_it_is() -> None:
    assert check(SURE) == Distribution("receipt", SURE)


@pytest.mark.parametrize("total", [0.98, 1.02])
def test_a_rounding_error_is_renormalised_and_named(total: float) -> None:
    found = check({k: v * total for k, v in SURE.items()})
    assert isinstance(found, Distribution)
    assert found.repaired == ("renormalised",)
    assert math.isclose(sum(found.probabilities.values()), 1, abs_tol=1e-12)
    assert found.probabilities == pytest.approx(SURE)


def test_an_option_left_out_is_zero_when_the_rest_sums_to_one() -> None:
    found = check({"action-required": 0.05, "receipt": 0.95})
    assert isinstance(found, Distribution)
    assert found.probabilities == {"action-required": 0.05, "receipt": 0.95, "newsletter": 0, "none-of-these": 0}
    assert "missing_option_zero" in found.repaired


def test_a_choice_that_was_not_named_is_the_most_probable_option() -> None:
    found = check(SURE, choice=None)
    assert isinstance(found, Distribution)
    assert (found.choice, found.repaired) == ("receipt", ("choice_from_probabilities",))


def test_either_of_two_equal_options_may_be_chosen() -> None:
    tied = {"action-required": 0.4, "receipt": 0.4, "newsletter": 0.1, "none-of-these": 0.1}
    for choice in ("action-required", "receipt"):
        found = check(tied, choice)
        assert isinstance(found, Distribution)
        assert found.choice == choice


@pytest.mark.parametrize(
    ("code", "probabilities", "choice"),
    [
        ("sum", {**SURE, "receipt": 0.75}, "receipt"),
        ("sum", {**SURE, "newsletter": 0.2}, "receipt"),
        ("sum", dict.fromkeys(SURE, 0), "receipt"),
        ("sum", {"receipt": 0.5}, "receipt"),
        ("unknown_option", {**SURE, "Receipt": 0.0}, "receipt"),
        ("unknown_option", {"billing": 0.9, "sales": 0.1}, "billing"),
        ("unknown_choice", SURE, "billing"),
        ("unknown_choice", SURE, ""),
        ("not_argmax", SURE, "newsletter"),
        ("choice_type", SURE, 1),
        ("choice_type", SURE, ["receipt"]),
        ("choice_type", SURE, {"id": "receipt"}),
        ("out_of_range", {**SURE, "receipt": math.nan}, "receipt"),
        ("out_of_range", {**SURE, "receipt": math.inf}, "receipt"),
        ("out_of_range", {**SURE, "receipt": -0.1}, "receipt"),
        ("out_of_range", {**SURE, "receipt": 95}, "receipt"),
        ("out_of_range", {**SURE, "receipt": 10**4000}, "receipt"),
        ("not_a_number", {**SURE, "receipt": True}, "receipt"),
        ("not_a_number", {**SURE, "receipt": "0.95"}, "receipt"),
        ("not_a_number", {**SURE, "receipt": None}, "receipt"),
        ("not_a_number", {**SURE, "receipt": [0.95]}, "receipt"),
        ("no_probabilities", None, "receipt"),
        ("no_probabilities", {}, "receipt"),
        ("no_probabilities", [0.1, 0.9], "receipt"),
        ("no_probabilities", "receipt", "receipt"),
        ("duplicate_option", [("receipt", 0.5), ("receipt", 0.5)], "receipt"),
        ("unknown_option", [(True, 1.0)], "receipt"),
    ],
)
def test_a_doubtful_answer_is_unusable_and_says_why(code: str, probabilities: object, choice: object) -> None:
    found = check(probabilities, choice)
    assert isinstance(found, Unusable)
    assert found.code == code
    assert found.message.endswith(".")


def test_rounding_to_two_decimals_is_granted_more_where_there_are_many_options() -> None:
    """One option at 0.93 and 99 at 0.0007 each, all rounded to two decimals, sum to 0.93."""
    categories = CategorySet("", "rest", "Rest", tuple(Category(f"c{i}", f"C{i}", "-") for i in range(100)))
    question = build_question(categories, offer_none=False)
    rounded = {option: (0.93 if option == "c0" else 0.0) for option in question.ids}
    assert isinstance(check_distribution(question, "c0", rounded), Distribution)
    exact = {option: (0.9301 if option == "c0" else 0.0) for option in question.ids}
    assert isinstance(check_distribution(question, "c0", exact), Unusable)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | st.sampled_from(QUESTION.ids),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from((*QUESTION.ids, "x")), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(choice=JSON, probabilities=JSON)
def test_whatever_comes_is_a_whole_distribution_or_unusable(choice: Any, probabilities: Any) -> None:
    found = check(probabilities, choice)
    if isinstance(found, Unusable):
        return
    assert tuple(found.probabilities) == QUESTION.ids
    assert all(0 <= p <= 1 for p in found.probabilities.values())
    assert math.isclose(math.fsum(found.probabilities.values()), 1, abs_tol=1e-9)
    assert found.probabilities[found.choice] == max(found.probabilities.values())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"receipt",
        b"{",
        b'{"a": 1} {"a": 2}',
        b")]}'\n{}",
        b"\xff\xfe{\x00}\x00",
        b'{"a": "\xe9"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": ' + b"9" * 10_000 + b"}",
    ],
)
def test_what_is_not_json_raises_one_kind_of_error(data: bytes) -> None:
    with pytest.raises(NotJson):
        parse_json(data)


def test_a_key_named_twice_is_refused() -> None:
    with pytest.raises(DuplicateKey):
        parse_json(b'{"probabilities": {"receipt": 0.1, "receipt": 0.9}}')


def test_a_byte_order_mark_does_no_harm() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_a_number_too_large_for_a_float_is_found_out_of_range() -> None:
    data = parse_json(json.dumps(SURE).replace("0.95", "1e999").encode())
    assert check(data) == Unusable("out_of_range", "A probability is negative, above 1 or not finite.")


def test_counts_and_fractions_take_numbers_only() -> None:
    assert [count(v) for v in (12, 12.0, 12.5, True, "12", -1, math.nan, math.inf, 10**30)] == [12, 12] + [None] * 7
    assert [fraction(v) for v in (0.5, 1, 1.5, True, "0.5", math.nan)] == [0.5, 1.0] + [None] * 4


@pytest.mark.parametrize(
    ("data", "tokens"),
    [
        ({"usage": {"input_tokens": 400, "output_tokens": 0}}, (400, 0)),
        ({"usage": {"prompt_tokens": 500, "completion_tokens": 1}}, (500, 1)),
        ({"usage": {"input_tokens": "400"}}, (None, None)),
        ({"usage": None}, (None, None)),
        ([], (None, None)),
    ],
)
def test_the_tokens_a_response_took_are_read_under_either_name(data: object, tokens: tuple[int | None, ...]) -> None:
    assert usage(data) == tokens


def test_the_model_as_served_is_made_safe_for_a_record() -> None:
    assert model_name("jev-1.13.0", "jev-latest") == "jev-1.13.0"
    assert model_name(None, "jev-latest") == "jev-latest"
    assert model_name("\x1b[2J\ud800\n", "jev-latest") == "[2J"
    assert len(model_name("x" * 10_000, "jev-latest")) == 120


def test_the_question_holds_every_category_and_none_of_these_last() -> None:
    assert QUESTION.ids == (*CATEGORIES.ids, "none-of-these")
    assert build_question(CATEGORIES, offer_none=False).ids == CATEGORIES.ids
