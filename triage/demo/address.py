"""Where the demo's server listens and who may log in."""

from __future__ import annotations

from dataclasses import dataclass, field

HOST = "127.0.0.1"
USER = "hello@harbourlane.example"


@dataclass(frozen=True, slots=True)
class Address:
    """What a mail client needs to connect: no TLS, loopback only."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
