"""Reads from the browser's own trace how long the main thread of a page worked for each frame.

The times are processor times: other programs on the machine hardly lengthen these, but they lengthen the time between two frames.
"""

from __future__ import annotations

import bisect
import json
import statistics
from collections import Counter
from typing import Any, NamedTuple
from urllib.request import urlopen

import websocket
from selenium import webdriver

#: Tasks of the main thread with their times, and the events that begin a frame.
CATEGORIES = ["disabled-by-default-devtools.timeline", "devtools.timeline"]


class Frames(NamedTuple):
    """The frames of a trace: milliseconds of work for each, in order."""

    work: list[float]

    @property
    def longest(self) -> float:
        """Milliseconds of the frame with the most work."""
        return max(self.work)

    @property
    def median(self) -> float:
        """Milliseconds of the median frame."""
        return statistics.median(self.work)


class Trace:
    """Traces a browser, from its creation to `frames`."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        address = driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urlopen(f"http://{address}/json/version") as answer:
            where = json.load(answer)["webSocketDebuggerUrl"]
        self._socket = websocket.create_connection(where, suppress_origin=True, timeout=300)
        self._number = 0
        self._ask("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": CATEGORIES, "excludedCategories": ["*"]})

    def _ask(self, method: str, **given: Any) -> None:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": given}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("id") == self._number:
                assert "error" not in said, said
                return

    def _events(self) -> list[dict[str, Any]]:
        self._ask("Tracing.end")
        found: list[dict[str, Any]] = []
        while True:
            said = json.loads(self._socket.recv())
            if said.get("method") == "Tracing.dataCollected":
                found += said["params"]["value"]
            elif said.get("method") == "Tracing.tracingComplete":
                self._socket.close()
                return found

    def frames(self) -> Frames:
        """Ends the trace, and returns the frames of the page with the most of them. A frame lasts from one task that calls back to
        `requestAnimationFrame` to the next such task."""
        events = sorted((event for event in self._events() if event.get("ph") == "X"), key=lambda event: event["ts"])
        asked = Counter((event["pid"], event["tid"]) for event in events if event["name"] == "FireAnimationFrame")
        ((thread, _),) = asked.most_common(1)
        ours = [event for event in events if (event["pid"], event["tid"]) == thread]
        calls = [event["ts"] for event in ours if event["name"] == "FireAnimationFrame"]
        work: list[float] = []
        for task in ours:
            if task["name"] != "RunTask":
                continue
            if bisect.bisect_left(calls, task["ts"]) < bisect.bisect_right(calls, task["ts"] + task["dur"]):
                work.append(0.0)
            if work:
                work[-1] += task.get("tdur", 0) / 1000
        # The last frame has not ended.
        return Frames(work[:-1])
