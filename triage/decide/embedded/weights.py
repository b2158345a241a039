"""The shipped weight table: a zlib-packed list of feature names and, for each, a 16-bit weight a class.

Layout after decompression: one line of JSON (the header), all feature names joined by newlines and ended by a blank
line, then little-endian int16: class after class the weights of all features, then the rarity of all features.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from triage.decide.embedded.injection import Finder

ANCHORS = (
    "action-required",
    "conversation",
    "hijack-attempt",
    "newsletter",
    "notification",
    "promotion",
    "receipt",
    "spam",
)
"""The eight kinds of mail the shipped weights know, in the order of the table."""

RESOURCE = "weights.bin"
RARITY_SCALE = 256.0
_VERSION = 2


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a multinomial logistic regression over named features.

    `rows` maps a feature to one integer a class, to be multiplied by `scale`; `temperature` multiplies the logits.
    `rarity` maps words to their inverse document frequency. `finder` looks for injections. `digest` names this table.
    """

    rows: Mapping[str, tuple[int, ...]]
    rarity: Mapping[str, float]
    bias: tuple[float, ...]
    scale: float
    temperature: float
    finder: Finder
    digest: str

    def logits(self, values: Mapping[str, float]) -> list[float]:
        """One logit a class, temperature applied. Features that are not in the table say nothing."""
        rows = self.rows
        z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = 0.0
        for name, value in values.items():
            row = rows.get(name)
            if row is not None:
                w0, w1, w2, w3, w4, w5, w6, w7 = row
                z0 += value * w0
                z1 += value * w1
                z2 += value * w2
                z3 += value * w3
                z4 += value * w4
                z5 += value * w5
                z6 += value * w6
                z7 += value * w7
        sums = (z0, z1, z2, z3, z4, z5, z6, z7)
        return [(z * self.scale + b) * self.temperature for z, b in zip(sums, self.bias, strict=True)]

    def probabilities(self, values: Mapping[str, float]) -> list[float]:
        """One probability a class, in the order of `ANCHORS`; they sum to 1."""
        return softmax(self.logits(values))


def softmax(logits: Sequence[float]) -> list[float]:
    """Probabilities of a list of logits."""
    top = max(logits)
    powers = [math.exp(z - top) for z in logits]
    total = math.fsum(powers)
    return [p / total for p in powers]


def pack(
    rows: Mapping[str, Sequence[int]],
    rarity: Mapping[str, float],
    bias: Sequence[float],
    *,
    scale: float,
    temperature: float,
    finder: Finder,
) -> bytes:
    """The bytes of a table; the same input gives the same bytes."""
    names = sorted(rows)
    header = {
        "version": _VERSION,
        "anchors": ANCHORS,
        "bias": list(bias),
        "scale": scale,
        "temperature": temperature,
        "finder": {"bias": finder.bias, "weights": finder.weights},
    }
    # All weights of one class lie together: neighbours are alike and compress better.
    numbers = array("h", [rows[name][k] for k in range(len(ANCHORS)) for name in names])
    numbers.extend(round(rarity.get(name, 0.0) * RARITY_SCALE) for name in names)
    if sys.byteorder == "big":
        numbers.byteswap()
    text = json.dumps(header, sort_keys=True, separators=(",", ":")) + "\n" + "\n".join(names) + "\n\n"
    return zlib.compress(text.encode() + numbers.tobytes(), 9)


def unpack(data: bytes) -> Weights:
    """Read a table. Raises ValueError if the bytes are not one of this version."""
    try:
        raw = zlib.decompress(data)
        end = raw.index(b"\n\n")
        head, *names = raw[:end].decode().split("\n")
        header = json.loads(head)
    except (zlib.error, ValueError) as error:
        raise ValueError("The weight table cannot be read: it is damaged or not one of this program.") from error
    if header.get("version") != _VERSION or tuple(header["anchors"]) != ANCHORS:
        raise ValueError("The weight table belongs to another version of this program.")
    numbers = array("h")
    numbers.frombytes(raw[end + 2 :])
    if sys.byteorder == "big":
        numbers.byteswap()
    count = len(names)
    if len(numbers) != count * (len(ANCHORS) + 1):
        raise ValueError("The weight table is cut short.")
    columns = [numbers[k * count : (k + 1) * count] for k in range(len(ANCHORS))]
    rare = numbers[len(ANCHORS) * count :]
    return Weights(
        rows=dict(zip(names, zip(*columns, strict=True), strict=True)),
        rarity={name[2:]: r / RARITY_SCALE for name, r in zip(names, rare, strict=True) if r},
        bias=tuple(header["bias"]),
        scale=header["scale"],
        temperature=header["temperature"],
        finder=Finder(header["finder"]["weights"], header["finder"]["bias"]),
        digest=hashlib.sha256(data).hexdigest()[:8],
    )


@lru_cache(maxsize=1)
def shipped() -> Weights:
    """The table that comes with the program, read once."""
    return unpack(resources.files(__package__).joinpath(RESOURCE).read_bytes())
