"""Makes differences.json with the plain Python in Tests/Python/value_differences.py; README.md describes it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python")]

import value_differences as d  # noqa: E402
import format_reader as reader  # noqa: E402
import layout  # noqa: E402

VERSION = "0C90A79B-B798-4F2B-B9AC-7665646A26C4"


def vector(name: str, stored: bytes, size: int, base: bytes) -> dict[str, Any]:
    """Returns a vector with the reader's result: the value, or the reason for which it is refused."""
    row: dict[str, Any] = {"name": name, "stored": stored.hex(), "size": size, "base": base.hex()}
    try:
        row["value"] = d.apply(stored, size, base).hex()
    except reader.NewerFormat:
        row["refused"] = "newer"
    except reader.Damage:
        row["refused"] = "damaged"
    return row


def good() -> list[dict[str, Any]]:
    base, value = b"hello world, hello all", b"hello brave world, hello all"
    rows = [vector("the example of the page", d.encode(base, value, [(0, 6), b"brave ", (6, 16)], VERSION), len(value), base)]
    text = bytes(range(97, 123)) * 4
    for name, operations in [
        ("all of the base", [(0, 104)]),
        ("a part from the middle", [(40, 50)]),
        ("back in the base", [(60, 20), (5, 20), (0, 1), (0, 1)]),
        ("the same bytes twice", [(3, 60), (3, 60)]),
        ("literals alone", [b"x" * 200]),
        ("literals before and behind", [b"<" * 40, (10, 60), b">"]),
        ("the last byte", [b"y" * 60, (103, 1)]),
    ]:
        made = b"".join(part if isinstance(part, bytes) else text[part[0] : part[0] + part[1]] for part in operations)  # type: ignore[misc]
        for deflates in (False, True):
            stored = d.encode(text, made, operations, VERSION, deflates=deflates)  # type: ignore[arg-type]
            if len(stored) <= len(made) + 256:
                rows.append(vector(name + (", deflated" if deflates else ""), stored, len(made), text))
    wide = text * 3
    stored = d.encode(wide, wide, [(0, 312)], "a-name_1", place=1_023, way_before=1_000_000, body=2_000_000)
    rows.append(vector("large numbers, and a version with a name", stored, 312, wide))
    rows.append(vector("an empty base", d.encode(b"", b"z" * 90, [b"z" * 90], VERSION, deflates=True), 90, b""))
    draw = random.Random(1)
    for i in range(40):
        base = bytes(draw.choice(b"abcd") for _ in range(draw.randrange(300)))
        made = base
        for _ in range(draw.randrange(6)):
            at = draw.randrange(len(made) + 1)
            made = made[:at] + bytes(draw.choice(b"abcdefgh") for _ in range(draw.randrange(20))) + made[at + draw.randrange(20) :]
        stored = d.encode(base, made, d.find_operations(base, made, draw.choice((1, 2, 4, 8))), VERSION, deflates=bool(i % 2))
        if len(stored) <= len(made) + 256:
            rows.append(vector(f"random {i}", stored, len(made), base))
    return rows


def refused() -> list[dict[str, Any]]:
    base = bytes(range(200))
    value = base[:90] + b"-" * 10 + base[100:]
    operations: list[d.Operation] = [(0, 90), b"-" * 10, (100, 100)]
    right = d.encode(base, value, operations, VERSION)
    singles: list[d.Operation] = [(i, 1) for i in range(162)] + [(0, 1), (199, 1)] * 19

    def streams(made: bytes, size: int = 200, kind: int = 0, inflated: Optional[int] = None) -> bytes:
        before = right[: len(right) - len(d.streams_of(operations))]
        return bytes([kind]) + before[1:] + (d.varint(inflated) if inflated is not None else b"") + made

    plain = d.streams_of(operations)
    at = right.index(plain)
    deflated = d.encode(base, value, operations, VERSION, deflates=True)
    rows = [vector("right", right, 200, base)]
    assert "value" in rows[0]
    for name, stored, size, on in [
        ("nothing", b"", 200, base),
        ("another kind", b"\2" + right[1:], 200, base),
        ("place 0", b"\0\0" + right[2:], 200, base),
        ("place 1024", right[:1] + d.varint(1_024) + right[2:], 200, base),
        ("a way shorter than itself", right[:2] + d.varint(len(right) - 1) + right[3:], 200, base),
        ("a UUID in capitals as text", right[:3] + bytes([36]) + VERSION.encode() + right[20:], 200, base),
        ("cut off", right[:-1], 200, base),
        ("cut off in its header", right[:20], 200, base),
        ("one byte more", right + b"x", 200, base),
        ("a larger value", right, 201, base),
        ("a smaller value", right, 199, base),
        ("stored bytes beyond the limit", d.encode(base, base[:162] + base[::199] * 19, singles, VERSION), 200, base),
        ("another base", right, 200, base[:-1] + b"x"),
        ("a shorter base", right, 200, base[:-1]),
        ("another value", d.encode(base, value[:-1] + b"x", operations, VERSION), 200, base),
        ("a copy of nothing", streams(b"\3\1\0" + plain[1:2] + plain[1:]), 200, base),
        ("literals of nothing", streams(d.varint(plain[0] + 1) + b"\0" + plain[1:]), 200, base),
        ("a copy beyond the base", streams(d.streams_of([(101, 100), b"-" * 100])), 200, base),
        ("a copy before the base", streams(d.streams_of([(0, 90), (-1, 100), b"-" * 10])), 200, base),
        ("a copy far before the base", streams(b"\x0d" + d.varint(201) + d.varint((1 << 64) - 1) + b"\x14" + b"-" * 90), 200, base),
        ("a copy far beyond the base", streams(b"\x0d" + d.varint(201) + d.varint((1 << 64) - 2) + b"\x14" + b"-" * 90), 200, base),
        ("a length beyond everything", streams(b"\x0b" + d.varint((1 << 64) - 1) + b"\0" + b"-" * 50), 200, base),
        ("a number beyond 64 bits", streams(b"\x0b" + b"\xff" * 9 + b"\x02\0" + b"-" * 50), 200, base),
        ("a number without an end", streams(b"\x05" + b"\xff" * 5), 200, base),
        ("literals that are not there", streams(d.streams_of([(0, 190), b"-" * 10])[:-1]), 200, base),
        ("literals left over", streams(plain + b"-"), 200, base),
        ("more operations than there are bytes", streams(b"\x7f" + plain[1:]), 200, base),
        ("operations that make less", streams(d.streams_of([(0, 90), b"-" * 10])), 200, base),
        ("operations that make more", streams(d.streams_of([*operations, (0, 1)])), 200, base),
        ("no streams", streams(b""), 200, base),
        ("said to be deflated", streams(plain, kind=1, inflated=len(plain)), 200, base),
        ("deflated, of another size", deflated[:at] + d.varint(len(plain) + 1) + deflated[at + 1 :], 200, base),
        ("deflated, and bytes behind", deflated + b"\0", 200, base),
        ("streams beyond the limit", streams(b"", kind=1, inflated=2 * 200 + 65), 200, base),
        ("a base beyond the limit", d.encode(bytes(4 * 100 + (64 << 10) + 1), bytes(100), [(0, 100)], VERSION), 100, b""),
        ("a size beyond what is stored", d.encode(b"x", b"x" * 90_000, [(0, 1)] * 20, VERSION), 90_000, b"x"),
        ("a size beyond the limit", right, (64 << 20) + 1, base),
    ]:
        row = vector(name, stored, size, on)
        assert "refused" in row, name
        rows.append(row)
    # Longer forms of numbers are accepted as well.
    longer = right[:1] + b"\x81\0" + right[2:]
    longer = longer[:3] + d.varint(len(longer)) + longer[4:]
    rows.append(vector("a number in a longer form", longer, 200, base))
    assert "value" in rows[-1]
    return rows


def vectors() -> dict[str, Any]:
    return {"format": 1, "vectors": good() + refused()}


def without_deflate(made: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the parts that are the same with every zlib."""
    return [{key: value for key, value in row.items() if key != "stored" or value[:2] != "01"} for row in made["vectors"]]


if __name__ == "__main__":
    path, made = HERE / "differences.json", vectors()
    if "--check" in sys.argv:
        held = json.loads(path.read_text(encoding="ascii"))
        assert without_deflate(held) == without_deflate(made), f"{path.name} is not what the page says"
        for row in held["vectors"]:
            again = vector(row["name"], bytes.fromhex(row["stored"]), row["size"], bytes.fromhex(row["base"]))
            assert again == row, row["name"]
    else:
        path.write_text(layout.text(made), encoding="ascii")
