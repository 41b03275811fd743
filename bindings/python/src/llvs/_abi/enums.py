"""Enumerations of the library's numbers. Their text is their name."""

from __future__ import annotations

import enum


class NamedNumber(enum.IntEnum):
    """A number that the library defines. Its text is its name in lower case."""

    def __str__(self) -> str:
        return self.name.lower()

    def __format__(self, format: str) -> str:
        # A format for numbers, such as "d" or "04x", applies to the number.
        return (int(self) if format[-1:] in tuple("bcdoxXneEfFgG%") else str(self)).__format__(format)


class NamedFlags(enum.IntFlag):
    """Flags that the library defines. Their text is their names in lower case, with "|" between them, or "none"."""

    def __str__(self) -> str:
        names = [flag.name.lower() for flag in type(self) if flag.name and flag.value and flag.value & self.value == flag.value]
        return "|".join(names) or "none"

    def __format__(self, format: str) -> str:
        return (int(self) if format[-1:] in tuple("bcdoxXneEfFgG%") else str(self)).__format__(format)
