"""Links out of a text; the words around them stay.

Everything that leads somewhere goes: URLs of any scheme, bare or in brackets, wrapped over lines, glued to words of any
script; www names; host names with a path; the targets of Markdown, BBCode and angle-bracket links. A bare mail address
or a bare domain is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.prepare.domains import LETTER, TLD
from triage.prepare.lookalikes import plain_links

_CJK = "\u2e80-\u303f\u3040-\u33ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_URL_CHAR = rf"[^\s<>\"“”„«»{_CJK}]"
_SCHEME = (
    r"(?i:(?:https?|hxxps?|ftps?|sftp|file|webcal|tg|slack|msteams|zoommtg|whatsapp|skype|market|itms(?:-apps)?|intent"
    r"|android-app|git|ssh|svn|ldap|ws|wss|rtsp|s3|ipfs|chrome|about|nntp|irc|smb|app|cid)"
    r"(?::|\[:\]|&#58;|%3A)(?://?|\\\\|%2F%2F)/?|https?:(?=[\w-]+\.[a-z])|data:(?:[a-z]+/|,)|tel:\+?\d|sms:\+?\d"
    r"|(?:mailto|cid|javascript|vbscript|callto|bitcoin|facetime|facetime-audio|search-ms|ms-[a-z]+|xmpp):(?=[^\s:])"
    r"|magnet:\?|urn:[a-z]+:|geo:-?\d|(?![a-z0-9+.-]{1,20}https?:/)[a-z][a-z0-9+.-]{1,20}://)"
)
_PATH = rf"(?:/{_URL_CHAR}+|[?#]{_URL_CHAR}+|/(?!\w))"
_HOST = (
    rf"(?:(?<![{LETTER}_@.\\/-])(?:[{LETTER}][{LETTER}-]{{0,61}}\.){{1,6}}{TLD}(?::\d{{1,5}})?{_PATH}"
    rf"|(?<![\w@.\\/-])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d{{1,5}}/|/(?=[^\W\d])){_URL_CHAR}*)"
)
_CJK_HOST = rf"(?:(?=[{_CJK}])[\w.-]{{2,80}}(?=/))?"
_SHARE = rf"(?<!\S)\\\\[\w.-]{{2,100}}\\{_URL_CHAR}+"
_SCHEMELESS = rf"(?<![\w:/])//(?:[a-zA-Z0-9-]{{1,63}}\.){{1,5}}{TLD}\b"

_MARKDOWN = re.compile(
    rf"(!?)\[([^\[\]\n]{{0,500}}(?:\[[^\[\]\n]{{0,200}}\][^\[\]\n]{{0,200}})?)\]"
    rf"\(\s*<?(?:{_SCHEME}|#|/|www\.|[\w.-]+\.{TLD}\b)[^\s()<>]{{0,3000}}+(?:\([^\s()<>]{{0,3000}}+\)[^\s()<>]{{0,3000}}+){{0,9}}>?(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)
_BBCODE = re.compile(r"\[url=[^\]\n]{1,2000}\]|\[/?url\]|\[/?img\]", re.I)
_ORG = re.compile(rf"\[\[{_SCHEME}[^\]\s]{{0,2000}}\]\[([^\[\]\n]{{0,300}})\]\]")
_LABELLED_ANGLE = re.compile(rf"<{_SCHEME}[^\s<>|]*\|([^<>\n]{{0,300}})>")
_ANGLE = re.compile(rf"<\s*(?:(?i:URL):\s*)?(?:{_SCHEME}|(?i:www)\.)[^\s<>]*+(?:\s*\n[> ]*[^\s<>]++){{0,60}}\s*>")
_IMAGE_MARK = re.compile(r"\[(?:cid|image):[^\]\n]{0,300}\]", re.I)
_BARE = re.compile(
    rf"(?:{_SCHEME}{_CJK_HOST}{_URL_CHAR}*|(?<![a-zA-Z0-9_@.-])(?i:www)\d?\.{_URL_CHAR}{{3,}}"
    rf"|{_HOST}|{_SHARE}|{_SCHEMELESS}{_URL_CHAR}*)"
)
_ANCHOR = re.compile(r"[:/\\?#]|[wW]{3}|%3[aA]")
"""What every link has in it; only the words around one of these are looked at."""
_TOKEN_END = re.compile(r"\s|\Z")
_TRAILING = ".,;:!?'*_~`’…|"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_MARK = "\ue0f0"
_AROUND_MARK = re.compile(rf"[(\[{{<\"'“«]\s*{_MARK}(?:[\s,;|]*{_MARK})*\s*[)\]}}>\"'”»]|{_MARK}")
_BEFORE_STOP = re.compile(rf"(?<![ \t])[ \t]*+{_MARK}[ \t]*+(?=[.,;:!?)])")
_LEFT_EMPTY = re.compile(r"[(\[<{]\s*[)\]>}]")
_FOOTNOTE = re.compile(r"\W{0,20}\[?\d{1,3}[\].):]{0,3}(?!\w)")
_LETTER = re.compile(r"[^\W_]")
_WRAPPED = re.compile(r"\n[> ]*([^\s<>]{8,})[ \t]*(?=\n|\Z)")
_URL_LIKE = re.compile(r"[/=&%?_#+~]|\d[a-z]|[a-z]\d|[a-z][A-Z]")
_REFERENCE = re.compile(r"[A-Z]{0,12}(?:[/.-]?\d{1,12})+")
"""A date or a reference number below a link is no part of it."""
_HOST_OF = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?/{0,3}(?:[^/@?#\s]*@)?(\[[0-9a-f:.]+\]|[^/:?#\s\\]+)", re.I)
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|\d{8,10}|0x[0-9a-f]{8}", re.I)


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A text without its links, and the links that were taken out."""

    text: str
    links: tuple[str, ...] = ()


def remove_links(text: str) -> Unlinked:
    """Take every link out of `text` and clear away the brackets, quotes and lines that held nothing else."""
    links: list[str] = []

    def take(found: re.Match[str]) -> str:
        links.append(found.group(0))
        return _MARK

    def keep_words(found: re.Match[str]) -> str:
        links.append(found.group(0))
        return f"{found.group(found.lastindex or 0)}{_MARK}"

    text = plain_links(text.replace(_MARK, ""))
    if "[" in text:
        text = _ORG.sub(keep_words, _MARKDOWN.sub(keep_words, text))
        text = _MARKDOWN.sub(keep_words, text) if "](" in text else text  # the link around an image
        text = _BBCODE.sub(lambda m: _MARK if "=" not in m.group(0) else take(m), text)
        text = _IMAGE_MARK.sub(_MARK, text)
    if "<" in text:
        text = _LABELLED_ANGLE.sub(keep_words, text)
        text = _ANGLE.sub(take, text)
    text = _remove_bare(text, links)
    return Unlinked(_clear(text), tuple(links)) if _MARK in text else Unlinked(text)


def _remove_bare(text: str, links: list[str]) -> str:
    out: list[str] = []
    end = looked = 0
    for anchor in _ANCHOR.finditer(text):
        if anchor.start() < looked:
            continue
        blank = max(text.rfind(" ", looked, anchor.start()), text.rfind("\n", looked, anchor.start()))
        begin = max(blank + 1, looked, end)
        ending = _TOKEN_END.search(text, anchor.start())
        looked = ending.start() if ending else len(text)
        while found := _BARE.search(text, begin, looked):
            stop = found.start() + max(1, len(_trimmed(found.group(0))))
            if stop == looked:
                looked = stop = _wrapped_end(text, stop)
            links.append(text[found.start() : min(stop, found.start() + 300)])
            out += (text[end : found.start()], _MARK)
            begin = end = stop
    out.append(text[end:])
    return "".join(out)


def _trimmed(url: str) -> str:
    """A URL without the punctuation of its sentence; a closing bracket belongs to it only if it opened there."""
    url = url.partition("](")[0].partition("][")[0]
    before = url.partition("}{")[0]
    url = url if "{" in before else before
    surplus = {close: url.count(close) - url.count(start) for close, start in _PAIRS.items()}
    end = len(url)
    while end:
        last = url[end - 1]
        if surplus.get(last, 0) > 0:
            surplus[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return url[:end]


def _wrapped_end(text: str, stop: int) -> int:
    """Where a URL ends that a mail program broke at the margin: lines of one token that can be no word."""
    for _ in range(60):
        line_start = text.rfind("\n", 0, stop) + 1
        full = stop - line_start >= 60 or text[stop - 1] in "=&%/-_?"
        found = _WRAPPED.match(text, stop) if full and stop < len(text) else None
        if found is None:
            return stop
        token = found.group(1)
        if not _URL_LIKE.search(token) or _REFERENCE.fullmatch(token) or _BARE.match(token):
            return stop
        stop = found.start(1) + len(_trimmed(token))
        if stop < found.end(1):
            return stop
    return stop


def _clear(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        if _MARK not in line:
            lines.append(line)
            continue
        bare = _BEFORE_STOP.sub("", _AROUND_MARK.sub(_MARK, line)).replace(_MARK, "")
        bare = _LEFT_EMPTY.sub("", bare) if "(" in line or "[" in line or "<" in line else bare
        found = _FOOTNOTE.match(bare)
        if _LETTER.search(bare, found.end() if found else 0):
            lines.append(bare)
    return "\n".join(lines)


def host_of(link: str) -> str:
    """The host of a link, lower case; "" for mail addresses and links without one."""
    link = link.strip(" <>()[]\"'")
    if link[:7].lower() in ("mailto:", "javasc") or link.startswith(("#", "tel:", "cid:", "data:")):
        return ""
    found = _HOST_OF.match(link)
    host = found.group(1).lower() if found else ""
    return host if "." in host or host.startswith("[") or host.isdigit() else ""


def is_address(host: str) -> bool:
    """Is this host a bare IP address, in any notation?"""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None
