"""Preparation measured against what others do, in one run: speed, cases passed, characters left.

    python bench/preparation.py            # needs: pip install mail-parser html2text inscriptis

Labelled mail is read from $TRIAGE_SHARED/data (default ../shared beside the repository), rows with the raw message.
Rivals are given the best of their own documented use; one that is not installed is left out. Processor seconds, best of
three passes taken in turn, so that a busy machine slows all alike.
"""

from __future__ import annotations

import argparse
import email
import email.policy
import gzip
import importlib.util
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from triage.domain.mail import PreparedMail  # noqa: E402
from triage.prepare import prepare, read_message  # noqa: E402
from triage.prepare.body import read_body  # noqa: E402
from triage.prepare.charset import decode  # noqa: E402
from triage.prepare.choose import bodies  # noqa: E402
from triage.prepare.transfer import decode_transfer  # noqa: E402

SHARED = Path(os.environ.get("TRIAGE_SHARED", ROOT.parent / "shared"))
CASES = ROOT / "tests" / "cases" / "prepare"

Road = Callable[[bytes], PreparedMail]


def ours(raw: bytes) -> PreparedMail:
    return prepare(read_message(raw))


def get_body(raw: bytes) -> PreparedMail:
    """Standard library: policy.default and get_body."""
    message = email.message_from_bytes(raw, policy=email.policy.default)
    part = message.get_body(preferencelist=("plain", "html"))
    return PreparedMail(
        *(str(message.get(f, "")) for f in ("from", "to", "subject")), part.get_content() if part else ""
    )


def mail_parser(raw: bytes) -> PreparedMail:
    """mail-parser, its HTML through html2text."""
    import html2text
    import mailparser

    message = mailparser.parse_from_bytes(raw)
    text = "\n".join(message.text_plain) or "\n".join(map(html2text.html2text, message.text_html))
    people = (", ".join(" ".join(pair) for pair in found) for found in (message.from_, message.to))
    return PreparedMail(*people, message.subject, text)


def inscriptis(raw: bytes) -> PreparedMail:
    """Standard library for the mail, inscriptis for its HTML, HTML first."""
    from inscriptis import get_text

    message = email.message_from_bytes(raw, policy=email.policy.default)
    part = message.get_body(preferencelist=("html", "plain"))
    text = part.get_content() if part else ""
    if part and part.get_content_subtype() == "html":
        text = get_text(text)
    return PreparedMail(*(str(message.get(f, "")) for f in ("from", "to", "subject")), text)


def roads() -> dict[str, Road]:
    found: dict[str, Road] = {"triage": ours, "stdlib get_body": get_body}
    if importlib.util.find_spec("mailparser") and importlib.util.find_spec("html2text"):
        found["mail-parser + html2text"] = mail_parser
    if importlib.util.find_spec("inscriptis"):
        found["inscriptis"] = inscriptis
    return found


def labelled_mail() -> Iterator[bytes]:
    for path in sorted((SHARED / "data").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                raw = json.loads(line).get("raw")
                if raw:
                    yield raw.encode("utf-8", "surrogateescape")


def cases_passed(road: Road) -> tuple[int, int]:
    """How many of the case mails a road gets right, by the rules of the tests; rivals are not asked for warnings."""
    sys.path.insert(0, str(ROOT / "tests" / "unit" / "prepare"))
    import test_cases

    passed = 0
    cases = yaml.safe_load((CASES / "cases.yaml").read_text("utf-8"))
    for case in cases:
        asked = {k: v for k, v in case.items() if k not in ("warns", "no_warns", "links", "cap")}
        started = time.process_time()
        try:
            mail = road((CASES / f"{case['id']}.eml").read_bytes())
            wrong = test_cases.faults(asked, mail)
        except Exception:  # noqa: BLE001 - a rival's failure is a failed case
            continue
        passed += not wrong and time.process_time() - started < case.get("max_seconds", 1)
    return passed, len(cases)


def speed(mails: list[bytes], found: dict[str, Road]) -> dict[str, tuple[float, int]]:
    """Best processor seconds of three passes, and how many mails raised."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(3):
        for name, road in found.items():
            failed = 0
            started = time.process_time()
            for raw in mails:
                try:
                    road(raw)
                except Exception:  # noqa: BLE001
                    failed += 1
            seconds = time.process_time() - started
            best[name] = min(best.get(name, (seconds, failed)), (seconds, failed))
    return best


def characters(mails: list[bytes]) -> tuple[int, int, int]:
    """Characters of the raw text parts, after preparation with links left in, and as a model gets them."""
    from triage.prepare import body as module
    from triage.prepare.links import Unlinked, remove_links

    raw_chars = kept = sent = 0
    for raw in mails:
        source = read_message(raw)
        texts = {t.part.path: t for t in source.texts}
        for part in source.texts:
            data = decode_transfer(
                part.data, next(p.encoding for p in source.structure.walk() if p.path == part.part.path)
            )
            raw_chars += len(decode(data, part.part.params.get("charset", ""))[0])
        sent += sum(len(read_body(b, texts, "").text) for b in bodies(source.structure))
        module.remove_links = Unlinked
        kept += sum(len(read_body(b, texts, "").text) for b in bodies(source.structure))
        module.remove_links = remove_links
    return raw_chars, kept, sent


def large(size: str) -> None:
    """One large message in a process of its own, so that memory is its own."""
    boundary = b"000000000000a1b2c305f"
    head = b"Subject: large\r\nContent-Type: multipart/mixed; boundary=%b\r\n\r\n--%b\r\nContent-Type: text/"
    head %= boundary, boundary
    end = b"\r\n--%b--\r\n" % boundary
    if size == "25mb":
        line = b"JVBERi0xLjQKJcfsj6IKNSAwIG9iago8PC9MZW5ndGggNiAwIFIvRmlsdGVyIC9GbGF0ZURlY29k\r\n"
        file = b"\r\n--%b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n" % boundary
        raw = head + b"plain\r\n\r\nHello." + file + line * (25_000_000 // len(line)) + end
    elif size == "small":
        raw = head + b"plain\r\n\r\nHello." + end
    else:
        row = (
            b'<tr><td style="padding:4px"><a href="https://t.example/x">word</a> some more words to read</td></tr>\r\n'
        )
        raw = head + b"html\r\n\r\n<table>" + row * (5_242_880 // len(row)) + b"</table>" + end
    ours(head + b"plain\r\n\r\nWarm." + end)
    before = _peak_mb(forget=True)
    started = time.process_time()
    source = read_message(raw)
    mail = prepare(source)
    seconds = time.process_time() - started
    after = _peak_mb()
    read = sum(len(t.data) for t in source.texts)
    print(
        f"  {size:>6}: {len(raw) / 1e6:5.1f} MB, {read} octets of text read, {len(mail.body)} characters out,"
        f" {seconds * 1000:7.2f} ms, peak {after:.0f} MB with the input, {after - before:+.1f} MB for it"
    )


def _peak_mb(*, forget: bool = False) -> float:
    """Most memory that this process had at once, in MB; `forget` counts anew from here (Linux)."""
    if forget and Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=0, help="only so many mails")
    parser.add_argument("--large", choices=("small", "25mb", "html"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        large(options.large)
        return 0
    logging.disable(logging.CRITICAL)  # a rival tells its log of every part it does not read
    mails = list(labelled_mail())
    mails = mails[: options.limit or len(mails)]
    megabytes = sum(map(len, mails)) / 1e6
    print(f"{len(mails)} labelled mails, {megabytes:.1f} MB")
    found = roads()
    results = speed(mails, found)
    base = results["triage"][0]
    print(f"{'':26}{'mails/s':>9}{'MB/s':>7}{'raised':>8}{'cases':>10}{'time, triage = 1':>18}")
    for name, (seconds, failed) in results.items():
        passed, of = cases_passed(found[name])
        rates = f"{len(mails) / seconds:9.0f}{megabytes / seconds:7.2f}"
        print(f"{name:26}{rates}{failed:8}{passed:6}/{of}{seconds / base:18.2f}")
    raw_chars, kept, sent = characters(mails)
    print(f"characters: raw text parts {raw_chars}, prepared with links {kept} ({kept / raw_chars:.1%}),")
    print(f"  prepared {sent} ({sent / raw_chars:.1%}); links alone {1 - sent / kept:.1%} of the prepared text")
    print("one large message:")
    for size in ("small", "25mb", "html"):
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--large", size], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
