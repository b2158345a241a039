"""An intent out of plain words by the deciding chain: the same question, confidence and floor as for mail."""

from __future__ import annotations

import threading

from triage.agent.intents import AskModel
from triage.agent.states import Intent
from triage.domain.category import NONE_ID
from triage.domain.decision import Option, Question, Ruling
from triage.domain.mail import PreparedMail
from triage.policy.confidence import confidence
from triage.ports import Clock, Decider

_SECONDS = 10.0
_CRITERIA = {
    Intent.VERIFY_EXISTING: "Asks whether a message is there already. One look, no waiting.",
    Intent.WAIT_MESSAGE: "Asks to wait until a message arrives.",
    Intent.TAKE_LINK: "Asks for the link in a message.",
    Intent.TAKE_CODE: "Asks for the code in a message.",
    Intent.REQUEST_NEW: "Asks the application to produce its message once more.",
    Intent.REPORT_STATUS: "Asks how things stand, without looking into the mailbox.",
}
QUESTION = Question(
    "What does this request to a mail tool want? Choose none of these unless it plainly wants exactly one of them.",
    (
        *(Option(str(intent), criteria) for intent, criteria in _CRITERIA.items()),
        Option(NONE_ID, "It wants several things, something else, or is unclear."),
    ),
)


def ask_chain(decider: Decider, clock: Clock) -> AskModel:
    """A question to the chain. No answer, or none of these, is no intent."""

    def ask(text: str) -> tuple[Intent | None, float]:
        rulings: dict[int, Ruling] = {}
        decider.decide(
            QUESTION,
            {0: PreparedMail(sender="", recipient="", subject="", body=text)},
            deadline=clock.monotonic() + _SECONDS,
            stop=threading.Event(),
            on_rulings=rulings.update,
        )
        answer = rulings[0].answer if rulings else None
        if answer is None or answer.choice == NONE_ID:
            return None, 0.0
        return Intent(answer.choice), confidence(answer.probabilities)

    return ask
