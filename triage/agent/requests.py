"""What a caller may ask, as typed requests, and the one way from raw input to them.

Every surface hands over a plain mapping and gets the same findings: a field and a code, never a value.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from triage.agent.states import Intent

SLUG = r"^[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])$"
MAILBOX_ID = r"^mbx-[a-z0-9]{3,32}$"
WAIT_ID = r"^wait-[a-z0-9]{6,40}$"
HANDLE = r"^hdl-[a-z0-9]{16,64}$"

R = TypeVar("R", bound="Request")


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("number_expected", "a number is wanted")
    return value


_Number = BeforeValidator(_no_bool)
RunId = Annotated[str, Field(pattern=SLUG, description="The run this call belongs to, such as signup-1842.")]
MailboxId = Annotated[str, Field(pattern=MAILBOX_ID, description="The run's mailbox, as opening the run returned it.")]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False), _Number]
Phrase = Annotated[str, Field(min_length=1, max_length=200)]
Sentence = Annotated[str, Field(min_length=1, max_length=300)]
Word = Annotated[str, Field(min_length=1, max_length=64)]


class Request(BaseModel):
    """A request: nothing but its fields, never changed once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class OpenRequest(Request):
    """Begin a run: before the action that will cause the mail, never after it."""

    run_id: RunId
    purpose: Annotated[Word, Field(description="A purpose of the policy, such as verify_signup.")]
    reuse_reason: Annotated[
        Sentence | None, Field(description="Why a run of this name is used again for a second action.")
    ] = None
    prompt_version: Annotated[Word | None, Field(description="Version of the caller's own prompt or code.")] = None
    can_send: Annotated[Literal[False], Field(description="Always false: nothing here can send mail.")] = False


class IntentRequest(Request):
    """One look, without waiting: is the message there?"""

    intent: Annotated[Intent, Field(description="verify_existing_message or report_status.")] = Intent.VERIFY_EXISTING
    run_id: RunId
    mailbox_scope: Annotated[str, Field(pattern=SLUG, description="The scope of the run: its own run_id.")]
    max_reads: Annotated[
        int, Field(ge=1, le=50, description="Looks this run may spend; capped by the policy."), _Number
    ]
    can_send: Annotated[Literal[False], Field(description="Always false: nothing here can send mail.")] = False


class AskRequest(Request):
    """An intent in plain words. Rules sort it; what they cannot sort goes to a person, never to an action."""

    run_id: RunId
    mailbox_scope: Annotated[str, Field(pattern=SLUG)]
    max_reads: Annotated[int, Field(ge=1, le=50), _Number]
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    can_send: Literal[False] = False


class WaitRequest(Request):
    """Wait for the message that this run caused."""

    run_id: RunId
    mailbox_id: MailboxId
    subject_contains: Annotated[Phrase | None, Field(description="Narrows the policy's rule further.")] = None
    rule: Annotated[Word | None, Field(description="Name of a rule of the policy; never a pattern.")] = None
    after: Annotated[AwareDatetime, Field(description="When the action was triggered; older mail does not count.")]
    deadline_seconds: Annotated[Seconds, Field(description="The whole wait, over all calls; capped by the policy.")]
    max_polls: Annotated[int, Field(ge=1, le=500, description="Looks at the mailbox; capped by the policy."), _Number]
    poll_interval_seconds: Annotated[
        Annotated[float, Field(gt=0, le=300, allow_inf_nan=False), _Number] | None,
        Field(description="Must be the policy's own interval, if given at all."),
    ] = None
    take: Annotated[Literal["none", "link", "code"], Field(description="What to take from the message.")] = "none"
    wait_id: Annotated[
        Annotated[str, Field(pattern=WAIT_ID)] | None,
        Field(description="Continue this wait under the same budget; absent: a new attempt."),
    ] = None
    can_send: Annotated[Literal[False], Field(description="Always false: nothing here can send mail.")] = False


class TakeRequest(Request):
    """Take the link or code from the message that this run has accepted."""

    run_id: RunId
    mailbox_id: MailboxId
    kind: Annotated[Literal["link", "code"], Field(description="What to take.")]


class RequestNewRequest(Request):
    """Ask the application, through the hook the policy fixes, to cause its mail once more."""

    run_id: RunId
    mailbox_id: MailboxId


class CancelRequest(Request):
    """Stop: one wait, or the whole run."""

    run_id: RunId
    wait_id: Annotated[Annotated[str, Field(pattern=WAIT_ID)] | None, Field(description="Only this wait.")] = None
    reason: Annotated[
        Literal["cancelled", "trigger_rejected", "finished"],
        Field(description="trigger_rejected: the action failed, no mail will come; finished: all is done."),
    ] = "cancelled"


class StatusRequest(Request):
    """What the ledger knows of the run. The mailbox is not touched."""

    run_id: RunId


class RedeemRequest(Request):
    """Exchange a handle, once, for what it stands for. For programs; no surface of a model offers it."""

    run_id: RunId
    handle: Annotated[str, Field(pattern=HANDLE)]


@dataclass(frozen=True, slots=True)
class Invalid:
    """What is wrong with raw input: {field, code} and, for an unknown field, the nearest known one."""

    errors: tuple[Mapping[str, str], ...]
    forbidden: str | None = None  # the reason, where it is no mistake of form but something that may never be asked


_CODES = {
    "missing": "missing",
    "extra_forbidden": "unknown_field",
    "string_pattern_mismatch": "malformed",
    "string_type": "text_expected",
    "string_too_short": "empty",
    "string_too_long": "too_long",
    "literal_error": "not_one_of_the_choices",
    "enum": "not_one_of_the_choices",
    "greater_than": "too_small",
    "greater_than_equal": "too_small",
    "less_than_equal": "too_large",
    "number_expected": "number_expected",
    "finite_number": "number_expected",
    "timezone_aware": "timezone_missing",
    "model_type": "object_expected",
    "model_attributes_type": "object_expected",
}
_BY_PREFIX = (("int_", "number_expected"), ("float_", "number_expected"), ("datetime_", "time_expected"))


def parse(model: type[R], raw: object) -> R | Invalid:
    """The request, or what is wrong with it. `can_send: true` is not malformed but forbidden."""
    if not isinstance(raw, Mapping):
        return Invalid(({"field": "", "code": "object_expected"},))
    if "can_send" in model.model_fields and _is_true(raw.get("can_send")):
        return Invalid((), forbidden="sending_is_impossible")
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        found = [_finding(model, details) for details in error.errors(include_url=False, include_input=False)]
    return Invalid(tuple({tuple(sorted(f.items())): f for f in found}.values()))


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("true", "yes", "1")) or value == 1


def _finding(model: type[Request], details: Any) -> dict[str, str]:
    kind, loc = details["type"], details["loc"]
    known = list(model.model_fields)
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[0]).casefold().replace("-", "_"), known, n=1, cutoff=0.6)
        return {"field": "", "code": "unknown_field", **({"nearest": near[0]} if near else {})}
    code = _CODES.get(kind) or next((c for prefix, c in _BY_PREFIX if kind.startswith(prefix)), "malformed")
    return {"field": str(loc[0]) if loc and loc[0] in known else "", "code": code}
