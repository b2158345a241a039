"""Who sent a mail, as features: a person or a machine, a colleague or a stranger, and whether the name fits."""

from __future__ import annotations

import re
from email.utils import parseaddr

from triage.decide.embedded.text import fold
from triage.domain.mail import PreparedMail

_ROLES = frozenset(
    (  # noqa: SIM905
        "letter digest hello hi team info billing invoice invoices order orders receipt receipts support help "
        "sales marketing offer offers deals shop store notification notifications notify alert alerts update "
        "updates account accounts security office calendar event events community subscription subscriptions "
        "payment payments postmaster booking bookings tracking statement statements facturacion pedidos avisos "
        "boletin ofertas hola ventas tienda atencion notificaciones recibos comunicacion promociones reserva "
        "reservas kontakt rechnung bestellung commandes contato vendas"
    ).split()
)
_ROLE_STEMS = ("news", "promo", "service", "contact", "admin", "editor", "bounce", "shipment")
_PERSON_LOCAL = re.compile(r"[a-z]{1,12}[._][a-z]{2,16}")
_NO_REPLY = re.compile(
    r"no[-_.]?re(?:ply|sponder|sponda|ponse|plies)|do[-_.]?not[-_.]?reply|nicht-?antworten|ne-?pas-?repondre"
    r"|nao-?responda|mailer-daemon|postmaster|bounce|daemon|auto(?:mat|reply)|robot|\bbot\b|unattended"
)
_FREE_MAIL = frozenset(
    (  # noqa: SIM905
        "gmail googlemail yahoo ymail hotmail outlook live msn aol icloud me mac gmx web proton protonmail mail "
        "yandex zoho terra libero orange wanadoo uol bol 163 qq"
    ).split()
)
_TEAM_WORDS = frozenset(
    (  # noqa: SIM905
        "team support news newsletter digest weekly daily billing service notification notifications alert alerts "
        "shop store inc ltd llc gmbh group bank centro equipo soporte boletin tienda banco club app cloud "
        "security admin desk department office system mail delivery customer account noreply"
    ).split()
)
_PERSON_NAME = re.compile(r"(?:[A-ZÀ-Þ][\w'’.-]*,? ){1,3}[A-ZÀ-Þ][\w'’-]+(?: \([^)]*\))?")


def sender_parts(sender: str) -> tuple[str, str, str]:
    """Display name, local part and domain (both lower case) of a sender as preparation writes it; "" if missing."""
    name, address = parseaddr(sender)
    if "@" not in address:
        found = re.search(r"[\w.+-]+@[\w.-]+", sender)
        name, address = (sender[: found.start()].strip(' <"'), found.group()) if found else (sender, "")
    local, _, domain = address.lower().rpartition("@")
    return name.strip(" \"'"), local, domain


def site_of(domain: str) -> str:
    """The registrable part of a domain, roughly: the last two labels, three where the second is a short one."""
    labels = domain.strip(".").split(".")
    keep = 3 if len(labels) > 2 and len(labels[-2]) <= 3 and len(labels[-1]) == 2 else 2
    return ".".join(labels[-keep:])


def sender_facts(mail: PreparedMail) -> set[str]:
    """What the From line shows."""
    name, local, domain = sender_parts(mail.sender)
    if not domain:
        return {"sender:none"}
    site = site_of(domain)
    facts = _address_facts(local, domain, site)
    recipient = sender_parts(mail.recipient)[2]
    if not recipient:
        facts.add("recipient:none")
    elif site_of(recipient) == site:
        facts.add("sender:colleague")
    return facts | _name_facts(name, local, domain, machine=bool(facts & {"sender:no-reply", "sender:role"}))


def _address_facts(local: str, domain: str, site: str) -> set[str]:
    first = re.split(r"[-_.+\d]", local, maxsplit=1)[0]
    role = first in _ROLES or first.startswith(_ROLE_STEMS)
    found = {
        "sender:no-reply": bool(_NO_REPLY.search(local)),
        "sender:role": role,
        "sender:digits": sum(c.isdigit() for c in local) >= 3,
        "sender:person-address": not role and bool(_PERSON_LOCAL.fullmatch(local)),
        "sender:free-mail": site.partition(".")[0] in _FREE_MAIL,
        "sender:subdomain": domain.count(".") >= 2 and len(site) < len(domain),
    }
    return {name for name, true in found.items() if true}


def _name_facts(name: str, local: str, domain: str, *, machine: bool) -> set[str]:
    if not name:
        return {"sender:no-name"}
    facts = set()
    parts = re.split(r"[^a-z0-9]+", fold(name))
    if _TEAM_WORDS.intersection(parts):
        facts.add("sender:team-name")
    elif not machine and _PERSON_NAME.fullmatch(name):
        facts.add("sender:person-name")
    parts = [part for part in parts if len(part) > 2]
    if any(part in domain.replace("-", "") for part in parts):
        facts.add("sender:name-in-domain")
    elif any(part in local for part in parts):
        facts.add("sender:name-in-local")
    elif parts:
        facts.add("sender:name-elsewhere")
    return facts
