"""What is looked up, and in which order a batch is decided."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from triage.threads.ancestry import waves
from triage.threads.candidate import Candidate
from triage.threads.headers import ThreadHeaders
from triage.threads.lookups import further_lookups, lookups


def mail(own: str, *parents: str) -> ThreadHeaders:
    return ThreadHeaders(message_id=own, parents=parents, answers=True)


def test_the_nearest_ids_come_first_and_every_mail_is_served_before_any_is_served_twice() -> None:
    batch = {1: mail("<1>", "<a1>", "<a2>", "<a3>"), 2: mail("<2>", "<b1>", "<b2>")}
    assert lookups(batch) == ("<a1>", "<b1>", "<a2>", "<b2>", "<a3>")
    assert lookups(batch, total=3) == ("<a1>", "<b1>", "<a2>")


def test_of_a_long_thread_the_root_is_looked_up_too() -> None:
    batch = {1: mail("<1>", *(f"<p{n}>" for n in range(20)))}
    assert lookups(batch, per_message=3) == ("<p0>", "<p1>", "<p19>")
    assert lookups(batch, per_message=1) == ("<p0>",)
    assert lookups(batch, per_message=0) == ()


def test_ids_of_the_batch_and_ids_no_server_can_search_for_are_left_out() -> None:
    batch = {1: mail("<1>"), 2: mail("<2>", "<1>", "<p\u00e4@x>", "<p\x07@x>", "<p@x>")}
    assert lookups(batch) == ("<p@x>",)


def test_the_second_look_asks_for_what_unlabelled_finds_name_and_nobody_knew() -> None:
    batch = {1: mail("<1>", "<own>", "<seen>")}
    found = {
        "<own>": [Candidate(mail("<own>", "<p>", "<seen>", "<1>", "<q>", "<root>"), "own")],
        "<seen>": [Candidate(mail("<seen>", "<x>"), "seen", ("work",))],
    }
    assert further_lookups(batch, found) == ("<p>", "<root>")
    assert further_lookups(batch, found, total=1) == ("<p>",)
    assert further_lookups(batch, {**found, "<p>": [], "<q>": [], "<root>": []}) == ()


def test_parents_come_in_an_earlier_wave_than_their_replies() -> None:
    batch = {5: mail("<c>", "<b>", "<a>"), 6: mail("<b>", "<a>"), 7: mail("<a>"), 8: mail("", "<c>")}
    assert waves(batch) == ((7,), (6,), (5,), (8,))


def test_mails_of_a_cycle_do_not_wait_for_one_another() -> None:
    batch = {1: mail("<a>", "<c>"), 2: mail("<b>", "<a>"), 3: mail("<c>", "<b>"), 4: mail("<d>", "<b>")}
    assert waves(batch) == ((1, 2, 3), (4,))
    assert waves({1: mail("<a>", "<a>"), 2: mail("<a>")}) == ((1, 2),)


ids = st.sampled_from([f"<{c}>" for c in "abcdefgh"])
batches = st.dictionaries(
    st.integers(1, 20),
    st.builds(lambda own, parents: mail(own, *parents), ids | st.just(""), st.lists(ids, max_size=4, unique=True)),
    max_size=20,
)


@given(batches)
@settings(max_examples=200, deadline=None)
def test_every_mail_is_in_exactly_one_wave(batch: dict[int, ThreadHeaders]) -> None:
    """Cycles, duplicates and self references included: the waves are a partition and none is empty."""
    found = waves(batch)
    assert sorted(uid for wave in found for uid in wave) == sorted(batch)
    assert all(found)


@given(batches, st.integers(0, 8), st.integers(0, 60))
@settings(max_examples=300, deadline=None)
def test_look_ups_stay_within_their_bounds(batch: dict[int, ThreadHeaders], per_message: int, total: int) -> None:
    found = lookups(batch, per_message=per_message, total=total)
    own = {headers.message_id for headers in batch.values()}
    assert len(found) <= min(total, per_message * len(batch))
    assert len(set(found)) == len(found)
    assert not own & set(found)
