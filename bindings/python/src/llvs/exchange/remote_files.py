"""Places of named files, written in Python: implement list, read, publish and delete, and the library does the rest.

    class MyServer(llvs.exchange.RemoteFiles):
        name = "my server"
        def list(self, directory): ...
        def read(self, name, offset, size): ...
        def publish(self, name, file, replaces): ...
        def delete(self, name): ...

    with llvs.Exchange(store, MyServer()) as exchange:
        exchange.retrieve()
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from typing import Any, Iterable, NamedTuple, Optional

from .. import _abi
from .._abi import callbacks as _callbacks, sources as _sources
from .._abi.memory import as_bytes, encode_name
from .._generated import constants as c, structs as _structs
from ..storage import _name
from ._carrier import Carrier
from .transport import FileContent, OutgoingFile, TransportHandle

lib = _abi.lib


class RemoteFile(NamedTuple):
    """One name in a directory of `RemoteFiles`."""

    #: Its last component.
    name: str
    #: Bytes in it.
    size: int
    #: Whether it is a directory; then the size is ignored.
    is_directory: bool = False


class RemoteFiles(Carrier):
    """A place of named files that other devices reach: the operations that a service of yours must have.

    The library stores versions there in packs, for few requests, encrypted if `Remote` says so, or in single files, as at a WebDAV server
    (docs/remote-files.md). A name is a path like "pack1/log/abc": letters, digits, ".", "_", "-" and "/", never ".." or a dot in front. A
    file exists whole or not at all, and is never changed in part.

    One method is called at a time, from any thread; a method may use the library, but not the exchange that uses this. If it raises, the
    exchange's call ends with the same exception. One object serves one exchange at a time. `llvs.testing.check_files` tests it.
    """

    #: The name of the place in messages, and the key of what a store remembers about it: different for each place, the same in every
    #: process. Required.
    name: str = ""
    #: False: `read` always returns the whole file (its `offset` and `size` are then 0).
    has_ranges: bool = True
    #: False: if two devices publish one name at once, `publish` may succeed for both.
    is_exclusive: bool = True

    @abstractmethod
    def list(self, directory: str) -> Iterable[RemoteFile]:
        """Returns all files of a directory, "pack1/log", each by its last component; none if there is no such directory. Directories in it
        may be included, but not their contents. Foreign names may be among them.
        """

    @abstractmethod
    def read(self, name: str, offset: int, size: int) -> Optional[FileContent]:
        """Returns a file, or None if it is missing. With a `size` other than 0, returns that many bytes from `offset` on, fewer if the file
        ends before. A large one need not be in memory: return an open file, or an iterable.
        """

    @abstractmethod
    def publish(self, name: str, file: OutgoingFile, replaces: bool) -> bool:
        """Makes a file, with the directories above it, so that readers never see a part of it. `replaces`: an existing file of that name is
        replaced; otherwise it stays, and the result is False. True: the file exists, durably as far as the place can guarantee.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Removes a file; no effect if it is missing."""

    def _new_handle(self) -> TransportHandle:
        callbacks = _structs.llvs_files_callbacks(struct_size=ctypes.sizeof(_structs.llvs_files_callbacks))
        callbacks.traits = (0 if self.has_ranges else c.FILES_WITHOUT_RANGES) | (0 if self.is_exclusive else c.FILES_NOT_EXCLUSIVE)
        for name, thunk in _THUNKS.items():
            setattr(callbacks, name, ctypes.cast(thunk, ctypes.c_void_p).value)
        pointer = ctypes.c_void_p()
        payload = _callbacks.register(self)
        lib.llvs_transport_create_on_files(
            encode_name(self.name), ctypes.byref(callbacks), payload, _callbacks.payload_free, ctypes.byref(pointer)
        )
        return TransportHandle.of_pointer(pointer.value or 0, None)


def _list(files: RemoteFiles, directory: int, reply: int) -> None:
    for name, size, is_directory in files.list(_name(directory)):
        if size < 0:
            raise ValueError(f"{name!r} has a size of {size}: give its bytes, or 0 for a directory")
        lib.llvs_reply_file(reply, encode_name(name), size, int(is_directory))


def _read(files: RemoteFiles, name: int, offset: int, size: int, reply: int) -> Optional[int]:
    found: Any = files.read(_name(name), offset, size)
    if _sources.gives_pieces(found):
        _sources.answer(reply, 0, found)
    elif found is not None:
        lib.llvs_reply_set(reply, 0, as_bytes(found))
    return None


def _publish(files: RemoteFiles, name: int, replaces: int, outgoing: int, _reply: int) -> int:
    file = OutgoingFile(outgoing)
    try:
        done = files.publish(_name(name), file, replaces != 0)
    finally:
        file._pointer = None
    if not isinstance(done, bool):
        raise TypeError(f"{type(files).__name__}.publish returned {done!r}: True when it is done, False when the name is taken")
    return c.OK if done else c.PASS


_pointer, _u64 = ctypes.c_void_p, ctypes.c_uint64
_THUNKS: dict[str, Any] = {
    "list": _callbacks.solicited([_pointer, _pointer], _list),
    "read": _callbacks.solicited([_pointer, _u64, _u64, _pointer], _read),
    "publish": _callbacks.solicited([_pointer, ctypes.c_uint32, _pointer, _pointer], _publish),
    "remove": _callbacks.solicited([_pointer], lambda files, name: files.delete(_name(name))),
    "close": _callbacks.solicited([], lambda files: files.close()),
}
