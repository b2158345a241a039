"""One run of 20 over mailboxes of growing size: round trips, bytes, wall time against the hand-written floor, memory.

    python bench/run.py [--sizes 1000,10000,100000] [--repeat 5]

The first line of a size is a warm process, as a daemon is (bytes and memory: one process that makes one run); "cold" is
the first run of a process that has just opened its ledger.
Needs Dovecot and the lab in $TRIAGE_SHARED/lab (default ../shared/lab): its corpus, its metering proxy, its floor. The
decision model answers at once, so what is measured is triage, the ledger and IMAP.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared")) / "lab"
sys.path[:0] = [str(LAB), str(ROOT)]

from triage import logs  # noqa: E402
from triage.bootstrap import App  # noqa: E402
from triage.config.secret import Secret  # noqa: E402
from triage.config.settings import AccountSettings, DecisionSettings, ProviderSettings, Settings  # noqa: E402
from triage.domain.category import Action, Category, CategorySet  # noqa: E402
from triage.domain.decision import Answer, Question  # noqa: E402
from triage.domain.mail import PreparedMail  # noqa: E402
from triage.domain.record import Trigger  # noqa: E402
from triage.schedule.worker import work  # noqa: E402

NOISE = {"newsletter", "notification", "spam", "social"}
IDS = ("newsletter", "personal", "work", "receipt", "notification", "finance", "travel", "social", "spam")
CATEGORIES = CategorySet(
    "Triage",
    "other",
    "Other",
    tuple(Category(i, i, i, action=Action.ARCHIVE if i in NOISE else Action.KEEP) for i in IDS),
)


class Instant:
    """Answers at once, by a checksum of the text."""

    name = model = "instant"

    def ask(self, question: Question, mail: PreparedMail, deadline: float, stop: object = None) -> Answer:
        del deadline, stop
        choice = IDS[zlib.crc32(mail.body[:200].encode()) % len(IDS)]
        return Answer(choice, {i: float(i == choice) for i in question.ids}, self.name, self.model)

    def close(self) -> None: ...


class BenchApp(App):
    def provider(self, settings: ProviderSettings) -> Instant:  # type: ignore[override]
        del settings
        return Instant()


def app_at(
    port: int, user: str, directory: str, days: int, model_url: str = "", categories: CategorySet = CATEGORIES
) -> App:
    """An App whose model answers at once, or the one at `model_url`."""
    account = AccountSettings(
        name="bench",
        host="127.0.0.1",
        port=port,
        security="plain",
        username=user,
        credential=Secret.of("pass"),
        categories=categories,
        categories_file=Path("categories.yaml"),
        since=date.today() - timedelta(days=days),  # noqa: DTZ011
        addresses=("me@lab.example",),
    )
    decision = DecisionSettings(chain=(ProviderSettings("systemone", model_url, "instant"),))
    kind = App if model_url else BenchApp
    return kind(Settings(Path("triage.yaml"), f"sqlite:///{directory}/bench.db", decision, (account,), http=None))


def one_run(port: int, user: str, days: int, directory: str) -> dict[str, object]:
    """Make a run through `port` with an App of its own."""
    logs.configure("info", "json", io.StringIO())
    app = app_at(port, user, directory, days)
    try:
        return timed_run(app)
    finally:
        app.close()


def timed_run(app: App) -> dict[str, object]:
    """Make a run, timed from an open ledger."""
    _ = app.ledger.depth(), app.chain
    queued = app.ledger.enqueue("bench", Trigger.MANUAL, datetime.now(UTC))
    assert queued is not None
    start = time.perf_counter()
    run = work(app.workplace(), run_id=queued.id)
    wall = time.perf_counter() - start
    assert run is not None
    assert run.error is None, run
    steps = {s.name: s.duration_ms for s in app.ledger.steps(run.id)}
    labels = len({d.label_id for d in app.ledger.decisions(run.id)})
    # Not ru_maxrss: that keeps the peak of the process that started this one.
    status = Path("/proc/self/status").read_text().split()
    rss = int(status[status.index("VmHWM:") + 1]) >> 10
    return {"wall_ms": wall * 1000, "counts": dict(run.counts), "labels": labels, "steps": steps, "rss_mib": rss}


def in_child(*args: object) -> dict[str, object]:
    """One run in a process of its own, for a true peak of memory."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from bench.run import *; print(json.dumps(one_run(*{args!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    value: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return value


def undo(lab: object, user: str) -> None:
    """Take the labels of the newest 20 off and bring back what was archived."""
    from rawimap import Raw, runs, uids

    r = Raw("127.0.0.1", lab.port).login(user, "pass")  # type: ignore[attr-defined]
    r.cmd("SELECT Archive")
    moved = uids(r.cmd("UID SEARCH ALL")[1])
    if moved:
        r.cmd(f"UID MOVE {runs(moved)} INBOX")
    r.cmd("SELECT INBOX")
    last = uids(r.cmd("UID SEARCH ALL")[1])[-60:]
    keywords = " ".join(CATEGORIES.labels)
    unlabelled = [u for u in last if u in UNLABELLED[user] or u > max(UNLABELLED[user])]
    r.cmd(f"UID STORE {runs(unlabelled)} -FLAGS.SILENT ({keywords})")
    r.close()


UNLABELLED: dict[str, set[int]] = {}


def against_floor(lab: object, size: int, repeat: int) -> tuple[float, float]:
    """Milliseconds of a run and of the floor, medians, taken in turn on one mailbox.

    A daemon is warm: the first of either is not counted. Each run of ours meets twenty messages that it never saw, as a
    daemon does; the floor undoes its own work on the newest twenty.
    """
    user, walls, floors = f"w{size}", [], []
    lab.seed(user, size, unlabelled=20 * (repeat + 2))  # type: ignore[attr-defined]
    port = lab.port  # type: ignore[attr-defined]
    floor = [sys.executable, str(LAB / "floor.py"), str(port), user, "--mode", "imapclient", "--repeat", "3"]
    logs.configure("info", "json", io.StringIO())
    with tempfile.TemporaryDirectory() as directory:
        app = app_at(port, user, directory, days(size))
        for _ in range(repeat + 1):
            told = subprocess.run([*floor, "--direct"], capture_output=True, text=True, check=True).stdout
            floors.append(json.loads(told)["wall_ms_median"])
            walls.append(float(str(timed_run(app)["wall_ms"])))
        app.close()
    return statistics.median(walls[1:]), statistics.median(floors[1:])


def against_a_server(lab: object, repeat: int) -> None:
    """Print how long a run of 20 takes where a System One server needs 200 ms for each answer."""
    from bench.decide import CATEGORIES as SERVED  # not at the top: a run without a server needs no HTTP library
    from bench.decide import server

    user, walls = "served", []
    lab.seed(user, 1000)  # type: ignore[attr-defined]
    with server(0.2) as url, tempfile.TemporaryDirectory() as directory:
        app = app_at(lab.port, user, directory, days(1000), url, SERVED)  # type: ignore[attr-defined]
        for _ in range(repeat + 1):
            done = timed_run(app)
            counts, steps = done["counts"], done["steps"]
            assert isinstance(counts, dict)
            assert isinstance(steps, dict)
            assert counts["labelled"] == 20, counts
            walls.append((float(str(done["wall_ms"])), counts["applied"], steps["decide"]))
        app.close()
    (cold, *_), *warm = walls
    ms, asked, decide_ms = sorted(warm)[len(warm) // 2]
    print(
        f"   1000 a model that needs 200 ms: {ms:.0f} ms a run, {asked} asked in {decide_ms}; the first {cold:.0f} ms"
    )


def metered(lab: object, size: int, ms: float, floor_ms: float) -> None:
    """Print round trips, bytes and memory, each of a process of its own."""
    from imap_meter import Meter
    from rawimap import Raw, uids

    user = f"u{size}"
    port = lab.port  # type: ignore[attr-defined]
    lab.seed(user, size)  # type: ignore[attr-defined]
    r = Raw("127.0.0.1", port).login(user, "pass")
    r.cmd("SELECT INBOX")
    unkeyed = " ".join(f"UNKEYWORD {label}" for label in CATEGORIES.labels)
    UNLABELLED[user] = set(uids(r.cmd(f"UID SEARCH {unkeyed}")[1]))
    r.close()
    with tempfile.TemporaryDirectory() as directory:
        rss = int(str(in_child(port, user, days(size), directory)["rss_mib"]))
    undo(lab, user)
    for rtt in (0, 50):
        with Meter("127.0.0.1", port, rtt_ms=rtt) as meter, tempfile.TemporaryDirectory() as directory:
            result = in_child(meter.port, user, days(size), directory)
            told = meter.stats()
            cells = f"{told['round_trips']:>3} {18 + int(str(result['labels'])):>5} {told['bytes_down'] / 1000:6.1f}"
            if rtt:
                print(f"{size:>7} {'cold, 50 ms RTT':<15} {cells} {float(str(result['wall_ms'])):8.0f}")
            else:
                print(f"{size:>7} {'run':<15} {cells} {ms:8.0f} {floor_ms:8.0f} {ms / floor_ms:6.2f} {rss:>7}")
                in_child(meter.port, user, days(size), directory)
                idle = {k: meter.stats()[k] - told[k] for k in ("round_trips", "bytes_down")}
                print(f"{size:>7} {'idle run':<15} {idle['round_trips']:>3} {8:>5} {idle['bytes_down'] / 1000:6.1f}")
        undo(lab, user)


def days(size: int) -> int:
    """How far back the corpus goes: a message a minute."""
    return size // 1440 + 3


def main() -> None:
    from dovecot_lab import DovecotLab

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--repeat", type=int, default=5)
    a = parser.parse_args()
    print("   size what             RT limit     KB  wall ms floor ms  ratio RSS MiB")
    for size in map(int, a.sizes.split(",")):
        with DovecotLab(fmt="maildir") as lab:
            metered(lab, size, *against_floor(lab, size, a.repeat))
    with DovecotLab(fmt="maildir") as lab:
        against_a_server(lab, a.repeat)


if __name__ == "__main__":
    main()
