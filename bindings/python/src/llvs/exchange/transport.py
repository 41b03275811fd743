"""Transports written in Python: exchange versions through a place of your own.

    class ThroughMyServer(llvs.exchange.Transport):
        def list(self): ...
        def fetch_versions(self, names): ...
        def fetch_changes(self, names): ...
        def send(self, files): ...

    with llvs.Exchange(store, ThroughMyServer()) as exchange:
        exchange.retrieve()
"""

from __future__ import annotations

import ctypes
import os
from abc import abstractmethod
from typing import IO, Any, Callable, Iterable, NamedTuple, Optional, Protocol, Sequence, Union
from weakref import WeakSet

from .. import _abi, errors
from .._abi import callbacks as _callbacks, sources as _sources
from .._abi.handle import Handle
from .._abi.memory import BytesLike, as_bytes, copy, decode, encode_name, path_bytes
from .._abi.signals import holding
from .._generated import structs as _structs
from ..storage import _data, _name
from ..store import _pages
from ._carrier import Carrier
from .remote import Remote

lib = _abi.lib

_URL_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def url_of(place: Union[str, os.PathLike[str], os.PathLike[bytes]]) -> str:
    """The URL of a place: a `str` that begins with a scheme is one; everything else is the path of a folder."""
    if isinstance(place, str):
        if not place:
            raise errors.InvalidArgumentError("the place of an exchange is empty: give the path of a folder, or a URL")
        scheme, colon, _ = place.partition(":")
        # A scheme of one letter would be a drive of other systems.
        if colon and len(scheme) > 1 and scheme.isascii() and scheme[0].isalpha() and scheme.translate(_IN_SCHEMES).isalnum():
            return place
    elif not isinstance(place, os.PathLike):
        raise TypeError(
            "the place of an exchange is the path of a folder, a URL, an llvs.Remote, an llvs.exchange.Transport or "
            f"llvs.exchange.RemoteFiles, not {type(place).__name__}"
        )
    path = path_bytes(os.path.abspath(os.fsdecode(place)))
    return "file://" + "".join(chr(byte) if byte in _URL_BYTES else f"%{byte:02X}" for byte in path)


_IN_SCHEMES = str.maketrans("+-.", "aaa")


class VersionFiles(NamedTuple):
    """The two files of one version, to publish."""

    #: The version id.
    name: str
    #: The file `versions/<name>`.
    version: bytes
    #: The file `changes/<name>`.
    changes: bytes


#: A file: its bytes, or for large ones a binary file (which is closed after it has been read) or an iterable of bytes.
FileContent = Union[BytesLike, IO[bytes], Iterable[BytesLike]]


class Writable(Protocol):
    """An object to which bytes are written."""

    def write(self, data: bytes, /) -> Any:
        """Writes all of the bytes."""


class OutgoingFile:
    """A large file to publish, made piece by piece; valid during the call to which it is passed."""

    def __init__(self, pointer: int) -> None:
        self._pointer: Optional[int] = pointer
        #: Bytes in all.
        self.size: int = lib.llvs_outgoing_size(pointer)

    def write_to(self, file: Writable) -> None:
        """Calls `file.write` with each piece, in order; a second call begins again from the start. Raises what `file.write` raises, and
        StorageError.
        """
        if self._pointer is None:
            raise ValueError("a file to be published is good during the call of send_large only")
        payload = _callbacks.register(file)
        try:
            with holding:
                lib.llvs_outgoing_write(self._pointer, write_address, payload)
        finally:
            _callbacks.registry.pop(payload, None)


class Transport(Carrier):
    """Moves version files to and from a place that other devices reach. It moves bytes and need not interpret them.

    One method is called at a time, from any thread; a method may use the library, but not the exchange that uses the transport. If it
    raises, the exchange's call ends with the same exception. A missing file is not an error. One transport serves one exchange at a time.
    """

    @abstractmethod
    def list(self) -> Iterable[str]:
        """Returns the names of all version files on the other side, in any order; foreign names may be among them."""

    @abstractmethod
    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        """Returns for each name its version file, or None if it is missing."""

    @abstractmethod
    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[FileContent]]:
        """Returns for each name its changes file, or None if it is missing. Large ones need not be in memory: return an open file, or an
        iterable.
        """

    @abstractmethod
    def send(self, files: Sequence[VersionFiles]) -> None:
        """Publishes files in order, the changes file of a version before its version file, each whole or not at all; existing ones are
        replaced."""

    def send_large(self, name: str, version: bytes, changes: OutgoingFile) -> None:
        """Publishes the two files of one version whose changes file has more than 1 MiB. Optional: else `send` gets it, in memory as a
        whole.
        """
        raise NotImplementedError

    def unusable(self, names: Sequence[str]) -> Iterable[str]:
        """Returns those of the names for which the transport knows, without fetching, that one of the two files is missing, empty or cut
        short.

        Optional: for places where a file may exist in part. `Exchange.send` calls it once, for up to 1000 of the versions that are listed
        and in the store, and writes these again. Other names are ignored. Without it `Exchange.verify` finds such files.
        """
        raise NotImplementedError

    def snapshot_list(self) -> Iterable[str]:
        """Returns the names of all snapshot files. Snapshots are optional: override all four of these methods, or none."""
        raise NotImplementedError

    def snapshot_read(self, name: str) -> Optional[bytes]:
        """A file, or None."""
        raise NotImplementedError

    def snapshot_write(self, name: str, data: bytes) -> None:
        """Publishes a file, whole or not at all. Names are like "manifest.json", also with one folder in front."""
        raise NotImplementedError

    def snapshot_delete(self, name: str) -> None:
        """Removes a file; no effect if there is none."""
        raise NotImplementedError

    def _new_handle(self) -> TransportHandle:
        return TransportHandle(self)

    def _handles(self) -> WeakSet[TransportHandle]:
        handles: WeakSet[TransportHandle] = self.__dict__.setdefault("_llvs_handles", WeakSet())
        return handles

    def notify(self) -> None:
        """Reports to the observers of the exchange that the other side may have gained versions. Any thread; no effect without observers.
        """
        for handle in tuple(self._handles()):
            if not handle.closed:
                with handle._call as pointer:
                    lib.llvs_transport_notify(pointer)

    def get_state(self) -> bytes:
        """Returns the state of `set_state`, also of an earlier process if the host restored it; empty if there is none. O(size)."""
        for handle in tuple(self._handles()):
            if not handle.closed:
                with handle._call as pointer:
                    return take_buffer(lib.llvs_transport_state, pointer) or b""
        return b""

    def set_state(self, state: bytes) -> None:
        """Sets the state that the transport needs in a later process. The program stores it with `Exchange.restoration_state`; a
        coordinator stores it automatically.
        """
        for handle in tuple(self._handles()):
            if not handle.closed:
                with handle._call as pointer:
                    lib.llvs_transport_set_state(pointer, as_bytes(state))


#: The place of an exchange: the path of a folder, a URL, a place on a server, a transport, or files. `url_of` says which strings are URLs.
Place = Union[str, os.PathLike[str], os.PathLike[bytes], Remote, Carrier]


def place_of(place: Place) -> Union[str, Remote, Carrier]:
    """Returns the same place, with a URL instead of a path."""
    return place if isinstance(place, (Remote, Carrier)) else url_of(place)


def carrier_of(place: Union[str, Remote, Carrier]) -> Optional[Carrier]:
    """Returns the Python object behind it."""
    if isinstance(place, Remote):
        return place.files
    return place if isinstance(place, Carrier) else None


def name_of(place: Union[str, Remote, Carrier]) -> str:
    """Returns its name for the library: its URL, or the name of the Python object."""
    if isinstance(place, str):
        return place
    return place.url if isinstance(place, Remote) else place.name


def take_buffer(function: Callable[..., Any], *arguments: Any) -> Optional[bytes]:
    """Returns the bytes that a function put into an `llvs_buffer`, its last parameter before the error; None for nothing."""
    buffer = _structs.llvs_buffer()
    function(*arguments, ctypes.byref(buffer))
    return _pages.take_buffer(buffer)


def _list(transport: Transport, reply: int) -> None:
    for name in transport.list():
        lib.llvs_reply_add(reply, encode_name(name))


def _fetch(transport: Transport, method: str, names: int, count: int, reply: int) -> None:
    asked = [decode(name) for name in _pages.bytes_array(names, count)]
    answers = list(getattr(transport, method)(asked))
    if len(answers) != count:
        raise ValueError(f"{method}() got {count} names and returned {len(answers)} answers")
    for index, answer in enumerate(answers):
        if _sources.gives_pieces(answer):
            _sources.answer(reply, index, answer)
        elif answer is not None:
            lib.llvs_reply_set(reply, index, as_bytes(answer))


def _unusable(transport: Transport, names: int, count: int, reply: int) -> None:
    for name in transport.unusable([decode(name) for name in _pages.bytes_array(names, count)]):
        lib.llvs_reply_add(reply, encode_name(name))


def _write(file: Writable, piece: int) -> None:
    file.write(_data(piece))


_write_thunk = _callbacks.solicited([ctypes.c_void_p], _write)
write_address = ctypes.cast(_write_thunk, ctypes.c_void_p).value


def _send_large(transport: Transport, name: int, version: int, changes: int, reply: int) -> None:
    file = OutgoingFile(changes)
    try:
        transport.send_large(_name(name), _data(version), file)
    finally:
        file._pointer = None


def _send(transport: Transport, files: int, count: int, reply: int) -> None:
    transport.send(
        [
            VersionFiles(decode(copy(name, name_size)), copy(version, version_size), copy(changes, changes_size))
            for _, _, name, name_size, version, version_size, changes, changes_size in _pages.elements(_pages.EXCHANGE_FILES, files, count)
        ]
    )


def _snapshot_list(transport: Transport, reply: int) -> None:
    for name in transport.snapshot_list():
        lib.llvs_reply_add(reply, encode_name(name))


def _snapshot_read(transport: Transport, name: int, reply: int) -> None:
    found = transport.snapshot_read(_name(name))
    if found is not None:
        lib.llvs_reply_set(reply, 0, as_bytes(found))


_pointer, _size = ctypes.c_void_p, ctypes.c_size_t
_THUNKS: dict[str, Any] = {
    "list": _callbacks.solicited([_pointer], _list),
    "fetch_versions": _callbacks.solicited([_pointer, _size, _pointer], lambda target, *rest: _fetch(target, "fetch_versions", *rest)),
    "fetch_changes": _callbacks.solicited([_pointer, _size, _pointer], lambda target, *rest: _fetch(target, "fetch_changes", *rest)),
    "send": _callbacks.solicited([_pointer, _size, _pointer], _send),
    "send_large": _callbacks.solicited([_pointer, _pointer, _pointer, _pointer], _send_large),
    "unusable": _callbacks.solicited([_pointer, _size, _pointer], _unusable),
    "snapshot_list": _callbacks.solicited([_pointer], _snapshot_list),
    "snapshot_read": _callbacks.solicited([_pointer, _pointer], _snapshot_read),
    "snapshot_write": _callbacks.solicited(
        [_pointer, _pointer], lambda target, name, data: target.snapshot_write(_name(name), _data(data))
    ),
    "snapshot_delete": _callbacks.solicited([_pointer], lambda target, name: target.snapshot_delete(_name(name))),
    "close": _callbacks.solicited([], lambda target: target.close()),
}


class TransportHandle(Handle):
    """An `llvs_transport`; the exchange that uses it keeps it alive."""

    _release = "llvs_transport_free"
    _warns = False

    #: The handle that this one wraps, and closes in the end.
    _inner: Optional[TransportHandle] = None

    def __init__(self, transport: Transport) -> None:
        super().__init__(self._create(transport))
        transport._handles().add(self)

    @classmethod
    def of_pointer(cls, pointer: int, inner: Optional[TransportHandle]) -> TransportHandle:
        """Takes ownership of a handle of the library, which may wrap another one."""
        handle = cls.__new__(cls)
        handle._inner = inner
        Handle.__init__(handle, pointer)
        return handle

    def close(self) -> None:
        """Releases it, and the handle that it wraps."""
        super().close()
        if self._inner is not None:
            self._inner.close()

    @staticmethod
    def _create(transport: Transport) -> int:
        names = ["list", "fetch_versions", "fetch_changes", "send", "close"]
        snapshots = ["snapshot_list", "snapshot_read", "snapshot_write", "snapshot_delete"]
        overridden = [getattr(type(transport), name, None) is not getattr(Transport, name) for name in snapshots]
        if all(overridden):
            names += snapshots
        elif any(overridden):
            raise TypeError(f"{type(transport).__name__} must have all of {', '.join(snapshots)}, or none")
        names += [name for name in ("send_large", "unusable") if getattr(type(transport), name, None) is not getattr(Transport, name)]
        callbacks = _structs.llvs_transport_callbacks(struct_size=ctypes.sizeof(_structs.llvs_transport_callbacks))
        for name in names:
            setattr(callbacks, name, ctypes.cast(_THUNKS[name], _pointer).value)
        pointer = ctypes.c_void_p()
        payload = _callbacks.register(transport)
        lib.llvs_transport_create(
            encode_name(transport.name), ctypes.byref(callbacks), payload, _callbacks.payload_free, ctypes.byref(pointer)
        )
        return pointer.value or 0

    def _what(self) -> str:
        return "the transport"
