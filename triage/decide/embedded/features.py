"""What the embedded classifier sees of a mail: named features of its words, its build, its sender and its phrases.

Pure and deterministic: training and run time call the same function on the same `PreparedMail`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from triage.decide.embedded import text as t
from triage.decide.embedded.build import header_facts, shape_facts, structure_facts, subject_facts
from triage.decide.embedded.cues import lexicon
from triage.decide.embedded.injection import Finder, Finding
from triage.decide.embedded.sender import sender_facts, sender_parts, site_of
from triage.domain.mail import PreparedMail

WORD_WEIGHT = 3.0
BUILD_WEIGHT = 0.35
CUE_WEIGHT = 0.25


@dataclass(frozen=True, slots=True)
class Features:
    """Named feature values of one mail, and the few facts about it that learning and the vetoes read.

    `sender`, `domain` and `list_id` are lower case, "" if unknown. `cues` counts phrases of the body by family.
    """

    values: Mapping[str, float]
    finding: Finding
    cues: Mapping[str, int]
    sender: str
    domain: str
    list_id: str

    @property
    def asks(self) -> bool:
        """Does it ask its reader to approve, sign, answer or pay, or press him with a date, in the subject or twice?"""
        demands = self.cues.get("approve", 0) + self.cues.get("pay_up", 0)
        named = any(f"#subject-cue:{family}" in self.values for family in ("approve", "pay_up", "deadline"))
        return named or (demands >= 2 and self.cues.get("deadline", 0) > 0)


def _word_features(subject: list[str], body: list[str]) -> dict[str, float]:
    counts = Counter([f"s:{word}" for word in subject] + [f"w:{word}" for word in body])
    return {name: 1.0 + math.log(count) for name, count in counts.items()}


def _scaled(values: dict[str, float], weight: float) -> dict[str, float]:
    norm = math.sqrt(sum(v * v for v in values.values()))
    return {name: value * weight / norm for name, value in values.items()} if norm else {}


def read(mail: PreparedMail) -> Features:
    """All features but the finding of an injection; words have Euclidean length `WORD_WEIGHT`."""
    _, local, domain = sender_parts(mail.sender)
    site = site_of(domain) if domain else ""
    own, quoted = t.own_lines(mail.body)
    subject = t.words(t.fold(t.without_links(mail.subject)), t.SUBJECT_WORDS)
    body = t.words(t.fold(t.without_links(t.excerpt(own))), t.BODY_WORDS)

    facts = header_facts(mail.signals, site) | sender_facts(mail) | structure_facts(mail, quoted)
    facts |= shape_facts(own) | subject_facts(mail.subject)
    money = body.count("zzmoney")
    if money:
        facts.add("money")
    if money >= 3:
        facts.add("money:often")
    values = {f"#{fact}": BUILD_WEIGHT for fact in sorted(facts)}
    cues = lexicon().count(body)
    for family, count in cues.items():
        values[f"#cue:{family}"] = CUE_WEIGHT * (1.0 + math.log(count))
    for family in lexicon().count(subject):
        values[f"#subject-cue:{family}"] = BUILD_WEIGHT
    values.update(_scaled(_word_features(subject, body), WORD_WEIGHT))
    sender = f"{local}@{domain}" if domain else ""
    return Features(values, Finding(0.0), cues, sender, site, mail.signals.headers.get("list-id", "").lower())


def with_finding(features: Features, finding: Finding) -> Features:
    """The features with what the injection finder said of the mail."""
    values = dict(features.values)
    values["#injection"] = 2.0 * BUILD_WEIGHT / (1.0 + math.exp(-finding.logit))
    for name, least in (("suspected", -1.0), ("likely", 0.5), ("certain", 2.0)):
        if finding.logit >= least:
            values[f"#injection:{name}"] = BUILD_WEIGHT
    return replace(features, values=values, finding=finding)


def extract(mail: PreparedMail, finder: Finder) -> Features:
    """The features of one prepared mail."""
    return with_finding(read(mail), finder.find(mail.subject, mail.body))
