"""`triage eval DATA`, or `triage eval --from-mailbox`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from triage.cli import open as parts
from triage.cli.deciding import Bench, bench
from triage.cli.evaluate import evaluate_mails, evaluation_json, render_evaluation
from triage.cli.theme import make_console
from triage.domain.category import Action
from triage.domain.errors import ConfigError
from triage.domain.mail import MailSource, PreparedMail
from triage.pipeline.confirmed import Hand, Window, confirmed_mails
from triage.pipeline.plan import EVER
from triage.prepare import prepare, read_message
from triage.report.labelled_mail import LabelledMail, read_labelled

_HANDS = {
    Hand.PUT: "put on by a person",
    Hand.CHANGED: "changed by a person",
    Hand.LEFT: "left standing by a reader (these favour the model that decided)",
}


def evaluate_command(
    data: str | None,
    config: str | None,
    account: str | None,
    *,
    from_mailbox: bool,
    predictions: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Measure the configured chain on labelled mail of a file, or on labels that people confirmed in the mailbox.

    Raises ConfigError, MailboxError, LedgerError.
    """
    if (data is None) == (not from_mailbox):
        raise ConfigError("triage eval: name a file of labelled mail, or ask for --from-mailbox; one of the two")
    table = bench(config, account)
    archiving = frozenset(i for i in table.categories.ids if table.categories.action(i) is Action.ARCHIVE)
    seen: Counter[str] = Counter()
    categories: Counter[str] = Counter()

    def read(raw: bytes | MailSource) -> PreparedMail:
        source = raw if isinstance(raw, MailSource) else read_message(raw)
        return prepare(source, max_chars=table.decision.body_chars)

    def counted(mails: Iterator[LabelledMail]) -> Iterator[LabelledMail]:
        for mail in mails:
            seen[mail.source] += 1
            categories[mail.category] += 1
            yield mail

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with closing(table), Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
        task = progress.add_task("mails", total=None)
        found = evaluate_mails(
            counted(_from_mailbox(table) if data is None else read_labelled(Path(data))),
            read,
            table.decide,
            floor=table.decision.floor,
            archiving=archiving,
            predictions=predictions,
            plot=plot,
            on_mail=lambda n: progress.update(task, completed=n),
            name="the mailbox" if data is None else Path(data).name,
        )
    strange = {name: count for name, count in categories.items() if name not in table.categories.ids}
    if strange:
        names = ", ".join(f"{name} ({count})" for name, count in sorted(strange.items()))
        parts.say(f"These categories are not configured, so their mail counts as wrong and as mail to keep: {names}")
    if as_json:
        parts.print_json(evaluation_json(found) | {"labels": dict(seen)} if from_mailbox else evaluation_json(found))
        return 0
    if from_mailbox:
        told = ", ".join(f"{seen[hand]} {words}" for hand, words in _HANDS.items() if seen[hand])
        make_console().print(f"Labels that people confirmed: {told}.")
    make_console().print(render_evaluation(found))
    return 0


def _from_mailbox(table: Bench) -> Iterator[LabelledMail]:
    """The confirmed labels of the account's mailbox; two connections, closed at the end."""
    app, account = table.app, table.account
    if account is None:
        raise ConfigError("triage eval --from-mailbox: there is no configuration to find the mailbox with; triage init")
    with closing(app.mailbox(account)) as mailbox, closing(app.shelf(account)) as shelf:
        window = Window(app.ledger.remembered_since(account.name) or EVER)
        for one in confirmed_mails(mailbox, shelf, app.ledger, account.name, account.categories, window):
            yield LabelledMail(str(one.head.ref), one.label_id, one.mail, source=one.hand)
