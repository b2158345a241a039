"""The walk of docs/tuning.md on the demo's mail: runs, a person's corrections, report, suggestion, replays.

    python -m bench.tuning_walk

It prints what the commands say and writes it to docs/tuning-walk.txt, which a test holds the document to. Everything a
person does in it is done as a mail client does it: over IMAP, behind the program's back.
"""

from __future__ import annotations

import imaplib
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from triage import logs
from triage.bootstrap import App
from triage.cli.run import make_run
from triage.clock import SystemClock
from triage.config.load import load
from triage.demo.config import ACCOUNT, write_config
from triage.demo.mails import Sample, sample_mails
from triage.demo.server import DemoServer
from triage.domain.mail import MessageRef

WALK = Path(__file__).resolve().parents[1] / "docs" / "tuning-walk.txt"
OUTREACH = """\
  - id: outreach
    name: Sales outreach
    criteria: A stranger offers us a service in a personal mail and asks for a short call.
    examples:
      - "Quick question about your website, do you have 15 minutes this week?"
      - "I help companies like yours cut costs."
    action: archive

"""
DELIVERY = """\
  - id: delivery
    name: Delivery
    criteria: A parcel or an order is on its way, out for delivery or delivered.
    examples:
      - "Your parcel is out for delivery today between 14 and 16 h."
      - "Your order 20-11834 has been delivered."
      - "Su pedido llega hoy."
    action: archive

"""


def main() -> None:
    now = SystemClock().now()
    samples = sample_mails(now)
    with tempfile.TemporaryDirectory() as scratch, DemoServer(samples, port=0) as server:
        directory = Path(scratch)
        write_config(directory, server.address, now.date() - timedelta(days=3))
        logs.configure("error")
        sort(directory, samples, server)
        categories = (directory / "categories.yaml").read_text("utf-8")
        behind = "  - id: conversation\n"
        edits = {
            name: categories.replace(behind, text + behind, 1)
            for name, text in (("delivery.yaml", DELIVERY), ("outreach.yaml", OUTREACH))
        }
        said = [say(directory, "report"), say(directory, "suggest")]
        for name, text in edits.items():
            (directory / name).write_text(text, "utf-8")
            said.append(say(directory, "replay", str(directory / name)))
        said.append(say(directory, "audit"))
    WALK.write_text("\n".join(said), "utf-8")


def sort(directory: Path, samples: list[Sample], server: DemoServer) -> None:
    """Sort the inbox, then correct as a person would: every wrong label in the inbox, and mail moved back."""
    app = App(load(directory, {}))
    account = app.account(ACCOUNT)
    mailbox = app.mailbox(account)
    mailbox.open()
    uids = mailbox.search(account.inbox, ["ALL"])
    refs = sorted(head.ref for head in mailbox.fetch_flags(account.inbox, uids).values())
    mailbox.close()
    truth = dict(zip(refs, (s.category for s in samples if s.mailbox == account.inbox), strict=True))
    while (run := make_run(app, ACCOUNT, {})) is not None and run.counts.get("selected"):
        pass
    wrong = [d for run in app.ledger.runs() for d in app.ledger.decisions(run.id) if d.label_id != truth[d.ref]]
    app.close()
    client = imaplib.IMAP4(server.address.host, server.address.port)
    client.login(server.address.user, server.address.password)
    for decision in wrong:
        relabel(client, decision.archived_ref or decision.ref, decision.label_id, truth[decision.ref], account.inbox)
    client.logout()


def relabel(client: imaplib.IMAP4, place: MessageRef, before: str, after: str, inbox: str) -> None:
    client.select(place.mailbox)
    client.uid("STORE", str(place.uid), "-FLAGS", f"(Triage/{before})")
    client.uid("STORE", str(place.uid), "+FLAGS", f"(Triage/{after})")
    if place.mailbox != inbox:
        client.uid("MOVE", str(place.uid), inbox)


def say(directory: Path, *arguments: str) -> str:
    """Run one command, print what it says, and return it."""
    shown = " ".join(Path(a).name for a in arguments)
    done = subprocess.run(
        [sys.executable, "-m", "triage", *arguments, "--config", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [f"$ triage {shown}", *(line.rstrip() for line in f"{done.stdout}{done.stderr}".splitlines())]
    told = "\n".join(lines) + "\n"
    print(told, flush=True)
    return told


if __name__ == "__main__":
    main()
