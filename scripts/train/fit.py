"""Fitting: the injection finder over windows, then eight classes over mails. Deterministic."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported: training is to leave the other cores alone
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from scripts.train.data import Example
from triage.decide.embedded.features import Features, read, with_finding
from triage.decide.embedded.injection import Finder, Finding, window_features, windows
from triage.decide.embedded.weights import ANCHORS, Weights, pack, unpack
from triage.domain.category import HIJACK_ID

C_CLASSES = 3.0
C_FINDER = 1.0
SOURCE_POWER = 0.25
LEAST_GROUPS = 3
LEAST_WINDOWS = 3
NEGATIVE_TO_POSITIVE = 6.0
PLAIN_WEIGHT = 3.0
INNER_FOLDS = 4
SMALLEST = 0.03
TEMPERATURE = 0.9
SCALE = 0.001
LARGEST = 30.0
Vector = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Seen:
    """An example with all that does not depend on any fit: its features and its windows."""

    example: Example
    features: Features
    windows: tuple[Vector, ...]
    injected: tuple[Vector, ...]
    plain: tuple[Vector, ...]


def see(example: Example) -> Seen:
    """Read one example."""
    mail = example.mail
    return Seen(
        example=example,
        features=read(mail),
        windows=tuple(window_features(w) for w in windows(mail.subject, mail.body)),
        injected=tuple(window_features(w) for w in windows("", example.injected)),
        plain=tuple(window_features(w) for w in windows("", example.plain)),
    )


def fold_of(name: str, folds: int) -> int:
    """A stable fold for a group."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % folds


def fit_weights(train: Sequence[Seen]) -> Weights:
    """Fit on examples; the weights are rounded as the shipped table is."""
    return unpack(fit_packed(train))


def fit_packed(train: Sequence[Seen]) -> bytes:
    """Fit on examples and pack. The finder's word on a training mail comes from a finder that did not see that mail's
    group, else the classes would trust it too much."""
    finder = fit_finder(train)
    parts = [[s for s in train if fold_of(s.example.group, INNER_FOLDS) == fold] for fold in range(INNER_FOLDS)]
    vectors: dict[str, Vector] = {}
    for fold, part in enumerate(parts):
        inner = fit_finder([s for other, p in enumerate(parts) if other != fold for s in p])
        for seen in part:
            vectors[seen.example.id] = with_finding(seen.features, find(inner, seen)).values
    return _fit_table(train, [vectors[s.example.id] for s in train], finder)


def find(finder: Finder, seen: Seen) -> Finding:
    """What a finder says of an example, from its windows."""
    return Finding(max((finder.logit(w) for w in seen.windows), default=finder.bias))


def fit_finder(train: Sequence[Seen]) -> Finder:
    """Windows of injected words against windows of all other mail; ordinary words that look like an injection weigh
    more than one, else they would drown in the rest."""
    rows: list[Vector] = []
    truth: list[int] = []
    weight: list[float] = []
    for injected in sorted({s.example.injected: s.injected for s in train if s.injected}.items()):
        for window in injected[1]:
            rows.append(window)
            truth.append(1)
            weight.append(1.0 / len(injected[1]))
    positive = sum(weight)
    clean = [w for s in train if s.example.category != HIJACK_ID for w in s.windows]
    rows += clean
    truth += [0] * len(clean)
    weight += [positive * NEGATIVE_TO_POSITIVE / len(clean)] * len(clean)
    for seen in (s for s in train if s.plain):
        rows += seen.plain
        truth += [0] * len(seen.plain)
        weight += [PLAIN_WEIGHT / len(seen.plain)] * len(seen.plain)
    counts = Counter(name for row in rows for name in row)
    names = sorted(name for name, count in counts.items() if count >= LEAST_WINDOWS)
    model = LogisticRegression(C=C_FINDER, max_iter=500)
    model.fit(_matrix(rows, names), np.array(truth), sample_weight=np.array(weight))
    weights = {n: round(float(w), 3) for n, w in zip(names, model.coef_[0], strict=True) if abs(w) >= SMALLEST}
    return Finder(weights, round(float(model.intercept_[0]), 3))


def _fit_table(train: Sequence[Seen], vectors: Sequence[Vector], finder: Finder) -> bytes:
    """Multinomial logistic regression over the mails' features, packed."""
    groups: dict[str, set[str]] = defaultdict(set)
    for seen, vector in zip(train, vectors, strict=True):
        for name in vector:
            groups[name].add(seen.example.group)
    names = sorted(name for name, found in groups.items() if len(found) >= LEAST_GROUPS)
    labels = np.array([ANCHORS.index(s.example.category) for s in train])
    model = LogisticRegression(C=C_CLASSES, max_iter=300, tol=1e-3)
    model.fit(_matrix(vectors, names), labels, sample_weight=_sample_weights(train))
    coefficients = np.zeros((len(names), len(ANCHORS)))
    bias = np.full(len(ANCHORS), -LARGEST)
    for row, anchor in enumerate(model.classes_):
        coefficients[:, anchor] = model.coef_[row]
        bias[anchor] = model.intercept_[row]
    coefficients -= coefficients.mean(axis=1, keepdims=True)
    coefficients[np.abs(coefficients) < SMALLEST] = 0.0
    integers = np.rint(np.clip(coefficients, -LARGEST, LARGEST) / SCALE).astype(int)
    rows = {n: tuple(map(int, row)) for n, row in zip(names, integers, strict=True) if row.any()}
    documents = Counter(name for vector in vectors for name in vector if name.startswith("w:"))
    rarity = {n: min(9.0, math.log(len(train) / documents[n])) for n in rows if n in documents}
    return pack(
        rows,
        rarity,
        [round(float(b), 4) for b in bias - bias.mean()],
        scale=SCALE,
        temperature=TEMPERATURE,
        finder=finder,
    )


def _matrix(rows: Sequence[Vector], names: Sequence[str]) -> sp.csr_matrix:
    place = {name: column for column, name in enumerate(names)}
    starts, columns, values = [0], [], []
    for row in rows:
        for name, value in row.items():
            column = place.get(name)
            if column is not None:
                columns.append(column)
                values.append(value)
        starts.append(len(columns))
    return sp.csr_matrix(
        (np.array(values), np.array(columns, dtype=np.int32), np.array(starts)), (len(rows), len(names))
    )


def _sample_weights(train: Sequence[Seen]) -> np.ndarray:
    """Big sources count less a mail, and all eight categories weigh the same."""
    sources = Counter(s.example.weighed_as for s in train)
    weights = np.array([sources[s.example.weighed_as] ** -SOURCE_POWER for s in train])
    total: dict[str, float] = defaultdict(float)
    for seen, weight in zip(train, weights, strict=True):
        total[seen.example.category] += weight
    weights = np.array([w / total[s.example.category] for s, w in zip(train, weights, strict=True)])
    return weights * len(train) / weights.sum()
