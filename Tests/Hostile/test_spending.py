"""What little that a peer lays into an exchange folder has others spend: memory, room for temporary files, and time in which a call
cannot be ended."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Iterable

import pytest

import llvs
from test_ids import folder, publish

__all__ = ["folder"]
MIB = 1 << 20


def memory(folder: Path, use: str) -> tuple[int, object]:
    """Runs it with an exchange through the folder in a process of its own; the MiB of memory that this took, and `result`."""
    script = f"""
import json, resource, sys, llvs
def peak():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    # Not that of whoever started this process.
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) >> 10
with llvs.Store({str(folder.parent / "receiver")!r}) as store, llvs.Exchange(store, {str(folder)!r}) as exchange:
    before = peak()
    {use}
    print(json.dumps([peak() - before, result]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2_000:]
    took, result = json.loads(run.stdout)
    return took, result


RETRIEVE = "done = exchange.retrieve(); result = [len(done.retrieved), sorted({problem.code for problem in done.problems})]"


def version_file(id: str, metadata: bytes = b"", **members: str) -> bytes:
    """With a digest or metadata that nobody needs."""
    pair = [] if not metadata else ["k", {"data": b64encode(metadata).decode()}]
    return json.dumps({"version": {"identifier": id, "timestamp": 1, "metadata": pair, **members}}).encode()


# ---- version files ----


def test_a_long_digest(folder: Path) -> None:
    """It has 64 digits: a longer one is not kept until the changes come."""
    for i in range(16):
        publish(folder, f"v{i}", (version_file(f"v{i}", digest="0" * (4 << 20)), b"[]"))
    took, result = memory(folder, RETRIEVE)
    assert result == [0, [llvs.ErrorCode.DAMAGED]]
    assert took < 32, took


def test_much_metadata(folder: Path) -> None:
    """It bounds what is added at once as well."""
    for i in range(24):
        publish(folder, f"v{i}", (version_file(f"v{i}", b"%02d" % i * MIB), b"[]"))
    took, result = memory(folder, RETRIEVE)
    assert result == [24, []]
    assert took < 64, took
