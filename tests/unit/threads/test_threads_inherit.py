"""The rules of inheritance one by one, and the promise that holds them together."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threads_play import CATEGORIES, START

from triage.domain.category import Action
from triage.domain.decision import Ancestor
from triage.threads.candidate import Candidate
from triage.threads.headers import ThreadHeaders
from triage.threads.inherit import Ask, AskReason, Inherit, KeepReason, WaitFor, resolve
from triage.threads.rounds import Gathered, next_round

OWNER = frozenset({"desk@example.org"})


def mail(own: str, *parents: str, sender: str = "dana@example.com", **more: object) -> ThreadHeaders:
    base = ThreadHeaders(message_id=own, parents=parents, answers=bool(parents), authors=(sender,), subject="boat")
    return replace(base, **more)  # type: ignore[arg-type]


def candidate(headers: ThreadHeaders, *labels: str, minute: float = 0, **more: object) -> Candidate:
    received = START + timedelta(minutes=minute)
    base = Candidate(headers, headers.message_id.strip("<>"), labels, confidence=0.8, received=received)
    return replace(base, **more)  # type: ignore[arg-type]


def word_on(
    reply: ThreadHeaders, *found: Candidate, owner: frozenset[str] = OWNER, **more: object
) -> Inherit | WaitFor | Ask:
    by_id: dict[str, list[Candidate]] = {}
    for c in found:
        by_id.setdefault(c.headers.message_id, []).append(c)
    return resolve(1, {1: reply}, by_id, {}, owner=owner, categories=CATEGORIES, **more)  # type: ignore[arg-type]


def test_the_record_names_ancestor_rule_participation_and_confidence() -> None:
    word = word_on(mail("<r>", "<p>"), candidate(mail("<p>"), "news", archive_floor=0.7))
    assert isinstance(word, Inherit)
    assert word.ancestor == Ancestor("p", "news", 0.8, "decision", "reference", "sender_in_thread")
    assert (word.archive_floor, word.keep_in_inbox) == (0.7, False)
    assert word.why == "inherited from the nearest labelled mail of its thread (reference, sender_in_thread)"


def test_a_category_that_stays_needs_no_part_in_the_thread_and_records_none() -> None:
    for sender in ("dana@example.com", "eve@stranger.example"):
        word = word_on(mail("<r>", "<p>", sender=sender), candidate(mail("<p>"), "work"))
        assert isinstance(word, Inherit)
        assert word.ancestor.participation == "not_needed"


def test_a_person_counts_as_confidence_one_whatever_the_ledger_says() -> None:
    word = word_on(mail("<r>", "<p>"), candidate(mail("<p>"), "news", source="person", archive_floor=math.inf))
    assert isinstance(word, Inherit)
    assert (word.ancestor.source, word.ancestor.confidence, word.keep_in_inbox) == ("person", 1.0, False)


@pytest.mark.parametrize(
    ("confidence", "floor", "kept"),
    [(0.7, 0.7, False), (0.69, 0.7, True), (1.0, math.inf, True), (math.nan, 0.0, False), (math.nan, 0.1, True)],
)
def test_a_decision_archives_its_replies_only_where_it_could_archive_itself(
    confidence: float, floor: float, kept: bool
) -> None:
    """An infinite floor is a decision that was not allowed to archive; a confidence that is no number counts as 0."""
    ancestor = candidate(mail("<p>"), "news", confidence=confidence, archive_floor=floor)
    word = word_on(mail("<r>", "<p>"), ancestor)
    assert isinstance(word, Inherit)
    assert word.keep_in_inbox is kept
    assert word.ancestor.confidence == (0.0 if math.isnan(confidence) else confidence)


def test_a_candidate_under_a_key_that_is_not_its_exact_id_is_no_ancestor() -> None:
    sloppy = {"<p>": [candidate(mail("<P>"), "work"), candidate(mail("<p>.x"), "work")]}
    word = resolve(1, {1: mail("<r>", "<p>")}, sloppy, {}, owner=OWNER, categories=CATEGORIES)
    assert isinstance(word, Ask)
    assert word.reason is AskReason.NOT_FOUND


def test_a_mail_is_not_its_own_ancestor_nor_is_a_copy_of_it() -> None:
    word = word_on(mail("<r>", "<r>"), candidate(mail("<r>"), "work"))
    assert isinstance(word, Ask)
    assert word.reason is AskReason.NOT_EARLIER


def test_labels_that_are_not_categories_of_the_account_say_nothing() -> None:
    word = word_on(mail("<r>", "<p>"), candidate(mail("<p>"), "long-gone"))
    assert isinstance(word, Ask)
    assert word.reason is AskReason.UNLABELLED


def test_a_reply_waits_for_every_undecided_ancestor_in_its_batch_and_for_no_other() -> None:
    batch = {1: mail("<r>", "<b>", "<a>"), 2: mail("<a>"), 3: mail("<b>", "<a>"), 4: mail("<z>")}
    assert resolve(1, batch, {}, {}, owner=OWNER, categories=CATEGORIES) == WaitFor((2, 3))
    decided = {3: candidate(batch[3], "work")}
    assert resolve(1, batch, {}, decided, owner=OWNER, categories=CATEGORIES) == WaitFor((2,))
    decided[2] = candidate(batch[2])
    word = resolve(1, batch, {}, decided, owner=OWNER, categories=CATEGORIES)
    assert isinstance(word, Inherit)
    assert word.ancestor.rule == "same_batch"


def test_without_the_times_a_part_in_the_thread_is_not_proved() -> None:
    """Who wrote before the ancestor can only be told by when each came."""
    reply = mail("<r>", "<p>", "<k>", sender="kit@example.com")
    first = candidate(mail("<k>", sender="kit@example.com"), minute=1)
    ancestor = candidate(mail("<p>", "<k>"), "news", minute=2)
    assert isinstance(word_on(reply, first, ancestor), Inherit)
    for unproved in (replace(first, received=None), replace(first, received=ancestor.received)):
        assert isinstance(word_on(reply, unproved, ancestor), Ask)
    assert isinstance(word_on(reply, first, replace(ancestor, received=None)), Ask)


def test_the_owner_in_any_from_field_of_the_thread_keeps_the_reply() -> None:
    both = mail("<k>", authors=("kit@example.com", "desk@example.org"))
    reply = mail("<r>", "<p>", "<k>")
    word = word_on(reply, candidate(both), candidate(mail("<p>"), "news"))
    assert isinstance(word, Inherit)
    assert word.keep_reason is KeepReason.OWNER_WROTE
    assert word.ancestor.owner_wrote
    unowned = word_on(reply, candidate(both), candidate(mail("<p>"), "news"), owner=frozenset())
    assert isinstance(unowned, Inherit)
    assert not unowned.keep_in_inbox


def test_the_servers_thread_needs_both_times() -> None:
    older = candidate(mail("<p>"), "work", minute=1)
    now = {1: START + timedelta(minutes=5)}
    reply = mail("<r>")
    word = word_on(reply, server_thread=[older], received=now)
    assert isinstance(word, Inherit)
    assert word.ancestor.rule == "thread_id"
    assert isinstance(word_on(reply, server_thread=[older]), Ask)
    assert isinstance(word_on(reply, server_thread=[replace(older, received=None)], received=now), Ask)
    assert isinstance(word_on(reply, server_thread=[replace(older, received=now[1])], received=now), Ask)


def test_a_copy_of_the_mail_itself_is_no_ancestor_in_the_servers_thread() -> None:
    copy = candidate(mail("<r>"), "work", minute=1)
    word = word_on(mail("<r>"), server_thread=[copy], received={1: START + timedelta(minutes=5)})
    assert isinstance(word, Ask)


# ---------------------------------------------------------------- the promise, over mailboxes nobody thought of

EVE = "eve@stranger.example"
HONEST = st.sampled_from(["dana@example.com", "kit@example.com", "noreply@ci.example", "desk@example.org"])
IDS = st.sampled_from([f"<{n}@x>" for n in range(6)])
LABELS = st.sampled_from([(), (), ("work",), ("news",), ("alerts",), ("unclassified",), ("news", "work")])


def headers(
    authors: st.SearchStrategy[tuple[str, ...]], lists: st.SearchStrategy[str]
) -> st.SearchStrategy[ThreadHeaders]:
    return st.builds(
        ThreadHeaders,
        message_id=IDS,
        parents=st.lists(IDS, max_size=4, unique=True).map(tuple),
        answers=st.booleans(),
        authors=authors,
        list_id=lists,
        automated=st.booleans(),
        subject=st.just("boat"),
    )


honest = st.builds(
    candidate,
    headers(HONEST.map(lambda a: (a,)), st.sampled_from(["", "", "dev.lists.example.org"])),
    minute=st.integers(0, 50),
)
labelled_honest = st.builds(
    lambda c, labels, source: replace(c, label_ids=labels, source=source, confidence=0.9),
    honest,
    LABELS,
    st.sampled_from(["person", "decision"]),
)
# Eve's address is her own, and she writes after the mails whose ids she takes; the model never archived her.
eves = headers(
    st.sampled_from([(EVE,), ("dana@example.com", EVE), (EVE, "desk@example.org")]),
    st.sampled_from(["", "eve.lists.example"]),
)
labelled_eves = st.builds(
    lambda c, labels: replace(c, label_ids=labels),
    st.builds(candidate, eves, minute=st.integers(51, 99)),
    st.sampled_from([(), ("work",), ("unclassified",)]),
)


@given(st.lists(labelled_honest, max_size=6), st.lists(labelled_eves, max_size=4), eves, st.data())
@settings(max_examples=400, deadline=None)
def test_no_mail_from_outside_a_thread_ever_inherits_an_archive(
    honest_mails: list[Candidate], eve_mails: list[Candidate], attack: ThreadHeaders, data: st.DataObject
) -> None:
    """Whatever ids a stranger quotes, takes or refers to, and whatever thread the server puts her in."""
    everything = honest_mails + eve_mails
    found: dict[str, list[Candidate]] = {}
    for c in everything:
        found.setdefault(c.headers.message_id, []).append(c)
    server_thread = data.draw(st.lists(st.sampled_from(everything), max_size=4)) if everything else []
    received = {1: START + timedelta(minutes=100)}
    word = resolve(
        1,
        {1: attack},
        found,
        {},
        owner=OWNER,
        categories=CATEGORIES,
        server_thread=server_thread,
        received=received,
    )
    if isinstance(word, Inherit) and CATEGORIES.action(word.ancestor.label_id) is Action.ARCHIVE:
        pytest.fail(f"a stranger bought her way into the archive: {word}")


@given(st.lists(labelled_honest, max_size=8), headers(HONEST.map(lambda a: (a,)), st.just("")))
@settings(max_examples=300, deadline=None)
def test_whoever_inherits_an_archive_wrote_in_that_thread(found: list[Candidate], reply: ThreadHeaders) -> None:
    """Told without the product's own words: a label-bearing mail by the same address, or an earlier one that a
    label-bearing mail names among its parents."""
    by_id: dict[str, list[Candidate]] = {}
    for c in found:
        by_id.setdefault(c.headers.message_id, []).append(c)
    word = resolve(1, {1: reply}, by_id, {}, owner=OWNER, categories=CATEGORIES)
    if not isinstance(word, Inherit) or CATEGORIES.action(word.ancestor.label_id) is not Action.ARCHIVE:
        return
    if word.keep_in_inbox:
        return
    bearing = [c for i in reply.parents for c in by_id.get(i, ()) if word.ancestor.label_id in c.label_ids]
    own = [c for c in bearing if c.headers.sender == reply.sender]
    before = [
        c
        for ancestor in bearing
        for i in ancestor.headers.parents
        for c in by_id.get(i, ())
        if c.headers.sender == reply.sender and c.received is not None and c.received < (ancestor.received or START)
    ]
    assert own or before
    wrote = {a for c in bearing for a in c.headers.authors}
    assert not wrote & OWNER


batches = st.dictionaries(
    st.integers(1, 20),
    headers(HONEST.map(lambda a: (a,)), st.sampled_from(["", "dev.lists.example.org"])),
    min_size=1,
    max_size=12,
)


@given(batches, st.lists(labelled_honest, max_size=4), st.sampled_from(["work", "news", "unclassified"]))
@settings(max_examples=300, deadline=None)
def test_every_batch_is_settled_in_as_many_rounds_as_it_has_mails_at_most(
    batch: dict[int, ThreadHeaders], located: list[Candidate], answer: str
) -> None:
    """Cycles, duplicates and missing parents included: each round settles something, and nothing is settled twice."""
    found: dict[str, list[Candidate]] = {}
    for c in located:
        found.setdefault(c.headers.message_id, []).append(c)
    gathered = Gathered(batch, {uid: str(uid) for uid in batch}, found, OWNER, CATEGORIES)
    decided: dict[int, Candidate] = {}
    settled: list[int] = []
    for _ in batch:
        step = next_round(gathered, decided)
        settled += [*step.inherited, *step.to_ask]
        assert step.to_ask or not step.waiting
        decided = {**step.decided, **{uid: candidate(batch[uid], answer) for uid in step.to_ask}}
        if not step.waiting:
            break
    assert sorted(settled) == sorted(batch)
