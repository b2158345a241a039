"""Which of the eight shipped anchors an option of the question stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from triage.decide.embedded.phrases import parse
from triage.decide.embedded.text import fold
from triage.decide.embedded.weights import ANCHORS
from triage.domain.category import NONE_ID
from triage.domain.decision import Option


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", fold(text)).strip("-")


def anchor_named(name: str) -> str | None:
    """The anchor a category id or an operator's `like` names, in any of several languages; None if it names none."""
    key = _key(name)
    return key if key in ANCHORS else _synonyms().get(key)


def anchor_of(option: Option) -> str | None:
    """The anchor an option stands for: by what `like` says, else by its id; None leaves it to its own wording."""
    if option.id == NONE_ID:
        return None
    if option.like is not None:
        return anchor_named(option.like)
    return option.id if option.id in ANCHORS else anchor_named(option.id)


@lru_cache(maxsize=1)
def _synonyms() -> Mapping[str, str]:
    families = parse(resources.files(__package__).joinpath("anchors.txt").read_text(encoding="utf-8")).families
    return {name: anchors[0] for name, anchors in families.items()}
