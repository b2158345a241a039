"""What the classifier sees of a mail."""

from __future__ import annotations

from dataclasses import replace

import pytest
from embedded_world import LETTER, ORDER, QUESTION_MAIL

from triage.decide.embedded import text as t
from triage.decide.embedded.anchors import synonyms
from triage.decide.embedded.cues import lexicon
from triage.decide.embedded.features import BUILD_WEIGHT, WORD_WEIGHT, read
from triage.decide.embedded.injection import lexicon as roles
from triage.decide.embedded.phrases import Phrases, parse
from triage.decide.embedded.sender import sender_parts, site_of
from triage.domain.mail import PreparedMail, Signals


@pytest.mark.parametrize(
    ("raw", "folded"), [("Boletín", "boletin"), ("STRASSE", "strasse"), ("Straße", "strasse"), ("ﬁn", "fin")]
)
def test_accents_case_and_compatibility_forms_make_no_difference(raw: str, folded: str) -> None:
    assert t.fold(raw) == folded


def test_a_number_becomes_its_length_and_money_one_word() -> None:
    assert t.words(t.fold(t.without_links("Room 12, code 993110, pay $1,200.50 or 12 €")), 50) == [
        "room", "00", "code", "000000", "pay", "zzmoney", "or", "zzmoney",
    ]  # fmt: skip


def test_own_lines_leave_out_what_stands_below_an_old_header() -> None:
    own, dropped = t.own_lines(
        "I agree with Linda on this.\n\nTo: Steven Kean\ncc: Mark\nSubject: Draft\n\nOld text here"
    )
    assert own.strip() == "I agree with Linda on this."
    assert dropped >= 3


def test_a_mail_of_nothing_but_quotation_keeps_its_text() -> None:
    assert t.own_lines("> one\n> two")[0] == "> one\n> two"


def test_reading_a_mail_twice_gives_the_same_features_in_the_same_order() -> None:
    assert list(read(ORDER).values.items()) == list(read(ORDER).values.items())


def test_words_have_one_length_however_long_the_mail_is() -> None:
    for mail in (ORDER, replace(ORDER, body=ORDER.body * 30)):
        words = [v for name, v in read(mail).values.items() if not name.startswith("#")]
        assert sum(v * v for v in words) ** 0.5 == pytest.approx(WORD_WEIGHT)


def test_headers_of_bulk_mail_are_facts() -> None:
    values = read(LETTER).values
    assert values["#list-unsubscribe"] == values["#list-id"] == BUILD_WEIGHT
    assert "#in-reply-to" not in values


@pytest.mark.parametrize("auto", ["no", "No", ""])
def test_auto_submitted_no_is_no_automatic_mail(auto: str) -> None:
    mail = replace(QUESTION_MAIL, signals=Signals(headers={"auto-submitted": auto}))
    assert "#auto-submitted" not in read(mail).values


def test_a_person_and_a_machine_are_told_apart_by_the_from_line() -> None:
    person = read(QUESTION_MAIL).values
    machine = read(replace(QUESTION_MAIL, sender="Billing Team <no-reply@rowan.example>")).values
    assert {"#sender:person-name", "#sender:person-address"} <= person.keys()
    assert {"#sender:no-reply", "#sender:team-name"} <= machine.keys()
    assert "#sender:person-name" not in machine


@pytest.mark.parametrize(
    ("sender", "parts"),
    [
        ("Ann Lee <Ann.Lee@Example.com>", ("Ann Lee", "ann.lee", "example.com")),
        ("ann@example.com", ("", "ann", "example.com")),
        ("Steve", ("Steve", "", "")),
        ("", ("", "", "")),
    ],
)
def test_a_sender_is_taken_apart(sender: str, parts: tuple[str, str, str]) -> None:
    assert sender_parts(sender) == parts


@pytest.mark.parametrize(
    ("domain", "site"), [("mail.shop.example", "shop.example"), ("news.bbc.co.uk", "bbc.co.uk"), ("a.es", "a.es")]
)
def test_the_registrable_part_of_a_domain(domain: str, site: str) -> None:
    assert site_of(domain) == site


def test_a_spanish_phrase_counts_in_the_same_family_as_its_english_sister() -> None:
    assert lexicon().count(t.words(t.fold("Tu código de verificación es"), 9))["code"] >= 1
    assert lexicon().count(t.words(t.fold("Your verification code is"), 9))["code"] >= 1


@pytest.mark.parametrize("shipped", [lexicon(), roles(), synonyms()], ids=["cues", "injection", "anchors"])
def test_every_shipped_phrase_is_kept_the_way_texts_are_read(shipped: Phrases) -> None:
    """A phrase with an accent, a capital or a hyphen would never match anything."""
    for phrase in shipped.families:
        assert t.words(t.fold(phrase), 20) == phrase.split()


def test_a_hyphen_makes_no_difference() -> None:
    assert lexicon().count(t.words("your e-ticket", 9)) == lexicon().count(t.words("your e ticket", 9))


@pytest.mark.parametrize("text", ["orphan", "[a]\none two three four five six seven"])
def test_a_phrase_list_that_would_not_work_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        parse(text)


def test_a_request_for_a_signature_is_seen_and_a_shipped_order_asks_nothing() -> None:
    asks = PreparedMail(
        "x@y.example", "me@z.example", "Documento pendiente de firma", "Revise y firme antes del viernes."
    )
    assert read(asks).asks
    assert not read(ORDER).asks
