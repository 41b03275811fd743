"""Fixtures of the tests of LoCo. The package and its library come from the environment, as for Tests/Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The browser is the one of the inspector's tests.
sys.path.insert(0, str(ROOT / "Tests" / "Inspector"))
sys.path.append(str(ROOT / "Tests" / "Python"))

import browser  # noqa: E402
from running import enter  # noqa: E402
from axe_core_python.selenium import Axe  # noqa: E402
from sampling import pytest_runtest_makereport, pytest_terminal_summary  # noqa: E402, F401 - hooks of pytest

PICTURES = ROOT / "build" / "loco"
LOCO = ROOT / "examples" / "loco"


class Running:
    """Both devices in a process of their own, and the window with both."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, str(LOCO), str(folder), "--no-open"]
        self.folder = folder
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None and self.process.stderr is not None
        self.addresses: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self._read_addresses(3)
        for device, address in [(name, self.addresses[name]) for name in ("Laptop", "Phone")]:
            place, _, key = address.partition("/#key=")
            status, self.tokens[device] = enter(int(place.rsplit(":", 1)[1]), key)
            assert status == 200, self.tokens[device]
        # After an address is used, the next one is printed.
        self._read_addresses(2)

    def _read_addresses(self, count: int) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        for _ in range(count):
            line = self.process.stdout.readline()
            found = re.match(r"(\w+): (http://127\.0\.0\.1:\d+/#key=\S{20,})", line)
            if not found:
                self.process.terminate()
            assert found, (line, self.process.stderr.read())
            self.addresses[found[1]] = found[2]

    def place(self, device: str) -> tuple[str, int]:
        """Returns the origin of a device's page, and its port."""
        origin = self.addresses[device].partition("/#")[0]
        return origin, int(origin.rsplit(":", 1)[1])

    def ask(self, device: str, path: str, given: Any = None, **headers: str) -> tuple[int, Any]:
        """Returns the answer of a device to a program that has the token."""
        address, _ = self.place(device)
        sent = {"x-llvs-token": self.tokens[device]}
        if given is not None:
            sent |= {"origin": address, "content-type": "application/json"}
        data = None if given is None else given if isinstance(given, bytes) else json.dumps(given).encode()
        request = urllib.request.Request(address + path, data, {**sent, **headers})
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                body = answer.read()
                return answer.status, json.loads(body) if answer.headers["content-type"] == "application/json" else body
        except urllib.error.HTTPError as problem:
            with problem:
                return problem.code, problem.read().decode()

    def end(self) -> int:
        """Ends both, and returns the exit code."""
        self.process.terminate()
        code = self.process.wait(300)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code


#: Headers of the page's own requests.
_GIVEN = "const given = () => ({ headers: { 'x-llvs-token': sessionStorage.getItem('llvs-token') } });"


class Device(browser.Page):
    """A device's page, in a window of its own of the one browser."""

    def __init__(self, driver: Any, address: str, name: str) -> None:
        self.driver, self.name = driver, name
        driver.switch_to.new_window("tab")
        self.window = driver.current_window_handle
        browser.resize(driver, 1280, 800)
        driver.get(address)
        self.shown("start")

    def look_at(self) -> Device:
        """Brings the window to the front."""
        self.driver.switch_to.window(self.window)
        return self

    def shown(self, what: str) -> None:
        """Waits for a view."""
        self.wait(lambda: self.script("return document.body.dataset.ready") == what, what)

    def open(self, what: str) -> None:
        """Goes to a view."""
        self.look_at().script("location.hash = '#/' + arguments[0]", what)
        self.shown(what or "start")

    def edit(self, id: str, **fields: str) -> None:
        """Fills in fields of a contact's form, and saves."""
        self.open(f"contact/{id}/edit")
        for name, text in fields.items():
            field = self.find(f"#field-{name}")
            field.clear()
            field.send_keys(text)
        self.click("Save", "button")
        self.shown(f"contact/{id}")

    def click(self, text: str, selector: str = "button, a, summary") -> None:
        """Clicks the element with a text; again if it was redrawn meanwhile."""
        def once() -> bool:
            found = next((one for one in self.all(selector) if text in one.text and one.is_displayed()), None)
            if found is not None:
                found.click()
            return found is not None

        self.wait(once, text)

    def switch(self, is_online: bool) -> None:
        """Returns the switch of the page."""
        self.look_at().find(".track").click()
        self.wait(lambda: self.text("#light").startswith("Offline") != is_online)

    def card(self, id: str) -> dict[str, Any]:
        """Returns a contact, as the device's process has it."""
        return dict(self.driver.execute_async_script(
            _GIVEN + "const [id, done] = arguments; fetch('/api/contact?id=' + id, given()).then((one) => one.json()).then(done)", id))

    def book(self) -> dict[str, Any]:
        """Returns the whole book, as the device's process has it."""
        return dict(self.driver.execute_async_script(
            _GIVEN + "const done = arguments[0]; fetch('/api/book', given()).then((answer) => answer.json()).then(done)"))

    def tab_to(self, text: str, most: int = 30) -> None:
        """Presses the Tab key until the element with a text has the focus, at most this many times."""
        focused = "const one = document.activeElement; return one.getAttribute('aria-label') || one.textContent"
        for _ in range(most):
            self.press(self.KEYS.TAB)
            if text in self.script(focused):
                return
        raise AssertionError(f"{text} is not reached; the focus is at {self.script(focused)}")

    def collisions(self) -> list[str]:
        """Returns the parts of the bar at the top that overlap."""
        return list(self.script("""
            const all = [...document.querySelectorAll(".bar > *")];
            const parts = all.map((one) => [one.className || one.tagName, one.getBoundingClientRect()]);
            return parts.flatMap(([a, x], at) => parts.slice(at + 1).filter(([, y]) => Math.min(x.right, y.right) > Math.max(x.left, y.left)
              && Math.min(x.bottom, y.bottom) > Math.max(x.top, y.top)).map(([b]) => a + " and " + b));"""))

    def look(self, name: str, *, narrow: bool = False) -> None:
        """Takes a picture, light and dark, and checks both for accessibility; narrow: at widths of 1,400 and 390 pixels."""
        if narrow:
            for wide in (390, 1400):
                browser.resize(self.driver, wide, 800)
                self.look(f"{name}-{wide}")
            return browser.resize(self.driver, 1280, 800)
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            PICTURES.mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(PICTURES / f"{name}-{scheme}.png"))
            found = Axe().run(self.driver)["violations"]
            told = [(one["id"], one["help"], [node["html"][:200] for node in one["nodes"]][:3]) for one in found]
            assert found == [], json.dumps(told, indent=1)


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests; they fail if it cannot be started."""
    driver = browser.start(tmp_path_factory.mktemp("browser"), 1280, 800)
    yield driver
    driver.quit()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Both devices. Their process has to end without an error."""
    running = Running(tmp_path / "loco")
    code = None
    try:
        yield running
    finally:
        code = running.end()
    assert code == 0


@pytest.fixture
def window(driver: Any, running: Running) -> Iterator[Callable[[str], Device]]:
    """Opens one window, of a device or of both. No script may fail there, and no request may be refused."""
    first = driver.current_window_handle
    opened: list[Device] = []

    def make(name: str) -> Device:
        opened.append(Device(driver, running.addresses[name], name))
        return opened[-1]

    yield make
    try:
        for one in opened:
            assert one.look_at().complaints() == []
    finally:
        for one in opened:
            one.look_at()
            driver.close()
        driver.switch_to.window(first)


@pytest.fixture
def devices(driver: Any, running: Running) -> Iterator[Callable[[], tuple[Device, Device]]]:
    """Opens both pages. No script may fail there, and no request may be refused."""
    first = driver.current_window_handle
    opened: list[Device] = []

    def make() -> tuple[Device, Device]:
        opened.extend(Device(driver, running.addresses[name], name) for name in ("Laptop", "Phone"))
        return opened[0], opened[1]

    yield make
    try:
        for device in opened:
            assert device.look_at().script("return window.ran") is None
            assert device.complaints() == []
    finally:
        for device in opened:
            device.look_at()
            driver.close()
        driver.switch_to.window(first)
