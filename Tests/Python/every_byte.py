"""Searches files for bytes in every form in which a store, a place or a cache may have them."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Iterator

#: How many bytes are inflated from each place where a deflated stream may begin.
WINDOW = 256 << 10


def forms(data: bytes, wanted: bytes) -> Iterator[str]:
    """Yields the forms in which `data` has the wanted bytes: "raw", "base64", "inflated"."""
    if wanted in data:
        yield "raw"
    for before in range(3):
        # Only the characters that do not depend on what is before and behind.
        text = base64.b64encode(bytes(before) + wanted)
        if text[4 if before else 0 : len(text) // 4 * 4 - 4] in data:
            yield "base64"
            break
    # Blocks of raw deflate begin with the bits of a kind 1 or 2; streams of zlib with 0x78.
    for at in range(len(data)):
        if data[at] & 6 in (2, 4) or data[at] == 0x78:
            for kind in (-15, 15):
                try:
                    if wanted in zlib.decompressobj(kind).decompress(data[at : at + WINDOW], 4 * WINDOW):
                        yield "inflated"
                        return
                except zlib.error:
                    pass


def find(folder: Path, wanted: bytes) -> dict[str, list[str]]:
    """Returns the files below a folder that have the wanted bytes, by their paths from there, with the forms. Literals of a difference are
    raw or inflated bytes, too."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = {str(path.relative_to(folder)): list(forms(path.read_bytes(), wanted)) for path in files}
    return {path: how for path, how in found.items() if how}
