"""config/categories.yaml: what pydantic checks, and the domain's CategorySet out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from triage.config.model import Keys, Share
from triage.config.problems import nearest
from triage.config.values import FromEnv, Text, problem
from triage.config.yamltree import Loc, Tree
from triage.domain.category import ANCHORS, HIJACK_ID, NONE_ID, Action, Category, CategorySet

MIN_CATEGORIES = 2
MAX_CATEGORIES = 255
MAX_KEYWORD_CHARS = 50
ALWAYS_KEPT = frozenset({"action-required", "conversation", HIJACK_ID})
"""Categories whose mail never leaves the inbox, whatever the file says."""


def _id(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]{1,32}", value):
        raise problem("must be 1 to 32 of a-z, 0-9 and - (the name may hold anything)")
    if value == NONE_ID:
        raise problem(f"cannot be {NONE_ID}: that is the option offered beside the categories; choose another word")
    return value


def _anchor(value: str) -> str:
    if value not in ANCHORS:
        meant = nearest(value, ANCHORS)
        raise problem(f"must be one of {', '.join(ANCHORS)}" + (f"; did you mean {meant}?" if meant else ""))
    return value


Id = Annotated[Text, AfterValidator(_id)]
Sentence = Annotated[str, Field(max_length=2_000)]


class FallbackKeys(Keys):
    id: Id = "unclassified"
    name: Annotated[Text, Field(max_length=100)] = "Unclassified"
    action: Annotated[str, FromEnv] = "keep"

    @field_validator("action")
    @classmethod
    def _stays(cls, value: str) -> str:
        if value != "keep":
            raise problem("must be keep: what the model was unsure about stays in the inbox")
        return value


class CategoryKeys(Keys):
    id: Id = Field(description="a short word of a-z, 0-9 and -; it becomes the label")
    name: Annotated[Text, Field(max_length=100)] = Field(description="the name people see")
    criteria: Sentence = Field(description="a sentence or two that say what belongs in it")
    examples: Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=50)] = Field(default=[])
    action: Annotated[Literal["keep", "archive"], FromEnv] = "keep"
    floor: Share | None = None
    like: Annotated[Text, AfterValidator(_anchor)] | None = None

    @field_validator("criteria")
    @classmethod
    def _says_something(cls, value: str) -> str:
        text = " ".join(value.split())
        if not text:
            raise problem("is empty; say in a sentence or two what belongs in this category")
        return text

    @field_validator("examples")
    @classmethod
    def _examples_say_something(cls, value: list[str]) -> list[str]:
        texts = [" ".join(each.split()) for each in value]
        if not all(texts):
            raise problem("has an empty example; write a line of such a mail, or leave it out")
        return texts

    @field_validator("action")
    @classmethod
    def _some_always_stay(cls, value: str, info: ValidationInfo) -> str:
        category_id = info.data.get("id")
        if value != "keep" and category_id in ALWAYS_KEPT:
            raise problem(f"must be keep: {category_id} mail never leaves the inbox")
        return value


class CategoriesKeys(Keys):
    parent: Annotated[Text, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "Triage"
    fallback: FallbackKeys = FallbackKeys()
    categories: list[CategoryKeys] = Field(description=f"{MIN_CATEGORIES} to {MAX_CATEGORIES} of them")

    @field_validator("categories")
    @classmethod
    def _as_many_as_can_be_asked(cls, value: list[CategoryKeys]) -> list[CategoryKeys]:
        if not MIN_CATEGORIES <= len(value) <= MAX_CATEGORIES:
            raise problem(f"must be {MIN_CATEGORIES} to {MAX_CATEGORIES}, not {len(value)}")
        return value


def clashes(tree: Tree) -> Iterator[tuple[Loc, str]]:
    """What only shows between entries: an id used twice, one that is the fallback's, a label that is too long."""
    data: Any = tree.data if isinstance(tree.data, dict) else {}
    entries = data.get("categories")
    fallback = data.get("fallback")
    fallback_id = fallback.get("id", "unclassified") if isinstance(fallback, dict) else "unclassified"
    parent = data.get("parent", "Triage")
    seen = {str(fallback_id).casefold(): "the fallback's id"}
    room = MAX_KEYWORD_CHARS - len(str(parent)) - 1
    if len(str(fallback_id)) > room:
        yield ("fallback",), f"makes a label longer than {MAX_KEYWORD_CHARS} characters with parent {parent}"
    for i, entry in enumerate(entries if isinstance(entries, list) else ()):
        category_id = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(category_id, str):
            continue
        loc = ("categories", i, "id")
        key = category_id.strip().casefold()
        if key in seen:
            yield loc, f"is {seen[key]} already; every id stands for one label"
        else:
            seen[key] = f"the id of categories[{i}] (line {tree.line(loc)})"
        if 0 < len(category_id) <= 32 and len(category_id) > room:
            yield loc, f"makes a label longer than {MAX_KEYWORD_CHARS} characters with parent {parent}"


def category_set(keys: CategoriesKeys) -> CategorySet:
    """The domain's value of a checked file."""
    return CategorySet(
        parent=keys.parent,
        fallback_id=keys.fallback.id,
        fallback_name=keys.fallback.name,
        categories=tuple(
            Category(c.id, c.name, c.criteria, tuple(c.examples), Action(c.action), c.floor, c.like)
            for c in keys.categories
        ),
    )
