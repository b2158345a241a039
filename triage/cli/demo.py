"""`triage demo`: a sample mailbox on a server inside the process, sorted by ordinary runs, and what came of it."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console

from triage.cli import demo_text, theme
from triage.clock import SystemClock
from triage.demo.config import write_config
from triage.demo.mails import Sample, sample_mails
from triage.domain.errors import ConfigError

if TYPE_CHECKING:
    from triage.demo.server import DemoServer

DAYS_BACK = 3


def demo_command(*, keep: bool = False, port: int | None = None, console: Console | None = None) -> int:
    """Sort the sample and show what came of it; 0 if everything was sorted and every invariant held, else 1.

    With `keep` the server stays up afterwards until Ctrl-C, for a mail client. Without `port` it takes a free one.
    Raises ConfigError when pymap is not installed or the port is taken.
    """
    console = console or theme.make_console()
    now = SystemClock().now()
    samples = sample_mails(now)
    console.print(demo_text.intro(samples))
    console.print()
    with tempfile.TemporaryDirectory(prefix="triage-demo-") as scratch, _server(samples, port or 0) as server:
        directory = Path(scratch)
        write_config(directory, server.address, now.date() - timedelta(days=DAYS_BACK), dashboard=keep)
        from triage.cli import demo_run  # takes a second or two, which the introduction fills

        clean = demo_run.sort_and_tell(directory, samples, console)
        console.print()
        if keep:
            with demo_run.dashboard(directory) as dashboard:
                console.print(demo_text.invitation(server.address, directory, dashboard))
                _wait_for_the_end()
            console.print("\nThe mailbox is closed; nothing is left of it.")
        else:
            console.print(demo_text.next_steps())
    return 0 if clean else 1


@contextmanager
def _server(samples: Sequence[Sample], port: int) -> Iterator[DemoServer]:
    try:
        from triage.demo.server import DemoServer
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the demo needs {missing.name}; install it with: pip install 'triage[demo]'") from None
    with ExitStack() as stack:
        try:
            server = stack.enter_context(DemoServer(samples, port=port))
        except OSError as error:
            raise ConfigError(
                f"--port {port}: cannot be used ({error.strerror}); leave it out for a free one"
            ) from None
        yield server


def _wait_for_the_end() -> None:
    """Until Ctrl-C or SIGTERM."""
    end = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        end.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        end.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
