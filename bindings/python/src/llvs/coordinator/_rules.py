"""The rules for merging of a coordinator's store, and the conflicts that they left open."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional, Union

import llvs

from .. import _abi, errors
from .._abi import metadata as _metadata
from .._generated import structs as _structs
from ..store.versions import SavedVersion
from ..words import Choice
from ._store import MOVE_SIZE, CoordinatorStore

lib = _abi.lib
byref = ctypes.byref


class CoordinatorRules(CoordinatorStore):
    """The rules, and open conflicts."""

    def schema(self) -> llvs.merge.Schema:
        """Returns the rules for merging of the store at the current version. As `Store.schema`."""
        return self.store.schema(self._current_id)

    def register_schema(self, rules: Union[Mapping[str, Any], bytes]) -> llvs.merge.Schema:
        """Adds rules for merging ({"merge": 1, "ids": {...}}) to those of the store, as `Store.schema` describes.

        New rules are saved as a version of their own, which becomes current; rules that the store already has are not saved again. If the
        two contradict each other about one pattern, the store's rule stays, and `contradictions` of the result lists it: to change it, save
        the value "__llvs_schema".

        Before the first save, the rules are held in memory, and written directly before the first save, or when the first content that
        arrives is merged. So devices that start apart with the same rules make the same first version.

        They are also held in memory while the rules of the store have an unknown version: those stay, and are the `problem` of the result.
        Each merge then raises UnsupportedError, after all its other work.

        Raises InvalidArgumentError, UnsupportedError, StorageError; nothing is stored then.
        """
        from ..merge.documents import rules_text, take_schema

        text = rules_text(rules)
        made, move = ctypes.c_void_p(), _structs.llvs_move(struct_size=MOVE_SIZE)
        with self._call as pointer:
            lib.llvs_coordinator_register_schema(pointer, text, byref(move), byref(made))
        return take_schema(made.value)

    def open_conflicts(self) -> llvs.merge.Conflicts:
        """Returns the conflicts that are open at the current version. As `Store.open_conflicts`."""
        return self.store.open_conflicts(self._current_id)

    def choose(
        self,
        conflict: Union[llvs.merge.Conflict, llvs.models.ObjectConflict],
        choice: Choice,
        *,
        metadata: Optional[_metadata.Metadata] = None,
    ) -> SavedVersion:
        """Closes an open conflict by a save: the choice ("newer", "older" or "result") becomes current.

        Raises MovedError if the place has other contents by now, InvalidArgumentError, and what `save` raises. As `Store.choose`.
        """
        while True:
            at = self._current_id
            changes = self.store.choices(conflict, choice, at=at)
            try:
                saved = self.save(changes=changes, metadata=metadata, expected=at)
            except errors.MovedError:
                # Another call saved or merged meanwhile: retry at the new version.
                continue
            assert saved is not None
            return saved
