"""`triage forget`: remove the records of a sender's domain, or of one message. The chain stays verifiable."""

from __future__ import annotations

from triage.cli import open as parts
from triage.cli.story import find
from triage.domain.errors import ConfigError


def forget_command(config: str | None, *, sender_domain: str | None, message: str | None, as_json: bool = False) -> int:
    """Forget; 0 if something was, 1 if there was nothing. Nothing in the mailbox changes."""
    if (sender_domain is None) == (message is None):
        raise ConfigError("triage forget needs --sender-domain DOMAIN or --message KEY (not both).")
    with parts.opened(config) as app:
        if sender_domain is not None:
            gone = app.ledger.forget(sender_domain=sender_domain.casefold().strip().lstrip("@"))
        else:
            gone = app.ledger.forget(decision_ids=[d.id for d in find(app, message or "")])
    if as_json:
        parts.print_json({"forgotten": gone})
    else:
        parts.say(f"Forgotten: {gone} decision(s), with what was found about them. Digests stay in the chain.")
    return 0 if gone else 1
