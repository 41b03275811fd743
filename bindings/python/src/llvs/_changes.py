"""Packs changes into an array of `llvs_change`, column by column."""

from __future__ import annotations

from array import array
from typing import IO, Any, Iterable, Mapping, Union

from . import _constants as c
from . import _memory
from ._sources import gives_pieces
from ._memory import BytesLike, Column, as_bytes, encode
from .model import CHANGE_NUMBERS, Change

#: The bytes of a value, or a binary file or an iterable of bytes that gives them piece by piece.
Content = Union[BytesLike, IO[bytes], Iterable[BytesLike]]
#: Ids with bytes: a mapping, or pairs.
Entries = Union[Mapping[str, Content], Iterable[tuple[str, Content]]]

#: sizeof(llvs_change), and the same in words.
CHANGE_SIZE = 56
_WORDS = CHANGE_SIZE // 8


def _pairs(entries: Any, what: str) -> list[tuple[str, Any]]:
    if not isinstance(entries, (str, bytes)) and isinstance(entries, Iterable):
        pairs = list(entries)
        if all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
            return pairs
    raise TypeError(f"{what} takes ids with their bytes, as a mapping or as pairs ({{'note/1': b'...'}}), not {type(entries).__name__}")


class ChangeArray:
    """An array of `llvs_change`, and all that it points to."""

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
        #: Ids with what gives their bytes piece by piece.
        self.sources: list[tuple[str, Any]] = []
        for kind, entries in ((c.CHANGE_INSERT, insert), (c.CHANGE_UPDATE, update)):
            if not entries:
                continue
            if isinstance(entries, Mapping):
                new_ids, new_data = list(entries), list(entries.values())
            else:
                pairs = _pairs(entries, "insert" if kind == c.CHANGE_INSERT else "update")
                new_ids, new_data = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            try:
                new_bytes = list(map(as_bytes, new_data))
            except TypeError:
                self.sources += [pair for pair in zip(new_ids, new_data) if gives_pieces(pair[1])]
                plain = [pair for pair in zip(new_ids, new_data) if not gives_pieces(pair[1])]
                new_ids, new_bytes = [pair[0] for pair in plain], [as_bytes(pair[1], f"the value of {pair[0]!r}") for pair in plain]
            ids.extend(map(encode, new_ids))
            data.extend(new_bytes)
            kinds.extend([kind] * len(new_ids))
        if remove:
            if isinstance(remove, (str, bytes)) or not isinstance(remove, Iterable):
                raise TypeError(f"remove takes a list of ids, not {type(remove).__name__}")
            removed = [encode(id) for id in remove]
            ids.extend(removed)
            data.extend([b""] * len(removed))
            kinds.extend([c.CHANGE_REMOVE] * len(removed))
        for change in changes or ():
            if not isinstance(change, Change):
                raise TypeError(f"a change is an llvs.Change, not {type(change).__name__}")
            if change.reference is not None and change.kind == "preserve":
                stored[len(ids)] = encode(change.reference.stored_version)
            kinds.append(CHANGE_NUMBERS[change.kind])
            ids.append(encode(change.id))
            data.append(as_bytes(change.data, f"the value of {change.id!r}") if change.data is not None else b"")
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
