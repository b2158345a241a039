"""A batch in rounds: inherit what can be, ask what must be, and look again with the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from triage.domain.category import CategorySet
from triage.threads.candidate import Ask, Candidate, Found, Inherit, WaitFor
from triage.threads.headers import ThreadHeaders
from triage.threads.inherit import resolve


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that is known of a batch before anything is decided; the mappings are by UID unless they say otherwise.

    `keys` are the message keys of the record. `found` is by Message-ID. `server_threads` and `received` may be empty.
    """

    mails: Mapping[int, ThreadHeaders]
    keys: Mapping[int, str]
    found: Found
    owner: frozenset[str]
    categories: CategorySet
    server_threads: Mapping[int, Sequence[Candidate]] = field(default_factory=dict)
    received: Mapping[int, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Round:
    """One look at the undecided: `inherited` is settled, `to_ask` goes to the model now, `waiting` needs its answers.

    `decided` holds what was decided before and what was inherited in this round.
    """

    inherited: Mapping[int, Inherit]
    to_ask: Mapping[int, Ask]
    waiting: tuple[int, ...]
    decided: Mapping[int, Candidate]


def next_round(gathered: Gathered, decided: Mapping[int, Candidate]) -> Round:
    """Look at every mail of the batch that is not in `decided`.

    Call again with an entry in `decided` for each mail of `to_ask`, labelled or not, until nothing is `waiting`:
    `to_ask` is never empty while something waits, so there are at most as many rounds as mails. A caller in a hurry
    may ask the model about `waiting` too: nothing then inherits, and nothing is lost but the price of the questions.
    """
    settled = dict(decided)
    inherited: dict[int, Inherit] = {}
    while True:
        open_uids = [uid for uid in gathered.mails if uid not in settled]
        words = {uid: _resolve(gathered, uid, settled) for uid in open_uids}
        new = {uid: word for uid, word in words.items() if isinstance(word, Inherit)}
        if not new:
            return Round(
                inherited=inherited,
                to_ask={uid: word for uid, word in words.items() if isinstance(word, Ask)},
                waiting=tuple(uid for uid, word in words.items() if isinstance(word, WaitFor)),
                decided=settled,
            )
        inherited.update(new)
        settled.update({uid: _inheritor(gathered, uid, word) for uid, word in new.items()})


def _resolve(gathered: Gathered, uid: int, decided: Mapping[int, Candidate]) -> Inherit | WaitFor | Ask:
    return resolve(
        uid,
        gathered.mails,
        gathered.found,
        decided,
        owner=gathered.owner,
        categories=gathered.categories,
        server_thread=gathered.server_threads.get(uid, ()),
        received=gathered.received,
    )


def _inheritor(gathered: Gathered, uid: int, word: Inherit) -> Candidate:
    return Candidate(
        headers=gathered.mails[uid],
        message_key=gathered.keys[uid],
        label_ids=(word.ancestor.label_id,),
        confidence=word.ancestor.confidence,
        archive_floor=word.archive_floor,
        received=gathered.received.get(uid),
    )
