"""The models' part of `triage check`: can each be set up, does it take so many options, is its price known, and (on
request) does it answer."""

from __future__ import annotations

from collections.abc import Iterator

from triage.bootstrap import App
from triage.config.settings import AccountSettings, DecisionSettings, ProviderSettings
from triage.decide.link import Link
from triage.decide.question import build_question, fit_question
from triage.decide.remote import RemoteProvider
from triage.domain.category import NONE_ID
from triage.domain.decision import Answer, Failure, Question
from triage.domain.errors import TriageError
from triage.report.finding import Finding

MODEST = "no key, no network; modest: about 25 corrections make it better, a decision model far better"


def check_models(app: App, accounts: tuple[AccountSettings, ...], *, ask: bool) -> Iterator[Finding]:
    """Findings on each provider of the chain. `ask` puts one question about a tiny mail of ours to each."""
    decision = app.settings.decision
    largest = max(accounts, key=lambda a: len(a.categories.ids))
    question = build_question(largest.categories, decision.offer_none)
    for position, settings in enumerate(decision.chain):
        name = f"model {settings.model or settings.provider}"
        try:
            link = app.link(position, settings)
        except TriageError as error:
            yield Finding("fail", name, str(error))
            continue
        try:
            if not isinstance(link.provider, RemoteProvider):
                yield Finding("ok", name, f"{settings.provider}: {MODEST}")
                continue
            answer = None
            if ask:
                answer = link.provider.probe(question, app.clock.monotonic() + decision.deadline_s)
            yield _answered(name, settings, answer)
            yield from _room(name, link.provider.option_limit, question, largest)
            yield from _price(name, link, answer, decision)
        finally:
            link.provider.close()


def _answered(name: str, settings: ProviderSettings, answer: Answer | Failure | None) -> Finding:
    if answer is None:
        return Finding("ok", name, f"{settings.base_url}: not asked (triage check --ask puts one tiny question)")
    if isinstance(answer, Failure):
        return Finding("fail", name, answer.message)
    told = f"{answer.model} answered in {answer.latency_ms} ms"
    return Finding("ok", name, f"{told}, {answer.input_tokens:,} tokens of which {answer.question_tokens:,} ask")


def _room(name: str, limit: int | None, question: Question, largest: AccountSettings) -> Iterator[Finding]:
    """Does the largest question fit what the server takes, as far as it is known (configured, or told when asked)?"""
    fitted = fit_question(question, limit)
    if fitted is question:
        return
    categories = len(question.ids) - (NONE_ID in question.ids)
    found = f"takes at most {limit} options, {largest.categories_file} has {categories} categories"
    if fitted is None:
        yield Finding("fail", name, found, "No mail will be asked about. Use fewer categories, or another server.")
    else:
        yield Finding("warn", name, f"{found}: none-of-these is not offered", "One category less makes room for it.")


def _price(name: str, link: Link, answer: Answer | Failure | None, decision: DecisionSettings) -> Iterator[Finding]:
    model = answer.model if isinstance(answer, Answer) else link.provider.model
    if link.price_of(model) is not None:
        return
    capped = decision.spend_cap_usd_per_day is not None
    found = f"the price of {model} is not known, so its cost is recorded as 0"
    yield Finding(
        "warn",
        name,
        f"{found} and spend_cap_usd_per_day cannot stop it" if capped else found,
        "Set price_usd_per_million_input_tokens (0 if it is free).",
    )
