"""Where a provider may live, and what a key may look like."""

from __future__ import annotations

import pytest
from decide_world import HandClock

from triage.decide.endpoint import clean_key, endpoint_root
from triage.decide.providers import remote_provider
from triage.domain.errors import ConfigError


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("https://api.typesafe.ai", "https://api.typesafe.ai"),
        ("https://api.typesafe.ai/", "https://api.typesafe.ai"),
        (" https://api.openai.com/v1 ", "https://api.openai.com"),
        ("https://openrouter.ai/api", "https://openrouter.ai/api"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api"),
        ("http://localhost:11434", "http://localhost:11434"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://10.0.0.7:8000/v1", "http://10.0.0.7:8000"),
        ("http://litellm:4000", "http://litellm:4000"),
    ],
)
def test_a_base_url_is_taken_with_and_without_what_the_path_begins_with(base_url: str, root: str) -> None:
    assert endpoint_root(base_url, has_key=True) == root


@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "api.typesafe.ai",
        "ftp://api.typesafe.ai",
        "https://",
        "https://user:hunter2@api.typesafe.ai",
        "https://api.typesafe.ai?key=abc",
        "https://api.typesafe.ai#x",
        "https://api.typesafe.ai:port",
        "http://[::1",
        "http://api.typesafe.ai",
    ],
)
def test_a_base_url_that_cannot_be_meant_is_refused_without_repeating_it(base_url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint_root(base_url, has_key=True)
    assert "hunter2" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_a_server_without_a_key_may_be_reached_unencrypted() -> None:
    assert endpoint_root("http://models.example.com", has_key=False) == "http://models.example.com"


def test_a_key_loses_the_line_break_of_its_file() -> None:
    assert clean_key("sk-abc\n") == "sk-abc"


@pytest.mark.parametrize("key", ["", "  ", "sk abc", "sk\nabc", "clé", "sk-abc\x00"])
def test_what_no_header_could_carry_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        clean_key(key)
    assert not key.strip() or key not in str(caught.value)


def test_a_host_name_that_cannot_exist_is_refused_at_once() -> None:
    with pytest.raises(ConfigError):
        remote_provider("systemone", base_url="https://a" + "\u2028" * 3 + "b.example", model="m", clock=HandClock())


def test_no_repr_shows_the_key() -> None:
    provider = remote_provider(
        "systemone", base_url="https://api.typesafe.ai", model="jev-latest", clock=HandClock(), api_key="sk-secret"
    )
    assert "sk-secret" not in repr(provider) + repr(vars(provider))
    provider.close()
