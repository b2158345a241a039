"""A message's bytes split into its MIME structure (RFC 2046), by offsets alone.

The standard library's parser holds the whole message line by line, recurses once a level and raises on some input;
here a message of any size costs a few `bytes.find`, the text is never copied, and depth, number of parts and size of
every header block are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

from triage.domain.mail import HEADER_FIELDS, Part
from triage.prepare.headers import MAX_BLOCK, MAX_FIELDS, Fields, decode_words, parse_parameters

MAX_DEPTH = 20
MAX_PARTS = 200
MAX_DELIMITERS = 20_000

_BLANK_LINE = re.compile(rb"\r?\n(?:\r?\n|[ \t]+\r?\n(?![ \t]+[^\s]|[!-9;-~]{1,100}:))|\r\r")
"""A line of blanks ends a header block unless the block goes on behind it."""
_LEADING = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]*\r?\n)*")
_FIELD_LINE = re.compile(rb"(?:>?From |[!-9;-~]{1,100}[ \t]*:)")
_KNOWN_FIELD = re.compile(
    rb"^(?:%b)[ \t]*:(?:[^\n]*\n[ \t])*[^\n]*" % b"|".join(n.encode() for n in (*HEADER_FIELDS, "Content-Disposition")),
    re.IGNORECASE | re.MULTILINE,
)
_TYPE = re.compile(r"([a-z0-9!#$&^_.+-]{1,60})\s*/\s*([a-z0-9!#$&^_.+-]{1,80})")
_GUESSED_BOUNDARY = re.compile(rb"^--([^\s][^\r\n]{0,150}?)[ \t]*\r?\nContent-", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Message:
    """A split message: header block, structure, and where each leaf's encoded bytes lie."""

    headers: bytes
    structure: Part
    spans: Mapping[str, tuple[int, int]]


def split_message(raw: bytes) -> Message:
    """Split a whole message or the leading bytes of one. Never raises."""
    splitter = _Splitter(raw)
    headers, start = splitter.header_block(_LEADING.match(raw).end() if raw else 0, len(raw))  # type: ignore[union-attr]
    fields = Fields(headers)
    structure = splitter.part(fields, start, len(raw), "", 0, "text/plain")
    return Message(headers, structure, splitter.spans)


class _Splitter:
    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.spans: dict[str, tuple[int, int]] = {}
        self.parts = 0

    def header_block(self, start: int, end: int) -> tuple[bytes, int]:
        """The header block at `start`, and where the body begins. Bytes that begin with no field are all body."""
        raw = self.raw
        if raw[start : start + 1] in (b"\n", b"\r"):
            return b"", start + (2 if raw[start : start + 2] == b"\r\n" else 1)
        if not _FIELD_LINE.match(raw, start, min(end, start + 200)):
            return b"", start
        limit = min(end, start + MAX_BLOCK)
        found = _BLANK_LINE.search(raw, start, limit) or _BLANK_LINE.search(raw, limit, end)
        block_end, body = (found.start(), found.end()) if found else (limit, limit)
        if block_end - start > MAX_BLOCK or raw.count(b"\n", start, block_end) > MAX_FIELDS:
            return b"\n".join(m.group() for m in islice(_KNOWN_FIELD.finditer(raw, start, block_end), MAX_FIELDS)), body
        early = self._early_body(start, block_end)
        return (raw[start:early], early) if early else (raw[start:block_end], body)

    def _early_body(self, start: int, end: int) -> int:
        """Where the text begins if the blank line before it is missing: no field follows any more. 0 if it is there."""
        lines = self.raw[start:end].split(b"\n")
        known = len(lines)
        while known and not (_FIELD_LINE.match(lines[known - 1]) or lines[known - 1][:1] in (b" ", b"\t")):
            known -= 1
        return start + sum(len(line) + 1 for line in lines[:known]) if 0 < known < len(lines) else 0

    def part(self, fields: Fields, start: int, end: int, path: str, depth: int, default: str) -> Part:
        """One node. `path` is its section; for a root or the message inside a message it is its parent's."""
        self.parts += 1
        mime_type, params = parse_parameters(fields.first("content-type"))
        found = _TYPE.match(mime_type)
        main, sub = found.groups() if found else ("text/html" if mime_type == "html" else default).split("/")
        disposition, extra = parse_parameters(fields.first("content-disposition"))
        node = Part(
            path=path,
            type=main,
            subtype=sub,
            params=params,
            encoding=fields.first("content-transfer-encoding")[:40].partition(";")[0].strip().lower() or "7bit",
            size=end - start,
            disposition=disposition[:40],
            filename=decode_words(extra.get("filename") or params.get("name", ""))[:200],
        )
        if main == "multipart" and depth < MAX_DEPTH:
            children = self._children(node, start, end, depth)
            if children:
                return replace(node, children=children)
            if not self.raw[start : min(end, start + 1000)].strip():
                return node
            node = replace(node, type="text", subtype="plain")  # no delimiter anywhere: what is there is text
        return node if main == "multipart" and depth >= MAX_DEPTH else self._leaf(node, start, end, depth)

    def _leaf(self, node: Part, start: int, end: int, depth: int) -> Part:
        if node.mime_type in ("message/rfc822", "message/global") and depth < MAX_DEPTH and self.parts < MAX_PARTS:
            headers, body = self.header_block(start, end)
            inner = self.part(Fields(headers), body, end, node.path or "1", depth + 1, "text/plain")
            if inner.type != "multipart":
                path = f"{node.path or '1'}.1"
                self.spans[path] = self.spans.pop(inner.path, (body, end))
                inner = replace(inner, path=path)
            node = replace(node, children=(inner,))
        node = replace(node, path=node.path or "1")
        self.spans[node.path] = (start, end)
        return node

    def _children(self, node: Part, start: int, end: int, depth: int) -> tuple[Part, ...]:
        regions = self._regions(node.params.get("boundary", ""), start, end)
        default = "message/rfc822" if node.subtype == "digest" else "text/plain"
        children: list[Part] = []
        for first, last in regions:
            if self.parts >= MAX_PARTS:
                break
            headers, body = self.header_block(first, last)
            path = f"{node.path}.{len(children) + 1}" if node.path else str(len(children) + 1)
            children.append(self.part(Fields(headers), min(body, last), last, path, depth + 1, default))
        return tuple(children)

    def _regions(self, boundary: str, start: int, end: int) -> list[tuple[int, int]]:
        """The stretches between the delimiter lines; the last may lack its end."""
        regions = self._between(boundary.rstrip().encode("utf-8", "replace"), start, end) if boundary.strip() else []
        if not regions and (guess := _GUESSED_BOUNDARY.search(self.raw, start, min(end, start + MAX_BLOCK))):
            regions = self._between(guess.group(1), start, end)
        return regions

    def _between(self, boundary: bytes, start: int, end: int) -> list[tuple[int, int]]:
        raw, delimiter = self.raw, b"--" + boundary
        regions: list[tuple[int, int]] = []
        opened, at = -1, start
        for _ in range(MAX_DELIMITERS):
            at = raw.find(delimiter, at, end)
            if at < 0 or len(regions) > MAX_PARTS:
                break
            after = at + len(delimiter)
            tail = raw[after : min(end, after + 200)].lstrip(b" \t")
            closing = tail.startswith(b"--")
            tail = tail[2 * closing :].lstrip(b" \t")
            if (at > start and raw[at - 1] not in b"\r\n") or (tail and tail[0] not in b"\r\n"):
                at += 1
                continue
            if opened >= 0:
                regions.append((opened, max(opened, at - (2 if raw[at - 2 : at] == b"\r\n" else 1))))
            newline = raw.find(b"\n", after, end)
            opened = newline + 1 if newline >= 0 else end
            at = after
            if closing:
                return regions
        if opened >= 0:
            regions.append((opened, end))
        return regions
