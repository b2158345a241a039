"""The policy file of the mail tool: who may wait for what, within which limits. Read once, strictly, at start."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from triage.agent.patterns import pattern_problem
from triage.agent.states import Intent
from triage.config.load import validate
from triage.config.model import Keys
from triage.config.settings import is_loopback
from triage.config.values import Text, problem
from triage.config.yamltree import read_tree

_DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_ADDRESS = re.compile(r"[a-z0-9!#$%&'*/=?^_`|~.+-]{1,64}@[a-z0-9.-]{1,253}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


def _matching(pattern: re.Pattern[str], words: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise problem(words)
        return value

    return AfterValidator(check)


def _pattern(value: str) -> str:
    if trouble := pattern_problem(value):
        raise problem(trouble)
    return value


Domain = Annotated[Text, _matching(_DOMAIN, "must be a domain in small letters, such as acme.example")]
HostName = Annotated[Text, _matching(_HOST, "must be a bare host name in small letters, such as app.acme.example")]
Name = Annotated[Text, _matching(_NAME, "must be a name of a-z, 0-9 and _ that begins with a letter")]
Header = Annotated[Text, _matching(_HEADER, "must be the name of a header field, such as X-Test-Run")]
Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_pattern)]
Delivery = Literal["value", "handle", "indicator"]


class IdentityKeys(Keys):
    """How a run gets an address of its own."""

    strategy: Literal["plus", "unique_recipient", "folder", "pool"] = "plus"
    address: Annotated[Text | None, Field(description="the address, with {nonce} in it")] = None
    folder: Annotated[Text | None, Field(description="the folder, with {run} or {nonce} in it")] = None
    addresses: Annotated[list[Text], Field(max_length=500)] = Field(default=[])
    recipient_evidence: Literal["to_header", "delivered_to", "folder"] = "to_header"
    ttl_seconds: Annotated[int, Field(ge=10, le=86_400)] = 900
    late_watch_seconds: Annotated[int, Field(ge=0, le=604_800)] = 86_400

    @field_validator("recipient_evidence")
    @classmethod
    def _complete(cls, value: str, info: ValidationInfo) -> str:
        strategy, address = info.data.get("strategy"), info.data.get("address") or ""
        sample = address.replace("{run}", "r").replace("{nonce}", "n")
        if strategy in ("plus", "unique_recipient"):
            if "{nonce}" not in address.partition("@")[0]:
                raise problem("needs identity.address with {nonce} before the @: without it two runs share one address")
            if not _ADDRESS.fullmatch(sample):
                raise problem("needs identity.address to be an address such as agent+{run}.{nonce}@example.org")
        if strategy == "plus" and "+" not in address.partition("@")[0]:
            raise problem("needs a + before the @ in identity.address, or strategy: unique_recipient")
        if strategy == "pool" and not all(_ADDRESS.fullmatch(a) for a in info.data.get("addresses", ["-"]) or ["-"]):
            raise problem("needs identity.addresses, a list of addresses in small letters, for strategy: pool")
        if (strategy == "folder") != (value == "folder"):
            raise problem("must be folder with strategy: folder, and only with it")
        if strategy == "folder" and (not info.data.get("folder") or not _ADDRESS.fullmatch(sample)):
            raise problem("needs identity.folder and identity.address for strategy: folder")
        return value


class LimitKeys(Keys):
    max_live_runs: Annotated[int, Field(ge=1, le=1000)] = 50
    max_connections: Annotated[int, Field(ge=1, le=2)] = 2


class BudgetKeys(Keys):
    """How one step's time is meant to be spent, in seconds; the parts add up to the total."""

    request: Annotated[float, Field(ge=0)] = 5
    propagation: Annotated[float, Field(ge=0)] = 15
    read: Annotated[float, Field(ge=0)] = 5
    margin: Annotated[float, Field(ge=0)] = 5
    total: Annotated[float, Field(ge=1, le=3600)] = 30

    @field_validator("total")
    @classmethod
    def _adds_up(cls, value: float, info: ValidationInfo) -> float:
        parts = [info.data.get(name) for name in ("request", "propagation", "read", "margin")]
        if None not in parts and abs(sum(p for p in parts if p is not None) - value) > 1e-6:
            raise problem("must be the sum of request, propagation, read and margin")
        return value

    @property
    def waiting(self) -> float:
        """What is left for a wait once the request is out and the margin set aside."""
        return self.propagation + self.read


class RunsKeys(Keys):
    identity: IdentityKeys
    limits: LimitKeys = LimitKeys()
    intervals: Annotated[list[Annotated[float, Field(ge=0.2, le=300)]], Field(min_length=1, max_length=20)] = Field(
        default=[1, 2, 4, 8, 8]
    )
    idle: Literal["off", "early_slot"] = "early_slot"
    settle_seconds: Annotated[float, Field(ge=0, le=30)] = 2
    min_read_seconds: Annotated[float, Field(ge=0.2, le=30)] = 1
    max_call_seconds: Annotated[float, Field(ge=1, le=25)] = 25
    budget: BudgetKeys = BudgetKeys()


class SubjectKeys(Keys):
    contains: Annotated[Text | None, Field(max_length=200)] = None
    rule: Name | None = None


class AuthenticationKeys(Keys):
    authserv_id: HostName = Field(description="the name your own server writes in Authentication-Results")
    require: Literal["dkim", "spf", "dmarc"] = "dkim"


class HeaderKeys(Keys):
    name: Header = Field(description="the header field")
    value: Text = Field(description="its exact value; {run_id} stands for the run")


class AcceptKeys(Keys):
    """What a message must be. Every condition given must hold."""

    subject: SubjectKeys | None = None
    from_domain: Annotated[list[Domain], Field(max_length=50)] = Field(default=[])
    header: HeaderKeys | None = None
    authentication: AuthenticationKeys | None = None
    max_bytes: Annotated[int, Field(ge=1_000, le=5_000_000)] = 262_144


class LinkKeys(Keys):
    hosts: Annotated[list[HostName], Field(min_length=1, max_length=50)] = Field(description="the exact hosts allowed")
    path: Pattern = "^/"
    deliver: Delivery = "handle"


class CodeKeys(Keys):
    pattern: Pattern = Field(description="a pattern with a group named code")
    deliver: Delivery = "value"

    @field_validator("pattern")
    @classmethod
    def _has_the_group(cls, value: str) -> str:
        if "code" not in re.compile(value).groupindex:
            raise problem("needs a group named code: (?P<code>[0-9]{6})")
        return value


class TakeKeys(Keys):
    link: LinkKeys | None = None
    code: CodeKeys | None = None


class RequestNewKeys(Keys):
    hook: Name = Field(description="a name under hooks")
    max: Annotated[int, Field(ge=1, le=5)] = 1
    only_after: Annotated[list[Literal["timeout", "not_found"]], Field(min_length=1)] = Field(default=["timeout"])

    def after(self, state: str) -> bool:
        return state in self.only_after


class PurposeKeys(Keys):
    scopes: Annotated[list[Text], Field(min_length=1, max_length=50)] = Field(description="run ids, * allowed")
    intents: Annotated[list[str], Field(min_length=1)] = Field(description="what such a run may ask for")
    max_reads: Annotated[int, Field(ge=0, le=50)] = 3
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 2
    retry_delay_ms: Annotated[int, Field(ge=0, le=600_000)] = 0
    deadline_seconds: Annotated[float, Field(ge=1, le=3600)] = 45
    max_polls: Annotated[int, Field(ge=1, le=500)] = 9
    can_send: bool = False
    accept: AcceptKeys
    tie: str = "ambiguous"
    take: TakeKeys = TakeKeys()
    request_new: RequestNewKeys | Literal["never"] = "never"

    @field_validator("intents")
    @classmethod
    def _known_intents(cls, value: list[str]) -> list[str]:
        known = [str(intent) for intent in Intent]
        if strange := [v for v in value if v not in known]:
            raise problem(f"holds {len(strange)} unknown intent(s); known are {', '.join(known)}")
        return value

    @field_validator("can_send")
    @classmethod
    def _cannot_send(cls, value: bool) -> bool:
        if value:
            raise problem("must be false: nothing in triage can send mail, and no policy can change that")
        return value

    @field_validator("accept")
    @classmethod
    def _some_condition(cls, value: AcceptKeys) -> AcceptKeys:
        subject = value.subject and (value.subject.contains or value.subject.rule)
        if not (subject or value.from_domain or value.header):
            raise problem("needs at least one condition: subject, from_domain or header")
        return value

    @field_validator("tie")
    @classmethod
    def _known_tie(cls, value: str) -> str:
        name, colon, header = value.partition(":")
        if value in ("ambiguous", "newest_of_run") or (name == "by_header" and colon and _HEADER.fullmatch(header)):
            return value
        raise problem("must be ambiguous, newest_of_run or by_header:NAME")

    def allows(self, intent: Intent) -> bool:
        return str(intent) in self.intents

    def covers(self, run_id: str) -> bool:
        return any(fnmatchcase(run_id, scope) for scope in self.scopes)


class HookKeys(Keys):
    """One address that may be asked, over HTTP, to cause the mail again."""

    url: Text = Field(description="the address; https, or http on this machine")
    method: Literal["POST", "PUT"] = "POST"
    body: Annotated[dict[str, str], Field(max_length=20)] = Field(default={})
    timeout_seconds: Annotated[float, Field(ge=0.2, le=30)] = 5
    ok: Annotated[list[Annotated[int, Field(ge=200, le=299)]], Field(min_length=1)] = Field(default=[202])

    @field_validator("url")
    @classmethod
    def _safe(cls, value: str) -> str:
        try:
            url = urlsplit(value)
            host, _ = url.hostname or "", url.port
        except ValueError:
            raise problem("must be a URL such as https://app.example.com/resend") from None
        if url.scheme not in ("http", "https") or not host or url.username or url.password or url.fragment:
            raise problem("must be a URL such as https://app.example.com/resend, without a login")
        if url.scheme == "http" and not is_loopback(host):
            raise problem("would cross the network unencrypted: it must begin with https://")
        return value


class IntentTextKeys(Keys):
    classify: Literal["rules", "decision_model", "off"] = "rules"
    unknown: Literal["needs_review"] = "needs_review"


class RetentionKeys(Keys):
    """What is kept of a plain-text request; for how long, triage.yaml says (`retention.receipts`)."""

    request_text: Literal["digest", "restricted"] = "digest"


class PolicyKeys(Keys):
    """The whole file."""

    version: Text = Field(description="your own name for this version; it is recorded with every decision")
    account: Text = Field(description="the account of triage.yaml whose mailbox is read")
    runs: RunsKeys
    rules: Annotated[dict[str, Pattern], Field(max_length=200)] = Field(default={})
    hooks: Annotated[dict[str, HookKeys], Field(max_length=50)] = Field(default={})
    purposes: Annotated[dict[str, PurposeKeys], Field(min_length=1, max_length=200)]
    intent_text: IntentTextKeys = IntentTextKeys()
    retention: RetentionKeys = RetentionKeys()

    @field_validator("purposes")
    @classmethod
    def _refer_to_what_is_there(cls, value: dict[str, PurposeKeys], info: ValidationInfo) -> dict[str, PurposeKeys]:
        rules, hooks = info.data.get("rules", {}), info.data.get("hooks", {})
        for name, purpose in value.items():
            rule = purpose.accept.subject.rule if purpose.accept.subject else None
            if rule and rule not in rules:
                raise problem(f"uses in {name} a subject rule that is not under rules")
            if purpose.request_new != "never" and purpose.request_new.hook not in hooks:
                raise problem(f"uses in {name} a hook that is not under hooks")
            wanted = {Intent.TAKE_LINK: purpose.take.link, Intent.TAKE_CODE: purpose.take.code}
            if missing := [intent for intent, how in wanted.items() if purpose.allows(intent) and how is None]:
                raise problem(f"allows in {name} {missing[0]}, but its take says nothing of it")
            if purpose.allows(Intent.REQUEST_NEW) and purpose.request_new == "never":
                raise problem(f"allows in {name} {Intent.REQUEST_NEW}, but request_new is never")
        return value


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy in force: its keys, and the digest that is recorded with every decision."""

    keys: PolicyKeys
    digest: str

    @property
    def version(self) -> str:
        return self.keys.version

    @property
    def runs(self) -> RunsKeys:
        return self.keys.runs

    def purpose(self, name: str) -> PurposeKeys | None:
        return self.keys.purposes.get(name)

    @property
    def fixed_interval(self) -> float | None:
        """The one interval of this policy, None where intervals grow."""
        intervals = set(self.runs.intervals)
        return intervals.pop() if len(intervals) == 1 else None


def load_policy(path: Path, environ: Mapping[str, str] | None = None) -> Policy:
    """Read the policy file. Raises ConfigError with every problem of it, each with its line."""
    return policy_of(validate(PolicyKeys, read_tree(path), environ))


def policy_of(keys: PolicyKeys) -> Policy:
    """The policy of checked keys; its digest covers every value, defaults included."""
    text = json.dumps(keys.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return Policy(keys, hashlib.sha256(text.encode()).hexdigest())
