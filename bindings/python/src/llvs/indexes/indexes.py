"""Finding values by their contents: indexes, which work at any version."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional

import llvs

from .. import _abi
from .._abi import callbacks as _callbacks
from .._abi.handle import Handle
from .._abi.memory import address, copy, decode, encode, version_bytes
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from ..store import _pages
from ..store._blocks import Block
from ..store.versions import AnyVersion, Value
from .keys import GivenPart, KeyFunction, KeyPart, bound_text, give_keys, key_of_parts, read_parts, tuple_text

lib = _abi.lib
byref = ctypes.byref


#: The number of versions to remember.
_MOST_MADE = 1_000


class IndexEntry(NamedTuple):
    """An entry of an index."""

    #: The parts, strings as spelled in the value. Numbers are `int` or `float`, or `Decimal` if a float would be inexact.
    key: tuple[KeyPart, ...]
    #: The id of the value.
    id: str


class IndexPage(NamedTuple):
    """Some entries, in the requested order."""

    #: The entries.
    entries: tuple[IndexEntry, ...]
    #: Where the next page begins; None if this is the last page. It stays valid at this version for ever.
    cursor: Optional[bytes]


class Explanation(NamedTuple):
    """Why a value is in an index, or is not."""

    #: Its keys, in order.
    keys: tuple[tuple[KeyPart, ...], ...]
    #: Why it has none: "prefix", "reserved", "not-json", "where", "too-many-keys", "no-first-part", "no-keys" (docs/index-keys.md), or
    #: "no-value".
    why: Optional[str]
    #: The definition in use.
    definition: dict[str, Any]
    #: The version at which the definition was found; None if it was passed as an argument.
    declared_at: Optional[str]
    #: The keys as they are compared.
    key_bytes: tuple[bytes, ...]


class Computed(NamedTuple):
    """An index whose keys a function computes."""

    keys: KeyFunction
    prefix: str
    parts: int
    version: int


def computed(keys: Optional[KeyFunction], definition: Any, prefix: str, parts: int, version: int) -> Any:
    """Returns the definition for `Index`, from the arguments of `Store.index`."""
    if keys is None:
        if prefix or parts != 1 or version:
            raise TypeError("prefix, parts and version are those of an index whose keys a function gives: give keys as well")
        return definition
    if definition is not None:
        raise TypeError("an index has a definition, or keys that a function gives, not both")
    if not callable(keys):
        raise TypeError(f"keys is a function of an id and bytes, not {type(keys).__name__}")
    if parts < 1:
        raise llvs.errors.InvalidArgumentError(f"the keys of an index have 1 to 8 parts, not {parts}")
    return Computed(keys, prefix, parts, version)


class Index(Handle):
    """An index of a store: `Store.index` and `Coordinator.index` open it.

        by_name = notes.index("contacts-by-name")
        for id in by_name.find("Smith"): ...
        by_name.find("Smith", "Ann", at=version).values()
        by_name.prefix("Sm").count()
        notes.index("due").range(low="2026-01-01", high="2026-02-01")

    A date or a time in a query means the string that models write for it. Strings are compared as they are written, so ranges of times are
    right only if all are written in one form, as a member with `Pick("max")` is.

    The result is always that of the version queried. Nothing is built before a query; the first query at a version reads the values that
    differ from the nearest version that has the index, or all with its prefix. Safe from all threads.
    """

    _release = "llvs_index_free"
    _warns = False

    def __init__(
        self,
        store: llvs.Store,
        coordinator: Optional[llvs.Coordinator],
        name: Optional[str],
        definition: Any,
        what: str,
        warm: bool = False,
    ) -> None:
        """Called by `Store.index` and `Coordinator.index`."""
        options: Any
        if isinstance(definition, Computed):
            options = _structs.llvs_computed_index_options(
                struct_size=ctypes.sizeof(_structs.llvs_computed_index_options), parts=definition.parts, callback_version=definition.version
            )
            texts = {"name": encode(name or ""), "prefix": encode(definition.prefix)}
        else:
            options = _structs.llvs_index_options(struct_size=ctypes.sizeof(_structs.llvs_index_options))
            if definition is not None and not isinstance(definition, (bytes, str)):
                definition = json.dumps(definition, ensure_ascii=False)
            texts = {"name": encode(name or ""), "definition": encode(definition) if isinstance(definition, str) else definition or b""}
        options.warm = int(bool(warm))
        for field, text in texts.items():
            if text:
                pair = getattr(options, field)
                pair.data, pair.size = address(text), len(text)
        pointer = ctypes.c_void_p()

        def open_it(handle: int) -> None:
            if isinstance(definition, Computed):
                payload = _callbacks.register(definition.keys)
                lib.llvs_computed_index_open(
                    handle, byref(options), give_keys, payload, _callbacks.payload_free, byref(pointer)
                )
            else:
                lib.llvs_index_open(handle, byref(options), byref(pointer))

        with store._call as handle:
            if coordinator is None:
                open_it(handle)
            else:
                with coordinator._call as options.coordinator:
                    open_it(handle)
        super().__init__(pointer.value or 0)
        self._calls_back = store._calls_back or isinstance(definition, Computed)
        self._store, self._coordinator, self._of = store, coordinator, what
        #: Versions at which the index was queried, and so is probably built.
        self._made: set[bytes] = set()
        #: The name under which it is defined, or of its function; None if its definition was passed as an argument.
        self.name = name

    def _what(self) -> str:
        return f"the index {self.name!r} of {self._of}" if self.name is not None else f"an index of {self._of}"

    def _detail(self) -> str:
        return repr(self.name) if self.name is not None else ""

    def _version(self, at: Optional[AnyVersion]) -> bytes:
        if at is not None:
            return version_bytes(at)
        if self._coordinator is not None:
            return encode(self._coordinator._current_id)
        head = self._store.most_recent_head
        return b"" if head is None else head._id_bytes

    def _found(self, asked: dict[str, Any], at: Optional[AnyVersion], reverse: bool, unique: bool) -> Found:
        return Found(self, self._version(at), {**asked, "reverse": int(bool(reverse)), "unique": int(bool(unique))})

    def find(self, *parts: GivenPart, at: Optional[AnyVersion] = None, reverse: bool = False, unique: bool = False) -> Found:
        """Returns the entries with these first parts; without any, all entries.

        at: the version; None: the current one (for a store, its newest head), as it is now. reverse: from the last to the first. unique: if
        a value matches with several keys, only the first one found.
        """
        return self._found({"equal": tuple_text(parts)}, at, reverse, unique)

    def prefix(self, *parts: GivenPart, at: Optional[AnyVersion] = None, reverse: bool = False, unique: bool = False) -> Found:
        """Returns the entries whose first parts are equal to the first ones given, and whose next part is a string that begins with the
        last one given, a str. As `find`."""
        if not parts or not isinstance(parts[-1], str):
            raise TypeError("prefix takes the beginning of a string as its last argument")
        asked = {"equal": tuple_text(parts[:-1]), "begin": encode(parts[-1]), "has_begin": 1}
        return self._found(asked, at, reverse, unique)

    def range(
        self,
        *parts: GivenPart,
        low: Any = (),
        high: Any = (),
        low_open: bool = False,
        high_open: bool = False,
        at: Optional[AnyVersion] = None,
        reverse: bool = False,
        unique: bool = False,
    ) -> Found:
        """Returns the entries that begin with `parts`, and whose next parts are within the bounds. As `find`.

        low, high: a part, or several as a tuple; without one, the range is open on that side. (`None` is the part null.) Both are included,
        unless low_open or high_open is True. With only one bound the range runs to the end and includes values of other types: numbers,
        then strings.
        """
        asked = {"equal": tuple_text(parts), "low": bound_text(low), "high": bound_text(high)}
        return self._found({**asked, "low_open": int(bool(low_open)), "high_open": int(bool(high_open))}, at, reverse, unique)

    def explain(self, id: str, *, at: Optional[AnyVersion] = None) -> Explanation:
        """Returns the keys under which a value is in the index, or why it is not. Raises UnknownVersionError, NotFoundError."""
        buffer = _structs.llvs_buffer()
        with self._call as pointer:
            lib.llvs_index_explain(pointer, self._version(at), encode(id), byref(buffer))
        told = read_parts(_pages.take_buffer(buffer) or b"{}")
        return Explanation(
            tuple(map(key_of_parts, told["keys"])), told["why"], told["definition"], told["from"], tuple(map(bytes.fromhex, told["bytes"]))
        )

    def _ask(
        self,
        version: bytes,
        asked: dict[str, Any],
        want: int,
        limit: int,
        after: bytes,
        read: Callable[[Any], Any],
        control: Optional[Control] = None,
    ) -> tuple[Any, bytes]:
        """Returns the result of `read` for a page, and where the next begins."""
        question = _structs.llvs_index_question(struct_size=ctypes.sizeof(_structs.llvs_index_question), want=want, limit=limit)
        for name, value in {**asked, "after": after}.items():
            if isinstance(value, int):
                setattr(question, name, value)
            elif value:
                pair = getattr(question, name)
                pair.data, pair.size = address(value), len(value)
        page = ctypes.c_void_p()
        if control is None and version not in self._made:
            # A call that may take long handles signals meanwhile.
            control = Control(None, None)
        with self._call as pointer:
            if control is None:
                lib.llvs_index_find(pointer, version, byref(question), None, byref(page))
            else:
                with control as controls:
                    lib.llvs_index_find(pointer, version, byref(question), controls, byref(page))
        if len(self._made) >= _MOST_MADE:
            self._made.clear()
        self._made.add(version)
        try:
            found = _structs.llvs_index_page.from_address(page.value or 0)
            cursor = copy(found.cursor.data, found.cursor.size) if found.cursor.size else b""
            return read(found), cursor
        finally:
            lib.llvs_index_page_free(page)


def _texts(joined: Any, sizes: int, count: int) -> Iterator[bytes]:
    data, at = copy(joined.data, joined.size), 0
    for size in (ctypes.c_uint64 * count).from_address(sizes) if count else ():
        yield data[at : at + size]
        at += size + 1


def _ids(page: Any) -> list[str]:
    return [decode(id) for id in _texts(page.ids, page.id_sizes, page.count)]


def _entries(page: Any) -> list[IndexEntry]:
    keys = [key_of_parts(read_parts(key)) for key in _texts(page.keys, page.key_sizes, page.count)]
    return list(map(IndexEntry, keys, _ids(page)))


def _values(page: Any) -> list[Value]:
    return [value for value in Block(page.values).values(_ids(page)) if value is not None]


class Found(Iterable[str]):
    """The result of a query of an index, at one version. Iterates over ids, in order of the keys; pages are fetched during iteration.

    A value with several keys occurs several times, except with `unique`. The query runs when the object is used, and again at each use; at
    one version the result is always the same.
    """

    def __init__(self, index: Index, version: bytes, asked: dict[str, Any]) -> None:
        """Called by the methods of `Index`."""
        self._index, self._version, self._asked = index, version, asked

    @property
    def version(self) -> str:
        """The version."""
        return self._version.decode()

    def _walk(
        self, want: int, read: Callable[[Any], list[Any]], progress: Optional[ProgressCallback], cancel: Optional[CancelToken]
    ) -> Iterator[Any]:
        after = b""
        while True:
            found, after = self._ask(want, 0, after, read, progress, cancel)
            yield from found
            if not after:
                return

    def _ask(
        self,
        want: int,
        limit: int,
        after: bytes,
        read: Callable[[Any], Any],
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> tuple[Any, bytes]:
        control = None if progress is None and cancel is None else Control(progress, cancel)
        return self._index._ask(self._version, self._asked, want, limit, after, read, control)

    def __iter__(self) -> Iterator[str]:
        return self.ids()

    def ids(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Iterator[str]:
        """The ids, as by iterating.

        progress, cancel: here and below, of building the index, if it does not exist at the version, and of reading values; checked in each
        page. Raises CancelledError.
        """
        return self._walk(0, _ids, progress, cancel)

    def entries(
        self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Iterator[IndexEntry]:
        """Keys and ids."""
        return self._walk(c.INDEX_KEYS, _entries, progress, cancel)

    def values(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Iterator[Value]:
        """The values."""
        return self._walk(c.INDEX_VALUES, _values, progress, cancel)

    def items(
        self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Iterator[tuple[str, bytes]]:
        """Ids and bytes."""
        return ((value.id, value.data) for value in self.values(progress=progress, cancel=cancel))

    def first(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Optional[Value]:
        """The first value, or None."""
        found, _ = self._ask(c.INDEX_VALUES, 1, b"", _values, progress, cancel)
        return found[0] if found else None

    def page(
        self,
        limit: int = 0,
        after: Optional[bytes] = None,
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> IndexPage:
        """Returns one page, of at most `limit` entries (0: 1,000), after the cursor of the previous page."""
        found, cursor = self._ask(c.INDEX_KEYS, limit, after or b"", _entries, progress, cancel)
        return IndexPage(tuple(found), cursor or None)

    def count(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> int:
        """Returns how many there are. O(log n), except with `unique` and for keys of more than 1,023 bytes.

        progress, cancel: of building the index, if it does not exist at the version. Raises CancelledError, and what `Index.find` raises.
        """
        found, _ = self._ask(c.INDEX_COUNT, 1, b"", lambda page: int(page.total), progress, cancel)
        return int(found)

    def __repr__(self) -> str:
        return f"<what {self._index._what()} found at version {self.version}>"
