"""Stores for tests: an ordinary history, hostile values, and long histories."""

from __future__ import annotations

import json
import random
import struct
import zlib

import llvs

#: The time of the first version, 2026-11-02 09:00 UTC.
BEGIN = 1793610000.0
HOUR = 3600.0
RULES = b'{"merge":1,"ids":{"contact/":{"/visits":"counter","/tags":"set","/notes":"text"},"plan/":"text"}}'
TEXT = "# Moving\n\nPack the kitchen first.\nCall the movers on Monday.\nAsk Ann for boxes.\nReturn the keys.\n"


def picture(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """Returns a PNG with a face in a colour."""
    rows = []
    for y in range(height):
        row = bytearray(b"\0")
        for x in range(width):
            dx, dy = (x - width / 2) / width, (y - height / 2) / height
            head = dx * dx + (dy + 0.12) * (dy + 0.12) < 0.035 or (dx * dx * 0.6 + (dy - 0.42) * (dy - 0.42) < 0.06)
            row += bytes(255 - (255 - c) // 4 for c in colour) if head else bytes(colour)
        rows.append(bytes(row))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")


def card(**members: object) -> bytes:
    """Returns a contact as JSON."""
    return json.dumps(members, ensure_ascii=False).encode()


def story(store: llvs.Store) -> dict[str, llvs.Version]:
    """Makes some days of three devices: contacts, pictures, a text, a branch, a merge with conflicts. Returns the versions by name."""
    made: dict[str, llvs.Version] = {}

    def save(name: str, on: str, hours: float, device: str, what: str, branch: str | None = None, **changes: object) -> None:
        made[name] = store.make_version(
            made.get(on), timestamp=BEGIN + hours * HOUR, metadata={"author": device, "message": what}, branch=branch,
            update=changes.get("update"), remove=changes.get("remove"), insert=None,  # type: ignore[arg-type]
        )

    ann = {"name": "Ann Baker", "phone": "+49 731 1234", "town": "Ulm", "tags": ["friend"], "visits": 1, "notes": "Met in Ulm."}
    save("first", "", 0, "laptop", "Begin the contact book", update={
        "__llvs_schema": RULES, "contact/ann": card(**ann), "contact/bob": card(name="Bob Stone", phone="+49 30 555"),
        "plan/moving": TEXT.encode(), "photo/ann.png": picture(96, 96, (0, 114, 178)), "settings/theme": b'"dark"',
        "raw/checksum": bytes(range(200)),
    })
    save("second", "first", 5, "laptop", "Ann has moved", update={"contact/ann": card(**{**ann, "town": "Bonn"})})
    save("third", "second", 26, "phone", "A visit, and a photo", update={
        "contact/ann": card(**{**ann, "town": "Bonn", "visits": 2}), "photo/ann.png": picture(96, 96, (0, 158, 115)),
        "contact/cleo": card(name="Cleo Diaz", tags=["work", "choir"]),
    })
    save("draft", "third", 30, "laptop", "Try another theme", branch="redesign", update={"settings/theme": b'"light"'})
    base = {**ann, "town": "Bonn", "visits": 2}
    save("phone", "third", 50, "phone", "New number, on the way", update={
        "contact/ann": card(**{**base, "phone": "+49 228 9999", "visits": 3, "tags": ["friend", "choir"]}),
        "plan/moving": TEXT.replace("Monday", "Tuesday").encode(), "raw/checksum": bytes(range(50, 250)),
    })
    save("tablet", "third", 52, "tablet", "Number from the office list", update={
        "contact/ann": card(**{**base, "phone": "+49 228 1000", "visits": 3, "notes": "Met in Ulm. Sings alto."}),
        "plan/moving": TEXT.replace("Monday", "Friday").encode(), "raw/checksum": bytes(range(10, 210)),
    }, remove=["contact/bob"])
    made["merge"] = store.merge(made["phone"], made["tablet"])
    save("after", "merge", 75, "laptop", "Cleo's birthday", update={
        "contact/cleo": card(name="Cleo Diaz", tags=["work", "choir"], born="1990-04-01"),
    })
    return made


IDS = (
    '<img src=x onerror="window.ran=1">', "line\nbreak\r\n\ttab", "a//b/", "..",
    "\0nul", "\u202eright to left", "\x1b[31mred", "é/é", "?#&%2F%00",
)
HTML = b"<!doctype html><script>window.ran = 1</script><img src=x onerror='window.ran=1'>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.ran=1"><script>window.ran=1</script></svg>'
BAD = b"good \xff\xfe bad \xc3"


def hostile(store: llvs.Store) -> llvs.Version:
    """Makes hostile ids and values, and a version with hostile metadata."""
    update: dict[str, bytes] = {id: HTML for id in IDS}
    update |= {
        "evil.html": HTML, "evil.svg": SVG, "bad.txt": BAD, "empty": b"",
        "polyglot.png": b"\x89PNG\r\n\x1a\n" + HTML, "bom": b"\xef\xbb\xbf{}",
        "deep.json": b"[" * 5000 + b"]" * 5000, "surrogate.json": b'{"a": "\\ud800", "b": 12345678901234567890.10}', "half": b"text \xc3",
    }
    root = store.make_version(insert={"evil.html": b"before"}, timestamp=BEGIN)
    store.make_version(root, update={"a": b"1"}, timestamp=BEGIN + 1, branch='<b onclick="window.ran=1">')
    return store.make_version(
        root, update=update, timestamp=BEGIN + 2,
        metadata={"author": "<script>window.ran=1</script>", "message": HTML.decode(), "<i>key": b"\xff\x00", "list": [1, {"a": "😀"}]},
    )


def long(store: llvs.Store, count: int, heads: int) -> None:
    """Makes a history of many versions and heads, with the same seed each time."""
    chance = random.Random(7)
    tips = [store.make_version(insert={"n": b"0"}, timestamp=BEGIN, metadata={"author": "device0"})]
    for number in range(1, count):
        at = chance.randrange(len(tips))
        made = store.make_version(
            tips[at], update={"n": str(number).encode()}, timestamp=BEGIN + number,
            metadata={"author": f"device{chance.randrange(4)}", "message": f"edit {number}"},
        )
        if len(tips) < heads and chance.random() < heads * 2 / count:
            tips.append(made)
        else:
            tips[at] = made
