"""A headless Chromium over its debugging pipe: enough to open a page, use it and hear what it complains about."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find():
    """The browser's program, or None."""
    given = os.environ.get("DYNIDENT_BROWSER")
    return given or next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """A page in a browser of its own, without network."""

    def __init__(self, path, *, width=1200, height=900, dark=False):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, from_browser = os.pipe(), os.pipe()
        ends = (to_browser[0], from_browser[1])

        def place():  # the pipe is at the descriptors 3 and 4
            copies = [os.dup(end) for end in ends]
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        command = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={self._folder.name}", "--no-first-run", "--hide-scrollbars", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, preexec_fn=place, close_fds=False, **quiet)
        for end in ends:
            os.close(end)
        self._out, self._in = os.fdopen(to_browser[1], "wb", 0), os.fdopen(from_browser[0], "rb")
        self._numbers, self._rest, self._session = itertools.count(1), b"", None
        self.complaints, self.fetched = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.run("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._out.close()
        self._in.close()
        self._folder.cleanup()

    def call(self, method, **parameters):
        """A command of the protocol; answers with its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._heard(answer)

    def run(self, script):
        """Value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def drag(self, start, stop):
        """Press at a place of the window, move, release."""
        for kind, (x, y) in (("mousePressed", start), ("mouseMoved", stop), ("mouseReleased", stop)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def press(self, key):
        """A key on whatever has the focus."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def box(self, selector):
        """Left, top, width and height of an element, scrolled into view."""
        node = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{node}.scrollIntoView({{block: 'center'}})")
        return tuple(self.run(f"(b => [b.left, b.top, b.width, b.height])({node}.getBoundingClientRect())"))

    def picture(self, path):
        """What the window shows, as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def _next(self):
        while b"\0" not in self._rest:
            more = self._in.read1(1 << 16)
            assert more, "the browser has closed"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        return json.loads(line)

    def _heard(self, message):
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        if method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning"):
            self.complaints.append(str(about["args"]))
        if method == "Network.requestWillBeSent":
            self.fetched.append(about["request"]["url"])
