"""An agent that signs up at a web application and confirms its mail, through the bounded mail tool.

The agent's only inputs are results of the tool: `state`, `reason`, `next_action`. It never sees a mail or a link.
"""

from __future__ import annotations

import argparse
import http.client
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from signup_app import HOST, SignupApp, imap_delivery

from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool
from triage.bootstrap import App
from triage.config.load import load

STEPS = 12
"""The agent's own budget, beside the tool's: so many calls, whatever comes back."""

Say = Callable[[str], None]


@dataclass
class Agent:
    """One sign-up. `story` is what it did, call by call."""

    tool: MailTool
    port: int
    say: Say
    story: list[str] = field(default_factory=list)

    def run(self, run_id: str) -> bool:
        """Did the sign-up end with a confirmed account?"""
        opened = self._heard("open", self.tool.open({"run_id": run_id, "purpose": "verify_signup"}))
        if opened.run is None:
            return False
        status = self._http("POST", "/signup", {"email": opened.run.address})
        self.say(f"signed up: HTTP {status}")
        if status != 202:  # no mail will come, so nobody waits for one
            self._heard("cancel", self.tool.cancel({"run_id": run_id, "reason": "trigger_rejected"}))
            return False
        result = self._wait(opened.run)
        done = result.state == "found" and self._use(run_id, result)
        self._heard("cancel", self.tool.cancel({"run_id": run_id, "reason": "finished"}))
        return done

    def _wait(self, run: RunView) -> Result:
        request: dict[str, object] = {
            "run_id": run.mailbox_scope,
            "mailbox_id": run.mailbox_id,
            "after": run.opened_at.isoformat(),
            "deadline_seconds": 30,
            "max_polls": 9,
            "take": "link",
        }
        result = self._heard("wait", self.tool.wait(request))
        for _ in range(STEPS):
            request, go_on = next_step(request, result)
            if not go_on:
                break
            result = self._heard("wait", self.tool.wait(request))
        return result

    def _use(self, run_id: str, result: Result) -> bool:
        """The program redeems the handle and opens the link; the tool never opens one."""
        if result.artifact is None or result.artifact.handle is None:
            return False
        told, link = self.tool.redeem({"run_id": run_id, "handle": result.artifact.handle})
        self._heard("redeem", told)
        if link is None or urlsplit(link).hostname != HOST:
            return False
        status = self._http("GET", urlsplit(link).path)
        self.say(f"opened the link: HTTP {status}")
        return status == 200

    def _heard(self, call: str, result: Result) -> Result:
        self.story.append(f"{call}: {result.state} ({result.reason})")
        self.say(f"{call}: {result.state} ({result.reason}), next: {result.next_action}")
        return result

    def _http(self, method: str, path: str, form: dict[str, str] | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"Host": HOST, "Content-Type": "application/x-www-form-urlencoded"}
            connection.request(method, path, urlencode(form or {}), headers)
            return connection.getresponse().status
        finally:
            connection.close()


def next_step(request: dict[str, object], result: Result) -> tuple[dict[str, object], bool]:
    """What an agent may do after a wait: go on with the same wait, try once more, or stop. Never anything else."""
    if result.state == "pending":
        return {**request, "wait_id": result.wait_id}, True
    if result.next_action == "retry_after_delay" and result.retryable:
        return {name: value for name, value in request.items() if name != "wait_id"}, True
    return request, False


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--config", default="config")
    arguments.add_argument("--host", default="127.0.0.1")
    arguments.add_argument("--port", type=int, default=143)
    arguments.add_argument("--user", required=True)
    arguments.add_argument("--password-env", default="DESK_PASSWORD")
    chosen = arguments.parse_args()
    deliver = imap_delivery(chosen.host, chosen.port, chosen.user, os.environ[chosen.password_env])
    app = App(load(Path(chosen.config)))
    tool = app.tool()
    try:
        with SignupApp(deliver) as web:
            agent = Agent(tool, web.port, say=lambda line: sys.stdout.write(f"{line}\n"))
            done = agent.run(f"signup-{secrets.token_hex(4)}")
            sys.stdout.write("confirmed\n" if done and web.confirmed else "not confirmed\n")
    finally:
        tool.close()
        app.close()
    return 0 if done else 1


if __name__ == "__main__":
    raise SystemExit(main())
