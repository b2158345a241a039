"""For the daemon: which mail of the inbox belongs to runs of the mail tool."""

from __future__ import annotations

from collections.abc import Mapping

from triage.agent.identity import names_run, recipients
from triage.agent.ports import ToolLedger
from triage.domain.category import RUN_ID, RUN_LATE_ID
from triage.domain.mail import Head
from triage.domain.tool import RunRecord
from triage.ports import Clock


class RunWatch:
    """The pipeline's `RunMail` on the ledger.

    A message is a run's if it names the run's address, in To or Cc. That is enough to leave it alone, which is the
    harmless side; whether the run may act on it is for the tool to say.
    """

    def __init__(self, ledger: ToolLedger, account: str, clock: Clock) -> None:
        self._ledger = ledger
        self._account = account
        self._clock = clock
        self._runs: tuple[RunRecord, ...] = ()

    def watched(self) -> bool:
        self._runs = self._ledger.watched_runs(self._account, self._clock.now())
        return bool(self._runs)

    def sort(self, heads: Mapping[int, Head]) -> Mapping[int, str]:
        found: dict[int, str] = {}
        for uid, head in heads.items():
            named = recipients(head.headers, "to_header")
            owners = [run for run in self._runs if names_run(named, run.address)]
            if owners:
                found[uid] = self._label_id(head, owners)
        return found

    def _label_id(self, head: Head, owners: list[RunRecord]) -> str:
        """Nothing while any owner lives; then by when the message came."""
        now = self._clock.now()
        if any(run.live(now) for run in owners):
            return ""
        over = max(min(run.ended_at or run.expires_at, run.expires_at) for run in owners)
        return RUN_LATE_ID if head.received is None or head.received > over else RUN_ID
