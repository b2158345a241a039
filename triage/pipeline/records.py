"""From a verdict to the record the ledger keeps. No mail text, no address beyond the sender's domain (DESIGN 9)."""

from __future__ import annotations

import re
import secrets
from email.utils import parseaddr

from triage.domain.category import Action
from triage.domain.decision import Ancestor, Ruling, Verdict
from triage.domain.mail import Head, PreparedMail
from triage.domain.record import DecisionRecord
from triage.pipeline.plan import RunScope
from triage.threads.headers import ThreadHeaders

_DOMAIN = re.compile(r"[a-z0-9.-]{1,253}\Z")


def sender_domain(address: str) -> str:
    """The domain of an addr-spec, "" if it is not one."""
    domain = parseaddr(address)[1].rpartition("@")[2].casefold()
    return domain if _DOMAIN.match(domain) else ""


def decision_record(
    scope: RunScope,
    head: Head,
    thread: ThreadHeaders,
    verdict: Verdict,
    *,
    mail: PreparedMail | None = None,
    ruling: Ruling | None = None,
    ancestor: Ancestor | None = None,
) -> DecisionRecord:
    """The record of one message's verdict. In preview it is born closed: nothing will ever be applied from it."""
    plan, journal = scope.plan, scope.tools.journal
    answer = ruling.answer if ruling else None
    return DecisionRecord(
        id=secrets.token_hex(12),
        run_id=scope.run.id,
        account=plan.account,
        ref=head.ref,
        message_key=journal.key(str(head.ref)),
        message_id_key=journal.key(thread.message_id),
        category_set=plan.categories.fingerprint,
        outcome=verdict.outcome,
        label_id=verdict.label_id,
        choice=answer.choice if answer else ancestor.label_id if ancestor else None,
        confidence=verdict.confidence,
        floor=verdict.floor,
        archive_floor=verdict.archive_floor,
        archive=verdict.action is Action.ARCHIVE and plan.archives,
        reason=verdict.reason,
        why=verdict.why,
        decided_at=scope.tools.clock.now(),
        probabilities=dict(answer.probabilities) if answer else {},
        provider=answer.provider if answer else None,
        model=answer.model if answer else None,
        chain_position=ruling.position if ruling else None,
        provider_confidence=answer.provider_confidence if answer else None,
        latency_ms=answer.latency_ms if answer else 0,
        input_tokens=answer.input_tokens if answer else 0,
        output_tokens=answer.output_tokens if answer else 0,
        question_tokens=answer.question_tokens if answer else 0,
        cost_usd=ruling.cost_usd if ruling else 0.0,
        inherited_from=ancestor.message_key if ancestor else None,
        inherited_rule=ancestor.rule if ancestor else None,
        inherited_source=ancestor.source if ancestor else None,
        participation=ancestor.participation if ancestor else None,
        warnings=tuple(sorted({*(mail.warnings if mail else ()), *verdict.vetoes})),
        repaired=answer.repaired if answer else (),
        flags=tuple(sorted(head.flags)),
        sender_domain=sender_domain(thread.sender),
        subject=mail.subject if mail and plan.record_subjects else None,
        received_at=head.received,
        body_chars=len(mail.body) if mail else 0,
        links_removed=mail.links_removed if mail else 0,
        closed_reason=None if plan.writes else "preview",
    )
