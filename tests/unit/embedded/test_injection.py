"""The injection finder: silent on ordinary talk of instructions and passwords, awake to orders given to a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.decide.embedded.weights import shipped

CASES = Path(__file__).parents[2] / "cases" / "embedded"


def sentences(name: str) -> list[str]:
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines if not line.startswith("#")]


@pytest.mark.parametrize("sentence", sentences("ordinary_talk.txt"))
def test_ordinary_talk_is_no_injection(sentence: str) -> None:
    assert not shipped().finder.find("Hello", sentence).suspicious


def test_nearly_all_orders_to_a_machine_are_noticed() -> None:
    """None of these is training mail. A miss is no hole: the text can still move no more than its own label."""
    orders = sentences("injections.txt")
    missed = [order for order in orders if not shipped().finder.find("Hello", order).suspicious]
    assert len(missed) <= 2, missed


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_order_is_noticed_wherever_it_stands_in_a_long_mail(place: int) -> None:
    paragraphs = ["The market was quiet today. Two lots were sold and the rain stayed away."] * 40
    paragraphs.insert((0, 20, 40)[place], sentences("injections.txt")[0])
    assert shipped().finder.find("Market report", "\n\n".join(paragraphs)).suspicious


def test_where_an_order_points_to_does_not_make_it_one() -> None:
    """The words of an address are nobody's words."""
    finder = shipped().finder
    plain = finder.find("", "Please send the list to ann.")
    with_address = finder.find("", "Please send the list to assistant.system@ignore-instructions.example.")
    assert not plain.suspicious
    assert not with_address.suspicious
