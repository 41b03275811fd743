"""A real browser, chromium without a window, that looks at an inspector."""

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

#: Seconds after which something that should come is missing.
PATIENCE = 300.0


def start(folder: Path, wide: int = 1440, high: int = 900) -> webdriver.Chrome:
    """A browser with a profile of its own. Raises when it cannot be started: there is no test without one."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "/usr/bin/chromium"
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu", "--lang=en-GB",
        f"--window-size={wide},{high}", f"--user-data-dir={folder / 'profile'}", "--no-first-run", "--enable-precise-memory-info",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        # A name of somebody else's that leads here: what rebinding does.
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
    """Makes what can be seen of a page as large."""
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
        """What JavaScript returns."""
        return self.driver.execute_script(text, *arguments)

    def wait(self, until: Callable[[], Any], what: str = "") -> Any:
        """What a function gives as soon as that is true."""
        begun, problem = time.monotonic(), None
        while time.monotonic() - begun < PATIENCE:
            try:
                found = until()
                if found:
                    return found
            except Exception as raised:  # an element that was exchanged meanwhile
                problem = raised
            time.sleep(0.03)
        raise AssertionError(f"{what or 'it'} did not come; the page says: {self.text('#view')[:2000]}") from problem

    def go(self, place: str, wanted: str = "") -> None:
        """Goes to an address behind the #, and waits for a text there."""
        self.script("location.hash = arguments[0]", place)
        if wanted:
            self.wait(lambda: wanted in self.text("#view"), wanted)

    def find(self, selector: str) -> WebElement:
        """The first element."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All elements."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """The text of an element, as it is shown."""
        return str(self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def press(self, *keys: str) -> None:
        """Types keys, wherever the focus is."""
        for key in keys:
            webdriver.ActionChains(self.driver).send_keys(key).perform()

    def click(self, text: str, selector: str = "button, a, summary") -> None:
        """Clicks what carries a text."""
        def one() -> Optional[WebElement]:
            return next((found for found in self.all(selector) if text in found.text and found.is_displayed()), None)

        self.wait(one, text).click()

    def hold(self, part: str, count: int = 1) -> None:
        """Holds the next answers whose addresses have this in them, until `release`: later ones arrive before them."""
        self.script("""
            let [part, left] = arguments;
            const ask = window.asks ??= window.fetch;
            window.held = [];
            window.fetch = async (...given) => {
              const isHeld = String(given[0]).includes(part) && left-- > 0;
              const answer = await ask(...given);
              if (isHeld) {
                await answer.clone().arrayBuffer();
                await new Promise((done) => window.held.push(done));
              }
              return answer;
            };""", part, count)

    def held(self, count: int = 1) -> None:
        """Waits until so many answers are held."""
        self.wait(lambda: self.script("return window.held.length") == count, "the answer that is held")

    def release(self) -> None:
        """Lets the first answer through that is held, and waits until the page has done with it what it does."""
        self.wait(lambda: self.script("return window.held.length") > 0, "the answer that is held")
        self.script("window.held.shift()()")
        self.drawn()

    def drawn(self) -> None:
        """Waits until no transition runs, and what the page has by now is drawn."""
        self.wait(lambda: self.script("return document.getAnimations().every((one) => one.playState !== 'running')"))
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def picture(self, path: Path) -> None:
        """A picture of what can be seen, once nothing is on its way."""
        self.wait(lambda: not self.script("return document.querySelector('#busy').classList.contains('on')"))
        self.drawn()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def complaints(self) -> list[str]:
        """What the browser complained of: errors of scripts, and what the content policy refused."""
        entries = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    #: For tests.
    KEYS = Keys
