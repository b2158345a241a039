"""Broken categories.yaml, one a case, and what the operator is told."""

from __future__ import annotations

from broken import CATEGORIES, Broken


def _many(count: int) -> str:
    return "categories:\n" + "".join(f"  - {{id: c{i}, name: C, criteria: x}}\n" for i in range(count))


CASES_OF_CATEGORIES = [
    Broken(
        "one category",
        CATEGORIES[CATEGORIES.index("categories:") :],
        _many(1),
        ("3: categories must be 2 to 255, not 1",),
        "categories.yaml",
    ),
    Broken(
        "256 categories",
        CATEGORIES[CATEGORIES.index("categories:") :],
        _many(256),
        ("3: categories must be 2 to 255, not 256",),
        "categories.yaml",
    ),
    Broken(
        "id twice",
        "id: action-required",
        "id: receipt",
        ("8: categories[1].id is the id of categories[0] (line 4) already; every id stands for one label",),
        "categories.yaml",
    ),
    Broken(
        "id twice but for case",
        "id: receipt",
        "id: Action-Required",
        (
            "8: categories[1].id is the id of categories[0] (line 4) already; every id stands for one label",
            "8: categories[1].id must be 1 to 32 of a-z, 0-9 and - (the name may hold anything)",
        ),
        "categories.yaml",
    ),
    Broken(
        "id too long",
        "id: receipt",
        "id: " + "r" * 33,
        ("8: categories[1].id must be 1 to 32 of a-z, 0-9 and - (the name may hold anything)",),
        "categories.yaml",
    ),
    Broken(
        "id of the fallback",
        "id: receipt",
        "id: unclassified",
        ("8: categories[1].id is the fallback's id already; every id stands for one label",),
        "categories.yaml",
    ),
    Broken(
        "reserved id",
        "id: receipt",
        "id: none-of-these",
        (
            "8: categories[1].id cannot be none-of-these: that is the option offered beside the categories; "
            "choose another word",
        ),
        "categories.yaml",
    ),
    Broken(
        "empty criteria",
        "criteria: Confirms a payment.",
        'criteria: "  "',
        ("10: categories[1].criteria is empty; say in a sentence or two what belongs in this category",),
        "categories.yaml",
    ),
    Broken(
        "no criteria",
        "    criteria: Confirms a payment.\n",
        "",
        ("8: categories[1].criteria is missing: a sentence or two that say what belongs in it",),
        "categories.yaml",
    ),
    Broken(
        "kept category archived",
        "action: keep",
        "action: archive",
        ("7: categories[0].action must be keep: action-required mail never leaves the inbox",),
        "categories.yaml",
    ),
    Broken(
        "fallback archived",
        "name: Unclassified}",
        "action: archive}",
        ("2: fallback.action must be keep: what the model was unsure about stays in the inbox",),
        "categories.yaml",
    ),
    Broken(
        "unknown action",
        "action: archive",
        "action: delete",
        ("11: categories[1].action must be one of keep, archive, not delete",),
        "categories.yaml",
    ),
    Broken(
        "category floor out of range",
        "action: archive",
        "floor: -0.1",
        ("11: categories[1].floor must be at least 0, not the number -0.1",),
        "categories.yaml",
    ),
    Broken(
        "unknown anchor",
        "action: archive",
        "like: recipt",
        (
            "11: categories[1].like must be one of action-required, conversation, notification, receipt, newsletter, "
            "promotion, spam, hijack-attempt; did you mean receipt?",
        ),
        "categories.yaml",
    ),
    Broken(
        "parent with a slash",
        "parent: Triage",
        "parent: My/Mail",
        ("1: parent holds characters that cannot be used here (letters, digits, . _ - can)",),
        "categories.yaml",
    ),
    Broken(
        "labels too long",
        "parent: Triage",
        "parent: " + "P" * 38,
        (
            "2: fallback makes a label longer than 50 characters with parent " + "P" * 38,
            "4: categories[0].id makes a label longer than 50 characters with parent " + "P" * 38,
        ),
        "categories.yaml",
    ),
    Broken(
        "not a list",
        "categories:\n",
        "categories: 3\nx:\n",
        (
            "3: categories must be a list (lines that begin with -), not the number 3",
            "4: x is not a key here; known are parent, fallback, categories",
        ),
        "categories.yaml",
    ),
    Broken(
        "truth for an example",
        "action: archive",
        "examples: [true]",
        ("11: categories[1].examples[0] must be text, not true; put it in quotes",),
        "categories.yaml",
    ),
    Broken(
        "example with a colon",
        "action: archive",
        "examples:\n      - Re: hello",
        ("12: categories[1].examples[0] must be text; put it in quotes, as it holds a colon",),
        "categories.yaml",
    ),
]
