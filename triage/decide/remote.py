"""A decision model behind HTTP: one wire format, one server, one question at a time."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from triage.decide.answers import Distribution, Unusable, mapping, model_name, usage
from triage.decide.cost import estimate_tokens
from triage.decide.endpoint import is_private
from triage.decide.question import NEUTRAL_MAIL, fit_question, mail_fields
from triage.decide.reply import HttpFailure, Reply
from triage.domain.decision import Answer, Failure, FailureKind, Question
from triage.domain.mail import PreparedMail

if TYPE_CHECKING:
    from triage.decide.http import JsonHttp


@dataclass(frozen=True, slots=True)
class Reading:
    """What a wire format reads out of a response."""

    distribution: Distribution
    model: str
    provider_confidence: float | None = None


class Wire(Protocol):
    """One wire format: how the question and a mail are written, how the answer is read. Pure."""

    name: str
    path: str
    option_limit: int | None

    def request(self, model: str, question: Question, mail: PreparedMail) -> dict[str, object]: ...
    def read(self, model: str, question: Question, data: object) -> Reading | Unusable: ...


class RemoteProvider:
    """A Provider (see `triage.ports`) over HTTP; thread-safe. `option_limit` is the most options the server takes.

    Where that limit is reached none-of-these is left out; a limit the server names in an error is learned. A mail that
    the server finds too long (413) is sent once more with half its text.
    """

    def __init__(self, wire: Wire, http: JsonHttp, model: str, *, option_limit: int | None = None) -> None:
        self.name = wire.name
        self.model = model
        limits = [limit for limit in (option_limit, wire.option_limit) if limit is not None]
        self.option_limit = min(limits) if limits else None
        self._wire = wire
        self._http = http

    def __repr__(self) -> str:
        return f"RemoteProvider({self.name!r}, {self.model!r}, {self._http.root!r})"

    @property
    def private(self) -> bool:
        """Is the server on this machine or a private network, as far as its name tells?"""
        return is_private(self._http.host)

    def close(self) -> None:
        self._http.close()

    def ask(
        self, question: Question, mail: PreparedMail, deadline: float, stop: threading.Event | None = None
    ) -> Answer | Failure:
        """Ask once, with bounded retries; `deadline` is a `Clock.monotonic` instant, `stop` ends a wait at once."""
        result = self._ask(question, mail, deadline, stop, neutral=False)
        if isinstance(result, Failure) and result.code == "too_large" and len(mail.body) > 1:
            shorter = replace(mail, body=mail.body[: len(mail.body) // 2], truncated=True)
            result = self._ask(question, shorter, deadline, stop, neutral=False)
            if isinstance(result, Answer):
                return replace(result, repaired=(*result.repaired, "mail_shortened"))
        return result

    def probe(self, question: Question, deadline: float) -> Answer | Failure:
        """Ask about a short mail of our own: what is refused now is refused for every mail."""
        return self._ask(question, NEUTRAL_MAIL, deadline, None, neutral=True)

    def _ask(
        self,
        question: Question,
        mail: PreparedMail,
        deadline: float,
        stop: threading.Event | None,
        *,
        neutral: bool,
    ) -> Answer | Failure:
        fitted = fit_question(question, self.option_limit)
        if fitted is None:
            return self._too_many(question)
        request = self._wire.request(self.model, fitted, mail)
        reply = self._http.post(self._wire.path, request, deadline=deadline, stop=stop, neutral=neutral)
        if isinstance(reply, HttpFailure):
            limit = reply.option_limit
            if limit is not None and limit < len(fitted.options):
                self.option_limit = limit
                if fit_question(question, limit) is not None:
                    return self._ask(question, mail, deadline, stop, neutral=neutral)
                return self._too_many(question)
            return Failure(reply.provider, reply.kind, reply.code, reply.message, reply.latency_ms)
        reading = self._wire.read(self.model, fitted, reply.data)
        if isinstance(reading, Unusable):
            return self._unusable(fitted, mail, reading, reply)
        return self._answer(fitted, mail, reading, reply, dropped=fitted is not question)

    def _answer(
        self, question: Question, mail: PreparedMail, reading: Reading, reply: Reply, *, dropped: bool
    ) -> Answer:
        question_size, mail_size = _sizes(question, mail)
        repaired = list(reading.distribution.repaired)
        told, output_tokens = usage(reply.data)
        tokens = question_size + mail_size if told is None else told
        if told is None:
            repaired.append("tokens_estimated")
        if dropped:
            repaired.append("none_not_offered")
        return Answer(
            choice=reading.distribution.choice,
            probabilities=reading.distribution.probabilities,
            provider=self.name,
            model=reading.model,
            latency_ms=reply.latency_ms,
            input_tokens=tokens,
            output_tokens=output_tokens or 0,
            question_tokens=math.floor(tokens * question_size / (question_size + mail_size)),
            provider_confidence=reading.provider_confidence,
            repaired=tuple(repaired),
        )

    def _unusable(self, question: Question, mail: PreparedMail, why: Unusable, reply: Reply) -> Failure:
        """An answer that cannot be used was paid for like any other."""
        told, output_tokens = usage(reply.data)
        return Failure(
            provider=self.name,
            kind=FailureKind.UNUSABLE,
            code=why.code,
            message=why.message,
            latency_ms=reply.latency_ms,
            model=model_name(mapping(reply.data).get("model"), self.model),
            input_tokens=sum(_sizes(question, mail)) if told is None else told,
            output_tokens=output_tokens or 0,
        )

    def _too_many(self, question: Question) -> Failure:
        message = (
            f"{len(question.options)} options are more than {self.model} at {self._http.host} takes: the limit is "
            f"{self.option_limit}. Use fewer categories or another provider."
        )
        return Failure(self.name, FailureKind.CONFIGURATION, "too_many_options", message)


def _sizes(question: Question, mail: PreparedMail) -> tuple[int, int]:
    """The question and the mail in estimated tokens, for servers that do not count and for the split."""
    asked = sum(estimate_tokens(o.id) + estimate_tokens(o.criteria) for o in question.options)
    return asked + estimate_tokens(question.instructions), estimate_tokens(
        json.dumps(mail_fields(mail), ensure_ascii=False)
    )
