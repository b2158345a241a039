"""Waiting on a terminal: Ctrl-C and SIGTERM cancel the wait, and its receipt is written."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from types import FrameType

from triage.agent.result import Result
from triage.agent.states import State
from triage.agent.tool import MailTool
from triage.agent.waiting import Signals


def wait_until_told(tool: MailTool, request: Mapping[str, object], *, follow: bool) -> Result:
    """One call of the wait, or with `follow` as many as it takes."""
    signals = Signals()

    def stop(_signum: int, _frame: FrameType | None) -> None:
        signals.stop()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        result = tool.wait(request, signals=signals)
        while follow and result.state is State.PENDING and result.wait_id is not None:
            signals.cancel.wait(min(result.next_retry_after_ms or 0, 5_000) / 1000)
            result = tool.wait({**request, "wait_id": result.wait_id}, signals=signals)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return result
