"""Reads and writes streams of packs, from docs/pack-format.md, section 14."""

from __future__ import annotations

import hashlib
import struct
from typing import Iterable, Iterator, Optional

from . import reader
from .names import BLOB, LOG, Name, parse
from .writer import File

MAGIC = b"LLVSPKS\n"


def write(store: bytes, files: Iterable[File]) -> bytes:
    """Returns a stream of files, in this order: blobs before the pack that names them."""
    out, ids = MAGIC + b"\1" + bytes(7) + store, []
    for name, data in files:
        parsed = parse(name)
        assert parsed is not None
        out += struct.pack("<BI", parsed.kind, len(data)) + parsed.id + data
        ids.append(parsed.id)
    return out + struct.pack("<BI", 0, len(ids)) + hashlib.sha256(b"".join(ids)).digest()[:16]


def read(data: bytes) -> Iterator[tuple[Name, bytes]]:
    """Yields the names and bytes of the files in a whole stream."""
    if data[:8] != MAGIC:
        raise reader.Damaged("no stream")
    if data[8] > 1:
        raise reader.Newer(f"format {data[8]}")
    at, ids = 32, []
    while True:
        kind, size = struct.unpack_from("<BI", data, at)
        id, at = data[at + 5 : at + 21], at + 21
        if kind == 0:
            if size != len(ids) or id != hashlib.sha256(b"".join(ids)).digest()[:16]:
                raise reader.Damaged("files are missing")
            return
        file, at = data[at : at + size], at + size
        last, first = struct.unpack_from("<II", file, 56)
        owner = file[48:56] if kind == LOG else file[-120:-104]
        yield Name(kind, owner, first, last, id), file
        ids.append(id)


def packs(data: bytes) -> Iterator[tuple[reader.Pack, dict[tuple[bytes, int], reader.Pack]]]:
    """Yields each pack, with the parts of the blobs before it, by digest and number."""
    store, parts, link, number = data[16:32], {}, bytes(16), 0
    for name, file in read(data):
        pack = reader.read_pack(str(name), file, [store], len(file))
        if name.kind == BLOB:
            parts[name.owner, name.last] = pack
            continue
        number += 1
        assert name.last == number and pack.index.link == link
        link = name.id
        yield pack, parts
        parts = {}


def content(blob: reader.BlobReference, parts: dict[tuple[bytes, int], reader.Pack]) -> bytes:
    """Returns the bytes of a blob."""
    found: list[bytes] = []
    for number, id in enumerate(blob.parts):
        part: Optional[reader.Pack] = parts.get((blob.digest, number))
        if part is None or part.index.name.id != id:
            raise reader.NotThere("a part")
        found.append(part.content)
    return reader.join(blob, found)
