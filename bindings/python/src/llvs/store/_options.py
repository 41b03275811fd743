"""The options of stores and versions, in the form that the library accepts."""

from __future__ import annotations

import ctypes
import operator
import sys
from contextlib import nullcontext
from typing import Any, Optional, Union

import llvs

from .. import errors
from .._abi import metadata as _metadata
from .._abi.memory import Column, encode, path_bytes
from .._abi.sources import SourceArray
from .._generated import constants as c, structs as _structs
from ..storage import Storage
from ..words import Compaction, Durability, StorageKind

_STORAGES = {"file": c.STORAGE_FILE, "sqlite": c.STORAGE_SQLITE, "memory": c.STORAGE_MEMORY}
_DURABILITIES = {"full": c.DURABILITY_FULL, "normal": c.DURABILITY_NORMAL}
_DIFFERENCES = {"auto": c.DIFFERENCES_AUTO, "on": c.DIFFERENCES_ON, "off": c.DIFFERENCES_OFF}
_COMPACTIONS = {"automatic": c.COMPACTION_AUTOMATIC, "on_request": c.COMPACTION_ON_REQUEST, "always": c.COMPACTION_ALWAYS}


def durability_number(durability: Durability) -> int:
    """Returns the constant for "full" or "normal"."""
    if durability not in _DURABILITIES:
        raise errors.InvalidArgumentError(f"{durability!r} is no durability: use full or normal")
    return _DURABILITIES[durability]


def required(options: Any, name: str) -> None:
    """Raises TypeError for options that are not of the class `llvs.<name>`."""
    # The class is imported with its first object, and not by programs without options.
    if not isinstance(options, getattr(llvs, name)):
        raise TypeError(f"options is an llvs.{name}, not {type(options).__name__}")


class OpeningOptions:
    """An `llvs_store_options`, and everything that it points to."""

    def __init__(
        self,
        storage: Union[StorageKind, Storage] = "file",
        durability: Durability = "full",
        *,
        read_only: bool = False,
        create: bool = True,
        compaction: Compaction = "automatic",
        options: Optional[llvs.StoreOptions] = None,
    ) -> None:
        if options is not None:
            required(options, "StoreOptions")
            compaction = options.compaction
        file_mode = options.file_mode if options is not None else None
        if isinstance(storage, str) and storage not in _STORAGES:
            raise errors.InvalidArgumentError(f"{storage!r} is no storage: use file, sqlite, memory, or an llvs.storage.Storage")
        if not isinstance(storage, (str, Storage)):
            raise TypeError(f"storage is a word or an llvs.storage.Storage, not {type(storage).__name__}: leave it out for files")
        number = durability_number(durability)
        if file_mode is not None and not 0 < file_mode <= 0o777:
            raise errors.InvalidArgumentError(f"the file mode is {file_mode:#o}; give permissions such as 0o600")
        if compaction not in _COMPACTIONS:
            raise errors.InvalidArgumentError(f"{compaction!r} is no compaction: use automatic, on_request or always")
        if options is not None and options.differences not in _DIFFERENCES:
            raise errors.InvalidArgumentError(f"{options.differences!r} says nothing of differences: use auto, on or off")
        self.handle = None if isinstance(storage, str) else storage._new_handle()
        self.struct = _structs.llvs_store_options(
            struct_size=ctypes.sizeof(_structs.llvs_store_options),
            storage=_STORAGES[storage] if isinstance(storage, str) else c.STORAGE_HOST,
            durability=number,
            read_only=int(read_only),
            must_exist=int(not create),
            compaction=_COMPACTIONS[compaction],
            host_storage=self.handle._pointer if self.handle is not None else None,
            file_mode=0 if file_mode is None else file_mode,
        )
        if options is not None:
            self._add(options)

    def _add(self, options: llvs.StoreOptions) -> None:
        # ctypes would make a large number of a negative one.
        if not 0 <= operator.index(options.memory_budget) < 1 << 64:
            raise errors.InvalidArgumentError(
                f"the memory budget is {options.memory_budget} bytes; give a number of 0 or more: 0 is the default"
            )
        self.struct.memory_budget = options.memory_budget
        self.struct.differences = _DIFFERENCES[options.differences]
        # The library reads 0 as the default.
        if options.compaction_grace is not None:
            self.struct.compaction_grace = options.compaction_grace or sys.float_info.min
        if options.busy_timeout is not None:
            self.struct.busy_timeout = options.busy_timeout or sys.float_info.min
        self._cache = path_bytes(options.cache_directory) if options.cache_directory is not None else b""
        if self._cache:
            self._column = Column([self._cache])
            self.struct.cache_directory.data, self.struct.cache_directory.size = self._column.addresses[0], len(self._cache)

    def close(self) -> None:
        """Releases the handle of the storage: an open store keeps it alive."""
        if self.handle is not None:
            self.handle.close()


class VersionOptions:
    """An `llvs_version_options`, and everything that it points to: `with VersionOptions(...) as options` gives its address or None."""

    def __init__(
        self,
        id: Optional[str],
        branch: Optional[str],
        metadata: Optional[_metadata.Metadata],
        sources: list[tuple[str, Any]],
        timestamp: Optional[float] = None,
        expected: Optional[bytes] = None,
        merges: bool = False,
    ) -> None:
        if branch == "":
            raise errors.InvalidMetadataError("the name of a branch is empty; leave it out for a version without a branch")
        if id == "":
            raise errors.make(c.ERROR_INVALID_VERSION_ID, "a version id is empty; leave it out to have one made")
        pieces = Column(
            [b"" if id is None else encode(id), b"" if branch is None else encode(branch), b"" if expected is None else expected]
        )
        self._kept = (pieces, _metadata.Entries(metadata))
        self.struct = _structs.llvs_version_options(struct_size=ctypes.sizeof(_structs.llvs_version_options))
        if pieces.sizes[0]:
            self.struct.id.data, self.struct.id.size = pieces.addresses[0], pieces.sizes[0]
        if pieces.sizes[1]:
            self.struct.branch.data, self.struct.branch.size = pieces.addresses[1], pieces.sizes[1]
        if pieces.sizes[2]:
            self.struct.expected.data, self.struct.expected.size = pieces.addresses[2], pieces.sizes[2]
        self.struct.merges = merges
        self.struct.metadata, self.struct.metadata_count = self._kept[1].address, self._kept[1].count
        if timestamp is not None:
            # The library reads 0 as the default, the current time.
            self.struct.timestamp = timestamp or sys.float_info.min
        self._sources = SourceArray(sources) if sources else None

    def __enter__(self) -> Any:
        if self._sources is not None:
            self.struct.sources, self.struct.source_count, self.struct.source_size = self._sources.__enter__()
        return ctypes.byref(self.struct)

    def __exit__(self, *_: object) -> None:
        if self._sources is not None:
            self._sources.__exit__()


#: Used instead of `VersionOptions` if there are no options.
NO_OPTIONS: nullcontext[None] = nullcontext()
