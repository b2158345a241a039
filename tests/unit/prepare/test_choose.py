"""Which parts are fetched, from the structure alone."""

from __future__ import annotations

from triage.domain.mail import Part
from triage.prepare.choose import BESIDE_CAP, HTML_CAP, PLAIN_CAP, STUB, choose_parts


def leaf(path: str, kind: str, size: int, **more: str) -> Part:
    main, sub = kind.split("/")
    return Part(path, main, sub, size=size, **more)  # type: ignore[arg-type]


def multi(sub: str, *children: Part) -> Part:
    return Part("", "multipart", sub, children=children)


def paths(structure: Part) -> list[str]:
    return [part.path for part, _ in choose_parts(structure)]


def test_a_full_plain_text_makes_a_large_html_needless() -> None:
    assert paths(multi("alternative", leaf("1", "text/plain", 4_000), leaf("2", "text/html", 30_000))) == ["1"]


def test_html_is_fetched_beside_a_stub() -> None:
    assert paths(multi("alternative", leaf("1", "text/plain", 900), leaf("2", "text/html", 60_000))) == ["1", "2"]


def test_html_is_fetched_beside_a_tiny_text() -> None:
    assert paths(multi("alternative", leaf("1", "text/plain", 90), leaf("2", "text/html", 9_000))) == ["1", "2"]


def test_less_is_fetched_of_an_html_beside_a_text_that_is_more_than_a_stub() -> None:
    def caps(plain: int) -> list[int]:
        both = multi("alternative", leaf("1", "text/plain", plain), leaf("2", "text/html", 90_000))
        return [cap for _, cap in choose_parts(both)]

    assert caps(STUB - 1) == [STUB - 1, HTML_CAP]
    assert caps(STUB) == [STUB, BESIDE_CAP]


def test_a_small_html_is_looked_into_for_hidden_text() -> None:
    assert paths(multi("alternative", leaf("1", "text/plain", 2_000), leaf("2", "text/html", 6_000))) == ["1", "2"]


def test_attachments_are_never_chosen_whatever_their_type() -> None:
    assert paths(
        multi(
            "mixed",
            leaf("1", "text/plain", 100),
            leaf("2", "text/plain", 100, disposition="attachment", filename="a.txt"),
            leaf("3", "text/html", 100, disposition="attachment"),
            leaf("4", "application/pdf", 9_000_000),
        )
    ) == ["1"]


def test_an_attached_message_speaks_only_where_its_cover_is_silent() -> None:
    inner = Part("2", "message", "rfc822", size=900, children=(leaf("2.1", "text/plain", 800),))
    assert paths(multi("mixed", leaf("1", "text/plain", 5_000), inner)) == ["1"]
    assert paths(multi("mixed", leaf("1", "text/plain", 2), inner)) == ["1", "2.1"]


def test_html_of_related_within_alternative_is_found() -> None:
    related = Part("2", "multipart", "related", children=(leaf("2.1", "text/html", 500), leaf("2.2", "image/png", 9)))
    assert paths(multi("alternative", leaf("1", "text/plain", 2), related)) == ["1", "2.1"]


def test_caps_are_never_above_the_part_and_grow_with_base64() -> None:
    encoded = choose_parts(leaf("1", "text/html", 900_000, encoding="base64"))
    assert [cap for _, cap in encoded] == [HTML_CAP * 37 // 27]
    assert [cap for _, cap in choose_parts(leaf("1", "text/plain", 900_000))] == [PLAIN_CAP]
    assert [cap for _, cap in choose_parts(leaf("1", "text/plain", 7))] == [7]


def test_a_size_that_makes_no_sense_gives_the_cap() -> None:
    assert [cap for _, cap in choose_parts(leaf("1", "text/plain", -5))] == [PLAIN_CAP]
    assert [cap for _, cap in choose_parts(leaf("1", "text/plain", 2**63))] == [PLAIN_CAP]
