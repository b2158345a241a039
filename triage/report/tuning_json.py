"""The tuning report as plain values for JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from triage.report.text import stamp
from triage.report.tool_rates import tool_json
from triage.report.tuning import Report


def report_json(report: Report) -> dict[str, Any]:
    """`triage report --json`, one account."""
    return {
        "account": report.account,
        "since": stamp(report.since),
        "until": stamp(report.until),
        "decisions": report.decisions,
        "archived": report.archived,
        "asked": report.asked,
        "below_floor": report.below_floor,
        "below_floor_share": report.below_share,
        "inherited": report.inherited,
        "inherited_share": report.inherited_share,
        "recovered": report.recovered,
        "by_fallback": report.by_fallback,
        "fallback_share": report.fallback_share,
        "failed": report.failed,
        "days": [
            {"day": day.isoformat(), "decisions": n, "archived": archived, "cost_usd": usd}
            for day, (n, archived, usd) in report.days.items()
        ],
        "categories": [{**asdict(each), "action": each.action.value} for each in report.categories],
        "competing_pairs": [{**asdict(p), "count": p.count, "swaps": p.swaps} for p in report.pairs],
        "unsure_answers_read": report.pairs_read,
        "corrections": {
            "count": report.corrections.count,
            "relabelled": [{"from": a, "to": b, "count": n} for a, b, n in report.corrections.relabelled],
            "unlabelled": dict(report.corrections.unlabelled),
            "moved_back": dict(report.corrections.moved_back),
            "confirmed": dict(report.corrections.confirmed),
            "undone": report.corrections.undone,
        },
        "calibration": [{**asdict(c), "share_right": c.share_right} for c in report.calibration],
        "latency": [asdict(each) for each in report.latency],
        "models": [{**asdict(s), "first": stamp(s.first), "last": stamp(s.last)} for s in report.served],
        "cost": {
            **asdict(report.cost),
            "tail": [{"sender_domain": d, "mails": n, "input_tokens": t} for d, n, t in report.cost.tail],
        },
        "runs": [
            {"trigger": trigger, "state": state, "reason": reason or None, "count": n}
            for (trigger, state, reason), n in sorted(report.runs.items())
        ],
        "mail_tool": tool_json(report.tool),
        "advice": list(report.advice),
    }
