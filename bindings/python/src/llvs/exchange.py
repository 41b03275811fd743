"""Exchanges: move versions between a store and a place that others reach, both ways, never merging."""

from __future__ import annotations

import ctypes
import unicodedata
from typing import Any, Callable, Optional

import llvs

from . import _abi, _pages, _structs
from ._carrier import Carrier
from ._lzfse import Decoder, put_decoder
from ._handle import Handle
from ._options import durability_number
from ._memory import as_bytes, copy, decode, encode
from .control import CancelToken, Control, ProgressCallback
from .members import Member, member_kind, take_members
from .observer import Observer, notify_thunk, observe
from .remote import Remote
from .remote_status import RemoteStatus, read_remote_status
from .results import ExchangeResult, take_result
from .snapshot import Snapshot, take_snapshot, the_snapshot
from .transport import Place, TransportHandle, carrier_of, name_of, place_of, take_buffer
from .words import Durability, MemberKind

lib = _abi.lib


class exchange_options:
    """An `llvs_exchange_options` for the length of a `with`, and the handle of a transport in it, which is closed unless it is kept."""

    def __init__(
        self,
        place: str | Remote | Carrier,
        durability: Durability = "full",
        create: bool = True,
        report_unportable: bool = False,
        decode: Optional[Decoder] = None,
    ) -> None:
        self._struct = _structs.llvs_exchange_options(
            struct_size=ctypes.sizeof(_structs.llvs_exchange_options),
            durability=durability_number(durability),
            must_exist=int(not create),
            report_unportable=int(report_unportable),
        )
        self._decode = decode
        carrier = carrier_of(place)
        self._transport: Optional[TransportHandle] = None if carrier is None else carrier._new_handle()
        self._remote = place if isinstance(place, Remote) else None
        self.reference = ctypes.byref(self._struct)

    def __enter__(self) -> exchange_options:
        if self._transport is not None:
            self._struct.host_transport = self._transport._call.__enter__()
        if self._remote is not None:
            self._remote._put(self._struct)
        put_decoder(self._struct, self._decode)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._transport is not None:
            self._transport._call.__exit__(*exception)
            if not self._is_kept:
                self._transport.close()

    _is_kept = False

    def keep(self) -> Optional[TransportHandle]:
        """The handle of the transport, which the caller closes from now on."""
        self._is_kept = True
        return self._transport


class Exchange(Handle):
    """Moves versions between a store and a place that others reach.

        with llvs.Exchange(store, "file:///shared/folder") as exchange:
            exchange.retrieve()
            exchange.send()

    Safe from all threads.
    """

    _release = "llvs_exchange_free"
    _end = "llvs_exchange_close"
    _exit_order = 5
    _calls_back = True

    def __init__(
        self,
        store: llvs.Store,
        place: Place,
        *,
        restoration_state: bytes = b"",
        durability: Durability = "full",
        create: bool = True,
        report_unportable: bool = False,
        decode: Optional[Decoder] = None,
    ) -> None:
        """Opens an exchange.

        place: the path of a folder that others reach, which is made when it is not there; a URL ("file:///absolute/path" is a folder,
        "memory:name" a place in this process, shared by all who give the name, "https+webdav://host/path/" a folder on a WebDAV server);
        a `Remote`, which is a URL with credentials and more; a `Transport`; or `RemoteFiles`. A `str` is a URL when it begins with a
        scheme, which is two or more letters, digits, "+", "-" or "." and a colon; else, and when it is a `pathlib.Path`, it is a path.
        restoration_state: what `Exchange.restoration_state` was in an earlier process, or `b"new"`; see there. durability: of what a
        folder gets. "full": files are on disk before anybody sees them; "normal": faster, but a power cut may leave files without their
        bytes, which whoever has the version writes anew. create: False: a folder that is not there is a NotFoundError.
        report_unportable: `send` lists value ids that another implementation of this design cannot hold or tell apart as problems with the
        code `ErrorCode.UNPORTABLE_ID`, each once, named by the version that has them, which is sent all the same. decode: as for
        `Store.import_store`, for snapshots of another implementation.

        Raises InvalidArgumentError (no URL), UnsupportedError (scheme), StorageError, TransportError, BusyError (a transport
        that serves another exchange).
        """
        place = place_of(place)
        carrier = carrier_of(place)
        self._place = name_of(place) if carrier is None else f"the {'files' if isinstance(place, Remote) else 'transport'} {carrier.name!r}"
        self._observers: set[Observer] = set()
        self._transport: TransportHandle | None = None
        pointer = ctypes.c_void_p()
        with store._call as store_pointer, exchange_options(place, durability, create, report_unportable, decode) as options:
            lib.llvs_exchange_open(
                store_pointer, encode(name_of(place)) if carrier is None else b"", options.reference, ctypes.byref(pointer)
            )
            self._transport = options.keep()
        super().__init__(pointer.value or 0)
        if restoration_state:
            self.restoration_state = restoration_state

    def _what(self) -> str:
        return f"the exchange with {self._place}"

    def _detail(self) -> str:
        return f"with {self._place}"

    def close(self) -> None:
        """Ends the exchange and its observations. Closing again does nothing."""
        for observer in tuple(self._observers):
            observer.close()
        try:
            super().close()
        finally:
            if self._transport is not None:
                self._transport.close()

    def retrieve(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Adds to the store what the other side has and the store lacks.

        What cannot be added (damaged, incomplete, foreign) is a problem in the result, not an error. May be interrupted and
        run again at any time. Raises TransportError, StorageError, CancelledError.

        Repairs, too: versions of the store in which reading, or `Store.verify`, met damage through this `Store` are fetched as well,
        and what is damaged of them is written anew (`repaired`). What is whole of such a version must be the same there, else it
        is a problem with the code `ErrorCode.VERSION_MISMATCH`, and nothing of it is changed.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_retrieve, pointer, control)

    def verify(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Retrieves as `retrieve` does, and fetches as well what the store has already, which otherwise nobody looks at again.

        A file there that is damaged is a problem in the result, and the next `send` of this exchange writes the two files of that
        version anew. Files that are whole and tell of another version than the store has are a problem with the code
        `ErrorCode.VERSION_MISMATCH`: both stay as they are. Versions that are damaged in the store are repaired, as `retrieve` does,
        whether or not the damage was met before. Cost: all that the other side has is read, and the same in the store. Errors as for
        `retrieve`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_verify, pointer, control)

    def send(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Sends what the store has and the other side lacks. Errors as for `retrieve`."""
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_send, pointer, control)

    def members(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> tuple[Member, ...]:
        """Who has the keys of the place, which is encrypted. Raises UnsupportedError (opened without keys), EncryptionError."""
        pointer = ctypes.c_void_p()
        with self._call as exchange, Control(progress, cancel) as control:
            lib.llvs_exchange_members(exchange, control, ctypes.byref(pointer))
        try:
            return take_members(pointer.value or 0)
        finally:
            lib.llvs_member_list_free(pointer.value)

    def add_member(
        self,
        recipient: str,
        name: str = "",
        *,
        kind: MemberKind = "device",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Gives the keys of the place to one more, who can read what was written and what will be. Who is a member stays one.

        recipient: the public half of its identity, `age1...`. name, kind ("device", "host" or "recovery"): for people.
        Raises InvalidArgumentError (no recipient, or one that was removed), and as `members`.
        """
        number = member_kind(kind)
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_add_member(pointer, encode(recipient), encode(name), number, control)

    def remove_member(
        self, recipient: str, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> None:
        """Takes the keys of all that is written from now on from a member. What lies there it can read for ever, if it can reach it: take
        its access to the place away first. Other devices go on to the new keys with their next exchanges, within 10 minutes.

        recipient: as `members` gives it. It is never added again: the device makes a new identity.
        Raises InvalidArgumentError (no member, or the last one), and as `members`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_remove_member(pointer, encode(recipient), control)

    def change_passphrase(
        self,
        passphrase: str,
        *,
        leaked: bool = False,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> None:
        """Sets another passphrase. The members and their keys stay; what the old one opened is removed from the place.

        The exchange goes on with the new one. Others that were opened with the old one get EncryptionError (`ErrorCode.WRONG_KEY`) within
        10 minutes, and are to be opened anew. When it is interrupted, both may open the place: do it again.

        leaked: whether somebody else has the old one, since a copy of its file still opens with it. The member "passphrase" gets another
        identity, and a new epoch begins, as by `remove_member`. A place without that member gets it.
        Raises InvalidArgumentError (no passphrase; without `leaked`, the exchange was opened without the old one), and as `members`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            text = encode(unicodedata.normalize("NFC", passphrase))
            lib.llvs_exchange_change_passphrase(pointer, text, int(bool(leaked)), control)

    def pairing(
        self, *, read_anew: bool = True, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> bytes:
        """What the members of the place, which is encrypted, make direct connections by, without being paired: 48 bytes that follow from
        its newest keys, the same for all members, and others when these are renewed. A secret.

        `connect`, `listen` and their like take the exchange itself in the place of a pairing, and go by the newest keys that it read. These
        bytes are for a device that is to connect where the place cannot be reached: it keeps them as it keeps a pairing.

        read_anew: False: what they were when the exchange read the keys last; nothing is asked of the place.
        Raises EncryptionError (`ErrorCode.KEY_MISSING`, also when nothing was read yet), and as `members`.
        """
        found = _structs.llvs_buffer()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_pairing(pointer, int(bool(read_anew)), control, ctypes.byref(found))
        return _pages.take_buffer(found) or b""

    def join_keys(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> None:
        """Joins keys that compete, which an exchange tells of as a problem with `ErrorCode.KEYS_FORKED`: a new epoch begins, which has the
        members of both sides but those that were removed on one. Look at `members` first: all of them are believed.

        Does nothing where none compete. Raises as `members`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_join_keys(pointer, control)

    def rekey(
        self, *, renew: bool = False, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> int:
        """Sends all that lies in the place anew, with its newest keys, and takes what lies there with older ones away: for when a device
        or a key was lost, so that who has only these can read nothing any more. (Whoever read it before keeps it.) As much is sent as
        lies there.

        What is replaced is deleted by later exchanges of this device, packs after a day, large values after one more; other devices go
        on meanwhile. What was interrupted goes on with the full listing that exchanges make each day; or call it again.

        renew: whether keys are made first that only the members of now have. They are there already after `remove_member`, and after
        `change_passphrase` with `leaked`.
        Returns how many packs lie there still with older keys: those that will be deleted, and those that cannot be read here.
        Raises as `members`, and as `send`.
        """
        left = ctypes.c_uint64()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_rekey(pointer, int(bool(renew)), control, ctypes.byref(left))
        return left.value

    def retire(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Ends what this device sends to a place in packs, for good: sends what is left, and tells the others, who then put what it sent
        together at once, and not after 30 days. Nothing is removed here; what is sent later all the same is sent as by another device.

        Raises UnsupportedError (a place that holds no packs), and as `send`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_retire, pointer, control)

    def announce_move(
        self, address: str, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> ExchangeResult:
        """Tells the other devices that the place goes on elsewhere, after sending what is left: their exchanges here have that as a problem
        (`ErrorCode.PLACE_MOVED`, with the address as its error's `path`) from then on. Nothing else changes, and nothing is removed.

        address: for people and programs, 1 to 1,024 bytes. No secrets: whoever reads the place reads it.
        Raises InvalidArgumentError, UnsupportedError (a place that holds no packs), and as `send`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_announce_move, pointer, encode(address), control)

    def remote_status(self) -> Optional[RemoteStatus]:
        """What this device knows of a place in packs, as of the last exchange of its store there; None when there was none, or the place
        has no packs. Nothing is asked of the place.
        """
        remote = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_exchange_remote(pointer, ctypes.byref(remote))
        if not remote.value:
            return None
        try:
            return read_remote_status(remote.value)
        finally:
            lib.llvs_remote_free(remote)

    def observe(self, callback: Callable[[], Any]) -> Observer:
        """Calls `callback()` soon after the other side may have gained versions, on a thread of the library. Retrieve to see what came.

        Raises UnsupportedError when the transport cannot tell.
        """
        with self._call as pointer:
            return observe(lib.llvs_exchange_observe, (pointer,), notify_thunk, callback, self._observers)

    @property
    def restoration_state(self) -> bytes:
        """What the exchange wants to find again in a later process; opaque. Setting unusable state costs a full listing.

        `b"new"` makes the exchange forget which place its store knows at this address. The next `retrieve` or `send` then joins whatever is
        there: an emptied place is filled anew from this store, and the versions of another store are merged with this one's, for good.
        Without it both are a NotFoundError. A coordinator and a syncer of the same store then exchange with the place as well.
        """
        with self._call as pointer:
            return take_buffer(lib.llvs_exchange_restoration_state, pointer) or b""

    @restoration_state.setter
    def restoration_state(self, state: bytes) -> None:
        with self._call as pointer:
            lib.llvs_exchange_set_restoration_state(pointer, as_bytes(state))

    @property
    def url(self) -> str:
        """The URL that the exchange was opened with; empty when it goes through a `Transport` or `RemoteFiles`."""
        with self._call as pointer:
            found = lib.llvs_exchange_url(pointer)
            return decode(copy(found.data, found.size)) if found.size else ""

    def put_snapshot(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Snapshot:
        """Puts a snapshot of the store beside the versions of the exchange, replacing an older one of ours. Cost: the size of the store.

        Raises StorageError, TransportError, UnsupportedError, CancelledError.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return the_snapshot(lib.llvs_exchange_put_snapshot, pointer, control)

    def restore_snapshot(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Snapshot:
        """Restores the snapshot that lies there into the store, which must be empty or hold one version. All of it or nothing,
        but for versions that are not what their ids say, and those that build on them, which are told of in `problems`.

        Raises SnapshotError, StorageError, TransportError, CancelledError.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return the_snapshot(lib.llvs_exchange_restore_snapshot, pointer, control)

    def snapshot(self) -> Optional[Snapshot]:
        """The manifest of the snapshot that lies there, of any format; None when there is none. Raises SnapshotError, TransportError."""
        with self._call as pointer:
            return take_snapshot(lib.llvs_exchange_snapshot, pointer)
