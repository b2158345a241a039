"""What the embedded classifier sees of a mail: named features of its words, its build, its sender and its phrases.

Pure and deterministic: training and run time call the same function on the same `PreparedMail`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parseaddr

from triage.decide.embedded import text as t
from triage.decide.embedded.cues import lexicon
from triage.decide.embedded.injection import Finder, Finding
from triage.domain.mail import PreparedMail, Signals

WORD_WEIGHT = 3.0
BUILD_WEIGHT = 0.35
CUE_WEIGHT = 0.25

_ROLE = re.compile(
    r"^(?:news\w*|newsletter|letter|digest|hello|hi|team|info|billing|invoices?|orders?|order-\w+|receipts?|support|help|sales|marketing|offers?|promo\w*|deals|shop|store|notifications?"
    r"|notify|alerts?|updates?|service\w*|accounts?|security|contact\w*|office|admin\w*|calendar|events?|community|editor\w*|subscriptions?|payments?|facturacion|pedidos|avisos|boletin|ofertas|hola|ventas"
    r"|tienda|atencion|notificaciones|recibos|comunicacion|promociones|kontakt|rechnung|bestellung|service-client|commandes|contato|vendas|bounce\w*|postmaster|reservas?|bookings?|tracking|shipment\w*|statements?)(?:$|[-_.+\d])",
    re.I,
)
_PERSON_LOCAL = re.compile(r"^[a-z]{1,12}[._][a-z]{2,16}$|^person-[0-9a-f]+$")
_NO_REPLY = re.compile(
    r"no[-_.]?re(?:ply|sponder|sponda|ponse|plies)|do[-_.]?not[-_.]?reply|nicht-?antworten|ne-?pas-?repondre|nao-?responda|mailer-daemon|postmaster|bounce|daemon|auto(?:mat|reply)|robot|\bbot\b|unattended",
    re.I,
)
_FREE_MAIL = re.compile(
    r"(?:^|\.)(?:gmail|googlemail|yahoo|ymail|hotmail|outlook|live|msn|aol|icloud|me|mac|gmx|web|proton(?:mail)?|mail|yandex|zoho|terra|libero|orange|wanadoo|letterbox|uol|bol|163|qq)\.[a-z.]{2,6}$",
    re.I,
)
_TEAM_NAME = re.compile(
    r"\b(?:team|support|news|newsletter|digest|weekly|daily|billing|service|notifications?|alerts?|shop|store|inc|ltd|llc|gmbh|group|bank|centro|equipo|soporte|boletin|tienda|banco|club|app|cloud|security|admin|desk|department|office|system|mail|delivery|customer|account|no-?reply)\b",
    re.I,
)
_PERSON = re.compile(r"^(?:[A-ZÀ-Þ][\w'’.-]*,? ){1,3}[A-ZÀ-Þ][\w'’-]+(?: \([^)]*\))?$|^[A-ZÀ-Þ][a-zà-ÿ]{2,}$")
_REPLY = re.compile(r"^\s*(?:\[[^\]]{1,40}\]\s*)*(?:re|aw|sv|antw|rif|res)(?:\[\d+\])?\s*:", re.I)
_FORWARD = re.compile(r"^\s*(?:\[[^\]]{1,40}\]\s*)*(?:fwd?|wg|rv|tr|enc|i)\s*:", re.I)
_TAGGED = re.compile(r"^\s*(?:\w{1,4}:\s*)*\[[^\]]{2,40}\]")
_CODE = re.compile(
    r"^(?:diff |index |@@ |\+\+\+ |--- \w|Traceback|#!/|\s*(?:def|class|import|return|if|for|public|static|int|void)\b.*[:;{]$)",
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


def _bucket(value: float, edges: tuple[float, ...]) -> int:
    return sum(value >= edge for edge in edges)


def sender_parts(sender: str) -> tuple[str, str, str]:
    name, address = parseaddr(sender)
    if "@" not in address:
        found = re.search(r"[\w.+-]+@[\w.-]+", sender)
        name, address = (sender[: found.start()].strip(' <"'), found.group()) if found else (sender, "")
    local, _, domain = address.lower().rpartition("@")
    return name.strip(" \"'"), local, domain


def _site(domain: str) -> str:
    """The registrable part of a domain, roughly: the last two labels, three where the second is a short one."""
    labels = domain.strip(".").split(".")
    keep = 3 if len(labels) > 2 and len(labels[-2]) <= 3 and len(labels[-1]) == 2 else 2
    return ".".join(labels[-keep:])


def _header_features(signals: Signals, site: str, out: set[str]) -> None:
    h = signals.headers
    if h.get("list-unsubscribe"):
        out.add("list-unsubscribe")
    if h.get("list-unsubscribe-post"):
        out.add("one-click")
    if h.get("feedback-id"):
        out.add("feedback-id")
    precedence = h.get("precedence", "").lower()
    if precedence in ("bulk", "list", "junk"):
        out.add(f"precedence:{precedence}")
    is_list = bool(h.get("list-post")) or (bool(h.get("list-id")) and precedence == "list")
    if h.get("list-id"):
        out.add("list-id")
    if is_list:
        out.add("list")
    if h.get("list-post"):
        out.add("list-post")
    auto = h.get("auto-submitted", "").lower()
    if auto and not auto.startswith("no"):
        out.add("auto-submitted")
        if "repl" in auto:
            out.add("auto-replied")
    if h.get("x-auto-response-suppress"):
        out.add("suppress")
    if h.get("in-reply-to") or h.get("references"):
        out.add("in-reply-to")
        if is_list:
            out.add("list-reply")
    priority = h.get("x-priority", "")[:1]
    if priority in ("1", "2") or h.get("importance", "").lower() == "high":
        out.add("priority-high")
    path = h.get("return-path")
    if path is not None:
        if path.strip() in ("", "<>"):
            out.add("return-path:empty")
        elif site and site not in path.lower():
            out.add("return-path:foreign")
    reply_to = h.get("reply-to", "").lower()
    if reply_to:
        out.add("reply-to")
        if site and site not in reply_to:
            out.add("reply-to:foreign")


def _sender_features(mail: PreparedMail, name: str, local: str, domain: str, out: set[str]) -> None:
    if not domain:
        out.add("sender:none")
        return
    site = _site(domain)
    if _NO_REPLY.search(local):
        out.add("sender:no-reply")
    if _ROLE.match(local):
        out.add("sender:role")
    if sum(c.isdigit() for c in local) >= 3:
        out.add("sender:digits")
    if _PERSON_LOCAL.match(local) and not _ROLE.match(local):
        out.add("sender:person-address")
    if _FREE_MAIL.search(domain):
        out.add("sender:free-mail")
    if domain.count(".") >= 2 and len(site) < len(domain):
        out.add("sender:subdomain")
    recipient_domain = sender_parts(mail.recipient)[2]
    if not recipient_domain:
        out.add("recipient:none")
    elif _site(recipient_domain) == site:
        out.add("sender:colleague")
    if not name:
        out.add("sender:no-name")
        return
    machine = bool(_NO_REPLY.search(local) or _ROLE.match(local))
    if _TEAM_NAME.search(t.fold(name)):
        out.add("sender:team-name")
    elif _PERSON.match(name) and " " in name and not machine:
        out.add("sender:person-name")
    parts = [p for p in re.split(r"[^a-z0-9]+", t.fold(name)) if len(p) > 2]
    folded_domain = domain.replace("-", "")
    if parts and any(p in folded_domain for p in parts):
        out.add("sender:name-in-domain")
    elif parts and any(p in local for p in parts):
        out.add("sender:name-in-local")
    elif parts:
        out.add("sender:name-elsewhere")


def _build_features(mail: PreparedMail, own: str, quoted: int, out: set[str]) -> None:
    s = mail.signals
    links = max(s.links, mail.links_removed)
    out.add(f"links:{_bucket(links, (1, 2, 4, 9, 25))}")
    if links >= 9:
        out.add("links:many")
    if s.address_links:
        out.add("links:bare-address")
    if s.link_hosts:
        out.add(f"hosts:{_bucket(s.link_hosts, (1, 2, 4, 9))}")
    if s.images > 2:
        out.add("images")
    if s.has_html:
        out.add("html")
        out.add(f"html-weight:{_bucket(s.html_chars / max(1, len(mail.body)), (3, 8, 20))}")
    if s.attachments:
        out.add("attachments")
    if s.hidden_chars > 20:
        out.add("hidden")
    if quoted or s.quoted_lines:
        out.add("quoted")
    length = len(own.strip())
    out.add(f"length:{_bucket(length, (80, 250, 600, 1500, 4000))}")
    if length < 40 and links:
        out.add("all-link")
    questions = own.count("?")
    if questions:
        out.add("question")
    if questions >= 3:
        out.add("questions")
    if "?" in own.strip()[-160:]:
        out.add("question-at-end")
    if own.count("!") >= 3:
        out.add("exclaims")
    letters = [c for c in own[:2000] if c.isalpha()]
    if letters and sum(c.isupper() for c in letters) / len(letters) > 0.3:
        out.add("capitals")
    lines = [line for line in own.split("\n") if line.strip()]
    if lines:
        out.add(f"line-length:{_bucket(sum(map(len, lines)) / len(lines), (25, 50, 80, 200))}")
    for name, pattern, least in (
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
    ):
        found = 0
        for _ in pattern.finditer(own[:4000]):
            found += 1
            if found == least:
                out.add(name)
                break


def _subject_features(subject: str, out: set[str]) -> None:
    if not subject.strip():
        out.add("subject:none")
        return
    if _REPLY.match(subject):
        out.add("subject:reply")
    if _FORWARD.match(subject):
        out.add("subject:forward")
    if _TAGGED.match(subject):
        out.add("subject:tagged")
    if "?" in subject:
        out.add("subject:question")
    if "!" in subject:
        out.add("subject:exclaims")
    if "%" in subject:
        out.add("subject:percent")
    if re.search(r"#\s?\d+|\b\d{5,}\b", subject):
        out.add("subject:number")
    if _EMOJI.search(subject):
        out.add("subject:emoji")
    if _ODD.search(subject):
        out.add("subject:odd")
    letters = [c for c in subject if c.isalpha()]
    if len(letters) > 8 and sum(c.isupper() for c in letters) > 0.7 * len(letters):
        out.add("subject:capitals")
    out.add(f"subject-length:{_bucket(len(subject), (12, 30, 60, 100))}")


def _word_features(subject: list[str], body: list[str]) -> dict[str, float]:
    counts = Counter([f"s:{word}" for word in subject] + [f"w:{word}" for word in body])
    return {name: 1.0 + math.log(count) for name, count in counts.items()}


def _scaled(values: dict[str, float], weight: float) -> dict[str, float]:
    norm = math.sqrt(sum(v * v for v in values.values()))
    return {name: value * weight / norm for name, value in values.items()} if norm else {}


def read(mail: PreparedMail) -> Features:
    """All features but the finding of an injection; words have Euclidean length `WORD_WEIGHT`."""
    name, local, domain = sender_parts(mail.sender)
    site = _site(domain) if domain else ""
    own, quoted = t.own_lines(mail.body)
    subject = t.words(t.fold(t.without_links(mail.subject)), t.SUBJECT_WORDS)
    body = t.words(t.fold(t.without_links(t.excerpt(own))), t.BODY_WORDS)

    facts: set[str] = set()
    _header_features(mail.signals, site, facts)
    _sender_features(mail, name, local, domain, facts)
    _build_features(mail, own, quoted, facts)
    _subject_features(mail.subject, facts)
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
