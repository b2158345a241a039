"""The pages and /metrics over a ledger of a million decisions: milliseconds of each, first and afterwards.

    python -m bench.web [--decisions 1000000] [--directory DIRECTORY]

"first" is how long the first visitor after a start waits for figures that nobody has counted yet (the daemon itself
begins to count them when it starts). "then" are those that follow, the clock moved ahead before each, so that every
kept figure has become old and is counted anew behind the page's back.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import structlog

from bench.ledger_build import ACCOUNT, kept
from triage.bootstrap import App
from triage.clock import SystemClock
from triage.config.load import load
from triage.config.settings import HttpSettings
from triage.web.server import open_server
from triage.web.site import Site

PAGES_S = 0.5
"""The limit that a page and a scrape are held to."""
TIMES = 15


AHEAD = timedelta(minutes=10)


class HastyClock(SystemClock):
    """The real clock, moved ahead by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@contextmanager
def serving(directory: Path) -> Iterator[tuple[str, HastyClock]]:
    """The pages over the ledger in a directory, freshly started."""
    clock = HastyClock()
    app = App(load(directory, {"PW": "x"}), clock)
    app.settings = dataclasses.replace(app.settings, http=HttpSettings(port=0))
    site = Site(lambda: app, structlog.get_logger(), listens_on="127.0.0.1")
    server = open_server(HttpSettings(port=0), site.answer, structlog.get_logger())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.address.rstrip("/"), clock
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        app.close()


def seconds(address: str) -> tuple[float, int]:
    """How long an answer takes, and how many bytes it has."""
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=120) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


def counted(address: str) -> float:
    """Ask until the page no longer says "not yet"; the seconds that took."""
    began = time.perf_counter()
    while True:
        try:
            seconds(address)
            return time.perf_counter() - began
        except urllib.error.HTTPError as refused:
            refused.close()
            if refused.code != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            time.sleep(0.1)


def measure(directory: Path, path: str) -> float:
    """Print one path's figures; the slowest of the requests after the first."""
    with serving(directory) as (address, clock):
        first = counted(address + path)
        then, size = [], 0
        for _ in range(TIMES):
            clock.ahead += AHEAD
            took, size = seconds(address + path)
            then.append(took)
    slowest = max(then)
    print(
        f"{path:<34} first {1000 * first:7.0f} ms   then {1000 * min(then):4.0f} to {1000 * slowest:4.0f} ms, "
        f"median {1000 * statistics.median(then):4.0f} ms   {size / 1024:6.1f} KiB",
        flush=True,
    )
    return slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, help="Where the ledger is, or is to be built.")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    directory = kept(options.decisions, options.directory)
    app = App(load(directory, {"PW": "x"}))
    newest = app.ledger.runs(ACCOUNT, limit=1)[0]
    key = app.ledger.decisions(newest.id)[0].message_key
    app.close()
    paths = [
        "/metrics", "/", "/runs", f"/runs/{newest.id}", f"/messages/{key}", "/categories?days=90",
        f"/categories/{ACCOUNT}/receipt?days=90", "/cost?days=90", "/corrections?days=90",
    ]  # fmt: skip
    slowest = max(measure(directory, path) for path in paths)
    verdict = "within" if slowest < PAGES_S else "OVER"
    print(f"slowest after the first: {1000 * slowest:.0f} ms, {verdict} the limit of {1000 * PAGES_S:.0f} ms")


if __name__ == "__main__":
    main()
