"""Servers that broke other mail tools, as cases: what they do, and what the adapter must make of it.

Each file in tests/cases/imap describes a server, its misbehaviour and the outcome. The drive below does what a run
does, with a classifier that goes by the subject, and connects once more when the connection is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fakes.imap_mailboxes import FakeBox, FakeMail
from fakes.mailbox_worlds import mailbox_at
from fakes.scripted_imap import FULL, PLAIN, Rule, ScriptedImap
from triage.domain.errors import MailboxLost
from triage.mailbox.imap import ImapMailbox

CASES = Path(__file__).parent.parent / "cases" / "imap"


@dataclass
class Outcome:
    stopped: str = ""
    stored: set[int] = field(default_factory=set)
    yielded: dict[int, set[str]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    not_archived: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda p: p.stem)
def test_case(path: Path) -> None:
    case = json.loads(path.read_text())
    with server_of(case) as server:
        secrets = iter(case.get("secrets", ["open-sesame"] * 3))
        mailbox = mailbox_at(server.port, secret=lambda: next(secrets), **case.get("settings", {}))
        outcome = drive(mailbox, case)
        mailbox.close()
        check(case["expect"], outcome, server)


def drive(mailbox: ImapMailbox, case: dict[str, Any]) -> Outcome:
    """One run; a lost connection is taken up once."""
    try:
        return run(mailbox, case)
    except MailboxLost:
        return run(mailbox, case)


def run(mailbox: ImapMailbox, case: dict[str, Any]) -> Outcome:
    outcome, labels = Outcome(), case["labels"]
    facts = mailbox.open()
    if facts.read_only:
        outcome.stopped = "read_only"
        return outcome
    if facts.label_store == "keyword" and not facts.keeps_keywords and "refuses_searching_for" not in case["server"]:
        outcome.stopped = "no_keywords"
        return outcome
    uids = mailbox.select_unlabelled(labels, None, case.get("limit", 20))
    heads = mailbox.fetch_heads(uids)
    readable = {u: h.structure for u, h in heads.items() if h.structure.type == "text"}
    texts = mailbox.fetch_texts({u: [(part.path, 1000)] for u, part in readable.items()})
    for uid in heads.keys() - texts.keys():
        outcome.whole.add(uid)
        assert (mailbox.fetch_whole(uid, 1000) or b"").startswith(b"From:")
    plan = {}
    for uid, head in heads.items():
        subject = re.search(rb"Subject: (.*)\r\n", head.headers)
        assert subject
        plan[uid] = case.get("choose", {}).get(subject[1].decode(), case["default"])
    done = mailbox.store_labels(plan, heads, labels)
    outcome.stored, outcome.gone, outcome.refused = set(done.stored), set(done.gone), set(done.refused)
    outcome.yielded = {uid: set(found) for uid, found in done.yielded.items()}
    if case.get("archive"):
        outcome.not_archived = set(mailbox.archive(case["archive"]).refused)
    return outcome


def check(expect: dict[str, Any], outcome: Outcome, server: ScriptedImap) -> None:
    assert outcome.stopped == expect.get("stops", "")
    for box, mails in expect.get("flags", {}).items():
        assert {m.uid: sorted(m.flags) for m in server.box(box).mails} == {int(u): sorted(f) for u, f in mails.items()}
    for box, mails in expect.get("gmail", {}).items():
        assert {m.uid: sorted(m.labels) for m in server.box(box).mails} == {int(u): sorted(x) for u, x in mails.items()}
    for box, count in expect.get("present", {}).items():
        assert len(server.box(box).mails) == count
    for pattern in expect.get("sent", []):
        assert server.sent(pattern), f"never sent: {pattern}"
    for pattern in expect.get("never_sent", []):
        assert server.sent(pattern) == []
    for pattern, most in expect.get("at_most", {}).items():
        assert len(server.sent(pattern)) <= most
    if "longest" in expect:
        assert max(map(len, server.log)) <= expect["longest"]
    assert outcome.yielded == {int(u): set(x) for u, x in expect.get("yielded", {}).items()}
    for name in ("gone", "refused", "not_archived", "whole"):
        assert getattr(outcome, name) == set(expect.get(name, [])), name
    assert len(outcome.stored) == expect.get("stored", len(outcome.stored))
    assert server.connections == expect.get("connections", 1)


def server_of(case: dict[str, Any]) -> ScriptedImap:
    told = dict(case["server"])
    capabilities = {"plain": PLAIN, "full": FULL}.get(str(told.get("capabilities", "full"))) or told["capabilities"]
    told.pop("capabilities", None)
    boxes = [box_of(b) for b in told.pop("boxes")]
    return ScriptedImap(boxes, capabilities=capabilities, rules=[rule_of(r) for r in case.get("rules", [])], **told)


def box_of(told: dict[str, Any]) -> FakeBox:
    rest = {k: v for k, v in told.items() if k not in ("mails", "generate", "permanent")}
    mails = [FakeMail(**mail) for mail in told.get("mails", [])]
    if many := told.get("generate"):
        mails = [FakeMail(many["first"] + n * many["step"]) for n in range(many["count"])]
    if "permanent" in told:
        rest["permanent"] = tuple(told["permanent"])
    return FakeBox(mails=mails, **rest)


def rule_of(told: dict[str, Any]) -> Rule:
    plain = {k: v for k, v in told.items() if k in ("when", "nth", "times", "before", "after", "reply", "then")}
    return Rule(do=change_of(told, "_before"), do_after=change_of(told, "_after"), **plain)


def change_of(told: dict[str, Any], moment: str) -> Callable[[ScriptedImap], None]:
    def change(server: ScriptedImap) -> None:
        for uid in told.get(f"vanish{moment}", []):
            server.vanish(uid)
        for uid, flags in told.get(f"relabel{moment}", {}).items():
            server.relabel(int(uid), *flags)
        for uid in told.get("append", []) if moment == "_after" else []:
            server.inbox().mails.append(FakeMail(uid))

    return change
