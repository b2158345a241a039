"""What a request says about which account and which period a page is for."""

from __future__ import annotations

from triage.web.messages import Request
from triage.web.page import NotThere
from triage.web.room import PERIODS, USUAL_PERIOD, Room


def account_of(room: Room, request: Request) -> str:
    """The account asked for, else the first. Raises NotThere for one that nobody knows."""
    known = room.accounts()
    asked = request.query.get("account", "")
    if not asked and known:
        return known[0]
    return known_account(room, asked)


def known_account(room: Room, name: str) -> str:
    """The account as it is spelled in the records. Raises NotThere."""
    for account in room.accounts():
        if account.casefold() == name.casefold():
            return account
    raise NotThere(f"There is no account {name}.")


def days_of(request: Request) -> int:
    """The period asked for in days, the usual one if it is none of those offered."""
    asked = request.query.get("days", "")
    return next((days for days in PERIODS if str(days) == asked), USUAL_PERIOD)
