"""Requests that no surface may take, and what each must be told: one table for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from triage.agent.result import RunView

CANARY = "CANARY-9f2c"


@dataclass(frozen=True)
class Bad:
    """`changes` are put over a good request of the call; a value of None takes the field out."""

    name: str
    call: str
    changes: dict[str, Any]
    state: str = "invalid_request"
    reason: str = "request_malformed"
    errors: tuple[dict[str, str], ...] = ()
    other_fields: tuple[str, ...] = field(default=())  # taken over from another run

    def request(self, run: RunView, other: RunView) -> dict[str, Any]:
        base = _good(self.call, run)
        theirs = _good(self.call, other)
        request = base | self.changes | {name: theirs[name] for name in self.other_fields}
        return {name: value for name, value in request.items() if value is not None}


def _good(call: str, run: RunView) -> dict[str, Any]:
    match call:
        case "wait":
            return {
                "run_id": run.mailbox_scope,
                "mailbox_id": run.mailbox_id,
                "after": run.opened_at.isoformat(),
                "deadline_seconds": 20,
                "max_polls": 9,
            }
        case "find":
            return {"run_id": run.mailbox_scope, "mailbox_scope": run.mailbox_scope, "max_reads": 3}
        case "open":
            return {"run_id": "signup-77", "purpose": "verify_signup"}
        case "take":
            return {"run_id": run.mailbox_scope, "mailbox_id": run.mailbox_id, "kind": "link"}
        case "request_new":
            return {"run_id": run.mailbox_scope, "mailbox_id": run.mailbox_id}
        case _:
            return {"run_id": run.mailbox_scope}


def _error(name: str, code: str, nearest: str = "") -> tuple[dict[str, str], ...]:
    return ({"field": name, "code": code, **({"nearest": nearest} if nearest else {})},)


BAD = (
    Bad("misspelt field", "wait", {"deadline_second": CANARY, "subject_contain": None},
        errors=_error("", "unknown_field", "deadline_seconds")),
    Bad("misspelt can_send", "find", {"can_sent": "CANARY"}, errors=_error("", "unknown_field", "can_send")),
    Bad("unknown field", "open", {"zzz-CANARY": CANARY}, errors=_error("", "unknown_field")),
    Bad("missing deadline", "wait", {"deadline_seconds": None}, errors=_error("deadline_seconds", "missing")),
    Bad("missing trigger time", "wait", {"after": None}, errors=_error("after", "missing")),
    Bad("missing run", "wait", {"run_id": None}, errors=_error("run_id", "missing")),
    Bad("no number", "wait", {"max_polls": CANARY}, errors=_error("max_polls", "number_expected")),
    Bad("nothing to wait for", "wait", {"max_polls": 0}, errors=_error("max_polls", "too_small")),
    Bad("absurd deadline", "wait", {"deadline_seconds": 10_000_000}, errors=_error("deadline_seconds", "too_large")),
    Bad("naive time", "wait", {"after": "2026-10-30T17:20:00"}, errors=_error("after", "timezone_missing")),
    Bad("no time", "wait", {"after": CANARY}, errors=_error("after", "time_expected")),
    Bad("hostile run id", "wait", {"run_id": "../CANARY"}, errors=_error("run_id", "malformed")),
    Bad("hostile mailbox id", "wait", {"mailbox_id": "mbx-'; CANARY"}, errors=_error("mailbox_id", "malformed")),
    Bad("search phrase as mailbox", "wait", {"mailbox_id": "tamp mail com"}, errors=_error("mailbox_id", "malformed")),
    Bad("a pattern of one's own", "wait", {"subject_rule": "(CANARY+)+$"}, errors=_error("", "unknown_field")),
    Bad("unknown take", "wait", {"take": "body-CANARY"}, errors=_error("take", "not_one_of_the_choices")),
    Bad("unknown kind", "take", {"kind": "CANARY"}, errors=_error("kind", "not_one_of_the_choices")),
    Bad("unknown intent", "find", {"intent": "send-CANARY"}, errors=_error("intent", "not_one_of_the_choices")),
    Bad("waiting is no look", "find", {"intent": "wait_for_message"},
        errors=_error("intent", "not_one_of_the_choices")),
    Bad("empty phrase", "wait", {"subject_contains": ""}, errors=_error("subject_contains", "empty")),
    Bad("endless phrase", "wait", {"subject_contains": "x" * 5000}, errors=_error("subject_contains", "too_long")),
    Bad("foreign wait id", "wait", {"wait_id": "CANARY"}, errors=_error("wait_id", "malformed")),
    Bad("deadline over the cap", "wait", {"deadline_seconds": 61}, "forbidden", "deadline_over_cap"),
    Bad("polls over the cap", "wait", {"max_polls": 13}, "forbidden", "polls_over_cap"),
    Bad("an interval of one's own", "wait", {"poll_interval_seconds": 0.5}, "forbidden", "interval_is_the_policys"),
    Bad("a rule the policy has not", "wait", {"rule": "CANARY"}, "forbidden", "rule_not_in_policy"),
    Bad("reads over the cap", "find", {"max_reads": 4}, "forbidden", "reads_over_cap"),
    Bad("another run's mailbox", "wait", {}, "forbidden", "mailbox_of_another_run", other_fields=("mailbox_id",)),
    Bad("another run's scope", "find", {}, "forbidden", "scope_of_another_run", other_fields=("mailbox_scope",)),
    Bad("an unknown run", "wait", {"run_id": "signup-404"}, "forbidden", "unknown_run"),
    Bad("an unknown wait", "wait", {"wait_id": "wait-aaaaaaaaaaaa"}, "forbidden", "wait_of_another_run"),
    Bad("an unknown purpose", "open", {"purpose": "CANARY"}, "forbidden", "unknown_purpose"),
    Bad("a scope the purpose has not", "open", {"run_id": "login-1"}, "forbidden", "scope_not_in_purpose"),
    Bad("another run's mailbox to ask anew", "request_new", {}, "forbidden", "mailbox_of_another_run",
        other_fields=("mailbox_id",)),
    Bad("misspelt mailbox", "request_new", {"mailboxid": CANARY}, errors=_error("", "unknown_field", "mailbox_id")),
    Bad("an address to send to", "request_new", {"to": CANARY}, errors=_error("", "unknown_field")),
    Bad("unknown end", "cancel", {"reason": "CANARY"}, errors=_error("reason", "not_one_of_the_choices")),
    Bad("an unknown wait to stop", "cancel", {"wait_id": "wait-aaaaaaaaaaaa"}, "forbidden", "wait_of_another_run"),
    Bad("an unknown run's state", "status", {"run_id": "signup-404"}, "forbidden", "unknown_run"),
    Bad("a field too many", "status", {"mailbox_id": "tamp mail com"}, errors=_error("", "unknown_field")),
    Bad("sending", "wait", {"can_send": True}, "forbidden", "sending_is_impossible"),
)  # fmt: skip
