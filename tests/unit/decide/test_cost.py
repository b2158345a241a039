"""Prices by model name, and the guard on the day's spending."""

from __future__ import annotations

import pytest

from triage.decide.cost import PRICES, Price, SpendGuard, estimate_tokens, find_price


@pytest.mark.parametrize(
    ("provider", "model", "usd"),
    [
        ("systemone", "jev-1.13.0", 0.042),
        ("systemone", "jev-latest", 0.042),
        ("systemone", "typesafe/jev-1.13-20260917", 0.042),
        ("systemone", "~typesafe/jev-latest", 0.042),
        ("openai-decisions", "gpt-6-luna", 0.10),
        ("openai-chat", "gpt-6-luna", 0.60),
    ],
)
def test_a_model_is_priced_by_the_name_it_was_served_under(provider: str, model: str, usd: float) -> None:
    price = find_price(provider, model)
    assert price is not None
    assert price.usd(1_000_000, 1_000_000) == pytest.approx(usd)


@pytest.mark.parametrize("model", ["nimble", "jev-2.0", "qwen3:4b", ""])
def test_a_model_that_is_not_in_the_table_has_no_price(model: str) -> None:
    assert find_price("systemone", model) is None


def test_every_built_in_price_says_when_it_was_read() -> None:
    assert all(entry.seen.year >= 2025 for entry in PRICES)


def test_a_price_is_per_million_tokens() -> None:
    assert Price(0.042).usd(600) * 1000 == pytest.approx(0.0252)


def test_tokens_are_estimated_from_length() -> None:
    assert [estimate_tokens(t) for t in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_no_cap_never_refuses_and_never_asks_the_ledger() -> None:
    def ledger() -> float:
        raise AssertionError

    guard = SpendGuard(ledger, None)
    guard.refresh()
    for _ in range(3):
        assert guard.admit()
        guard.settle(1e6)


def test_a_cap_of_zero_refuses_at_once() -> None:
    guard = SpendGuard(lambda: 0.0, 0.0)
    guard.refresh()
    assert not guard.admit()


def test_what_is_under_way_counts_at_the_dearest_price_seen() -> None:
    guard = SpendGuard(lambda: 0.25, 1.0)
    guard.refresh()
    assert guard.admit()
    guard.settle(0.25)
    assert guard.admit()
    assert guard.admit()
    assert not guard.admit()
    guard.settle(0.0)
    assert guard.admit()


def test_a_new_day_begins_at_what_the_ledger_says() -> None:
    spent = [1.0]
    guard = SpendGuard(lambda: spent[0], 1.0)
    guard.refresh()
    assert not guard.admit()
    assert "1.00 USD" in guard.reason
    spent[0] = 0.0
    guard.refresh()
    assert guard.admit()
