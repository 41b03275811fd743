"""Tuples of JSON scalars as bytes with the same order, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Sequence, Union

from documents import json_model as j

from .folding import fold

#: A part of a key: null, false, true, a number, a string; None for an absent one.
Part = Union[j.Literal, j.Number, j.String, None]
Tuple = tuple[Part, ...]

LIMIT = 1_024
END = 0x00
CUT = 0xFF
MISSING, NULL, FALSE, TRUE, NEGATIVE, ZERO, POSITIVE, STRING = range(0x01, 0x09)
_literals = {None: NULL, False: FALSE, True: TRUE}
_bias = 10_000


class NoKey(Exception):
    """The bytes are not a key; the message has the reason."""


def escaped(data: bytes) -> bytes:
    """Returns the bytes of a string, without 00: 00 and 01 become two bytes each."""
    return data.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")


def encoded_number(value: j.Decimal) -> bytes:
    """Returns a number: its sign, its exponent, its digits in pairs."""
    if value.coefficient == 0:
        return bytes([ZERO])
    digits = str(abs(value.coefficient))
    exponent = value.exponent + len(digits) - 1
    if len(digits) % 2:
        digits += "0"
    body = (exponent + _bias).to_bytes(2, "big")
    body += bytes(int(digits[i : i + 2]) + 1 for i in range(0, len(digits), 2)) + bytes([END])
    if value.coefficient < 0:
        return bytes([NEGATIVE]) + bytes(0xFF - byte for byte in body)
    return bytes([POSITIVE]) + body


def encoded_part(part: Part, folds: bool) -> bytes:
    """Returns one part. The bytes of no part begin with those of another."""
    if part is None:
        return bytes([MISSING])
    if isinstance(part, j.Literal):
        return bytes([_literals[part.value]])
    if isinstance(part, j.Number):
        return encoded_number(part.value)
    text = fold(part.text) if folds else part.text
    return bytes([STRING]) + escaped(text.encode()) + bytes([END])


def encoded_parts(parts: Sequence[Part], folds: bool) -> bytes:
    """Returns the parts alone: what a query compares with."""
    return b"".join(encoded_part(part, folds) for part in parts)


def encoded_prefix(parts: Sequence[Part], begin: str, folds: bool) -> bytes:
    """Returns the parts, and the beginning of a string after them."""
    return encoded_parts(parts, folds) + bytes([STRING]) + escaped((fold(begin) if folds else begin).encode())


def whole(parts: Sequence[Part], folds: bool) -> bytes:
    """Returns the key before it is cut."""
    spellings = b"".join(escaped(part.text.encode()) + bytes([END]) for part in parts if isinstance(part, j.String)) if folds else b""
    return encoded_parts(parts, folds) + spellings + bytes([END])


def cut(key: bytes) -> bytes:
    """Returns the key as it is stored: at most 1,024 bytes."""
    return key if len(key) <= LIMIT else key[: LIMIT - 1] + bytes([CUT])


def encoded(parts: Sequence[Part], folds: bool) -> bytes:
    """Returns the key of a tuple."""
    return cut(whole(parts, folds))


@dataclass(frozen=True)
class Decoded:
    """The contents of a key: its parts, with strings in their spelling (None for a key that was cut), and its size in bytes."""

    parts: Optional[Tuple]
    size: int


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        if self.at == LIMIT - 1 and self.data[self.at : LIMIT] == bytes([CUT]):
            raise _Cut
        if self.at >= min(len(self.data), LIMIT):
            raise NoKey(f"the key does not end, byte {self.at}")
        self.at += 1
        return self.data[self.at - 1]

    def string(self) -> str:
        out = bytearray()
        while byte := self.byte():
            if byte == 0x01:
                second = self.byte()
                if second not in (0x01, 0x02):
                    raise NoKey(f"01 is followed by {second:02x}, byte {self.at - 1}")
                byte = second - 1
            out.append(byte)
        try:
            return out.decode()
        except UnicodeDecodeError:
            raise NoKey(f"a string is not UTF-8, before byte {self.at}") from None

    def number(self, negative: bool) -> j.Number:
        flip = 0xFF if negative else 0x00
        exponent = (((self.byte() ^ flip) << 8) | (self.byte() ^ flip)) - _bias
        if abs(exponent) > j.MAX_EXPONENT:
            raise NoKey(f"an exponent of {exponent}, before byte {self.at}")
        digits = ""
        while byte := self.byte() ^ flip:
            if byte > 100:
                raise NoKey(f"a pair of digits is {byte:02x}, byte {self.at - 1}")
            digits += f"{byte - 1:02d}"
        if not digits or digits[0] == "0" or digits.endswith("00") or len(digits) > j.MAX_DIGITS:
            raise NoKey(f"the digits are not in their one form, before byte {self.at}")
        value = j.Decimal.of(int(digits) * (-1 if negative else 1), exponent - len(digits) + 1)
        return j.Number(value.text(), value)

    def part(self) -> Part:
        tag = self.byte()
        if tag == MISSING:
            return None
        if tag in (NULL, FALSE, TRUE):
            return j.Literal({NULL: None, FALSE: False, TRUE: True}[tag])
        if tag == ZERO:
            return j.number("0")
        if tag in (NEGATIVE, POSITIVE):
            return self.number(tag == NEGATIVE)
        if tag == STRING:
            return j.String(self.string())
        raise NoKey(f"no type {tag:02x}, byte {self.at - 1}")


class _Cut(Exception):
    pass


def decode(data: bytes, count: int, folds: bool) -> Decoded:
    """Reads the key at the beginning of bytes; a value id may follow. Raises NoKey for bytes that `encoded` would not have written."""
    reader = _Reader(data)
    try:
        parts = [reader.part() for _ in range(count)]
        for i, part in enumerate(parts if folds else []):
            if isinstance(part, j.String):
                spelled = reader.string()
                if fold(spelled) != part.text:
                    raise NoKey(f"part {i} is not the folding of its spelling")
                parts[i] = j.String(spelled)
        if parts and parts[0] is None:
            raise NoKey("the first part is missing")
        if end := reader.byte():
            raise NoKey(f"{end:02x} instead of the end, byte {reader.at - 1}")
    except _Cut:
        return Decoded(None, LIMIT)
    return Decoded(tuple(parts), reader.at)


def compare(a: Sequence[Part], b: Sequence[Part], folds: bool) -> int:
    """Returns the order of tuples of one length as the page defines it, without keys."""
    for left, right in zip(a, b):
        if order := compare_parts(left, right, folds):
            return order
    if folds:
        for left, right in zip(a, b):
            if order := compare_parts(left, right, False):
                return order
    return 0


def compare_parts(a: Part, b: Part, folds: bool) -> int:
    """Returns the order of two parts. If strings are folded, two strings that fold alike are equal."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if folds and isinstance(a, j.String) and isinstance(b, j.String):
        return j.compare(j.String(fold(a.text)), j.String(fold(b.text)))
    return j.compare(a, b)
