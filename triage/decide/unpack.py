"""A response body within a limit, also when the server packs it unasked. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable


class TooBig(Exception):
    """The body is longer than the limit."""


class Garbled(Exception):
    """The body cannot be unpacked."""


def read_body(chunks: Iterable[bytes], encoding: str, limit: int) -> bytes:
    """Join the chunks, unpacked if `encoding` (Content-Encoding) is gzip or deflate.

    Raises TooBig as soon as more than `limit` bytes came out, Garbled if unpacking fails.
    """
    packed = encoding.strip().lower() in ("gzip", "x-gzip", "deflate")
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None
    parts, size = [], 0
    for chunk in chunks:
        try:
            # Never more than one byte past the limit is unpacked, so a small body cannot fill the memory.
            part = unpack.decompress(chunk, limit - size + 1) if unpack else chunk
        except zlib.error:
            raise Garbled from None
        size += len(part)
        if size > limit:
            raise TooBig
        parts.append(part)
    return b"".join(parts)
