"""A store as a whole: its state, its files, snapshots of it."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional, Sequence, Union, cast

import llvs

from .. import _abi
from .._abi.handle import Handle
from .._abi.memory import BytesArray, BytesLike, PathLike, address, as_bytes, decode, encode, folder_url, path_bytes, text, version_bytes
from .._generated import constants as c, structs as _structs
from ..control import CancelToken, Control, ProgressCallback
from ..storage import Storage
from ..words import StorageKind
from . import _pages
from ._lzfse import Decoder, put_decoder
from ._options import OpeningOptions
from .reports import (
    CompactionReport,
    Damage,
    EraseReport,
    Erasure,
    ErasurePlace,
    ErasureReach,
    ErasureReason,
    ErasureState,
    ForgetReport,
    ForgetRow,
    ForgetRule,
    Loss,
    Salvaged,
    SalvageReport,
    SizeReport,
    SizeRow,
    Statistics,
    VerifyReport,
)
from .snapshot import Snapshot
from .versions import AnyVersion

lib = _abi.lib
byref = ctypes.byref

_ERASURE_STATES = {
    c.ERASURE_FOLLOWED: ErasureState.FOLLOWED,
    c.ERASURE_WAITING: ErasureState.WAITING,
    c.ERASURE_ANNOUNCED: ErasureState.ANNOUNCED,
    c.ERASURE_HELD: ErasureState.HELD,
    c.ERASURE_KEPT: ErasureState.KEPT,
    c.ERASURE_UNSIGNED: ErasureState.UNSIGNED,
}
_FORGET_RULES = {
    c.FORGET_HEADS: ForgetRule.HEADS,
    c.FORGET_DAYS: ForgetRule.DAYS,
    c.FORGET_DAILY: ForgetRule.DAILY,
    c.FORGET_WEEKLY: ForgetRule.WEEKLY,
    c.FORGET_MONTHLY: ForgetRule.MONTHLY,
    c.FORGET_COUNT: ForgetRule.COUNT,
    c.FORGET_MERGES: ForgetRule.MERGES,
    c.FORGET_UNSENT: ForgetRule.UNSENT,
}
_REACH = {c.ERASURE_GONE: ErasureReach.GONE, c.ERASURE_PENDING: ErasureReach.PENDING}
#: By their numbers.
_REASONS = tuple(ErasureReason)
_LOSSES = (Loss.NOTHING, Loss.VERSION, Loss.VALUE, Loss.UNFINISHED)


def _places(report: Union[_structs.llvs_erase_report, _structs.llvs_erasure]) -> tuple[ErasurePlace, ...]:
    """Returns where else the bytes that an order names may be."""
    places = []
    for address in _pages.addresses(report.places, report.place_count):
        place = _structs.llvs_erasure_place.from_address(address)
        reason = _REASONS[place.reason] if place.reason < len(_REASONS) else ErasureReason.BACKUP
        places.append(ErasurePlace(text(place.name), _REACH.get(place.reach, ErasureReach.OUT_OF_REACH), reason, place.last_seen))
    return tuple(places)


def _damages(pointers: Optional[int], count: int) -> tuple[Damage, ...]:
    """Returns the damages of a report."""
    damages = []
    for address in _pages.addresses(pointers, count):
        damage = _structs.llvs_damage.from_address(address)
        lost = _LOSSES[damage.lost] if damage.lost < len(_LOSSES) else Loss.VERSION
        damages.append(
            Damage(
                text(damage.file), damage.offset, text(damage.message), text(damage.version) or None, lost, text(damage.value_id) or None,
                text(damage.caused_by) or None,
            )
        )
    return tuple(damages)


def _size_rows(report: _structs.llvs_size_report) -> dict[int, tuple[SizeRow, ...]]:
    """The rows of a report by their group."""
    rows: dict[int, list[SizeRow]] = {}
    for place in _pages.addresses(report.rows, report.row_count):
        row = _structs.llvs_size_row.from_address(place)
        counts = (row.values, row.value_bytes, row.bytes, row.current_bytes, row.past_bytes)
        rows.setdefault(row.group, []).append(SizeRow(text(row.name), *counts, row.combined))
    return {group: tuple(found) for group, found in rows.items()}


def _texts(start: Optional[int], count: int) -> tuple[str, ...]:
    """Returns an array of texts."""
    size = ctypes.sizeof(_structs.llvs_bytes)
    return tuple(text(_structs.llvs_bytes.from_address((start or 0) + i * size)) for i in range(count))


class Maintenance(Handle):
    """The store as a whole: state, files, snapshots."""

    def reload(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> int:
        """Reads versions that other processes or handles added, and returns how many were new. Raises CancelledError, StorageError.

        Versions that were read before a cancellation stay. Cost: the number of files and of new versions.
        """
        added = ctypes.c_uint64()
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_store_reload(pointer, control, byref(added))
        return added.value

    def statistics(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> Statistics:
        """Returns counts of the store's contents and files. Raises CancelledError, StorageError. Cost: a stat of each file of a file
        store."""
        found = _structs.llvs_statistics(struct_size=ctypes.sizeof(_structs.llvs_statistics))
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_store_statistics(pointer, control, byref(found))
        return Statistics(*(getattr(found, name) for name in Statistics._fields))

    def size(
        self,
        prefix: str = "",
        *,
        depth: Optional[int] = 1,
        limit: int = 1_000,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> SizeReport:
        """Reports what takes space: the bytes on the medium by kind, by prefix of ids, by month and by version, and how many of them only
        the past holds. Reads headers and tables of changes, and no value.

        prefix: only the bytes of values whose ids have this prefix. depth: how many parts of an id that end in "/" a group by prefix has,
        counted behind `prefix`; None makes a group of each id. limit: the most rows by prefix, and by version; one more row combines the
        others.

        Raises InvalidArgumentError (a depth or limit below 1), CancelledError, StorageError. Damaged versions are counted in the report.
        Cost: one or two reads for each version.
        """
        for name, number in (("depth", depth), ("limit", limit)):
            if number is not None and number < 1:
                raise llvs.errors.InvalidArgumentError(f"{name} takes a number of 1 or more, not {number}")
        kept = encode(prefix)
        options = _structs.llvs_size_options(struct_size=ctypes.sizeof(_structs.llvs_size_options))
        options.depth = c.SIZE_EACH_ID if depth is None else min(depth, c.SIZE_EACH_ID - 1)
        options.limit = min(limit, 2**64 - 1)
        options.prefix.data, options.prefix.size = address(kept), len(kept)
        pointer = ctypes.c_void_p()
        control = Control(progress, cancel)
        options.control = control.address
        with self._call as store, control:
            lib.llvs_store_size(store, byref(options), byref(pointer))
        try:
            report = _structs.llvs_size_report.from_address(pointer.value or 0)
            rows = _size_rows(report)
            return SizeReport(
                report.versions,
                report.unread,
                report.values,
                report.value_bytes,
                report.bytes,
                report.current_bytes,
                report.past_bytes,
                rows.get(c.SIZE_BY_KIND, ()),
                rows.get(c.SIZE_BY_PREFIX, ()),
                rows.get(c.SIZE_BY_MONTH, ()),
                rows.get(c.SIZE_BY_VERSION, ()),
            )
        finally:
            lib.llvs_size_report_free(pointer.value)

    def erase(
        self,
        *ids: str,
        at: Optional[AnyVersion] = None,
        containing: BytesLike = b"",
        replacement: Optional[BytesLike] = None,
        why: str = "",
        dry_run: bool = False,
        signer: BytesLike = b"",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> EraseReport:
        """Erases values on this device: afterwards no file of the store, and no cache in it, has their bytes. Their ids, sizes and digests
        stay. Reading them raises ErasedError. If an erased value prevails at a head, a new version on that head removes it.

        ids: the values, with everything that was ever stored under these ids. at: only the values that prevail at this version, and those
        with the same bytes and id. containing: all values that contain these bytes, too. replacement: prevails at heads in the place of the
        erased values. why: a text for the order, which everybody with the store can read. dry_run: changes nothing, and reports what would
        be erased. signer: for the mode "stewards" of `set_forgetting`, the private key of a steward who signs the order, 32 bytes; without
        it the order counts on this device alone.

        A coordinator takes the new version over with its next merge. Places, other devices and backups keep their bytes
        (docs/forgetting.md). If the report has something in `waiting`, the bytes are still in the store: it says where, and why.

        Raises InvalidArgumentError, InvalidIDError, UnknownVersionError, UnsupportedError (the storage is one of the host; nothing is
        ordered then), BusyError, CancelledError (until the order is saved), StorageError. Cost: reads the tables of changes of
        the versions that changed the ids and of all after the first merge, with `containing` all tables and values, and the beginnings of
        all records of the storage. In SQLite it writes the whole database.
        """
        names = [encode(id) for id in ids]
        array = (_structs.llvs_bytes * max(1, len(names)))()
        for item, name in zip(array, names):
            item.data, item.size = address(name), len(name)
        options = _structs.llvs_erase_options(struct_size=ctypes.sizeof(_structs.llvs_erase_options))
        options.dry_run = dry_run
        options.ids, options.id_count = ctypes.addressof(array) if names else None, len(names)
        kept = {"version": version_bytes(at) if at is not None else b"", "why": encode(why)}
        kept["containing"] = as_bytes(containing, "what values contain")
        kept["signer"] = as_bytes(signer, "the key of a steward")
        if replacement is not None:
            kept["replacement"] = as_bytes(replacement)
        for field, data in kept.items():
            given = getattr(options, field)
            given.data, given.size = address(data), len(data)
        pointer = ctypes.c_void_p()
        with self._call as store, Control(progress, cancel) as control:
            lib.llvs_store_erase(store, byref(options), control, byref(pointer))
        try:
            report = _structs.llvs_erase_report.from_address(pointer.value or 0)
            return EraseReport(
                report.values, report.versions, report.bytes, report.copies, report.rewritten, report.unread,
                _texts(report.orders, report.order_count), _texts(report.made, report.made_count),
                _texts(report.waiting, report.waiting_count), _places(report),
            )
        finally:
            lib.llvs_erase_report_free(pointer.value)

    def forget(
        self,
        *,
        dry_run: bool = False,
        policy: Optional[Mapping[str, object]] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> ForgetReport:
        """Forgets the values that the policy of the store does not keep (`keep` of `set_forgetting`): the store has their bytes no more.
        Ids of versions and values, sizes and digests stay. Reading a forgotten value raises ForgottenError. No version is made, and other
        devices are not affected. It also happens when the store is compacted, and once a day when it is closed (docs/forgetting.md).

        dry_run: changes nothing, and reports what would be forgotten. policy: for a dry run, instead of the policy of the store. Versions
        then count as come to the device when they were made.

        Raises InvalidArgumentError (the policy does not say what to keep, or `policy` is given without `dry_run`), UnsupportedError (the
        storage is one of the host), DamagedError, TooLargeError (more than 1,024 heads), BusyError, CancelledError, StorageError. Cost:
        reads the headers and tables of changes of all versions, and writes the files that have the bytes; in SQLite the whole database.
        """
        import json

        given = b"" if policy is None else json.dumps(policy).encode()
        options = _structs.llvs_forget_options(struct_size=ctypes.sizeof(_structs.llvs_forget_options))
        options.dry_run = dry_run
        options.policy.data, options.policy.size = address(given), len(given)
        pointer = ctypes.c_void_p()
        control = Control(progress, cancel)
        options.control = control.address
        with self._call as store, control:
            lib.llvs_store_forget(store, byref(options), byref(pointer))
        try:
            report = _structs.llvs_forget_report.from_address(pointer.value or 0)
            rows = (_structs.llvs_forget_row.from_address(place) for place in _pages.addresses(report.rows, report.row_count))
            return ForgetReport(
                report.values, report.versions, report.bytes, report.rewritten,
                tuple(ForgetRow(_FORGET_RULES[row.rule], row.values, row.bytes) for row in rows),
                _texts(report.waiting, report.waiting_count),
            )
        finally:
            lib.llvs_forget_report_free(pointer.value)

    def erasures(self) -> list[Erasure]:
        """The orders to erase values that are in the store, with the state of each: first those that count on this device, in the order in
        which they came, then those at heads that do not count here. Raises StorageError."""
        pointer = ctypes.c_void_p()
        with self._call as store:
            lib.llvs_store_erasures(store, byref(pointer))
        try:
            found = _structs.llvs_erasure_list.from_address(pointer.value or 0)
            erasures = []
            for place in _pages.addresses(found.items, found.count):
                one = _structs.llvs_erasure.from_address(place)
                state = _ERASURE_STATES.get(one.state, ErasureState.NOT_VALID)
                erasures.append(
                    Erasure(
                        text(one.id), text(one.version), text(one.made), text(one.why), one.values, state, bool(one.of_other), one.due,
                        _places(one), one.signatures, one.needed,
                    )
                )
            return erasures
        finally:
            lib.llvs_erasure_list_free(pointer.value)

    def decide_erasure(self, order: str, *, keep: bool) -> None:
        """Keeps the bytes that an order of another device names (`keep=True`; they are sent to nobody all the same), or follows it now.

        Raises FileNotFoundError (no such order counts here), InvalidArgumentError (it is to be kept, and was followed already), BusyError,
        StorageError.
        """
        with self._call as store:
            lib.llvs_store_decide_erasure(store, encode(order), c.ERASURE_KEEP if keep else c.ERASURE_FOLLOW)

    @staticmethod
    def steward_key(seed: BytesLike) -> bytes:
        """Returns the public key of a steward, 32 bytes. seed: the private key: the seed of Ed25519, 32 random bytes (`os.urandom(32)`).
        Raises InvalidArgumentError, UnsupportedError (there is no libcrypto)."""
        buffer = _structs.llvs_buffer()
        lib.llvs_steward_key(as_bytes(seed, "the key of a steward"), byref(buffer))
        return _pages.take_buffer(buffer) or b""

    def sign_erasure(self, order: str, signer: BytesLike) -> str:
        """Signs an order to erase, or one that replaces the stewards, as a further steward. The order is saved again with the signatures of
        all that signed the same before. If enough signed it, it counts from now on, here and where it comes.

        signer: the private key of the steward: the seed of Ed25519, 32 bytes. Returns the id of the order with the signature.

        Raises FileNotFoundError (there is no such order), InvalidArgumentError (the policy of this device has no such steward),
        UnsupportedError (there is no libcrypto), BusyError, StorageError.
        """
        key, buffer = as_bytes(signer, "the key of a steward"), _structs.llvs_buffer()
        with self._call as store:
            lib.llvs_store_sign_erasure(store, encode(order), key, byref(buffer))
        return (_pages.take_buffer(buffer) or b"").decode()

    def change_stewards(self, policy: Mapping[str, object], signer: BytesLike) -> str:
        """Orders that other stewards sign from now on. If enough stewards of now sign that (`sign_erasure`), the policies of all devices
        that have the stewards of now change, as the order comes to them. Make one such order at a time.

        policy: {"erase": {"mode": "stewards", "keys": [...], "need": 2}}; its delay is not used. signer: the private key of a steward of
        now, 32 bytes. Returns the id of the order. Raises as `sign_erasure` and `set_forgetting`.
        """
        import json

        key, buffer = as_bytes(signer, "the key of a steward"), _structs.llvs_buffer()
        with self._call as store:
            lib.llvs_store_change_stewards(store, json.dumps(policy).encode(), key, byref(buffer))
        return (_pages.take_buffer(buffer) or b"").decode()

    def set_forgetting(self, policy: Mapping[str, object], *, secrets: Sequence[BytesLike] = ()) -> None:
        """Sets whose orders to erase count on this device, and what it keeps, from now on and at later openings. Orders that are in the
        store already and count by the new policy are followed; orders that counted before still count. What is not kept is forgotten by
        `forget`, and when the store is compacted.

        policy: with "erase" or "keep", or both. What is left out stays as it is. {"keep": {"days": 30, "daily": 90}} is explained in
        docs/forgetting.md; {"keep": None} keeps everything. {"erase": {"mode": "members", "delay": 3600}}: The mode is "nobody" (the
        default: the orders that were made on this device), "members" (orders that are signed with a secret of the devices), "stewards"
        (orders that "need" of the "keys" signed: public keys of Ed25519 in hexadecimal, as `steward_key` returns them) or "anyone" (all
        orders). The delay is the seconds from the first sight of an order of another device until it is followed. secrets: for "members":
        what all devices share and nobody can guess, 16 to 4,096 bytes each. Orders made here are signed with the first, and those of others
        are checked with all.

        Raises InvalidArgumentError, TooLargeError, UnsupportedError (a member of the policy that a later library has, stewards
        without libcrypto, a storage that cannot erase), BusyError, StorageError. Cost: reads the tables of changes of all versions.
        """
        import json

        given = BytesArray(as_bytes(secret, "a secret") for secret in secrets)
        with self._call as store:
            lib.llvs_store_set_forgetting(store, json.dumps(policy).encode(), given.address, given.count)

    def forgetting(self) -> dict[str, Any]:
        """The policy of this device, without its secrets. Raises StorageError."""
        import json

        buffer = _structs.llvs_buffer()
        with self._call as store:
            lib.llvs_store_forgetting(store, byref(buffer))
        return cast("dict[str, Any]", json.loads(_pages.take_buffer(buffer) or b"{}"))

    def verify(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> VerifyReport:
        """Reads everything again and compares it with its checksums. Damage is in the report, not an error.

        Raises CancelledError, StorageError. Cost: the size of the store.
        """
        pointer = ctypes.c_void_p()
        with self._call as store, Control(progress, cancel) as control:
            lib.llvs_store_verify(store, control, byref(pointer))
        try:
            report = _structs.llvs_verify_report.from_address(pointer.value or 0)
            return VerifyReport(
                report.versions,
                report.values,
                report.pending,
                _damages(report.damages, report.damage_count),
                _damages(report.unfinished, report.unfinished_count),
                report.vouched,
                report.unvouched,
                report.forgotten,
            )
        finally:
            lib.llvs_verify_report_free(pointer.value)

    @staticmethod
    def salvage(
        path: PathLike,
        into: PathLike,
        *,
        storage: Union[StorageKind, Storage] = "file",
        into_storage: Union[StorageKind, Storage] = "file",
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> SalvageReport:
        """Writes everything that is whole in the damaged store at `path` into a new one at `into`; the damaged store is only read.

        Also works if the store cannot be opened. Versions that are whole, with all their ancestors, are copied unchanged. Whole versions
        with lost ancestors are copied, too, and are pending in the new store until an exchange brings those. For each line of other
        versions, a new version is made of what can be read, with "__llvs_salvaged" in its metadata. No version in the new store ever shows
        another state than the version of that id had.

        Raises SnapshotError (there are versions at `into`), CancelledError, NotFoundError, StorageError, PermissionDeniedError; then delete
        the new store. Cost: reads the damaged store up to three times.
        """
        pointer = ctypes.c_void_p()
        source = OpeningOptions(storage, read_only=True, create=False, compaction="on_request")
        target = OpeningOptions(into_storage)
        try:
            with Control(progress, cancel) as control:
                lib.llvs_store_salvage(
                    path_bytes(path), byref(source.struct), path_bytes(into), byref(target.struct), control, byref(pointer)
                )
        finally:
            source.close()
            target.close()
        try:
            report = _structs.llvs_salvage_report.from_address(pointer.value or 0)
            made = [_structs.llvs_salvaged.from_address(address) for address in _pages.addresses(report.made, report.made_count)]
            return SalvageReport(
                report.versions,
                report.waiting,
                tuple(Salvaged(text(one.original), text(one.version), bool(one.is_complete)) for one in made),
                _damages(report.damages, report.damage_count),
            )
        finally:
            lib.llvs_salvage_report_free(pointer.value)

    def compact(self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None) -> CompactionReport:
        """Compacts small files of the store into large ones, and deletes files that were compacted longer ago than the grace period.

        This also happens automatically, as `compaction` of the constructor says; only the file storage has anything to do. Readers and
        other processes continue meanwhile; if another process is compacting, this does nothing. Progress is in bytes written.

        Raises CancelledError, PermissionDeniedError (the store was opened read-only), BusyError (from within the progress callback of a
        compaction), StorageError; nothing is lost then. Cost: reads and writes the contents of small files.
        """
        done = _structs.llvs_compaction_report(struct_size=ctypes.sizeof(_structs.llvs_compaction_report))
        with self._call as pointer, Control(progress, cancel) as control:
            lib.llvs_store_compact(pointer, control, byref(done))
        marker = _pages.take_buffer(done.sync_marker)
        return CompactionReport(
            done.folded, done.made, done.deleted, done.bytes_written, done.bytes_deleted, None if marker is None else decode(marker)
        )

    def write_snapshot(
        self, directory: PathLike, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Snapshot:
        """Writes a snapshot of the whole store into a directory: a manifest and chunks of at most 5 MB. Raises StorageError,
        CancelledError.
        """
        with self._folder(directory, create=True) as folder:
            return folder.put_snapshot(progress=progress, cancel=cancel)

    def restore_snapshot(
        self, directory: PathLike, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Snapshot:
        """Restores a snapshot into this store, which must be empty, hold one version, or hold a part of this snapshot. If the snapshot is
        damaged, the store is unchanged. Versions that do not match their content ids are skipped, with their descendants, and reported in
        `problems`. If a restore is cancelled or fails later, the versions added so far stay, and it can be called again.

        Raises SnapshotError, StorageError, CancelledError.
        """
        with self._folder(directory, create=False) as folder:
            return folder.restore_snapshot(progress=progress, cancel=cancel)

    def _folder(self, directory: PathLike, *, create: bool) -> llvs.Exchange:
        """Returns an exchange with a directory, for the snapshot in it."""
        return llvs.Exchange(cast(llvs.Store, self), folder_url(directory), create=create)

    def import_store(
        self,
        directory: PathLike,
        *,
        decode: Optional[Decoder] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> llvs.exchange.ExchangeResult:
        """Adds the versions of a store directory of another implementation of this design, which is only read.

        Its values may be in files or in SQLite databases. `decode(data)` decompresses values that an Apple system compressed (LZFSE). It
        returns the decompressed bytes, or None if the data is not compressed: then the data is used unchanged. By default the package
        `pyliblzfse` does that, if it is installed. Without either, such values are problems with the code `ErrorCode.UNSUPPORTED`.

        Raises NotFoundError, StorageError, CancelledError, and what `decode` raises; items that cannot be added are problems in the result.
        """
        from ..exchange.results import take_result

        options = _structs.llvs_import_options(struct_size=ctypes.sizeof(_structs.llvs_import_options))
        with self._call as pointer, Control(progress, cancel) as control:
            place = path_bytes(directory)
            put_decoder(options, decode)
            return take_result(lib.llvs_store_import, pointer, place, ctypes.byref(options), control)
