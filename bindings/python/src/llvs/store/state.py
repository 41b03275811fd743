"""The values that prevail at a version, as a mapping."""

from __future__ import annotations

import ctypes
from collections.abc import ItemsView, KeysView, ValuesView
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, TypeVar, overload

import llvs

from .. import _abi
from .._abi.memory import address, encode
from .._generated import structs as _structs
from .._generated.constants import VALUE_ID_SIZE_MAX
from ._blocks import Block
from .versions import Reference, Value

if TYPE_CHECKING:
    import llvs.store._values

lib = _abi.lib
_Default = TypeVar("_Default")
_Part = TypeVar("_Part")


def key_of(id: object) -> bytes | None:
    """Returns the bytes of a value id; None for an object that cannot be an id, and so has no value."""
    if not isinstance(id, str):
        return None
    try:
        key = str.encode(id)
    except UnicodeEncodeError:
        return None
    return key if 0 < len(key) <= VALUE_ID_SIZE_MAX else None


class Range:
    """A range of ids: those that satisfy all conditions given. Compared by bytes."""

    __slots__ = ("prefix", "start", "stop", "_nothing")

    def __init__(self, prefix: bytes = b"", start: bytes = b"", stop: bytes | None = None, nothing: bool = False) -> None:
        self.prefix, self.start, self.stop = prefix, start, stop
        # For the library an empty `to` means "to the last", so a range that ends before the first id needs a flag.
        self._nothing = nothing or stop == b""

    def with_prefix(self, prefix: bytes) -> Range:
        """Returns the part of the range whose ids begin with the prefix."""
        if self.prefix.startswith(prefix):
            return self
        return Range(prefix, self.start, self.stop, self._nothing or not prefix.startswith(self.prefix))

    def within(self, start: bytes, stop: bytes | None) -> Range:
        """Returns the part of the range from `start` on and before `stop`."""
        last = stop if self.stop is None else self.stop if stop is None else min(stop, self.stop)
        return Range(self.prefix, max(start, self.start), last, self._nothing)

    def __contains__(self, id: bytes) -> bool:
        return not self._nothing and id.startswith(self.prefix) and id >= self.start and (self.stop is None or id < self.stop)

    def struct(self, last: bytes = b"", without_data: bool = True, reverse: bool = False) -> Any | None:
        """Returns the `llvs_range` of ids after `last`, and the objects that keep its bytes alive; None if it is empty."""
        if self._nothing:
            return None
        made = _structs.llvs_range(struct_size=ctypes.sizeof(_structs.llvs_range), without_data=int(without_data), reverse=int(reverse))
        behind = "before" if reverse else "after"
        for name, data in (("prefix", self.prefix), ("from", self.start), ("to", self.stop or b""), (behind, last)):
            if data:
                field = getattr(made, name)
                field.data, field.size = address(data), len(data)
        made._kept = (self.prefix, self.start, self.stop, last)
        return made


class State(Mapping[str, bytes]):
    """A read-only mapping from value ids to bytes: the values at a version, or those in a range of ids.

    Iterates in byte order of the ids (that is not the order of Python's strings beyond U+FFFF); `reversed` iterates in the other direction,
    also over `keys()`, `items()` and `values()`. A version never changes, so neither does this. Lookup is O(log n); iteration fetches pages
    of a thousand, and `items()` and `values()` include the bytes.
    """

    __slots__ = ("_is_reverse", "_is_whole", "_range", "_store", "_version_id", "__weakref__")

    def __init__(self, store: llvs.store._values.ValueReading, version_id: bytes | None, range: Range, reverse: bool = False) -> None:
        self._store = store
        self._version_id = version_id  # None: the state of a version that is not stored, which is empty
        self._range = range
        self._is_reverse = reverse
        self._is_whole = not range.prefix and not range.start and range.stop is None

    @property
    def version(self) -> str:
        """The id of the version."""
        return (self._version_id or b"").decode()

    def prefix(self, prefix: str) -> State:
        """Returns the part whose ids begin with `prefix`."""
        return State(self._store, self._version_id, self._range.with_prefix(encode(prefix)), self._is_reverse)

    def range(self, start: str = "", stop: str | None = None, *, reverse: bool = False) -> State:
        """Returns the part whose ids are from `start` up to, but not including, `stop` (None: to the last), by bytes.

        reverse: iterates in the other direction: from the last id, if this one begins with the first.
        """
        part = self._range.within(encode(start), None if stop is None else encode(stop))
        return State(self._store, self._version_id, part, self._is_reverse != reverse)

    def value(self, id: str) -> Value | None:
        """Returns the value with an id, or None. Raises InvalidIDError for an invalid id; the methods of a mapping find nothing then."""
        if isinstance(id, str) and key_of(id) is None and self._version_id is not None:
            self._store._fetch(encode(id), self._version_id)
        found = self._fetch(id)
        return None if found is None else Value(id, *found)

    def __getitem__(self, id: str) -> bytes:
        found = self._fetch(id)
        if found is None:
            raise KeyError(id)
        return found[0]

    def _fetch(self, id: object) -> tuple[bytes, str] | None:
        key = key_of(id)
        if key is None or self._version_id is None or (not self._is_whole and key not in self._range):
            return None
        return self._store._fetch(key, self._version_id)

    # Mapping's own `get` would treat an UnknownVersionError, which is a KeyError, as an absent value.
    @overload
    def get(self, id: str, /) -> bytes | None: ...

    @overload
    def get(self, id: str, /, default: bytes | _Default) -> bytes | _Default: ...

    def get(self, id: str, /, default: Any = None) -> Any:
        """Returns the bytes with an id, or the default."""
        found = self._fetch(id)
        return default if found is None else found[0]

    def __contains__(self, id: object) -> bool:
        key = key_of(id)
        if key is None or self._version_id is None or key not in self._range:
            return False
        return self._store.reference(key.decode(), at=self.version) is not None

    def __len__(self) -> int:
        made = self._range.struct()
        if made is None or self._version_id is None:
            return 0
        count = ctypes.c_uint64()
        with self._store._call as pointer:
            lib.llvs_store_count(pointer, self._version_id, ctypes.byref(made), ctypes.byref(count))
        return count.value

    def _walk(self, read: Callable[[Block], list[_Part]], without_data: bool = False, turned: bool = False) -> Iterator[_Part]:
        last = b""
        while True:
            made = self._range.struct(last, without_data, self._is_reverse != turned)
            if made is None or self._version_id is None:
                return
            page = ctypes.c_void_p()
            with self._store._call as pointer:
                lib.llvs_store_enumerate_block(pointer, self._version_id, ctypes.byref(made), ctypes.byref(page))
            if not page.value:
                return
            with Block(page.value) as block:
                last = block.last_id()
                found = read(block)
            yield from found

    def __iter__(self) -> Iterator[str]:
        return self._walk(Block.ids, without_data=True)

    def __reversed__(self) -> Iterator[str]:
        return self._walk(Block.ids, without_data=True, turned=True)

    def references(self) -> Iterator[Reference]:
        """Iterates over references to the bytes that prevail, in byte order of the ids, without reading them."""
        return self._walk(Block.references, without_data=True)

    def keys(self) -> KeysView[str]:
        """The ids."""
        return _Keys(self)

    def items(self) -> ItemsView[str, bytes]:
        """Ids and bytes, fetched by the page. Iterating raises ForgottenError if the bytes of a value are gone."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """The bytes, fetched by the page. Iterating raises ForgottenError if the bytes of a value are gone."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        if (
            isinstance(other, State)
            and other._store is self._store
            and other._version_id == self._version_id
            and other._range is self._range
        ):
            return True
        return dict(self.items()) == dict(other.items()) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<the {len(self)} values at version {self.version}>"
            if not self._store.closed
            else f"<values at version {self.version}, closed>"
        )


class _Keys(KeysView[str]):
    def __reversed__(self) -> Iterator[str]:
        state: State = self._mapping  # type: ignore[attr-defined]
        return reversed(state)


class _Items(ItemsView[str, bytes]):
    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        state: State = self._mapping  # type: ignore[attr-defined]
        return state._walk(Block.items)

    def __reversed__(self) -> Iterator[tuple[str, bytes]]:
        state: State = self._mapping  # type: ignore[attr-defined]
        return state._walk(Block.items, turned=True)


class _Values(ValuesView[bytes]):
    def __iter__(self) -> Iterator[bytes]:
        state: State = self._mapping  # type: ignore[attr-defined]
        return state._walk(Block.data)

    def __reversed__(self) -> Iterator[bytes]:
        state: State = self._mapping  # type: ignore[attr-defined]
        return state._walk(Block.data, turned=True)
