"""Mail text as the embedded classifier counts it: folded, split into words, links and quotes set aside."""

from __future__ import annotations

import re
import unicodedata

SUBJECT_WORDS = 30
BODY_WORDS = 700
HEAD_CHARS = 3000
TAIL_CHARS = 600

_LINK = re.compile(r"\[(?:link|image|url|enlace)[^\]\n]{0,200}\]|(?:https?://|www\.)[^\s<>\"')\]]+|<https?[^>]*>", re.I)
_ADDRESS = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_MONEY = re.compile(
    r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|mxn|chf|brl|aud|cad)\b|r\$|us\$) ?\d[\d.,]*"
    r"|\d[\d.,]* ?(?:[$€£¥₹]|(?:usd|eur|euros?|gbp|mxn|dollars?|dolares|pesos|libras|chf|reais)\b)",
    re.I,
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]{1,3})?|\d+(?:[.,:/-]\d+)*|%")
_QUOTE_HEAD = re.compile(
    r"^\s*(?:-{2,} ?(?:original message|mensaje original|urspr\w+ nachricht|message d'origine|mensagem original)"
    r" ?-{2,}.*"
    r"|(?:on|el|am|le|em) .{6,120}(?:wrote|escribi[oó]|schrieb|écrit|escreveu)\W*)$",
    re.I,
)
_OLD_HEADER = re.compile(
    r"^[ \t]*-{3,} ?forwarded\b.*$|^[ \t]*(?:to|from|sent|de|von|an|para|enviado):[^\n]*\n(?:[^\n]*\n){0,5}?"
    r"[ \t]*(?:cc|date|sent|to|subject|asunto|betreff|fecha):[^\n]*\n(?:[^\n]*\n){0,8}?"
    r"[ \t]*(?:subject|asunto|betreff):",
    re.I | re.M,
)
_LEAST_OWN = 20


def fold(text: str) -> str:
    """Lower case without accents and compatibility forms, so that "Boletín" and "BOLETIN" are one word."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def own_lines(body: str) -> tuple[str, int]:
    """The sender's own text, without quoted lines and what follows the header of an earlier mail; and how many went.

    Preparation has trimmed what is surely history; forwarded mail it keeps. Here the sender's own words above it count
    more, so they stand alone if there are any. A mail that is nothing but quotation keeps its text.
    """
    kept: list[str] = []
    dropped = 0
    lines = body.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith(">"):
            dropped += 1
        elif _QUOTE_HEAD.match(line):
            if line.lstrip().startswith("-"):
                dropped += len(lines) - number
                break
            dropped += 1
        else:
            kept.append(line)
    own = "\n".join(kept)
    header = _OLD_HEADER.search(own)
    if header and len(own[: header.start()].strip()) >= _LEAST_OWN:
        dropped += own.count("\n", header.start())
        own = own[: header.start()]
    return (own, dropped) if own.strip() else (body, dropped)


def excerpt(text: str) -> str:
    """The head and the tail of a text: what a mail is shows at both ends."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    return text[:HEAD_CHARS] + "\n" + text[-TAIL_CHARS:]


def without_links(text: str) -> str:
    """Links and addresses taken out, money replaced by one word; the rest untouched."""
    text = _LINK.sub(" ", text)
    text = _ADDRESS.sub(" zzaddress ", text)
    return _MONEY.sub(" zzmoney ", text)


def words(folded: str, limit: int) -> list[str]:
    """At most `limit` words of a folded text; numbers become one word for each length."""
    found = []
    for match in _WORD.finditer(folded):
        word = match.group()
        if word[0].isdigit():
            word = "0" * min(len(word), 8)
        elif len(word) > 24:
            word = word[:24]
        found.append(word)
        if len(found) == limit:
            break
    return found
