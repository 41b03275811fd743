"""Versions of a store as bytes that the program carries itself."""

from __future__ import annotations

import ctypes
import io
import os
from typing import Any, IO, Iterable, Optional, Union, overload

from . import _abi, _callbacks, _sources, transport
from ._handle import Handle
from ._memory import BytesArray, BytesLike, PathLike, version_bytes
from ._signals import holding
from .control import CancelToken, Control, ProgressCallback
from .exchange import ExchangeResult, take_result
from .versions import AnyVersion

lib = _abi.lib


class Pack(bytes):
    """Versions as bytes, made by `Store.pack`; `result` says which, and which could not be packed."""

    #: The ids of the versions in it (`sent`), and what could not be packed (`problems`).
    result: ExchangeResult

    def __new__(cls, data: bytes, result: ExchangeResult) -> Pack:
        made = super().__new__(cls, data)
        made.result = result
        return made


class Packing(Handle):
    """What one store lacks of another, in one piece."""

    @overload
    def pack(
        self, have: Iterable[AnyVersion] = ..., *, to: None = ..., progress: Optional[ProgressCallback] = ...,
        cancel: Optional[CancelToken] = ...,
    ) -> Pack: ...
    @overload
    def pack(
        self, have: Iterable[AnyVersion] = ..., *, to: Union[PathLike, transport.Writable], progress: Optional[ProgressCallback] = ...,
        cancel: Optional[CancelToken] = ...,
    ) -> ExchangeResult: ...
    def pack(
        self,
        have: Iterable[AnyVersion] = (),
        *,
        to: Union[None, PathLike, transport.Writable] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Union[Pack, ExchangeResult]:
        """The versions that another store lacks, as bytes for its `unpack`, by whatever way they go there.

            data = mine.pack(have=theirs.heads)
            theirs.unpack(data)

        have: versions that the other store has, with all their ancestors: its heads, or their ids. Those that are not here say nothing.
        to: a path, under which there is a file when all of it is written and none before; or an object with `write(bytes)`. Then the
        result is an `ExchangeResult`, and memory holds one pack of at most 16 MiB. Without it the result is `bytes`, with the attribute
        `result`.

        Versions that cannot be read (damaged), or are too large, are in `problems` of the result, with those that build on them.
        Raises CancelledError, InvalidIDError, StorageError, and what `to` raises.
        """
        known = BytesArray(map(version_bytes, have))
        if to is None:
            memory = io.BytesIO()
            result = self._pack(known, memory, progress, cancel)
            return Pack(memory.getvalue(), result)
        if not isinstance(to, (str, bytes, os.PathLike)):
            return self._pack(known, to, progress, cancel)
        import tempfile  # takes long to import, and few need it

        path = os.fsdecode(to)
        handle, aside = tempfile.mkstemp(prefix=".llvs-", suffix=".new", dir=os.path.dirname(os.path.abspath(path)))
        try:
            with os.fdopen(handle, "wb") as file:
                result = self._pack(known, file, progress, cancel)
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            os.unlink(aside)
            raise
        return result

    def _pack(
        self, have: BytesArray, file: transport.Writable, progress: Optional[ProgressCallback], cancel: Optional[CancelToken]
    ) -> ExchangeResult:
        payload = _callbacks.register(file)
        try:
            with self._call as store, Control(progress, cancel) as control, holding:
                return take_result(
                    lib.llvs_store_write_pack, store, have.address, have.count, transport.write_address, payload, control
                )
        finally:
            _callbacks.registry.pop(payload, None)

    def unpack(
        self,
        source: Union[BytesLike, PathLike, IO[bytes], Iterable[BytesLike]],
        *,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> ExchangeResult:
        """Adds the versions that `pack` of another store gave. Those that are here are passed over, and those that are damaged here are
        made whole. What cannot be added is in `problems` of the result, and holds back only what builds on it.

        source: the bytes; the path of a file (`str` or `os.PathLike`); an object with `read(size)`, of which nothing behind the end of the
        pack is read; or an iterable of bytes.

        When it raises, what was added before stays, and the same pack can be given again. Raises ExchangeDataError and StorageError (`code`
        says why: no pack, cut short, damaged, made by a newer library), CancelledError, and what `source` raises.
        """
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb", buffering=0) as file:
                return self._unpack(file, progress, cancel)
        return self._unpack(source if _sources.gives_pieces(source) else (source,), progress, cancel)

    def _unpack(self, source: Any, progress: Optional[ProgressCallback], cancel: Optional[CancelToken]) -> ExchangeResult:
        with _sources.Source(source) as (read, payload), self._call as store, Control(progress, cancel) as control:
            return take_result(lib.llvs_store_read_pack, store, read, payload, control)
