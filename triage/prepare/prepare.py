"""Mail to what a model reads: sender, recipient, subject, body. Pure: no clock, no I/O, the same answer every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triage.domain.mail import MailSource, PartBytes, PreparedMail, Signals
from triage.prepare.addresses import readable
from triage.prepare.body import Words, read_body
from triage.prepare.choose import Body, bodies
from triage.prepare.clean import one_line, tidy
from triage.prepare.headers import Fields, decode_words
from triage.prepare.links import host_of, is_address, remove_links
from triage.prepare.special import facts_of, name_of

MAX_CHARS = 6000
MAX_SUBJECT = 400
MAX_SIGNAL = 2000
HIDDEN_TEXT_FROM = 4
"""Fewer hidden characters than this are a stray, no text."""

_SENDERS = ("from", "sender", "reply-to", "return-path")
_RECIPIENTS = ("to", "cc", "bcc", "delivered-to")
_SIGNALS = (
    "list-id", "list-unsubscribe", "list-unsubscribe-post", "list-post", "feedback-id", "precedence", "auto-submitted",
    "in-reply-to", "references", "reply-to", "return-path", "x-priority", "importance", "x-auto-response-suppress",
)  # fmt: skip
_GAP = "\n[...]\n"
_HEAD_SHARE = 0.7


def prepare(source: MailSource, *, max_chars: int = MAX_CHARS) -> PreparedMail:
    """What a model may read of a message, at most `max_chars` characters of body. Never raises.

    Every string is valid UTF-8 without control characters (a body has line feeds).
    """
    fields = Fields(source.headers)
    found = bodies(source.structure)
    charset = next((p.params.get("charset", "") for b in found for p in (b.plain, b.html) if p), "")
    raw_subject = one_line(decode_words(fields.first("subject", charset)), MAX_SUBJECT)
    subject = remove_links(raw_subject)
    texts = {fetched.part.path: fetched for fetched in source.texts}
    words = _all_words(found, {path: f for path, f in texts.items() if f.data}, raw_subject)
    facts = facts_of(source.structure)
    warnings = set().union(*(w.warnings for w in words))
    body = _joined(words)
    if not body.strip():
        body, code = name_of(facts)
        if any(w.links for w in words):
            body, code = "[no text, only links]", "empty"
        warnings.add(code)
    elif facts.encrypted and not any(f.part.type == "text" for f in source.texts):
        warnings.add("encrypted")
    body, shortened = _fit(body, max_chars)
    truncated = shortened or any(f.cut for f in source.texts)
    hidden = sum(w.hidden_chars for w in words)
    if truncated:
        warnings.add("truncated")
    if hidden >= HIDDEN_TEXT_FROM:
        warnings.add("hidden_text")
    links = [link for w in words for link in w.all_links]
    hosts = [host for link in links if (host := host_of(link))]
    return PreparedMail(
        sender=_people(fields, _SENDERS, charset),
        recipient=_people(fields, _RECIPIENTS, charset),
        subject=tidy(subject.text),
        body=body,
        links_removed=len(subject.links) + sum(len(w.links) for w in words),
        truncated=truncated,
        warnings=tuple(sorted(warnings)),
        signals=Signals(
            headers=_signal_headers(fields, charset),
            has_html=facts.has_html or any(w.html_chars for w in words),
            html_chars=sum(w.html_chars for w in words) or facts.html_size,
            links=len(links),
            address_links=sum(map(is_address, hosts)),
            link_hosts=len(set(hosts)),
            images=sum(w.images for w in words),
            attachments=len(facts.attachments),
            quoted_lines=sum(w.quoted_lines for w in words),
            hidden_chars=hidden,
        ),
    )


def _all_words(found: tuple[Body, ...], texts: Mapping[str, PartBytes], subject: str) -> list[Words]:
    """The words of the message's own bodies; of a calendar or an attached message only if it has none of its own."""
    words: list[Words] = []
    for body in found:
        if body.kind != "own" and any(w.text and not w.bare for w in words):
            continue
        read = read_body(body, texts, subject)
        if body.kind == "attached" and read.text:
            named = f"[attached message]\n{read.text}"
            read = replace(read, text=named, warnings=read.warnings | {"attached_message"})
        words.append(read)
    return words


def _joined(words: list[Words]) -> str:
    """The bodies one after the other; one that says nothing new is left out."""
    kept: list[str] = []
    for text in (w.text for w in words):
        if text and not any(_says(before, text) for before in kept):
            kept = [*(before for before in kept if not _says(text, before)), text]
    return "\n\n".join(kept)


def _says(long: str, short: str) -> bool:
    """Does `long` hold nearly all the words of `short`?"""
    if len(short) > 1.2 * len(long):
        return False
    words = set(short.casefold().split())
    return len(words & set(long.casefold().split())) >= 0.9 * len(words)


def _fit(text: str, limit: int) -> tuple[str, bool]:
    """`text` within `limit` characters: head and tail, cut between words, with a mark where the middle was."""
    if len(text) <= limit:
        return text, False
    room = limit - len(_GAP)
    if room < 40:
        return text[: max(0, limit)].rstrip(), True
    head, tail = text[: int(room * _HEAD_SHARE)], text[-(room - int(room * _HEAD_SHARE)) :]
    blank = max(head.rfind(" "), head.rfind("\n"))
    head = head[:blank] if blank > len(head) * 0.8 else head
    blank = min((i for i in (tail.find(" "), tail.find("\n")) if i >= 0), default=-1)
    tail = tail[blank + 1 :] if 0 <= blank < len(tail) * 0.2 else tail
    return f"{head.rstrip()}{_GAP}{tail.lstrip()}", True


def _people(fields: Fields, names: tuple[str, ...], charset: str) -> str:
    shown = (readable(value) for name in names if (value := fields.first(name, charset)))
    text = next((text for text in shown if text.strip("<> ")), "")
    return remove_links(text).text.strip() or text if "/" in text or "www." in text.lower() else text


def _signal_headers(fields: Fields, charset: str) -> dict[str, str]:
    return {
        name: one_line(decode_words(fields.first(name, charset)), MAX_SIGNAL) for name in _SIGNALS if name in fields
    }
