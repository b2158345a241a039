"""A decision model that answers from a table by subject: a fake at the Provider port, with a count of its asks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from triage.domain.decision import Answer, Failure, Question
from triage.domain.mail import PreparedMail


class TableProvider:
    """`table` maps a subject to (option, probability of it), or to a Failure; the rest shares what is left.

    Thread-safe. `asked` counts the asks by subject.
    """

    name = "table"
    model = "table-1"

    def __init__(
        self, table: Mapping[str, tuple[str, float] | Failure], default: tuple[str, float] | None = None
    ) -> None:
        self._table = dict(table)
        self._default = default
        self._lock = threading.Lock()
        self.asked: Counter[str] = Counter()

    def ask(
        self, question: Question, mail: PreparedMail, deadline: float, stop: threading.Event | None = None
    ) -> Answer | Failure:
        with self._lock:
            self.asked[mail.subject] += 1
        told = self._table.get(mail.subject, self._default)
        assert told is not None, f"the table has no line for {mail.subject!r}"
        if isinstance(told, Failure):
            return told
        choice, p = told
        rest = (1 - p) / (len(question.ids) - 1)
        probabilities = {option: p if option == choice else rest for option in question.ids}
        return Answer(choice, probabilities, self.name, self.model, input_tokens=100, provider_confidence=p)

    def close(self) -> None:
        pass
