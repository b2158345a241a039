"""text/plain as its author meant it: flowed lines joined, HTML that only claims to be plain found out."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOCUMENT = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body|table|div)\b",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(
    r"</?(?:p|div|td|tr|table|br|span|a|b|font|strong|img|h[1-6]|ul|li|center|body)\b[^<>]{0,2000}>", re.IGNORECASE
)
_ENTITY = re.compile(r"&(?:nbsp|zwnj|amp|quot|[lr]squo|#\d{2,6});")


def looks_like_html(text: str) -> bool:
    """Is this text an HTML document or full of its tags? A text that merely names a tag is not."""
    if "<" not in text:
        return False
    head = text[:20_000]
    if _DOCUMENT.match(head):
        return "</" in text or "<br" in text.lower() or "<p" in text.lower()
    tags = _TAG.findall(head)
    closing = sum(1 for t in tags if t.startswith("</") or t[:3].lower() == "<br")
    share = sum(map(len, tags)) / len(head)
    return (closing >= 3 and share > 0.08) or (closing >= 2 and share > 0.2 and head.lstrip().startswith("<"))


def has_entities(text: str) -> bool:
    """Plain text made from HTML by a program that left the entities in."""
    return "&" in text and len(_ENTITY.findall(text[:20_000])) >= 3


def unflow(text: str, params: Mapping[str, str]) -> str:
    """Lines of format=flowed joined (RFC 3676, 4.1 to 4.5); other text unchanged. Line ends are LF."""
    if params.get("format", "").strip().lower() != "flowed":
        return text
    joined_without_blank = params.get("delsp", "").strip().lower() == "yes"
    lines: list[str] = []
    open_depth = -1  # quote depth of a line that goes on, -1 if the last one ended
    for raw in text.split("\n"):
        depth = 0
        while raw[depth : depth + 1] == ">":
            depth += 1
        content = raw[depth:]
        content = content[1:] if content.startswith(" ") else content
        signature = content == "-- "
        flows = content.endswith(" ") and not signature
        if flows and joined_without_blank:
            content = content[:-1]
        if open_depth == depth and not signature and lines:
            lines[-1] += content
        else:
            lines.append(f"{'>' * depth} {content}" if depth else content)
        open_depth = depth if flows else -1
    return "\n".join(lines)
