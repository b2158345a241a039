"""The commands about what was done, as an operator types them: exit codes, JSON, and files, on a real mailbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.dovecot import Dovecot, Mail
from services.ledger import run_sql
from support.tool_past import use_tool
from triage.cli.main import run_cli

LIST = "List-Id: Weekly <weekly.sender.example>\r\nList-Unsubscribe: <https://x.example/u>\r\nPrecedence: bulk\r\n"
MAILS = [
    Mail("This week in cooking: issue 12", "<1@x.example>", "Five articles. You subscribed.", headers=LIST),
    Mail("Can you sign the contract by Friday?", "<2@x.example>", "Please sign it and send it back to me."),
]
Cli = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A configured account whose mail was sorted by one run of the built-in classifier."""
    directory = tmp_path_factory.mktemp("site")
    with Dovecot("sdbox") as server:
        server.append("desk", MAILS)
        (directory / "pw").write_text(server.password)
        (directory / "pw").chmod(0o600)
        (directory / "triage.yaml").write_text(
            "http: false\naccounts:\n  - {name: team, host: 127.0.0.1, security: plain, username: desk, "
            f"since: 2020-01-01, port: {server.port}, password: {{file: pw}}}}\n"
        )
        preset = Path(__file__).parents[2] / "triage" / "config" / "presets" / "en.yaml"
        (directory / "categories.yaml").write_text(preset.read_text("utf-8"), "utf-8")
        assert run_cli(["run", "--config", str(directory), "--json"]) == 0
        yield directory


@pytest.fixture
def cli(site: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run_cli([*arguments, "--config", str(site)])
        return code, capsys.readouterr().out

    return call


def test_audit_says_that_all_holds_and_exits_0(cli: Cli) -> None:
    code, out = cli("audit", "--json")
    told = json.loads(out)
    assert (code, told["holds"], [i["id"] for i in told["invariants"]]) == (0, True, [1, 2, 3, 4, 5, 6])
    assert {"holds", "checked", "violations", "how"} <= told["invariants"][0].keys()
    code, out = cli("audit")
    assert code == 0
    assert "Everything holds" in out


def test_audit_exits_1_and_names_a_receipt_of_the_mail_tool_that_was_edited(cli: Cli, site: Path) -> None:
    ledger = f"sqlite:///{site / 'triage.db'}"
    receipt = str(use_tool(ledger, datetime.now(UTC))[0].receipt_id)
    before = str(run_sql(ledger, f"SELECT reason FROM tool_receipts WHERE id = '{receipt}'")[0][0])
    run_sql(ledger, f"UPDATE tool_receipts SET reason = 'x' WHERE id = '{receipt}'")
    code, out = cli("audit", "--json")
    words = cli("audit")[1]
    run_sql(ledger, f"UPDATE tool_receipts SET reason = '{before}' WHERE id = '{receipt}'")
    assert (code, json.loads(out)["holds"]) == (1, False)
    assert receipt in json.loads(out)["receipts"]["violations"][0]
    assert "No receipt of the mail tool" in words
    assert cli("audit")[0] == 0


def test_report_writes_its_three_forms(cli: Cli, site: Path) -> None:
    code, out = cli("report", "--json")
    (told,) = json.loads(out)
    assert (code, told["decisions"], told["account"]) == (0, 2, "team")
    assert told["mail_tool"]["calls"] == sum(told["mail_tool"]["by_state"].values())
    code, out = cli("report")
    assert (code, "2 decisions" in out) == (0, True)
    code, _ = cli("report", "--html", str(site / "report.html"))
    assert code == 0
    assert (site / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_show_message_export_and_suggest(cli: Cli) -> None:
    code, out = cli("export")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, len(rows)) == (0, 2)
    code, out = cli("show", "--message", rows[0]["message_key"][:8])
    assert (code, "The label" in out) == (0, True)
    assert cli("show", "--message", "ffffffffffffffffffffffffffffffff")[0] == 2
    code, out = cli("export", "--format", "csv")
    assert (code, len(out.splitlines())) == (0, 3)
    assert cli("export", "--format", "xml")[0] == 2
    assert cli("suggest")[0] == 0
    assert cli("audit", "--since", "soon")[0] == 2


def test_replay_of_the_same_categories_flips_nothing(cli: Cli, site: Path) -> None:
    code, out = cli("replay", str(site / "categories.yaml"), "--json")
    told = json.loads(out)
    assert (code, told["messages"], told["flips"], told["newly_archived"]) == (0, 2, [], [])


def test_undo_needs_to_be_told_what(cli: Cli) -> None:
    assert cli("undo")[0] == 2
    assert cli("forget")[0] == 2


def test_undo_shows_its_plan_and_then_takes_the_run_back(cli: Cli) -> None:
    run = json.loads(cli("runs", "--json")[1])[-1]["id"]
    code, out = cli("undo", run, "--dry-run", "--json")
    assert (code, json.loads(out)["taken_back"]) == (0, 0)
    code, out = cli("undo", run, "--json")
    assert (code, json.loads(out)["taken_back"]) == (0, 2)
    assert cli("audit")[0] == 0


def test_forget_removes_a_sender_and_the_chain_still_holds(cli: Cli) -> None:
    code, out = cli("forget", "--sender-domain", "Sender.Example", "--json")
    assert code == 0
    assert json.loads(out)["forgotten"] >= 2
    assert cli("forget", "--sender-domain", "sender.example")[0] == 1
    assert json.loads(cli("audit", "--json")[1])["chain"]["holds"]


def test_a_violation_makes_audit_exit_1(cli: Cli, site: Path) -> None:
    assert cli("run", "--json")[0] == 0
    run_sql(f"sqlite:///{site}/triage.db", "UPDATE runs SET counts = '{\"selected\"\\:21}'")
    code, out = cli("audit", "--json")
    assert code == 1
    assert any("holds 21 messages" in told for told in json.loads(out)["invariants"][3]["violations"])
