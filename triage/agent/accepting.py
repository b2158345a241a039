"""Making a message a run's own, and taking from it what the policy lets be taken, once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triage.agent.acceptance import HijackSigns, age_seconds, masked_subject
from triage.agent.answers import Call, Outcome
from triage.agent.links import Nothing, Taken, take_code, take_link
from triage.agent.looking import Candidate, Opened, open_source
from triage.agent.policy import PurposeKeys
from triage.agent.ports import MailReader, ToolLedger
from triage.agent.result import Accepted, Artifact, Result
from triage.agent.sharing import SharedMailbox
from triage.agent.states import Kind, Stage, State
from triage.domain.errors import MailboxChanged
from triage.domain.mail import Head
from triage.domain.tool import Claim, RunRecord, Taking, WaitRecord
from triage.ports import Clock
from triage.prepare.choose import choose_parts
from triage.redact import conceal

_FIELDS = ("Subject", "Message-ID", "From", "To", "Content-Type", "Content-Transfer-Encoding")


@dataclass(frozen=True, slots=True)
class Acceptor:
    """Claims, takings and the results that tell of them."""

    ledger: ToolLedger
    clock: Clock
    mailbox: SharedMailbox
    hijack_signs: HijackSigns

    def accept(
        self,
        call: Call,
        purpose: PurposeKeys,
        candidate: Candidate,
        kind: Kind | None,
        wait: WaitRecord | None,
        base: Outcome,
    ) -> Result | Outcome | None:
        """Claim the message and say so, in one transaction with the receipt.

        An outcome where nothing could be taken from it; None if another run, or process, was quicker.
        """
        run, head = call.run, candidate.head
        assert run is not None
        assert head.received is not None
        if candidate.opened is None:
            return replace(base, state=State.REVIEW, reason="not_opened")
        taken = extract(candidate.opened, kind, purpose) if kind is not None else None
        if isinstance(taken, Nothing):
            return replace(base, state=State.REVIEW, reason=taken.reason)
        call.reach(Stage.EVIDENCE)
        now = self.clock.now()
        claim = Claim(
            account=run.account,
            message_key=candidate.key,
            run_id=run.id,
            generation=run.generation,
            message_id=candidate.message_id,
            ref=head.ref,
            fingerprint=candidate.opened.fingerprint,
            matched_rule=candidate.reason,
            received_at=head.received,
            claimed_at=now,
            receipt_id="",
            wait_id=wait.id if wait else None,
        )
        artifact = self.artifact(claim, kind, taken, purpose) if kind and taken else None
        outcome = replace(
            base, state=State.FOUND, accepted=self.accepted(claim, masked_subject(head.headers)), artifact=artifact
        )
        result, receipt = call.end(replace(outcome, withheld=withheld(artifact)))
        claim = replace(claim, receipt_id=receipt.id)
        taking = self.taking(claim, artifact, receipt.id) if artifact else None
        if wait is not None:
            wait = replace(wait, state=str(State.FOUND), reason=result.reason, receipt_id=receipt.id)
        return result if self.ledger.claim_message(claim, taking, receipt, wait) else None

    def accepted(self, claim: Claim, subject: str) -> Accepted:
        return Accepted(
            message_id=claim.message_id,
            subject=subject,
            received_at=claim.received_at,
            age_seconds=age_seconds(claim.received_at, self.clock.now()),
            matched_rule=claim.matched_rule,
            fingerprint=claim.fingerprint,
        )

    def artifact(self, claim: Claim, kind: Kind, taken: Taken, purpose: PurposeKeys) -> Artifact:
        """What was taken, in the form the policy allows. A value is kept out of every log from here on."""
        conceal(taken.value)
        rule = purpose.take.link if kind is Kind.LINK else purpose.take.code
        assert rule is not None
        as_value = taken.value if rule.deliver == "value" else None
        return Artifact(
            kind=kind.value,
            delivery=rule.deliver,
            host=taken.host,
            length=len(taken.value),
            verification_url=as_value if kind is Kind.LINK else None,
            code=as_value if kind is Kind.CODE else None,
            handle=self.handle(claim, kind) if rule.deliver == "handle" else None,
        )

    def handle(self, claim: Claim, kind: Kind) -> str:
        """A word that stands for what was taken. Always the same one, so that a lost answer can be given again."""
        secret = self.ledger.key(f"handle {kind} {claim.message_key} {claim.run_id} {claim.generation}")
        return f"hdl-{secret}"

    def taking(self, claim: Claim, artifact: Artifact, receipt_id: str) -> Taking:
        return Taking(
            account=claim.account,
            message_key=claim.message_key,
            kind=artifact.kind,
            delivery=artifact.delivery,
            run_id=claim.run_id,
            generation=claim.generation,
            receipt_id=receipt_id,
            taken_at=self.clock.now(),
            host=artifact.host,
            length=artifact.length,
            handle_key=handle_key(self.ledger, artifact.handle) if artifact.handle else None,
        )

    def reopened(self, run: RunRecord, claim: Claim, seconds: float) -> tuple[Head, Opened] | str:
        """The accepted message again, or why it can no longer be had. Raises MailboxError."""

        def work(reader: MailReader) -> tuple[Head, Opened] | str:
            place, _ = reader.arrived(run.folder, claim.ref.uid, None)
            if place.uidvalidity != claim.ref.uidvalidity:
                raise MailboxChanged("the folder was renumbered since the message was accepted")
            head = reader.heads(run.folder, [claim.ref.uid], _FIELDS).get(claim.ref.uid)
            if head is None:
                return "message_gone"
            source = reader.source(run.folder, head, choose_parts(head.structure))
            opened = open_source(source, self.ledger.key, self.hijack_signs)
            if isinstance(opened, str):
                return opened
            return (head, opened) if opened.fingerprint == claim.fingerprint else "message_changed"

        return self.mailbox.call(work, seconds)


def extract(opened: Opened, kind: Kind, purpose: PurposeKeys) -> Taken | Nothing:
    """Apply the policy's rule for this kind."""
    if kind is Kind.LINK:
        return take_link(opened.source, purpose.take.link) if purpose.take.link else Nothing("no_link_rule")
    return take_code(opened.mail, purpose.take.code) if purpose.take.code else Nothing("no_code_rule")


def withheld(artifact: Artifact | None) -> list[str]:
    """What a caller does not get, whatever it asks next."""
    left_out = ["body"]
    if artifact is not None and artifact.delivery != "value":
        left_out.append(artifact.kind)
    return left_out


def handle_key(ledger: ToolLedger, handle: str) -> str:
    """What the ledger knows a handle by; the handle itself is nowhere kept."""
    return ledger.key(f"handle key {handle}")
