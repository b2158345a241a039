"""One broken file a case: what the operator is told, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken import CATEGORIES, SETTINGS, Broken
from broken_categories import CASES_OF_CATEGORIES
from broken_settings import CASES_OF_SETTINGS

from triage.config.load import load
from triage.domain.errors import ConfigError


@pytest.mark.parametrize("case", [*CASES_OF_SETTINGS, *CASES_OF_CATEGORIES], ids=lambda case: case.name)
def test_a_broken_file_is_told_with_line_and_remedy(case: Broken, tmp_path: Path) -> None:
    """Every problem, and only those, each once, in the order of the file; never a secret."""
    texts = {"triage.yaml": SETTINGS, "categories.yaml": CATEGORIES}
    assert case.old in texts[case.file]
    texts[case.file] = texts[case.file].replace(case.old, case.new) if case.old else case.new
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})

    told = [p.removeprefix(f"{tmp_path / case.file}:").replace(str(tmp_path), "{dir}") for p in caught.value.problems]
    assert told == list(case.told)
    assert "hunter2" not in str(caught.value)


def test_the_file_that_the_cases_break_is_sound(tmp_path: Path) -> None:
    (tmp_path / "triage.yaml").write_text(SETTINGS, "utf-8")
    (tmp_path / "categories.yaml").write_text(CATEGORIES, "utf-8")
    assert load(tmp_path, {}).warnings == ()


def test_problems_of_both_files_come_together(tmp_path: Path) -> None:
    (tmp_path / "triage.yaml").write_text(SETTINGS.replace("port: 993", "portt: 993"), "utf-8")
    (tmp_path / "categories.yaml").write_text(CATEGORIES.replace("parent", "parrent"), "utf-8")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})
    assert caught.value.problems == (
        f"{tmp_path}/triage.yaml:14: accounts[0].portt is not a key here; did you mean port?",
        f"{tmp_path}/categories.yaml:1: parrent is not a key here; did you mean parent?",
    )


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"ledger: a\nlog: \xff\n", "2: is not UTF-8 text; save the file as UTF-8"),
        (b"# " + b"x" * 8_000_001, "1: is larger than 8,000,000 bytes; this cannot be the right file"),
        ("ledger: x".encode("utf-16"), "1: is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_bytes_that_are_no_text_are_told(raw: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "triage.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {})
    assert caught.value.problems == (f"{path}:{told}",)


def test_an_alias_bomb_is_refused_quickly(tmp_path: Path) -> None:
    """Ten aliases of ten aliases of ten ...: a few hundred bytes that would become 10^9 values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    (tmp_path / "triage.yaml").write_text("\n".join(lines), "utf-8")
    with pytest.raises(ConfigError, match="holds more than 300,000 values"):
        load(tmp_path, {})
