"""The tools as a model reads them: what each does, what comes back, and what to do about the awkward answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from triage.agent import requests as asked
from triage.agent.result import Result
from triage.agent.tool import MailTool

_EXAMPLES = """
Awkward answers, and what to do:
- {"state":"expired","reason":"run_expired","next_action":"open_new_run"}: the run's time is over. This is no failure of
  the application. Do not repeat the call; open a new run if the action is to be done again.
- {"state":"ambiguous","reason":"several_messages","candidates":["m-3f..","m-9a.."],"next_action":"ask_a_person"}: two
  messages meet the rule. Do not choose one, do not guess by text; report both ids.
- {"state":"timeout","reason":"no_message_yet","retryable":true}: no evidence yet; no proof that no mail was sent.
- {"state":"forbidden"} or {"state":"rejected"}: stop. Repeating the call changes nothing.
"""


@dataclass(frozen=True, slots=True)
class Described:
    """One tool: its name, its words, its request, how it is called, and what it does to the world."""

    name: str
    title: str
    text: str
    request: type[asked.Request]
    call: Callable[[MailTool, Mapping[str, object]], Result]
    read_only: bool = False
    idempotent: bool = False
    open_world: bool = False


TOOLS: tuple[Described, ...] = (
    Described(
        "mail_open",
        "Open a run",
        "Begin a run BEFORE triggering the action that will cause a mail. Returns the address to use for it, the "
        "mailbox_id and the expiry. The address is a temporary fixture, never a person's identity." + _EXAMPLES,
        asked.OpenRequest,
        MailTool.open,
    ),
    Described(
        "mail_find",
        "Look once",
        "One look, without waiting: is the run's message there? found, not_found, ambiguous, expired or forbidden. "
        "not_found is no proof that nothing was sent." + _EXAMPLES,
        asked.IntentRequest,
        MailTool.find,
    ),
    Described(
        "mail_wait",
        "Wait for the message",
        "Wait, within the policy's budget, for the message this run caused. One call lasts at most 25 s; on `pending` "
        "call again with the same arguments and the wait_id it returned: the budget goes on, it does not begin anew. "
        "The intervals are the policy's." + _EXAMPLES,
        asked.WaitRequest,
        MailTool.wait,
    ),
    Described(
        "mail_take",
        "Take the link or code",
        "Take the link or code from the message this run has accepted, once. A handle stands for a value that only the "
        "program may have; hand it over as it is. Nothing is ever opened." + _EXAMPLES,
        asked.TakeRequest,
        MailTool.take,
    ),
    Described(
        "mail_request_new",
        "Have the mail caused again",
        "Ask the application, through the address its policy fixes, to cause its mail once more. Only after a wait "
        "that ended in timeout, and only as often as the policy says. This sends no mail; nothing here can."
        + _EXAMPLES,
        asked.RequestNewRequest,
        MailTool.request_new,
        open_world=True,
    ),
    Described(
        "mail_cancel",
        "Stop",
        "Stop one wait, or end the run. Say trigger_rejected if the action itself failed: then no mail will come."
        + _EXAMPLES,
        asked.CancelRequest,
        MailTool.cancel,
        idempotent=True,
    ),
    Described(
        "mail_status",
        "How the run stands",
        "What is known of the run, without touching the mailbox." + _EXAMPLES,
        asked.StatusRequest,
        MailTool.status,
        read_only=True,
        idempotent=True,
    ),
)
