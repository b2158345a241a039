"""The examples of docs/models.md are ones that work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from decide_world import HandClock

from triage.decide import answers, openai_chat, openai_decisions, systemone
from triage.decide.cost import find_price
from triage.decide.providers import remote_provider

DOC = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOC, re.DOTALL)
ENTRIES: list[dict[str, Any]] = [entry for b in BLOCKS for entry in yaml.safe_load(b)["decision"]["chain"]]


def test_every_kind_of_provider_is_shown() -> None:
    assert {e["provider"] for e in ENTRIES} == {"systemone", "openai-decisions", "openai-chat", "embedded"}


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e["provider"] != "embedded"], ids=lambda e: e["base_url"])
def test_an_example_makes_a_provider(entry: dict[str, Any]) -> None:
    key = "sk-example" if "api_key" in entry else None
    provider = remote_provider(
        entry["provider"], base_url=entry["base_url"], model=entry["model"], clock=HandClock(), api_key=key
    )
    assert provider.private or find_price(provider.name, provider.model)
    provider.close()


def test_every_reason_of_an_unusable_answer_is_explained() -> None:
    sources = [Path(str(m.__file__)).read_text() for m in (answers, openai_chat, openai_decisions, systemone)]
    codes = {code for text in sources for code in re.findall(r'Unusable\(\s*"([a-z_]+)"', text)}
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in DOC} == set()
