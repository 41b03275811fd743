"""Writes parts of a file storage's records, from docs/format.md alone. `format_reader` reads them."""

from __future__ import annotations

import hashlib
import random
import struct
from pathlib import Path
from typing import Callable, Optional

import format_reader as reader


def varint(number: int) -> bytes:
    """Returns the shortest form."""
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def hollowed(record: bytes, digests: dict[bytes, bytes]) -> bytes:
    """Returns the record with hollow changes: `digests` has the SHA-256 of their values, by their ids. Blobs of others stay."""
    version = reader.read_record(record)
    flags, header_size = record[1], struct.unpack_from("<I", record, 4)[0]
    header = record[28 : 28 + header_size]
    blobs = [change.blob for id, change in version.changes.items() if change.blob is not None and id not in digests]
    old = varint(len(version.blobs)) + b"".join(version.blobs)
    assert header.count(old) >= 1 or not version.blobs
    if version.blobs:
        header = header.replace(old, varint(len(blobs)) + b"".join(blobs), 1)
    table, bodies, starts = b"", b"", []
    changes = list(version.changes.values())
    for number in range(0, len(changes), 64):
        starts.append(len(table))
        page = varint(number // 64) + varint(len(bodies))
        for change in changes[number : number + 64]:
            is_hollow = change.id in digests
            digest = digests.get(change.id, change.digest)
            encoding = reader.HOLLOW if is_hollow else change.encoding
            is_difference = change.is_difference and not is_hollow
            page += bytes([change.kind | encoding << 3 | (digest is not None) << 5 | is_difference << 7])
            page += varint(len(change.id)) + change.id
            if change.kind in (reader.INSERT, reader.UPDATE):
                page += varint(change.size)
                if encoding == reader.DEFLATED or is_difference:
                    page += varint(change.stored_size)
                page += (change.blob or b"") if encoding == reader.BLOB else b""
                page += digest or b""
                if encoding in (reader.AS_IS, reader.DEFLATED):
                    bodies += version.bodies[change.offset : change.offset + 8 + change.stored_size]
            elif change.kind == reader.PRESERVE:
                page += varint(version.dependencies.index(change.version or ""))
        page = struct.pack("<I", len(page)) + page
        table += struct.pack("<I", reader.checksum(page)) + page
    if len(starts) > 1:
        table += b"".join(struct.pack("<Q", start) for start in starts)
    start = struct.pack("<BBHIQQ", 1, flags | (1 if digests else 0), 0, len(header), len(table), len(bodies))
    return start + struct.pack("<I", reader.checksum(start, header)) + header + table + bodies


def author(directory: Path, records: list[bytes], kind: Optional[int] = None, seed: Optional[int] = None) -> None:
    """Adds a sealed segment of the records to a store, each in a frame of its own, with frames of one more kind around them."""
    id = random.Random(len(records) if seed is None else seed).randbytes(16)
    data = b"LLVSseg\n" + struct.pack("<II16sqQQI", 1, 0, id, 0, 0, 0, 0)
    data += struct.pack("<I", reader.checksum(data))
    frames = 0

    def add(kind: int, body: bytes, covered: bytes) -> None:
        nonlocal data, frames
        head = b"\xa7LVF" + struct.pack("<B3x16sQQI", kind, id, len(data), len(body), reader.checksum(covered))
        data += head + struct.pack("<I", reader.checksum(head)) + body
        frames += 1

    for record in records:
        if kind is not None:
            add(kind, b"what nobody knows", b"what nobody knows")
        table = struct.pack("<IQI", 1, len(record), reader.checksum(record))
        add(1, table + record, table)
    if kind is not None:
        add(kind, b"", b"")
    seal = struct.pack("<QQ", frames, len(records))
    add(2, seal, seal)
    (directory / "segments" / f"{id.hex()}.seg").write_bytes(data)


def make_hollow(store: Path, choose: Callable[[str, bytes], bool]) -> int:
    """Makes values of a closed store hollow, in all of its segments: those for which `choose` says so of version and id. Returns how many.
    Removes the files of the values, and the caches, except what is known of places."""
    values = reader.read_store(store).versions
    made = 0
    for number, path in enumerate(sorted((store / "segments").glob("*.seg"))):
        found = reader.read_segment(path)
        assert found is not None
        records = []
        for record, _ in found.records:
            version = reader.read_record(record)
            digests = {}
            for id, change in version.changes.items():
                if change.kind in (reader.INSERT, reader.UPDATE) and choose(version.id, id):
                    digests[id] = hashlib.sha256(values[version.id].values[id]).digest()
                    if change.blob is not None:
                        (store / "blobs" / f"{change.blob.hex()}.blob").unlink()
            made += len(digests)
            records.append(hollowed(record, digests) if digests else record)
        path.unlink()
        author(store, records, seed=number)
    for cache in (store / "cache").glob("*.cache"):
        if not cache.name.startswith("packs-"):
            cache.unlink()
    return made


def inserts(id: str, changes: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Returns the table and the bodies of a record of version `id` that inserts values. Ids and values have at most 127 bytes."""
    entries = bodies = b""
    for key, value in changes:
        entries += struct.pack("<BB", reader.INSERT, len(key)) + key + struct.pack("<B", len(value))
        covered = struct.pack("<I", len(value)) + key + id.encode() + value
        bodies += struct.pack("<I", reader.checksum(covered)) + struct.pack("<I", len(value)) + value
    page = b"\0\0" + entries
    page = struct.pack("<I", len(page)) + page
    return struct.pack("<I", reader.checksum(page)) + page, bodies
