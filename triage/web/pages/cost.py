"""What the decisions cost, day by day, and which senders take the most of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup

from triage.report.text import money
from triage.web.charts.columns import daily_columns
from triage.web.messages import Request
from triage.web.page import Page, whole
from triage.web.pages.asking import account_of, days_of
from triage.web.room import PERIODS, Room
from triage.web.sums import Sums, shares

SENDERS_S = 60.0
TAIL_SHOWN = 15
TAIL_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender's domain: its mails, the tokens they took, and the share of all tokens up to and with it."""

    domain: str
    mails: int
    tokens: int
    share: float
    together: float


def cost(room: Room, request: Request) -> Page:
    """Cost and volume per day, per provider and per 1,000 mails; the token tail; what was saved."""
    account, days = account_of(room, request), days_of(request)
    since, until = room.period(days)
    ledger = room.ledger
    seen = room.by_day(account, days)
    sums, by_day = seen.value.total, seen.value.by_day
    heaviest = room.figures.look(
        ("senders", account, days), lambda: ledger.heaviest_senders(account, since, until), SENDERS_S
    ).value
    tail = _tail(heaviest, sums.input_tokens)
    values = {
        "account": account,
        "accounts": room.accounts(),
        "days": days,
        "periods": PERIODS,
        "sums": sums,
        "counted_at": seen.at,
        "cost_plot": _plot(by_day, lambda day: day.cost_usd, "Cost per day", money) if sums.cost_usd else None,
        "mail_plot": _plot(by_day, lambda day: day.decisions, "Mails decided per day", whole),
        "by_day": sorted(by_day.items(), reverse=True),
        "providers": shares(sums.providers),
        "tail": tail[:TAIL_SHOWN],
        "quarter": next((i for i, sender in enumerate(tail, start=1) if sender.together >= TAIL_SHARE), None),
        "saved_usd": _saved(sums),
    }
    return Page("cost.html", "Cost", "cost", values)


def _plot(
    by_day: Mapping[date, Sums], of: Callable[[Sums], float], title: str, write: Callable[[float], str]
) -> Markup:
    return daily_columns([(day, of(sums)) for day, sums in sorted(by_day.items())], title, write)


def _tail(heaviest: Sequence[tuple[str, int, int]], all_tokens: int) -> list[Sender]:
    found, running = [], 0
    for domain, mails, tokens in heaviest:
        running += tokens
        found.append(Sender(domain or "(no domain)", mails, tokens, tokens / all_tokens, running / all_tokens))
    return found


def _saved(sums: Sums) -> float | None:
    """What the mails that inherited from their thread would have cost at the mean price of the others."""
    return sums.inherited * sums.cost_usd / sums.paid if sums.paid else None
