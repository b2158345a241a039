"""From an address to an authenticated connection: TCP, TLS, greeting, login."""

from __future__ import annotations

import base64
import ssl

from triage.domain.errors import LoginRefused, MailboxRefused
from triage.mailbox.answers import Reply, login_refusal
from triage.mailbox.names import quoted
from triage.mailbox.settings import ConnectionSettings
from triage.mailbox.wire import Timeouts, Wire
from triage.ports import Clock


def connect(settings: ConnectionSettings, clock: Clock) -> Wire:
    """An authenticated connection with the capabilities the server has for this user.

    The secret is asked for here, at every login. Nothing is pipelined behind a login: some servers throw it away.
    Raises LoginRefused, MailboxRefused (certificate, no STARTTLS), MailboxBusy or MailboxLost.
    """
    context = None if settings.security == "plain" else _tls_context(settings)
    timeouts = Timeouts(settings.connect_timeout_s, settings.command_timeout_s)
    direct = context if settings.security == "tls" else None
    wire = Wire(settings.host, settings.port, timeouts, clock.monotonic, direct)
    try:
        if settings.security == "starttls" and context is not None:
            wire.start_tls(context)
        if not wire.already_authenticated:
            _log_in(wire, settings)
    except BaseException:
        wire.drop()
        raise
    return wire


def _tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError):
        raise MailboxRefused(
            f"{settings.host}: ca_file {settings.ca_file} cannot be read as PEM certificates; check the path"
        ) from None


def _log_in(wire: Wire, settings: ConnectionSettings) -> None:
    reply = _login(wire, settings)
    if not reply.ok:
        raise login_refusal(reply, wire.where)
    wire.learn_capabilities(reply)


def _login(wire: Wire, settings: ConnectionSettings) -> Reply:
    secret = _ask_secret(wire.where, settings)
    user = settings.username
    match settings.auth:
        case "xoauth2":
            initial = f"user={user}\x01auth=Bearer {secret}\x01\x01"
            return _authenticate(wire, "XOAUTH2", initial, secret)
        case "oauthbearer":
            name = user.replace("=", "=3D").replace(",", "=2C")  # RFC 7628, 3.1; RFC 5801, 4
            initial = f"n,a={name},\x01auth=Bearer {secret}\x01\x01"
            return _authenticate(wire, "OAUTHBEARER", initial, secret)
    if (user + secret).isascii() and "LOGINDISABLED" not in wire.capabilities:
        wire.conceal(secret)
        return wire.run(b"LOGIN " + quoted(user) + b" " + quoted(secret))[0]
    if "AUTH=PLAIN" not in wire.capabilities:
        raise LoginRefused(
            f"{wire.where}: the server takes no password login here (LOGINDISABLED, or a password beyond ASCII without "
            "AUTH=PLAIN); use security 'tls' or 'starttls', or another password"
        )
    return _authenticate(wire, "PLAIN", f"\0{user}\0{secret}", secret)  # RFC 4616: UTF-8


def _authenticate(wire: Wire, mechanism: str, initial: str, secret: str) -> Reply:
    encoded = base64.b64encode(initial.encode("utf-8"))
    wire.conceal(secret, encoded.decode("ascii"))
    return wire.authenticate(mechanism, encoded)


def _ask_secret(where: str, settings: ConnectionSettings) -> str:
    try:
        secret = settings.secret()
    except (OSError, ValueError, LookupError, RuntimeError) as exc:
        # What the provider says may hold the secret; only the kind of failure is told.
        raise LoginRefused(f"{where}: the secret could not be obtained ({type(exc).__name__})") from None
    if not secret or any(ord(c) < 0x20 or ord(c) == 0x7F for c in secret + settings.username):
        raise LoginRefused(f"{where}: user name or secret is empty or holds a control character, such as a line break")
    return secret
