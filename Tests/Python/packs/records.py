"""Makes versions as packs contain them: records of the engine, from docs/format.md, with blobs for large values."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional, Sequence

import format_reader as engine

from . import reader
from .reader import BlobReference
from .versions import Bases


def varint(number: int) -> bytes:
    """Returns the shortest form."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def version_id(id: str) -> bytes:
    """Returns an id as records and indexes contain it."""
    digits = id.replace("-", "")
    if len(id) == 36 and id == id.upper() and [len(part) for part in id.split("-")] == [8, 4, 4, 4, 12]:
        try:
            return b"\0" + bytes.fromhex(digits)
        except ValueError:
            pass
    return bytes([len(id)]) + id.encode("ascii")


@dataclass(frozen=True)
class Made:
    """A version ready for a pack."""

    id: str
    predecessors: tuple[str, ...]
    identity8: bytes
    payload: bytes


class Difference(NamedTuple):
    """A value of `size` bytes that is stored as a difference."""

    size: int
    stored: bytes
    digest: Optional[bytes] = None


def deflated(id: str, size: int, values: int) -> bytes:
    """Returns a record with `values` values of zeros that are deflated within it: writers make none, readers refuse it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    stored = packer.compress(bytes(size)) + packer.flush()
    digest = hashlib.sha256(bytes(size)).digest()
    entries = bodies = b""
    for number in range(values):
        key = b"%03d" % number
        entries += bytes([1 | 1 << 3 | 32]) + varint(len(key)) + key + varint(size) + varint(len(stored)) + digest
        length = struct.pack("<I", len(stored))
        bodies += struct.pack("<I", engine.checksum(length, key, id.encode(), stored)) + length + stored
    page = b"\0\0" + entries
    length = struct.pack("<I", len(page))
    table = struct.pack("<I", engine.checksum(length, page)) + length + page
    header = version_id(id) + varint(0) + struct.pack("<d", 3.0) + varint(size * values) + varint(values) + varint(1) + varint(0) * 3
    prelude = struct.pack("<BBHIQQ", 1, 0, 0, len(header), len(table), len(bodies))
    return prelude + struct.pack("<I", engine.checksum(prelude, header)) + header + table + bodies


def record(
    id: str,
    predecessors: Sequence[str] = (),
    timestamp: float = 0.0,
    inserts: Mapping[bytes, bytes] = {},
    removes: Sequence[bytes] = (),
    metadata: Mapping[bytes, bytes] = {},
    blobs: Mapping[bytes, BlobReference] = {},
    differences: Mapping[bytes, Difference] = {},
) -> bytes:
    """Returns a record with uncompressed values; those of `blobs` are in other files. At most 64 changes."""
    changes = sorted([*((key, 1) for key in [*inserts, *blobs]), *((key, 2) for key in differences), *((key, 3) for key in removes)])
    assert len(changes) <= 64
    entries = bodies = b""
    total = 0
    for key, kind in changes:
        head = varint(len(key)) + key
        if kind == 3:
            entries += b"\3" + head
        elif key in differences:
            made = differences[key]
            entries += bytes([2 | 128 | (0 if made.digest is None else 32)]) + head + varint(made.size) + varint(len(made.stored))
            entries += made.digest or b""
            size = struct.pack("<I", len(made.stored) | 1 << 31)
            bodies += struct.pack("<I", engine.checksum(size, key, id.encode(), made.stored)) + size + made.stored
            total += made.size
        elif key in blobs:
            blob = blobs[key]
            entries += bytes([1 | 2 << 3 | 32]) + head + varint(blob.size) + blob.digest + blob.sha256
            total += blob.size
        else:
            data = inserts[key]
            entries += b"\1" + head + varint(len(data))
            size = struct.pack("<I", len(data))
            bodies += struct.pack("<I", engine.checksum(size, key, id.encode(), data)) + size + data
            total += len(data)
    table = b""
    if changes:
        page = b"\0\0" + entries
        size = struct.pack("<I", len(page))
        table = struct.pack("<I", engine.checksum(size, page)) + size + page
    digests = sorted({blob.digest for blob in blobs.values()})
    header = version_id(id) + varint(len(predecessors)) + b"".join(map(version_id, predecessors)) + struct.pack("<d", timestamp)
    header += varint(total) + varint(len(changes)) + varint(1 if changes else 0) + varint(0) + varint(len(digests)) + b"".join(digests)
    header += varint(len(metadata))
    for key, entry in sorted(metadata.items()):
        header += varint(len(key)) + key + varint(len(entry)) + entry
    prelude = struct.pack("<BBHIQQ", 1, 2 if differences else 0, 0, len(header), len(table), len(bodies))
    return prelude + struct.pack("<I", engine.checksum(prelude, header)) + header + table + bodies


def reference(data: bytes, parts: Sequence[bytes]) -> BlobReference:
    """Returns the reference with which a version names data in blob files with these pack ids."""
    sha = hashlib.sha256(data).digest()
    return BlobReference(sha[:16], len(data), sha, tuple(parts))


def _reference_bytes(blob: BlobReference) -> bytes:
    return blob.digest + struct.pack("<Q", blob.size) + blob.sha256 + varint(len(blob.parts)) + b"".join(blob.parts)


def made(data: bytes, blobs: Sequence[BlobReference] = (), bases: Bases = {}, identity8: Optional[bytes] = None) -> Made:
    """Returns a version of form 0 from its record. `identity8`: the digest in the index, if it is not to match the record."""
    version = engine.read_record(data)
    payload = b"\0" + varint(len(data)) + data + varint(len(blobs))
    payload += b"".join(_reference_bytes(blob) for blob in sorted(blobs, key=lambda blob: blob.digest))
    return Made(version.id, version.predecessors, identity8 or reader.identity(version, bases)[:8], payload)


def outside(version: Made, parts: Sequence[bytes]) -> Made:
    """Returns the same version in form 1: its form 0 is in blob files with these pack ids."""
    blob = reference(version.payload, parts)
    return Made(version.id, version.predecessors, version.identity8, b"\1" + _reference_bytes(blob))


def simple(id: str, predecessors: Sequence[str] = (), value: Optional[bytes] = None) -> Made:
    """Returns a small version for tests."""
    return made(record(id, predecessors, 1.5, {} if value is None else {b"key": value}))
