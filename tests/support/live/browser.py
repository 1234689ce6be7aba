"""A page in headless Chromium, used as a person uses it: by the mouse, the keyboard and its address.

It is driven by the DevTools protocol, whose commands are JSON over a WebSocket.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
from contextlib import asynccontextmanager

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0  # until something is on the page
MESSAGE_BYTES = 2**26  # a picture
KEYS = {"Tab": 9, "Enter": 13}


def chromium():
    """The program; None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Page:
    """One tab. `problems` are exceptions of its scripts and what its security policy has refused."""

    def __init__(self, socket):
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers = {}
        self.problems = []

    async def receive(self):
        """Read what the browser says until the connection ends."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(said["params"]["exceptionDetails"])[:2000])
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["source"] == "security":
                self.problems.append(said["params"]["entry"]["text"])

    async def send(self, method, **parameters):
        number = next(self._ids)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(SECONDS):
            said = await self._answers[number]
        assert "error" not in said, said
        return said["result"]

    async def value(self, expression):
        """The value of an expression of JavaScript."""
        options = {"awaitPromise": True, "returnByValue": True}
        found = await self.send("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression):
        """Wait until an expression is true, looked at with each frame."""
        look = f"const look = () => ({expression}) ? done(true) : requestAnimationFrame(look); look();"
        try:
            await self.value(f"new Promise((done) => {{ {look} }})")
        except TimeoutError:
            raise AssertionError(f"never: {expression}; the page has {await self.text('body')}") from None

    async def text(self, selector):
        return await self.value(f"document.querySelector({json.dumps(selector)})?.innerText")

    async def open(self, url):
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def resize(self, width, height, *, dark=False):
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def click(self, selector):
        """Press and release the mouse in the middle of the first element of a selector."""
        found = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{found} !== null && !{found}.disabled && {found}.getClientRects().length")
        await self.value(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = await self.value(f"(({{left, top}}) => [left + 4, top + 6])({found}.getClientRects()[0])")
        at = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, **at)

    async def type(self, selector, words):
        """Click into a field, and write there instead of what it has."""
        await self.click(selector)
        await self.value(f"document.querySelector({json.dumps(selector)}).select()")
        await self.send("Input.insertText", text=words)

    async def press(self, key):
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        words = {"text": "\r"} if key == "Enter" else {}
        await self.send("Input.dispatchKeyEvent", type="keyDown", **code, **words)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **code)

    async def picture(self, path):
        found = await self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def opened_page(folder):
    """A tab of a new browser, whose files are in a folder."""
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        "--no-first-run",
    ]
    options += ["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
    command = [chromium(), *options, f"--user-data-dir={folder}", "about:blank"]
    pipe = asyncio.subprocess.PIPE
    surroundings = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    process = await asyncio.create_subprocess_exec(
        *command, stderr=pipe, stdout=asyncio.subprocess.DEVNULL, env=surroundings, start_new_session=True
    )
    reading = None
    try:
        async with asyncio.timeout(SECONDS):
            address = await _address(process.stderr)
        reading = asyncio.create_task(_drain(process.stderr))
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/json/list") as answer:
                (tab,) = [each for each in await answer.json() if each["type"] == "page"]
            async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=MESSAGE_BYTES) as socket:
                page = Page(socket)
                receiving = asyncio.create_task(page.receive())
                for domain in ("Page", "Runtime", "Log"):
                    await page.send(f"{domain}.enable")
                yield page
            await receiving
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        if reading is not None:
            await reading


async def _address(lines):
    async for line in lines:
        found = re.search(rb"DevTools listening on ws://([^/]+)/", line)
        if found:
            return found[1].decode()
    raise AssertionError("Chromium has ended before it could be driven")


async def _drain(lines):
    async for _ in lines:
        pass
