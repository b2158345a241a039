"""How fast the chain decides, and what it makes of every fault a server can have.

python bench/decide.py            decisions side by side against a local server with a fixed latency
python bench/decide.py --faults   whole runs against every fault of `jevcompat mock` and an adversarial server, a table
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from triage import logs  # noqa: E402 - runs from a checkout too
from triage.clock import SystemClock  # noqa: E402
from triage.decide.chain import Chain  # noqa: E402
from triage.decide.cost import SpendGuard  # noqa: E402
from triage.decide.link import Link  # noqa: E402
from triage.decide.providers import remote_provider  # noqa: E402
from triage.decide.question import build_question  # noqa: E402
from triage.domain.category import Category, CategorySet  # noqa: E402
from triage.domain.decision import Ruling  # noqa: E402
from triage.domain.mail import PreparedMail  # noqa: E402

IDS = (
    "action-required",
    "conversation",
    "notification",
    "receipt",
    "newsletter",
    "promotion",
    "spam",
    "hijack-attempt",
)
CATEGORIES = CategorySet("Bench", "unclassified", "Unclassified", tuple(Category(i, i, f"It is {i}.") for i in IDS))
QUESTION = build_question(CATEGORIES, offer_none=True)
ANSWER = {
    "model": "bench-1.0",
    "answers": {
        "category": {
            "type": "choice",
            "choice": "receipt",
            "confidence": 0.9,
            "probabilities": {i: (0.92 if i == "receipt" else 0.01) for i in QUESTION.ids},
        }
    },
    "usage": {"input_tokens": 700, "output_tokens": 0},
}


class Fixed(asyncio.Protocol):
    """Answers each request after the same time; keeps the connection open. Nothing but that, to be no bottleneck."""

    def __init__(self, latency_s: float) -> None:
        body = json.dumps(ANSWER).encode()
        self._answer = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        self._latency_s = latency_s
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *([0-9]+)", head) if found else None
        if length and len(rest) >= int(length[1]):
            self._received = b""
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, self._answer)  # type: ignore[attr-defined]


def serve(latency_s: float, tell: Connection) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Fixed(latency_s), "127.0.0.1", 0, backlog=256)
        tell.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(latency_s, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


class Breakers:
    """A BreakerStore in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Mapping[str, object]] = {}

    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return self.values.get(key)

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        self.values[key] = value


def mails(n: int) -> dict[int, PreparedMail]:
    body = "Thank you for your order. Your payment was received and the parcel is on its way. " * 15
    return {i: PreparedMail("shop@example.com", "team@example.com", f"Order {i}", body) for i in range(n)}


def a_chain(url: str, concurrency: int, api_key: str | None = None) -> Chain:
    clock = SystemClock()
    provider = remote_provider(
        "systemone", base_url=url, model="jev-latest", clock=clock, connections=concurrency, api_key=api_key
    )
    return Chain(
        [Link(provider, "bench", 0)],
        clock=clock,
        breakers=Breakers(),
        spend=SpendGuard(lambda: 0.0, None),
        concurrency=concurrency,
    )


def decide(chain: Chain, batch: Mapping[int, PreparedMail]) -> dict[int, Ruling]:
    rulings: dict[int, Ruling] = {}
    chain.decide(
        QUESTION,
        batch,
        deadline=time.monotonic() + 300,
        stop=threading.Event(),
        on_rulings=rulings.update,
    )
    return rulings


def rss_mib() -> float:
    """Resident memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def speed() -> None:
    with server(0.2) as url:
        chain = a_chain(url, 20)
        cold = timed(chain, 20)
        warm = min(timed(chain, 20) for _ in range(3))
        chain.close()
    print(f"20 decisions, server 200 ms, concurrency 20: {cold:.3f} s cold, {warm:.3f} s warm (demand: under 0.5 s)")
    with server(0.05) as url:
        chain = a_chain(url, 16)
        timed(chain, 200)
        before = rss_mib()
        for round_ in range(1, 4):
            cpu = time.process_time()
            took = timed(chain, 2000)
            cpu = time.process_time() - cpu
            print(
                f"2,000 decisions, server 50 ms, concurrency 16, round {round_}: {2000 / took:.0f}/s (demand: 250/s, "
                f"possible: 320/s), {cpu / 2:.2f} ms CPU each, RSS {before:.1f} -> {rss_mib():.1f} MiB"
            )
        chain.close()


def timed(chain: Chain, n: int) -> float:
    batch = mails(n)
    started = time.perf_counter()
    rulings = decide(chain, batch)
    took = time.perf_counter() - started
    assert sum(r.answer is not None for r in rulings.values()) == n
    return took


def faults() -> None:
    """A whole run on a mail server of its own for each; exit 1 if one does harm."""
    from fakes.http_stub import HttpStub
    from services.dovecot import Dovecot
    from services.jevcompat import FAULTS, faulty
    from support.odd_model import ADVERSARIES, HEAD, MAILS, Aftermath, run_against

    logs.configure("error", "auto")
    harm = 0
    print(f"Whole runs of {len(MAILS)} mails on Dovecot, one for each fault\n{'fault':<24}{HEAD}")

    def tell(name: str, found: Aftermath) -> None:
        nonlocal harm
        harm += bool(found.wrong)
        print(f"{name:<24}{found.row()}" + "".join(f"\n    WRONG: {what}" for what in found.wrong), flush=True)

    with Dovecot("maildir") as server, tempfile.TemporaryDirectory() as folder:
        for n, name in enumerate(("none", *FAULTS)):
            with faulty(name) as url:
                tell(name, run_against(server, f"fault{n}", _folder(folder, f"fault{n}"), url))
        for n, (name, script) in enumerate(ADVERSARIES.items()):
            with HttpStub(script) as stub:
                tell(name, run_against(server, f"odd{n}", _folder(folder, f"odd{n}"), stub.url))
    print(f"{harm} of {len(FAULTS) + 1 + len(ADVERSARIES)} did harm")
    if harm:
        raise SystemExit(1)


def _folder(parent: str, name: str) -> Path:
    folder = Path(parent) / name
    folder.mkdir()
    return folder


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    arguments.add_argument("--faults", action="store_true", help="whole runs against every fault, as a table")
    if arguments.parse_args().faults:
        faults()
    else:
        speed()
