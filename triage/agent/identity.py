"""The address a run goes by, and whether a message was really sent to it."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from email.utils import getaddresses
from typing import TYPE_CHECKING

from triage.prepare.headers import Fields

if TYPE_CHECKING:  # a daemon without the mail tool asks for recipients, and needs no policy file's models for that
    from triage.agent.policy import IdentityKeys

NONCE_BYTES = 10
"""80 random bits: no mail hits another run's address by chance or by guess."""

_ADDRESS = re.compile(r"[^\s@<>\"(),:;]{1,64}@[^\s@<>\"(),:;]{1,253}")
_LONGEST_FIELD = 8_192
_FOLD = re.compile(r"[\r\n]+[ \t]*")

Nonce = Callable[[], str]


def new_nonce() -> str:
    """80 random bits in small letters and digits."""
    return base64.b32encode(secrets.token_bytes(NONCE_BYTES)).decode("ascii").lower().rstrip("=")


def offers(identity: IdentityKeys, run_id: str, inbox: str, nonce: Nonce) -> tuple[tuple[str, str, str], ...]:
    """(lease key, address, folder) a new run may get, best first. One, but for a pool."""
    if identity.strategy == "pool":
        return tuple((address.casefold(), address, inbox) for address in identity.addresses)
    drawn = nonce()

    def filled(template: str) -> str:
        return template.replace("{run}", run_id).replace("{nonce}", drawn)

    address = filled(identity.address or "")
    if identity.strategy == "folder":
        folder = filled(identity.folder or inbox)
        return ((f"folder {folder}", address, folder),)
    return ((address.casefold(), address, inbox),)


def recipients(headers: bytes, evidence: str) -> frozenset[str]:
    """The addresses, case folded, a message proves to have been sent to.

    `to_header`: To and Cc. `delivered_to`: the topmost Delivered-To or X-Original-To, which the operator's own server
    writes above everything the sender wrote.
    """
    fields = Fields(headers)
    if evidence == "delivered_to":
        top = next((v for name in ("delivered-to", "x-original-to") if (v := fields.first(name))), "")
        return addresses_in([top])
    return addresses_in([*values(headers, "to"), *values(headers, "cc")])


def addresses_in(texts: Iterable[str]) -> frozenset[str]:
    """Addresses in header values; a display name that looks like an address is none."""
    found = getaddresses([text[:_LONGEST_FIELD] for text in texts if text])
    return frozenset(address.casefold() for _, address in found if _ADDRESS.fullmatch(address))


def values(headers: bytes, name: str) -> tuple[str, ...]:
    """Every value of a field, unfolded, in the order of the message."""
    field = rb"^" + re.escape(name.encode("ascii")) + rb"[ \t]*:((?:[^\n]*\n[ \t])*[^\n]*)"
    found = re.finditer(field, headers, re.IGNORECASE | re.MULTILINE)
    return tuple(_FOLD.sub(" ", m[1].decode("utf-8", "replace")).strip() for m in found)


def names_run(found: frozenset[str], address: str) -> bool:
    """Exactly this address: a tag more or less, another domain or another run's nonce is somebody else."""
    return address.casefold() in found


def names_another(found: frozenset[str], address: str, live: Sequence[str]) -> bool:
    """Is another live identity named as well? Then the message is no proof for either."""
    mine = address.casefold()
    return any(other != mine and other in found for other in map(str.casefold, live))
