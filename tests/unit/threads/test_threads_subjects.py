"""Subjects: prefixes in many languages, and when two subjects cannot belong together."""

from __future__ import annotations

import pytest

from triage.threads.subjects import are_related, clean_subject, is_forward


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Boat", "Re: Boat"),
        ("Boat", "AW: Antw: RE[2]: Boat"),
        ("Boat", "回复：Boat"),
        ("Release plan", "Re: [dev] Release plan"),
        ("Boat trip", "Re: New plan (was: Boat trip)"),
        ("Quarterly figures for the board", "Re: Quarterly figures"),
        ("", "Re: Boat"),
        ("Re:", "Boat"),
        ("Büro", "Re: =?iso-8859-1?Q?B=FCro?="),
        ("a b", "Re: a\n b"),
    ],
)
def test_subjects_of_one_exchange_are_related(one: str, other: str) -> None:
    assert are_related(clean_subject(one), clean_subject(other))
    assert are_related(clean_subject(other), clean_subject(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [("Holiday photos", "Boiler contract"), ("Re: Boat", "Re: Car"), ("[dev] Boat", "[dev] Car"), ("Hi", "This week")],
)
def test_subjects_of_two_matters_are_not_related(one: str, other: str) -> None:
    """A shared prefix, tag or two letters are no relation."""
    assert not are_related(clean_subject(one), clean_subject(other))


@pytest.mark.parametrize(
    ("subject", "forward"),
    [
        ("Fwd: Boat", True),
        ("FW: Re: Boat", True),
        ("[dev] WG: Boat", True),
        ("转发：Boat", True),
        ("İLT: Boat", True),
        ("Re: Fwd: Boat", False),
        ("Boat", False),
        ("Forward: march", False),
    ],
)
def test_the_outermost_prefix_makes_a_forward(subject: str, forward: bool) -> None:
    assert is_forward(clean_subject(subject)) is forward
