"""Feed broken mail to preparation and see that it holds its promises; `make fuzz` runs 200,000 inputs.

Inputs are the mails of tests/cases/prepare with bytes changed, cut, repeated and spliced, and messages put together by
hypothesis from hostile pieces. Promises: no exception, under a second of processor time, output within its caps, valid
UTF-8, no control characters, no attachment chosen. Exit 1 if one was broken; the input is written to --keep DIR.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from hypothesis import seed as hypothesis_seed  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from triage.prepare import choose_parts, prepare, read_message  # noqa: E402

CASES = ROOT / "tests" / "cases" / "prepare"
LIMIT_S = 1.0
MAX_INPUT = 150_000
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

PIECES: tuple[bytes, ...] = (
    b"\x00", b"\xff", b"\x80", b"\x1b$B", b"\r", b"\n", b"\r\n\r\n", b"--", b"=", b"=\r\n", b"=3D", b"=?utf-8?b?",
    b"?=", b"=?x?q?=00=0D=0A?=", b"<", b">", b"<!--", b"-->", b"<style>", b"</style>", b"<script>", b"<title>",
    b"<pre>", b"&#0;", b"&#xD800;", b"&nbsp;", b'"', b"'", b"(", b")", b"[", b"](", b"[](", b"https://",
    b"http://a.example/", b"www.", b"mailto:", b"> ", b">" * 50, b"-- \n", b"On Tue, 3 Mar 2026 Tom wrote:\n",
    b"From: a\nSent: b\nTo: c\n", b"-----Original Message-----\n", b"-----BEGIN PGP MESSAGE-----",
    b"begin 644 x\n", b"\xe2\x80\x8b", b"\xe2\x80\xae", b"\xf3\xa0\x81\x81", b"\xed\xa0\x80",
    b"Content-Type: text/html; charset=utf-7\n", b"Content-Type: multipart/mixed; boundary=\"x\"\n\n--x\n",
    b"--x\n", b"--x--\n", b"Content-Type: message/rfc822\n\n", b"Content-Transfer-Encoding: base64\n",
    b"Content-Type: text/plain; charset*0*=a'b'c\n", b"Content-Transfer-Encoding: quoted-printable\n",
    b"charset=utf-16", b"charset=iso-2022-jp", b"charset=hz", b"format=flowed", b"<div style='display:none'>",
    b"<b a=1><p>", b"<table><td>", b"<blockquote type=cite>", b"<p style=\"color:#fff\">", b"BEGIN:VCALENDAR\n",
    b"SUMMARY:x\n", b"+2D0-", b"~{", b"\xa4\xa4", b" " * 300, b"a" * 300, b"." * 300, b"_" * 80, b"/" * 90,
)  # fmt: skip


def seeds() -> list[bytes]:
    """The mails that inputs are made from, sorted by name."""
    return [p.read_bytes()[:40_000] for p in sorted(CASES.glob("*.eml"))]


def mutate(rng: random.Random, mails: list[bytes]) -> bytes:
    """One input: a mail changed in one to eight places."""
    data = bytearray(rng.choice(mails))
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 2, 8, 40, 400, 4000)))
        match rng.randrange(8):
            case 0:
                data[at:end] = b""
            case 1:
                data[at:at] = rng.choice(PIECES)
            case 2:
                data[at:at] = data[at:end] * rng.choice((1, 2, 10, 100))
            case 3:
                data[at:end] = rng.randbytes(end - at)
            case 4:
                other = rng.choice(mails)
                start = rng.randrange(len(other) + 1)
                data[at:] = other[start:]
            case 5:
                data[at:at] = rng.choice(PIECES) * rng.choice((2, 20, 500, 5000))
            case 6:
                del data[at:]
            case _:
                for _ in range(rng.randrange(1, 20)):
                    if data:
                        data[rng.randrange(len(data))] = rng.randrange(256)
        del data[MAX_INPUT:]
    return bytes(data)


def hostile_messages() -> st.SearchStrategy[bytes]:
    """Messages put together from hostile pieces, random bytes and text."""
    piece = st.one_of(st.sampled_from(PIECES), st.binary(max_size=30), st.text(max_size=30).map(_bytes))
    run = st.tuples(piece, st.sampled_from((1, 1, 1, 2, 30, 800))).map(lambda p: p[0] * p[1])
    name = st.sampled_from(
        (b"From", b"To", b"Subject", b"Content-Type", b"Content-Transfer-Encoding", b"References", b"X")
    )
    kind = st.sampled_from(
        (b"text/plain", b"text/html", b"multipart/mixed; boundary=x", b"text/html; charset=gbk", b"text/x")
    )
    field = st.one_of(
        st.tuples(name, st.lists(piece, max_size=4).map(b"".join)).map(lambda f: f[0] + b": " + f[1] + b"\r\n"),
        kind.map(lambda k: b"Content-Type: " + k + b"\r\n"),
    )
    head, body = st.lists(field, max_size=6).map(b"".join), st.lists(run, max_size=12).map(b"".join)
    return st.tuples(head, body).map(lambda m: (m[0] + b"\r\n" + m[1])[:MAX_INPUT])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def fault(raw: bytes, max_chars: int) -> tuple[str, float]:
    """What promise an input broke ("" for none), and the processor seconds it took."""
    started = time.process_time()
    try:
        source = read_message(raw)
        mail = prepare(source, max_chars=max_chars)
        chosen = choose_parts(source.structure)
    except Exception as error:  # noqa: BLE001 - the promise is that nothing is ever raised
        return f"{type(error).__name__}: {error}"[:200], time.process_time() - started
    seconds = time.process_time() - started
    shown = (mail.sender, mail.recipient, mail.subject, mail.body, *mail.signals.headers.values())
    if seconds >= LIMIT_S:
        return f"took {seconds:.2f} s", seconds
    if len(mail.body) > max_chars or len(mail.subject) > 400 or max(len(mail.sender), len(mail.recipient)) > 400:
        return "output over its cap", seconds
    if any(CONTROL.search(text) for text in shown) or any("\n" in text for text in (*shown[:3], *shown[4:])):
        return "control characters in the output", seconds
    if any(part.type != "text" or cap > 100_000 for part, cap in choose_parts(source.structure)) or len(chosen) > 8:
        return "chose what is no text", seconds
    return "", seconds


def _run(job: tuple[int, int, int]) -> tuple[Counter[str], float, list[bytes]]:
    """One worker's share: mutations, then a twentieth of it from hypothesis."""
    seed, count, worker = job
    rng = random.Random(f"{seed}/{worker}")
    mails, faults, slowest, kept = seeds(), Counter[str](), 0.0, list[bytes]()

    def look(raw: bytes) -> None:
        nonlocal slowest
        found, seconds = fault(raw, rng.choice((6000, 6000, 400, 20)))
        slowest = max(slowest, seconds)
        faults["inputs"] += 1
        if found:
            faults[found] += 1
            if len(kept) < 20:
                kept.append(raw)

    strategic = count // 20
    for _ in range(count - strategic):
        look(mutate(rng, mails))
    if strategic:
        quiet = settings(
            max_examples=strategic, database=None, deadline=None, suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )  # fmt: skip
        hypothesis_seed(seed + worker)(quiet(given(hostile_messages())(look)))()
    return faults, slowest, kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for inputs that broke a promise")
    options = parser.parse_args()
    started = time.perf_counter()
    total, slowest, kept = Counter[str](), 0.0, list[bytes]()
    jobs = [(options.seed, options.count // options.workers, n) for n in range(options.workers)]
    with multiprocessing.Pool(options.workers) as pool:
        for faults, seconds, raws in pool.imap_unordered(_run, jobs):
            total += faults
            slowest = max(slowest, seconds)
            kept += raws
    inputs = total.pop("inputs", 0)
    seconds = time.perf_counter() - started
    print(f"{inputs} inputs in {seconds:.0f} s, slowest {slowest * 1000:.0f} ms, seed {options.seed}")
    for found, times in total.most_common():
        print(f"  {times} x {found}")
    if options.keep and kept:
        options.keep.mkdir(parents=True, exist_ok=True)
        for n, raw in enumerate(kept):
            (options.keep / f"{n:03}.eml").write_bytes(raw)
    print("no promise broken" if not total else f"{sum(total.values())} broken promises")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
