"""Portraits that code draws, so that the examples need no photos: a flat head and shoulders, as PNG."""

from __future__ import annotations

import struct
import zlib

SIZE = 160
Colour = tuple[int, int, int]


def portrait(ground: Colour, clothes: Colour, skin: Colour, hair: Colour, is_long: bool) -> bytes:
    """Returns a PNG of 160 x 160 pixels."""
    shade = (skin[0] * 9 // 10, skin[1] * 9 // 10, skin[2] * 9 // 10)

    def colour(x: float, y: float) -> Colour:
        """Returns the colour at a place; coordinates are from 0 to 1. The foremost part there decides."""
        def inside(cx: float, cy: float, rx: float, ry: float) -> bool:
            return ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1

        if inside(0.5, 0.28, 0.2, 0.15) and y < 0.31 + 0.5 * (x - 0.44) ** 2 and inside(0.5, 0.36, 0.185, 0.225):
            return hair
        if inside(0.5, 0.42, 0.15, 0.2):
            return skin
        if is_long and inside(0.5, 0.44, 0.22, 0.29) or inside(0.5, 0.35, 0.18, 0.2):
            return hair
        if 0.43 < x < 0.57 and 0.5 < y < 0.7 or inside(0.5, 0.7, 0.07, 0.05):
            return shade
        return clothes if inside(0.5, 1.04, 0.38, 0.36) else ground

    rows = bytearray()
    for row in range(SIZE):
        rows.append(0)
        for column in range(SIZE):
            parts = [colour((column + dx) / SIZE, (row + dy) / SIZE) for dx in (0.25, 0.75) for dy in (0.25, 0.75)]
            rows += bytes(sum(part[at] for part in parts) // 4 for at in range(3))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
