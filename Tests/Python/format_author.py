"""Writes parts of a file storage's records, from docs/format.md alone. `format_reader` reads them."""

from __future__ import annotations

import struct

import format_reader as reader


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
