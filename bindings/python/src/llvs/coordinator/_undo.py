"""Undoing what a device saved through its coordinator."""

from __future__ import annotations

import ctypes
from typing import Any, Literal, Optional

from .. import _abi
from .._abi import metadata as _metadata
from .._abi.memory import version_bytes
from ..control import CancelToken, Control, ProgressCallback
from ..merge.options import MergeOptions, Reverted, take_reverted
from ..store.versions import AnyVersion
from ._store import CoordinatorStore

lib = _abi.lib
byref = ctypes.byref


class CoordinatorUndo(CoordinatorStore):
    """Undo, redo and revert."""

    def undo(
        self,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Optional[Reverted]:
        """Reverts the last save of this device that was not undone yet; later changes of other devices stay. None: there is nothing to
        undo.

        It makes a new version, as `Store.revert` does, which becomes current. The save is found in the history, so undo also works after a
        restart and after syncs. If nothing of the save is left to revert, the result has no version, nothing is stored, and the next call
        continues with the save before, also in another process. If the save was merged with changes of others, and theirs prevail, the
        result has no version either, but a version without changes records the undo, so that the save does not return if the others undo
        theirs.

        Raises InvalidArgumentError (the coordinator has no device), CancelledError, StorageError; nothing is stored then. Cost: the
        versions since that save, and what it changed.
        """
        return self._undo(lib.llvs_coordinator_undo, metadata, progress, cancel)

    def redo(
        self,
        *,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Optional[Reverted]:
        """Reverts the last undo of this device, if it saved nothing since. None: there is nothing to redo. Errors as for `undo`."""
        return self._undo(lib.llvs_coordinator_redo, metadata, progress, cancel)

    def next_undo(
        self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Optional[Reverted]:
        """Returns what `undo` would revert, in `versions` and `description`; None: nothing. Stores nothing. Errors as for `undo`."""
        return self._undo(lib.llvs_coordinator_undo, None, progress, cancel, only_tell=True)

    def next_redo(
        self, *, progress: Optional[ProgressCallback] = None, cancel: Optional[CancelToken] = None
    ) -> Optional[Reverted]:
        """Returns what `redo` would revert, as `next_undo` does."""
        return self._undo(lib.llvs_coordinator_redo, None, progress, cancel, only_tell=True)

    @property
    def can_undo(self) -> bool:
        """Returns whether there is a save of this device to undo. Errors and cost as for `undo`."""
        return self.next_undo() is not None

    @property
    def can_redo(self) -> bool:
        """Returns whether there is an undo of this device to revert. Errors and cost as for `undo`."""
        return self.next_redo() is not None

    @property
    def undo_description(self) -> Optional[str]:
        """Returns the description of the save that `undo` would revert; None if it has none, or there is no save."""
        found = self.next_undo()
        return found.description if found else None

    @property
    def redo_description(self) -> Optional[str]:
        """Returns the description of the save that `redo` would restore; None if it has none, or there is no undo to revert."""
        found = self.next_redo()
        return found.description if found else None

    def _undo(
        self,
        function: Any,
        metadata: Optional[_metadata.Metadata],
        progress: Optional[ProgressCallback],
        cancel: Optional[CancelToken],
        *,
        only_tell: bool = False,
        version: bytes = b"",
        parent: Literal[1, 2] = 1,
    ) -> Optional[Reverted]:
        control = Control(progress, cancel)
        options = MergeOptions(metadata, parent=parent, version=version, control=control)
        found = ctypes.c_void_p()
        with self._call as pointer, control:
            function(pointer, int(only_tell), options.reference, None, byref(found))
        return take_reverted(found.value) if found.value else None

    def revert(
        self,
        version: AnyVersion,
        *,
        parent: Literal[1, 2] = 1,
        metadata: Optional[_metadata.Metadata] = None,
        progress: Optional[ProgressCallback] = None,
        cancel: Optional[CancelToken] = None,
    ) -> Reverted:
        """Reverts a version, by whatever device, in a new version that becomes current. As `Store.revert`.

        If the version is an undo of this device, the undone save is restored, and is the next one that `undo` reverts.
        """
        found = self._undo(lib.llvs_coordinator_undo, metadata, progress, cancel, version=version_bytes(version), parent=parent)
        assert found is not None
        return found
