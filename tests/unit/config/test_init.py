"""`triage init`: what it writes loads, and it overwrites nothing unasked."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from triage.cli.init import init_command, local_timezone, render
from triage.config.load import load
from triage.domain.category import ANCHORS, HIJACK_ID, Action
from triage.domain.errors import ConfigError

TODAY = date(2026, 11, 30)
REPOSITORY = Path(__file__).parents[3]


def run(directory: Path, preset: str = "en", force: bool = False, **more: str) -> list[str]:
    said: list[str] = []
    assert (
        init_command(directory, preset, force, today=TODAY, environ={"TZ": "Europe/Madrid"}, echo=said.append, **more)
        == 0
    )
    return said


@pytest.mark.parametrize("preset", ["en", "es"])
def test_what_it_writes_loads_without_a_warning(preset: str, tmp_path: Path) -> None:
    run(tmp_path / "new" / "config", preset, host="mail.example.org", username="inbox@example.org", name="help-desk")
    settings = load(tmp_path / "new" / "config", {})
    (account,) = settings.accounts
    assert settings.warnings == ()
    assert (account.host, account.username, account.name) == ("mail.example.org", "inbox@example.org", "help-desk")
    assert account.since == date(2026, 11, 23)
    assert account.schedule.timezone.key == "Europe/Madrid"
    assert account.schedule.enabled is False


@pytest.mark.parametrize("preset", ["en", "es"])
def test_a_preset_has_the_eight_categories_with_criteria_and_examples(preset: str, tmp_path: Path) -> None:
    run(tmp_path, preset)
    categories = load(tmp_path, {}).accounts[0].categories
    assert categories.ids == ANCHORS
    for category in categories.categories:
        assert 60 <= len(category.criteria) <= 300
        assert len(category.examples) == 3
    kept = {c.id for c in categories.categories if c.action is Action.KEEP}
    assert kept == {"action-required", "conversation", HIJACK_ID}


def test_the_presets_differ_in_language_only(tmp_path: Path) -> None:
    """So that records and the embedded classifier's anchors mean the same whatever the language."""
    en, es = (render(p, host="h.example", username="u", name="n", today=TODAY, timezone="UTC") for p in ("en", "es"))
    assert en["triage.yaml"] == es["triage.yaml"]
    run(tmp_path / "en", "en")
    run(tmp_path / "es", "es")
    sets = [load(tmp_path / p, {}).accounts[0].categories for p in ("en", "es")]
    english, spanish = ([(c.id, c.action, c.floor) for c in s.categories] for s in sets)
    assert english == spanish
    assert not {c.criteria for c in sets[0].categories} & {c.criteria for c in sets[1].categories}


def test_the_repository_s_example_is_what_init_writes() -> None:
    written = render(
        "en", host="imap.example.com", username="team@example.com", name="team", today=TODAY, timezone="Europe/Madrid"
    )
    for name, text in written.items():
        assert (REPOSITORY / "config" / name).read_text("utf-8") == text


def test_it_overwrites_nothing_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "categories.yaml").write_text("mine", "utf-8")
    with pytest.raises(ConfigError, match=r"categories\.yaml would be overwritten; use --force"):
        run(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["categories.yaml"]
    assert (tmp_path / "categories.yaml").read_text("utf-8") == "mine"
    run(tmp_path, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["categories.yaml", "triage.yaml"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"host": "imaps://mail.example.org"}, "accounts[0].host must be the bare name of the server"),
        ({"host": "a\n    batch: 3"}, "accounts[0].host must be a single line"),
        ({"username": ""}, "accounts[0].username is empty"),
        ({"name": "the team"}, "accounts[0].name holds characters that cannot be used here"),
        ({"preset": "de"}, "--preset de: is not known; there are en, es"),
    ],
)
def test_what_cannot_be_used_is_told_and_nothing_written(more: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        run(tmp_path, **more)
    assert said in str(caught.value)
    assert "/triage-init-" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["true", "123", "a: b", "x # y", "{env: X}", "'", '"', "ñandú@example.com", "*a"])
def test_any_login_name_is_written_so_that_it_reads_back(word: str, tmp_path: Path) -> None:
    run(tmp_path, username=word)
    assert load(tmp_path, {}).accounts[0].username == word


def test_it_says_the_three_next_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(Path("config"), name="help-desk")
    assert said[:2] == ["wrote config/triage.yaml", "wrote config/categories.yaml"]
    steps = said[3:]
    assert [step[:2] for step in steps] == ["1.", "2.", "3."]
    assert "config/triage.yaml, and the password into $TRIAGE_HELP_DESK_PASSWORD" in steps[0]
    assert steps[1].startswith("2. triage check ")
    assert run(tmp_path / "other")[4].startswith(f"2. TRIAGE_CONFIG={tmp_path / 'other'} triage check ")


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="cannot be written"):
        run(tmp_path / "file" / "config")


def test_the_machine_s_time_zone_is_found(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    plain = tmp_path / "plain"
    plain.write_bytes(b"TZif2")
    assert local_timezone({"TZ": ":America/Argentina/Ushuaia"}, link) == "America/Argentina/Ushuaia"
    assert local_timezone({}, link) == "Asia/Tokyo"
    assert local_timezone({}, plain) == "UTC"
    assert local_timezone({"TZ": "CET-1CEST"}, link) == "UTC"
