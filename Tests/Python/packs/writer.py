"""Writes packs, from docs/pack-format.md alone."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Iterable, Mapping, Optional, Sequence

from .names import BASE, BLOB, LOG, ROOT, Name, encode, parse
from .reader import BLOCK_LIMIT, COVERS, END, HEADER, MAGIC, NOTICE, REPLACES, SEEN, replaced_bytes
from .records import Made, varint, version_id

File = tuple[str, bytes]


def file(
    kind: int, store: bytes, salt: bytes, writer: bytes, first: int, last: int, blocks: Sequence[bytes], link: bytes = bytes(16),
    versions: Sequence[tuple[Made, int, int, int]] = (), services: Sequence[tuple[int, int, int, int]] = (), seen: bytes = bytes(16),
    made: int = 0, flags: int = 0, deflate: bool = True,
) -> File:
    """Returns a file from the raw bytes of its blocks and the locations (block, offset, length) of its records."""
    out = MAGIC + bytes([1, kind]) + bytes(6) + store + salt + writer + struct.pack("<II", last, first)
    assert len(out) == HEADER
    index = varint(len(blocks))
    for raw in blocks:
        stored, codec = raw, 0
        if deflate and kind != ROOT:
            deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
            smaller = deflater.compress(raw) + deflater.flush()
            if len(smaller) < len(raw):
                stored, codec = smaller, 1
        index += varint(len(out)) + varint(len(stored)) + varint(len(raw)) + hashlib.sha256(stored).digest()[:8]
        out += struct.pack("<BII", codec, len(stored), len(raw)) + stored
    index += varint(len(versions))
    for version, *place in sorted(versions, key=lambda item: item[0].id.encode()):
        index += version_id(version.id) + b"".join(map(varint, place)) + version.identity8
    index += varint(len(services))
    for type, *place in services:
        index += bytes([type]) + b"".join(map(varint, place))
    trailer = struct.pack("<QIIIIQQ", len(out), len(index), len(versions), flags, 0, sum(map(len, blocks)), made) + link + seen
    digest = hashlib.sha256(out[:HEADER] + index + trailer).digest()
    data = out + index + trailer + digest + bytes(32) + salt + END
    id = hashlib.sha256(data).digest()[:16]
    owner = {BLOB: link, ROOT: b""}.get(kind, writer)
    return str(Name(kind, owner, first, last, id)), data


def _record(type: int, payload: bytes) -> bytes:
    return varint(len(payload) + 1) + bytes([type]) + payload


def pack(
    store: bytes, salt: bytes, writer: bytes, first: int, last: int, versions: Iterable[Made], *, base: bool = False,
    link: bytes = bytes(16),
    seen: Mapping[bytes, tuple[int, bytes]] = {}, replaces: Iterable[str] = (), covers: Iterable[tuple[bytes, int, int]] = (),
    notices: Iterable[tuple[int, bytes]] = (), made: int = 0, deflate: bool = True,
) -> File:
    """Returns a log or base pack."""
    blocks: list[bytearray] = []
    places = []
    services = []

    def put(data: bytes, new: bool = False) -> tuple[int, int, int]:
        if new or not blocks or len(blocks[-1]) + len(data) > BLOCK_LIMIT:
            blocks.append(bytearray())
        blocks[-1] += data
        return len(blocks) - 1, len(blocks[-1]) - len(data), len(data)

    for version in versions:
        places.append((version, *put(_record(1, version.payload))))
    payloads = []
    if seen:
        entries = sorted(seen.items())
        payloads.append((SEEN, varint(len(entries)) + b"".join(w + struct.pack("<I", number) + id for w, (number, id) in entries)))
    names = sorted({replaced_bytes(name) for name in map(parse, replaces) if name is not None})
    if names:
        payloads.append((REPLACES, varint(len(names)) + b"".join(names)))
    ranges = joined(covers)
    if ranges:
        payloads.append((COVERS, varint(len(ranges)) + b"".join(w + struct.pack("<II", one, two) for w, one, two in ranges)))
    payloads += [(NOTICE, bytes([kind]) + data) for kind, data in notices]
    for number, (type, payload) in enumerate(payloads):
        services.append((type, *put(_record(type, payload), new=number == 0)))
    seen_digest = hashlib.sha256(payloads[0][1]).digest()[:16] if seen else bytes(16)
    kind = BASE if base else LOG
    raws = [bytes(block) for block in blocks]
    return file(kind, store, salt, writer, first, last, raws, link, places, services, seen_digest, made, 0, deflate)


def joined(ranges: Iterable[tuple[bytes, int, int]]) -> list[tuple[bytes, int, int]]:
    """Returns ranges of numbers, sorted, with adjacent ones joined."""
    result: list[tuple[bytes, int, int]] = []
    for writer, first, last in sorted(ranges):
        if result and result[-1][0] == writer and result[-1][2] + 1 >= first:
            result[-1] = (writer, result[-1][1], max(last, result[-1][2]))
        else:
            result.append((writer, first, last))
    return result


def blob_part(store: bytes, salt: bytes, writer: bytes, digest: bytes, part: int, data: bytes) -> File:
    """Returns one part of a blob."""
    blocks = [data[at : at + BLOCK_LIMIT] for at in range(0, len(data), BLOCK_LIMIT)]
    return file(BLOB, store, salt, writer, part, part, blocks, link=digest)


def root(
    store: bytes, salt: bytes, writer: bytes, layout: str = "packed", made: Optional[str] = None, more: Mapping[str, object] = {}
) -> File:
    """Returns the root of a remote that is not encrypted. `more`: further members."""
    text = {"format": 1, "store": encode(store), "layout": layout, "encrypted": False, "made": made or "2026-11-22T20:00:00Z", **more}
    return file(ROOT, store, salt, writer, 0, 0, [json.dumps(text, separators=(",", ":")).encode()])
