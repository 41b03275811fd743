"""Reads and writes values as differences in pure Python. Written only from docs/format.md, "Values as differences"."""

from __future__ import annotations

import math
import re
import struct
import zlib
from typing import Iterator, NamedTuple, Sequence, Union

from format_reader import Cursor, Damage, NewerFormat, checksum

LARGEST_VALUE, LARGEST_PLACE, MOST_STEPS, RATIO = 64 << 20, 1_023, 16, 1_032

#: A copy from the base as (offset, length), or literal bytes.
Operation = Union[tuple[int, int], bytes]


class Difference(NamedTuple):
    """The decoded stored bytes of a difference."""

    place: int
    #: The stored bytes of all differences from the value that is stored whole up to this one, inclusive.
    way: int
    base: str
    base_size: int
    #: A hint: where the body of the base begins in its record. 0 if there is no hint.
    base_body: int
    base_checksum: int
    checksum: int
    operations: tuple[Operation, ...]


def parse(stored: bytes, size: int) -> Difference:
    """Decodes the stored bytes of a value of `size` bytes; raises Damage, NewerFormat."""
    if not stored or len(stored) > size + 256 or size > LARGEST_VALUE:
        raise Damage("a difference of a wrong size")
    cursor = Cursor(stored)
    kind = cursor.u8()
    if kind > 1:
        raise NewerFormat(f"a difference of kind {kind}")
    place, way = cursor.varint(), cursor.varint()
    if not 1 <= place <= LARGEST_PLACE or way < len(stored):
        raise Damage("a wrong place, or way")
    base, base_size, base_body = cursor.version_id(), cursor.varint(), cursor.varint()
    base_checksum, own_checksum = cursor.u32(), cursor.u32()
    if base_size > 4 * size + (64 << 10) or size > RATIO * len(stored) + 2 * base_size:
        raise Damage("sizes beyond the limits")
    inflated = cursor.varint() if kind == 1 else cursor.left
    streams = cursor.take(cursor.left)
    if inflated > 2 * size + 64 or inflated > RATIO * len(stored):
        raise Damage("streams beyond the limits")
    if kind == 1:
        inflating = zlib.decompressobj(-15)
        try:
            streams = inflating.decompress(streams, inflated + 1)
        except zlib.error:
            raise Damage("streams that do not inflate") from None
        if len(streams) != inflated or not inflating.eof or inflating.unused_data:
            raise Damage("streams of another size")
    return Difference(place, way, base, base_size, base_body, base_checksum, own_checksum, tuple(_operations(streams, size, base_size)))


def _operations(streams: bytes, size: int, base_size: int) -> Iterator[Operation]:
    cursor = Cursor(streams)
    operations = Cursor(cursor.take(cursor.varint()))
    literals, made, end = cursor, 0, 0
    while operations.left:
        number = operations.varint()
        length = number >> 1
        if length == 0 or length > size - made:
            raise Damage("an operation of a wrong length")
        if number & 1:
            shift = operations.varint()
            where = end + (shift >> 1 if shift % 2 == 0 else -(shift + 1 >> 1))
            end = where + length
            if where < 0 or end > base_size:
                raise Damage("a copy of what is not in the base")
            yield where, length
        else:
            yield literals.take(length)
        made += length
    literals.end()
    if made != size:
        raise Damage("operations that make another size")


def apply(stored: bytes, size: int, base: bytes) -> bytes:
    """Returns the value; raises Damage, NewerFormat."""
    difference = parse(stored, size)
    if len(base) != difference.base_size or checksum(base) != difference.base_checksum:
        raise Damage("another base")
    value = b"".join(part if isinstance(part, bytes) else base[part[0] : part[0] + part[1]] for part in difference.operations)
    if checksum(value) != difference.checksum:
        raise Damage("another value")
    return value


def has_content_form(id: str) -> bool:
    """Returns whether a version id has the form of the ids that are computed from the contents of versions."""
    return re.fullmatch(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-8[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}", id) is not None


# Making


def varint(number: int) -> bytes:
    made = b""
    while number > 127:
        made += bytes([number & 127 | 128])
        number >>= 7
    return made + bytes([number])


def version_id(text: str) -> bytes:
    if len(text) == 36 and text == text.upper() and text.count("-") == 4 and not set(text) - set("0123456789ABCDEF-"):
        return b"\0" + bytes.fromhex(text.replace("-", ""))
    return bytes([len(text)]) + text.encode()


def streams_of(operations: Sequence[Operation]) -> bytes:
    made, literals, end = b"", b"", 0
    for part in operations:
        if isinstance(part, bytes):
            made += varint(2 * len(part))
            literals += part
        else:
            shift = part[0] - end
            made += varint(2 * part[1] + 1) + varint(2 * shift if shift >= 0 else -2 * shift - 1)
            end = part[0] + part[1]
    return varint(len(made)) + made + literals


def encode(
    base: bytes, value: bytes, operations: Sequence[Operation], version: str, *, place: int = 1, way_before: int = 0, body: int = 0,
    deflates: bool = False,
) -> bytes:
    """Returns the stored bytes of a difference. `way_before`: the stored bytes of the differences on the way of the base."""
    streams = streams_of(operations)
    if deflates:
        deflating = zlib.compressobj(9, zlib.DEFLATED, -15)
        streams = varint(len(streams)) + deflating.compress(streams) + deflating.flush()
    behind = version_id(version) + varint(len(base)) + varint(body) + struct.pack("<II", checksum(base), checksum(value)) + streams
    way = 0
    while True:
        stored = bytes([deflates]) + varint(place) + varint(way) + behind
        if way == way_before + len(stored):
            return stored
        way = way_before + len(stored)


def find_operations(base: bytes, value: bytes, block: int = 8) -> list[Operation]:
    """Returns operations that a simple search finds. A copy begins at the first occurrence of a block in the base, and is as long as
    possible."""
    places: dict[bytes, int] = {}
    for at in range(len(base) - block, -1, -1):
        places[base[at : at + block]] = at
    found: list[Operation] = []
    at = start = 0
    while at < len(value):
        where = places.get(value[at : at + block]) if len(value) - at >= block else None
        if where is None:
            at += 1
            continue
        length = block
        while at + length < len(value) and where + length < len(base) and value[at + length] == base[where + length]:
            length += 1
        if start < at:
            found.append(value[start:at])
        found.append((where, length))
        at = start = at + length
    if start < len(value):
        found.append(value[start:])
    return found


def place_of(before: int) -> tuple[int, int]:
    """Returns the place of a value if the previous value has place `before`, and the place of its base."""
    place = before + 1
    if place > 329:
        return 0, 0
    left, last = place, 0
    for choice in (4, 3, 2, 1):
        if left:
            last = max(math.comb(n, choice) for n in range(choice, left + choice) if math.comb(n, choice) <= left)
            left -= last
    return place, place - last
