"""When to ask again: the server's own word on it, else a jittered backoff. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

BACKOFF_BASE_S = 0.5
BACKOFF_MOST_S = 8.0

_SECONDS = re.compile(r"[0-9]{1,12}")
_DATE = re.compile(r"[A-Z][a-z]{2,8}, .{9,12} [0-9:]{8} GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} [0-9]{4}")
_MILLISECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,6})?")


def asked_wait_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds the server asks to wait: retry-after-ms, else Retry-After (RFC 9110, 10.2.3: seconds or an HTTP-date
    in one of the three forms of 5.6.7).

    A date in the past is 0. Rubbish, negative and fractional values are None, as if the header were absent.
    """
    precise = headers.get("retry-after-ms", "").strip()
    if _MILLISECONDS.fullmatch(precise):
        return float(precise) / 1000
    text = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if not _DATE.fullmatch(text):
        return None
    try:
        then = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - now).total_seconds())


def backoff_s(attempt: int, luck: float) -> float:
    """The wait before the next try after `attempt` (from 1) failed; `luck` in 0..1 spreads many callers out."""
    full = min(BACKOFF_MOST_S, BACKOFF_BASE_S * 2.0 ** (attempt - 1))
    return full * (0.5 + 0.5 * luck)
