"""Reading values at the current version of a coordinator, or at another."""

from __future__ import annotations

import ctypes
from collections.abc import ItemsView, KeysView
from datetime import datetime
from typing import Any, Iterable, Iterator, Mapping, Optional, TypeVar, Union, cast, overload

import llvs

from .. import _abi
from .._abi.memory import encode, version_bytes
from .._generated import structs as _structs
from ..store import _pages, reader
from ..store.reader import ValueReader
from ..store.state import State, key_of
from ..store.versions import AnyVersion, Value, Version
from ._store import CoordinatorStore

lib = _abi.lib
byref = ctypes.byref

_Default = TypeVar("_Default")
_Model = TypeVar("_Model")


class CoordinatorValues(CoordinatorStore):
    """The values."""

    def value(self, id: str, *, at: Optional[AnyVersion] = None) -> Optional[Value]:
        """Returns the value that prevails at the current version, or at another. As `Store.value`."""
        if at is not None:
            return self.store.value(id, at=at)
        data, stored = _structs.llvs_buffer(), _structs.llvs_version_id()
        with self._call as pointer:
            lib.llvs_coordinator_value(pointer, encode(id), byref(data), byref(stored))
        found = _pages.take_buffer(data)
        return None if found is None else Value(id, found, stored.text.decode())

    def open_value(self, id: str, *, at: Optional[AnyVersion] = None) -> ValueReader:
        """Opens the value that prevails at the current version, or at another, as a binary file that is read in parts. As
        `Store.open_value`."""
        return reader.required(self._open_value(id, at), id)

    def read_range(self, id: str, offset: int, length: int, *, at: Optional[AnyVersion] = None) -> Optional[bytes]:
        """Returns a part of a value. As `Store.read_range`."""
        return reader.range_of(self._open_value(id, at), offset, length)

    def value_size(self, id: str, *, at: Optional[AnyVersion] = None) -> Optional[int]:
        """Returns the size of a value in bytes, without reading it. As `Store.value_size`."""
        return reader.size_of(self._open_value(id, at))

    def _open_value(self, id: str, at: Optional[AnyVersion]) -> Optional[ValueReader]:
        return reader.open_value(self.store, id, version_bytes(self._current_id if at is None else at))

    def values(self, ids: Iterable[str], *, at: Optional[AnyVersion] = None) -> list[Optional[Value]]:
        """Returns many values at once. As `Store.values`."""
        return self.store.values(ids, at=self._current_id if at is None else at)

    def at(self, version: Optional[AnyVersion] = None) -> State:
        """Returns the values at the version that is current now, or at another, as a read-only mapping from ids to bytes."""
        return self.store.at(self._current_id if version is None else version)

    # The values at the current version

    def __getitem__(self, id: str) -> bytes:
        found = None if key_of(id) is None else self.value(id)
        if found is None:
            raise KeyError(id)
        return found.data

    def __contains__(self, id: object) -> bool:
        return id in self.at()

    def __iter__(self) -> Iterator[str]:
        return iter(self.at())

    def __len__(self) -> int:
        return len(self.at())

    def __bool__(self) -> bool:
        return True

    @overload
    def get(self, id: str, /) -> Optional[bytes]: ...

    @overload
    def get(self, id: str, /, default: Union[bytes, _Default]) -> Union[bytes, _Default]: ...

    def get(self, id: str, /, default: Any = None) -> Any:
        """Returns the bytes with an id at the current version, or the default."""
        return self.at().get(id, default)

    def keys(self) -> KeysView[str]:
        """Returns the ids at the current version, in byte order."""
        return self.at().keys()

    def items(self) -> ItemsView[str, bytes]:
        """Returns the ids and bytes at the current version, fetched in pages."""
        return self.at().items()

    def prefix(self, prefix: str) -> State:
        """Returns the values at the current version whose ids begin with `prefix`."""
        return self.at().prefix(prefix)

    def range(self, start: str = "", stop: Optional[str] = None, *, reverse: bool = False) -> State:
        """Returns the values at the current version with ids from `start` up to, but not including, `stop` (None: to the last), by bytes.

        reverse: from the last id to the first.
        """
        return self.at().range(start, stop, reverse=reverse)

    def index(
        self,
        name: Optional[str] = None,
        *,
        definition: Union[Mapping[str, Any], str, bytes, None] = None,
        keys: Optional[llvs.indexes.KeyFunction] = None,
        prefix: str = "",
        parts: int = 1,
        version: int = 0,
        warm: bool = False,
    ) -> llvs.indexes.Index:
        """Opens an index, as `Store.index`. Queries without a version use the current one.

        warm: whether a thread of the library builds it at each new current version, as long as it is open; `keys` is then called there as
        well.
        """
        from ..indexes.indexes import Index, computed

        found = computed(keys, definition, prefix, parts, version)
        return Index(self.store, cast(llvs.Coordinator, self), name, found, self._what(), warm)

    def collection(self, model: type[_Model]) -> llvs.models.Collection[_Model]:
        """The objects of a model, as a mutable mapping from ids to objects; a class becomes a model by `llvs.models.model`.

        The model's rules for merging are added to those of the store as by `register_schema`, unless the store is opened read-only. If they
        contradict the store's, the store's win: `SchemaWarning`, and `Collection.contradictions`.
        Raises TypeError for a class that is not a model, StorageError.
        """
        from ..models.collection import Collection

        return Collection(cast(llvs.Coordinator, self), model)

    def version_at(self, time: Union[datetime, float]) -> Optional[Version]:
        """Returns the version that was current at a time, among the current one and its ancestors. As `Store.version_at`."""
        return self.store.version_at(time, self._current_id)
