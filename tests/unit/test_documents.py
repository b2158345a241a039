"""The documents tell the truth: every command is described, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import write_commands

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])


def test_every_command_and_option_is_described() -> None:
    """Renew with `python -m scripts.write_commands`."""
    assert write_commands.PATH.read_text(encoding="utf-8") == write_commands.text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [t for t in targets if not (page.parent / t).exists()] == []
