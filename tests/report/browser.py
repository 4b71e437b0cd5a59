"""A headless Chromium, driven over a pipe in its own protocol: no package needed, no port opened."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
BECOME = """
import fcntl, os, sys
down, up = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(down, 3)
os.dup2(up, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

MIDDLE = """async (element) => {
  let before, now;
  do {  // the page may still be scrolling smoothly to what was clicked last
    before = now;
    element.scrollIntoView({ block: "center", behavior: "instant" });
    for (const _ of [1, 2, 3]) await new Promise(requestAnimationFrame);
    const box = element.getBoundingClientRect();
    now = [box.x + box.width / 2, box.y + box.height / 2];
  } while (String(now) !== String(before));
  return now;
}"""
"""Where an element's middle is once it has come to rest in view."""


def program():
    """The path of a Chromium, or None."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


def needed():
    """The path of a Chromium. Without one the test is skipped, but in CI it fails: there the scripts must be tested."""
    path = program()
    if path is None:
        missing = f"no Chromium on the PATH to open the page in ({', '.join(NAMES)}); `make browser` may install one"
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(f"{missing}. In CI the pages' scripts must not go untested.")
        pytest.skip(missing)
    return path


class Browser:
    """One page at a time: open a file or go to an address, look at it, press keys, type, click."""

    def __init__(self, profile, *, patience=30.0):
        down_read, self._down = os.pipe()
        self._up, up_write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to 4, each ended by a zero byte. A process of
        # Python's own puts them there and becomes the browser: shells take no descriptors above 9.
        words = [program(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", BECOME, str(down_read), str(up_write), *words],
            pass_fds=(down_read, up_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(down_read)
        os.close(up_write)
        self._patience, self._number, self._rest, self.events = patience, 0, b"", []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self._down)
        os.close(self._up)
        self._process.terminate()
        self._process.wait(10)

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._down, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        end = time.monotonic() + self._patience
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._up], [], [], max(end - time.monotonic(), 0.0))
            assert ready, "the browser does not answer"
            chunk = os.read(self._up, 1 << 20)
            assert chunk, "the browser has gone"
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def wait(self, event):
        """Until an event has come."""
        while not any(own.get("method") == event for own in self.events):
            self.events.append(self._read())

    def size(self, width, height=800):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def media(self, name=""):
        """As on paper: ``print``; as on a screen: nothing."""
        self.call("Emulation.setEmulatedMedia", media=name)

    def open(self, path, *, scripts=True):
        self.go(path.resolve().as_uri(), scripts=scripts)

    def go(self, url, *, scripts=True):
        """Open an address, and wait until all of it is there."""
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=url)
        self.wait("Page.loadEventFired")

    def before(self, code):
        """Run code in every page before its own scripts, from now on."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=code)

    def follow(self, where):
        """Click on a link or a button that leads to another page, and wait until that is there."""
        self.events.clear()
        self.click(where)
        self.wait("Page.loadEventFired")

    def type(self, where, text):
        """Write into a field, in place of what is there."""
        self.run(f"(field => {{ field.focus(); field.select(); }})(document.querySelector({where!r}))")
        self.call("Input.insertText", text=text)

    def cookies(self):
        """All cookies of the page, those that scripts cannot see included, by name."""
        return {cookie["name"]: cookie for cookie in self.call("Network.getCookies")["cookies"]}

    def forget(self):
        """Drop all cookies."""
        self.call("Network.clearBrowserCookies")

    def status(self):
        """The HTTP status of the page that was opened last."""
        answers = [event["params"] for event in self.events if event.get("method") == "Network.responseReceived"]
        return [each["response"]["status"] for each in answers if each["type"] == "Document"][-1]

    def run(self, code):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, where):
        """Click in the middle of an element, as a hand would: whatever lies on top there gets it."""
        box = self.run(f"({MIDDLE})(document.querySelector({where!r}))")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, key, code=None):
        """Press a key: ``Enter``, ``Tab``, ``Escape``, ``+``."""
        numbers = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        given = {"key": key, "code": code or key, "windowsVirtualKeyCode": numbers.get(key, ord(key[0]))}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def problems(self, server="about:"):
        """Whatever the console complained about, and whatever was asked of the network but of the server, if any."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith(("file:", "data:", "about:", server)):
                    found.append(f"asked for {url}")
        return found

    def picture(self, path, *, whole=True):
        """A screenshot, of the whole page or of what is in view."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, **options):
        """The page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, **options)["data"])
