"""Pictures that code draws: a range of hills under a sky, as PNG. The same numbers give the same bytes on every machine."""

from __future__ import annotations

import struct
import zlib

WIDTH, HEIGHT = 64, 48


def hills(number: int, *, is_evening: bool = False) -> bytes:
    """Returns a PNG of 64 x 48 pixels. The number selects the hills; `is_evening` selects the colours."""
    high, low = ((250, 190, 120), (120, 80, 140)) if is_evening else ((120, 180, 230), (220, 235, 245))
    rows = []
    edges = [[_edge(number * 7 + layer, column, 16 + layer * 10) for column in range(WIDTH)] for layer in range(3)]
    for y in range(HEIGHT):
        row = bytearray([0])
        for x in range(WIDTH):
            layer = sum(1 for edge in edges if y >= edge[x])
            if layer == 0:
                row += bytes((top * (HEIGHT - y) + bottom * y) // HEIGHT for top, bottom in zip(high, low))
            else:
                shade = (150 if is_evening else 190) - layer * 40
                row += bytes((shade // 2, shade, shade * 2 // 3) if not is_evening else (shade, shade // 2, shade * 2 // 3))
        rows.append(bytes(row))
    return _png(b"".join(rows))


def _edge(seed: int, column: int, base: int) -> int:
    """Returns the height of a range of hills at a column: a few triangles in integers, since sines differ between machines."""
    height = base
    for part, (length, rise) in enumerate(((23, 7), (11, 4), (5, 1))):
        phase = (column + seed * (part + 3) * 5) % length
        height += abs(2 * phase - length) * rise // length - rise // 2
    return height


def _png(rows: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", _stored(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _stored(data: bytes) -> bytes:
    """Returns a zlib stream without compression. The output of compressors differs, and ids are computed from the bytes."""
    blocks = b""
    for start in range(0, len(data), 65535):
        part = data[start : start + 65535]
        is_last = start + 65535 >= len(data)
        blocks += struct.pack("<BHH", int(is_last), len(part), 0xFFFF ^ len(part)) + part
    return b"\x78\x01" + blocks + struct.pack(">I", zlib.adler32(data))
