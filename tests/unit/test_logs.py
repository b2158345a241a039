"""Logs as they come out: one JSON object a line, with what was bound, without anything private."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog

from triage import logs
from triage.domain.errors import MailboxLost
from triage.redact import conceal


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:], root.level = handlers, level


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logged(**event: object) -> dict[str, object]:
    out = io.StringIO()
    logs.configure("debug", "json", out)
    structlog.get_logger().info("happened", **event)
    (line,) = lines(out)
    return line


def test_a_line_carries_what_was_bound_and_a_utc_time() -> None:
    out = io.StringIO()
    logs.configure("info", "json", out)
    with structlog.contextvars.bound_contextvars(run="r-1", account="team", step="select"):
        structlog.get_logger().info("selected", messages=3)
    structlog.get_logger().info("idle")
    first, second = lines(out)
    assert {k: first[k] for k in ("event", "level", "run", "account", "step", "messages")} == {
        "event": "selected", "level": "info", "run": "r-1", "account": "team", "step": "select", "messages": 3,
    }  # fmt: skip
    assert list(first)[:3] == ["time", "level", "event"]
    moment = datetime.fromisoformat(str(first["time"]))
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)
    assert "run" not in second


def test_below_the_level_nothing_is_written() -> None:
    out = io.StringIO()
    logs.configure("warning", "json", out)
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(out)] == ["loud"]


def test_auto_means_columns_on_a_terminal_and_json_elsewhere() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        logs.configure("info", "auto", stream)
        structlog.get_logger().info("selected", messages=3)
    assert not terminal.getvalue().startswith("{")
    assert "selected" in terminal.getvalue()
    assert lines(pipe)[0]["messages"] == 3


def test_libraries_are_heard_from_warning_on_through_the_same_renderer() -> None:
    out = io.StringIO()
    logs.configure("debug", "json", out)
    for name in ("httpx", "apscheduler.scheduler", "alembic.runtime", "sqlalchemy.engine"):
        logging.getLogger(name).info("request to https://example.com")
        logging.getLogger(name).warning("slow: %s", "https://example.com/x")
    assert [(line["logger"], line["event"]) for line in lines(out)] == [
        (name, "slow: [url]") for name in ("httpx", "apscheduler.scheduler", "alembic.runtime", "sqlalchemy.engine")
    ]


def test_configuring_again_does_not_double_the_lines() -> None:
    out = io.StringIO()
    logs.configure("info", "json", io.StringIO())
    logs.configure("info", "json", out)
    logging.getLogger("httpx").warning("once")
    structlog.get_logger().info("once")
    assert len(lines(out)) == 2


def test_nothing_private_reaches_a_line_however_deep_it_is() -> None:
    """Canaries: an address, a URL, a secret, in every kind of value a caller could pass."""
    conceal("canary-secret")
    private = "canary@example.com https://example.com/canary canary-secret"
    line = logged(
        text=private, items=[private, (private,)], nested={"a": {"b": [private]}}, keyed={private: 1},
        error=ValueError(private), path=Path("/canary-secret"), raw=private.encode(), password="canary-word",
        api_key="canary-word", Authorization="canary-word", tokens_of={"refresh_token": "canary-word"},
    )  # fmt: skip
    assert "canary" not in json.dumps(line)
    assert line["text"] == "@example.com [url] [hidden]"


def test_numbers_keep_their_kind_and_token_counts_are_no_secrets() -> None:
    line = logged(input_tokens=812, cost_usd=0.25, done=True, nothing=None, token=123456)
    assert (line["input_tokens"], line["cost_usd"], line["done"], line["nothing"]) == (812, 0.25, True, None)
    assert line["token"] == "[hidden]"


def test_an_exception_tells_types_and_places_but_neither_locals_nor_a_library_s_message() -> None:
    """A library's message may quote the mail it choked on."""
    out = io.StringIO()
    logs.configure("info", "json", out)

    def fails(body: str) -> None:
        try:
            body.encode("ascii")
        except UnicodeEncodeError as error:
            raise MailboxLost("team: the connection was lost") from error

    try:
        fails("canary ñ text")
    except MailboxLost:
        structlog.get_logger().exception("step failed")
    (line,) = lines(out)
    told = str(line["exception"])
    assert "triage.domain.errors.MailboxLost: team: the connection was lost" in told
    assert "builtins.UnicodeEncodeError" in told
    assert "test_logs.py:" in told
    assert "in fails" in told
    assert "canary" not in json.dumps(line)


def test_a_library_s_exception_is_told_the_same_way() -> None:
    out = io.StringIO()
    logs.configure("info", "json", out)
    try:
        {}["canary"]
    except KeyError:
        logging.getLogger("apscheduler").exception("Job failed")
    (line,) = lines(out)
    assert str(line["exception"]).startswith("builtins.KeyError\n  test_logs.py:")
    assert "canary" not in out.getvalue()


def test_an_exception_is_readable_on_a_terminal_too() -> None:
    out = Terminal()
    logs.configure("info", "console", out)
    try:
        {}["canary"]
    except KeyError:
        structlog.get_logger().exception("step failed")
    assert "builtins.KeyError" in out.getvalue()
    assert "canary" not in out.getvalue()


def test_an_exception_that_is_its_own_cause_ends() -> None:
    first, second = ValueError("a"), TypeError("b")
    first.__cause__, second.__cause__ = second, first
    assert logs.describe_exception(first) == "builtins.ValueError\nbuiltins.TypeError"


@pytest.mark.parametrize(("level", "fmt"), [("loud", "json"), ("info", "xml")])
def test_unknown_levels_and_formats_are_refused(level: str, fmt: str) -> None:
    with pytest.raises(ValueError, match="is not known"):
        logs.configure(level, fmt, io.StringIO())
