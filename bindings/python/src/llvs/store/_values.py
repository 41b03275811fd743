"""Reading the values of a store."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Mapping, Optional, Union, cast

import llvs

from .. import _abi, errors
from .._abi.memory import decode, encode, version_bytes
from .._generated import structs as _structs
from . import _blocks, reader
from ._fetch import Fetching, fetcher
from ._history import take_version
from .reader import ValueReader
from .state import Range, State
from .versions import AnyVersion, Reference, Value, Version

lib = _abi.lib
byref = ctypes.byref
#: Makes a named tuple without the Python code of its constructor.
_new = tuple.__new__


class ValueReading(Fetching):
    """The values of a store."""

    _fetcher = staticmethod(fetcher("llvs_store_read_value"))

    def value(self, id: str, *, at: AnyVersion) -> Optional[Value]:
        """Returns the value that prevails at a version, or None. O(log n) and its size.

        Raises UnknownVersionError, InvalidIDError, StorageError, ForgottenError if its bytes are gone.
        """
        found = self._fetch(encode(id), at._id_bytes if type(at) is Version else version_bytes(at))
        return None if found is None else _new(Value, (id, found[0], found[1]))

    def reference(self, id: str, *, at: AnyVersion) -> Optional[Reference]:
        """Returns the reference of the value that prevails, without reading it; None if there is no such value. O(log n). Errors as for
        `value`."""
        stored = _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_store_reference(pointer, encode(id), version_bytes(at), byref(stored))
        return Reference(id, stored.text.decode()) if stored.size else None

    def open_value(self, id: str, *, at: AnyVersion) -> ValueReader:
        """Opens the value that prevails at a version as a binary file that is read in parts, without reading it yet.

        Raises KeyError if there is no such value, and what `value` raises. O(log n).
        """
        return reader.required(reader.open_value(self, id, version_bytes(at)), id)

    def open_reference(self, reference: Reference) -> ValueReader:
        """Opens the bytes that a version stored for a value id as a binary file. Raises KeyError if it stored none, and what
        `value_by_reference` raises.
        """
        found = reader.required(reader.open_value(self, reference.id, encode(reference.stored_version)), reference.id)
        if found.stored_version != reference.stored_version:
            found.close()
            raise KeyError(reference.id)
        return found

    def read_range(self, id: str, offset: int, length: int, *, at: AnyVersion) -> Optional[bytes]:
        """Returns the bytes of a value from `offset` on, at most `length`, fewer only at its end; None if there is no such value.

        To read many parts of one value, use `open_value`. Raises what `value` and `ValueReader.read_range` raise.
        """
        return reader.range_of(reader.open_value(self, id, version_bytes(at)), offset, length)

    def value_size(self, id: str, *, at: AnyVersion) -> Optional[int]:
        """Returns the size of the value that prevails, without reading it; None if there is no such value. O(log n). Errors as for
        `value`."""
        return reader.size_of(reader.open_value(self, id, version_bytes(at)))

    def values(self, ids: Iterable[str], *, at: AnyVersion) -> list[Optional[Value]]:
        """Returns many values: one for each id, in order, None if it is absent. If the bytes of one are gone, its `data` raises
        ForgottenError, and not this call. Other errors as for `value`."""
        return _blocks.fetch(self, ids, version_bytes(at))

    def value_by_reference(self, reference: Reference) -> Optional[Value]:
        """Returns the bytes that a version stored for a value id; None if it did not store that id. Raises UnknownVersionError,
        InvalidIDError.
        """
        found = self.values_by_reference([reference])
        return found[0] if found else None

    def values_by_reference(self, references: Iterable[Reference]) -> list[Optional[Value]]:
        """Returns many of them, in order. Errors as for `value_by_reference`."""
        wanted = list(references)
        # A value that a version stored prevails there: one call for each version.
        places: dict[str, list[int]] = {}
        for index, reference in enumerate(wanted):
            places.setdefault(reference.stored_version, []).append(index)
        found: list[Optional[Value]] = [None] * len(wanted)
        for version, indexes in places.items():
            for index, value in zip(indexes, _blocks.fetch(self, [wanted[index].id for index in indexes], encode(version))):
                if value is not None and value.stored_version == version:
                    found[index] = value
        return found

    def at(self, version: AnyVersion) -> State:
        """Returns the values at a version, as a read-only mapping from ids to bytes. Raises UnknownVersionError."""
        id = version_bytes(version)
        with self._call as pointer:
            found = take_version(lib.llvs_store_version, pointer, id)
        if found is None:
            raise errors.UnknownVersionError(
                f"cannot read at version {decode(id)!r}: it is not in {self._what()}", version_id=decode(id)
            )
        return State(self, id, Range())

    def index(
        self,
        name: Optional[str] = None,
        *,
        definition: Union[Mapping[str, Any], str, bytes, None] = None,
        keys: Optional[llvs.indexes.KeyFunction] = None,
        prefix: str = "",
        parts: int = 1,
        version: int = 0,
    ) -> llvs.indexes.Index:
        """Opens an index: one that the store's rules define under "indexes", one that is defined here, or one whose keys a function
        computes.

            store.index("contacts-by-name").find("Smith", at=version)
            store.index(definition={"prefix": "contact/", "on": ["/lastName", "/firstName"], "text": "fold"})

            store.index(keys=lambda id, data: data.decode().split(), prefix="text/").find("word")

        definition: an object, or JSON text. Queries without a version use the newest head.
        keys: for values of any kind: computes the keys of a value from its id and bytes, any number of them, each a part or a tuple of
        `parts` of them. It must depend on these only, and return the same each time. It is called on the thread that queries, on several at
        once if several do; if it raises, so does the query, and to query the index that is being built is BusyError. The function is kept
        until the index is closed.
        prefix: the prefix of the ids of those values.
        version: with a name: the index is stored in the caches of the store under both; raise it when `keys` computes other keys than
        before.
        Raises InvalidArgumentError for an invalid definition. Nothing is built before a query.
        """
        from ..indexes.indexes import Index, computed

        return Index(cast("llvs.Store", self), None, name, computed(keys, definition, prefix, parts, version), self._what())
