"""`triage health`: exit 0 if every enabled account is being sorted, 1 if not. Fit for a container's health check."""

from __future__ import annotations

from triage.checkup import check_up
from triage.cli import open as parts
from triage.cli.render import check_report
from triage.cli.theme import make_console
from triage.report.finding import Finding
from triage.report.health import AccountHealth
from triage.report.health_json import health_report, is_healthy


def health_command(config: str | None, *, as_json: bool) -> int:
    """Look at each account now and say how it is doing."""
    with parts.opened(config) as app:
        accounts = check_up(app)
    healthy = is_healthy(accounts)
    if as_json:
        parts.print_json(health_report(accounts))
    else:
        make_console().print(check_report([item for a in accounts for item in _items(a)]))
    return 0 if healthy else 1


def _items(health: AccountHealth) -> list[Finding]:
    if not health.enabled:
        return [Finding("warn", health.account, "its schedule is switched off (schedule.enabled: false)")]
    items = [Finding("fail", health.account, problem) for problem in health.problems]
    if not items:
        finished = health.last_finished
        when = (
            f"last run {finished.finished_at:%Y-%m-%d %H:%M} UTC" if finished and finished.finished_at else "no run yet"
        )
        waits = (
            f"oldest waiting message {(health.oldest_age_s or 0) // 60} min old"
            if health.oldest_unlabelled
            else ("nothing waits")
        )
        items.append(Finding("ok", health.account, f"{when}; {waits}; {health.queue_depth} run(s) queued"))
    items += [Finding("warn", f"model {name}", state) for name, state in health.breakers.items() if state != "closed"]
    return items
