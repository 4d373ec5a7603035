"""A real Chromium without a window, driven over its pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)


def binary() -> str | None:
    """The browser of this machine, if it has one."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Browser:
    """One page of a browser."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._buffer, self._number, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": given}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._writer, json.dumps(asked).encode() + b"\0")
        while (told := self._next()).get("id") != self._number:
            pass
        assert "error" not in told, told
        return told.get("result", {})

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = os.read(self._reader, 1 << 16)
            assert read, "the browser ended"
            self._buffer += read
        told, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(told)

    def look(self, width: int, dark: bool = False, media: str = "") -> None:
        """As on a screen of that width."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def cookie(self, name: str, value: str, url: str) -> None:
        self.call("Network.setCookie", name=name, value=value, url=url)

    def open(self, url: str) -> None:
        """Load a page, to its end."""
        self.call("Page.navigate", url=url)
        while self.value("document.readyState") != "complete" or self.value("location.href") == (
            "about:blank"
        ):
            pass

    def value(self, script: str) -> Any:
        """What a script says, which the policy of the page does not stop."""
        given = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = self.call("Runtime.evaluate", **given)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("document.documentElement.clientWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 6000), "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own."""
    to_read, its_writer = os.pipe()
    its_reader, to_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = " ".join([*_FLAGS, f"--user-data-dir={profile}"])
        process = subprocess.Popen(
            ["bash", "-c", f"exec {binary()} {flags} 3<&{its_reader} 4>&{its_writer}"],
            pass_fds=(its_reader, its_writer),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_reader)
        os.close(its_writer)
        try:
            yield Browser(to_read, to_write)
        finally:
            process.kill()
            process.wait()
            os.close(to_read)
            os.close(to_write)
