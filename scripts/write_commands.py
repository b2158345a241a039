"""Write docs/commands.md from the commands themselves; a test holds that it is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.main import get_command

from triage.cli.main import app

PATH = Path(__file__).resolve().parent.parent / "docs" / "commands.md"
HEAD = """# Commands

Exit codes: 0 fine, 1 the check found something or a run failed, 2 usage or configuration (`triage tool` has one code
a state, see [mail-tool.md](mail-tool.md)). `--config DIR` names the directory of triage.yaml; without it
$TRIAGE_CONFIG, ./config, ~/.config/triage and /etc/triage are looked at in this order. `--json` prints data for
programs on stdout; what is for people only goes to stderr.
"""


def text() -> str:
    """The page."""
    parts = [HEAD]
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        parts.append(f"\n## triage {name}\n\n{_sentence(command)}\n")
        subcommands: dict[str, Any] = getattr(command, "commands", {})
        if subcommands:
            parts += [
                f"\n### triage {name} {sub}\n\n{_sentence(each)}\n{_options(each)}" for sub, each in subcommands.items()
            ]
        else:
            parts.append(_options(command))
    return "".join(parts)


def _sentence(command: Any) -> str:
    return " ".join((command.help or "").split())


def _options(command: Any) -> str:
    rows = [f"| `{_spelling(p)}` | {p.help or ''} |" for p in command.params if p.name != "help"]
    return "\n| | |\n| --- | --- |\n" + "\n".join(rows) + "\n" if rows else ""


def _spelling(parameter: Any) -> str:
    return ", ".join(parameter.opts) if parameter.param_type_name == "option" else str(parameter.name).upper()


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
