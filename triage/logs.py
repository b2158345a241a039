"""Structured logs: JSON lines for machines, plain columns on a terminal, nothing private in either.

Callers bind run id, account and step with `structlog.contextvars.bound_contextvars`; every line then carries them.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from triage.domain.errors import TriageError
from triage.redact import HIDDEN, redact

FORMATS = ("auto", "json", "console")
_SECRET_KEYS = ("password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "cookie")
_FIRST = ("time", "level", "event", "run", "account", "step")
_MOST_FRAMES = 20
_DEEPEST = 4


def configure(level: str = "info", fmt: str = "auto", stream: TextIO | None = None) -> None:
    """Set up logging of the whole process; may be called again to change level or format.

    `fmt` auto means console on a terminal, JSON elsewhere. `stream` is stderr unless given, so that what a command
    prints on stdout stays clean. Libraries are heard from WARNING on, through the same renderer. Raises ValueError for
    an unknown level or format.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None or fmt not in FORMATS:
        raise ValueError(f"log level {level!r} or format {fmt!r} is not known")
    out = sys.stderr if stream is None else stream
    console = fmt == "console" or (fmt == "auto" and out.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _render_exception,
        _redact_all,
    ]
    render: list[Processor] = (
        [structlog.dev.ConsoleRenderer(colors=out.isatty(), timestamp_key="time")]
        if console
        else [_order, structlog.processors.JSONRenderer(default=_as_text)]
    )
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, _take_exception, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
            keep_exc_info=False,
        )
    )
    root = logging.getLogger()
    for old in [h for h in root.handlers if getattr(h, _OURS, False)]:
        root.removeHandler(old)
    setattr(handler, _OURS, True)
    root.addHandler(handler)
    root.setLevel(max(number, logging.WARNING))


_OURS = "_triage_handler"


def _take_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """A library's record carries its exception on the record; put it where ours is."""
    record: logging.LogRecord | None = event.get("_record")
    if record is not None and record.exc_info:
        event["exc_info"] = record.exc_info
        record.exc_info, record.exc_text = None, None
    return event


def _render_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Types and places of an exception chain. Locals never; messages only of our own errors, which hold no mail text
    and no secret (a library's message may quote the very bytes it choked on)."""
    exc_info = event.pop("exc_info", None)
    event.pop("stack_info", None)
    error = _error_of(exc_info)
    if error is not None:
        event["exception"] = describe_exception(error)
    return event


def describe_exception(error: BaseException) -> str:
    """An exception chain in a few lines, fit for a log: types, places in the code, our own messages."""
    lines: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        message = f": {current}" if isinstance(current, TriageError) else ""
        lines.append(f"{type(current).__module__}.{type(current).__qualname__}{message}")
        lines.extend(f"  {frame}" for frame in _frames(current.__traceback__))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "\n".join(lines)


def _frames(tb: TracebackType | None) -> list[str]:
    summaries = [(f.f_code.co_filename, line, f.f_code.co_name) for f, line in traceback.walk_tb(tb)]
    shown = [f"{file.rpartition('/')[2]}:{line} in {name}" for file, line, name in summaries[-_MOST_FRAMES:]]
    return shown if len(summaries) <= _MOST_FRAMES else ["...", *shown]


def _error_of(exc_info: ExcInfo | BaseException | bool | None) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1]
    return sys.exc_info()[1] if exc_info else None


def _redact_all(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return cast(EventDict, {key: _safe(key, value, 0) for key, value in event.items()})


def _safe(key: str, value: Any, depth: int) -> Any:
    if key.startswith("_") and depth == 0:  # structlog's own: the record, removed before rendering
        return value
    if value is None or isinstance(value, bool | int | float):
        return HIDDEN if _names_a_secret(key) and isinstance(value, int) and not isinstance(value, bool) else value
    if _names_a_secret(key):
        return HIDDEN
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes | bytearray):
        return f"[{len(value)} bytes]"
    if depth >= _DEEPEST:
        return "[...]"
    if isinstance(value, Mapping):
        return {redact(str(k)): _safe(str(k), v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_safe(key, v, depth + 1) for v in value]
    return redact(str(value))


@lru_cache(maxsize=1024)
def _names_a_secret(key: str) -> bool:
    folded = key.casefold().replace("-", "_")
    is_a_count = folded.endswith("tokens")
    return not is_a_count and any(word in folded for word in _SECRET_KEYS)


def _order(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """What a person looks for first stands first."""
    return {**{key: event[key] for key in _FIRST if key in event}, **event}


def _as_text(value: object) -> str:
    return redact(str(value))
