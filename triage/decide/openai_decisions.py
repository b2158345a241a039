"""The OpenAI Decisions wire format: one choice question over one input; an answer may be a refusal."""

from __future__ import annotations

from triage.decide.answers import Unusable, check_distribution, fraction, mapping, model_name, sequence
from triage.decide.question import describe, mail_json
from triage.decide.remote import Reading
from triage.domain.decision import Question
from triage.domain.mail import PreparedMail

QUESTION = "category"


class OpenAIDecisions:
    """POST /v1/decisions: the mail is the input as JSON data, the categories are the choices of one question."""

    name = "openai-decisions"
    path = "/v1/decisions"
    option_limit: int | None = 255

    def request(self, model: str, question: Question, mail: PreparedMail) -> dict[str, object]:
        choices = [{"value": option.id, "description": describe(option)} for option in question.options]
        asked = {"type": "choice", "name": QUESTION, "instructions": question.instructions, "choices": choices}
        return {"model": model, "input": mail_json(mail), "questions": [asked]}

    def read(self, model: str, question: Question, data: object) -> Reading | Unusable:
        answers = sequence(mapping(data).get("answers"))
        if len(answers) != 1:
            return Unusable("no_answer", "The response does not hold one answer to the one question that was asked.")
        answer = mapping(answers[0])
        if answer.get("type") == "refusal":
            return Unusable("refusal", "The model refused to judge this mail.")
        if answer.get("type", "choice") != "choice" or answer.get("name", QUESTION) not in (QUESTION, None):
            return Unusable("answer_type", "The answer is not to the question that was asked.")
        checked = check_distribution(question, answer.get("choice"), _pairs(answer.get("probabilities")))
        if isinstance(checked, Unusable):
            return checked
        return Reading(
            distribution=checked,
            model=model_name(mapping(data).get("model"), model),
            provider_confidence=fraction(answer.get("confidence")),
        )


def _pairs(probabilities: object) -> object:
    """[{"value", "probability"}] as pairs; a mapping is left as it is: some compatible servers send one."""
    if isinstance(probabilities, list):
        return [(mapping(item).get("value"), mapping(item).get("probability")) for item in probabilities]
    return probabilities
