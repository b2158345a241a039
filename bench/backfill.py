"""How fast `triage backfill` is: real Dovecot, a System One server that takes its time, an SQLite ledger.

    python bench/backfill.py [--messages 2000] [--delay-ms 100] [--profile]

The model server runs in a process of its own. Exit 1 below --least messages a second.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import multiprocessing
import pstats
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from services.dovecot import Dovecot, Mail  # noqa: E402
from support.premises import Premises  # noqa: E402
from triage import logs  # noqa: E402
from triage.bootstrap import App  # noqa: E402
from triage.cli.backfill import backfill  # noqa: E402
from triage.config.load import load  # noqa: E402

WORDS = ("invoice", "meeting", "deploy", "weekly", "offer", "contract", "reminder", "photos", "report", "question")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """System One on one kept-alive connection: every mail is a newsletter."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            lower = head.lower()
            length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            await asyncio.sleep(delay_s)
            options = list(asked["questions"]["category"]["criteria"])
            rest = 0.03 / (len(options) - 1)
            odds = {option: 0.97 if option == "newsletter" else rest for option in options}
            answer = {"type": "choice", "choice": "newsletter", "confidence": 0.97, "probabilities": odds}
            usage = {"input_tokens": 400, "output_tokens": 1}
            body = json.dumps({"model": "table-1", "answers": {"category": answer}, "usage": usage}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _serve(port: multiprocessing.SimpleQueue[int], delay_s: float) -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(r, w, delay_s), "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def model_server(delay_s: float) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    port: multiprocessing.SimpleQueue[int] = context.SimpleQueue()
    process = context.Process(target=_serve, args=(port, delay_s), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{port.get()}"
    finally:
        process.terminate()


def mails(count: int) -> list[Mail]:
    return [
        Mail(f"{WORDS[n % 10]} {n}", f"<{n}@x.example>", body="\r\n".join(f"Line {i} of a letter." for i in range(40)))
        for n in range(count)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--delay-ms", type=float, default=100.0)
    parser.add_argument("--least", type=float, default=60.0, help="messages a second that are asked for")
    parser.add_argument("--profile", action="store_true", help="show where this process spends its time")
    options = parser.parse_args()
    with (
        Dovecot("maildir") as server,
        model_server(options.delay_ms / 1000) as url,
        tempfile.TemporaryDirectory() as place,
    ):
        server.append("desk", mails(options.messages))
        premises = Premises(Path(place), server.port, server.password, url)
        premises.write({"team": "desk"}, since="2026-11-01")
        logs.configure("error")
        app = App(load(Path(place)))
        profile = cProfile.Profile()
        begin, cpu = time.perf_counter(), time.process_time()
        if options.profile:
            profile.enable()
        done, code, ended = backfill(app, "team", options.messages, lambda _: None)
        profile.disable()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        archived = len(server.flags("desk", "Archive"))
        app.close()
    rate = done / seconds
    print(f"{done} messages in {seconds:.1f} s: {rate:.0f} a second, a run of 20 in {20 / rate * 1000:.0f} ms, "
          f"{cpu / done * 1000:.1f} ms of CPU a message; "
          f"{archived} archived; exit {code}, {ended}")  # fmt: skip
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return 0 if rate >= options.least and done == options.messages else 1


if __name__ == "__main__":
    sys.exit(main())
