"""Every fault of the System One reference mock in turn: no crash, no label outside the categories, nothing usable on
an unusable answer. `pytest -s` prints the table."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from services.jevcompat import FAULTS, faulty, mock
from triage.clock import SystemClock
from triage.decide.chain import Chain
from triage.decide.cost import SpendGuard
from triage.decide.link import Link
from triage.decide.providers import remote_provider
from triage.decide.question import build_question
from triage.domain.category import Category, CategorySet
from triage.domain.decision import Ruling
from triage.domain.mail import PreparedMail

QUESTION = build_question(
    CategorySet(
        "",
        "unclassified",
        "Unclassified",
        tuple(Category(n, n, f"It is a {n}.") for n in ("action-required", "receipt", "newsletter", "spam")),
    ),
    offer_none=True,
)
MAILS = {n: PreparedMail(f"a{n}@example.com", "t@example.com", f"Mail {n}", "Some text. " * n) for n in range(1, 9)}

NO_ANSWER = {
    "wrong-route": "not_found",
    "xssi-200": "not_json",
    "auth-rejects-header": "unauthorized",
    "auth-x-api-key": "forbidden",
    "reject-jev-latest": "not_found",
    "choice-sum": "sum",
    "choice-second": "not_argmax",
}
"""The faults that leave a choice question without a usable answer, and the reason that is recorded."""


class NoBreakers:
    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return None

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        pass


def decide(url: str, api_key: str | None = "a-key") -> dict[int, Ruling]:
    clock = SystemClock()
    provider = remote_provider(
        "systemone", base_url=url, model="jev-latest", clock=clock, api_key=api_key, retries=0, timeout_s=5
    )
    chain = Chain([Link(provider, "key", 0)], clock=clock, breakers=NoBreakers(), spend=SpendGuard(lambda: 0.0, None))
    rulings: dict[int, Ruling] = {}
    chain.decide(
        QUESTION,
        MAILS,
        deadline=time.monotonic() + 30,
        stop=threading.Event(),
        on_rulings=rulings.update,
    )
    chain.close()
    return rulings


@dataclass(frozen=True)
class Row:
    fault: str
    answered: int
    reasons: tuple[str, ...]
    repaired: tuple[str, ...]


@pytest.fixture(scope="module")
def table() -> Iterator[list[Row]]:
    rows: list[Row] = []
    yield rows
    print(f"\n{'fault':<24}{'answered':>9}  why not, or what was repaired")
    for row in rows:
        print(f"{row.fault:<24}{row.answered:>6}/{len(MAILS)}  {', '.join(row.reasons + row.repaired)}")


@pytest.mark.parametrize("fault", ["none", *FAULTS])
def test_a_fault_does_no_harm(fault: str, table: list[Row]) -> None:
    with faulty(fault) as url:
        rulings = decide(url)
    assert set(rulings) == set(MAILS)
    answers = [r.answer for r in rulings.values() if r.answer]
    for answer in answers:
        assert tuple(answer.probabilities) == QUESTION.ids
        assert math.isclose(sum(answer.probabilities.values()), 1, abs_tol=1e-9)
        assert answer.probabilities[answer.choice] == max(answer.probabilities.values())
        assert answer.model == "jevcompat-mock-0.1"
        assert answer.input_tokens > 0
    reasons = {f.code for r in rulings.values() for f in r.failures}
    table.append(
        Row(fault, len(answers), tuple(sorted(reasons)), tuple(sorted({x for a in answers for x in a.repaired})))
    )
    if fault in NO_ANSWER:
        assert (len(answers), reasons) == (0, {NO_ANSWER[fault]})
    else:
        assert (len(answers), reasons) == (len(MAILS), set())


@pytest.mark.parametrize(
    ("fault", "key", "code"),
    [
        ("auth-plain", None, "unauthorized"),
        ("auth-invalid-403-text", "wrong", "unauthorized"),
        (None, "wrong", "unauthorized"),
    ],
)
def test_a_wrong_or_missing_key_stops_the_asking(fault: str | None, key: Any, code: str) -> None:
    with mock("--key", "right", *(["--fault", fault] if fault else [])) as url:
        rulings = decide(url, api_key=key)
    assert {f.code for r in rulings.values() for f in r.failures} == {code}
    assert not any(r.asked for r in rulings.values())


def test_the_providers_own_confidence_is_kept_only_if_it_can_be_one() -> None:
    with mock("--fault", "confidence-over") as url:
        rulings = decide(url)
    assert {r.answer.provider_confidence for r in rulings.values() if r.answer} == {None}


def test_a_limit_of_64_is_met_by_leaving_out_none_of_these() -> None:
    categories = CategorySet("", "rest", "Rest", tuple(Category(f"c{i}", f"C{i}", f"Kind {i}.") for i in range(64)))
    question = build_question(categories, offer_none=True)
    with mock("--fault", "cap-64") as url:
        provider = remote_provider("systemone", base_url=url, model="jev-latest", clock=SystemClock())
        found = provider.probe(question, time.monotonic() + 5)
        provider.close()
    assert len(getattr(found, "probabilities", ())) == 64
    assert provider.option_limit == 64
