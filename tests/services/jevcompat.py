"""The System One reference mock as a process of its own, with any of its faults switched on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jevcompat.mock import FAULTS as FAULTS

NEEDS_KEY = ("auth-x-api-key", "auth-plain", "auth-invalid-403-text")
"""Faults that show only where a key is asked for."""


@contextmanager
def mock(*arguments: str) -> Iterator[str]:
    """Run `jevcompat mock`; its address. `arguments` as on its command line."""
    code = "import sys; from jevcompat.cli import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "mock", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr
        found = re.search(r"http://[0-9.]+:[0-9]+", process.stderr.readline())
        assert found
        yield found[0]
    finally:
        process.terminate()
        process.wait(10)
        if process.stderr:
            process.stderr.close()


@contextmanager
def faulty(fault: str, key: str = "a-key") -> Iterator[str]:
    """The mock with one fault ("none" for none) that takes `key`."""
    arguments = [] if fault == "none" else ["--fault", fault]
    if fault in NEEDS_KEY:
        arguments += ["--key", key]
    with mock(*arguments) as url:
        yield url
