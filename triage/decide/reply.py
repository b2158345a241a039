"""What asking a server brought: its JSON, or why there is none. Apart from the HTTP library, which only askers load."""

from __future__ import annotations

from dataclasses import dataclass

from triage.domain.decision import Failure


@dataclass(frozen=True, slots=True)
class Reply:
    """A 2xx answer's parsed JSON and how long the whole ask took, retries and waits included."""

    data: object
    latency_ms: int


@dataclass(frozen=True, slots=True)
class HttpFailure(Failure):
    """A Failure with the limit of options that the server named, if it did."""

    option_limit: int | None = None
