"""Packs changes into an array of `llvs_change`, column by column."""

from __future__ import annotations

from array import array
from operator import itemgetter
from typing import IO, Any, Iterable, Mapping, Union, cast

from .. import errors
from .._abi import memory as _memory
from .._abi.memory import BytesLike, Column, as_bytes, encode
from .._abi.sources import gives_pieces
from .._generated import constants as c
from .versions import CHANGE_NUMBERS, Change

#: The content of a value: its bytes, or a binary file or an iterable of bytes from which they are read piece by piece.
Content = Union[BytesLike, IO[bytes], Iterable[BytesLike]]
#: Ids with content: a mapping, or pairs.
Entries = Union[Mapping[str, Content], Iterable[tuple[str, Content]]]

#: sizeof(llvs_change) in bytes, and in words.
CHANGE_SIZE = 56
_WORDS = CHANGE_SIZE // 8

_first, _second = itemgetter(0), itemgetter(1)


def taken(entries: Any) -> list[tuple[Any, Any]]:
    """Returns the current pairs of a mapping, each read once: other threads may change the mapping meanwhile."""
    # Copying a dict is atomic.
    return list((entries.copy() if type(entries) is dict else entries).items())


def _pairs(entries: Any, what: str) -> list[tuple[str, Any]]:
    if isinstance(entries, Mapping):
        return taken(entries)
    if not isinstance(entries, (str, bytes)) and isinstance(entries, Iterable):
        pairs = [tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in entries]
        if all(len(pair) == 2 for pair in pairs):
            return cast("list[tuple[str, Any]]", pairs)
    raise TypeError(f"{what} takes ids with their bytes, as a mapping or as pairs ({{'note/1': b'...'}}), not {type(entries).__name__}")


class ChangeArray:
    """An array of `llvs_change`, and everything that it points to."""

    __slots__ = ("address", "count", "sources", "_kept")

    def __init__(
        self,
        insert: Entries | None = None,
        update: Entries | None = None,
        remove: Iterable[str] | None = None,
        changes: Iterable[Change] | None = None,
    ) -> None:
        kinds: list[int] = []
        ids: list[bytes] = []
        data: list[bytes] = []
        stored: dict[int, bytes] = {}
        #: Ids of values whose bytes come piece by piece, with their sources.
        self.sources: list[tuple[str, Any]] = []
        for kind, entries in ((c.CHANGE_INSERT, insert), (c.CHANGE_UPDATE, update)):
            if entries is None:
                continue
            pairs = _pairs(entries, "insert" if kind == c.CHANGE_INSERT else "update")
            if set(map(type, map(_second, pairs))) - {bytes}:
                pairs = [pair for pair in map(self._taken, pairs) if pair is not None]
            ids.extend(map(encode, map(_first, pairs)))
            data.extend(map(_second, pairs))
            kinds.extend([kind] * len(pairs))
        if remove is not None:
            if isinstance(remove, (str, bytes)) or not isinstance(remove, Iterable):
                raise TypeError(f"remove takes a list of ids, not {type(remove).__name__}")
            removed = [encode(id) for id in remove]
            ids.extend(removed)
            data.extend([b""] * len(removed))
            kinds.extend([c.CHANGE_REMOVE] * len(removed))
        for change in () if changes is None else changes:
            if not isinstance(change, Change):
                raise TypeError(f"a change is an llvs.Change, not {type(change).__name__}")
            parts: tuple[Any, ...] = tuple(change)
            what, id, value, reference = parts
            if what not in CHANGE_NUMBERS:
                raise errors.InvalidArgumentError(f"{what!r} is no kind of change: use those of llvs.store.ChangeKind")
            number = CHANGE_NUMBERS[what]
            if reference is not None and number == c.CHANGE_PRESERVE:
                stored[len(ids)] = encode(reference.stored_version)
            kinds.append(number)
            ids.append(encode(id))
            data.append(as_bytes(value, f"the value of {id!r}") if value is not None else b"")
        self.count = len(ids)
        self.address: int | None = None
        self._kept: Any = None
        if not self.count:
            return
        id_column, data_column = Column(ids), Column(data)
        words = array("Q", bytes(CHANGE_SIZE * self.count))
        words[0::_WORDS] = array("Q", kinds)
        words[1::_WORDS] = id_column.addresses
        words[2::_WORDS] = id_column.sizes
        words[3::_WORDS] = data_column.addresses
        words[4::_WORDS] = data_column.sizes
        for index, version in stored.items():
            words[index * _WORDS + 5] = _memory.address(version)
            words[index * _WORDS + 6] = len(version)
        self.address = words.buffer_info()[0]
        self._kept = (words, id_column, data_column, stored)

    def _taken(self, pair: tuple[str, Any]) -> tuple[str, bytes] | None:
        """Returns an id with its bytes; None instead of bytes that come piece by piece."""
        id, value = pair
        if gives_pieces(value):
            self.sources.append(pair)
            return None
        return id, as_bytes(value, f"the value of {id!r}")
