"""`python -m triage` and the `triage` command."""

from __future__ import annotations

import sys


def main() -> None:
    from triage.cli.main import run_cli

    sys.exit(run_cli(sys.argv[1:]))


if __name__ == "__main__":
    main()
