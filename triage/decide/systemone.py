"""The System One wire format: Jev and every server compatible with it."""

from __future__ import annotations

from triage.decide.answers import Unusable, check_distribution, fraction, mapping, model_name
from triage.decide.question import describe, mail_fields
from triage.decide.remote import Reading
from triage.domain.decision import Question
from triage.domain.mail import PreparedMail

QUESTION = "category"


class SystemOne:
    """POST /v1/systemone: the mail is the state, the categories are the criteria of one choice question."""

    name = "systemone"
    path = "/v1/systemone"
    option_limit: int | None = 255

    def request(self, model: str, question: Question, mail: PreparedMail) -> dict[str, object]:
        criteria = {option.id: describe(option) for option in question.options}
        choice = {"type": "choice", "instructions": question.instructions, "criteria": criteria}
        return {"model": model, "state": mail_fields(mail), "questions": {QUESTION: choice}}

    def read(self, model: str, question: Question, data: object) -> Reading | Unusable:
        answers = mapping(mapping(data).get("answers"))
        if QUESTION not in answers:
            return Unusable("no_answer", "The response does not answer the question that was asked.")
        answer = mapping(answers[QUESTION])
        if answer.get("type", "choice") != "choice":
            return Unusable("answer_type", "The answer is not of the type that was asked for.")
        checked = check_distribution(question, answer.get("choice"), answer.get("probabilities"))
        if isinstance(checked, Unusable):
            return checked
        return Reading(
            distribution=checked,
            model=model_name(mapping(data).get("model"), model),
            provider_confidence=fraction(answer.get("confidence")),
        )
