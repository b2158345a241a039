"""The remote providers by the name they bear in the configuration."""

from __future__ import annotations

from triage.decide.http import JsonHttp
from triage.decide.openai_chat import OpenAIChat
from triage.decide.openai_decisions import OpenAIDecisions
from triage.decide.remote import RemoteProvider, Wire
from triage.decide.systemone import SystemOne
from triage.ports import Clock

_WIRES: dict[str, type[SystemOne] | type[OpenAIDecisions] | type[OpenAIChat]] = {
    wire.name: wire for wire in (SystemOne, OpenAIDecisions, OpenAIChat)
}


def remote_provider(
    provider: str,
    *,
    base_url: str,
    model: str,
    clock: Clock,
    api_key: str | None = None,
    timeout_s: float = 10.0,
    retries: int = 2,
    max_options: int | None = None,
    connections: int = 20,
) -> RemoteProvider:
    """Build a provider from one entry of the chain; `connections` is the batch's concurrency.

    Raises ConfigError if the address or the key cannot be used, KeyError on a provider that is not remote.
    """
    wire: Wire = _WIRES[provider]()
    http = JsonHttp(
        name=provider,
        base_url=base_url,
        clock=clock,
        api_key=api_key,
        timeout_s=timeout_s,
        retries=retries,
        connections=connections,
    )
    return RemoteProvider(wire, http, model, option_limit=max_options)
