"""The names of files in the packed layout: docs/pack-format.md, section 1."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple, Optional

LOG, BASE, BLOB, ROOT = 1, 2, 3, 4

_PATTERNS = {
    LOG: re.compile(r"pack1/log/([a-z2-7]{13})-([a-z2-7]{7})-([a-z2-7]{26})", re.ASCII),
    BASE: re.compile(r"pack1/base/([a-z2-7]{13})-([a-z2-7]{7})-([a-z2-7]{7})-([a-z2-7]{26})", re.ASCII),
    BLOB: re.compile(r"pack1/blob/([a-z2-7]{26})-([a-z2-7]{4})-([a-z2-7]{26})", re.ASCII),
    ROOT: re.compile(r"pack1/root-([a-z2-7]{26})", re.ASCII),
}


class Name(NamedTuple):
    """The fields in the name of a file."""

    kind: int
    #: The writer of a log or base pack, the digest of a blob, empty for a root.
    owner: bytes
    #: `first` and `last` of a base pack; for a log pack its number, and for a blob its part, both twice.
    first: int
    last: int
    id: bytes

    def __str__(self) -> str:
        owner = encode(self.owner)
        if self.kind == LOG:
            fields = [owner, _number(self.last, 4)]
        elif self.kind == BASE:
            fields = [owner, _number(self.first, 4), _number(self.last, 4)]
        else:
            fields = [owner, _number(self.last, 2)] if self.kind == BLOB else []
        place = {LOG: "pack1/log/", BASE: "pack1/base/", BLOB: "pack1/blob/", ROOT: "pack1/root-"}[self.kind]
        return place + "-".join([*fields, encode(self.id)])


def encode(data: bytes) -> str:
    """Encodes a field of a name."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def _number(number: int, size: int) -> str:
    return encode(number.to_bytes(size, "big"))


def decode(field: str) -> Optional[bytes]:
    """Returns the bytes of a field; None if bits are left over that are not zero."""
    data = base64.b32decode(field.upper() + "=" * (-len(field) % 8))
    return data if encode(data) == field else None


def parse(name: str) -> Optional[Name]:
    """Returns the fields of a name; None if it is not a name of the layout."""
    for kind, pattern in _PATTERNS.items():
        match = pattern.fullmatch(name)
        if match is None:
            continue
        fields = []
        for text in match.groups():
            try:
                data = decode(text)
            except ValueError:
                return None
            if data is None:
                return None
            fields.append(data)
        numbers = [int.from_bytes(data, "big") for data in fields[1:-1]]
        if kind == ROOT:
            return Name(kind, b"", 0, 0, fields[-1])
        if kind != BLOB and (numbers[0] == 0 or numbers[0] > numbers[-1] or not any(fields[0])):
            return None
        return Name(kind, fields[0], numbers[0], numbers[-1], fields[-1])
    return None
