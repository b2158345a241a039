"""Categories: which are sure of themselves, which compete, and whether what they claim comes true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triage.domain.category import NONE_ID, Action, Category, CategorySet
from triage.report.tuning import MANY_UNSURE, UNSURE_BELOW, Calibration, Competition, Pair, calibrate
from triage.web.charts.calibration import calibration_plot
from triage.web.charts.histogram import confidence_histogram
from triage.web.messages import Request
from triage.web.page import NotThere, Page
from triage.web.pages.asking import account_of, days_of, known_account
from triage.web.pages.telling import name_of
from triage.web.room import PERIODS, Room
from triage.web.sums import CategorySums

UNSURE_MOST = 5_000
REVIEWED_MOST = 2_000
REVIEWS_S = 60.0


@dataclass(frozen=True, slots=True)
class Row:
    """One category in the list. `category` is None for the fallback, for none-of-these and for what is gone."""

    id: str
    name: str
    category: Category | None
    action: Action
    sums: CategorySums

    @property
    def overlaps(self) -> bool:
        return self.sums.below_share is not None and self.sums.below_share > MANY_UNSURE


def all_categories(room: Room, request: Request) -> Page:
    """Every category of an account with its figures, and the pairs that compete."""
    account, days = account_of(room, request), days_of(request)
    sums = room.sums(account, days)
    categories = _set_of(room, account)
    values = {
        "account": account,
        "accounts": room.accounts(),
        "days": days,
        "periods": PERIODS,
        "rows": _rows(categories, sums.value.categories),
        "sums": sums.value,
        "counted_at": sums.at,
        "pairs": _pairs(room, account, days, categories),
        "expected": MANY_UNSURE,
    }
    return Page("categories.html", "Categories", "categories", values)


def one_category(room: Room, request: Request, account: str, category_id: str) -> Page:
    """One category: its criteria, how sure its answers were, what competes with it, what people said of it."""
    account, days = known_account(room, account), days_of(request)
    categories = _set_of(room, account)
    seen = room.sums(account, days)
    sums = seen.value.categories.get(category_id)
    if sums is None and (categories is None or category_id not in (*categories.label_ids, NONE_ID)):
        raise NotThere(f"Account {account} has no category {category_id}.")
    sums = sums or CategorySums()
    category = categories.get(category_id) if categories else None
    floor = max(room.app.settings.decision.floor, category.floor or 0.0 if category else 0.0)
    calibration = _calibrations(room, account, days).get(category_id)
    title = name_of(categories, category_id)
    values = {
        "account": account,
        "id": category_id,
        "days": days,
        "periods": PERIODS,
        "category": category,
        "action": categories.action(category_id) if categories else None,
        "floor": floor,
        "sums": sums,
        "counted_at": seen.at,
        "histogram": confidence_histogram(sums.bins, floor, f"Confidence of {title}") if sums.named else None,
        "calibration": calibration,
        "calibration_plot": calibration_plot(calibration.bins, f"Calibration of {title}") if calibration else None,
        "pairs": [p for p in _pairs(room, account, days, categories) if category_id in (p.first, p.second)],
        "expected": MANY_UNSURE,
    }
    return Page("category.html", title, "categories", values)


def _rows(categories: CategorySet | None, found: dict[str, CategorySums]) -> list[Row]:
    """The configured categories as the operator ordered them, then whatever else the records name."""
    configured = categories.label_ids if categories else ()
    ids = [*configured, *sorted(name for name in found if name not in configured)]
    return [
        Row(
            id=each,
            name=name_of(categories, each),
            category=categories.get(each) if categories else None,
            action=categories.action(each) if categories else Action.KEEP,
            sums=found.get(each, CategorySums()),
        )
        for each in ids
    ]


def _set_of(room: Room, account: str) -> CategorySet | None:
    settings = room.settings_of(account)
    return settings.categories if settings else None


def _pairs(room: Room, account: str, days: int, categories: CategorySet | None) -> Sequence[Pair]:
    """The pairs that compete among the newest unsure answers; none for an account without categories."""

    def find() -> Competition:
        since, until = room.period(days)
        competition = Competition()
        for probabilities in room.ledger.unsure(account, since, until, UNSURE_BELOW, UNSURE_MOST):
            competition.add(probabilities)
        return competition

    competition = room.figures.look(("pairs", account, days), find, REVIEWS_S).value
    return competition.pairs(categories) if categories else ()


def _calibrations(room: Room, account: str, days: int) -> Mapping[str, Calibration]:
    """By label what people made of its decisions."""

    def find() -> Mapping[str, Calibration]:
        reviewed = room.ledger.reviewed(account, room.period(days)[0], REVIEWED_MOST)
        return {each.label_id: each for each in calibrate(reviewed)}

    return room.figures.look(("calibration", account, days), find, REVIEWS_S).value
