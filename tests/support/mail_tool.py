"""A mail tool under test: a policy of the test's making, a ledger in a file, mail as an application sends it."""

from __future__ import annotations

import atexit
import copy
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fakes.mail_reader import MailWorld, StepClock
from triage.agent.policy import Policy, PolicyKeys, policy_of
from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool, Surroundings
from triage.config.values import Context
from triage.ledger import open_ledger
from triage.ledger.ledger import SqlLedger

SUBJECT = "Confirm your account"
LINK = "https://app.acme.example/verify/tok-7f3a9c"

POLICY: dict[str, Any] = {
    "version": "test.1",
    "account": "team",
    "runs": {
        "identity": {"strategy": "plus", "address": "agent+{run}.{nonce}@desk.example", "ttl_seconds": 900},
        "idle": "off",
    },
    "rules": {"code_subject": "(?i)login code"},
    "hooks": {"resend": {"url": "http://127.0.0.1:9/resend", "body": {"run": "{run_id}"}}},
    "purposes": {
        "verify_signup": {
            "scopes": ["signup-*"],
            "intents": [
                "verify_existing_message", "wait_for_message", "take_link", "request_new_message", "report_status",
            ],
            "max_reads": 3,
            "max_attempts": 2,
            "deadline_seconds": 60,
            "max_polls": 12,
            "accept": {"subject": {"contains": SUBJECT}, "from_domain": ["acme.example"]},
            "take": {"link": {"hosts": ["app.acme.example"], "path": "^/verify/", "deliver": "value"}},
            "request_new": {"hook": "resend", "max": 1, "only_after": ["timeout"]},
        },
        "login_code": {
            "scopes": ["login-*"],
            "intents": ["wait_for_message", "take_code", "report_status"],
            "max_attempts": 1,
            "deadline_seconds": 60,
            "max_polls": 12,
            "accept": {"subject": {"rule": "code_subject"}, "from_domain": ["acme.example"]},
            "take": {
                "code": {"pattern": "(?i)code[^0-9]{1,12}(?P<code>[0-9]{6})(?![0-9])", "deliver": "value"},
            },
        },
    },
}  # fmt: skip


def policy(**changes: Any) -> Policy:
    """The test policy; `runs__settle_seconds=0` changes one key, two underscores lead a level down."""
    tree = copy.deepcopy(POLICY)
    for path, value in changes.items():
        *way, last = path.split("__")
        at = tree
        for name in way:
            at = at.setdefault(name, {})
        at[last] = value
    return policy_of(PolicyKeys.model_validate(tree, context=Context({}, Path())))


class Bench:
    """Tool, world, clock and ledger of one test."""

    def __init__(self, directory: Path, around: Surroundings | None = None, **changes: Any) -> None:
        self.clock = StepClock()
        self.world = MailWorld(self.clock)
        shutil.copy(_empty_ledger(), directory / "tool.db")
        self.ledger: SqlLedger = open_ledger(f"sqlite:///{directory}/tool.db", self.clock)
        self.policy = policy(**changes)
        self.around = around or Surroundings()
        self.tool = self.another()

    def another(self) -> MailTool:
        """A tool of another process, say, on the same ledger and mailbox."""
        return MailTool(self.ledger, self.world.reader, self.policy, self.clock, around=self.around)

    def open(self, run_id: str = "signup-1842", purpose: str = "verify_signup", **more: object) -> RunView:
        result = self.tool.open({"run_id": run_id, "purpose": purpose, **more})
        assert result.run is not None, result
        return result.run

    def wait(self, run: RunView, tool: MailTool | None = None, **changes: Any) -> Result:
        return (tool or self.tool).wait(self.request(run, **changes))

    def wait_out(self, run: RunView, **changes: Any) -> Result:
        """Wait call by call until it is over."""
        result = self.wait(run, **changes)
        while result.state == "pending":
            self.clock.advance((result.next_retry_after_ms or 0) / 1000)
            result = self.wait(run, **changes, wait_id=result.wait_id)
        return result

    def request(self, run: RunView, **changes: Any) -> dict[str, Any]:
        return {
            "run_id": run.mailbox_scope,
            "mailbox_id": run.mailbox_id,
            "after": run.opened_at.isoformat(),
            "deadline_seconds": 20,
            "max_polls": 9,
            **changes,
        }

    def deliver(self, run: RunView, **more: Any) -> int:
        return self.world.deliver(mail(run.address, **{k: v for k, v in more.items() if k in _MAIL}), **{
            k: v for k, v in more.items() if k not in _MAIL
        })  # fmt: skip

    def deliver_at(self, seconds: float, run: RunView, **more: Any) -> None:
        self.clock.at(seconds, lambda: self.deliver(run, **more))

    def close(self) -> None:
        self.tool.close()
        self.ledger.close()


@cache
def _empty_ledger() -> Path:
    """A ledger that was made once: making one anew takes most of a second."""
    path = Path(tempfile.mkdtemp(prefix="triage-ledger-")) / "empty.db"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    open_ledger(f"sqlite:///{path}", StepClock()).close()
    return path


_MAIL = ("subject", "sender", "message_id", "body", "headers", "html")


def mail(
    to: str,
    *,
    subject: str = SUBJECT,
    sender: str = "Acme <no-reply@acme.example>",
    message_id: str = "<1@acme.example>",
    body: str = f"Hello,\r\n\r\nplease open {LINK} to go on.\r\n",
    headers: str = "",
    html: str = "",
) -> bytes:
    """A message as a sign-up sends it."""
    kind = "text/html" if html else "text/plain"
    return (
        f"From: {sender}\r\nTo: {to}\r\nSubject: {subject}\r\nDate: Mon, 30 Nov 2026 09:00:00 +0000\r\n"
        f"Message-ID: {message_id}\r\nMIME-Version: 1.0\r\nContent-Type: {kind}; charset=utf-8\r\n{headers}\r\n"
        f"{html or body}"
    ).encode()


def said(results: Sequence[Result]) -> list[tuple[str, str]]:
    return [(str(result.state), result.reason) for result in results]


Request = Mapping[str, object]
Call = Callable[[Request], Result]
