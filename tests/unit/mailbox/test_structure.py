"""BODYSTRUCTURE as servers really send it, and as they should not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.mailbox.atoms import values
from triage.mailbox.structure import OPAQUE, part_tree


def parsed(text: str) -> object:
    return values([text.encode()])[0]


PLAIN = '("TEXT" "PLAIN" ("CHARSET" "UTF-8") NIL NIL "Quoted-Printable" 1315 42 NIL NIL NIL NIL)'
HTML = '("text" "html" NIL NIL NIL "base64" 9 1)'
PDF = (
    '("application" "pdf" ("name" "a.pdf") "<id@x>" "desc" "base64" 77 NIL '
    '("attachment" ("filename" "Rechnung M\\"1\\".pdf")) NIL NIL)'
)
ATTACHED = f'("message" "rfc822" NIL NIL NIL "7bit" 500 (NIL "s" NIL NIL NIL NIL NIL NIL NIL NIL) {PLAIN} 20)'


def test_a_message_of_one_part_is_part_1() -> None:
    part = part_tree(parsed(PLAIN))
    assert (part.path, part.mime_type, part.encoding, part.size) == ("1", "text/plain", "quoted-printable", 1315)
    assert part.params == {"charset": "UTF-8"}


def test_paths_of_nested_parts() -> None:
    """BODY[1] of mixed over alternative is the whole inner multipart: the text is 1.1."""
    root = part_tree(parsed(f'(({PLAIN}{HTML} "ALTERNATIVE" ("BOUNDARY" "b") NIL NIL){PDF} "MIXED" NIL NIL NIL)'))
    assert [(p.path, p.mime_type) for p in root.walk()] == [
        ("", "multipart/mixed"),
        ("1", "multipart/alternative"),
        ("1.1", "text/plain"),
        ("1.2", "text/html"),
        ("2", "application/pdf"),
    ]
    pdf = root.children[1]
    assert (pdf.disposition, pdf.filename) == ("attachment", 'Rechnung M"1".pdf')
    assert root.children[0].params == {"boundary": "b"}


def test_an_attached_message_has_its_own_structure() -> None:
    """RFC 9051, 6.4.5.1: the only part of a message that is part 2 is 2.1, and so is the first of several."""
    several = ATTACHED.replace(PLAIN, f'({PLAIN}{HTML} "ALTERNATIVE" ("BOUNDARY" "i") NIL NIL)')
    root = part_tree(parsed(f'({PLAIN}{ATTACHED}{several} "MIXED")'))
    assert [(p.path, p.mime_type) for p in root.walk()] == [
        ("", "multipart/mixed"),
        ("1", "text/plain"),
        ("2", "message/rfc822"),
        ("2.1", "text/plain"),
        ("3", "message/rfc822"),
        ("3", "multipart/alternative"),
        ("3.1", "text/plain"),
        ("3.2", "text/html"),
    ]


def test_a_type_the_server_could_not_read_is_text() -> None:
    """Dovecot sends empty strings for `text/html, charset=utf-8` and the like (RFC 2045, 5.2)."""
    assert part_tree(parsed('("" "" NIL NIL NIL "7bit" 29 NIL NIL NIL NIL)')).mime_type == "text/plain"
    assert part_tree(parsed('("html" "" NIL NIL NIL "7bit" 31 NIL NIL NIL NIL)')).mime_type == "text/html"


@pytest.mark.parametrize(
    ("fields", "filename"),
    [
        ('("name" "n.txt")', "n.txt"),
        ('("name*" "utf-8\'\'a%C3%A9.txt")', "aé.txt"),
        ('("name*" "no-such-charset\'\'%E9.txt")', "é.txt"),
        ("NIL", ""),
        ('("name")', ""),
        ('("size" 7 "name" NIL)', ""),
    ],
)
def test_file_names_however_they_are_told(fields: str, filename: str) -> None:
    assert part_tree(parsed(f'("image" "png" {fields} NIL NIL "base64" 3)')).filename == filename


@pytest.mark.parametrize("disposition", ['"inline"', '("inline")', '("INLINE" NIL)', '("inline" ("filename" NIL))'])
def test_dispositions_however_they_are_told(disposition: str) -> None:
    assert part_tree(parsed(f'("text" "plain" NIL NIL NIL "7bit" 3 1 NIL {disposition})')).disposition == "inline"


def test_an_empty_multipart_is_no_part_to_fetch() -> None:
    """Courier tells it as if it were a single part."""
    root = part_tree(parsed('("multipart" "mixed" ("boundary" "b") NIL NIL "7bit" 0)'))
    assert (root.mime_type, root.children) == ("multipart/mixed", ())


@pytest.mark.parametrize(
    "broken", [None, (), ("text",), [], b"text", 7, ([],), ([None], b"mixed"), (b"text", b"plain")]
)
def test_what_is_no_structure_is_one_opaque_part(broken: object) -> None:
    assert part_tree(broken) in (OPAQUE, part_tree(([], b"mixed")))


def test_a_structure_too_deep_or_too_wide_is_one_opaque_part() -> None:
    deep: object = (b"text", b"plain", None, None, None, b"7bit", 1, 1)
    for _ in range(60):
        deep = ([deep], b"mixed")
    assert part_tree(deep) == OPAQUE
    leaf = (b"text", b"plain", None, None, None, b"7bit", 1, 1)
    assert part_tree(([leaf] * 5000, b"mixed")) == OPAQUE


ATOMS = st.none() | st.integers() | st.binary(max_size=8)
NODES = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=9).map(tuple) | st.lists(inner, max_size=4))


@given(NODES)
def test_nothing_a_server_says_raises(node: object) -> None:
    assert all(isinstance(part.mime_type, str) for part in part_tree(node).walk())
