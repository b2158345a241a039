"""What one triage run costs on the wire, operation by operation: round trips, octets, wall time.

    python bench/imap_ops.py [--sizes 1000,10000] [--storage sdbox,maildir] [--rtt 0,50] [--repeat 3] [--json FILE]

Starts a Dovecot and the metering proxy of the lab ($TRIAGE_SHARED/lab, default ../shared/lab next to the repository),
fills it with the lab's corpus, runs what a run of 20 does through the Mailbox adapter, and undoes it. The lab's own
floor (`floor.py --mode imapclient`) runs in the same session for comparison. An idle run finds nothing to do.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAB = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared")) / "lab"
sys.path[:0] = [str(ROOT), str(LAB)]

from triage.clock import SystemClock  # noqa: E402
from triage.mailbox.imap import ImapMailbox  # noqa: E402
from triage.mailbox.settings import ConnectionSettings  # noqa: E402
from triage.threads.headers import read_thread_headers  # noqa: E402
from triage.threads.lookups import lookups  # noqa: E402

TEXT_CAP = 65_536
BATCH = 20


class Metered:
    """The adapter behind the proxy; each step leaves a row with what it cost."""

    def __init__(self, meter: Any, user: str) -> None:
        self.meter = meter
        self.rows: list[dict[str, Any]] = []
        settings = ConnectionSettings(
            host="127.0.0.1", port=meter.port, username=user, secret=lambda: "pass", security="plain"
        )
        self.mailbox = ImapMailbox(settings, clock=SystemClock())

    def step(self, name: str, do: Callable[[], Any]) -> Any:
        before, started = self.meter.stats(), time.perf_counter()
        result = do()
        wall = time.perf_counter() - started
        time.sleep(0.03)  # the proxy counts a little later than it passes on
        after = self.meter.stats()
        self.rows.append(
            {
                "step": name,
                "round_trips": after["round_trips"] - before["round_trips"],
                "down": after["bytes_down"] - before["bytes_down"],
                "up": after["bytes_up"] - before["bytes_up"],
                "ms": wall * 1000,
            }
        )
        return result


def one_run(run: Metered, labels: list[str], noise: set[str], since: Any) -> dict[str, Any]:
    """Select, heads, ancestors, texts, labels, archive, logout: what a run of 20 does, the classifier left out."""
    mailbox = run.mailbox
    run.step("open", mailbox.open)
    uids = run.step("select", lambda: mailbox.select_unlabelled(labels, since, BATCH))
    stored, moved = 0, 0
    if uids:
        heads = run.step("heads", lambda: mailbox.fetch_heads(uids))
        wanted = lookups({uid: read_thread_headers(head.headers) for uid, head in heads.items()})
        found = run.step("locate", lambda: mailbox.locate(wanted, {}))
        texts = run.step("texts", lambda: mailbox.fetch_texts({u: [first_text(h)] for u, h in heads.items()}))
        plan = {u: labels[zlib.crc32(next(iter(texts[u].values())).data[:200]) % len(labels)] for u in uids}
        result = run.step("labels", lambda: mailbox.store_labels(plan, heads, labels))
        stored = len(result.stored)
        leaving = [u for u in uids if plan[u] in noise]
        moved = len(run.step("archive", lambda: mailbox.archive(leaving)).moved) if leaving else 0
        assert stored == len(uids), result
        print(f"    ancestors looked for {len(wanted)}, found {len(found)}", file=sys.stderr)
    run.step("close", mailbox.close)
    total = {key: sum(row[key] for row in run.rows) for key in ("round_trips", "down", "up", "ms")}
    distinct = len(set(plan.values())) if uids else 0
    return {"messages": len(uids), "stored": stored, "moved": moved, "labels": distinct, **total, "steps": run.rows}


def first_text(head: Any) -> tuple[str, int]:
    part = next((p for p in head.structure.walk() if p.type == "text"), None)
    return (part.path if part else "1", TEXT_CAP)


def measure(lab: Any, user: str, rtt: float, repeat: int, since: Any) -> dict[str, Any]:
    import floor
    from imap_meter import Meter
    from mailgen import CATEGORIES

    at = SimpleNamespace(port=lab.port, user=user, prefix="", nomove=False, text=TEXT_CAP, window=5000)
    runs, floors, idles = [], [], []
    for _ in range(repeat):
        before = floor.archive_next(at)
        with Meter("127.0.0.1", lab.port, rtt_ms=rtt) as meter:
            runs.append(one_run(Metered(meter, user), CATEGORIES, floor.NOISE, since))
        with Meter("127.0.0.1", lab.port, rtt_ms=rtt) as meter:
            idles.append(one_run(Metered(meter, user), CATEGORIES, floor.NOISE, since))
        assert idles[-1]["messages"] == 0
        floor.undo(at, before)
        before = floor.archive_next(at)
        with Meter("127.0.0.1", lab.port, rtt_ms=rtt) as meter, contextlib.redirect_stdout(io.StringIO()):
            started = time.perf_counter()
            floor.client(at, meter.port)
            floors.append({"ms": (time.perf_counter() - started) * 1000, "round_trips": meter.stats()["round_trips"]})
        floor.undo(at, before)
    best = sorted(runs, key=lambda r: r["ms"])[len(runs) // 2]
    wall, base = (statistics.median(x["ms"] for x in xs) for xs in (runs, floors))
    return {
        "run": best,
        "idle": idles[-1],
        "floor": floors[-1],
        "wall_ms": wall,
        "floor_ms": base,
        "ratio": wall / base,
    }


def show(title: str, result: dict[str, Any]) -> None:
    run, idle, base = result["run"], result["idle"], result["floor"]
    print(f"{title}: {run['messages']} messages, {run['labels']} labels, {run['moved']} archived")
    for row in (*run["steps"], {"step": "run", **run, "ms": result["wall_ms"]}, {"step": "idle", **idle}):
        cost = f"{row['round_trips']:3d} RT {row['down']:8d} B down {row['up']:7d} B up {row['ms']:8.1f} ms"
        print(f"  {row['step']:8s} {cost}")
    print(f"  floor    {base['round_trips']:3d} RT {result['floor_ms']:42.1f} ms; run/floor {result['ratio']:.2f}\n")


def main() -> None:
    from datetime import date

    from dovecot_lab import DovecotLab

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--storage", default="sdbox,maildir")
    parser.add_argument("--rtt", default="0,50")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--since", type=date.fromisoformat, help="select from this day on (default: no day)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = {}
    for storage in args.storage.split(","):
        with DovecotLab(fmt=storage) as lab:
            for size in map(int, args.sizes.split(",")):
                user = f"u{size}"
                for name, count, seed in (("Archive", 500, 2), ("INBOX", size, 1)):
                    seeding = lab.seed if storage == "maildir" else lab.seed_append
                    seeding(user, count, mailbox=name, **({"seed": seed} if storage == "maildir" else {}))
                for rtt in map(float, args.rtt.split(",")):
                    title = f"Dovecot {storage}, {size} messages, RTT {rtt:g} ms"
                    results[title] = measure(lab, user, rtt, args.repeat, args.since)
                    show(title, results[title])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
