"""Versions of a store as bytes that the program carries."""

from __future__ import annotations

import ctypes
import io
import os
import unicodedata
from typing import Any, IO, Iterable, Optional, Union, overload

from .. import _abi, errors
from .._abi import callbacks as _callbacks, sources as _sources
from .._abi.handle import Handle
from .._abi.memory import BytesArray, BytesLike, Column, PathLike, encode, version_bytes
from .._abi.signals import holding
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from ..exchange import transport
from ..exchange.results import ExchangeResult, Pack, take_result
from .versions import AnyVersion

lib = _abi.lib


class PackOptions:
    """An `llvs_pack_options`, and everything that it points to; `address` is None if nothing is encrypted."""

    def __init__(self, *, recipients: Iterable[str] = (), identities: Iterable[str] = (), passphrase: Optional[str] = None) -> None:
        keys = [BytesArray(map(encode, _several(texts, name))) for name, texts in (("recipients", recipients), ("identities", identities))]
        column = Column([b"" if passphrase is None else encode(unicodedata.normalize("NFC", passphrase))])
        if passphrase == "":
            raise errors.make(c.ERROR_INVALID_ARGUMENT, "the passphrase is empty; leave it out for a pack that is not encrypted")
        struct = _structs.llvs_pack_options(struct_size=ctypes.sizeof(_structs.llvs_pack_options))
        struct.recipients, struct.recipient_count = keys[0].address, keys[0].count
        struct.identities, struct.identity_count = keys[1].address, keys[1].count
        struct.passphrase.data, struct.passphrase.size = column.addresses[0] if column.sizes[0] else None, column.sizes[0]
        self._kept = (struct, keys, column)
        self.address = ctypes.byref(struct) if keys[0].count or keys[1].count or column.sizes[0] else None


def _several(texts: Iterable[str], name: str) -> Iterable[str]:
    """Returns the texts as a list. Refuses a single `str`, whose characters would be taken for the texts."""
    if isinstance(texts, str):
        raise TypeError(f"{name} is an iterable of texts, not one: [{name[:-1]}]")
    return texts


class Packing(Handle):
    """Packs the versions that another store lacks, and adds those of a pack."""

    @overload
    def pack(
        self, have: Iterable[AnyVersion] = ..., *, to: None = ..., recipients: Iterable[str] = ..., passphrase: Optional[str] = ...,
        progress: Optional[ProgressCallback] = ..., cancel: Optional[CancelToken] = ...,
    ) -> Pack: ...
    @overload
    def pack(
        self, have: Iterable[AnyVersion] = ..., *, to: Union[PathLike, transport.Writable], recipients: Iterable[str] = ...,
        passphrase: Optional[str] = ..., progress: Optional[ProgressCallback] = ..., cancel: Optional[CancelToken] = ...,
    ) -> ExchangeResult: ...
    def pack(
        self,
        have: Iterable[AnyVersion] = (),
        *,
        to: Union[None, PathLike, transport.Writable] = None,
        recipients: Iterable[str] = (),
        passphrase: Optional[str] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Union[Pack, ExchangeResult]:
        """Returns the versions that another store lacks, as bytes for its `unpack`; the program carries them there by any means.

            data = mine.pack(have=theirs.heads())
            theirs.unpack(data)

        have: versions that the other store has, with all their ancestors: its heads, or their ids. Versions that this store lacks are
        ignored.
        to: a path, at which the file appears when it is complete; or an object with `write(bytes)`. Then the result is an `ExchangeResult`,
        and memory holds one pack of at most 16 MiB. Without it the result is `bytes`, with the attribute `result`.
        recipients, passphrase: the keys that encrypt it: public keys of age (`age1...`, as `age-keygen` prints them), or a passphrase. Then
        it is a file of age, which the tool of that name opens, too. Without them it is not encrypted.

        Versions that cannot be read (damaged), or are too large, are in `problems` of the result, with their descendants.
        Raises CancelledError, InvalidIDError, InvalidArgumentError (for malformed recipients), UnsupportedError (there is no libcrypto to
        encrypt with), StorageError, and what `to` raises.
        """
        known = BytesArray(map(version_bytes, have))
        keys = PackOptions(recipients=recipients, passphrase=passphrase)
        if to is None:
            memory = io.BytesIO()
            result = self._pack(known, keys, memory, progress, cancel)
            return Pack(memory.getvalue(), result)
        if not isinstance(to, (str, bytes, os.PathLike)):
            return self._pack(known, keys, to, progress, cancel)
        import tempfile  # Takes long to import, and few programs need it.

        path = os.fsdecode(to)
        handle, aside = tempfile.mkstemp(prefix=".llvs-", suffix=".new", dir=os.path.dirname(os.path.abspath(path)))
        try:
            with os.fdopen(handle, "wb") as file:
                result = self._pack(known, keys, file, progress, cancel)
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            os.unlink(aside)
            raise
        return result

    def _pack(
        self, have: BytesArray, keys: PackOptions, file: transport.Writable, progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
    ) -> ExchangeResult:
        payload = _callbacks.register(file)
        try:
            with self._call as store, Control(progress, cancel) as control, holding:
                return take_result(
                    lib.llvs_store_write_pack, store, have.address, have.count, keys.address, transport.write_address, payload, control
                )
        finally:
            _callbacks.registry.pop(payload, None)

    def unpack(
        self,
        source: Union[BytesLike, PathLike, IO[bytes], Iterable[BytesLike]],
        *,
        identities: Iterable[str] = (),
        passphrase: Optional[str] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> ExchangeResult:
        """Adds the versions that `pack` of another store returned. Versions that the store has are skipped; those that are damaged in the
        store are repaired. Versions that cannot be added are in `problems` of the result, and hold back only their descendants.

        source: the bytes; the path of a file (`str` or `os.PathLike`); an object with `read(size)`, which is not read beyond the end of the
        pack; or an iterable of bytes.
        identities, passphrase: the keys that open it if it is encrypted: secret keys of age (`AGE-SECRET-KEY-1...`) of which one is enough,
        or its passphrase. Then it must be encrypted, and `source` is read to its end.

        If it raises, versions added before stay, and the same pack can be passed again. Raises ExchangeDataError and StorageError (`code`
        says why: not a pack, cut short, damaged, made by a newer library), EncryptionError (another identity or passphrase),
        CancelledError, and what `source` raises.
        """
        keys = PackOptions(identities=identities, passphrase=passphrase)
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb", buffering=0) as file:
                return self._unpack(file, keys, progress, cancel)
        return self._unpack(source if _sources.gives_pieces(source) else (source,), keys, progress, cancel)

    def _unpack(
        self, source: Any, keys: PackOptions, progress: Optional[ProgressCallback], cancel: Optional[CancelToken]
    ) -> ExchangeResult:
        with _sources.Source(source) as (read, payload), self._call as store, Control(progress, cancel) as control:
            return take_result(lib.llvs_store_read_pack, store, keys.address, read, payload, control)
