"""How values are written for people, on a terminal and on a page alike. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime


def truncated(share: float) -> str:
    """Two decimals, cut and not rounded: 0.699 is not shown as having reached 0.70."""
    return f"{int(share * 100 + 1e-9) / 100:.2f}"


def harmless(text: str) -> str:
    """Text out of a mail, safe to show: one line, no control, format or bidirectional characters."""
    kept = (" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join("".join(kept).split())


def joined(parts: Sequence[str]) -> str:
    return ", ".join(part for part in parts if part)


def minute(moment: datetime | None) -> str:
    """A time to the minute in UTC; "" for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z, to the millisecond."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def money(usd: float) -> str:
    """Dollars with as many digits as say something: `0 USD`, `0.0021 USD`, `1.30 USD`."""
    if usd == 0:
        return "0 USD"
    return f"{usd:.2f} USD" if usd >= 1 else f"{usd:.4f} USD"
