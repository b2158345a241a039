"""What `triage check` says of the decision models: room for the categories, a price, and whether it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.http_stub import HttpStub, Seen, always, reply
from services.dovecot import Dovecot
from support.command import change, configure, triage
from support.odd_model import answer_to


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


@pytest.fixture
def config(server: Dovecot, tmp_path: Path) -> Path:
    return configure(tmp_path / "config", server, f"u{tmp_path.name}".replace("_", ""))


def findings(config: Path, server: Dovecot, chain: str, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    change(config, "- provider: embedded ", f"- {chain}  # ")
    change(config, "archive_floor: 0.7", "# ")
    code, out, err = triage(config, "check", "--json", *arguments, password=server.password)
    assert out, err
    return code, [f for f in json.loads(out)["findings"] if f["what"].startswith("model")]


def test_a_model_of_no_known_price_is_warned_about(config: Path, server: Dovecot) -> None:
    chain = "{provider: systemone, base_url: 'https://model.example', model: odd-9}"
    code, found = findings(config, server, chain)
    assert code == 0
    (warning,) = [f for f in found if f["state"] == "warn"]
    assert "price of odd-9 is not known" in warning["found"]
    assert "spend_cap_usd_per_day cannot stop it" in warning["found"]
    assert "price_usd_per_million_input_tokens" in warning["remedy"]


def test_a_model_of_a_known_price_is_not(config: Path, server: Dovecot) -> None:
    chain = "{provider: systemone, base_url: 'https://model.example', model: jev-1.13.0}"
    assert {f["state"] for f in findings(config, server, chain)[1]} == {"ok"}


@pytest.mark.parametrize(("limit", "state", "code"), [(8, "warn", 0), (4, "fail", 1)])
def test_more_options_than_a_server_takes_are_told(
    config: Path, server: Dovecot, limit: int, state: str, code: int
) -> None:
    chain = f"{{provider: systemone, base_url: 'http://127.0.0.1:9', model: m, max_options: {limit}}}"
    found_code, found = findings(config, server, chain)
    (told,) = [f for f in found if f["state"] != "ok"]
    assert (found_code, told["state"]) == (code, state)
    assert f"at most {limit} options" in told["found"]


def test_on_request_one_question_is_asked_about_a_mail_of_ours(config: Path, server: Dovecot) -> None:
    with HttpStub(lambda seen: reply(answer_to(seen))) as stub:
        code, found = findings(config, server, f"{{provider: systemone, base_url: '{stub.url}', model: m}}", "--ask")
    assert (code, len(stub.seen)) == (0, 1)
    assert stub.seen[0].json["state"]["subject"] == "Lunch"
    assert "adversary-1 answered" in found[0]["found"]


def test_a_server_that_names_its_limit_when_asked_is_believed(config: Path, server: Dovecot) -> None:
    def script(seen: Seen) -> object:
        if len(seen.json["questions"]["category"]["criteria"]) > 5:
            return reply({"error": "a choice takes at most 5 options"}, 400)
        return reply(answer_to(seen))

    with HttpStub(script) as stub:  # type: ignore[arg-type]
        code, found = findings(config, server, f"{{provider: systemone, base_url: '{stub.url}', model: m}}", "--ask")
    assert code == 1
    assert all("at most 5 options" in f["found"] or "limit is 5" in f["found"] for f in found)


def test_a_server_that_refuses_the_key_is_told(config: Path, server: Dovecot) -> None:
    with HttpStub(always(reply("", 401))) as stub:
        code, found = findings(config, server, f"{{provider: systemone, base_url: '{stub.url}', model: m}}", "--ask")
    assert (code, found[0]["state"]) == (1, "fail")
    assert "api_key" in found[0]["found"]
