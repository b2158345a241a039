"""Which of the eight shipped anchors an option of the question stands for."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from triage.decide.embedded.phrases import Phrases, parse, phrase_key
from triage.decide.embedded.weights import ANCHORS
from triage.domain.category import NONE_ID
from triage.domain.decision import Option


def anchor_named(name: str) -> str | None:
    """The anchor a category id or an operator's `like` names, in any of several languages; None if it names none."""
    if name in ANCHORS:
        return name
    return next(iter(synonyms().families.get(phrase_key(name), ())), None)


def anchor_of(option: Option) -> str | None:
    """The anchor an option stands for: by what `like` says, else by its id; None leaves it to its own wording."""
    if option.id == NONE_ID:
        return None
    if option.like is not None:
        return anchor_named(option.like)
    return option.id if option.id in ANCHORS else anchor_named(option.id)


@lru_cache(maxsize=1)
def synonyms() -> Phrases:
    """The names that come with the program; each stands for one anchor."""
    return parse(resources.files(__package__).joinpath("anchors.txt").read_text(encoding="utf-8"))
