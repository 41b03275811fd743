"""Exchanges: move versions between a store and a place that other devices reach, in both directions. They never merge."""

from __future__ import annotations

import ctypes
import unicodedata
from typing import Any, Callable, Optional

import llvs

from .. import _abi
from .._abi.handle import Handle
from .._abi.memory import as_bytes, copy, decode, encode
from .._generated import structs as _structs
from ..control import CancelToken, Control, Observer, ProgressCallback, notify_thunk, observe
from ..store import _pages
from ..store._lzfse import Decoder, put_decoder
from ..store._options import durability_number
from ..store.snapshot import Snapshot, take_snapshot, the_snapshot
from ..words import Durability, MemberKind
from ._carrier import Carrier
from .members import Member, member_kind, take_members
from .remote import Remote
from .remote_status import RemoteStatus, read_remote_status
from .results import ExchangeResult, take_result
from .transport import Place, TransportHandle, carrier_of, name_of, place_of, take_buffer

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
        no_other_readers: bool = False,
    ) -> None:
        self._struct = _structs.llvs_exchange_options(
            struct_size=ctypes.sizeof(_structs.llvs_exchange_options),
            durability=durability_number(durability),
            must_exist=int(not create),
            report_unportable=int(report_unportable),
            no_other_readers=int(no_other_readers),
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
    """Moves versions between a store and a place that other devices reach.

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
        no_other_readers: bool = False,
        decode: Optional[Decoder] = None,
    ) -> None:
        """Opens an exchange.

        place: the path of a folder that other devices reach, created if it does not exist; a URL ("file:///absolute/path" is a folder,
        "memory:name" a place in this process, shared by all exchanges with that name, "https+webdav://host/path/" a folder on a WebDAV
        server); a `Remote`, which is a URL with credentials and more; a `Transport`; or `RemoteFiles`. A `str` is a URL if it begins with a
        scheme: two or more letters, digits, "+", "-" or ".", and a colon. Any other `str`, and a `pathlib.Path`, is a path.
        restoration_state: `Exchange.restoration_state` of an earlier process, or `b"new"`; see there. durability: for files in a folder.
        "full": files are on disk before others see them; "normal": faster, but a power cut may leave files without their bytes, which a
        device that has the version writes again. create: False: a folder that does not exist is a NotFoundError.
        report_unportable: `send` lists value ids that another implementation of this design cannot store or distinguish as problems with
        the code `ErrorCode.UNPORTABLE_ID`, each once, named by their version, which is sent nevertheless.
        no_other_readers: True if no other implementation reads the place. If False, the place has two files for each version, and the
        exchange is open, a save that would make another implementation fail permanently raises `ExchangeDataError` with that code. That is
        a save with a new value id that needs more than 255 bytes in file names or contains a NUL, or with metadata that has two keys which
        differ only in normalization (docs/interchange.md). decode: as for `Store.import_store`, for snapshots of another implementation.

        Raises InvalidArgumentError (not a URL), UnsupportedError (scheme), StorageError, TransportError, BusyError (a transport that serves
        another exchange).
        """
        place = place_of(place)
        carrier = carrier_of(place)
        self._place = name_of(place) if carrier is None else f"the {'files' if isinstance(place, Remote) else 'transport'} {carrier.name!r}"
        self._observers: set[Observer] = set()
        self._transport: TransportHandle | None = None
        pointer = ctypes.c_void_p()
        with (
            store._call as store_pointer,
            exchange_options(place, durability, create, report_unportable, decode, no_other_readers) as options,
        ):
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
        """Adds to the store the versions that the other side has and the store lacks.

        An item that cannot be added (damaged, incomplete, foreign) is a problem in the result, not an error. May be interrupted and run
        again at any time. Raises TransportError, StorageError, CancelledError.

        It also repairs. If reading through this `Store`, or `Store.verify`, found damage in versions, these are fetched as well, and their
        damaged parts are written again (`repaired`). The undamaged parts must be the same at the other side: else there is a problem with
        the code `ErrorCode.VERSION_MISMATCH`, and the version is left unchanged.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_retrieve, pointer, control)

    def verify(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Retrieves as `retrieve` does, and also fetches versions that the store already has, to compare them.

        A damaged file at the other side is a problem in the result, and the next `send` of this exchange writes the two files of that
        version again. If the files are undamaged, but the version differs from the store's, there is a problem with the code
        `ErrorCode.VERSION_MISMATCH`: both stay unchanged. Versions that are damaged in the store are repaired, as by `retrieve`, even if
        the damage was not found before. Cost: reads everything that the other side has, and the same in the store. Errors as for
        `retrieve`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_verify, pointer, control)

    def send(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Sends the versions that the store has and the other side lacks. Errors as for `retrieve`."""
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_send, pointer, control)

    def members(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> tuple[Member, ...]:
        """Lists the members of the encrypted place.

        Raises UnsupportedError (opened without keys), EncryptionError, TooLargeError (there are so many files of keys that this device has
        not read all of them yet: exchange again).
        """
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
        """Adds a member of the place, who can read everything that was and will be written. No effect if it is a member already.

        recipient: the public half of its identity, `age1...`. name, kind ("device", "host" or "recovery"): for people.
        Raises InvalidArgumentError (not a recipient, or one that was removed), and as `members`.
        """
        number = member_kind(kind)
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_add_member(pointer, encode(recipient), encode(name), number, control)

    def remove_member(
        self, recipient: str, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> None:
        """Removes a member: it does not get the keys of anything that is written from now on. If it still reaches the place, it can read
        the existing contents for ever: revoke its access to the place first. Other devices switch to the new keys with their next
        exchanges, within 10 minutes.

        recipient: as `members` returns it, or as a problem reports a member without the newest keys. It cannot be added again: the
        device makes a new identity.
        Raises InvalidArgumentError (not a member, or the last one), and as `members`.
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
        """Sets another passphrase. The members and their keys stay; the file that the old passphrase opened is removed from the place.

        This exchange continues with the new one. Exchanges that were opened with the old one get EncryptionError (`ErrorCode.WRONG_KEY`)
        within 10 minutes: open them again. If the call is interrupted, both may open the place: call it again.

        leaked: whether another person knows the old one, with which a copy of its file can still be opened. The member "passphrase" gets
        another identity, and a new epoch begins, as by `remove_member`. A place without that member gets it.
        Raises InvalidArgumentError (not a passphrase; without `leaked`, the exchange was opened without the old one), and as `members`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            text = encode(unicodedata.normalize("NFC", passphrase))
            lib.llvs_exchange_change_passphrase(pointer, text, int(bool(leaked)), control)

    def pairing(
        self, *, read_anew: bool = True, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> bytes:
        """Returns the pairing of the encrypted place, with which its members make direct connections without pairing devices: 48 bytes,
        derived from the newest keys, the same for all members. It changes when the keys are renewed. It is a secret.

        `connect`, `listen` and similar functions accept the exchange itself instead of a pairing, and use the newest keys that it has read.
        These bytes are for a device that has to connect while the place cannot be reached: it stores them as it stores a pairing.

        read_anew: False: uses the keys that the exchange read last, without a request to the place.
        Raises EncryptionError (`ErrorCode.KEY_MISSING`, also if no keys were read yet), and as `members`.
        """
        found = _structs.llvs_buffer()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_pairing(pointer, int(bool(read_anew)), control, ctypes.byref(found))
        return _pages.take_buffer(found) or b""

    def join_keys(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> None:
        """Joins competing keys, which an exchange reports as a problem with `ErrorCode.KEYS_FORKED`. A new epoch begins, with the members
        of this device's side. Members whom the other side removed are removed, unless this side has removed any: a former member may have
        made the other keys. Later exchanges report these, and the members that only the other side has: remove or add again those that
        you know.

        Does nothing if no keys compete. Raises EncryptionError (`ErrorCode.KEYS_FORKED`: the makers of the other keys knew neither a key of
        this device's nor the passphrase, so they may be strangers; or this device has used neither keys; nothing was changed), and as
        `members`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_join_keys(pointer, control)

    def rekey(
        self, *, renew: bool = False, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> int:
        """Sends the whole contents of the place again, encrypted with the newest keys, and removes the copies with older keys. Use it after
        a device or a key was lost: its finder then cannot read anything any more. (What was read before remains readable.) It sends
        as many bytes as the place contains.

        Later exchanges of this device delete the replaced files, packs after a day, large values after one more; other devices continue
        meanwhile. If it is interrupted, the full listing that exchanges make each day continues it; or call it again.

        renew: whether to make new keys first, which only the present members get. Not needed after `remove_member`, nor after
        `change_passphrase` with `leaked`.
        Returns how many packs with older keys remain: those that will be deleted, and those that this device cannot read.
        Raises as `members`, and as `send`.
        """
        left = ctypes.c_uint64()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_exchange_rekey(pointer, int(bool(renew)), control, ctypes.byref(left))
        return left.value

    def retire(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> ExchangeResult:
        """Retires this device as a writer of a place in the packed layout: sends what is left, and announces that it is done. The other
        devices then merge its packs at once, instead of after 30 days. Nothing is removed from the store. If the device sends again later,
        it does so as a new writer.

        Raises UnsupportedError (a place that holds no packs), and as `send`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_retire, pointer, control)

    def enable_differences(
        self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> ExchangeResult:
        """Lets all devices write values to a place in the packed layout as differences from earlier ones, which take far less room. New
        places have it from the start, so this is for places that an earlier library made. First sends what is left. Other devices learn of
        it when they next list the whole place, which they do once a day. A library that does not know differences reports the versions
        that have some as `ErrorCode.NEWER_FORMAT`, and reads all others. Has no effect if it is on. It cannot be turned off.

        Raises UnsupportedError (a place that holds no packs), and as `send`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_enable_differences, pointer, control)

    def announce_move(
        self, address: str, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> ExchangeResult:
        """Announces to the other devices that the place has moved, after sending what is left. From then on their exchanges with the old
        place have a problem (`ErrorCode.PLACE_MOVED`, with the address as its error's `path`). Nothing else changes, and nothing is
        removed.

        address: for people and programs, 1 to 1,024 bytes. No secrets: every device that reads the place can read it.
        Raises InvalidArgumentError, UnsupportedError (a place that holds no packs), and as `send`.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return take_result(lib.llvs_exchange_announce_move, pointer, encode(address), control)

    def remote_status(self) -> Optional[RemoteStatus]:
        """Returns what this device knows about a place in the packed layout, as of the last exchange of its store there; None if there was
        none, or the place has no packs. Sends no requests.
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
        """Registers a callback for new versions at the other side: `callback()` is called soon after, on a thread of the library. Retrieve
        to get them.

        Raises UnsupportedError if the transport cannot report changes.
        """
        with self._call as pointer:
            return observe(lib.llvs_exchange_observe, (pointer,), notify_thunk, callback, self._observers)

    @property
    def restoration_state(self) -> bytes:
        """The state that the exchange needs in a later process; opaque. Setting unusable state costs a full listing.

        `b"new"` makes the exchange forget which place its store knows at this address. The next `retrieve` or `send` then joins the place
        that is there now: an emptied place is filled again from this store; with the place of another store, the versions of both stores
        are joined permanently. Without `b"new"` both are a NotFoundError. Afterwards a coordinator and a syncer of the same store also
        exchange with the place.
        """
        with self._call as pointer:
            return take_buffer(lib.llvs_exchange_restoration_state, pointer) or b""

    @restoration_state.setter
    def restoration_state(self, state: bytes) -> None:
        with self._call as pointer:
            lib.llvs_exchange_set_restoration_state(pointer, as_bytes(state))

    @property
    def url(self) -> str:
        """The URL that the exchange was opened with; empty with a `Transport` or `RemoteFiles`."""
        with self._call as pointer:
            found = lib.llvs_exchange_url(pointer)
            return decode(copy(found.data, found.size)) if found.size else ""

    def put_snapshot(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Snapshot:
        """Writes a snapshot of the store to the place of the exchange, replacing an older one of this library. Cost: the size of the store.

        Raises StorageError, TransportError, UnsupportedError, CancelledError.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return the_snapshot(lib.llvs_exchange_put_snapshot, pointer, control)

    def restore_snapshot(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Snapshot:
        """Restores the snapshot at the place into the store, which must be empty or hold one version. Restores all of it or nothing, except
        versions that do not match their content ids, and their descendants: these are in `problems`.

        Raises SnapshotError, StorageError, TransportError, CancelledError.
        """
        with self._call as pointer, Control(progress, cancel) as control:
            return the_snapshot(lib.llvs_exchange_restore_snapshot, pointer, control)

    def snapshot(self) -> Optional[Snapshot]:
        """Returns the manifest of the snapshot at the place, of any format; None if there is none. Raises SnapshotError, TransportError."""
        with self._call as pointer:
            return take_snapshot(lib.llvs_exchange_snapshot, pointer)
