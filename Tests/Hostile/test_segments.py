"""Forged segments and marker files with wrong lengths and correct checksums. Each test is for a guard without which the process would end,
or a result would be wrong. The tests run in child processes, since a trap could end them."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import format_reader as reader
import llvs
import pytest
from test_opening import HEADER, ID, MIB, frame, frame_header, record

MOST = (1 << 64) - 1


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A store with one version, "whole"."""
    with llvs.Store(tmp_path / "store") as store:
        store.make_version(None, id="whole", insert={"a": b"1"})
    return tmp_path / "store"


def told(path: Path, verify: bool = True) -> tuple[list[str], list[str], int]:
    """Verifies a store in a child process. Returns its heads, the reported damages, and the MiB that the process used."""
    script = f"""
import json, llvs
def peak():
    # The peak of this process. getrusage() would include the process that started it.
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
before = peak()
with llvs.Store({str(path)!r}) as store:
    heads, report = sorted(head.id for head in store.heads()), store.verify() if {verify} else None
    damages = [damage.message for damage in [*report.damages, *report.unfinished]] if report else []
print(json.dumps([heads, damages, (peak() - before) >> 10]))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, (run.returncode, run.stderr[-2_000:])
    heads, damages, took = json.loads(run.stdout)
    return heads, damages, took


def table(*lengths: int, count: int = -1) -> bytes:
    entries = b"".join(struct.pack("<QI", length, 0) for length in lengths)
    return struct.pack("<I", len(lengths) if count < 0 else count) + entries


def framed(*records: bytes, lengths: list[int], padding: bytes = b"") -> bytes:
    """Makes a batch with these lengths in its table. All checksums are correct, as far as the lengths allow."""
    content = b"".join(records) + padding
    ends = [sum(len(r) for r in records[:i]) for i in range(len(records))]
    pairs = [(length, reader.checksum(content[start : start + min(length, len(content))])) for start, length in zip(ends, lengths)]
    head = struct.pack("<I", len(pairs)) + b"".join(struct.pack("<QI", *pair) for pair in pairs)
    return frame_header(ID, 64, len(head) + len(content), reader.checksum(head)) + head + content


def put(path: Path, data: bytes) -> None:
    (path / "segments" / f"{ID.hex()}.seg").write_bytes(HEADER + data)


def behind(data: bytes) -> bytes:
    """Adds a version after the data, so that the data does not count as an unfinished tail."""
    return data + frame(ID, 64 + len(data), record("behind", (b"b", b"2")))


@pytest.mark.parametrize("size", [MOST, 1 << 63, 1 << 40], ids=["most", "negative", "large"])
def test_a_frame_that_ends_behind_the_file(whole: Path, size: int) -> None:
    put(whole, behind(frame_header(ID, 64, size, 0)))
    assert told(whole)[0] == ["whole"]


@pytest.mark.parametrize("size", [MOST, 1 << 40], ids=["most", "large"])
def test_a_frame_behind_damage_that_ends_behind_the_file(whole: Path, size: int) -> None:
    """The frames after a damaged one are visited, to find out which were synced."""
    bad = frame_header(ID, 64, 4, 1) + b"none"
    put(whole, bad + frame_header(ID, 64 + len(bad), size, 0))
    assert told(whole)[0] == ["whole"]


@pytest.mark.parametrize("body", [b"", b"\1", b"\1\0\0"], ids=["empty", "one byte", "three bytes"])
def test_a_batch_without_room_for_its_count(whole: Path, body: bytes) -> None:
    put(whole, behind(frame_header(ID, 64, len(body), reader.checksum(body)) + body))
    assert told(whole)[0] == ["behind", "whole"]


@pytest.mark.parametrize("count", [2, 1 << 20, (1 << 32) - 1])
def test_a_batch_of_more_records_than_it_has_room_for(whole: Path, count: int) -> None:
    body = table(0, count=count)
    put(whole, behind(frame_header(ID, 64, len(body), reader.checksum(body)) + body))
    heads, _, took = told(whole)
    assert heads == ["behind", "whole"] and took < 64


def test_a_record_that_reaches_into_the_next_frame(whole: Path) -> None:
    """Bytes after the frame are not a part of the record."""
    one = record("one", (b"c", b"3"))
    half = framed(one, lengths=[len(one)])[: -len(one)]
    # The same table in a frame that ends before the record.
    body = half[48:] + one[:20]
    cut = frame_header(ID, 64, len(body), reader.checksum(half[48:])) + body
    put(whole, behind(cut + one[20:]))
    assert told(whole)[0] == ["behind", "whole"]


def test_a_frame_that_is_longer_than_its_record(whole: Path) -> None:
    one = record("one", (b"c", b"3"))
    put(whole, behind(framed(one, lengths=[len(one)], padding=b"padding")))
    assert told(whole)[0] == ["behind", "whole"]


@pytest.mark.parametrize("lengths", [(0, 7), (7, 0), (MOST, 0), (MOST, MOST)], ids=str)
def test_records_that_do_not_fill_their_frame(whole: Path, lengths: tuple[int, int]) -> None:
    one, two = record("one", (b"c", b"3")), record("two", (b"d", b"4"))
    claimed = [length if length == MOST else len(r) - length for length, r in zip(lengths, (one, two))]
    put(whole, behind(framed(one, two, lengths=claimed)))
    assert told(whole)[0] == ["behind", "whole"]


def test_two_records_that_fill_their_frame(whole: Path) -> None:
    one, two = record("one", (b"c", b"3")), record("two", (b"d", b"4"))
    put(whole, behind(framed(one, two, lengths=[len(one), len(two)])))
    assert told(whole)[0] == ["behind", "one", "two", "whole"]


@pytest.mark.in_turn("kind", "size")
@pytest.mark.parametrize("kind", [2, 3, 9, 200], ids=["seal", "sources", "unknown", "to be passed over"])
@pytest.mark.parametrize("size", [0, 15, 16, 17])
def test_other_frames_of_any_size(whole: Path, kind: int, size: int) -> None:
    """Frames after one with a false claim are found."""
    body = os.urandom(size)
    head = bytearray(frame_header(ID, 64, size, reader.checksum(body) ^ 1))
    head[4] = kind
    head[44:] = struct.pack("<I", reader.checksum(bytes(head[:44])))
    put(whole, behind(bytes(head) + body))
    assert told(whole)[0] == ["behind", "whole"]


def test_a_list_of_sources_that_is_a_hole(whole: Path) -> None:
    """The list is not held in memory, whatever size it claims."""
    size = 1 << 32
    head = bytearray(frame_header(ID, 64, size, 0))
    head[4] = 3
    head[44:] = struct.pack("<I", reader.checksum(bytes(head[:44])))
    put(whole, bytes(head))
    os.truncate(whole / "segments" / f"{ID.hex()}.seg", 64 + 48 + size)
    heads, _, took = told(whole, verify=False)
    assert heads == ["whole"] and took < 64


@pytest.mark.parametrize("keeps", [0, 1, 63, 64, 111])
def test_a_segment_that_is_shorter_than_its_headers(whole: Path, keeps: int) -> None:
    data = HEADER + frame(ID, 64, record("one", (b"b", b"2")))
    (whole / "segments" / f"{ID.hex()}.seg").write_bytes(data[:keeps])
    assert told(whole)[0] == ["whole"]


@pytest.mark.parametrize("format, is_read", [(1, True), (2, False), (0, False)])
def test_the_format_of_a_segment(whole: Path, format: int, is_read: bool) -> None:
    head = HEADER[:8] + struct.pack("<I", format) + HEADER[12:60]
    data = head + struct.pack("<I", reader.checksum(head)) + frame(ID, 64, record("one", (b"b", b"2")))
    (whole / "segments" / f"{ID.hex()}.seg").write_bytes(data)
    heads, damages, _ = told(whole)
    assert heads == (["one", "whole"] if is_read else ["whole"])
    assert is_read or any(f"format {format}" in damage for damage in damages)


def test_a_segment_under_the_name_of_another(whole: Path) -> None:
    (whole / "segments" / f"{bytes(16).hex()}.seg").write_bytes(HEADER + frame(ID, 64, record("one", (b"b", b"2"))))
    heads, damages, _ = told(whole)
    assert heads == ["whole"] and any("another name" in damage for damage in damages)


def test_a_frame_of_another_segment(whole: Path) -> None:
    """A store inside a value of a store. Frames of another segment, and frames that claim another position, are ignored."""
    other = bytes(16)
    for data in (frame(other, 64, record("other", (b"b", b"2"))), frame(ID, 65, record("elsewhere", (b"b", b"2")))):
        put(whole, behind(data))
        assert told(whole)[0] == ["behind", "whole"]


# ---- The marker file of the directory ----


@pytest.mark.parametrize(
    "text, code",
    [
        (b"LLVS store\nformat 2\n", llvs.ErrorCode.NEWER_FORMAT),
        (b"LLVS store\nformat 99999999999999999999999\nmore\n", llvs.ErrorCode.NEWER_FORMAT),
        (b"LLVS store\nformat 01\n", None),
        (b"LLVS store\nformat 1", None),
        (b"LLVS store\nformat \n", None),
        (b"LLVS store\nformat -1\n", None),
        (b"LLVS store", None),
        (b"", None),
        (b"\0" * 300, None),
        (random.Random(1).randbytes(MIB), None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_the_marker(whole: Path, text: bytes, code: llvs.ErrorCode | None) -> None:
    """An unknown format is refused, and the file stays unchanged. A damaged marker is reported, and no version is lost."""
    (whole / "llvs-store").write_bytes(text)
    if code is None:
        heads, damages, _ = told(whole)
        assert heads == ["whole"] and ["llvs-store" in damage for damage in damages] == [True]
    else:
        for options in ({}, {"read_only": True}, {"create": False}):
            with pytest.raises(llvs.Error) as caught:
                llvs.Store(whole, **options)
            assert caught.value.code == code
    assert (whole / "llvs-store").read_bytes() == text


@pytest.mark.parametrize("what", ["a directory", "a pipe", "a hole", "a link", "nothing"])
def test_something_in_the_place_of_the_marker(tmp_path: Path, whole: Path, what: str) -> None:
    marker, precious = whole / "llvs-store", tmp_path / "precious"
    marker.unlink()
    precious.write_bytes(b"LLVS store\nformat 2\n")
    if what == "a directory":
        marker.mkdir()
    elif what == "a pipe":
        os.mkfifo(marker)
    elif what == "a hole":
        marker.touch()
        os.truncate(marker, 1 << 40)
    elif what == "a link":
        marker.symlink_to(precious)
    if what == "a link":
        with pytest.raises(llvs.Error, match="llvs-store"):
            llvs.Store(whole)
    else:
        heads, damages, took = told(whole)
        assert heads == ["whole"] and ["llvs-store" in damage for damage in damages] == [True] and took < 64
    assert precious.read_bytes() == b"LLVS store\nformat 2\n"


def test_a_directory_of_other_things_becomes_no_store(tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "precious").write_bytes(b"1")
    with pytest.raises(llvs.Error) as caught:
        llvs.Store(folder)
    assert caught.value.code == llvs.ErrorCode.NOT_A_STORE and [file.name for file in folder.iterdir()] == ["precious"]
