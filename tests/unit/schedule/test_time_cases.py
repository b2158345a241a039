"""Time as it is: DST changes, sleep, clocks that are set. Each file in tests/cases/time is one story.

The ledger is a real one and the clock is moved by hand; a second passes at a time, as in the daemon, except in sleep.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from services.ledger import HandClock
from triage.domain.record import Fire
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.schedule.cron import Cron
from triage.schedule.firing import put_fires
from triage.schedule.timetable import Timetable

CASES = Path(__file__).parent.parent.parent / "cases" / "time"
TICK = timedelta(seconds=1)


class Story:
    """Fires of a timetable put into a ledger while the clock does what the case says."""

    def __init__(self, accounts: dict[str, Any], now: str, ledger_file: Path) -> None:
        self.crons = {name: Cron(told["cron"], ZoneInfo(told["timezone"])) for name, told in accounts.items()}
        self.clock = HandClock(instant(now))
        self.ledger: SqlLedger = open_ledger(f"sqlite:///{ledger_file}", self.clock)
        self.fired: list[Fire] = []
        self.marks: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        self.timetable = Timetable()
        self.timetable.set(self.crons, self.clock.now(), self.ledger.last_fires(list(self.crons)))

    def tick(self) -> None:
        due = self.timetable.due(self.clock.now())
        let_in = put_fires(self.ledger, due)
        self.fired += [fire for fire in due if fire.account in let_in]

    def tell(self, event: dict[str, Any]) -> None:
        match event:
            case {"advance_s": seconds}:
                for _ in range(seconds):
                    self.clock.advance(TICK)
                    self.tick()
            case {"sleep_to": when}:
                self.clock.advance(instant(when) - self.clock.now())
                self.tick()
            case {"set_clock": when}:
                self.clock.step(instant(when) - self.clock.now())
                self.tick()
            case {"restart_at": when}:
                self.clock.advance(instant(when) - self.clock.now())
                self.begin()
                self.tick()
            case {"mark": name}:
                self.marks[name] = len(self.fired)

    def of(self, account: str) -> list[Fire]:
        return [fire for fire in self.fired if fire.account == account]


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    story = Story(case["accounts"], case["now"], tmp_path / "ledger.db")
    for event in case["events"]:
        story.tell(event)
    expect = case["expect"]
    for account, times in expect.get("fires", {}).items():
        assert [fire.fire_time for fire in story.of(account)] == [instant(t) for t in times], account
    for account, (least, most) in expect.get("count", {}).items():
        assert least <= len(story.of(account)) <= most, account
    for account, seconds in expect.get("longest_gap_s", {}).items():
        gaps = [b.fire_time - a.fire_time for a, b in pairwise(story.of(account))]
        assert max(gaps) <= timedelta(seconds=seconds), account
    for account, missed in expect.get("missed", {}).items():
        assert [fire.missed for fire in story.of(account)] == missed, account
    for account, since in expect.get("missed_since", {}).items():
        assert [f.missed_since for f in story.of(account)] == [s and instant(s) for s in since], account
    for mark, (least, most) in expect.get("since_mark", {}).items():
        later = [at for name, at in story.marks.items() if at > story.marks[mark] and name != mark]
        until = min(later, default=len(story.fired))
        assert least <= len(story.fired[story.marks[mark] : until]) <= most, mark
    assert all(fire.fire_time.tzinfo is UTC for fire in story.fired)
    story.ledger.close()


def test_the_trace_of_missed_fires_is_in_the_ledger(tmp_path: Path) -> None:
    story = Story({"often": {"cron": "*/10 * * * *", "timezone": "UTC"}}, "2026-03-03T22:00:00Z", tmp_path / "l.db")
    story.tell({"sleep_to": "2026-03-04T05:32:00Z"})
    run = story.ledger.runs("often")[0]
    assert run.options == {"missed": "44", "missed_since": "2026-03-03T22:10:00+00:00"}
    assert run.fire_time == instant("2026-03-04T05:30:00Z")
    story.ledger.close()
