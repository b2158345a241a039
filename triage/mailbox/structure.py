"""BODYSTRUCTURE as a tree of parts (RFC 9051, 7.5.2). What cannot be read becomes one opaque part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from urllib.parse import unquote_to_bytes

from triage.domain.mail import Part

MAX_DEPTH = 30
MAX_PARTS = 1000

OPAQUE = Part(path="", type="application", subtype="octet-stream", size=-1)
"""Stands for a structure nobody can read: the message has to be fetched as a whole."""


def part_tree(structure: object) -> Part:
    """The parts of a message, from BODYSTRUCTURE as nested values. Never raises.

    An attached message (message/rfc822) has its own structure as its only child. A type that the server could not
    read (empty strings) is text (RFC 2045, 5.2).
    """
    try:
        return _part(structure, "", _Budget())
    except (ValueError, TypeError, LookupError, AttributeError):
        return OPAQUE


class _Budget:
    def __init__(self) -> None:
        self.parts = 0

    def spend(self, path: str) -> None:
        self.parts += 1
        if self.parts > MAX_PARTS or path.count(".") > MAX_DEPTH:
            raise ValueError("too many parts")


def _part(node: object, path: str, budget: _Budget) -> Part:
    budget.spend(path)
    if not isinstance(node, tuple) or not node:
        raise ValueError("not a body structure")
    if isinstance(node[0], tuple):
        parts = list(takewhile(lambda item: isinstance(item, tuple), node))
        told = node[len(parts) :]
        below = f"{path}." if path else ""
        children = tuple(_part(child, f"{below}{n}", budget) for n, child in enumerate(parts, 1))
        params, disposition, filename = _extension(told[1:3], None)
        return Part(
            path=path,
            type="multipart",
            subtype=_word(told[0], "mixed"),
            params=params,
            disposition=disposition,
            filename=filename,
            children=children,
        )
    kind, subtype = _word(node[0], ""), _word(node[1], "")
    if kind == "multipart":  # Courier's way of saying that a multipart has no parts
        return Part(path=path, type=kind, subtype=subtype)
    if not kind or not subtype:
        kind, subtype = "text", "html" if kind == "html" else "plain"
    params = _params(node[2])
    rest = node[7:]
    attached: tuple[Part, ...] = ()
    if kind == "text":
        rest = node[8:]
    elif (kind, subtype) == ("message", "rfc822") and len(node) > 7 and isinstance(node[7], tuple):
        rest = node[10:]
        attached = _attached(node[8], path or "1", budget)
    _, disposition, filename = _extension((None, rest[1] if len(rest) > 1 else None), params)
    return Part(
        path=path or "1",
        type=kind,
        subtype=subtype,
        params=params,
        encoding=_word(node[5], "7bit"),
        size=node[6] if isinstance(node[6], int) else 0,
        disposition=disposition,
        filename=filename,
        children=attached,
    )


def _attached(node: object, path: str, budget: _Budget) -> tuple[Part, ...]:
    """The structure inside an attached message; none where it cannot be read."""
    multipart = isinstance(node, tuple) and bool(node) and isinstance(node[0], tuple)
    try:
        return (_part(node, path if multipart else f"{path}.1", budget),)
    except (ValueError, TypeError, LookupError, AttributeError):
        return ()


def _extension(fields: Sequence[object], params: dict[str, str] | None) -> tuple[dict[str, str], str, str]:
    """Parameters, disposition, file name. `fields` are (parameters, disposition) as the server gave them."""
    own = _params(fields[0]) if params is None and fields else params or {}
    told = fields[1] if len(fields) > 1 else None
    disposition, details = "", dict[str, str]()
    match told:
        case (bytes() as word, *pairs):
            disposition, details = _word(word, ""), _params(pairs[0] if pairs else None)
        case bytes():
            disposition = _word(told, "")
    return own, disposition, _parameter(details, "filename") or _parameter(own, "name")


def _params(pairs: object) -> dict[str, str]:
    if not isinstance(pairs, tuple):
        return {}
    found: dict[str, str] = {}
    for name, value in zip(pairs[::2], pairs[1::2], strict=False):
        found.setdefault(_word(name, ""), _text(value))
    return found


def _parameter(params: dict[str, str], name: str) -> str:
    """A parameter, also where it comes as `name*` in RFC 2231's encoding."""
    if name in params:
        return params[name]
    charset, _, rest = params.get(f"{name}*", "").partition("'")
    data = unquote_to_bytes(rest.partition("'")[2])
    try:
        return data.decode(charset or "utf-8", "replace")
    except LookupError:
        return data.decode("latin-1")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.decode("latin-1")
    return "" if value is None else str(value)


def _word(value: object, missing: str) -> str:
    return _text(value).strip().lower() or missing
