"""The program `python -m llvs.inspector`, and news of versions that other processes add."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
import stores
from patience import eventually
from running import Running, enter


@pytest.fixture
def store(tmp_path: Path) -> Iterator[llvs.Store]:
    with llvs.Store(tmp_path / "notes.llvs") as store:
        stores.story(store)
        yield store


def events(answer: Any) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_what_another_process_adds_is_news(store: llvs.Store) -> None:
    running = Running(Path(store.path))
    try:
        answer = running.open("/api/news")
        assert answer.headers["content-type"].startswith("text/event-stream")
        heard = events(answer)
        before = next(heard)
        assert before["versions"] == 8
        made = store.make_version(before["head"], update={"contact/dora": b"{}"})
        for now in heard:
            if now["versions"] == 9:
                break
        assert now["head"] == made.id and now["generation"] > before["generation"]
        rows = running.get("/api/history")["rows"]
        assert rows[0]["id"] == made.id
    finally:
        code = running.end()  # ends though a stream is open
        answer.close()
    assert code == 0


def test_a_store_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    for path in (tmp_path / "none", tmp_path / "other", tmp_path / "other" / "file"):
        done = subprocess.run([sys.executable, "-m", "llvs.inspector", str(path), "--no-open"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "none").exists()


def test_a_port_that_is_taken_and_one_that_is_none(store: llvs.Store) -> None:
    running = Running(Path(store.path))
    try:
        command = [sys.executable, "-m", "llvs.inspector", store.path, "--no-open", "--port"]
        done = subprocess.run([*command, str(running.port)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 3 and "--port" in done.stderr and len(done.stderr.splitlines()) == 1
        assert subprocess.run([*command, "70000"], capture_output=True, timeout=300).returncode == 2
    finally:
        running.end()


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with llvs.Store(path, storage="sqlite") as store:
        stores.story(store)
    running = Running(path)
    try:
        assert running.get("/api/summary")["versions"] == 8
    finally:
        assert running.end() == 0


#: A typical browser: it receives its address as an argument, and runs until it is closed. It logs its arguments, which every user can read.
BROWSER = """
import os, sys, time
with open(sys.argv[1] + ".part", "wb") as file:
    file.write(open("/proc/self/cmdline", "rb").read() if os.path.exists("/proc/self") else b"\\0".join(map(os.fsencode, sys.argv)))
os.rename(sys.argv[1] + ".part", sys.argv[1])
sys.stdin.read()
"""


def test_no_argument_of_the_browser_lets_anybody_in(store: llvs.Store, tmp_path: Path) -> None:
    script, noted = tmp_path / "browser.py", tmp_path / "arguments"
    script.write_text(BROWSER)
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.inspector", store.path], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.PIPE, env={**os.environ, "BROWSER": f"{sys.executable} {script} {noted} %s", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    try:
        eventually(noted.exists)
        arguments = noted.read_bytes().decode().split("\0")
        assert "http" not in "".join(arguments) and "key=" not in "".join(arguments)
        (address,) = [argument for argument in arguments if argument.startswith("file://")]
        page = Path(urllib.parse.unquote(urllib.parse.urlsplit(address).path))
        assert page.stat().st_mode & 0o777 == 0o600 and page.parent.stat().st_mode & 0o777 == 0o700
        found = re.search(r'refresh" content="0; url=http://127\.0\.0\.1:(\d+)/#key=([\w-]+)"', page.read_text())
        assert found
        status, token = enter(int(found[1]), found[2])
        assert status == 200 and token not in page.read_text()
        assert enter(int(found[1]), found[2])[0] == 401, "it serves once"
    finally:
        running.send_signal(signal.SIGINT)
        told, _ = running.communicate(timeout=300)
    assert token not in told
    assert not page.exists() and not page.parent.exists()
