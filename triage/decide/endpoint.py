"""Where a provider lives and the key to it, checked once. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from triage.domain.errors import ConfigError

_PRIVATE_SUFFIXES = (".local", ".internal", ".lan", ".localhost", ".home.arpa", ".svc")


def endpoint_root(base_url: str, *, has_key: bool) -> str:
    """The base URL without a trailing "/v1": paths begin with it.

    Raises ConfigError if it is no http(s) URL, carries a password or a query, or would send a key unencrypted over
    a public network.
    """
    try:
        parts = urlsplit(base_url.strip())
        port = parts.port
    except ValueError:
        raise ConfigError("base_url is not a URL. Write for example https://api.example.com.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("base_url must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("base_url must not hold a user name or password. Use api_key.")
    if parts.query or parts.fragment:
        raise ConfigError("base_url must end with the path: leave out what follows ? or #.")
    if parts.scheme == "http" and has_key and not is_private(parts.hostname):
        raise ConfigError(f"The api_key would travel unencrypted to {parts.hostname}. Use https:// in base_url.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"


def clean_key(api_key: str) -> str:
    """The key without the white space that files and shells add; raises ConfigError if no header could carry it."""
    key = api_key.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("api_key holds characters that no key can have. Copy it again, without line breaks.")
    return key


def is_private(host: str) -> bool:
    """Is this host on this machine or a private network, as far as its name tells?"""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(_PRIVATE_SUFFIXES)
    return address.is_private or address.is_loopback or address.is_link_local
