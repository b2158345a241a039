"""YAML with lines: what a file means, where each value stands, what is refused in it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from triage.config.load import parse_categories, validate
from triage.config.model import Keys
from triage.config.values import Duration, Text
from triage.config.yamltree import Tree, parse_tree, spell
from triage.domain.errors import ConfigError

FILE = Path("policy.yaml")


def tree(text: str) -> Tree:
    return parse_tree(text.encode(), FILE)


def test_every_value_remembers_its_line() -> None:
    found = tree("a: 1\nb:\n  - x\n  -\n    c: |\n      two\n      lines\n    d: {e: 5}\n")
    assert found.data == {"a": 1, "b": ["x", {"c": "two\nlines\n", "d": {"e": 5}}]}
    places = [("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "c"), ("b", 1, "d"), ("b", 1, "d", "e")]
    assert [found.line(place) for place in places] == [1, 2, 3, 5, 5, 8, 8]


def test_a_place_the_file_does_not_have_is_at_the_block_around_it() -> None:
    found = tree("a:\n  b: 1\n")
    assert found.where(("a", "missing")) == "policy.yaml:1"
    assert found.where(("a", "some-tag", "b")) == "policy.yaml:2"
    assert found.where(()) == "policy.yaml:1"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12), ("-3", -3), ("010", 10), ("0.5", 0.5), (".5", 0.5), ("1e3", 1000.0), ("1.", 1.0),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("2026-11-23", date(2026, 11, 23)),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("12:30", "12:30"), ("0x1F", "0x1F"), ("1_000", "1_000"),
        (".nan", ".nan"), (".inf", ".inf"), ("2026-02-30", "2026-02-30"), ("9" * 40, "9" * 40), ("'12'", "12"),
        ("127.0.0.1:8025", "127.0.0.1:8025"), ("90d", "90d"), ("-", ["x"]),
    ],
)  # fmt: skip
def test_scalars_mean_what_they_look_like(written: str, value: object) -> None:
    text = f"a: {written}\n" if written != "-" else "a:\n- x\n"
    assert tree(text).data == {"a": value}


# A line break of Unicode (NEL, U+2028, U+2029) written as a plain key does not even come back through PyYAML itself.
WRITABLE = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(WRITABLE, max_size=20), st.dates()),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text(WRITABLE, min_size=1, max_size=8), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_whatever_a_yaml_library_writes_is_read_back(value: object) -> None:
    assert parse_tree(yaml.safe_dump({"a": value}, allow_unicode=True).encode(), FILE).data == {"a": value}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("? [a]\n: 1\n", "1: the file has a key that is not a word"),
        ("a: 1\nb:\n  <<: 3\n", "3: b: << takes a block of keys (an alias of one)"),
        ("a: !!set {x}\n", "1: a has a YAML tag (!...); tags mean nothing here, remove it"),
        ("a:\n  b: &x {c: *x}\n", "2: a.b.c contains itself through an alias"),
        ("a: {b: 1,\n b: 2}\n", "2: a.b is written twice (first on line 1); keep one"),
    ],
)
def test_what_yaml_allows_and_a_configuration_does_not_mean_is_told(text: str, told: str) -> None:
    assert [f"{p.line}: {p.text}" for p in tree(text).problems] == [told]


def test_merged_keys_yield_to_the_block_s_own_and_to_earlier_ones() -> None:
    text = "p: &p {x: 1, y: 1}\nq: &q {y: 2, z: 2}\na:\n  z: 3\n  <<: [*p, *q]\n"
    found = tree(text)
    assert isinstance(found.data, dict)
    assert found.data["a"] == {"x": 1, "y": 1, "z": 3}
    assert found.problems == ()


def test_a_place_is_spelt_as_an_operator_reads_it() -> None:
    assert spell(("accounts", 0, "schedule", "cron")) == "accounts[0].schedule.cron"
    assert spell(()) == "the file"
    assert spell(("a\nb" + "x" * 50,)) == "'a\\nb" + "x" * 17 + "'..."


class Policy(Keys):
    account: Text = Field(description="the account it is for")
    wait: Duration


def test_any_other_file_of_ours_is_checked_with_the_same_messages() -> None:
    assert validate(Policy, tree("account: {env: A}\nwait: 5s\n"), {"A": "team"}).account == "team"
    with pytest.raises(ConfigError) as caught:
        validate(Policy, tree("wait: 5\nacount: x\n"), {})
    assert caught.value.problems == (
        "policy.yaml:1: account is missing: the account it is for",
        "policy.yaml:1: wait needs a number with a unit: 10s, 5m, 1h or 90d",
        "policy.yaml:2: acount is not a key here; did you mean account?",
    )


def test_categories_can_be_read_from_text() -> None:
    text = "categories: [{id: a, name: A, criteria: x}, {id: b, name: B, criteria: y}]"
    assert parse_categories(text, FILE).ids == ("a", "b")
    with pytest.raises(ConfigError, match=r"policy\.yaml:1: categories must be 2 to 255"):
        parse_categories("categories: []", FILE)
