"""The model card: written from what was measured, so that it cannot drift from the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from scripts.train.fit import Seen
from scripts.train.validate import ARCHIVE_FLOOR, FLOOR, Outcome
from triage.decide.embedded.weights import ANCHORS, unpack

_HERE = Path(__file__).parent


def write_card(seen: Sequence[Seen], packed: bytes, folds: Outcome, sources: Outcome) -> str:
    """The card as Markdown."""
    weights = unpack(packed)
    trained = [s.example for s in seen if s.example.train_ok]
    languages = Counter(e.lang for e in trained).most_common()
    categories = Counter(e.category for e in trained)
    named = ", ".join(f"{name} {count}" for name, count in sorted(categories.items()))
    spoken = ", ".join(f"{name} {count}" for name, count in languages)
    known = folds.figures
    return f"""# Model card: the embedded classifier

Written by `scripts/train_embedded.py --evaluate`; do not edit by hand.

Multinomial logistic regression over words, phrase families in several languages, headers, sender and structure, and a
second small one that looks for prompt injections in pairs of sentences. Plain Python at run time, no dependency, no
network. Weights `{weights.digest}`: {len(packed) / 1024:.0f} KB, {len(weights.rows):,} features, eight anchors:
{", ".join(ANCHORS)}.

## Figures

Floor {FLOOR} on (max p - 1/n)/(1 - 1/n), archiving only at {ARCHIVE_FLOOR} and without a veto. {known.mails} mails,
{known.protected} of them protected (they must stay in the inbox). *Known kinds*: grouped five-fold cross-validation, no
thread, sender or template on both sides. *Unknown kinds*: every source of mail held out as a whole. Mail whose licence
forbids training is only ever judged.

| | known kinds | unknown kinds |
|---|---|---|
{_rows(folds, sources)}

Accuracy by language, known kinds: {_shares(folds.by_lang)}.

| source | accuracy, known kinds | unknown kinds |
|---|---|---|
{_source_rows(folds, sources)}

The phrases and injection words were written with knowledge of the development mail, and settings were compared on these
very splits; expect a few points less elsewhere.

## Training mail

{len(trained):,} mails: {named}. Languages: {spoken}.
Sources under a licence that forbids it (phishing_pot, CC BY-NC 4.0) never train. CC BY sources: mark-up removed, text
cut, addresses masked.

{(_HERE / "card_licences.md").read_text(encoding="utf-8")}
{(_HERE / "card_limits.md").read_text(encoding="utf-8")}"""


def _rows(folds: Outcome, sources: Outcome) -> str:
    known, unknown = folds.figures, sources.figures
    lines = [
        ("accuracy", f"{known.accuracy:.3f}", f"{unknown.accuracy:.3f}"),
        ("macro-F1", f"{known.macro_f1:.3f}", f"{unknown.macro_f1:.3f}"),
        ("coverage at the floor", f"{known.coverage:.3f}", f"{unknown.coverage:.3f}"),
        ("accuracy of the covered", f"{known.accuracy_covered:.3f}", f"{unknown.accuracy_covered:.3f}"),
        ("noise that left the inbox", f"{known.noise_archived:.3f}", f"{unknown.noise_archived:.3f}"),
        ("**wrongly archived**", _wrong(folds), _wrong(sources)),
        ("calibration error (ECE)", f"{known.ece:.3f}", f"{unknown.ece:.3f}"),
        ("hijack recall", f"{folds.hijack_recall:.3f}", f"{sources.hijack_recall:.3f}"),
        ("hijack kept in the inbox", f"{folds.hijack_kept:.3f}", f"{sources.hijack_kept:.3f}"),
        ("hijack false alarms", f"{folds.hijack_false_alarms:.4f}", f"{sources.hijack_false_alarms:.4f}"),
        *((f"F1 {c}", f"{known.f1[c]:.2f}", f"{unknown.f1[c]:.2f}") for c in known.f1),
    ]
    return "\n".join(f"| {name} | {one} | {other} |" for name, one, other in lines)


def _wrong(outcome: Outcome) -> str:
    f = outcome.figures
    return f"{f.wrongly_archived_share:.4f} ({f.wrongly_archived} of {f.protected})"


def _source_rows(folds: Outcome, sources: Outcome) -> str:
    return "\n".join(f"| {s} | {folds.by_source[s]:.2f} | {sources.by_source[s]:.2f} |" for s in folds.by_source)


def _shares(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in values.items())
