"""A ledger of a million decisions: how long report and audit take there, and how much memory.

    python -m bench.ledger_scale [--decisions 1000000] [--directory DIRECTORY] [--whole]

The ledger is built once (`bench.ledger_build`) and kept for half a day in the directory, by default one of its own
among the temporary files. Each command runs in a process of its own, so that its memory is its own. "first audit" is
that of a ledger that was never verified: every link is recomputed, once in a ledger's life, by the daemon as a rule. It
is printed, and not held to the limits.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from bench.ledger_build import DAYS, kept

LIMIT_S, LIMIT_MB = 10.0, 500
_ALL = f"{DAYS + 1}d"
COMMANDS = (
    ("report", ["report", "--since", _ALL, "--no-look", "--json"]),
    ("report --html", ["report", "--since", _ALL, "--no-look", "--html", "report.html"]),
    ("audit", ["audit", "--since", _ALL, "--json"]),
    ("audit --since 7d", ["audit", "--json"]),
)


def measure(directory: Path, arguments: list[str]) -> tuple[float, float, int, int, str]:
    """Run one command; seconds, of them on the processor, peak memory in MB, exit code, and what it said."""
    watched = (
        "import resource, sys; from triage.cli.main import run_cli; code = run_cli(sys.argv[1:]); "
        "used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", watched, *arguments, "--config", str(directory)],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, "PW": "x"},
    )
    took = time.perf_counter() - began
    *_, cpu, kilobytes = done.stderr.split()
    return took, float(cpu), int(kilobytes) // 1024, done.returncode, done.stdout


def never_verified(ledger: Path) -> bool:
    with closing(sqlite3.connect(ledger)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return "seals" not in tables or not db.execute("SELECT EXISTS (SELECT * FROM seals)").fetchone()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, help="Where the ledger is, or is to be built.")
    parser.add_argument("--whole", action="store_true", help="Recompute the whole chain too (minutes).")
    options = parser.parse_args()
    directory = kept(options.decisions, options.directory)
    whole = ("audit --whole", ["audit", "--whole", "--json"])
    if never_verified(directory / "ledger.db"):
        tell("first audit", directory, COMMANDS[2][1])
    elif options.whole:
        tell(whole[0], directory, whole[1])
    worst = [tell(name, directory, arguments) for name, arguments in COMMANDS]
    seconds, megabytes = (max(column) for column in zip(*worst, strict=True))
    verdict = "within" if seconds < LIMIT_S and megabytes < LIMIT_MB else "OVER"
    print(f"most: {seconds:.1f} s, {megabytes} MB, {verdict} the limits of {LIMIT_S:.0f} s and {LIMIT_MB} MB")


def tell(name: str, directory: Path, arguments: list[str]) -> tuple[float, int]:
    took, cpu, megabytes, code, said = measure(directory, arguments)
    told = f"{took:6.1f} s ({cpu:5.1f} s of a core) {megabytes:5} MB  exit {code}  {_told(said)}"
    print(f"triage {name:<18} {told}", flush=True)
    return took, megabytes


def _told(said: str) -> str:
    try:
        value = json.loads(said)
    except ValueError:
        return ""
    if isinstance(value, list):
        return f"{value[0]['decisions']:,} decisions, {len(value[0]['competing_pairs'])} competing pairs"
    broken = [i["id"] for i in value["invariants"] if not i["holds"]]
    chain = value["chain"]
    holds = "holds" if chain["holds"] else str(chain["violations"][:1])
    return f"broken {broken}, chain {holds} over {chain['checked']:,} links"


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
