"""Small files of a peer in an exchange folder that could make other devices spend memory, temporary disk space, or time in a call that
cannot be cancelled."""

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

import llvs
from test_ids import folder, publish

__all__ = ["folder"]
MIB = 1 << 20


def memory(folder: Path, use: str) -> tuple[int, object]:
    """Runs an exchange with the folder in a process of its own. Returns the MiB of memory that it used, and `result`."""
    script = f"""
import json, resource, sys, llvs
def peak():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
    # The peak of this process. getrusage() would include the process that started it.
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
    """A version file with metadata or additional members."""
    pair = [] if not metadata else ["k", {"data": b64encode(metadata).decode()}]
    return json.dumps({"version": {"identifier": id, "timestamp": 1, "metadata": pair, **members}}).encode()


# ---- version files ----


def test_a_long_digest(folder: Path) -> None:
    """A digest has 64 digits. A longer one is not held until the changes arrive."""
    for i in range(16):
        publish(folder, f"v{i}", (version_file(f"v{i}", digest="0" * (4 << 20)), b"[]"))
    took, result = memory(folder, RETRIEVE)
    assert result == [0, [llvs.ErrorCode.DAMAGED]]
    assert took < 32, took


def test_much_metadata(folder: Path) -> None:
    """The size of metadata also limits how many versions are added together."""
    for i in range(24):
        publish(folder, f"v{i}", (version_file(f"v{i}", b"%02d" % i * MIB), b"[]"))
    took, result = memory(folder, RETRIEVE)
    assert result == [24, []]
    assert took < 64, took


# ---- snapshots of few bytes ----


def snapshot(folder: Path, entries: Iterable[bytes], latest: str) -> int:
    """Writes a snapshot with these entries; returns its size in bytes."""
    place, id = folder / "snapshots" / "llvs-v1", "A" * 36
    place.mkdir(parents=True)
    stream, count = bytearray(), 0
    chunks: list[bytes] = []

    def write(size: int) -> None:
        while len(stream) >= size > 0:
            deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
            part = bytes(stream[: 4 << 20])
            chunk = id.encode() + b"\1" + struct.pack("<I", len(part)) + deflate.compress(part) + deflate.flush()
            (place / f"chunk-{len(chunks):03}").write_bytes(chunk)
            chunks.append(chunk)
            del stream[: len(part)]
            size = min(size, len(stream))

    for entry in entries:
        count += 1
        stream += entry
        write(4 << 20)
    write(1)
    said = {"snapshotId": id, "format": "llvs-v1", "createdAt": 8e8, "latestVersionId": latest, "versionCount": count}
    sums = {"chunkCount": len(chunks), "totalSize": sum(map(len, chunks)), "chunkDigests": [sha256(chunk).hexdigest() for chunk in chunks]}
    (place / "manifest.json").write_text(json.dumps({**said, **sums}))
    return sum(map(len, chunks))


def entry(file: bytes, changes: Iterable[bytes] = ()) -> bytes:
    listed = list(changes)
    return struct.pack("<Q", len(file)) + file + struct.pack("<I", len(listed)) + b"".join(listed)


RESTORE = "exchange.restore_snapshot(); result = store.statistics().versions"


def test_much_metadata_in_a_snapshot(folder: Path) -> None:
    """The metadata is not held while the snapshot is checked, and not added in one step."""
    assert snapshot(folder, (entry(version_file(f"v{i}", b"A" * (3 << 20))) for i in range(32)), "v0") < MIB
    took, result = memory(folder, RESTORE)
    assert result == 32
    assert took < 64, took


def test_long_ids_in_a_snapshot(folder: Path) -> None:
    """Long ids are not held while the snapshot is checked, and not added in one step."""

    def removal(i: int) -> bytes:
        id = b"a" * 4_080 + b"%06d" % i
        return b"\3" + struct.pack("<I", len(id)) + id

    removals = [removal(i) for i in range(500)]
    assert snapshot(folder, (entry(version_file(f"v{i}"), removals) for i in range(48)), "v0") < MIB
    took, result = memory(folder, RESTORE)
    assert result == 48
    assert took < 64, took
