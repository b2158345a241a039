"""The documents tell the truth: every command is described, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import write_commands
from triage.clock import SystemClock
from triage.decide.embedded.provider import EmbeddedProvider

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def test_every_command_and_option_is_described() -> None:
    """Renew with `python -m scripts.write_commands`."""
    assert write_commands.PATH.read_text(encoding="utf-8") == write_commands.text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_the_walk_of_the_tuning_document_was_walked_with_the_classifier_that_ships() -> None:
    """Renew with `python -m bench.tuning_walk`, then read the document again."""
    text = (ROOT / "docs" / "tuning.md").read_text(encoding="utf-8")
    section = text[text.index("## A walk") : text.index("## What to change")]
    walked = (ROOT / "docs" / "tuning-walk.txt").read_text(encoding="utf-8")
    model = EmbeddedProvider(clock=SystemClock()).model
    assert model in section
    assert model in walked
    edited = (ROOT / "bench" / "tuning_walk.py").read_text(encoding="utf-8")
    known = {_spaced(line).removeprefix("+") for line in f"{walked}\n{edited}".splitlines()}
    quoted = [_spaced(line).removeprefix("+") for line in section.splitlines() if line.startswith("    ")]
    assert [line for line in quoted if not any(line in each for each in known)] == []
    shares = {f"{share}%" for share in re.findall(r"(\d+\.\d) %", section)}
    assert shares, "the document names shares"
    assert [share for share in sorted(shares) if share not in walked] == []


def _spaced(line: str) -> str:
    return " ".join(line.split())


def test_every_requirement_of_the_mail_tool_is_in_the_table_once_and_its_tests_exist() -> None:
    rows = re.findall(r"^\| (\d.*?) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "mail-tool.md").read_text("utf-8"), re.M)
    numbers = [int(n) for first, _, _ in rows for n in re.findall(r"(?:^|, )(\d+)\b", first)]
    assert sorted(numbers) == list(range(1, 120))
    named = {name for _, _, shown in rows for name in re.findall(r"`(\w+)`", shown)}
    written = {name for path in (ROOT / "tests").rglob("test_*.py")
               for name in re.findall(r"^def test_(\w+)\(", path.read_text("utf-8"), re.M)}  # fmt: skip
    assert len(named) > 70
    assert named <= written
