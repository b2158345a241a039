"""How a mail is built, as features: its headers, its structure, the shape of its text and of its subject."""

from __future__ import annotations

import re
from itertools import islice

from triage.domain.mail import PreparedMail, Signals

SHAPE_CHARS = 4000

_REPLY = re.compile(r"^\s*(?:\[[^\]]{1,40}\]\s*)*(?:re|aw|sv|antw|rif|res)(?:\[\d+\])?\s*:", re.I)
_FORWARD = re.compile(r"^\s*(?:\[[^\]]{1,40}\]\s*)*(?:fwd?|wg|rv|tr|enc|i)\s*:", re.I)
_TAGGED = re.compile(r"^\s*(?:\w{1,4}:\s*)*\[[^\]]{2,40}\]")
_CODE = re.compile(
    r"^(?:diff |index |@@ |\+\+\+ |--- \w|Traceback|#!/"
    r"|\s*(?:def|class|import|return|if|for|public|static|int|void)\b.*[:;{]$)",
    re.M,
)
_TABLE = re.compile(r"^[\w áéíóúñü./()-]{2,40}: ?\S.{0,80}$", re.M | re.I)
_BULLET = re.compile(r"^\s*(?:[*•·–-]|\d{1,2}[.)])\s+\S", re.M)
_RULE = re.compile(r"^\s*[-=_*~]{6,}\s*$", re.M)
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_ODD = re.compile(r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufffd]")
_TIME = re.compile(r"\b\d{1,2}[:.]\d{2}\b|\b\d{1,2} ?(?:am|pm)\b", re.I)
_ID = re.compile(r"\b(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9-]{6,}\b|#\d{3,}")
_MASKED = re.compile(r"\*{3,}\d{2,4}|x{4,}\d{2,4}|(?:ending|terminada) (?:in|en) \d{4}", re.I)
_NUMBER = re.compile(r"#\s?\d+|\b\d{5,}\b")
_SHAPES = (
    ("code", _CODE, 2),
    ("table", _TABLE, 3),
    ("table-long", _TABLE, 7),
    ("bullets", _BULLET, 3),
    ("bullets-many", _BULLET, 8),
    ("rules", _RULE, 1),
    ("rules-many", _RULE, 4),
    ("emoji", _EMOJI, 1),
    ("odd-characters", _ODD, 1),
    ("times", _TIME, 1),
    ("ids", _ID, 1),
    ("ids-many", _ID, 4),
    ("masked-number", _MASKED, 1),
)
"""A pattern and how often it must occur to be a fact."""


def header_facts(signals: Signals, site: str) -> set[str]:
    """What the headers that tell bulk and automatic mail say; `site` is the sender's."""
    h = signals.headers
    precedence = h.get("precedence", "").lower()
    automatic = h.get("auto-submitted", "").lower()
    path = h.get("return-path")
    reply_to = h.get("reply-to", "").lower()
    is_list = bool(h.get("list-post")) or (bool(h.get("list-id")) and precedence == "list")
    is_reply = bool(h.get("in-reply-to") or h.get("references"))
    found = {
        "list-unsubscribe": bool(h.get("list-unsubscribe")),
        "one-click": bool(h.get("list-unsubscribe-post")),
        "feedback-id": bool(h.get("feedback-id")),
        f"precedence:{precedence}": precedence in ("bulk", "list", "junk"),
        "list-id": bool(h.get("list-id")),
        "list-post": bool(h.get("list-post")),
        "list": is_list,
        "auto-submitted": bool(automatic) and not automatic.startswith("no"),
        "auto-replied": "auto-replied" in automatic,
        "suppress": bool(h.get("x-auto-response-suppress")),
        "in-reply-to": is_reply,
        "list-reply": is_reply and is_list,
        "priority-high": h.get("x-priority", "")[:1] in ("1", "2") or h.get("importance", "").lower() == "high",
        "return-path:empty": path is not None and path.strip() in ("", "<>"),
        "return-path:foreign": bool(path and path.strip() != "<>" and site and site not in path.lower()),
        "reply-to": bool(reply_to),
        "reply-to:foreign": bool(reply_to and site and site not in reply_to),
    }
    return {name for name, true in found.items() if true}


def structure_facts(mail: PreparedMail, quoted: int) -> set[str]:
    """What the message is made of besides its words."""
    s = mail.signals
    links = max(s.links, mail.links_removed)
    found = {
        f"links:{bucket(links, 1, 2, 4, 9, 25)}": True,
        "links:many": links >= 9,
        "links:bare-address": s.address_links > 0,
        f"hosts:{bucket(s.link_hosts, 1, 2, 4, 9)}": s.link_hosts > 0,
        "images": s.images > 2,
        "html": s.has_html,
        f"html-weight:{bucket(s.html_chars / max(1, len(mail.body)), 3, 8, 20)}": s.has_html,
        "attachments": s.attachments > 0,
        "hidden": s.hidden_chars > 20,
        "quoted": quoted > 0 or s.quoted_lines > 0,
    }
    return {name for name, true in found.items() if true}


def shape_facts(own: str) -> set[str]:
    """How the sender's own text looks."""
    lines = [line for line in own.split("\n") if line.strip()]
    questions = own.count("?")
    found = {
        f"length:{bucket(len(own.strip()), 80, 250, 600, 1500, 4000)}": True,
        "question": questions > 0,
        "questions": questions >= 3,
        "question-at-end": "?" in own.strip()[-160:],
        "exclaims": own.count("!") >= 3,
        "capitals": _capitals(own[:2000]) > 0.3,
        f"line-length:{bucket(sum(map(len, lines)) / max(1, len(lines)), 25, 50, 80, 200)}": bool(lines),
    }
    for name, pattern, least in _SHAPES:
        found[name] = next(islice(pattern.finditer(own, 0, SHAPE_CHARS), least - 1, None), None) is not None
    return {name for name, true in found.items() if true}


def subject_facts(subject: str) -> set[str]:
    """How the subject looks."""
    if not subject.strip():
        return {"subject:none"}
    found = {
        "subject:reply": bool(_REPLY.match(subject)),
        "subject:forward": bool(_FORWARD.match(subject)),
        "subject:tagged": bool(_TAGGED.match(subject)),
        "subject:question": "?" in subject,
        "subject:exclaims": "!" in subject,
        "subject:percent": "%" in subject,
        "subject:number": bool(_NUMBER.search(subject)),
        "subject:emoji": bool(_EMOJI.search(subject)),
        "subject:odd": bool(_ODD.search(subject)),
        "subject:capitals": len(subject) > 8 and _capitals(subject) > 0.7,
        f"subject-length:{bucket(len(subject), 12, 30, 60, 100)}": True,
    }
    return {name for name, true in found.items() if true}


def bucket(value: float, *edges: float) -> int:
    """How many of the edges a value has reached."""
    return sum(value >= edge for edge in edges)


def _capitals(text: str) -> float:
    """The share of capitals among the letters."""
    letters = "".join(filter(str.isalpha, text))
    return sum(map(str.isupper, letters)) / len(letters) if letters else 0.0
