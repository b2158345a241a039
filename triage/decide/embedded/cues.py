"""Phrases that tell kinds of mail apart in several languages: what a handful of training mails could not teach.

`cues.txt` holds the families. Each family becomes one feature, so a Spanish phrase that no training mail holds still
counts as much as its English sister.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from triage.decide.embedded.phrases import Phrases, parse


@lru_cache(maxsize=1)
def lexicon() -> Phrases:
    """The families that come with the program."""
    return parse(resources.files(__package__).joinpath("cues.txt").read_text(encoding="utf-8"))
