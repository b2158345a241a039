"""A chat model as a decision model: one token of output, its log-probabilities read as a distribution over options."""

from __future__ import annotations

import math
import string

from triage.decide.answers import Distribution, Unusable, check_distribution, mapping, model_name, sequence
from triage.decide.question import describe, mail_json
from triage.decide.remote import Reading
from triage.domain.decision import Question
from triage.domain.mail import PreparedMail

TOP_LOGPROBS = 20
"""The most alternatives that OpenAI, vLLM and Ollama report for a token: no more options can be told apart."""

LEAST_MASS = 0.5
"""An answer whose options hold less probability than this is an answer to something else."""


class OpenAIChat:
    """POST /v1/chat/completions for any OpenAI-compatible server that reports top_logprobs.

    Options bear labels that are one token in every tokenizer: digits up to nine options, letters up to twenty.
    Probability outside the labels stays unassigned: it is spread evenly over all options, which lowers our confidence
    by exactly that share, and the answer is unusable when the options hold too little.
    """

    name = "openai-chat"
    path = "/v1/chat/completions"
    option_limit: int | None = TOP_LOGPROBS

    def request(self, model: str, question: Question, mail: PreparedMail) -> dict[str, object]:
        names = labels(len(question.options))
        options = "\n".join(f"{n}: {describe(o)}" for n, o in zip(names, question.options, strict=True))
        system = (
            f"{question.instructions}\nThe user message is the e-mail as JSON data.\n\n{options}\n\n"
            f"Answer with the label of one option ({names[0]} to {names[-1]}) and nothing else."
        )
        return {
            "model": model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": mail_json(mail)},
            ],
            "max_tokens": 1,
            # The distribution is read, not the sampled token; some servers report it after applying the temperature.
            "temperature": 1,
            "logprobs": True,
            "top_logprobs": TOP_LOGPROBS,
            "stream": False,
        }

    def read(self, model: str, question: Question, data: object) -> Reading | Unusable:
        choices = sequence(mapping(data).get("choices"))
        if not choices:
            return Unusable("no_answer", "The response holds no choice.")
        first = mapping(choices[0])
        if mapping(first.get("message")).get("refusal") or first.get("finish_reason") == "content_filter":
            return Unusable("refusal", "The model refused to judge this mail.")
        tokens = sequence(mapping(first.get("logprobs")).get("content"))
        alternatives = sequence(mapping(tokens[0]).get("top_logprobs")) if tokens else ()
        if not alternatives:
            message = "The server sends no top_logprobs. Use a server or model that does: a chat model's word alone "
            return Unusable("no_logprobs", message + "is not a probability.")
        checked = _distribution(question, alternatives)
        if isinstance(checked, Unusable):
            return checked
        return Reading(distribution=checked, model=model_name(mapping(data).get("model"), model))


def labels(n: int) -> tuple[str, ...]:
    """`n` labels (at most 20) of one token each, none the beginning of another."""
    return tuple(string.digits[1 : n + 1] if n <= 9 else string.ascii_uppercase[:n])


def _distribution(question: Question, alternatives: object) -> Distribution | Unusable:
    by_label = dict(zip(labels(len(question.options)), question.ids, strict=True))
    mass = dict.fromkeys(question.ids, 0.0)
    for item in sequence(alternatives):
        token, logprob = mapping(item).get("token"), mapping(item).get("logprob")
        if not isinstance(token, str):
            return Unusable("bad_logprobs", "The server's top_logprobs cannot be read.")
        if isinstance(logprob, bool) or not isinstance(logprob, int | float) or not logprob <= 1e-3:
            return Unusable("bad_logprobs", "A log-probability is not a number of at most 0.")
        option = by_label.get(token.strip().strip("().:*\"'`"))
        if option is not None:
            mass[option] += math.exp(logprob)
    held = math.fsum(mass.values())
    if held < LEAST_MASS:
        message = f"The options hold only {held:.2f} of the probability: the model does not answer with a label."
        return Unusable("little_mass", message + " A model that thinks first cannot be used; switch thinking off.")
    rest = max(0.0, 1.0 - held) / len(mass)
    checked = check_distribution(question, None, {option: p + rest for option, p in mass.items()})
    if isinstance(checked, Unusable):
        return checked
    repaired = ("unassigned_mass",) if held < 0.98 else ()
    return Distribution(checked.choice, checked.probabilities, repaired)
