"""A real headless Chromium, driven over its DevTools pipe with nothing but the standard library.

    with Chromium() as browser, browser.tab(width=390, height=844) as tab:
        tab.open("http://127.0.0.1:8025/")
        tab.evaluate("document.title")

Each tab has a profile of its own and records console messages and every request. Found on the PATH (Debian: chromium).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--no-default-browser-check", "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 30.0


def chromium_or_reason() -> str:
    """Where Chromium is. Without it a test is skipped, but never in CI."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        reason = "Chromium is not installed (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


class Chromium:
    """One browser process. Only what was started here is ended, by its process group."""

    def __init__(self, program: str | None = None) -> None:
        self._program = program or chromium_or_reason()
        self._scratch = tempfile.TemporaryDirectory(prefix="triage-chromium-", ignore_cleanup_errors=True)
        self._last = 0
        self._received = b""
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        down_read, self._write = os.pipe()
        self._read, up_write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        shell = f'exec "$0" "$@" 3<&{down_read} 4>&{up_write}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", shell, self._program, *_FLAGS, f"--user-data-dir={self._scratch.name}", "about:blank"],
            pass_fds=(down_read, up_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(down_read)
        os.close(up_write)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            self.command("Browser.close", patience_s=5.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._scratch.cleanup()

    def command(
        self, method: str, session: str = "", patience_s: float = PATIENCE_S, **params: object
    ) -> dict[str, Any]:
        """Send a command and wait for its answer. Raises RuntimeError if the browser refuses it."""
        self._last += 1
        number = self._last
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + patience_s
        while True:
            got = self._next(deadline)
            if got.get("id") == number:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']['message']}")
                result: dict[str, Any] = got["result"]
                return result
            if "method" in got:
                self._events.append(got)

    def event(self, session: str, method: str, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """The next event of that kind, taken from those that came already or waited for."""
        deadline = time.monotonic() + patience_s
        while True:
            for index, each in enumerate(self._events):
                if each["method"] == method and each.get("sessionId") == session:
                    params: dict[str, Any] = self._events.pop(index)["params"]
                    return params
            got = self._next(deadline)
            if "method" in got:
                self._events.append(got)

    def events(self, session: str, method: str) -> list[dict[str, Any]]:
        """Every event of that kind so far, taken."""
        mine = [e for e in self._events if e["method"] == method and e.get("sessionId") == session]
        self._events = [e for e in self._events if e not in mine]
        return [e["params"] for e in mine]

    @contextmanager
    def tab(
        self, width: int = 1280, height: int = 900, *, dark: bool = False, javascript: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Tab]:  # fmt: skip
        """A fresh profile with one page of that size in CSS pixels."""
        context = self.command("Target.createBrowserContext")["browserContextId"]
        target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Network", "Log", "Runtime"):
            tab.command(f"{domain}.enable")
        tab.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.command("Emulation.setEmulatedMedia", features=[scheme])
        if not javascript:
            tab.command("Emulation.setScriptExecutionDisabled", value=True)
        if headers:
            tab.command("Network.setExtraHTTPHeaders", headers=dict(headers))
        try:
            yield tab
        finally:
            self.command("Target.disposeBrowserContext", browserContextId=context)

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer")
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise RuntimeError("Chromium ended")
            self._received += chunk
        message, _, self._received = self._received.partition(b"\0")
        value: dict[str, Any] = json.loads(message)
        return value


class Tab:
    """One page of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session

    def command(self, method: str, **params: object) -> dict[str, Any]:
        return self._browser.command(method, self._session, **params)

    def open(self, url: str) -> int:
        """Go there and wait until everything is loaded; the status of the page itself."""
        self._browser.events(self._session, "Page.loadEventFired")
        told = self.command("Page.navigate", url=url)
        if error := told.get("errorText"):
            raise RuntimeError(f"{url}: {error}")
        self._browser.event(self._session, "Page.loadEventFired")
        responses = self._browser.events(self._session, "Network.responseReceived")
        return next(int(r["response"]["status"]) for r in responses if r["type"] == "Document")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression: for looking, also where the page's own scripts are switched off."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.command("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def requests(self) -> list[str]:
        """The address of everything that was asked for since the last call."""
        return [e["request"]["url"] for e in self._browser.events(self._session, "Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """What the console would show: errors, warnings, exceptions, refusals of the content security policy."""
        logged = [e["entry"] for e in self._browser.events(self._session, "Log.entryAdded")]
        said = self._browser.events(self._session, "Runtime.consoleAPICalled")
        thrown = self._browser.events(self._session, "Runtime.exceptionThrown")
        return [f"{e['level']}: {e['text']}" for e in logged] + [str(e) for e in (*said, *thrown)]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """The page as PNG, all of its length if `whole`."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.command("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        path.write_bytes(base64.b64decode(self.command("Page.captureScreenshot", **options)["data"]))
