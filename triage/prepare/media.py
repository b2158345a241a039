"""Which conditions of a style sheet hold for every reader: on a desk and on a telephone, on the screen."""

from __future__ import annotations

import re

from triage.prepare.length import pixels

NARROWEST_PX = 320.0
WIDEST_PX = 1600.0

_MEDIA = re.compile(r"@media\b(.*)", re.IGNORECASE | re.DOTALL)
_ALWAYS = re.compile(r"@(?:layer|supports(?!\s*\(?\s*not\b|\s*selector))\b", re.IGNORECASE)
_FEATURE = re.compile(r"\(([^()]*(?:\([^()]*\))?[^()]*)\)")
_RANGE = re.compile(r"(?:device-)?(?:width|height)\s*(>=?|<=?)\s*(.+)")
_SEEN = frozenset(("", "all", "screen"))


def holds_everywhere(prelude: str) -> bool:
    """Does this at-rule hold whatever the reader reads with? One query of a list is enough."""
    found = _MEDIA.match(prelude)
    if found is None:
        return _ALWAYS.match(prelude) is not None
    return everywhere(found.group(1))


def everywhere(queries: str) -> bool:
    """The same for a list of media queries (Media Queries 4, 3), as a `media` attribute has them."""
    return any(_query(query) for query in queries.lower().split(",")[:20])


def _query(query: str) -> bool:
    features = _FEATURE.findall(query)
    rest = _FEATURE.sub(" ", query)
    words = [word for word in rest.split() if word != "and"]
    negated = words[:1] == ["not"]
    kinds = [word for word in words if word not in ("not", "only")]
    if len(kinds) > 1 or "or" in kinds:
        return False
    if negated:
        return bool(kinds) and kinds[0] not in _SEEN and not features
    return (not kinds or kinds[0] in _SEEN) and all(map(_feature, features))


def _feature(feature: str) -> bool:
    name, _, value = (piece.strip() for piece in feature.partition(":"))
    size = pixels(value)
    if name in ("min-width", "min-height", "min-device-width", "min-device-height"):
        return size is not None and size <= NARROWEST_PX
    if name in ("max-width", "max-height", "max-device-width", "max-device-height"):
        return size is not None and size >= 2 * WIDEST_PX
    if found := _RANGE.fullmatch(feature.strip()):
        size = pixels(found.group(2))
        if size is None:
            return False
        return size <= NARROWEST_PX if found.group(1)[0] == ">" else size >= 2 * WIDEST_PX
    return name in ("color", "min-color") and value in ("", "1")
