"""How calls of the mail tool ended, for the report: the rates that show trouble first. Pure."""

from __future__ import annotations

from typing import Any

from triage.domain.tool import Rates


def tool_words(rates: Rates) -> str:
    """The rates in a sentence."""
    told = (
        (rates.forbidden, "forbidden"),
        (rates.timeout, "timeout"),
        (rates.inconsistent_run, "naming a run that was not the caller's, or not the mailbox's"),
    )
    shares = ", ".join(f"{rates.share(n):.1%} ({n:,}) {what}" for n, what in told)
    return f"{rates.calls:,} {'call' if rates.calls == 1 else 'calls'}: {shares}."


def tool_json(rates: Rates) -> dict[str, Any]:
    """The rates for `triage report --json`."""
    return {
        "calls": rates.calls,
        "forbidden": rates.forbidden,
        "forbidden_share": rates.share(rates.forbidden),
        "timeout": rates.timeout,
        "timeout_share": rates.share(rates.timeout),
        "inconsistent_run": rates.inconsistent_run,
        "inconsistent_run_share": rates.share(rates.inconsistent_run),
        "by_state": dict(sorted(rates.by_state.items())),
    }
