"""Makes hollow.json with the plain Python in Tests/Python/format_reader.py; README.md describes it."""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python")]

import format_reader as reader  # noqa: E402
import layout  # noqa: E402
from format_author import varint  # noqa: E402

VERSION = "hollow"
HOLLOW, FLAG, DIFFERENCES, DIGEST = reader.HOLLOW << 3, 0x01, 0x02, 32


def entry(tag: int, id: bytes, size: int, digest: bytes = b"", more: bytes = b"") -> bytes:
    return bytes([tag]) + varint(len(id)) + id + varint(size) + more + digest


def hollow(id: bytes, value: bytes, kind: int = reader.INSERT, tag: int = HOLLOW | DIGEST) -> bytes:
    return entry(kind | tag, id, len(value), hashlib.sha256(value).digest() if tag & DIGEST else b"")


def whole(id: bytes, value: bytes) -> tuple[bytes, bytes]:
    body = struct.pack("<I", len(value))
    return entry(reader.INSERT, id, len(value)), struct.pack("<I", reader.checksum(body, id, VERSION.encode(), value)) + body + value


def record(flags: int, entries: list[bytes], bodies: bytes, size: int, dependencies: tuple[str, ...] = ()) -> bytes:
    """Returns a record without predecessors that has these entries and bodies."""
    page = varint(0) + varint(0) + b"".join(entries)
    page = struct.pack("<I", len(page)) + page
    table = struct.pack("<I", reader.checksum(page)) + page
    header = bytes([len(VERSION)]) + VERSION.encode() + varint(0) + struct.pack("<d", 1.0)
    header += varint(size) + varint(len(entries)) + varint(1) + varint(len(dependencies))
    header += b"".join(bytes([len(id)]) + id.encode() for id in dependencies) + varint(0) + varint(0)
    prelude = struct.pack("<BBHIQQ", 1, flags, 0, len(header), len(table), len(bodies))
    return prelude + struct.pack("<I", reader.checksum(prelude, header)) + header + table + bodies


def vector(name: str, record: bytes) -> dict[str, Any]:
    """Returns a vector with what the reader makes of it."""
    row: dict[str, Any] = {"name": name, "record": record.hex()}
    try:
        version = reader.read_record(record)
    except reader.Damage:
        return row | {"refused": "damaged"}
    changes = []
    for id, change in sorted(version.changes.items()):
        changes.append({"id": id.decode(), "size": change.size, "hollow": change.encoding == reader.HOLLOW})
        if change.encoding != reader.HOLLOW and change.kind in (reader.INSERT, reader.UPDATE):
            version.values[id] = reader._read_value(Path(), version, change)
            changes[-1]["value"] = version.values[id].hex()
    return row | {"changes": changes, "identity": reader.identity(version).hex(), "sum_is_right": not version.problems}


def vectors() -> list[dict[str, Any]]:
    x, y = b"hello", b"1"
    one, body = whole(b"y", y)
    both = whole(b"x", x)
    removal = bytes([reader.REMOVE])
    rows = [
        vector("nothing is hollow", record(0, [both[0], one], both[1] + body, 6)),
        vector("the flag alone", record(FLAG, [both[0], one], both[1] + body, 6)),
        vector("the example of the page", record(FLAG, [hollow(b"x", x), one], body, 6)),
        vector("all values", record(FLAG, [hollow(b"x", x), hollow(b"y", y)], b"", 6)),
        vector("an update", record(FLAG, [hollow(b"x", x, reader.UPDATE), one], body, 6)),
        vector("the last value", record(FLAG, [both[0], hollow(b"y", y)], both[1], 6)),
        vector("an empty value", record(FLAG, [hollow(b"x", b""), one], body, 1)),
        vector("a large value", record(FLAG, [entry(reader.INSERT | HOLLOW | DIGEST, b"x", 1 << 30, bytes(32)), one], body, (1 << 30) + 1)),
        vector("between removals", record(FLAG, [removal + b"\1a", hollow(b"x", x), removal + b"\1z"], b"", 5)),
        vector("the header counts other bytes", record(FLAG, [hollow(b"x", x), one], body, 1)),
        vector("with the ignorable bit", record(FLAG, [hollow(b"x", x, tag=HOLLOW | DIGEST | 64), one], body, 6)),
        vector("beside the flag of differences", record(FLAG | DIFFERENCES, [hollow(b"x", x), one], body, 6)),
        vector("without the flag", record(0, [hollow(b"x", x), one], body, 6)),
        vector("with the flag of differences alone", record(DIFFERENCES, [hollow(b"x", x), one], body, 6)),
        vector("without a digest", record(FLAG, [hollow(b"x", x, tag=HOLLOW), one], body, 6)),
        vector("a digest that is cut short", record(FLAG, [one[:1].replace(b"\1", b"\x39") + b"\1x\5" + bytes(31)], b"", 5)),
        vector("as a difference", record(FLAG | DIFFERENCES, [hollow(b"x", x, tag=HOLLOW | DIGEST | 128), one], body, 6)),
        vector("with a body", record(FLAG, [hollow(b"x", x), one], both[1] + body, 6)),
        vector("with an empty body", record(FLAG, [hollow(b"x", x), one], struct.pack("<II", 0, 0) + body, 6)),
        vector("a value of more than 1 GiB", record(FLAG, [entry(0x39, b"x", (1 << 30) + 1, bytes(32))], b"", 5)),
        vector("a removal", record(FLAG, [bytes([reader.REMOVE | HOLLOW | DIGEST]) + b"\1x"], b"", 0)),
        vector("a removal without the bit of a digest", record(FLAG, [bytes([reader.REMOVE | HOLLOW]) + b"\1x"], b"", 0)),
        vector("a preserve", record(FLAG, [bytes([reader.PRESERVE | HOLLOW | DIGEST]) + b"\1x\0"], b"", 0, ("other",))),
    ]
    return rows


if __name__ == "__main__":
    path, made = HERE / "hollow.json", layout.text({"format": 1, "vectors": vectors()})
    if "--check" in sys.argv:
        assert path.read_text(encoding="ascii") == made, f"{path.name} is not what the page says"
    else:
        path.write_text(made, encoding="ascii")
