"""A ledger in which the mail tool was used: runs that ended in every way a page must be able to tell."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from fakes.mail_reader import MailWorld, StepClock
from support.mail_tool import mail, policy
from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool
from triage.ledger import open_ledger


def use_tool(url: str, until: datetime, account: str = "team", reuse_reason: str = "again") -> list[Result]:
    """Let agents use the tool, with that ledger, in the minutes before an instant; what they were told, in order.

    One run finds its mail and takes the link, one waits in vain, one gets two mails, one asks for another's mailbox,
    one is opened anew for a stated reason and still waits.
    """
    clock = StepClock(until - timedelta(minutes=10))
    world, ledger = MailWorld(clock), open_ledger(url, clock)
    tool = MailTool(ledger, world.reader, policy(account=account), clock)
    told: list[Result] = []

    def opened(run_id: str, **more: str) -> RunView:
        told.append(tool.open({"run_id": run_id, "purpose": "verify_signup", **more}))
        view = told[-1].run
        assert view is not None, told[-1]
        return view

    def waited(run: RunView, deadline: int = 20, **more: object) -> None:
        told.append(tool.wait(request(run, deadline, **more)))
        while told[-1].state == "pending":
            clock.advance((told[-1].next_retry_after_ms or 0) / 1000)
            told.append(tool.wait(request(run, deadline, wait_id=told[-1].wait_id, **more)))

    found, silent, double = opened("signup-1842"), opened("signup-1843"), opened("signup-1844")
    world.deliver(mail(found.address))
    waited(found, take="link")
    waited(silent, deadline=40)
    for n in (1, 2):
        world.deliver(mail(double.address, message_id=f"<{n}@acme.example>"))
    waited(double)
    told.append(tool.wait(request(silent, 20, mailbox_id=found.mailbox_id)))
    told.append(tool.find({"run_id": "signup-1843", "mailbox_scope": "signup-1843", "can_sent": True}))
    again = opened("signup-1843", reuse_reason=reuse_reason)
    world.deliver(mail(again.address, subject="Welcome"))
    told.append(tool.wait(request(again, 40)))
    tool.close()
    ledger.close()
    return told


def request(run: RunView, deadline: int, **more: object) -> Mapping[str, object]:
    return {
        "run_id": run.mailbox_scope,
        "mailbox_id": run.mailbox_id,
        "after": run.opened_at.isoformat(),
        "deadline_seconds": deadline,
        "max_polls": 9,
        **more,
    }
