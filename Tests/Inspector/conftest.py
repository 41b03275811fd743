"""Fixtures of the tests of the inspector. The package and its library come from the environment, as for Tests/Python."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path += [str(ROOT / "Tests" / "Python"), str(ROOT / "Tests" / "Support")]
if importlib.util.find_spec("llvs") is None:
    sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))
    os.environ.setdefault("LLVS_LIBRARY", str(ROOT / "build" / "lib" / "libllvs.so"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))

import llvs  # noqa: E402
import stores  # noqa: E402
from browser import Page, start  # noqa: E402
from running import Running  # noqa: E402
from sampling import pytest_runtest_makereport, pytest_terminal_summary  # noqa: E402, F401 - hooks of pytest
from starlette.testclient import TestClient  # noqa: E402

from llvs.inspector.app import make_app, make_guard  # noqa: E402
from llvs.inspector.inspected import Inspected  # noqa: E402

#: The folder for pictures of the pages, and for figures.
PICTURES = ROOT / "build" / "inspector"
PORT = 4711
ADDRESS = f"http://127.0.0.1:{PORT}"


class Client:
    """Sends requests to an inspector, as its page does."""

    def __init__(self, inspected: Inspected) -> None:
        self.inspected = inspected
        self.guard = make_guard(PORT)
        self.http = TestClient(make_app(inspected, self.guard), base_url=ADDRESS, follow_redirects=False)
        self.token = self.enter(self.guard.new_address()).text
        self.http.headers["x-llvs-token"] = self.token

    def enter(self, address: str, **headers: str) -> Any:
        """Returns the answer to the key in an address."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post("/enter", headers={"origin": ADDRESS, "x-llvs-key": address.partition("#key=")[2], **given})

    def get(self, name: str, **query: Any) -> Any:
        """Returns the answer of an endpoint, which must not be an error."""
        answer = self.http.get(f"/api/{name}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, name: str, **query: Any) -> tuple[int, str]:
        """Returns the status and the sentence of a request that is refused."""
        answer = self.http.get(f"/api/{name}", params=query)
        assert answer.status_code >= 400, answer.text
        return answer.status_code, answer.json()["error"]

    def change(self, what: str, **given: Any) -> Any:
        """Returns the answer to a change, with its status."""
        answer = self.http.post(f"/api/change/{what}", json=given, headers={"origin": ADDRESS})
        return answer.status_code, answer.json()


@pytest.fixture
def inspect(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Opens the inspector of a store. A function makes the store unless it exists."""
    opened: list[Inspected] = []

    def make(fill: Callable[[llvs.Store], Any] = stores.story, *, write: bool = False, name: str = "notes.llvs") -> Client:
        path = tmp_path / name
        if not path.exists():
            with llvs.Store(path) as store:
                fill(store)
        opened.append(Inspected(path, write=write))
        return Client(opened[-1])

    yield make
    for inspected in opened:
        inspected.close()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests; they fail if it cannot be started."""
    driver = start(tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()


@pytest.fixture
def show(driver: Any, tmp_path: Path) -> Iterator[Callable[..., tuple[Page, llvs.Store, Any]]]:
    """Makes a store, serves it in a process of its own, and opens the page. No script may run or fail there, and no request may be
    refused."""
    running: list[Running] = []
    opened: list[llvs.Store] = []
    pages: list[Page] = []
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def make(
        fill: Callable[[llvs.Store], Any] = stores.story, *arguments: str, name: str = "contacts.llvs"
    ) -> tuple[Page, llvs.Store, Any]:
        store = llvs.Store(tmp_path / name)
        opened.append(store)
        made = fill(store)
        running.append(Running(tmp_path / name, *arguments))
        driver.get("about:blank")
        driver.get_log("browser")
        pages.append(Page(driver, running[-1].address))
        return pages[-1], store, made

    yield make
    try:
        for page in pages:
            assert page.script("return window.ran") is None
            assert page.complaints() == []
    finally:
        driver.get("about:blank")
        for one in running:
            one.end()
        for store in opened:
            store.close()
