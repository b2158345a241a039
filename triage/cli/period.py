"""Periods as the command line takes them: `7d`, `12h`, a day, an instant."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from triage.domain.errors import ConfigError

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def since(text: str, now: datetime) -> datetime:
    """The instant a period began that ends `now`. Raises ConfigError for what is none."""
    match = re.fullmatch(r"([0-9]{1,5})([mhdw])", text)
    if match:
        return now - int(match[1]) * _UNITS[match[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--since {text}: write a span such as 7d or 12h, or a day such as 2026-11-23") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
