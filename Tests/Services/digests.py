"""Digests of files, as services report them in each answer: computed once for the same bytes."""

from __future__ import annotations

import base64
import functools
import hashlib


@functools.lru_cache(maxsize=64)
def digest(algorithm: str, data: bytes) -> bytes:
    return hashlib.new(algorithm, data).digest()


@functools.lru_cache(maxsize=64)
def quick_xor_hash(data: bytes) -> str:
    """Returns the hash as Microsoft describes it: each byte is added without carries at a place that moves by 11 bits; then the length.

    Bytes at a distance of 160 have the same place.
    """
    folded, blocks = int.from_bytes(data, "little"), -(-len(data) // 160)
    while blocks > 1:
        # The upper half is added to the lower one.
        blocks = (blocks + 1) // 2
        bits = blocks * 160 * 8
        folded = (folded >> bits) ^ (folded & ((1 << bits) - 1))
    wide = 0
    for begin, byte in enumerate(folded.to_bytes(160, "little")):
        wide ^= _rotated(byte, begin * 11 % 160)
    found = bytearray(wide.to_bytes(20, "little"))
    for place, byte in enumerate(len(data).to_bytes(8, "little")):
        found[12 + place] ^= byte
    return base64.b64encode(bytes(found)).decode()


def _rotated(value: int, by: int) -> int:
    moved = value << by
    return (moved & ((1 << 160) - 1)) | (moved >> 160)
