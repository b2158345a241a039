"""A whole triage on one account of a test server, with a decision model of the test's choice."""

from __future__ import annotations

import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from triage.bootstrap import App
from triage.config.secret import Secret
from triage.config.settings import AccountSettings, DecisionSettings, ProviderSettings, ScheduleSettings, Settings
from triage.domain.category import Action, Category, CategorySet
from triage.domain.record import Run, Trigger
from triage.ports import Clock, Provider
from triage.schedule.worker import LEASE, work

CATEGORIES = CategorySet(
    parent="Triage",
    fallback_id="unclassified",
    fallback_name="Unclassified",
    categories=(
        Category("action-required", "Action required", "Asks for something."),
        Category("conversation", "Conversation", "People talking."),
        Category("newsletter", "Newsletter", "Bulk mail.", action=Action.ARCHIVE),
        Category("receipt", "Receipt", "Settled payments.", action=Action.ARCHIVE),
        Category("hijack-attempt", "Hijack attempt", "Gives orders to a machine."),
    ),
)


class TestApp(App):
    """An App whose chain is the providers of the test, in order."""

    __test__ = False

    def __init__(self, settings: Settings, providers: list[Provider], clock: Clock | None = None) -> None:
        super().__init__(settings, clock)
        self.providers = providers

    def provider(self, settings: ProviderSettings) -> Provider:
        return self.providers[self.settings.decision.chain.index(settings)]


def settings_for(
    directory: Path, port: int, user: str = "desk", password: str = "open-sesame", ledger: str = "", **changes: Any
) -> Settings:
    """One account on a server of this machine; `changes` go to the account, `decision` to the decision."""
    decision = changes.pop("decision", None) or DecisionSettings(
        chain=(ProviderSettings("systemone", model="table-1"),)
    )
    account: dict[str, Any] = {
        "name": "team",
        "host": "127.0.0.1",
        "port": port,
        "security": "plain",
        "username": user,
        "credential": Secret.of(password),
        "categories": CATEGORIES,
        "categories_file": directory / "categories.yaml",
        "since": date(2020, 1, 1),
        "addresses": ("desk@desk.example",),
        "schedule": ScheduleSettings(),
    }
    return Settings(
        file=directory / "triage.yaml",
        ledger=ledger or f"sqlite:///{directory}/triage.db",
        decision=decision,
        accounts=(AccountSettings(**(account | changes)),),
        http=None,
    )


def make_run(
    app: App,
    *,
    account: str = "team",
    options: dict[str, str] | None = None,
    trigger: Trigger = Trigger.MANUAL,
    stop: threading.Event | None = None,
    lease: timedelta = LEASE,
) -> Run:
    """Queue one run and make it here."""
    queued = app.ledger.enqueue(account, trigger, app.clock.now(), options)
    assert queued is not None
    run = work(app.workplace(stop, lease), run_id=queued.id)
    assert run is not None
    return run
