"""What the demo says around its tables: the sentences, and the numbers in them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triage.cli import theme
from triage.cli.render import money
from triage.decide.cost import PriceEntry
from triage.demo.address import Address
from triage.demo.cost import Estimate
from triage.demo.mails import Sample
from triage.demo.score import Score
from triage.domain.record import Run, RunState


def intro(samples: Sequence[Sample]) -> RenderableType:
    unsorted = sum(sample.unsorted for sample in samples)
    there = len(samples) - unsorted
    return Text.assemble(
        ("A shared inbox to try triage on. ", theme.HEAD),
        f"{unsorted} unsorted mails of two days at a small coffee roaster's, English and Spanish, some broken, some "
        f"hostile; {there} older ones that a person has dealt with. They lie on an IMAP server inside this process; "
        "nothing leaves this machine.",
    )


def run_line(number: int, run: Run) -> Text:
    """One finished run in a line: `Run 1  20 mails: 9 archived, 8 kept, 3 unsure  0.4 s`."""
    if run.state is not RunState.DONE:
        why = theme.harmless(run.error or run.reason or "")
        return Text(f"Run {number}  {run.state.value}: {why}", style=theme.BAD)
    counts = run.counts
    took = f"{(run.finished_at - run.started_at).total_seconds():.1f} s" if run.finished_at and run.started_at else ""
    parts = [f"{counts[key]} {words}" for key, words in _COUNTS if counts.get(key)]
    return Text(f"Run {number}  {counts.get('selected', 0):>2} mails: {', '.join(parts) or 'nothing to do'}  {took}")


_COUNTS = (("archived", "archived"), ("below_floor", "unsure"), ("inherited", "as their thread"))


def honesty(score: Score) -> RenderableType:
    """How good this was, and what would be better."""
    wrong = f"{score.wrongly_archived} of them wrongly" if score.wrongly_archived else "none of them wrongly"
    return Group(
        Text.assemble(
            ("How good was that? ", theme.HEAD),
            f"Of {score.decided} mails {score.labelled} got a category, {score.right} of these the one a person would "
            f"have chosen; {score.unsure} were left as unsure; {score.archived} were archived, {wrong}. We wrote this "
            "sample: expect less on your own mail.",
        ),
        Text(),
        Text.assemble(
            ("The embedded classifier is modest: ", theme.HEAD),
            "it needs no key and no network, files little, and is rarely wrong about what it files. Two things make it "
            "better: about 25 corrections (change a label in your mail client, triage learns from it), or a decision "
            "model, a few lines in triage.yaml:",
        ),
        Text(_CHAIN, style=theme.LABEL),
    )


_CHAIN = """
  decision:
    chain:
      - {provider: systemone, base_url: URL, model: NAME, api_key: {env: NAME_OF_KEY}}
      - provider: embedded"""


def model_cost(estimate: Estimate, model: str, price: PriceEntry) -> Text:
    """What a decision model would have cost for the same mail."""
    return Text(
        f"A decision model would have read about {estimate.tokens:,} tokens here: {money(estimate.usd)} with {model} "
        f"at {price.price.input_usd:g} USD per million (price of {price.seen.isoformat()}), that is "
        f"{money(estimate.usd_per_thousand)} per 1,000 mails."
    )


def next_steps() -> RenderableType:
    return Text.assemble(
        ("Your own mailbox: ", theme.HEAD),
        "triage init, then triage check, triage preview, triage run. To look around in this one: triage demo --keep.",
    )


def invitation(address: Address, directory: Path, dashboard: str | None) -> RenderableType:
    """How to look at the mailbox while `--keep` holds it open."""
    table = Table.grid(padding=(0, 2))
    rows = [
        ("IMAP server", f"{address.host}, port {address.port}, no TLS (connection security: none)"),
        ("User", address.user),
        ("Password", address.password),
        ("Dashboard", dashboard or ""),
        ("Records", f"TRIAGE_CONFIG={directory} triage runs"),
    ]
    for name, value in rows:
        if value:
            table.add_row(Text(f"  {name}", style=theme.CALM), Text(value))
    return Group(
        Text("The mailbox stays open until you press Ctrl-C. Connect any mail client:", style=theme.HEAD),
        table,
        Text("Labels are keywords (Triage/receipt ...); Thunderbird shows them once tags of these names exist."),
    )
