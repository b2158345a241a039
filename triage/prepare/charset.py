"""Bytes to text, whatever the label says.

The order is: byte order mark; UTF-16, labelled or plain to see; valid UTF-8 with characters outside ASCII (no other
encoding looks like it by chance);
the label, read as the superset that browsers read it as; a guess from the bytes. It never raises.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from triage.prepare.wide import WIDE, wide_codec, with_noughts, without_added_returns

_LABEL = re.compile(r"[a-z0-9][a-z0-9._:+-]*")
_CODE_PAGE = re.compile(r"(?:x-)?(?:dos|win|windows|ibm|msdos|cp|ansi)[-_ ]?(\d{3,5})")
_TEXT_CODEC = re.compile(
    r"utf_(?:7|8|16|32)(?:_[bl]e)?|utf_8_sig|iso8859_\d+|cp\d{3,5}|koi8_[rtu]|gb18030|big5(?:hkscs)?|euc_\w+"
    r"|iso2022_\w+|shift_\w+|mac_\w+|hz|johab|ptcp154|tis_620|kz1048|hp_roman8"
)
"""Codecs that decode bytes to text in linear time; `idna`, `punycode`, `unicode_escape` and the like are not text."""

_SUPERSET = {
    "iso8859_1": "cp1252", "latin_1": "cp1252", "iso8859_9": "cp1254", "iso8859_11": "cp874",
    "tis_620": "cp874", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932",
    "big5": "big5hkscs", "iso2022_jp": "iso2022_jp_2", "utf_8_sig": "utf_8",
}  # fmt: skip
"""What senders label and what they mean (WHATWG Encoding Standard, 4.2)."""

_ALIAS = {
    "utf": "utf_8", "uft-8": "utf_8", "utf8mb4": "utf_8", "utf-8-bom": "utf_8", "unicode": "utf_16",
    "unicode-1-1-utf-7": "utf_7", "unicode-1-1-utf-8": "utf_8", "ansi": "cp1252", "windows-31j": "cp932",
    "x-sjis": "cp932", "ms_kanji": "cp932", "x-euc-jp": "euc_jp", "gb_2312-80": "gb18030", "x-gbk": "gb18030",
    "gb_18030": "gb18030", "x-x-big5": "big5hkscs", "ks_c_5601": "cp949", "ks_c_5601-1987": "cp949",
    "ksc5601": "cp949", "ks_c_5601-1989": "cp949", "x-windows-949": "cp949", "macintosh": "mac_roman",
    "x-mac-roman": "mac_roman", "iso-8859-8-i": "iso8859_8", "iso-8859-8-e": "iso8859_8", "iso-8859-6-i": "iso8859_6",
    "iso-8859-6-e": "iso8859_6", "koi8-ru": "koi8_u", "windows-874": "cp874", "x-mac-cyrillic": "mac_cyrillic",
    "x-mac-ce": "mac_latin2", "hz-gb-2312": "hz", "big5-hkscs": "big5hkscs",
}  # fmt: skip

_ESCAPED = frozenset({"utf_7", "hz", "iso2022_jp_2", "utf_32", "utf_32_be", "utf_32_le"})
"""Codecs whose bytes may all be ASCII and still not mean ASCII (with every iso2022_*)."""

_CP1252_C1 = bytes(range(0x80, 0xA0)).decode("cp1252", "ignore")
_C1_TO_CP1252 = dict(
    zip((b for b in range(0x80, 0xA0) if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)), _CP1252_C1, strict=True)
)
_STRAY = {0xDC00 + b: _C1_TO_CP1252.get(b, chr(b) if b >= 0xA0 else "") for b in range(0x80, 0x100)}
"""What a byte that is not UTF-8 most likely was: the surrogate escapes of Python mapped to Windows-1252."""

_BOMS = (
    (codecs.BOM_UTF8, "utf_8"), (codecs.BOM_UTF32_LE, "utf_32_le"), (codecs.BOM_UTF32_BE, "utf_32_be"),
    (codecs.BOM_UTF16_LE, "utf_16_le"), (codecs.BOM_UTF16_BE, "utf_16_be"), (b"\x84\x31\x95\x33", "gb18030"),
)  # fmt: skip
_SAMPLE = 4096
_NUL_IN_TRANSIT = re.compile(rb"(?<=[A-Za-z.])\x80+|\x80{2,}")
"""Servers send 0x80 for NUL, which IMAP cannot carry (RFC 9051, 4.3.1); as a Windows-1252 euro it follows no letter."""


@lru_cache(maxsize=256)
def codec_of(label: str) -> str | None:
    """The Python codec for a charset label with all its usual faults, or None if the label says nothing."""
    found = _LABEL.search(label[:80].lower().replace("charset=", ""))
    if found is None:
        return None
    name = found.group()
    page = _CODE_PAGE.match(name)
    for candidate in (
        name,
        name.replace("_", "-"),
        name.replace("-", ""),
        name.removeprefix("x-"),
        f"cp{page.group(1)}" if page else "",
    ):
        codec = _ALIAS.get(candidate) or _lookup(candidate)
        if codec:
            return _SUPERSET.get(codec, codec)
    return None


def _lookup(name: str) -> str | None:
    try:
        codec = codecs.lookup(name).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    codec = codec if codec in ("gb2312", "gbk", "ascii", "latin_1") else codec.replace("__", "_")
    return codec if codec in _SUPERSET or _TEXT_CODEC.fullmatch(codec) else None


def decode(data: bytes, label: str = "") -> tuple[str, bool]:
    """Text of `data`, and whether anything had to be guessed or replaced. An incomplete last character is dropped."""
    for bom, codec in _BOMS:
        if data.startswith(bom):
            data = data[len(bom) :]
            return (_decode_wide if codec in WIDE else _decode)(data, codec)[0], False
    codec_name = codec_of(label)
    wide = wide_codec(data, codec_name or "")
    if wide:
        return _decode_wide(data, wide)
    codec_name = None if codec_name in WIDE else codec_name
    if codec_name == "ascii":
        codec_name = None  # what servers report where the mail says nothing; bytes beyond ASCII belie it anyway
    escaped = codec_name is not None and (codec_name in _ESCAPED or codec_name.startswith("iso2022"))
    if data.isascii() and not escaped:
        return _unescaped(data) if b"\x1b$" in data else (data.decode("ascii"), False)
    if codec_name and escaped:
        return _decode(data, codec_name)
    text, broken = _decode(data, "utf_8", strict=True)
    if broken and b"\x80" in data:
        data = _NUL_IN_TRANSIT.sub(b"", data)
    if not broken and (codec_name in (None, "utf_8", "cp1252") or sum(map((127).__lt__, data)) >= 6):
        return text, False
    if codec_name in (None, "utf_8"):
        return _mostly_utf8(data) or (_decode(data, guess(data))[0], True)
    return _decode(data, codec_name)


def _decode_wide(data: bytes, codec: str) -> tuple[str, bool]:
    text, doubtful = _decode(without_added_returns(data), codec)
    return text if b"\0" in data else with_noughts(text), doubtful


def _unescaped(data: bytes) -> tuple[str, bool]:
    """ASCII bytes with ISO-2022 escapes under no or another label."""
    codec = "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_2"
    return _decode(data, codec)[0], True


def _decode(data: bytes, codec: str, *, strict: bool = False) -> tuple[str, bool]:
    try:
        # final=False keeps a character that was cut off at the end out of the text
        return codecs.getincrementaldecoder(codec)().decode(data, final=False), False
    except (UnicodeError, ValueError):
        if strict:
            return "", True
    if codec == "cp1252":
        return data.decode("latin-1").translate(_C1_TO_CP1252), False
    try:
        return codecs.getincrementaldecoder(codec)("replace").decode(data, final=False), True
    except (UnicodeError, ValueError):
        return data.decode("latin-1").translate(_C1_TO_CP1252), True


def _mostly_utf8(data: bytes) -> tuple[str, bool] | None:
    """UTF-8 with a few bytes of Windows-1252 in it, or None if hardly any of it is UTF-8."""
    text = data.decode("utf-8", "surrogateescape")
    strays = len(re.findall("[\udc80-\udcff]", text))
    good = sum(1 for c in text if c > "\x7f") - strays
    if strays > good + 3:
        return None
    # an incomplete last character shows as up to three strays at the very end
    return re.sub("[\udcc2-\udcf4][\udc80-\udcbf]{0,2}\\Z", "", text).translate(_STRAY), strays > 3 or good == 0


def guess(data: bytes) -> str:
    """The most plausible codec of bytes that are not UTF-8; Windows-1252 unless the letters say otherwise."""
    sample = data[:_SAMPLE]
    high = sum(map((127).__lt__, sample))
    letters = sum(1 for b in sample if b >= 0x80 or chr(b).isalpha()) or 1
    if high < 6 or high / letters < 0.3:
        return "cp1252"
    best, codec = 0.55, "cp1252"
    for candidate, letters_of in _SCRIPTS:
        try:
            text = codecs.getincrementaldecoder(candidate)().decode(sample, final=False)
        except (UnicodeError, ValueError):
            continue
        foreign = [c for c in text if c > "\x7f"]
        fit = len(letters_of.findall(text)) / (len(foreign) or 1)
        if fit > best + 0.05:
            best, codec = fit, candidate
    if codec in _CYRILLIC:  # both give letters for any byte: the right one gives more of the frequent ones
        codec = max(_CYRILLIC, key=lambda c: len(_FREQUENT.findall(sample.decode(c, "replace"))))
    return codec


_CYRILLIC = ("cp1251", "koi8_r")
_FREQUENT = re.compile("[оеаинт]", re.IGNORECASE)
_SCRIPTS = (
    ("cp1251", re.compile(r"[а-яё](?![А-ЯЁ])|(?<![а-яё])[А-ЯЁ]")),
    ("koi8_r", re.compile(r"[а-яё](?![А-ЯЁ])|(?<![а-яё])[А-ЯЁ]")),
    ("cp1253", re.compile(r"[α-ωά-ώ](?![Α-Ω])")),
    ("euc_jp", re.compile(r"[ぁ-んァ-ヶー。、]|(?<=[ぁ-ん])[一-龥]|[一-龥](?=[ぁ-ん一-龥])")),
    ("cp932", re.compile(r"[ぁ-んァ-ヶー。、]|(?<=[ぁ-ん])[一-龥]|[一-龥](?=[ぁ-ん一-龥])")),
    ("cp949", re.compile(r"[가-힣]")),
    ("gb18030", re.compile(r"[一-龥，。、：！？；的是]")),
    ("big5hkscs", re.compile(r"[一-龥，。、：！？；的是]")),
    ("cp1255", re.compile(r"[א-ת]")),
    ("cp1256", re.compile(r"[ء-ي]")),
    ("cp874", re.compile(r"[ก-๛]")),
)
"""Candidates and the characters that speak for each: scripts in their usual case and company."""
