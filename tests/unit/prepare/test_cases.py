"""Mail as it really arrives: every file of tests/cases/prepare against what `cases.yaml` says of it.

contains, lacks: pieces of the prepared text (white space of `contains` does not matter); any_of: one of each group;
lacks_match: regular expressions; order: the first before the second; from, to, subject: must stand in that field;
warns, no_warns: warning codes; links: how many were removed; max_count; max_seconds; cap: must hold under that cap too.
"""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from triage.domain.mail import PreparedMail
from triage.prepare import prepare, read_message

FOLDER = Path(__file__).parents[2] / "cases" / "prepare"
CASES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "cases.yaml").read_text("utf-8"))


def flat(text: str) -> str:
    return " ".join(text.split())


def faults(case: dict[str, Any], mail: PreparedMail) -> list[str]:
    """What is wrong with a prepared mail, in words."""
    text = "\n".join((mail.sender, mail.recipient, mail.subject, mail.body))
    found = [f"missing {s!r}" for s in case.get("contains", []) if flat(s) not in flat(text)]
    found += [f"present {s!r}" for s in case.get("lacks", []) if s in text]
    found += [f"none of {g!r}" for g in case.get("any_of", []) if not any(flat(s) in flat(text) for s in g)]
    found += [f"matches {p!r}" for p in case.get("lacks_match", []) if re.search(p, text)]
    found += [f"{a!r} not before {b!r}" for a, b in case.get("order", []) if not 0 <= text.find(a) < text.find(b)]
    found += [f"{n}x {s!r}" for s, limit in case.get("max_count", {}).items() if (n := text.count(s)) > limit]
    for name, value in (("from", mail.sender), ("to", mail.recipient), ("subject", mail.subject)):
        if name in case and flat(case[name]).casefold() not in flat(value).casefold():
            found.append(f"{name} is {value!r}")
    found += [f"no warning {w}" for w in case.get("warns", []) if w not in mail.warnings]
    found += [f"warning {w}" for w in case.get("no_warns", []) if w in mail.warnings]
    if "links" in case and mail.links_removed != case["links"]:
        found.append(f"{mail.links_removed} links removed")
    text.encode("utf-8")
    found += [f"control {c!r}" for c in set(text) - {"\n"} if unicodedata.category(c) in ("Cc", "Cs")]
    return found


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_mail_becomes_what_its_case_says(case: dict[str, Any]) -> None:
    raw = (FOLDER / f"{case['id']}.eml").read_bytes()
    started = time.process_time()  # a busy machine makes no mail slow
    mail = prepare(read_message(raw))
    seconds = time.process_time() - started
    assert not faults(case, mail), mail
    assert seconds < case.get("max_seconds", 1), f"{seconds:.1f} s"
    if "cap" in case:
        short = prepare(read_message(raw), max_chars=case["cap"])
        assert len(short.body) <= case["cap"]
        assert not faults(case, short), short


def test_every_mail_of_the_folder_has_a_case() -> None:
    assert {p.stem for p in FOLDER.glob("*.eml")} == {c["id"] for c in CASES}
