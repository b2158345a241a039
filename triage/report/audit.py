"""The audit as a value: six invariants (DESIGN 3) and the chain of records, each with how it was checked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

BATCH_CAP = 20

WORDS = {
    1: "No message is decided twice",
    2: "Nothing doubtful is archived",
    3: "A mail moves nothing but its own label",
    4: f"No run holds more than {BATCH_CAP}",
    5: "Runs of an account never overlap",
    6: "It is known who answered",
}
HOW = {
    1: "Every message with more than one decision that counted: the later ones are in order only where a correction or "
    "an undo says that the label was taken off in between. Previews and decisions that were closed unapplied do not "
    "count. In the mailbox: no message bears two labels that were both decided, and every label is explained by a "
    "decision, as long as the chain of records is whole; else it was put there by another hand.",
    2: "Every archived decision: confidence at or above its floor and its archive floor, meant for the archive, its "
    "label recorded first, none of the labels that always stay; a reply claims no more confidence than the decision it "
    "inherited from. In the mailbox: no unread message lies in the archive whose decision says that it stays.",
    3: "Every label and choice is a configured id, or was an option of the question that was put then; nothing was "
    "moved to another mailbox than the archive. In the mailbox: no keyword under our parent is none of ours.",
    4: "Every run: the messages it says it took, and the messages its decisions are about.",
    5: "Every run against the one before it; every decision was made while its run was on; no run was closed twice.",
    6: "Every answered decision names provider, model as served, position in the chain and every probability, and its "
    "confidence follows from them (the newest are recomputed); every inherited one names its ancestor.",
}
CHAIN_WORDS = "No record was edited, removed or put in"
RECEIPT_WORDS = "No receipt of the mail tool was edited, removed or put in"


@dataclass(frozen=True, slots=True)
class Invariant:
    """One invariant: over how many items it was checked, what breaks it (sentences with ids), and what else was seen
    that is in order but worth knowing."""

    id: int
    checked: int = 0
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.violations

    @property
    def words(self) -> str:
        return WORDS[self.id]

    @property
    def how(self) -> str:
        return HOW[self.id]

    def __add__(self, other: Invariant) -> Invariant:
        return Invariant(
            self.id, self.checked + other.checked, self.violations + other.violations, self.notes + other.notes
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """The hash chains: how many links were verified, against each other and against their records. `pruned`: retention
    took the oldest."""

    checked: int = 0
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pruned: bool = False
    id: str = "="
    words: str = CHAIN_WORDS

    @property
    def holds(self) -> bool:
        return not self.violations

    def __add__(self, other: Chain) -> Chain:
        return Chain(
            self.checked + other.checked,
            self.violations + other.violations,
            self.notes + other.notes,
            self.pruned or other.pruned,
            words=self.words,
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """All that was checked, over one account or several: invariants, the chain of records, that of the mail tool's
    receipts. `unread` says why a mailbox could not be looked into."""

    invariants: tuple[Invariant, ...] = field(default_factory=lambda: tuple(Invariant(i) for i in WORDS))
    chain: Chain = field(default_factory=Chain)
    receipts: Chain = field(default_factory=lambda: Chain(words=RECEIPT_WORDS))
    looked: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def checks(self) -> tuple[Invariant | Chain, ...]:
        """What a person is shown, line by line: the mail tool only where it was used."""
        used = bool(self.receipts.checked or self.receipts.violations)
        return (*self.invariants, self.chain, *((self.receipts,) if used else ()))

    def __add__(self, other: Audit) -> Audit:
        return Audit(
            tuple(a + b for a, b in zip(self.invariants, other.invariants, strict=True)),
            self.chain + other.chain,
            self.receipts + other.receipts,
            self.looked + other.looked,
            self.unread + other.unread,
        )

    def plus(self, found: Iterable[Invariant]) -> Audit:
        """The audit with more findings about its invariants."""
        more = {i: Invariant(i) for i in WORDS}
        for each in found:
            more[each.id] += each
        return replace(self, invariants=tuple(mine + more[mine.id] for mine in self.invariants))


def together(audits: Sequence[Audit]) -> Audit:
    total = Audit()
    for audit in audits:
        total += audit
    return total
