"""Links in disguise leave the text like any other; what only has a dot or a slash in it stays."""

from __future__ import annotations

import pytest

from triage.prepare.links import remove_links

DISGUISED = (
    "http://evil。example。com/EVIL", "www。evil。com/EVIL", "EVIL。com/EVIL", "EVIL．com/EVIL", "EVIL｡com/EVIL",
    "EVIL․com/EVIL", "EVIL.com／EVIL／EVIL", "https:⁄⁄EVIL.com⁄EVIL", "https:∕∕EVIL.com∕EVIL",
    "https∶//EVIL.com/EVIL", "https：//EVIL.com/EVIL", "ｈｔｔｐ：／／ＥＶＩＬ．ｃｏｍ／ＥＶＩＬ", "𝗵𝘁𝘁𝗽𝘀://𝗘𝗩𝗜𝗟.com/EVIL",
    "ⓗⓣⓣⓟⓢ://EVIL.com/EVIL", "EVIL[.]com/EVIL", "EVIL(dot)com/EVIL", "hxxp://EVIL[.]com/EVIL",
    "https:EVIL.com/EVIL", "EVIL.Com/EVIL", "müller.de/EVIL", "ευιλ.gr/EVIL", "почта.рф/EVIL", "10.0.0.1/EVIL",
    "10.0.0.1:8080/EVIL", "EVIL.sbs/EVIL", "vbscript:EVIL", "data:,EVIL", "facetime:EVIL@x.example",
    "search-ms:query=EVIL", "\\\\EVIL.com\\share\\EVIL",
)  # fmt: skip
WORDS = (
    "node.js", "1.2.3", "file.txt", "e.g.", "3.14/2", "and/or", "24/7", "a.m./p.m.", "U.S./U.K.", "README.md",
    "x.com", "C:\\temp", "Inc./Ltd.", "km/h", "12:30", "ratio 3:2", "1.1.2026/2.1.2026", "10.0.0.0/24",
    "TCP/IP", "src/main.py", "Dr.No", "etc./more", "cid: none", "javascript: is a language", "CID: AAA-1",
    "Emergency CID: 42", "skype: nora", "終わり。はい/いいえ", "東京。大阪", "1．2／3", "ＡＢＣ", "(dot)",
    "です。com/それ", "a[.]b", "Ⓐ team", "Done。Next",
)  # fmt: skip


@pytest.mark.parametrize("link", DISGUISED)
def test_a_link_in_disguise_is_a_link(link: str) -> None:
    found = remove_links(f"See {link} today")
    assert found.text.split() == ["See", "today"]
    assert len(found.links) == 1


@pytest.mark.parametrize("word", WORDS)
def test_a_word_with_dots_or_slashes_stays(word: str) -> None:
    text = f"See {word} today"
    assert remove_links(text).text == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("请看https://evil。com/EVIL。谢谢", "请看。谢谢"), ("See https://evil.com。Then more", "See 。Then more"),
        ("[Lease](https://evil.com/EVIL 'EVIL')", "Lease"), ("müller.de/EVIL and müller", "and müller"),
    ],
)  # fmt: skip
def test_the_words_around_a_link_stay(text: str, left: str) -> None:
    assert remove_links(text).text.strip() == left
