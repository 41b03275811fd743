"""Parts of all readers of packs: limits, errors, a cursor."""

from __future__ import annotations

import format_reader as engine

from .names import BASE, BLOB, LOG, ROOT

VERSION, SEEN, REPLACES, MEMBER, NOTICE, COVERS = 1, 2, 3, 4, 5, 6
HEADER, TRAILER = 64, 160
MAGIC, END = b"LLVSPK1\n", b"LLVSEND\n"
MIB = 1 << 20
FILE_LIMIT = {LOG: 64 * MIB, BASE: 64 * MIB, BLOB: 9 * MIB, ROOT: 65536}
RAW_LIMIT, BLOCK_LIMIT, RECORD_LIMIT, INDEX_LIMIT = 1024 * MIB, 256 * 1024, 4 * MIB, 8 * MIB
BLOCKS_LIMIT, VERSIONS_LIMIT, SERVICE_LIMIT, ENTRIES_LIMIT = 65_536, 200_000, 16, 4_096
PARTS_LIMIT, PART_SIZE = {VERSION: 512, 0: 128}, 8 * MIB


class NotThere(Exception):
    """The file may not have arrived yet: it is cut short, or its bytes are not those of its name."""


class Damaged(Exception):
    """The file matches its name, and breaks a rule."""


class Newer(Exception):
    """A newer library wrote it."""


class TooLarge(Exception):
    """A size or count above a limit."""


class OtherStore(Exception):
    """The store id matches no root."""


class Cursor(engine.Cursor):
    """The engine's cursor, but it requires the shortest form of varints."""

    def varint(self) -> int:
        """Reads one integer."""
        before = self.at
        value = super().varint()
        if self.at - before != max(1, (value.bit_length() + 6) // 7):
            raise Damaged("a varint that is not the shortest")
        return value

    def entries(self, size: int, limit: int) -> int:
        """Reads a count of entries. Each entry has at least this many bytes, which bounds the count."""
        count = self.varint()
        if count > limit:
            raise TooLarge(f"{count} entries")
        if count * size > self.left:
            raise Damaged(f"{count} entries do not fit")
        return count


def in_order(items: list[bytes]) -> None:
    """Refuses entries that are not sorted, or that have a duplicate."""
    if any(one >= two for one, two in zip(items, items[1:])):
        raise Damaged("out of order")
