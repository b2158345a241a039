"""Finishing what an earlier run left half done (DESIGN 4). What a person did in between always wins.

The journal holds decisions whose label is not recorded, and labels whose archive is not recorded. What is true of the
message now decides: the mailbox is read, never the ledger believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.domain.category import CategorySet
from triage.domain.mail import Head
from triage.domain.record import DecisionRecord


@dataclass(slots=True)
class Recovery:
    """What is to be done about the unfinished decisions, by decision: apply the label, archive, or let go.

    Those of `to_keep` get their label and stay in the inbox: somebody touched them since.
    """

    to_label: list[DecisionRecord] = field(default_factory=list)
    to_keep: list[DecisionRecord] = field(default_factory=list)
    labelled: list[DecisionRecord] = field(default_factory=list)
    to_archive: list[DecisionRecord] = field(default_factory=list)
    closed: dict[str, list[str]] = field(default_factory=dict)  # reason -> decision ids

    def close(self, record: DecisionRecord, reason: str) -> None:
        self.closed.setdefault(reason, []).append(record.id)


def plan_recovery(
    unfinished: Sequence[DecisionRecord],
    now: Mapping[int, Head],
    inbox: tuple[str, int],
    categories: CategorySet,
    *,
    archives: bool,
) -> Recovery:
    """Decide, from the flags of the messages as they are `now`, what becomes of each unfinished decision. Pure.

    `inbox` is its name and UIDVALIDITY; `archives` says whether this run may archive at all.
    """
    out = Recovery()
    for record in unfinished:
        ref = record.ref
        if (ref.mailbox, ref.uidvalidity) != inbox:
            out.close(record, "uidvalidity_changed" if ref.mailbox == inbox[0] else "inbox_changed")
            continue
        head = now.get(ref.uid)
        if head is None:
            out.close(record, "gone")
            continue
        borne = categories.ids_on(head.flags)
        if record.labelled_at is None and not borne:
            if "\\deleted" in {f.casefold() for f in head.flags}:
                out.close(record, "person_touched")
            elif record.category_set != categories.fingerprint or record.label_id not in categories.label_ids:
                out.close(record, "superseded")
            elif not record.archive or untouched(record, head.flags, categories.label(record.label_id)):
                out.to_label.append(record)
            else:
                out.to_keep.append(record)
        elif borne != (record.label_id,):
            out.close(record, "person_touched")
        else:
            if record.labelled_at is None:
                out.labelled.append(record)
            if not record.archive:
                continue
            if not archives:
                out.close(record, "archiving_off")
            elif untouched(record, head.flags, categories.label(record.label_id)):
                out.to_archive.append(record)
            else:
                out.close(record, "person_touched")
    return out


def untouched(record: DecisionRecord, flags: Iterable[str], label: str) -> bool:
    """Did nobody change a flag since the decision, our own label apart? Reading the message counts as a touch."""
    ours = label.casefold()
    before = {f.casefold() for f in record.flags} - {ours, "\\recent"}
    after = {f.casefold() for f in flags} - {ours, "\\recent"}
    return before == after
