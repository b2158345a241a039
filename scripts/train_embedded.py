#!/usr/bin/env python3
"""Train the embedded classifier and write its weights and model card; with --evaluate also measure it.

    python scripts/train_embedded.py [--data DIR] [--evaluate]

Deterministic: the same data and library versions give the same bytes. DIR holds mail_dev, mail_written and
mail_templates (.jsonl.gz); default $TRIAGE_SHARED/data, else ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.train.card import write_card  # noqa: E402
from scripts.train.data import load_examples  # noqa: E402
from scripts.train.fit import fit_packed, see  # noqa: E402 - also limits numpy to one thread
from scripts.train.validate import cross_validate, leave_sources_out  # noqa: E402
from triage.decide.embedded.weights import unpack  # noqa: E402

WEIGHTS = ROOT / "triage" / "decide" / "embedded" / "weights.bin"
CARD = ROOT / "docs" / "model-card.md"


def main() -> int:
    """Train; returns the exit status."""
    shared = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the labelled mail")
    parser.add_argument(
        "--evaluate", action="store_true", help="cross-validate, leave sources out, write the model card"
    )
    parser.add_argument(
        "--predictions", type=Path, help="with --evaluate: write cross-validated predictions here (.jsonl)"
    )
    arguments = parser.parse_args()
    if not (arguments.data / "mail_dev.jsonl.gz").exists():
        print(f"{arguments.data}: no mail_dev.jsonl.gz there; name the folder with --data.", file=sys.stderr)
        return 2
    started = time.monotonic()
    seen = [see(example) for example in load_examples(arguments.data)]
    print(f"{len(seen)} mails read in {time.monotonic() - started:.0f} s")
    if arguments.evaluate:
        folds = cross_validate(seen, predictions=arguments.predictions)
        print("grouped 5-fold", folds.line())
        sources = leave_sources_out(seen)
        print("leave one source out", sources.line())
    trained = [s for s in seen if s.example.train_ok]
    packed = fit_packed(trained)
    WEIGHTS.write_bytes(packed)
    weights = unpack(packed)
    print(f"{WEIGHTS.relative_to(ROOT)}: {len(packed)} bytes, {len(weights.rows)} features, digest {weights.digest}")
    if arguments.evaluate:
        CARD.write_text(write_card(seen, packed, folds, sources), encoding="utf-8")
        print(f"{CARD.relative_to(ROOT)} written in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
