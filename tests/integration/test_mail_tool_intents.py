"""Plain words read by a decision model: a real System One server is asked, and only a sure answer counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from services.dovecot import Dovecot
from services.jevcompat import mock
from support.tool_site import Site
from triage.agent.intents import FLOOR
from triage.agent.model_intent import QUESTION
from triage.agent.result import Result
from triage.agent.tool import MailTool
from triage.bootstrap import App
from triage.config.settings import DecisionSettings, ProviderSettings
from triage.domain.category import NONE_ID

WORDS = [f"algo con el alta número {n}" for n in range(24)]
"""No rule understands them."""
SECRET = "a-key"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def site(server: Dovecot, tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return Site(tmp_path, server, request.node.name, intent_text={"classify": "decision_model"})


def app_asking(site: Site, url: str) -> App:
    app = site.app()
    chain = (ProviderSettings("systemone", base_url=url, model="mock", retries=0),)
    app.settings = replace(app.settings, decision=DecisionSettings(chain=chain))
    return app


def said_by(url: str, text: str) -> tuple[str, float]:
    """What the server answers to the same question when it is asked by hand, and how sure that is."""
    question = {
        "type": "choice",
        "instructions": QUESTION.instructions,
        "criteria": {option.id: option.criteria for option in QUESTION.options},
    }
    state = {"from": "", "to": "", "subject": "", "body": text}
    body = json.dumps({"model": "mock", "state": state, "questions": {"category": question}}).encode()
    with urlopen(Request(f"{url}/v1/systemone", body, {"Content-Type": "application/json"})) as answer:
        told = json.load(answer)["answers"]["category"]["probabilities"]
    choice = max(told, key=told.__getitem__)
    return choice, (told[choice] - 1 / len(told)) / (1 - 1 / len(told))


def ask(tool: MailTool, text: str) -> Result:
    return tool.ask({"run_id": "signup-1842", "mailbox_scope": "signup-1842", "max_reads": 3, "text": text})


def test_a_sure_answer_is_the_intent_and_an_unsure_one_is_for_a_person(site: Site) -> None:
    with mock() as url:
        app = app_asking(site, url)
        tool = app.tool()
        tool.open({"run_id": "signup-1842", "purpose": "verify_signup"})
        seen = set()
        for text in WORDS:
            choice, sure = said_by(url, text)
            intent = choice if choice != NONE_ID and sure >= FLOOR else None
            seen.add(intent)
            result = ask(tool, text)
            receipt = app.ledger.receipt(str(result.receipt_id))
            assert receipt is not None
            assert receipt.intent == intent, text
            if intent is None:
                assert (result.state, result.reason) == ("needs_review", "unknown_intent")
        assert None in seen
        assert len(seen) > 2, "the server was sure of several intents"
        tool.close()
        app.close()


def test_a_server_that_does_not_answer_is_no_intent(site: Site) -> None:
    """Wrong key, or nobody there: the wish goes to a person and nothing is looked at."""
    with mock("--key", SECRET) as url:
        app = app_asking(site, url)
        tool = app.tool()
        tool.open({"run_id": "signup-1842", "purpose": "verify_signup"})
        refused = ask(tool, WORDS[0])
    gone = ask(tool, WORDS[1])
    for result in (refused, gone):
        assert (result.state, result.reason) == ("needs_review", "unknown_intent")
    run = app.ledger.tool_run("signup-1842")
    assert run is not None
    assert run.reads_used == 0
    tool.close()
    app.close()
