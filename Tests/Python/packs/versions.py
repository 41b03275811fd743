"""Reads versions from packs. `format_reader` reads their records."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional

import format_reader as engine
import value_differences

from .basics import PART_SIZE, PARTS_LIMIT, VERSION, Cursor, Damaged, Newer, TooLarge, in_order

#: The versions of the records that stand before a version in its pack, by version id.
Bases = Mapping[str, engine.Version]


#: The most bytes of values that are stored as differences: in one version, and in one pack.
VERSION_DIFFERENCES, PACK_DIFFERENCES = 64 << 20, 4 << 30


class Place(NamedTuple):
    """The location of a record; `digest` is that of the version's identity."""

    type: int
    block: int
    offset: int
    length: int
    digest: bytes = b""


class BlobReference(NamedTuple):
    digest: bytes
    size: int
    sha256: bytes
    parts: tuple[bytes, ...]


@dataclass
class Version:
    """A version in a pack: its record, or (form 1) the blob that contains the record."""

    id: str
    identity8: bytes
    record: Optional[engine.Version]
    blobs: tuple[BlobReference, ...]
    outside: Optional[BlobReference] = None


def payload(place: Place, raw: bytes) -> bytes:
    """Returns the bytes of a record after its type."""
    cursor = Cursor(raw[place.offset : place.offset + place.length])
    if cursor.varint() != cursor.left or cursor.u8() != place.type:
        raise Damaged("a record that is not what the index says")
    return cursor.take(cursor.left)


def _reference(cursor: Cursor, parts_limit: int) -> BlobReference:
    digest, size, sha = cursor.take(16), int.from_bytes(cursor.take(8), "little"), cursor.take(32)
    parts = tuple(cursor.take(16) for _ in range(cursor.entries(16, parts_limit)))
    if not parts or len(parts) != -(-size // PART_SIZE) or digest != sha[:16]:
        raise Damaged("a reference to a blob that contradicts itself")
    return BlobReference(digest, size, sha, parts)


def read_version(id: str, place: Place, raw: bytes, bases: Bases = {}) -> Version:
    """Reads one version of a block."""
    data = payload(place, raw)
    if data[:1] == b"\1":
        cursor = Cursor(data[1:])
        outside = _reference(cursor, PARTS_LIMIT[VERSION])
        cursor.end()
        return Version(id, place.digest, None, (), outside)
    return read_form0(id, place.digest, data, bases)


def read_form0(id: str, identity8: bytes, data: bytes, bases: Bases = {}) -> Version:
    """Reads a version of form 0, from a pack or from a blob."""
    cursor = Cursor(data)
    if cursor.u8() != 0:
        raise Damaged("no such form")
    try:
        record = engine.read_record(cursor.take(cursor.varint()))
    except engine.NewerFormat as error:
        raise Newer(str(error)) from error
    except UnicodeDecodeError as error:
        raise Damaged(str(error)) from error
    references = tuple(_reference(cursor, PARTS_LIMIT[0]) for _ in range(cursor.entries(73, 65_536)))
    cursor.end()
    in_order([reference.digest for reference in references])
    sizes = {reference.digest: (reference.size, reference.sha256) for reference in references}
    if set(record.blobs) != set(sizes) or record.id != id:
        raise Damaged("other blobs, or another version, than the pack says")
    for change in record.changes.values():
        if change.blob is not None and sizes.get(change.blob) != (change.size, change.digest):
            raise Damaged("a blob that is not the value")
    if sum(change.size for change in record.changes.values() if change.is_difference) > VERSION_DIFFERENCES:
        raise TooLarge("values that are differences of more than 64 MiB")
    if identity(record, bases)[:8] != identity8:
        raise Damaged("another version than the index says")
    return Version(id, identity8, record, references)


def value(record: engine.Version, change: engine.Change, bases: Bases = {}) -> bytes:
    """Returns the bytes of an insert or update that is not a blob."""
    expected, size = struct.unpack_from("<II", record.bodies, change.offset)
    stored = record.bodies[change.offset + 8 : change.offset + 8 + change.stored_size]
    field = change.stored_size | change.is_difference << 31
    if size != field or engine.checksum(struct.pack("<I", size), change.id, record.id.encode(), stored) != expected:
        raise Damaged("a value that does not match its checksum")
    if change.is_difference:
        return _made(record, change, stored, bases)
    if change.encoding == engine.AS_IS:
        return stored
    inflater = zlib.decompressobj(-15)
    try:
        result = inflater.decompress(stored, change.size + 1)
    except zlib.error as error:
        raise Damaged(str(error)) from error
    if len(result) != change.size or not inflater.eof or inflater.unused_data:
        raise Damaged("a value of another size")
    return result


def _made(record: engine.Version, change: engine.Change, stored: bytes, bases: Bases) -> bytes:
    """Returns a value from its difference. It is cached, since it may be the base of others."""
    if change.id not in record.values:
        difference = value_differences.parse(stored, change.size)
        if stored[0] != 0:
            raise Damaged("a difference that is deflated within its record")
        base = bases.get(difference.base)
        found = base.changes.get(change.id) if base is not None else None
        if base is None or found is None or found.kind not in (engine.INSERT, engine.UPDATE) or found.blob is not None:
            raise Damaged("a base that is not before its difference in the pack")
        made = value_differences.apply(stored, change.size, value(base, found, bases))
        if not value_differences.has_content_form(difference.base) and change.digest != hashlib.sha256(made).digest():
            raise Damaged("a difference without its digest, or with another")
        record.values[change.id] = made
    return record.values[change.id]


def identity(record: engine.Version, bases: Bases = {}) -> bytes:
    """Returns the identity digest of a version (format.md)."""

    def text(id: str) -> bytes:
        return struct.pack("<H", len(id)) + id.encode()

    out = b"llvs version 1\0" + text(record.id) + bytes([len(record.predecessors)]) + b"".join(map(text, record.predecessors))
    out += struct.pack("<dI", record.timestamp, len(record.metadata))
    for key, entry in sorted(record.metadata.items()):
        out += struct.pack("<I", len(key)) + key + struct.pack("<I", len(entry)) + entry
    out += struct.pack("<I", len(record.changes))
    for id, change in sorted(record.changes.items()):
        out += struct.pack("<BH", engine.UPDATE if change.kind == engine.INSERT else change.kind, len(id)) + id
        if change.kind in (engine.INSERT, engine.UPDATE):
            digest = change.digest if change.blob is not None else hashlib.sha256(value(record, change, bases)).digest()
            if digest is None:
                raise Damaged("a blob without a digest")
            out += struct.pack("<Q", change.size) + digest
        elif change.version is not None:
            out += text(change.version)
    return hashlib.sha256(out).digest()


def join(reference: BlobReference, parts: list[bytes]) -> bytes:
    """Joins the parts of a blob; each is the content of a pack of kind blob."""
    data = b"".join(parts)
    sha = hashlib.sha256(data).digest()
    if any(len(part) != PART_SIZE for part in parts[:-1]) or len(data) != reference.size or sha != reference.sha256:
        raise Damaged("a blob that is not what the version says")
    return data
