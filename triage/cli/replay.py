"""`triage replay CATEGORIES.yaml`: recent mail against edited categories, without touching the mailbox."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triage.bootstrap import EMBEDDED, App
from triage.cli import open as parts
from triage.cli import theme
from triage.cli.run import stop_on_signals
from triage.cli.theme import make_console
from triage.config.load import load_categories
from triage.config.settings import AccountSettings
from triage.decide.cost import FREE, Price, estimate_tokens, find_price
from triage.decide.question import build_question, describe
from triage.domain.category import CategorySet
from triage.domain.decision import Outcome, Question
from triage.domain.errors import ConfigError
from triage.domain.mail import PreparedMail
from triage.domain.record import DecisionRecord
from triage.pipeline.replay import Estimate, Replayed, candidates, decide_again, estimate, fetch, places
from triage.report.text import money

PERIOD = timedelta(days=90)
LIMIT_USD = 0.10


def replay_command(
    config: str | None,
    account: str | None,
    file: Path,
    *,
    limit: int,
    yes: bool,
    spend_limit: float = LIMIT_USD,
    as_json: bool,
) -> int:
    """Compare; 0 done, 1 if nobody could be asked, 2 if it would cost more than the limit and nobody said yes."""
    with parts.opened(config) as app, stop_on_signals(app.stop):
        settings = parts.one_account(app, account)
        categories = load_categories(file)
        records = candidates(app.ledger, settings.name, app.clock.now() - PERIOD, limit)
        if not records:
            raise ConfigError(f"account {settings.name}: no decisions to replay yet; `triage run` makes some.")
        question = build_question(categories, app.settings.decision.offer_none)
        before = estimate(records, question_tokens(question), _usd(app))
        _agree(before, yes=yes, spend_limit=spend_limit)
        replayed, missing = replay(app, settings, categories, question, records)
    if as_json:
        parts.print_json(replay_json(replayed, missing, before))
    else:
        show(make_console(), replayed, missing)
    return 0 if any(r.verdict is not None for r in replayed) else 1


def replay(
    app: App, settings: AccountSettings, categories: CategorySet, question: Question, records: Sequence[DecisionRecord]
) -> tuple[tuple[Replayed, ...], int]:
    """Fetch the messages where they lie and decide them again; how many are not there any more. Raises MailboxError."""
    mails: list[tuple[DecisionRecord, PreparedMail]] = []
    where = places(records, app.ledger.corrections_of([r.id for r in records]))
    for box in dict.fromkeys(place.mailbox for place in where):
        mailbox = app.mailbox(replace(settings, inbox=box))  # reading is the same wherever a message lies
        try:
            mails += fetch(mailbox, where, app.settings.decision.body_chars)
        finally:
            mailbox.close()
    decision = app.settings.decision
    deadline_s = decision.deadline_s * math.ceil(20 / decision.concurrency)
    policy = app.policy(replace(settings, categories=categories))
    replayed = tuple(
        decide_again(app.chain, question, policy, mails, clock=app.clock, batch_deadline_s=deadline_s, stop=app.stop)
    )
    return replayed, len(records) - len(mails)


def question_tokens(question: Question) -> int:
    return estimate_tokens(question.instructions + "".join(o.id + describe(o) for o in question.options))


def _usd(app: App) -> Any:
    """What so many input tokens cost at the first provider of the chain; None if its price is not known."""
    first = app.settings.decision.chain[0]
    price: Price | None
    if first.provider == EMBEDDED:
        price = FREE
    elif first.price_usd_per_million_input_tokens is not None:
        price = Price(first.price_usd_per_million_input_tokens)
    else:
        price = find_price(first.provider, first.model)
    return price.usd if price is not None else None


def _agree(before: Estimate, *, yes: bool, spend_limit: float) -> None:
    """Ask before more than the limit is spent. Raises ConfigError if nobody agrees."""
    if yes or (before.usd is not None and before.usd <= spend_limit):
        return
    cost = "an unknown amount (the model's price is not known)" if before.usd is None else f"about {money(before.usd)}"
    told = f"Replaying {before.messages} messages reads about {before.input_tokens:,} tokens and costs {cost}."
    if sys.stdin.isatty():
        parts.say(told)
        if input("Go on? [y/N] ").strip().casefold() in ("y", "yes"):
            return
        raise ConfigError("Nothing was asked and nothing was spent.")
    raise ConfigError(f"{told} Say --yes to agree, or a smaller --limit.")


def replay_json(replayed: Sequence[Replayed], missing: int, before: Estimate) -> dict[str, Any]:
    answered = [r for r in replayed if r.verdict is not None]
    return {
        "messages": len(replayed),
        "not_found": missing,
        "not_answered": len(replayed) - len(answered),
        "estimated_usd": before.usd,
        "cost_usd": _spent(replayed),
        "below_floor_before": _below_before(answered),
        "below_floor_after": _below_after(answered),
        "newly_archived": [_flip(r) for r in answered if r.newly_archived],
        "newly_kept": [_flip(r) for r in answered if r.newly_kept],
        "flips": [_flip(r) for r in answered if r.flips],
    }


def _flip(r: Replayed) -> dict[str, Any]:
    assert r.verdict is not None
    return {
        "message_key": r.record.message_key,
        "sender_domain": r.record.sender_domain,
        "from": r.record.label_id,
        "to": r.verdict.label_id,
        "archived_before": r.record.archive,
        "archived_after": r.verdict.action.value == "archive",
        "confidence_before": r.record.confidence,
        "confidence_after": r.verdict.confidence,
        "why": r.verdict.why,
    }


def _spent(replayed: Sequence[Replayed]) -> float:
    return sum(r.ruling.cost_usd for r in replayed)


def _below_before(answered: Sequence[Replayed]) -> float:
    return sum(r.record.outcome is Outcome.BELOW_FLOOR for r in answered) / len(answered) if answered else 0.0


def _below_after(answered: Sequence[Replayed]) -> float:
    below = sum(r.verdict is not None and r.verdict.outcome is Outcome.BELOW_FLOOR for r in answered)
    return below / len(answered) if answered else 0.0


def show(console: Console, replayed: Sequence[Replayed], missing: int) -> None:
    answered = [r for r in replayed if r.verdict is not None]
    gone = f", {missing} not found any more" if missing else ""
    silent = f", {len(replayed) - len(answered)} not answered" if len(answered) < len(replayed) else ""
    console.print(
        f"{len(answered)} messages decided again{gone}{silent}. Nothing was written. "
        f"Under the floor: {_below_before(answered):.1%} before, {_below_after(answered):.1%} after. "
        f"Cost: {money(_spent(replayed))}."
    )
    archived = [r for r in answered if r.newly_archived]
    kept = [r for r in answered if r.newly_kept]
    rest = [r for r in answered if r.flips and r not in archived and r not in kept]
    if not archived:
        console.print("\nNothing would newly be archived.")
    _section(console, f"Would newly be archived ({len(archived)}): read these first", archived)
    _section(console, f"Would newly stay ({len(kept)})", kept)
    _section(console, f"Would get another label ({len(rest)})", rest)


def _section(console: Console, title: str, rows: Sequence[Replayed]) -> None:
    """What there is, under its heading; nothing of nothing."""
    if not rows:
        return
    console.print(Text(f"\n{title}", style=theme.HEAD))
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(no_wrap=True)
    for r in rows:
        assert r.verdict is not None
        table.add_row(
            r.record.message_key[:8],
            Text(theme.harmless(r.record.sender_domain)),
            Text(f"{r.record.label_id} -> {r.verdict.label_id}", style=theme.LABEL),
            f"{theme.truncated(r.record.confidence)} -> {theme.truncated(r.verdict.confidence)}",
        )
    console.print(Padding(table, (0, 0, 0, 2)))
