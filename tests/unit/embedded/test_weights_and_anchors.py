"""The shipped table, and which option stands for which anchor."""

from __future__ import annotations

import math

import pytest
from embedded_world import EIGHT, LETTER, ORDER, QUESTION_MAIL, provider

from triage.decide.embedded.anchors import anchor_named, anchor_of
from triage.decide.embedded.injection import Finder
from triage.decide.embedded.weights import ANCHORS, pack, shipped, softmax, unpack
from triage.domain.category import NONE_ID
from triage.domain.decision import Option
from triage.domain.mail import PreparedMail

ROWS = {"w:order": (5, 0, -3, 1, 2, 0, 9, -14), "#list": (0, 0, 0, 7, 0, 0, 0, -7)}
FINDER = Finder({"override&rules": 1.25}, -2.0)


def _packed() -> bytes:
    return pack(ROWS, {"w:order": 2.5}, [0.0] * 8, scale=0.01, temperature=0.9, finder=FINDER)


def test_packing_the_same_table_gives_the_same_bytes_and_reads_back() -> None:
    assert _packed() == _packed()
    table = unpack(_packed())
    assert table.rows == ROWS
    assert table.rarity == {"order": 2.5}
    assert (table.finder, table.temperature) == (FINDER, 0.9)


def test_the_order_of_rows_does_not_change_the_bytes() -> None:
    turned = dict(reversed(list(ROWS.items())))
    assert pack(turned, {"w:order": 2.5}, [0.0] * 8, scale=0.01, temperature=0.9, finder=FINDER) == _packed()


@pytest.mark.parametrize("data", [b"", b"nonsense", _packed()[:-4], _packed()[:20]])
def test_a_damaged_table_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="weight table"):
        unpack(data)


def test_logits_are_the_weighted_sum_scaled() -> None:
    logits = unpack(_packed()).logits({"w:order": 2.0, "#list": 1.0, "unknown": 9.0})
    assert logits[0] == pytest.approx(2.0 * 5 * 0.01 * 0.9)
    assert logits[7] == pytest.approx((2.0 * -14 - 7) * 0.01 * 0.9)


def test_the_shipped_table_is_small_and_knows_the_eight_anchors() -> None:
    table = shipped()
    assert len(table.rows) > 3000
    assert len(table.bias) == len(ANCHORS)
    assert all(math.isfinite(b) for b in table.bias)


def test_softmax_of_huge_logits_is_finite() -> None:
    assert softmax([1e6, 0.0, -1e6]) == pytest.approx([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("name", "anchor"),
    [
        ("receipt", "receipt"), ("Factura", "receipt"), ("boletín", "newsletter"), ("invoices", "receipt"),
        ("accion-requerida", "action-required"), ("Junk", "spam"), ("Werbung", "promotion"), ("court-notices", None),
    ],
)  # fmt: skip
def test_category_names_in_several_languages_find_their_anchor(name: str, anchor: str | None) -> None:
    assert anchor_named(name) == anchor


def test_like_outranks_the_id_and_an_unknown_like_leaves_the_option_to_its_wording() -> None:
    assert anchor_of(Option("newsletter", "", like="receipt")) == "receipt"
    assert anchor_of(Option("newsletter", "", like="court notices")) is None
    assert anchor_of(Option(NONE_ID, "")) is None


@pytest.mark.parametrize(
    ("mail", "expected"), [(ORDER, "receipt"), (LETTER, "newsletter"), (QUESTION_MAIL, "action-required")]
)
def test_plain_mails_are_recognised(mail: PreparedMail, expected: str) -> None:
    assert provider().ask(EIGHT, mail, 0.0).choice == expected
