"""The sample mailbox: sound where it should be sound, broken where it should be broken, the same for the same now."""

from __future__ import annotations

import codecs
import email
import email.policy
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

import pytest

from triage.demo.mails import Sample, sample_mails

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SAMPLES = sample_mails(NOW)
BY_ID = {sample.id: sample for sample in SAMPLES}
BROKEN = {"raw-8bit-headers", "missing-boundary", "unknown-charset", "empty", "base64-cut"}
SOUND = [sample for sample in SAMPLES if sample.id not in BROKEN]
UNSORTED = [sample for sample in SAMPLES if sample.unsorted]

DOCUMENTATION_NETS = (b"203.0.113.", b"198.51.100.")
MESSAGE_ID = re.compile(rb"^Message-ID: (<[^<>\s]+@[^<>\s]+>)\r$", re.MULTILINE)


def parsed(sample: Sample) -> EmailMessage:
    return email.message_from_bytes(sample.raw, policy=email.policy.default)


def visible(sample: Sample) -> str:
    part = parsed(sample).get_body(("plain", "html"))
    assert part is not None
    return str(part.get_content())


def message_id(sample: Sample) -> bytes:
    found = MESSAGE_ID.search(sample.raw)
    assert found
    return found[1]


def by_id(sample: Sample) -> str:
    return sample.id


def test_there_are_about_fifty_to_sort_of_every_kind() -> None:
    kinds = Counter(sample.category for sample in UNSORTED)
    assert 50 <= len(UNSORTED) <= 55
    assert set(kinds) == {
        "action-required", "conversation", "notification", "receipt", "newsletter", "promotion", "spam",
        "hijack-attempt", "unclassified",
    }  # fmt: skip
    assert min(n for kind, n in kinds.items() if kind != "unclassified") >= 4


def test_the_same_now_gives_the_same_bytes() -> None:
    assert sample_mails(NOW) == SAMPLES


def test_a_now_without_timezone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        sample_mails(NOW.replace(tzinfo=None))


def test_what_is_to_be_sorted_arrived_within_two_days() -> None:
    ages = [NOW - sample.received for sample in UNSORTED]
    assert timedelta(0) < min(ages)
    assert max(ages) <= timedelta(days=2)
    assert max(ages) - min(ages) > timedelta(days=1)


@pytest.mark.parametrize("sample", SAMPLES, ids=by_id)
def test_every_line_ends_with_crlf_and_no_placeholder_is_left(sample: Sample) -> None:
    assert sample.raw.count(b"\n") == sample.raw.count(b"\r\n") > 0
    assert b"{{" not in sample.raw


@pytest.mark.parametrize("sample", SAMPLES, ids=by_id)
def test_the_date_header_is_the_time_it_arrived(sample: Sample) -> None:
    assert parsedate_to_datetime(parsed(sample)["Date"]) == sample.received


@pytest.mark.parametrize("sample", SOUND, ids=by_id)
def test_sound_mail_parses_without_a_defect(sample: Sample) -> None:
    for part in parsed(sample).walk():
        assert not part.defects
        assert not [defect for header in part.values() for defect in header.defects]
    assert visible(sample).strip()


def test_message_ids_are_unique() -> None:
    assert len({message_id(sample) for sample in SAMPLES}) == len(SAMPLES)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.reply_to], ids=by_id)
def test_a_reply_names_an_earlier_message_of_the_sample(sample: Sample) -> None:
    assert sample.reply_to
    parent = BY_ID[sample.reply_to]
    assert message_id(parent).decode() in str(parsed(sample)["References"])
    assert parent.received < sample.received


def test_some_parents_are_labelled_by_a_person_and_some_arrive_unlabelled() -> None:
    parents = [BY_ID[s.reply_to] for s in UNSORTED if s.reply_to]
    assert {(p.mailbox, p.labelled) for p in parents} >= {("INBOX", True), ("Archive", True), ("INBOX", False)}


def test_mail_names_only_reserved_domains() -> None:
    """RFC 2606, RFC 5737: nothing in the sample can reach anybody."""
    for sample in SAMPLES:
        text = sample.raw.split(b"\r\n\r\n")[0] + (visible(sample).encode() if sample.id not in BROKEN else b"")
        hosts = re.findall(rb"(?:https?://|@)([a-z0-9.-]+\.[a-z0-9-]+)", text)
        assert not [h for h in hosts if not h.endswith(b".example") and not h.startswith(DOCUMENTATION_NETS)], sample.id


def test_both_languages_are_there() -> None:
    spanish = [s for s in UNSORTED if re.search(r"\b(?:Hola|Estimad[oa]s?|Queridos|Gracias|Le informamos|Envío)\b",
                                                s.raw.decode("latin-1"))]  # fmt: skip
    assert len(spanish) >= 8


def test_bulk_mail_bears_the_headers_of_bulk_mail() -> None:
    bulk = [s for s in UNSORTED if s.category == "newsletter"]
    assert all(parsed(s)["List-Unsubscribe"] for s in bulk)
    assert any(parsed(s)["Feedback-ID"] for s in bulk)
    assert all(parsed(BY_ID[i])["Auto-Submitted"] for i in ("hopper-resolved", "bounce", "out-of-office", "shop-down"))


@pytest.mark.parametrize("id_", ["hijack-hidden", "hijack-white"])
def test_hidden_hijacks_say_nothing_in_their_text_part(id_: str) -> None:
    html = parsed(BY_ID[id_]).get_body(("html",))
    assert html is not None
    assert "assistant" in html.get_content().casefold()
    assert "assistant" not in visible(BY_ID[id_]).casefold()


def test_the_spaced_out_hijack_has_zero_width_characters() -> None:
    assert visible(BY_ID["hijack-zero-width"]).count("\u200b") > 10


def test_attachments_are_small_and_real() -> None:
    found = {a.get_filename(): a.get_content() for s in SOUND for a in parsed(s).iter_attachments() if a.get_filename()}
    assert found["Lease unit 7.pdf"].startswith(b"%PDF-1.4")
    assert found["IMG_2210.png"].startswith(b"\x89PNG")
    assert max(len(content) for content in found.values()) < 4096


def test_the_invitation_lies_in_the_future() -> None:
    calendar = next(p for p in parsed(BY_ID["tasting-invite"]).walk() if p.get_content_type() == "text/calendar")
    start = re.search(r"DTSTART:(\d{8}T\d{6}Z)", calendar.get_content())
    assert start
    assert datetime.strptime(start[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) > NOW


def test_raw_headers_are_neither_ascii_nor_utf8() -> None:
    head = BY_ID["raw-8bit-headers"].raw.split(b"\r\n\r\n")[0]
    with pytest.raises(UnicodeDecodeError):
        head.decode("utf-8")


def test_the_boundary_is_missing() -> None:
    message = parsed(BY_ID["missing-boundary"])
    assert message.get_content_maintype() == "multipart"
    assert message.get_boundary() is None


def test_the_charset_is_unknown() -> None:
    with pytest.raises(LookupError):
        codecs.lookup(str(parsed(BY_ID["unknown-charset"]).get_content_charset()))


def test_the_base64_is_cut_in_a_quantum() -> None:
    body = BY_ID["base64-cut"].raw.split(b"\r\n\r\n", 1)[1]
    assert len(b"".join(body.split())) % 4


def test_the_empty_message_has_neither_subject_nor_body() -> None:
    message = parsed(BY_ID["empty"])
    assert message["Subject"] == ""
    assert not str(message.get_payload()).strip()
