"""The project's own training mail (CC0-1.0, `corpus/*.txt`): invented mails, and carriers with an injection, or with
ordinary words that an injection might use too, set in.

A mail is a line `@ KIND LANG`, header lines From and Subject, then text. KIND says how such mail is built: person,
list, system, bulk or scam; headers that come with it are drawn by a hash of the mail, the same on every run.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.utils import parseaddr
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
INJECTIONS = "injections.txt"
PARTS = "injection_parts.txt"
PLAIN = "plain_talk.txt"
CARRIERS_PER_INJECTION = 2


@dataclass(frozen=True, slots=True)
class Draft:
    """One invented mail before it gets the headers of its kind."""

    category: str
    kind: str
    lang: str
    sender: str
    subject: str
    body: str

    def chance(self, what: str) -> float:
        """A number within 0..1 that depends on this mail and on `what` only."""
        digest = hashlib.sha256(f"{what}|{self.sender}|{self.subject}|{self.body[:40]}".encode()).digest()
        return int.from_bytes(digest[:4], "big") / 2**32


def corpus_rows() -> list[dict[str, object]]:
    """All own mails as rows of the labelled-mail format."""
    drafts = list(_drafts())
    rows = [_row(draft, f"own-{n:04d}", f"own-{_house(draft)}") for n, draft in enumerate(drafts)]
    return [*rows, *_hijacks(drafts), *_plain(drafts)]


def _drafts() -> Iterator[Draft]:
    for path in sorted(FOLDER.glob("*.txt")):
        if path.name in (INJECTIONS, PARTS, PLAIN):
            continue
        category = path.stem.replace("_", "-")
        for block in re.split(r"^@ ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
            lines = block.strip().split("\n")
            kind, lang = lines[0].split()
            sender = lines[1].removeprefix("From:").strip()
            subject = lines[2].removeprefix("Subject:").strip()
            yield Draft(category, kind, lang, sender, subject, "\n".join(lines[3:]).strip())


def _hijacks(drafts: list[Draft]) -> Iterator[dict[str, object]]:
    """Each whole injection in two carriers; each opener and each order at least once with another, in one carrier."""
    carriers = [d for d in drafts if d.category not in ("spam", "action-required")]
    whole = [(lang, words, CARRIERS_PER_INJECTION) for lang, words in _table(INJECTIONS)]
    for n, (lang, words, copies) in enumerate(whole + [(lang, words, 1) for lang, words in _combined()]):
        same = [d for d in carriers if d.lang == lang]
        bulk = [d for d in same if d.kind in ("bulk", "system")] or same
        for copy in range(copies):
            pool = bulk if copy == 0 else same
            carrier = pool[(n * 7 + copy * 13) % len(pool)]
            draft = replace(carrier, category="hijack-attempt", body=_set_in(carrier, words, n + copy))
            yield _row(draft, f"own-hijack-{n:03d}-{copy}", f"own-hijack-{n:03d}") | {"injection": words}


def _plain(drafts: list[Draft]) -> Iterator[dict[str, object]]:
    """Each plain sentence in one carrier, whose category it does not change."""
    for n, (lang, words) in enumerate(_table(PLAIN)):
        pool = [d for d in drafts if d.lang == lang]
        carrier = pool[(n * 11) % len(pool)]
        draft = replace(carrier, body=_set_in(carrier, words, n))
        yield _row(draft, f"own-plain-{n:03d}", f"own-{_house(carrier)}") | {"plain": words}


def _combined() -> Iterator[tuple[str, str]]:
    parts = list(_table(PARTS))
    for lang in sorted({lang for lang, *_ in parts}):
        openers = [words for of, role, words in parts if of == lang and role == "opener"]
        orders = [words for of, role, words in parts if of == lang and role == "order"]
        for n in range(2 * max(len(openers), len(orders))):
            order = orders[(n * 5 + n // len(orders)) % len(orders)]
            yield lang, f"{openers[n % len(openers)]} {order}" if n % 5 else order


def _table(name: str) -> Iterator[list[str]]:
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split("\t")


def _set_in(carrier: Draft, words: str, turn: int) -> str:
    lines = carrier.body.split("\n")
    place = (len(lines), len(lines) // 2, 0)[turn % 3]
    return "\n".join([*lines[:place], words, *lines[place:]])


def _row(draft: Draft, row_id: str, group: str) -> dict[str, object]:
    return {
        "id": row_id,
        "source": "own-corpus",
        "licence": "CC0-1.0",
        "lang": draft.lang,
        "category": draft.category,
        "group": group,
        "train_ok": True,
        "from": draft.sender,
        "to": "Office <office@corvid-systems.example>",
        "subject": draft.subject,
        "date": "Tue, 13 May 2025 09:30:00 +0000",
        "headers": _headers(draft),
        "body_text": draft.body + (_footer(draft) if draft.kind == "bulk" else ""),
        "body_html": _markup(draft) if _has_html(draft) else "",
    }


def _house(draft: Draft) -> str:
    domain = parseaddr(draft.sender)[1].rpartition("@")[2] or "unnamed"
    return domain.removesuffix(".example")


def _headers(draft: Draft) -> dict[str, str]:
    domain = parseaddr(draft.sender)[1].rpartition("@")[2] or "example.org"
    found: dict[str, str] = {}
    if draft.subject.lower().startswith(("re:", "aw:")) and draft.chance("reply") < 0.8:
        found["In-Reply-To"] = f"<{int(draft.chance('id') * 1e9)}@{domain}>"
        found["References"] = found["In-Reply-To"]
    if draft.kind == "list":
        found |= {"List-Id": f"<talk.{domain}>", "List-Post": f"<mailto:talk@{domain}>", "Precedence": "list"}
        found["List-Unsubscribe"] = f"<mailto:talk-leave@{domain}>"
    elif draft.kind == "bulk":
        found["List-Unsubscribe"] = f"<https://{domain}/u/1>"
        found |= {"List-Unsubscribe-Post": "List-Unsubscribe=One-Click"} if draft.chance("click") < 0.6 else {}
        found |= {"Feedback-ID": f"1:2:{domain}"} if draft.chance("feedback") < 0.4 else {}
        found |= {"Precedence": "bulk"} if draft.chance("bulk") < 0.3 else {}
        found |= {"List-Id": f"<news.{domain}>"} if draft.chance("list") < 0.3 else {}
    elif draft.kind == "system":
        found |= {"Auto-Submitted": "auto-generated"} if draft.chance("auto") < 0.4 else {}
        found |= {"X-Auto-Response-Suppress": "All"} if draft.chance("suppress") < 0.2 else {}
        found |= {"Feedback-ID": f"9:8:{domain}"} if draft.chance("feedback") < 0.2 else {}
        found |= {"List-Unsubscribe": f"<https://{domain}/n>"} if draft.chance("leave") < 0.15 else {}
    elif draft.kind == "scam":
        found |= {"Reply-To": "desk@answer-here.example"} if draft.chance("reply-to") < 0.25 else {}
        found |= {"Return-Path": "<x93@relay-host.example>"} if draft.chance("path") < 0.4 else {}
        found |= {"List-Unsubscribe": f"<https://{domain}/u>"} if draft.chance("leave") < 0.25 else {}
        found |= {"X-Priority": "1"} if draft.chance("priority") < 0.2 else {}
    return found


def _footer(draft: Draft) -> str:
    words = {
        "es": (
            "Recibes este correo porque estás suscrito. Darse de baja",
            "Cancelar suscripción | Ver en el navegador",
        ),
        "de": ("Newsletter abbestellen",),
        "fr": ("Se désabonner",),
        "pt": ("Cancelar inscrição",),
        "it": ("Annulla l'iscrizione",),
    }.get(
        draft.lang, ("Unsubscribe", "You are receiving this because you signed up. Unsubscribe", "Manage preferences")
    )
    return "\n\n" + words[int(draft.chance("footer") * len(words))]


def _has_html(draft: Draft) -> bool:
    share = {"person": 0.35, "list": 0.05, "system": 0.6, "bulk": 0.9, "scam": 0.7}[draft.kind]
    return draft.chance("html") < share


def _markup(draft: Draft) -> str:
    paragraphs = "".join(f"<p>{html.escape(line)}</p>\n" for line in draft.body.split("\n") if line.strip())
    if draft.kind in ("person", "list"):
        return f'<html><body><div dir="ltr">{paragraphs}</div></body></html>'
    domain = parseaddr(draft.sender)[1].rpartition("@")[2] or "example.org"
    images = "".join(f'<img src="https://{domain}/i{n}.png" alt="">' for n in range(int(draft.chance("images") * 5)))
    links = "".join(
        f'<a href="https://{domain}/{n}" style="color:#1155cc;font-weight:bold">{word}</a> '
        for n, word in enumerate(("Open", "More", "Help", "Account")[: 1 + int(draft.chance("links") * 4)])
    )
    leave = (
        f'<p style="font-size:11px"><a href="https://{domain}/u">{_footer(draft).strip()}</a></p>'
        if draft.kind == "bulk"
        else ""
    )
    return (
        '<html><body style="margin:0"><table width="600" cellpadding="0" cellspacing="0" style="font-family:Arial">'
        f"<tr><td>{images}</td></tr><tr><td>{paragraphs}</td></tr><tr><td>{links}</td></tr></table>{leave}</body></html>"
    )
