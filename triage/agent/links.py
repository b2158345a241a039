"""Links and codes out of a message, by rule. A link is never opened, a code never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from triage.agent.patterns import TooSlowError, found
from triage.agent.policy import CodeKeys, LinkKeys
from triage.domain.mail import MailSource, PreparedMail
from triage.prepare.charset import decode
from triage.prepare.html import hrefs
from triage.prepare.plain import unflow
from triage.prepare.transfer import decode_transfer

_URL = re.compile(r"https?://[^\s<>\"'\\^`{|}]{1,2000}", re.IGNORECASE)
_TRAILING = ".,;:!?'*_~"
_CLOSING = {")": "(", "]": "["}
_LONGEST = 2_000
_MOST_CODES_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What was found: the value (only ever handed to who may have it) and what may be told of it."""

    value: str
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why nothing could be taken, as a code."""

    reason: str


def take_link(source: MailSource, rule: LinkKeys) -> Taken | Nothing:
    """The one link that the rule allows: https, an exact host of the list, no login in it, the path as wanted.

    The same link twice (text and HTML) is one; two different ones are for a person.
    """
    links = list(dict.fromkeys(all_links(source)))
    if not links:
        return Nothing("no_link")
    try:
        allowed = [link for link in links if _allowed(link, rule)]
    except TooSlowError:
        return Nothing("link_rule_too_slow")
    if not allowed:
        return Nothing("link_not_allowed")
    if len(allowed) > 1:
        return Nothing("several_links")
    return Taken(allowed[0], urlsplit(allowed[0]).hostname)


def take_code(mail: PreparedMail, rule: CodeKeys) -> Taken | Nothing:
    """The one code that the policy's pattern finds in the text a person sees."""
    try:
        codes = set(found(rule.pattern, mail.body[:_MOST_CODES_TEXT], "code"))
    except TooSlowError:
        return Nothing("code_rule_too_slow")
    codes.discard("")
    if not codes:
        return Nothing("no_code")
    return Taken(codes.pop()) if len(codes) == 1 else Nothing("several_codes")


def all_links(source: MailSource) -> Iterator[str]:
    """Every http(s) link of the fetched text parts, as written, in order."""
    for fetched in source.texts:
        part = fetched.part
        text, _ = decode(decode_transfer(fetched.data, part.encoding), part.params.get("charset", ""))
        if part.subtype in ("html", "x-html"):
            yield from (link for href in hrefs(text) if _URL.fullmatch(link := href.strip()))
        else:
            yield from (_trimmed(match[0]) for match in _URL.finditer(unflow(text, part.params)))


def _trimmed(link: str) -> str:
    """Without the punctuation of the sentence around it."""
    while link and (link[-1] in _TRAILING or _closes_nothing(link)):
        link = link[:-1]
    return link


def _closes_nothing(link: str) -> bool:
    opening = _CLOSING.get(link[-1])
    return opening is not None and link.count(opening) < link.count(link[-1])


def _allowed(link: str, rule: LinkKeys) -> bool:
    url = _split(link)
    if url is None or url.scheme.casefold() != "https" or "@" in url.netloc or len(link) > _LONGEST:
        return False
    host = url.hostname or ""
    return host in rule.hosts and not _has_port(url) and bool(found(rule.path, url.path or "/"))


def _split(link: str) -> SplitResult | None:
    if not link.isascii() or "\\" in link or not link.isprintable():
        return None  # a host in look-alike letters is no host of the list
    try:
        return urlsplit(link)
    except ValueError:
        return None


def _has_port(url: SplitResult) -> bool:
    try:
        return url.port not in (None, 443)
    except ValueError:
        return True
