"""docs/configuration.md tells every key, and the defaults it tells are the ones that hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from triage.config.categories import CategoriesKeys
from triage.config.load import load
from triage.config.model import TriageKeys

REPOSITORY = Path(__file__).parents[3]
GUIDE = (REPOSITORY / "docs" / "configuration.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `([a-z_.\[\]]+)` \| (.+?) \| ", GUIDE, re.MULTILINE))
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
ACCOUNTS = """\
accounts:
  - {name: team, host: imap.example.com, username: u, password: {env: PW}, since: 2026-11-23}
"""
CATEGORIES = """\
categories:
  - {id: a, name: A, criteria: x}
  - {id: b, name: B, criteria: y}
"""


def models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in models_in(each)]


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every leaf key, and every block that is a list or may be something else than a block."""
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        many = "list[" in str(field.annotation)
        if not inner or many or len(inner) != len(get_args(field.annotation) or inner):
            yield prefix + name
        for each in inner:
            yield from keys(each, f"{prefix}{name}{'[]' if many else ''}.")


def test_every_key_is_documented_and_no_other() -> None:
    assert set(ROWS) == set(keys(TriageKeys)) | set(keys(CategoriesKeys))


def with_key(document: Any, path: str, value: object) -> None:
    """Set a key in every entry of the lists on its way."""
    step, _, rest = path.partition(".")
    if not rest:
        document[step] = value
    elif step.endswith("[]"):
        for entry in document[step[:-2]]:
            with_key(entry, rest, value)
    else:
        with_key(document.setdefault(step, {}), rest, value)


DEFAULTS = [(key, cell.strip("`")) for key, cell in ROWS.items() if cell != "–"]


@pytest.mark.parametrize(("key", "default"), DEFAULTS, ids=[key for key, _ in DEFAULTS])
def test_writing_a_documented_default_changes_nothing(key: str, default: str, tmp_path: Path) -> None:
    server = "decision: {chain: [{provider: systemone, base_url: 'https://h', model: m}]}\n" if "chain[]" in key else ""
    files = {"triage.yaml": server + ACCOUNTS, "categories.yaml": CATEGORIES}
    before = write(tmp_path, files)
    name = "categories.yaml" if key.split(".")[0].strip("[]") in CategoriesKeys.model_fields else "triage.yaml"
    document = yaml.safe_load(files[name])
    # quotes keep "*/5 * * * *" a text; everything else is read as the guide's readers would have it read
    with_key(document, key, default if default.startswith("*") else yaml.safe_load(default))
    files[name] = yaml.safe_dump(document)
    assert write(tmp_path, files) == before


def write(directory: Path, files: dict[str, str]) -> object:
    for name, text in files.items():
        (directory / name).write_text(text, "utf-8")
    return load(directory, {})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split(":")[0])
def test_the_examples_load(example: str, tmp_path: Path) -> None:
    text = example if "accounts:" in example else example + ACCOUNTS
    for name in ("categories.yaml", "invoices.yaml"):
        (tmp_path / name).write_text(CATEGORIES, "utf-8")
    (tmp_path / "triage.yaml").write_text(text, "utf-8")
    assert load(tmp_path, {}).warnings == ()


def test_the_container_s_configuration_loads(tmp_path: Path) -> None:
    for source, name in (("docker/triage.yaml", "triage.yaml"), ("config/categories.yaml", "categories.yaml")):
        (tmp_path / name).write_text((REPOSITORY / source).read_text("utf-8"), "utf-8")
    settings = load(tmp_path, {})
    assert settings.warnings == ()
    assert settings.ledger == "sqlite:////data/triage.db"
    secrets = (REPOSITORY / "docker" / "secrets.env.example").read_text("utf-8")
    wanted = set(re.findall(r"\{env: (\w+)\}", (tmp_path / "triage.yaml").read_text("utf-8")))
    assert wanted == set(re.findall(r"^(\w+)=$", secrets, re.MULTILINE))
