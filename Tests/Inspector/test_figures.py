"""The costs of the page: scrolling, the first paint, memory, and a difference inside large documents.

Wall-clock times are written to build/inspector/figures.json for a reader: other programs lengthen them. The tests judge the processor time
in the browser's own trace, compared with a simple page (yardstick.html), and with reading the same JSON.

    python -m pytest Tests/Inspector/test_figures.py -s         prints them
"""

from __future__ import annotations

import fcntl
import json
import random
import time
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
import stores
from browser import Page
from conftest import PICTURES
from sampling import sample
from tracing import Frames, Trace

from llvs.inspector import inside

Open = Callable[..., tuple[Page, llvs.Store, Any]]
YARDSTICK = (Path(__file__).parent / "yardstick.html").as_uri()
FRAMES = sample(120, 240)
VERSIONS = sample(20_000, 100_000)
SCROLL = """
    const [step, frames, done] = arguments, scroller = document.getElementById("scroller");
    let frame = 0;
    scroller.scrollTop = 0;
    requestAnimationFrame(function next() {
        scroller.scrollTop += step;
        if (++frame < frames) requestAnimationFrame(next);
        else done();
    });"""


def record(**figures: float) -> None:
    """Writes figures for a reader."""
    path = PICTURES / "figures.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Other processes of this run add theirs.
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, **figures}, indent=2) + "\n")
    for name, value in figures.items():
        print(f"{name}: {value:.4g}")


def traced(page: Any, script: str, *arguments: Any) -> Frames:
    """The frames while a script runs."""
    trace = Trace(page)
    page.execute_async_script(script, *arguments)
    return trace.frames()


def test_a_long_history_scrolls(show: Open, driver: Any, tmp_path: Path) -> None:
    # Making the versions takes some seconds; with a sync of the disk for each version it would take minutes.
    with llvs.Store(tmp_path / "long.llvs", durability="normal") as made:
        stores.long(made, VERSIONS, 1000)
    driver.get(YARDSTICK)
    yardstick = traced(driver, "run(arguments[0], arguments[1])", FRAMES)
    page, _, _ = show(lambda store: None, name="long.llvs")
    page.wait(lambda: page.text("#count") == f"{VERSIONS:,} versions")
    record(**{"first paint, ms": page.script("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1")})
    page.picture(PICTURES / "long-light.png")
    for top in (0.5, 0.9, 0.1, 1.0):
        page.script("const s = document.getElementById('scroller'); s.scrollTop = s.scrollHeight * arguments[0]", top)
        page.wait(lambda: page.script("return [...document.querySelectorAll('.version')].every((e) => e.hidden || e.shown)"))
        assert page.script("return document.querySelectorAll('.version').length") < 60
    page.wait(lambda: page.all(f".version[aria-posinset='{VERSIONS}']"))
    assert page.script("return document.getElementsByTagName('*').length") < 2000
    page.press("G")
    page.wait(lambda: page.text("#view h2") == "First version")
    # Scrolling with the wheel, fast, and from one end to the other.
    scrolled = {step: traced(driver, SCROLL, step, FRAMES) for step in (40, 200, 12_000)}
    record(**{
        "median frame, ms of work": scrolled[200].median, "longest frame, ms of work": max(one.longest for one in scrolled.values()),
        "longest frame of the yardstick, ms of work": yardstick.longest,
        "memory of the page, MB": page.script("return performance.memory.usedJSHeapSize / 1e6"),
    })
    for step, frames in scrolled.items():
        assert len(frames.work) >= FRAMES - 2
        assert frames.median < 1.5 * yardstick.median and frames.longest < 3 * yardstick.longest, (step, frames, yardstick)
    assert page.script("return performance.memory.usedJSHeapSize") < 200_000_000


def contacts(count: int) -> dict[str, Any]:
    """A document of so many contacts, by the same seed each time: 4,800 are 1 MB."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randrange(3, 9))) for _ in range(2000)]
    return {
        "contacts": [
            {"id": f"c{number}", "name": f"{draw.choice(words)} {draw.choice(words)}", "phone": f"+49 {draw.randrange(10**8)}",
             "town": draw.choice(words), "tags": draw.sample(words, 3), "visits": draw.randrange(100),
             "notes": " ".join(draw.choices(words, k=10))}
            for number in range(count)
        ],
    }


@pytest.mark.parametrize(("what", "rows"), [("a hundred", 100), ("all", 2000)])
def test_what_differs_inside_documents_of_a_megabyte(show: Open, driver: Any, what: str, rows: int) -> None:
    document = contacts(4800)
    before = json.dumps(document)
    for contact in random.Random(2).sample(document["contacts"], 100 if what == "a hundred" else 4800):
        contact["visits"] += 100
    after = json.dumps(document)
    assert min(len(before), len(after)) > 1_000_000

    def fill(store: llvs.Store) -> None:
        first = store.make_version(insert={"book": before.encode()})
        store.make_version(first, update={"book": after.encode()})

    page, _, _ = show(fill)
    ask = """
        const done = arguments[0], begun = performance.now();
        location.hash = "#/compare/@~1/@?id=book";
        requestAnimationFrame(function look() {
            if (document.querySelector(".differences td")) requestAnimationFrame(() => done(performance.now() - begun));
            else requestAnimationFrame(look);
        });"""
    trace = Trace(driver)
    shown = driver.execute_async_script(ask)
    frames = trace.frames()
    about = f"difference of 1 MB of JSON in {what} of its elements"
    record(**{f"{about}: shown, ms": shown, f"{about}: longest frame, ms of work": frames.longest})
    assert len(page.all(".differences tbody tr")) == rows
    assert ("Only the beginning" in page.text("#view")) == (what == "all")
    begun = time.process_time()
    json.loads(before), json.loads(after)
    reading = time.process_time() - begun
    inside.difference(before, after)
    assert time.process_time() - begun - reading < 60 * reading
