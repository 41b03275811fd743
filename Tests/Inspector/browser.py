"""A real browser, headless chromium, that shows an inspector."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, Callable, Optional

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

#: Seconds after which a missing event fails the test.
PATIENCE = 300.0


def start(folder: Path, wide: int = 1440, high: int = 900) -> webdriver.Chrome:
    """Starts a browser with a profile of its own. Raises if it cannot be started: without it there is no test."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu", "--lang=en-GB",
        f"--window-size={wide},{high}", f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--enable-precise-memory-info",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        # Another host name with the address 127.0.0.1, as in DNS rebinding.
        "--host-resolver-rules=MAP rebound.example 127.0.0.1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver") or "/usr/bin/chromedriver"))
    driver.set_script_timeout(PATIENCE)
    resize(driver, wide, high)
    driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    return driver


def resize(driver: webdriver.Chrome, wide: int, high: int) -> None:
    """Sets the size of the visible part of a page."""
    size = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


class Page:
    """The inspector's page in a browser."""

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        """address: as the inspector prints it, with a key."""
        self.driver, self.address = driver, address.partition("/#")[0]
        driver.get(address)
        self.wait(lambda: self.script("return document.body.dataset.ready") == "yes")

    def script(self, text: str, *arguments: Any) -> Any:
        """Returns the result of JavaScript."""
        return self.driver.execute_script(text, *arguments)

    def wait(self, until: Callable[[], Any], what: str = "") -> Any:
        """Returns the result of a function as soon as it is true."""
        begun, problem = time.monotonic(), None
        while time.monotonic() - begun < PATIENCE:
            try:
                found = until()
                if found:
                    return found
            except Exception as raised:  # an element that was replaced meanwhile
                problem = raised
            time.sleep(0.03)
        raise AssertionError(f"{what or 'it'} did not come; the page says: {self.text('#view')[:2000]}") from problem

    def go(self, place: str, wanted: str = "") -> None:
        """Goes to an address after the #, and waits for a text there."""
        self.script("location.hash = arguments[0]", place)
        if wanted:
            self.wait(lambda: wanted in self.text("#view"), wanted)

    def find(self, selector: str) -> WebElement:
        """Returns the first element that matches."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """Returns all elements that match."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """Returns the visible text of an element."""
        return str(self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def press(self, *keys: str) -> None:
        """Types keys, wherever the focus is."""
        for key in keys:
            webdriver.ActionChains(self.driver).send_keys(key).perform()

    def click(self, text: str, selector: str = "button, a, summary") -> None:
        """Clicks the element with a text."""
        def one() -> Optional[WebElement]:
            return next((found for found in self.all(selector) if text in found.text and found.is_displayed()), None)

        def clicked() -> bool:
            # An element that is replaced between the two cannot be clicked; then the new one is.
            found = one()
            if found:
                found.click()
            return found is not None

        self.wait(clicked, text)

    def hold(self, part: str, count: int = 1) -> None:
        """Holds the answers to the next requests whose addresses contain this text, until `release`: later answers arrive before them."""
        self.script("""
            let [part, left] = arguments;
            const ask = window.asks ??= window.fetch;
            const held = window.held = [];
            window.fetch = async (...given) => {
              if (!String(given[0]).includes(part) || left-- <= 0) return ask(...given);
              // In the order of the requests: two answers may arrive in either order.
              const one = { release: null };
              held.push(one);
              const answer = await ask(...given);
              await answer.clone().arrayBuffer();
              await new Promise((done) => { one.release = done; });
              return answer;
            };""", part, count)

    def held(self, count: int = 1) -> None:
        """Waits until this number of answers is held."""
        self.wait(lambda: self.script("return window.held.filter((one) => one.release).length") == count, "the answer that is held")

    def release(self) -> None:
        """Releases the answer to the first request that is held, and waits until the page has processed it."""
        self.wait(lambda: self.script("return Boolean(window.held[0]?.release)"), "the answer that is held")
        self.script("window.held.shift().release()")
        self.drawn()

    def drawn(self) -> None:
        """Waits until no transition runs, and the current state of the page is drawn."""
        self.wait(lambda: self.script("return document.getAnimations().every((one) => one.playState !== 'running')"))
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def picture(self, path: Path) -> None:
        """Takes a picture of the visible part, after all requests are answered."""
        self.wait(lambda: not self.script("return document.querySelector('#busy').classList.contains('on')"))
        self.drawn()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """Returns what the browser reported: errors of scripts, and requests that the content policy refused."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    #: For tests.
    KEYS = Keys
