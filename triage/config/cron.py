"""Five-field cron lines: checked here, and spelt so that weekday numbers cannot be misread.

Cron counts 0 (and 7) as Sunday; some schedulers count 0 as Monday. `parse_cron` answers with names.
"""

from __future__ import annotations

from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()  # the word for `low`, `low` + 1, ...


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("weekday", 0, 7, (*_WEEKDAYS, "sun")),
)


def parse_cron(text: str) -> str:
    """A cron line in one unambiguous spelling: single spaces, lower case, weekdays as names.

    Raises ValueError with what to do when it is no cron line, never fires, or restricts both day of the month and
    weekday (cron reads that as "or", other schedulers as "and").
    """
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f'needs five fields (minute hour day month weekday), not {len(parts)}; every five minutes is "*/5 * * * *"'
        )
    values = [_values(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    days, months = values[2], values[3]
    if not any(day <= _LONGEST_MONTHS[month - 1] for month in months for day in days):
        raise ValueError("never fires: none of its months has such a day")
    if parts[4].startswith("*") and "/" not in parts[4]:
        return " ".join((*parts[:4], "*"))
    if not parts[2].startswith("*") or "/" in parts[2]:
        raise ValueError("restricts both the day of the month and the weekday; leave one of them *")
    weekdays = {value % 7 for value in values[4]}
    return " ".join((*parts[:4], ",".join(_WEEKDAYS[day] for day in sorted(weekdays))))


def _values(text: str, field: _Field) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, slash, step_text = item.partition("/")
        step = _number(step_text, field, "step") if slash else 1
        first, dash, last = span.partition("-")
        if span == "*":
            low, high = field.low, field.high if field.name != "weekday" else 6
        else:
            low = _point(first, field)
            high = _point(last, field) if dash else (field.high if slash else low)
            if field.words and field.name == "weekday" and high == 0 and dash:
                high = 7
        if low > high:
            raise ValueError(f"counts backwards in the {field.name} ({item})")
        if slash and not 1 <= step <= max(high - low, 0):
            raise ValueError(f"has a step in the {field.name} ({item}) that leads nowhere")
        found.update(range(low, high + 1, step))
    return found


def _point(text: str, field: _Field) -> int:
    if text in field.words:
        return field.words.index(text) + field.low
    value = _number(text, field, "value")
    if not field.low <= value <= field.high:
        raise ValueError(f"has {value} as {field.name}; it goes from {field.low} to {field.high}")
    return value


def _number(text: str, field: _Field, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise ValueError(f"has a {what} in the {field.name} that is not understood ({text[:12]})")
    return int(text)
