"""Reads packs, from docs/pack-format.md alone. Records of versions are read by `format_reader`."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Collection, NamedTuple, Optional

import format_reader as engine

from .basics import (
    BLOCK_LIMIT, BLOCKS_LIMIT, COVERS, END, ENTRIES_LIMIT, FILE_LIMIT, HEADER, INDEX_LIMIT, MAGIC, NOTICE, PART_SIZE, RAW_LIMIT,
    RECORD_LIMIT, REPLACES, SEEN, SERVICE_LIMIT, TRAILER, VERSION, VERSIONS_LIMIT, Cursor, Damaged, Newer, NotThere, OtherStore,
    TooLarge, in_order,
)
from .names import BASE, BLOB, LOG, ROOT, Name, encode, parse
from .versions import PACK_DIFFERENCES, BlobReference, Place, Version, identity, join, payload, read_form0, read_version, value

__all__ = [
    "BLOCK_LIMIT", "BlobReference", "COVERS", "Cursor", "Damaged", "END", "HEADER", "Index", "MAGIC", "NOTICE", "Newer", "NotThere",
    "OtherStore", "PART_SIZE", "Pack", "REPLACES", "SEEN", "TooLarge", "Version", "identity", "inflate", "join", "read_form0", "read_index",
    "read_pack", "read_root", "read_services", "read_version", "replaced_bytes", "value",
]


class Block(NamedTuple):
    offset: int
    stored: int
    raw: int
    digest: bytes


@dataclass
class Index:
    """The end of a pack."""

    name: Name
    header: bytes
    blocks: list[Block]
    versions: dict[str, Place]
    services: list[Place]
    link: bytes
    seen_digest: bytes
    raw: int


@dataclass
class Pack:
    """A whole pack."""

    index: Index
    versions: dict[str, Version] = field(default_factory=dict)
    seen: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()
    covers: tuple[tuple[bytes, int, int], ...] = ()
    notices: list[tuple[int, bytes]] = field(default_factory=list)
    #: Versions that are refused, with the reason. They do not affect the others.
    problems: dict[str, Exception] = field(default_factory=dict)
    #: The bytes of a root or of a part of a blob.
    content: bytes = b""


def read_index(name: Name, size: int, tail: bytes, stores: Collection[bytes], header: Optional[bytes] = None) -> Optional[Index]:
    """Returns the index of a file of `size` bytes from its last ones; None if more of them are needed."""
    if size > FILE_LIMIT[name.kind]:
        raise TooLarge(f"{size} bytes")
    if size < HEADER + TRAILER or tail[-8:] != END or len(tail) < TRAILER:
        raise NotThere("no end")
    trailer = tail[-TRAILER:]
    at, index_size, count, flags, zero, raw, _made = struct.unpack_from("<QIIIIQQ", trailer)
    salt = trailer[136:152]
    headers = [header] if header else [_header(name, store, salt, name.owner) for store in stores]
    if index_size > INDEX_LIMIT or raw > RAW_LIMIT:
        raise TooLarge(f"an index of {index_size} bytes, {raw} raw bytes")
    if at + index_size + TRAILER != size or at < HEADER:
        raise Damaged("the index is not where it should be")
    if index_size + TRAILER > len(tail):
        return None
    index = tail[-TRAILER - index_size : -TRAILER]
    for header in headers:
        if hashlib.sha256(header + index + trailer[:72]).digest() == trailer[72:104]:
            break
    else:
        raise Damaged("the digest is wrong")
    if flags & 0xFFFF:
        raise Newer(f"the flags {flags}")
    if zero or any(trailer[104:136]) or salt != header[32:48]:
        raise Damaged("a tag, or what should be zero, or the salt")
    link, seen = trailer[40:56], trailer[56:72]
    if name.kind == ROOT and any(link) or name.kind == BLOB and link != name.owner:
        raise Damaged("the link is wrong")
    try:
        return _parse_index(name, header, index, at, count, raw, link, seen)
    except engine.Damage as error:
        raise Damaged(str(error)) from error


def _header(name: Name, store: bytes, salt: bytes, writer: bytes) -> bytes:
    return MAGIC + bytes([1, name.kind]) + bytes(6) + store + salt + writer + struct.pack("<II", name.last, name.first)


def _parse_index(name: Name, header: bytes, data: bytes, end: int, count: int, raw: int, link: bytes, seen: bytes) -> Index:
    cursor = Cursor(data)
    blocks, at, total = [], HEADER, 0
    for _ in range(cursor.entries(11, BLOCKS_LIMIT)):
        block = Block(cursor.varint(), cursor.varint(), cursor.varint(), cursor.take(8))
        if block.raw > RECORD_LIMIT:
            raise TooLarge(f"a block of {block.raw} bytes")
        if block.offset != at or not 0 < block.stored <= block.raw:
            raise Damaged("a block that is not where it should be, or too large")
        blocks.append(block)
        at, total = at + 9 + block.stored, total + block.raw
    if at != end or total != raw:
        raise Damaged("the blocks do not add up")
    versions: dict[str, Place] = {}
    taken: list[tuple[int, int, int]] = []

    def place(type: int, with_digest: bool) -> Place:
        result = Place(type, cursor.varint(), cursor.varint(), cursor.varint(), cursor.take(8) if with_digest else b"")
        if result.length > RECORD_LIMIT:
            raise TooLarge(f"a record of {result.length} bytes")
        if result.block >= len(blocks) or result.length < 2 or result.offset + result.length > blocks[result.block].raw:
            raise Damaged("a record outside its block")
        if blocks[result.block].raw > BLOCK_LIMIT and result.length != blocks[result.block].raw:
            raise Damaged("a large block that is not one record")
        taken.append((result.block, result.offset, result.length))
        return result

    last = b""
    for _ in range(cursor.entries(13, VERSIONS_LIMIT)):
        id = cursor.version_id()
        if id.encode() <= last:
            raise Damaged("ids out of order")
        last = id.encode()
        versions[id] = place(VERSION, True)
    services: list[Place] = []
    for _ in range(cursor.entries(4, SERVICE_LIMIT)):
        services.append(place(cursor.u8(), False))
    cursor.end()
    owners = {one[0] for one in taken}
    if any(block.raw > BLOCK_LIMIT and number not in owners for number, block in enumerate(blocks)):
        raise Damaged("a large block without a record")
    if count != len(versions) or name.kind in (BLOB, ROOT) and (versions or services):
        raise Damaged("another number of records")
    taken.sort()
    for one, two in zip(taken, taken[1:]):
        if one[0] == two[0] and one[1] + one[2] > two[1]:
            raise Damaged("records that overlap")
    types = [service.type for service in services]
    if services and [service[1:3] for service in services] != sorted(service[1:3] for service in services):
        raise Damaged("service records out of order")
    for type in types:
        if type < 128 and type not in (SEEN, REPLACES, NOTICE, COVERS):
            raise Damaged("a type that is not in this list") if type <= VERSION else Newer(f"a record of type {type}")
    if any(types.count(type) > 1 for type in (SEEN, REPLACES, COVERS)) or name.kind == LOG and (REPLACES in types or COVERS in types):
        raise Damaged("a record that is there twice, or not in its place")
    if (SEEN in types) != any(seen):
        raise Damaged("what was seen is told otherwise")
    return Index(name, header, blocks, versions, services, link, seen, raw)


def inflate(block: Block, data: bytes) -> bytes:
    """Returns the raw bytes of a block, from its header and stored bytes."""
    if len(data) != 9 + block.stored:
        raise NotThere("a block that is cut short")
    codec, stored, raw = struct.unpack_from("<BII", data)
    if codec > 1 and hashlib.sha256(data[9:]).digest()[:8] == block.digest and (stored, raw) == (block.stored, block.raw):
        raise Newer(f"the codec {codec}")
    if (stored, raw) != (block.stored, block.raw) or hashlib.sha256(data[9:]).digest()[:8] != block.digest or codec > 1:
        raise Damaged("a block that is not what the index says")
    if codec == 0:
        if stored != raw:
            raise Damaged("two sizes of a block as it is")
        return data[9:]
    inflater = zlib.decompressobj(-15)
    try:
        result = inflater.decompress(data[9:], raw + 1)
    except zlib.error as error:
        raise Damaged(str(error)) from error
    if len(result) != raw or not inflater.eof or inflater.unused_data or inflater.unconsumed_tail:
        raise Damaged("a block that inflates to something else")
    return result


def read_pack(name: str, data: bytes, stores: Collection[bytes], size: Optional[int] = None) -> Pack:
    """Reads a whole file of any kind."""
    parsed = parse(name)
    if parsed is None:
        raise ValueError("no name of the layout")
    if len(data) > FILE_LIMIT[parsed.kind]:
        raise TooLarge(f"{len(data)} bytes")
    if size is not None and len(data) != size or hashlib.sha256(data).digest()[:16] != parsed.id:
        raise NotThere("not the bytes of the name")
    header = data[:HEADER]
    if len(data) < HEADER + TRAILER or header[:8] != MAGIC or data[-8:] != END:
        raise Damaged("no pack")
    if header[8] > 1:
        raise Newer(f"format {header[8]}")
    last, first = struct.unpack_from("<II", header, 56)
    if header[8] != 1 or header[9] != parsed.kind or any(header[10:16]) or (first, last) != (parsed.first, parsed.last):
        raise Damaged("the header is not that of the name")
    if parsed.kind in (LOG, BASE) and header[48:56] != parsed.owner:
        raise Damaged("another writer than the name says")
    if parsed.kind != ROOT and header[16:32] not in stores:
        raise OtherStore(header[16:32].hex())
    index = read_index(parsed, len(data), data, stores, header)
    assert index is not None
    raws = [inflate(block, data[block.offset : block.offset + 9 + block.stored]) for block in index.blocks]
    pack = Pack(index)
    if parsed.kind in (BLOB, ROOT):
        pack.content = b"".join(raws)
        if parsed.kind == BLOB and not 1 <= len(pack.content) <= PART_SIZE or parsed.kind == ROOT and (len(raws) != 1 or data[HEADER] != 0):
            raise Damaged("not the blocks of its kind")
        return pack
    try:
        read_services(pack, raws)
        for place in index.versions.values():
            payload(place, raws[place.block])
    except engine.Damage as error:
        raise Damaged(str(error)) from error
    bases: dict[str, engine.Version] = {}
    left = PACK_DIFFERENCES
    for id, place in sorted(index.versions.items(), key=lambda item: item[1][1:3]):
        try:
            version = read_version(id, place, raws[place.block], bases)
            if version.record is not None:
                differences = sum(change.size for change in version.record.changes.values() if change.is_difference)
                if differences > left:
                    raise TooLarge("values that are differences of more than 4 GiB")
                left -= differences
                bases[id] = version.record
            pack.versions[id] = version
        except (engine.Damage, engine.NewerFormat, Damaged, Newer, TooLarge) as error:
            pack.problems[id] = error
    pack.versions = {id: pack.versions[id] for id in index.versions if id in pack.versions}
    return pack


def read_services(pack: Pack, raws: list[bytes]) -> None:
    """Reads all records except versions; `raws` by number of the block."""
    for place in pack.index.services:
        data = payload(place, raws[place.block])
        cursor = Cursor(data)
        if place.type == SEEN:
            if hashlib.sha256(data).digest()[:16] != pack.index.seen_digest:
                raise Damaged("another record of what was seen")
            entries = [(cursor.take(8), cursor.u32(), cursor.take(16)) for _ in range(cursor.entries(28, ENTRIES_LIMIT))]
            in_order([entry[0] for entry in entries])
            pack.seen = {writer: (number, id) for writer, number, id in entries}
        elif place.type == REPLACES:
            names = []
            for _ in range(cursor.entries(29, ENTRIES_LIMIT)):
                kind = cursor.u8()
                if kind not in (LOG, BASE):
                    raise Damaged("a name of another kind")
                writer, first = cursor.take(8), cursor.u32()
                last = first if kind == LOG else cursor.u32()
                names.append((kind, writer, first, last, cursor.take(16)))
                if first == 0 or first > last or not any(writer):
                    raise Damaged("no name")
            in_order([replaced_bytes(Name(*entry)) for entry in names])
            pack.replaces = tuple(str(Name(*entry)) for entry in names)
        elif place.type == COVERS:
            covers = [(cursor.take(8), cursor.u32(), cursor.u32()) for _ in range(cursor.entries(16, ENTRIES_LIMIT))]
            for one, two in zip(covers, covers[1:]):
                if one[0] > two[0] or one[0] == two[0] and one[2] + 1 >= two[1]:
                    raise Damaged("covers that touch, or are out of order")
            if any(first == 0 or first > last for _, first, last in covers):
                raise Damaged("an empty range")
            pack.covers = tuple(covers)
        elif place.type == NOTICE:
            kind = cursor.u8()
            pack.notices.append((kind, cursor.take(cursor.left)))
        else:
            continue
        cursor.end()


def replaced_bytes(name: Name) -> bytes:
    """Returns a name as *replaces* contains it."""
    numbers = struct.pack("<I", name.last) if name.kind == LOG else struct.pack("<II", name.first, name.last)
    return bytes([name.kind]) + name.owner + numbers + name.id


def read_root(name: str, data: bytes) -> tuple[bytes, str]:
    """Returns the store id and the layout in a root."""
    pack = read_pack(name, data, [])
    if pack.index.name.kind != ROOT:
        raise Damaged("no root")
    try:
        said = json.loads(pack.content)
    except (ValueError, RecursionError) as error:
        raise Damaged("a root that is no JSON") from error
    if not isinstance(said, dict) or said.get("store") != encode(pack.index.header[16:32]) or not isinstance(said.get("encrypted"), bool):
        raise Damaged("a root that contradicts itself")
    if said.get("format") != 1 or said.get("layout") not in ("packed", "bridged"):
        raise Newer("a root of another format")
    return pack.index.header[16:32], said["layout"]
