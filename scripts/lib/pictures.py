"""Takes the pictures of the documents: pictures.py [FOLDER], docs/pictures by default. Look at each before you commit it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import llvs

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests" / "Inspector"), str(ROOT / "examples" / "loco")]
import browser  # noqa: E402
import examples  # noqa: E402
from book import Book  # noqa: E402

WIDE, HIGH, SCALE = 1200, 750, 1.5
HOUR = 3600.0
#: A merge of the demo store with a conflict, and how many pixels above it the picture begins.
MERGE, BEFORE = "A466EAEE", 80


def take(driver: Any, path: Path) -> None:
    """Takes a picture of the page, light and dark."""
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        time.sleep(0.5)
        driver.save_screenshot(str(path.with_name(f"{path.name}-{scheme}.png")))


def started(*command: str, line: int = 0) -> tuple[subprocess.Popen[str], str]:
    """Starts a program, and returns it with the address in one of its first lines."""
    running = subprocess.Popen([sys.executable, *command, "--no-open"], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for _ in range(line):
        running.stdout.readline()
    told = running.stdout.readline()
    return running, told[told.index("http://"):].strip()


def waited(driver: Any, script: str) -> None:
    """Waits until a script is true."""
    for _ in range(600):
        if driver.execute_script(f"return {script}"):
            return
        time.sleep(0.1)
    raise SystemExit(f"The page did not come to: {script}")


def inspector(driver: Any, folder: Path, out: Path) -> None:
    """A month of the demo store, and the decisions of a merge in it."""
    store = folder / "club.llvs"
    subprocess.run([sys.executable, "-m", "llvs.tools", "demo-store", str(store)], check=True, stdout=subprocess.DEVNULL)
    with llvs.Store(store, read_only=True) as opened:
        merge = next(version.id for version in opened.history() if version.id.startswith(MERGE))
    running, address = started("-m", "llvs.inspector", str(store))
    try:
        driver.get(address)
        waited(driver, "document.body.dataset.ready === 'yes'")
        driver.execute_script("location.hash = '#/merge/' + arguments[0]", merge)
        waited(driver, "document.querySelector('article .second') !== null")
        waited(driver, "document.querySelector('.version[aria-selected=true]') !== null")
        driver.execute_script("document.getElementById('scroller').scrollTop -= arguments[0]", BEFORE)
        take(driver, out / "inspector")
    finally:
        running.terminate()
        running.wait(60)


def loco(driver: Any, folder: Path, out: Path) -> None:
    """A contact whose town both devices changed."""
    values = {}
    seed = Book(str(folder / "seed.llvs"), str(folder / "seed-shared"), "Laptop", lambda: None)
    examples.add(seed)
    values = dict(seed.notes.at())
    seed.close()
    now = time.time()
    (folder / "loco").mkdir()
    with llvs.Store(folder / "made.llvs") as store, llvs.Exchange(store, folder / "loco" / "shared") as there:
        def save(on: Any, hours: float, device: str, what: str, id: str = "", **members: Any) -> llvs.Version:
            ada = {**json.loads(store.at(on)[id]), **members} if id else {}
            return store.make_version(
                on, update={id: json.dumps(ada).encode()} if id else values, timestamp=now - hours * HOUR,
                metadata={"__llvs_device": device, "__llvs_description": what},
            )

        begin = save(None, 70, "Laptop", "Add some examples")
        notes = "Sings alto. Her studio is open on Sundays."
        ada = save(begin, 26, "Phone", "Change the notes of Ada Ruiz", "contact/ada-ruiz", notes=notes)
        save(ada, 2.1, "Phone", "Change the town of Ada Ruiz", "contact/ada-ruiz", town="Zürich", tags=["choir", "friend", "hiking"])
        save(ada, 0.7, "Laptop", "Change the town of Ada Ruiz", "contact/ada-ruiz", town="Basel", company="Ruiz & Lind Architects")
        there.send()
    running, address = started(str(ROOT / "examples" / "loco"), str(folder / "loco"), "--device", "Laptop")
    try:
        driver.get(address)
        waited(driver, "document.querySelector('#list .asks') !== null")
        driver.execute_script("location.hash = '#/contact/ada-ruiz'")
        waited(driver, "document.querySelector('.conflict') !== null && document.querySelector('.face.large img')?.naturalWidth > 0")
        take(driver, out / "loco")
    finally:
        running.terminate()
        running.wait(60)


def post(driver: Any, what: str, given: dict[str, Any]) -> None:
    """Makes the page send a request to its server, as its buttons do."""
    driver.execute_async_script(
        "const [what, given, done] = arguments; import('/api.js').then((api) => api.post(what, given)).then(() => done(), done)",
        what, given)


def cable(driver: Any, folder: Path, out: Path) -> None:
    """Both devices in one window with the cable pulled out, each with a change that the other one lacks."""
    def within(device: int, script: str) -> None:
        """Switches to the page of a device, and waits until a script is true there."""
        driver.switch_to.default_content()
        driver.switch_to.frame(driver.find_elements("css selector", "iframe")[device])
        waited(driver, script)

    def outside(text: str) -> None:
        driver.switch_to.default_content()
        waited(driver, f"document.getElementById('told').textContent.startsWith({text!r})")

    running, address = started(str(ROOT / "examples" / "loco"), str(folder / "cable"), line=2)
    try:
        driver.get(address)
        waited(driver, "document.querySelectorAll('iframe').length === 2")
        within(0, "document.querySelector('#list') !== null && document.querySelector('#light')?.textContent !== ''")
        post(driver, "examples", {})
        for device in (0, 1):
            within(device, "document.querySelector('#list')?.textContent.includes('Ada Ruiz')")
        outside("Both devices")
        driver.execute_script("document.getElementById('plug').click()")
        for device, (what, given) in enumerate((("delete", {"id": "jon-fry"}), ("save", {"card": {"name": "Zoe Adler", "town": "Oslo"}}))):
            within(device, "document.querySelector('#light')?.textContent.startsWith('Offline')")
            post(driver, what, given)
            driver.execute_script("location.hash = '#/contact/ada-ruiz'")
            within(device, "document.querySelector('.face.large img')?.naturalWidth > 0")
        outside("2 versions are not on both devices")
        take(driver, out / "cable")
    finally:
        running.terminate()
        running.wait(60)


def another_time(driver: Any, folder: Path, out: Path) -> None:
    """The whole book at a time before a group and two contacts were deleted."""
    running, address = started(str(ROOT / "examples" / "loco"), str(folder / "time"), "--device", "Laptop")
    try:
        driver.get(address)
        waited(driver, "document.querySelector('#light')?.textContent !== ''")
        for what, given in (("examples", {}), ("delete", {"id": "ada-ruiz"}), ("delete", {"id": "ben-okoro"}),
                            ("delete-group", {"id": "choir"})):
            post(driver, what, given)
        waited(driver, "document.getElementById('count').textContent.startsWith('10 ')")
        driver.execute_script("[...document.querySelectorAll('#around button')].find((one) => one.textContent === 'Another time').click()")
        waited(driver, "document.querySelector('#past input[type=range]') !== null && !document.getElementById('past').hidden")
        for _ in range(3):
            driver.execute_script("[...document.querySelectorAll('#past button')].find((one) => one.textContent === 'Earlier').click()")
        waited(driver, "document.getElementById('count').textContent.startsWith('12 ')")
        driver.execute_script("location.hash = '#/contact/ada-ruiz'")
        waited(driver, "document.querySelector('.face.large img')?.naturalWidth > 0")
        take(driver, out / "another-time")
    finally:
        running.terminate()
        running.wait(60)


def main() -> None:
    """Takes all pictures."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        driver = browser.start(folder, WIDE, HIGH)
        try:
            size = {"width": WIDE, "height": HIGH, "deviceScaleFactor": SCALE, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            inspector(driver, folder, out)
            loco(driver, folder, out)
            cable(driver, folder, out)
            another_time(driver, folder, out)
        finally:
            driver.quit()
    for path in sorted(out.glob("*.png")):
        print(f"{path.stat().st_size:8,} bytes  {path}")


main()
