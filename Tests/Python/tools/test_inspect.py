"""`llvs inspect` serves the inspector, which has tests of its own (Tests/Inspector)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import llvs

from .conftest import SURROUNDINGS, Run


def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "notes.llvs") as store:
        store.save(insert={"a": b"1"})
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "inspect", str(tmp_path / "notes.llvs"), "--no-open"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **SURROUNDINGS, "PYTHONUNBUFFERED": "1"},
    )
    assert running.stdout
    address = None
    while address is None:
        line = running.stdout.readline()
        assert line, "it ended"
        address = re.search(rb"http://127\.0\.0\.1:\d+/\S*", line)
    # The address has a key, which becomes the token.
    place, _, key = address[0].decode().partition("/#key=")
    with urllib.request.urlopen(f"{place}/", timeout=300) as page:
        assert page.status == 200
    entry = urllib.request.Request(f"{place}/enter", b"", {"origin": place, "x-llvs-key": key})
    with urllib.request.urlopen(entry, timeout=300) as entered:
        token = entered.read().decode()
    with urllib.request.urlopen(urllib.request.Request(f"{place}/api/summary", headers={"x-llvs-token": token}), timeout=300) as answer:
        assert b"notes.llvs" in answer.read()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=300)
    assert running.returncode in (0, 130)


def test_what_is_no_store(llvs_run: Run) -> None:
    assert llvs_run("inspect", "nowhere", "--no-open", code=3).err.startswith("llvs: ")
    assert "not in the range" in llvs_run("inspect", "--port", "99999", code=2).err
