"""Computes the ids of versions from their contents, as docs/format.md defines them, with only hashlib.

    content_ids.py          writes content-ids.json beside this file, with the vectors
    content_ids.py --check  checks that this program computes that file

It is written from the page alone: it uses nothing of the library.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("content-ids.json")
KINDS = {"insert": 2, "update": 2, "remove": 3, "preserve": 4, "preserveRemoval": 5}


def text(id: str) -> bytes:
    """Encodes the id of a version."""
    return struct.pack("<H", len(id)) + id.encode("ascii")


def predecessors_part(version: dict[str, Any]) -> bytes:
    """Encodes the number of predecessors, and their ids."""
    ids = version["predecessors"]
    return bytes([len(ids)]) + b"".join(text(id) for id in ids)


def metadata_part(version: dict[str, Any]) -> bytes:
    """Encodes metadata, sorted by the bytes of the keys."""
    entries = sorted((key.encode(), b64decode(value)) for key, value in version["metadata"].items())
    out = struct.pack("<I", len(entries))
    for key, value in entries:
        out += struct.pack("<I", len(key)) + key + struct.pack("<I", len(value)) + value
    return out


def value_of(change: dict[str, Any]) -> bytes:
    """Returns the bytes that a change stores. Long ones are written as a byte and its number of repetitions."""
    if "repeat" in change:
        byte, count = change["repeat"]
        return bytes([byte]) * count
    return b64decode(change["data"])


def changes_part(version: dict[str, Any]) -> bytes:
    """Encodes changes, sorted by the bytes of the value ids."""
    changes = sorted(version["changes"], key=lambda change: change["id"].encode())
    out = struct.pack("<I", len(changes))
    for change in changes:
        id = change["id"].encode()
        out += struct.pack("<BH", KINDS[change["kind"]], len(id)) + id
        if change["kind"] in ("insert", "update"):
            value = value_of(change)
            out += struct.pack("<Q", len(value)) + hashlib.sha256(value).digest()
        elif change["kind"] == "preserve":
            out += text(change["stored"])
    return out


def uuid8(digest: bytes) -> str:
    """Returns the first 16 bytes as a UUID of version 8, in capitals."""
    raw = bytearray(digest[:16])
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    digits = raw.hex().upper()
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def content_input(version: dict[str, Any]) -> bytes:
    """Returns the bytes that are hashed."""
    timestamp = struct.pack("<d", float.fromhex(version["timestamp"]))
    return b"llvs content 1\0" + predecessors_part(version) + timestamp + metadata_part(version) + changes_part(version)


def content_id(version: dict[str, Any]) -> str:
    """Returns the id of a version."""
    return uuid8(hashlib.sha256(content_input(version)).digest())


def old_merge_id(version: dict[str, Any]) -> str:
    """Returns the id of a merge, in the form that earlier versions made."""
    return uuid8(hashlib.sha256(b"llvs merge 1\0" + predecessors_part(version) + metadata_part(version) + changes_part(version)).digest())


def b64(data: bytes) -> str:
    """Encodes bytes for JSON."""
    return b64encode(data).decode()


def version(
    name: str, predecessors: list[str] | None = None, timestamp: float = 0.0,
    metadata: dict[str, bytes] | None = None, changes: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Returns one vector, without its id."""
    return {
        "name": name, "predecessors": predecessors or [], "timestamp": float(timestamp).hex(),
        "metadata": {key: b64(value) for key, value in (metadata or {}).items()}, "changes": changes or [],
    }


def insert(id: str, data: bytes) -> dict[str, Any]:
    """Returns the insert of a value under a new id."""
    return {"kind": "insert", "id": id, "data": b64(data)}


def vectors() -> list[dict[str, Any]]:
    """Returns the vectors. Each tests a point that another implementation may get wrong."""
    a, b = "0C90A79B-B798-4F2B-B9AC-7665646A26C4", "453DB21B-4933-41B4-B4B7-3CD94B063623"
    set_x = insert("x", b"hello")
    return [
        version("nothing at all: the input that docs/format.md shows"),
        version("one value in a root", timestamp=816913493.4794178, changes=[set_x]),
        version("the same, an update: the label does not count", timestamp=816913493.4794178, changes=[set_x | {"kind": "update"}]),
        version("the same a microsecond later", timestamp=816913493.4794188, changes=[set_x]),
        version("the same on a predecessor", [a], 816913493.4794178, changes=[set_x]),
        version("on a predecessor whose id is no UUID", ["an-id_of-the-callers"], 816913493.4794178, changes=[set_x]),
        version("on one in small letters, which is another id", [a.lower()], 816913493.4794178, changes=[set_x]),
        version("a value of no bytes", [a], 1.5, changes=[insert("x", b"")]),
        version("a removal", [a], 1.5, changes=[{"kind": "remove", "id": "x"}]),
        version(
            "changes in no order, ids beyond ASCII and one id that begins another",
            [a],
            1.5,
            changes=[
                insert("\u00e9", b"1"),
                insert("e\u0301", b"2"),
                insert("ab", b"3"),
                insert("a", b"4"),
                insert("\U0001f600", b"5"),
                insert("\uffff", b"6"),
                {"kind": "remove", "id": "aa\0"},
            ],
        ),
        version("an id of 4,096 bytes", [a], 1.5, changes=[insert("x" * 4096, b"long")]),
        version("a value of a mebibyte and a byte", [a], 1.5, changes=[{"kind": "insert", "id": "large", "repeat": [171, (1 << 20) + 1]}]),
        version(
            "values around where their digests are kept",
            [a],
            1.5,
            changes=[
                {"kind": "update", "id": f"v{size}", "repeat": [7, size]} for size in (55, 56, 63, 64, 65, 119, 120, 65_535, 65_536, 65_537)
            ],
        ),
        version("metadata", [a], 1.5, {"author": b'"ann"', "__llvs_branch": b'"draft"', "\u00e9": b"\0\xff", "z": b""}, [set_x]),
        version("what a length keeps apart, one way", [a], 1.5, {"ab": b"c"}),
        version("what a length keeps apart, the other way", [a], 1.5, {"a": b"bc"}),
        version("a time below zero", [a], -0.1, changes=[set_x]),
        version("minus zero is not zero", [a], -0.0, changes=[set_x]),
        version("the largest time", [a], sys.float_info.max, changes=[set_x]),
        version("a merge that says nothing", [a, b], 2.000001),
        version("the same merge the other way round", [b, a], 2.000001),
        version(
            "a merge with all kinds of changes",
            [a, b],
            2.000001,
            {"device": b"1"},
            [
                insert("a", b"1"),
                {"kind": "update", "id": "b", "data": b64(b"2")},
                {"kind": "remove", "id": "c"},
                {"kind": "preserve", "id": "d", "stored": b},
                {"kind": "preserveRemoval", "id": "e"},
                {"kind": "preserve", "id": "f", "stored": "an-id_of-the-callers"},
            ],
        ),
        version("four hundred changes", [a], 3.0, changes=[insert(f"id/{i}", b"%d" % i) for i in range(400)]),
    ]


def main() -> None:
    """Writes or checks the file."""
    found = []
    for item in vectors():
        item["id"] = content_id(item)
        if len(item["predecessors"]) == 2:
            item["oldMergeID"] = old_merge_id(item)
        found.append(item)
    out = json.dumps({"versions": found}, indent=1, ensure_ascii=True) + "\n"
    if "--check" in sys.argv:
        if FILE.read_text() != out:
            raise SystemExit(f"{FILE.name} is not what {Path(__file__).name} computes")
        return
    FILE.write_text(out)
    if "-v" in sys.argv:
        print(content_input(found[0]).hex(" "), found[0]["id"])


if __name__ == "__main__":
    main()
