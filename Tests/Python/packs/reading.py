"""What a reader derives from listings and from the packs that it has read: docs/pack-format.md, section 7."""

from __future__ import annotations

from typing import Iterable, Mapping

from .names import BASE, LOG, Name, parse
from .reader import Pack
from .writer import joined

Ranges = list[tuple[bytes, int, int]]


def covered(packs: Iterable[Pack]) -> Ranges:
    """Returns the numbers that the packs cover, as ranges."""
    ranges: Ranges = []
    for pack in packs:
        replaced = [name for name in map(parse, pack.replaces) if name is not None]
        ranges += [(name.owner, name.first, name.last) for name in [pack.index.name, *replaced]]
        ranges += pack.covers
    return joined(ranges)


def done(numbers: Ranges) -> dict[bytes, int]:
    """Returns for each writer the largest n for which all of 1 to n are covered."""
    return {owner: last for owner, first, last in numbers if first == 1}


def _parsed(listing: Iterable[str], kind: int) -> dict[str, Name]:
    return {text: name for text in listing for name in [parse(text)] if name is not None and name.kind == kind}


def gap(logs: Iterable[str], until: Mapping[bytes, int]) -> bool:
    """Returns whether log/ lacks a name for some number between `until` and the largest one."""
    listed: dict[bytes, set[int]] = {}
    for name in _parsed(logs, LOG).values():
        listed.setdefault(name.owner, set()).add(name.last)
    return any(max(some) - until.get(owner, 0) > len({n for n in some if n > until.get(owner, 0)}) for owner, some in listed.items())


def unread(logs: Iterable[str], bases: Iterable[str], packs: Iterable[Pack]) -> list[str]:
    """Returns the names to read, smallest number first."""
    packs = list(packs)
    read = {str(pack.index.name) for pack in packs} | {name for pack in packs for name in pack.replaces}
    found = {**_parsed(logs, LOG), **_parsed(bases, BASE)}
    return sorted(found.keys() - read, key=lambda text: (found[text].last, text))
