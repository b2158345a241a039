"""Honest figures: every mail is judged by weights that never saw its group, or never saw its source."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.train.fit import Seen, find, fit_weights
from triage.decide.embedded.features import with_finding
from triage.decide.embedded.provider import vetoes_of
from triage.decide.embedded.weights import ANCHORS, Weights
from triage.domain.category import HIJACK_ID
from triage.policy.confidence import confidence
from triage.report.evaluation import Figures, Judged, figures

FOLDS = 5
FLOOR = 0.5
ARCHIVE_FLOOR = 0.7
ARCHIVING = frozenset({"notification", "receipt", "newsletter", "promotion", "spam"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one way of holding out, and what concerns the hijack category alone."""

    figures: Figures
    by_source: dict[str, float]
    by_lang: dict[str, float]
    hijack_recall: float
    hijack_kept: float
    hijack_false_alarms: float

    def line(self) -> str:
        """The figures on one line."""
        f = self.figures
        return (
            f"accuracy {f.accuracy:.3f}  macro-F1 {f.macro_f1:.3f}  coverage {f.coverage:.3f}  "
            f"accuracy of covered {f.accuracy_covered:.3f}  noise archived {f.noise_archived:.3f}  "
            f"wrongly archived {f.wrongly_archived_share:.4f} ({f.wrongly_archived}/{f.protected})  ECE {f.ece:.3f}  "
            f"hijack recall {self.hijack_recall:.3f} kept {self.hijack_kept:.3f} "
            f"false alarms {self.hijack_false_alarms:.4f}"
        )


def cross_validate(seen: Sequence[Seen], predictions: Path | None = None) -> Outcome:
    """Grouped five-fold over the evaluation mail; all other mail always trains."""
    folds = _balanced_folds([s for s in seen if s.example.evaluated])
    return _held_out(seen, lambda s: str(folds[s.example.group]), predictions)


def leave_sources_out(seen: Sequence[Seen]) -> Outcome:
    """Each source of the evaluation mail judged without any mail of it, its hijack carriers included."""
    return _held_out(seen, lambda s: s.example.family)


def _held_out(seen: Sequence[Seen], part_of: Callable[[Seen], str], predictions: Path | None = None) -> Outcome:
    evaluated = [s for s in seen if s.example.evaluated]
    judged: list[Judged] = []
    for part in sorted({part_of(s) for s in evaluated}):
        held = [s for s in evaluated if part_of(s) == part]
        ids = {s.example.id for s in held}
        weights = fit_weights([s for s in seen if s.example.train_ok and s.example.id not in ids])
        judged += [judge(weights, s) for s in held]
    if predictions:
        predictions.write_text("".join(_prediction(j) for j in judged), encoding="utf-8")
    return summarise(judged)


def judge(weights: Weights, seen: Seen) -> Judged:
    """One mail under the eight anchors, with the embedded provider's archive floor and vetoes."""
    started = time.perf_counter()
    features = with_finding(seen.features, find(weights.finder, seen))
    anchors = weights.probabilities(features.values)
    probabilities = dict(zip(ANCHORS, anchors, strict=True))
    ms = (time.perf_counter() - started) * 1000
    sure = confidence(probabilities)
    choice = max(sorted(probabilities), key=lambda option: probabilities[option])
    vetoed = bool(vetoes_of(features, anchors, seen.example.mail))
    archived = choice in ARCHIVING and sure >= ARCHIVE_FLOOR and not vetoed
    e = seen.example
    return Judged(e.id, e.category, probabilities, archived, ms, e.lang, e.source)


def summarise(judged: Sequence[Judged]) -> Outcome:
    """All figures of a set of judged mails."""
    hijacks = [j for j in judged if j.truth == HIJACK_ID]
    others = [j for j in judged if j.truth != HIJACK_ID]
    return Outcome(
        figures=figures(judged, floor=FLOOR, archiving=ARCHIVING),
        by_source=_accuracy_by(judged, lambda j: j.source),
        by_lang=_accuracy_by(judged, lambda j: j.lang),
        hijack_recall=_share(j.right for j in hijacks),
        hijack_kept=_share(not j.archived for j in hijacks),
        hijack_false_alarms=_share(j.choice == HIJACK_ID and j.confidence >= FLOOR for j in others),
    )


def _balanced_folds(evaluated: Sequence[Seen]) -> dict[str, int]:
    """Groups dealt to folds of equal size, the biggest first."""
    sizes = [0] * FOLDS
    folds: dict[str, int] = {}
    counts = Counter(s.example.group for s in evaluated)
    for group, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        folds[group] = sizes.index(min(sizes))
        sizes[folds[group]] += count
    return folds


def _accuracy_by(judged: Sequence[Judged], key: Callable[[Judged], str]) -> dict[str, float]:
    return {name: _share(j.right for j in judged if key(j) == name) for name in sorted({key(j) for j in judged})}


def _share(values: Iterable[bool]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def _prediction(j: Judged) -> str:
    row = {"id": j.id, "probabilities": j.probabilities, "confidence": j.confidence, "archive": j.archived, "ms": j.ms}
    return json.dumps(row) + "\n"
