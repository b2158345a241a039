"""Takes the pictures of docs/screenshots: the demo's mail, sorted, a few labels corrected as a person would, and agents
that used the mail tool.

    python scripts/dashboard_screenshots.py

Needs Chromium and pymap (`pip install 'triage[demo]'`).
"""

from __future__ import annotations

import io
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from services.chromium import Chromium  # noqa: E402
from support.premises import wait_until  # noqa: E402
from support.tool_past import use_tool  # noqa: E402
from triage.bootstrap import App  # noqa: E402
from triage.cli import demo_run  # noqa: E402
from triage.clock import SystemClock  # noqa: E402
from triage.config.load import load  # noqa: E402
from triage.demo.config import ACCOUNT, write_config  # noqa: E402
from triage.demo.mails import sample_mails  # noqa: E402
from triage.demo.server import DemoServer  # noqa: E402
from triage.domain.correction import Correction, CorrectionKind  # noqa: E402
from triage.domain.record import DecisionRecord  # noqa: E402

OUT = ROOT / "docs" / "screenshots"
DESK, PHONE = (1280, 900), (390, 1200)


def main() -> None:
    now = SystemClock().now()
    samples = sample_mails(now)
    with tempfile.TemporaryDirectory() as scratch, DemoServer(samples, port=0) as server:
        directory = Path(scratch)
        write_config(directory, server.address, now.date() - timedelta(days=3), dashboard=True)
        demo_run.sort_and_tell(directory, samples, Console(file=io.StringIO()))
        run_id, key = review(directory)
        with demo_run.dashboard(directory) as address:
            take(address.rstrip("/"), run_id, key)


def review(directory: Path) -> tuple[str, str]:
    """Read some of the sorted mail and correct a few labels; a run and a message worth showing."""
    app = App(load(directory, {}))
    runs = app.ledger.runs(ACCOUNT)
    decisions = [d for run in runs for d in app.ledger.decisions(run.id)]
    answered = [d for d in decisions if d.probabilities and d.label_id != "unclassified"]
    found = [correction(d, app) for d in answered[::2]]
    app.ledger.record_corrections(found)
    app.ledger.note_look(ACCOUNT, app.clock.now())
    use_tool(app.settings.ledger, app.clock.now(), ACCOUNT, reuse_reason="the form was sent once more")
    shown = max(decisions, key=lambda d: (d.label_id == "unclassified", d.confidence))
    app.close()
    return runs[-1].id, shown.message_key


def correction(decision: DecisionRecord, app: App) -> Correction:
    """A person lets a sure decision stand and gives an unsure one to its second category."""
    second = sorted(decision.probabilities, key=decision.probabilities.__getitem__)[-2]
    wrong = decision.confidence < 0.7
    kind, to = (CorrectionKind.RELABELLED, second) if wrong else (CorrectionKind.CONFIRMED, decision.label_id)
    keys = (decision.message_key, decision.message_id_key)
    return Correction(
        f"shot-{decision.id[:12]}", ACCOUNT, decision.id, *keys, kind, decision.label_id, to, app.clock.now()
    )


def take(address: str, run_id: str, key: str) -> None:
    pictures = [
        ("overview", "/", DESK, False),
        ("run", f"/runs/{run_id}", DESK, False),
        ("run-phone", f"/runs/{run_id}", PHONE, True),
        ("message", f"/messages/{key}", DESK, False),
        ("categories", "/categories", DESK, False),
        ("category", f"/categories/{ACCOUNT}/newsletter", DESK, True),
        ("corrections", "/corrections", DESK, False),
        ("tool", "/tool", DESK, False),
    ]
    OUT.mkdir(exist_ok=True)
    wait_until(lambda: b"It is known who answered" in urlopen(address).read())
    with Chromium() as browser:
        for name, path, (width, height), dark in pictures:
            with browser.tab(width, height, dark=dark) as tab:
                tab.open(address + path)
                whole = name in {"overview", "category"}
                tab.screenshot(OUT / f"{name}.png", whole=whole)


if __name__ == "__main__":
    main()
