"""A reader of a store's files in pure Python, written from docs/format.md alone.

    store = read_store(Path("notes.llvs"))
    store.versions["..."].predecessors, store.state("..."), store.problems

It follows the page's order and names: the directory, segments, blobs, then records. `versions` has only versions that are *here* as the
page defines it; the others are in `pending`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, NamedTuple, Optional

INSERT, UPDATE, REMOVE, PRESERVE, PRESERVE_REMOVAL = range(1, 6)
AS_IS, DEFLATED, BLOB, HOLLOW = range(4)
EMPTY_ROOT = "00000000-0000-8000-8000-000000000000"


def _table() -> list[int]:
    entries = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        entries.append(number)
    return entries


_CRC = _table()


def checksum(*pieces: bytes) -> int:
    """CRC-32C."""
    return _checksum(*map(bytes, pieces))


@functools.lru_cache(maxsize=256)
def _checksum(*pieces: bytes) -> int:
    """Computed once for the same bytes, which copies of a store contain."""
    crc = 0xFFFFFFFF
    table = _CRC
    for piece in pieces:
        for byte in piece:
            crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Damage(Exception):
    """Bytes that differ from those that were written."""


class NewerFormat(Exception):
    """A newer library wrote the store, or a record in it."""

    def __init__(self, what: str, version: Optional[str] = None) -> None:
        super().__init__(what)
        self.version = version


class Hollow(Exception):
    """The base of a difference has no bytes, by intent."""


class NotAStore(Exception):
    """The directory is not a store."""


class Cursor:
    """Reads forward, and checks every length against the rest."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise Damage(f"{count} bytes are needed, {self.left} are left")
        self.at += count
        return self.data[self.at - count : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def varint(self) -> int:
        number = shift = 0
        for _ in range(10):
            byte = self.u8()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if number >= 1 << 64:
                    raise Damage("a varint beyond 64 bits")
                return number
        raise Damage("a varint of more than 10 bytes")

    def count(self, size: int = 1) -> int:
        """Reads the count of entries of at least `size` bytes each."""
        number = self.varint()
        if number * size > self.left:
            raise Damage(f"{number} things do not fit into {self.left} bytes")
        return number

    def version_id(self) -> str:
        size = self.u8()
        if size == 0:
            digits = self.take(16).hex().upper()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        if size > 128:
            raise Damage("a version id of more than 128 characters")
        text = self.take(size)
        if not re.fullmatch(rb"[A-Za-z0-9_-]+", text):
            raise Damage("a version id of other characters")
        if re.fullmatch(rb"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}", text):
            raise Damage("a UUID as text")
        return text.decode()

    def end(self) -> None:
        if self.left:
            raise Damage(f"{self.left} bytes are left over")


# Records


class Change(NamedTuple):
    """One entry of a change table, and the location of its bytes."""

    kind: int
    id: bytes
    encoding: int = AS_IS
    size: int = 0
    stored_size: int = 0
    blob: Optional[bytes] = None
    digest: Optional[bytes] = None
    #: For preserve: the version that stored the bytes.
    version: Optional[str] = None
    #: The offset of the body, from the start of the bodies.
    offset: int = 0
    #: Whether the body is a difference from an earlier value.
    is_difference: bool = False


@dataclass
class Version:
    """One record, its header and change table decoded."""

    id: str
    predecessors: tuple[str, ...]
    timestamp: float
    value_data_size: int
    dependencies: tuple[str, ...]
    blobs: tuple[bytes, ...]
    metadata: dict[bytes, bytes]
    changes: dict[bytes, Change]
    bodies: bytes
    header_checksum: int
    length: int
    #: By tag. Unknown extensions can be ignored, or the record has a newer format.
    extensions: dict[int, bytes] = field(default_factory=dict)
    values: dict[bytes, bytes] = field(default_factory=dict)
    #: Stored bytes of values that are differences: `value_differences` reads them.
    differences: dict[bytes, bytes] = field(default_factory=dict)
    #: Value ids whose bytes are damaged.
    damaged: set[bytes] = field(default_factory=set)
    #: Ids of values whose bytes are not in the record, by intent, and of values that are differences from such a value.
    hollow: set[bytes] = field(default_factory=set)
    #: Statements of the record that are wrong.
    problems: list[str] = field(default_factory=list)

    def branch(self) -> Optional[str]:
        """The branch in its metadata."""
        try:
            name = json.loads(self.metadata[b"__llvs_branch"])
        except (KeyError, ValueError):
            return None
        return name if isinstance(name, str) else None


def read_record(record: bytes) -> Version:
    """Decodes a record; raises Damage, NewerFormat."""
    if len(record) < 28:
        raise Damage("shorter than a prelude")
    format, flags, more_flags, header_size, table_size, bodies_size, header_checksum = struct.unpack_from("<BBHIQQI", record)
    if 28 + header_size + table_size + bodies_size != len(record):
        raise Damage("the sizes do not add up")
    header = record[28 : 28 + header_size]
    if checksum(record[:24], header) != header_checksum:
        raise Damage("the header's checksum is wrong")
    if format == 0:
        raise Damage("no such format")
    cursor = Cursor(header)
    id = cursor.version_id()
    if format > 1 or flags & 0x0C or more_flags:
        raise NewerFormat(f"a record of format {format} with the flags {flags} and {more_flags}", id)
    table = record[28 + header_size : 28 + header_size + table_size]
    bodies = record[28 + header_size + table_size :]

    predecessor_count = cursor.varint()
    if predecessor_count > 2:
        raise Damage("more than two predecessors")
    predecessors = tuple(cursor.version_id() for _ in range(predecessor_count))
    if len({id, *predecessors}) != predecessor_count + 1:
        raise Damage("predecessors that are not different")
    (timestamp,) = struct.unpack("<d", cursor.take(8))
    if not math.isfinite(timestamp):
        raise Damage("a timestamp that is no time")
    value_data_size = cursor.varint()
    change_count, page_count = cursor.varint(), cursor.varint()
    if change_count > 16_777_216 or page_count != (change_count + 63) // 64:
        raise Damage("counts that do not fit each other")
    dependencies = tuple(cursor.version_id() for _ in range(cursor.count(2)))
    blobs = tuple(cursor.take(16) for _ in range(cursor.count(16)))
    metadata = _read_metadata(cursor)
    extensions = _read_extensions(cursor, id) if flags & 0x10 else {}
    cursor.end()
    if id == EMPTY_ROOT and (predecessors or header[18:26] != bytes(8) or value_data_size or change_count or metadata):
        raise Damage("something else under the id of the empty root")
    changes = _read_table(table, change_count, page_count, dependencies, len(bodies), flags)
    version = Version(
        id, predecessors, timestamp, value_data_size, dependencies, blobs, metadata, changes, bodies, header_checksum, len(record),
        extensions,
    )
    if sum(change.size for change in changes.values() if change.kind in (INSERT, UPDATE)) != value_data_size:
        version.problems.append("the bytes of the values are not what the header says")
    return version


def _read_metadata(cursor: Cursor) -> dict[bytes, bytes]:
    metadata: dict[bytes, bytes] = {}
    total = 0
    for _ in range(cursor.count(2)):
        key = cursor.take(cursor.varint())
        if len(key) > 4096:
            raise Damage("a metadata key of a wrong size")
        key.decode("utf-8")
        if metadata and key <= next(reversed(metadata)):
            raise Damage("metadata out of order")
        metadata[key] = cursor.take(cursor.varint())
        total += len(key) + len(metadata[key])
    if total > 16_777_216:
        raise Damage("more than 16 MiB of metadata")
    return metadata


def _read_extensions(cursor: Cursor, id: str) -> dict[int, bytes]:
    extensions: dict[int, bytes] = {}
    while cursor.left:
        tag = cursor.varint()
        if extensions and tag <= next(reversed(extensions)):
            raise Damage("extensions out of order")
        extensions[tag] = cursor.take(cursor.varint())
    for tag in extensions:
        if tag % 2 == 0:
            raise NewerFormat(f"the extension {tag}", id)
    return extensions


def _read_table(
    table: bytes, change_count: int, page_count: int, dependencies: tuple[str, ...], bodies_size: int, flags: int
) -> dict[bytes, Change]:
    changes: dict[bytes, Change] = {}
    cursor = Cursor(table)
    offsets = []
    body = 0
    last = b""
    for number in range(page_count):
        offsets.append(cursor.at)
        expected, size = cursor.u32(), cursor.u32()
        content = cursor.take(size)
        if checksum(struct.pack("<I", size), content) != expected:
            raise Damage(f"the checksum of page {number} is wrong")
        page = Cursor(content)
        if page.varint() != number or page.varint() != body:
            raise Damage(f"page {number} is another, or its bodies are elsewhere")
        for _ in range(min(64, change_count - 64 * number)):
            change = _read_entry(page, dependencies, body, flags)
            if change.id <= last:
                raise Damage("entries out of order")
            last = change.id
            changes[change.id] = change
            if change.kind in (INSERT, UPDATE) and change.encoding not in (BLOB, HOLLOW):
                body += 8 + change.stored_size
        page.end()
    if page_count > 1:
        for offset in offsets:
            if int.from_bytes(cursor.take(8), "little") != offset:
                raise Damage("the directory is wrong")
    cursor.end()
    if body != bodies_size:
        raise Damage("the bodies have another size than the entries say")
    return changes


def _read_entry(page: Cursor, dependencies: tuple[str, ...], offset: int, flags: int) -> Change:
    tag = page.u8()
    kind, encoding, has_digest, is_difference = tag & 7, tag >> 3 & 3, bool(tag & 32), bool(tag & 128)
    if is_difference and (not flags & 2 or kind not in (INSERT, UPDATE) or encoding != AS_IS):
        raise Damage("a difference where there is none")
    if encoding == HOLLOW and (not flags & 1 or not has_digest):
        raise Damage("a hollow change where there is none, or without its digest")
    if not INSERT <= kind <= PRESERVE_REMOVAL:
        raise Damage(f"no such tag: {tag}")
    size = page.varint()
    if not 1 <= size <= 4096:
        raise Damage("a value id of a wrong size")
    id = page.take(size)
    id.decode("utf-8")
    if kind in (INSERT, UPDATE):
        value_size = page.varint()
        if value_size > 1 << 30:
            raise Damage("a value of more than 1 GiB")
        stored = page.varint() if encoding == DEFLATED or is_difference else 0 if encoding == HOLLOW else value_size
        if is_difference and stored > value_size + 256:
            raise Damage("a difference that is larger than its value")
        if encoding == DEFLATED and stored >= value_size:
            raise Damage("deflated, and not smaller")
        blob = page.take(16) if encoding == BLOB else None
        digest = page.take(32) if has_digest else None
        return Change(kind, id, encoding, value_size, stored, blob, digest, None, offset, is_difference)
    if encoding or has_digest:
        raise Damage("an encoding without bytes")
    if kind == PRESERVE:
        index = page.varint()
        if index >= len(dependencies):
            raise Damage("no such dependency")
        return Change(kind, id, version=dependencies[index])
    return Change(kind, id)


# Blobs


def read_blob(path: Path, digest: Optional[bytes] = None) -> bytes:
    """Returns the value in a blob file; raises Damage, FileNotFoundError, NewerFormat. `digest`: the one in the change that names it."""
    data = path.read_bytes()
    header = data[:64]
    if len(header) < 64:
        raise Damage("a blob that is not here yet")
    magic, format, block, id, size, table_checksum = struct.unpack_from("<8sII16sQI", header)
    if magic != b"LLVSblb\n" or checksum(header[:60]) != int.from_bytes(header[60:64], "little"):
        raise Damage("no blob header")
    if format > 1:
        raise NewerFormat(f"a blob of format {format}")
    if block != 65536 or id.hex() != path.stem:
        raise Damage("another blob")
    if digest is not None and header[44:60] not in (bytes(16), digest[:16]):
        raise Damage("the blob of another value")
    entries = -(-size // 65536)
    if len(data) - 64 < 4 * entries or len(data) - 64 - 4 * entries < size:
        raise Damage("a blob that is not here yet")
    table = data[64 : 64 + 4 * entries]
    if checksum(table) != table_checksum:
        raise Damage("the table of a blob is wrong")
    value = data[64 + 4 * entries : 64 + 4 * entries + size]
    for index, (expected,) in enumerate(struct.iter_unpack("<I", table)):
        if checksum(value[65536 * index : 65536 * (index + 1)]) != expected:
            raise Damage(f"block {index} of a blob is wrong")
    return value


# Segments


@dataclass
class Segment:
    """The contents of a segment file."""

    #: Records, each with whether it is whole. If not, only the parts count that match their own checksums.
    records: list[tuple[bytes, bool]] = field(default_factory=list)
    #: The offset and the description of each damage.
    damages: list[tuple[int, str]] = field(default_factory=list)
    #: The offset of the tail, None if there is none.
    tail: Optional[int] = None
    sealed: bool = False


def _frame_header(data: bytes, at: int, segment: bytes) -> Optional[tuple[int, int, int, int]]:
    """Returns (kind, body size, checksum, marks) of a valid frame header."""
    header = data[at : at + 48]
    if len(header) < 48 or header[:4] != b"\xa7LVF" or header[8:24] != segment:
        return None
    own, size, body_checksum, own_checksum = struct.unpack_from("<QQII", header, 24)
    if own != at or checksum(header[:44]) != own_checksum:
        return None
    return header[4], size, body_checksum, header[5]


def _synced_end(data: bytes, at: int, segment: bytes) -> int:
    """Returns the offset before which all frames were synced, as the valid frames from `at` on report."""
    synced = 0
    while (frame := _frame_header(data, at, segment)) is not None:
        if frame[3] & 1 or frame[0] == 2:
            synced = at
        at += 48 + frame[1]
    return synced


def read_segment(path: Path) -> Optional[Segment]:
    """Returns the records of a segment file; None if it is incomplete so far, or is not a segment."""
    data = path.read_bytes()
    name = path.name
    segment = Segment()
    named = bytes.fromhex(name[:32]) if re.fullmatch(r"[0-9a-f]{32}\.seg", name) else None
    if len(data) < 64:
        return None
    header = data[:64]
    good = header[:8] == b"LLVSseg\n" and checksum(header[:60]) == int.from_bytes(header[60:64], "little")
    if good:
        id = header[16:32]
        if int.from_bytes(header[8:12], "little") > 1:
            segment.damages.append((0, "a newer format"))
            return segment
        if named is not None and id != named:
            segment.damages.append((0, "another segment than its name says"))
            return segment
    elif named is not None:
        id = named
        segment.damages.append((0, "the header of the segment is damaged"))
    else:
        return None

    if len(data) >= 64 + 64:
        seal = _frame_header(data, len(data) - 64, id)
        segment.sealed = seal is not None and seal[:2] == (2, 16) and checksum(data[-16:]) == seal[2]

    at = 64
    frames = 0
    whole = len(data) if segment.sealed else 0  # frames before this offset were whole once
    while at < len(data):
        frame = _frame_header(data, at, id)
        if frame is not None and frame[1] <= len(data) - at - 48:
            kind, size, body_checksum, _ = frame
            body = data[at + 48 : at + 48 + size]
            if kind == 2 and size == 16 and checksum(body) == body_checksum:
                frames += 1
                break
            passes = kind != 2 and _other_frame(segment, at, kind, body, body_checksum, at < whole) if kind != 1 else False
            records = _batch(body, body_checksum, at < whole) if kind == 1 else None
            if records is not None:
                segment.records += records
                if not all(is_whole for _, is_whole in records):
                    segment.damages.append((at, "a record in a frame that was whole once does not match its checksum"))
            if passes or records is not None:
                frames += 1
                at += 48 + size
                continue
        # A tail, or damage.
        if frame is not None:
            if frame[1] > len(data) - at - 48:
                segment.tail = at
                break
            begin = at + 48 + frame[1]
        else:
            begin = at + 1
        behind = next((place for place in _magics(data, begin) if _frame_header(data, place, id)), None)
        if behind is None:
            segment.tail = at
            break
        synced = _synced_end(data, behind, id)
        if synced > whole:
            whole = synced
            continue
        segment.damages.append((at, "a frame that is not whole, with others behind it"))
        at = behind
    if not good and not frames:
        return None
    return segment


def _magics(data: bytes, at: int) -> Iterator[int]:
    while (at := data.find(b"\xa7LVF", at)) >= 0:
        yield at
        at += 1


def _other_frame(segment: Segment, at: int, kind: int, body: bytes, body_checksum: int, was_whole: bool) -> bool:
    """Returns whether to skip a frame that is neither a batch nor a seal."""
    matches = checksum(body) == body_checksum
    if kind == 3 or kind >= 128:
        if not matches and was_whole:
            segment.damages.append((at, "what can be ignored is damaged"))
        return matches or was_whole
    if matches:
        segment.damages.append((at, f"a newer format: a frame of kind {kind}"))
    return matches


def _batch(body: bytes, table_checksum: int, was_whole: bool) -> Optional[list[tuple[bytes, bool]]]:
    """Returns the records of a batch, each with whether it is whole; None if the frame is bad."""
    if len(body) < 4:
        return None
    count = int.from_bytes(body[:4], "little")
    if count > 1 << 20 or 4 + 12 * count > len(body):
        return None
    table = body[: 4 + 12 * count]
    if checksum(table) != table_checksum:
        return None
    entries = list(struct.iter_unpack("<QI", table[4:]))
    if sum(length for length, _ in entries) != len(body) - len(table):
        return None
    records: list[tuple[bytes, bool]] = []
    at = len(table)
    for length, expected in entries:
        record = body[at : at + length]
        at += length
        records.append((record, checksum(record) == expected))
    return records if was_whole or all(is_whole for _, is_whole in records) else None


# The store


@dataclass
class Store:
    """Everything in the files of a store."""

    versions: dict[str, Version] = field(default_factory=dict)
    pending: dict[str, Version] = field(default_factory=dict)
    #: Versions of a newer format.
    newer: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    segments: int = 0
    tails: int = 0
    encodings: set[int] = field(default_factory=set)
    largest_batch: int = 0

    def value(self, version: str, id: bytes) -> bytes:
        """Returns the bytes that a version stored."""
        return self.versions[version].values[id]

    def state(self, version: str) -> dict[bytes, str]:
        """Returns the versions whose bytes prevail, by value id."""
        chain = [version]
        while self.versions[chain[-1]].predecessors:
            chain.append(self.versions[chain[-1]].predecessors[0])
        state: dict[bytes, str] = {}
        for at in reversed(chain):
            for change in self.versions[at].changes.values():
                if change.kind in (INSERT, UPDATE):
                    state[change.id] = at
                elif change.kind == PRESERVE:
                    assert change.version is not None
                    state[change.id] = change.version
                else:
                    state.pop(change.id, None)
        return state

    def heads(self) -> set[str]:
        """Returns versions without successors."""
        return set(self.versions) - {id for version in self.versions.values() for id in version.predecessors}


def read_store(directory: Path) -> Store:
    """Reads a store directory. Raises NotAStore, NewerFormat."""
    store = Store()
    try:
        marker = (directory / "llvs-store").read_bytes()
    except OSError:
        marker = b""
    match = re.match(rb"LLVS store\nformat ([1-9][0-9]{0,200})\n", marker)
    if match and match[1] != b"1":
        raise NewerFormat(f"format {match[1].decode()}")
    if not match:
        if not (directory / "segments").is_dir():
            raise NotAStore(str(directory))
        store.problems.append("the marker is missing or unreadable")

    found: dict[str, Version] = {}
    met: list[Version] = []
    for path in sorted((directory / "segments").iterdir()):
        if not path.name.endswith(".seg") or path.name.startswith("."):
            continue
        segment = read_segment(path)
        if segment is None:
            continue
        store.segments += 1
        store.tails += segment.tail is not None
        store.problems += [f"{path.name}: {what} at {at}" for at, what in segment.damages]
        for record, _ in segment.records:
            try:
                version = read_record(record)
                _read_values(directory, version)
            except FileNotFoundError:
                version = read_record(record)  # its blobs are missing, so it is pending
                store.pending[version.id] = version
                continue
            except NewerFormat as newer:
                store.newer.add(newer.version or "")
                store.problems.append(f"{path.name}: {newer}")
                continue
            except (Damage, UnicodeDecodeError) as problem:
                store.problems.append(f"{path.name}: {problem}")
                continue
            met.append(version)
    _read_differences(met)
    for version in met:
        store.problems += [f"{version.id}: {problem}" for problem in version.problems]
        store.problems += [f"{version.id}: the value of {id!r} is damaged" for id in version.damaged]
        other = found.get(version.id)
        if other is None or (other.damaged and not version.damaged) or _lacks_less(version, other):
            found[version.id] = version
        elif not version.damaged and identity(version) != identity(other):
            store.problems.append(f"two versions {version.id}")
            found[version.id] = min(version, other, key=identity)
    # Repeat: a version is here if its predecessors and dependencies are here.
    left = found
    while True:
        ready = [
            id for id, version in left.items() if all(other in store.versions for other in version.predecessors + version.dependencies)
        ]
        if not ready:
            break
        for id in ready:
            store.versions[id] = left.pop(id)
    store.pending.update(left)
    for version in store.versions.values():
        for change in version.changes.values():
            if change.kind == PRESERVE:
                named = store.versions[change.version or ""].changes.get(change.id)
                if named is None or named.kind not in (INSERT, UPDATE):
                    store.problems.append(f"{version.id}: preserves {change.id!r}, which was never stored")
        store.encodings |= {change.encoding for change in version.changes.values() if change.kind in (INSERT, UPDATE)}
    return store


def _lacks_less(one: Version, other: Version) -> bool:
    """Whether two records are the same, and the first has fewer hollow changes."""
    if one.damaged or other.damaged or len(one.hollow) >= len(other.hollow):
        return False
    return identity(one) == identity(other)


def _read_differences(met: list[Version]) -> None:
    """Decodes the values that are differences, in all versions that were read."""
    import value_differences as d

    by_id: dict[str, list[Version]] = {}
    for version in met:
        by_id.setdefault(version.id, []).append(version)

    def way(version: Version, id: bytes) -> list[tuple[Version, bytes]]:
        """Returns the versions from the value to the one that is stored whole, each with its stored bytes; the last has none."""
        steps: list[tuple[Version, bytes]] = []
        size = total = version.changes[id].size
        while id in version.differences:
            stored = version.differences[id]
            difference = d.parse(stored, version.changes[id].size)
            total += difference.base_size
            if len(steps) == d.MOST_STEPS:
                raise Damage("a way that is too long")
            if difference.base_size > 4 * size + (64 << 10) or total > 16 * size + (1 << 20):
                raise Damage("values on the way that are too large")
            steps.append((version, stored))
            if not d.has_content_form(difference.base) and version.changes[id].digest is None:
                raise Damage("a difference without its digest")
            bases = [base for base in by_id.get(difference.base, []) if id in base.values or id in base.differences]
            if not bases and any(id in base.hollow for base in by_id.get(difference.base, [])):
                raise Hollow()
            if not bases:
                raise Damage("a base that is not here, or damaged")
            version = bases[0]
        return [*steps, (version, b"")]

    for version in met:
        for id in list(version.differences):
            try:
                *steps, (last, _) = way(version, id)
                value = last.values[id]
                for step, stored in reversed(steps):
                    change = step.changes[id]
                    value = d.apply(stored, change.size, value)
                    if change.digest is not None and hashlib.sha256(value).digest() != change.digest:
                        raise Damage("another value than its digest says")
                version.values[id] = value
            except NewerFormat as newer:
                version.problems.append(str(newer))
                version.damaged.add(id)
            except Hollow:
                version.hollow.add(id)
            except Damage:
                version.damaged.add(id)


def _read_values(directory: Path, version: Version) -> None:
    for change in version.changes.values():
        if change.encoding == HOLLOW:
            version.hollow.add(change.id)
        elif change.kind in (INSERT, UPDATE):
            try:
                value = _read_value(directory, version, change)
                (version.differences if change.is_difference else version.values)[change.id] = value
            except Damage:
                version.damaged.add(change.id)


def _read_value(directory: Path, version: Version, change: Change) -> bytes:
    if change.encoding == BLOB:
        assert change.blob is not None
        if change.blob not in version.blobs:
            raise Damage("a blob that the header does not name")
        value = read_blob(directory / "blobs" / f"{change.blob.hex()}.blob", change.digest)
    else:
        expected, size = struct.unpack_from("<II", version.bodies, change.offset)
        stored = version.bodies[change.offset + 8 : change.offset + 8 + change.stored_size]
        covered = checksum(struct.pack("<I", size), change.id, version.id.encode(), stored)
        if size != change.stored_size | change.is_difference << 31 or covered != expected:
            raise Damage(f"the body of {change.id!r} is damaged")
        if change.is_difference:
            return stored
        value = stored
        if change.encoding == DEFLATED:
            inflater = zlib.decompressobj(-15)
            try:
                value = inflater.decompress(stored, change.size + 1)
            except zlib.error as problem:
                raise Damage(str(problem)) from None
            if not inflater.eof or inflater.unused_data:
                raise Damage(f"the body of {change.id!r} does not inflate")
    if len(value) != change.size or (change.digest is not None and hashlib.sha256(value).digest() != change.digest):
        raise Damage(f"the value of {change.id!r} is not what it should be")
    return value


def identity(version: Version) -> bytes:
    """Returns the identity digest."""

    def text(id: str) -> bytes:
        return struct.pack("<H", len(id)) + id.encode()

    hash = hashlib.sha256(b"llvs version 1\0" + text(version.id))
    hash.update(struct.pack("<B", len(version.predecessors)) + b"".join(map(text, version.predecessors)))
    hash.update(struct.pack("<d", version.timestamp) + struct.pack("<I", len(version.metadata)))
    for key, value in sorted(version.metadata.items()):
        hash.update(struct.pack("<I", len(key)) + key + struct.pack("<I", len(value)) + value)
    hash.update(struct.pack("<I", len(version.changes)))
    for id, change in sorted(version.changes.items()):
        hash.update(struct.pack("<BH", UPDATE if change.kind == INSERT else change.kind, len(id)) + id)
        if change.kind in (INSERT, UPDATE):
            hash.update(struct.pack("<Q", change.size) + (change.digest or hashlib.sha256(version.values[id]).digest()))
        elif change.kind == PRESERVE:
            assert change.version is not None
            hash.update(text(change.version))
    return hash.digest()
