"""Files that claim more than they contain, and records with the same id: opening a store costs in proportion to the data on the disk. Reads
are counted, since times vary."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Callable

import format_reader as reader
import llvs
import pytest
from format_author import inserts

TIB = 1 << 40
MIB = 1 << 20


# ---- Hand-made files, by docs/format.md ----


def segment_header(id: bytes) -> bytes:
    data = b"LLVSseg\n" + struct.pack("<II16sqQQI", 1, 0, id, 0, 0, 0, 0)
    return data + struct.pack("<I", reader.checksum(data))


def frame_header(id: bytes, offset: int, size: int, checksum: int) -> bytes:
    head = b"\xa7LVF" + struct.pack("<B3x16sQQI", 1, id, offset, size, checksum)
    return head + struct.pack("<I", reader.checksum(head))


def frame(id: bytes, offset: int, record: bytes) -> bytes:
    table = struct.pack("<IQI", 1, len(record), reader.checksum(record))
    return frame_header(id, offset, len(table) + len(record), reader.checksum(table)) + table + record


def record(id: str, *changes: tuple[bytes, bytes]) -> bytes:
    """A root that inserts values of at most 127 bytes."""
    table, bodies = inserts(id, list(changes))
    header = (
        bytes([len(id)])
        + id.encode()
        + b"\0"
        + struct.pack("<d", 1.0)
        + varint(sum(len(value) for _, value in changes))
        + varint(len(changes))
        + b"\1\0\0\0"
    )
    start = struct.pack("<BBHIQQ", 1, 0, 0, len(header), len(table), len(bodies))
    return start + struct.pack("<I", reader.checksum(start, header)) + header + table + bodies


def varint(number: int) -> bytes:
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def sparse(path: Path, data: bytes, size: int = TIB) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    os.truncate(path, size)


# ---- What opening costs ----


def cost(path: Path, use: str = "", **options: object) -> tuple[int, int, str]:
    """Opens the store in a process of its own. Returns the number of bytes that it read, the bytes of memory that it used, and its
    output."""
    script = f"""
import json, sys, llvs
def read():
    return int(open("/proc/self/io").read().split()[1])
def peak():
    # Not with getrusage(), which includes the peak of the process that started this one.
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
llvs.Store({str(path)!r} + "-none").close()
memory, before = peak(), read()
with llvs.Store({str(path)!r}, **{options!r}) as store:
    heads = [head.id for head in store.heads()]
    {use or "pass"}
print(json.dumps([read() - before, 1024 * (peak() - memory), heads]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2_000:]
    bytes_read, memory, heads = json.loads(run.stdout)
    return bytes_read, memory, " ".join(heads)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A store with one version, "whole"."""
    with llvs.Store(tmp_path / "store") as store:
        store.make_version(None, id="whole", insert={"a": b"1"})
    return tmp_path / "store"


ID = bytes(range(16))
HEADER = segment_header(ID)

HOLLOW: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "no header": lambda: b"anything else" * 100,
    "a header": lambda: HEADER,
    "a header and a version": lambda: HEADER + frame(ID, 64, record("other", (b"b", b"2"))),
    "a frame of all the rest": lambda: HEADER + frame_header(ID, 64, TIB - 64 - 48, 0),
    "a record of all the rest": lambda: HEADER
    + frame_header(ID, 64, TIB - 64 - 48, reader.checksum(struct.pack("<IQI", 1, TIB - 64 - 48 - 16, 0)))
    + struct.pack("<IQI", 1, TIB - 64 - 48 - 16, 0),
}


@pytest.mark.parametrize("content", HOLLOW)
def test_a_segment_of_holes(whole: Path, content: str) -> None:
    sparse(whole / "segments" / f"{ID.hex()}.seg", HOLLOW[content]())
    bytes_read, memory, heads = cost(whole)
    assert bytes_read < 32 * MIB and memory < 64 * MIB
    assert sorted(heads.split()) == (["other", "whole"] if "version" in content else ["whole"])


def test_what_lies_behind_a_hole_is_found(whole: Path) -> None:
    """Copies by other programs may be sparse. A hole reads as zeros, and the frames behind it are read."""
    at = 64 * MIB
    path = whole / "segments" / f"{ID.hex()}.seg"
    sparse(path, HEADER + frame(ID, 64, record("before", (b"b", b"2"))), at)
    with path.open("ab") as file:
        file.write(frame(ID, at, record("behind", (b"b", b"3"))))
    bytes_read, _, heads = cost(whole)
    assert sorted(heads.split()) == ["before", "behind", "whole"] and bytes_read < 16 * MIB


def test_zeros_in_a_record_may_be_a_hole(tmp_path: Path) -> None:
    """`cp --sparse=always` makes holes of zeros, for which the checksums still hold."""
    with llvs.Store(tmp_path / "store") as store:
        store.make_version(None, id="zeros", insert={f"k{i}": os.urandom(9) + bytes(MIB - 10) for i in range(8)})
        # A value that shrinks is stored compressed. The sparse copy is the same for every content.
    for file in (tmp_path / "store" / "segments").iterdir():
        copy = file.with_suffix(".copy")
        subprocess.run(["cp", "--sparse=always", file, copy], check=True)
        os.rename(copy, file)
    with llvs.Store(tmp_path / "store") as store:
        assert len(store.at("zeros")) == 8 and not store.verify().damages


def test_garbage_without_a_header_is_given_up(whole: Path) -> None:
    junk = os.urandom(MIB)
    with (whole / "segments" / f"{ID.hex()}.seg").open("wb") as file:
        for _ in range(64):
            file.write(junk)
    bytes_read, _, heads = cost(whole)
    assert bytes_read < 8 * MIB and heads == "whole"


def test_a_value_of_holes(whole: Path) -> None:
    header = b"LLVSblb\n" + struct.pack("<II16sQI16x", 1, 65_536, ID, TIB - TIB // 8_192, 0)
    sparse(whole / "blobs" / f"{ID.hex()}.blob", header + struct.pack("<I", reader.checksum(header)))
    bytes_read, memory, _ = cost(whole, "store.verify()")
    assert bytes_read < 32 * MIB and memory < 32 * MIB


@pytest.mark.parametrize("size", [TIB, 1 << 30], ids=["too large", "possible"])
def test_caches_of_holes(tmp_path: Path, size: int) -> None:
    path = tmp_path / "store"
    with llvs.Store(path, durability="normal") as store:
        last = store.make_version(None, insert={f"k{i}": b"v" for i in range(3_000)})
        for i in range(1_100):
            last = store.make_version(last, insert={f"k{i}": b"w"})
    caches = list((path / "cache").glob("*.cache"))
    assert caches
    for file in caches:
        data = bytearray(file.read_bytes())
        struct.pack_into("<Q", data, 16, size - 32)
        struct.pack_into("<I", data, 28, reader.checksum(bytes(data[:28])))
        sparse(file, bytes(data), size)
    bytes_read, memory, heads = cost(path, "len(store.at(store.heads()[0]).items())")
    assert heads == last.id and bytes_read < 64 * MIB and memory < 256 * MIB


# ---- Costs that grow with their square ----


def author(path: Path, frames: list[bytes]) -> None:
    data = HEADER
    for body in frames:
        data += frame(ID, len(data), body)
    (path / "segments" / f"{ID.hex()}.seg").write_bytes(data)


def test_records_that_claim_one_id(whole: Path) -> None:
    """Each record is read once, though the one that prevails is large."""
    large = record("one", *((f"k{i:06}".encode(), b"v" * 100) for i in range(20)))
    frames = [large] + [record("one", (b"a", str(i).encode())) for i in range(3_000)]
    author(whole, frames)
    size = sum(map(len, frames))
    bytes_read, _, heads = cost(whole)
    assert sorted(heads.split()) == ["one", "whole"]
    few = cost_of_few(whole, large)
    assert bytes_read < few + 40 * size + 8 * MIB


def cost_of_few(path: Path, large: bytes) -> int:
    author(path, [large])
    return cost(path)[0]


def test_frames_with_bad_tables(whole: Path) -> None:
    data, body = HEADER, bytes(1_000)
    for _ in range(4_000):
        data += frame_header(ID, len(data), len(body), 1) + body
    data += frame(ID, len(data), record("last", (b"b", b"2")))
    (whole / "segments" / f"{ID.hex()}.seg").write_bytes(data)
    bytes_read, _, heads = cost(whole)
    assert sorted(heads.split()) == ["last", "whole"] and bytes_read < 8 * len(data) + 8 * MIB


# ---- Control ----


def test_opening_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    llvs.Store(path).close()
    (path / "segments" / f"{ID.hex()}.seg").write_bytes(HEADER + os.urandom(MIB) * 32)
    token = llvs.CancelToken()
    token.cancel()
    with pytest.raises(llvs.CancelledError):
        llvs.Store(path, cancel=token)
