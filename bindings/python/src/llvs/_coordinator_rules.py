"""The rules for merging that a coordinator's store holds, and the conflicts that they left open."""

from __future__ import annotations

import ctypes
from typing import Any, Mapping, Optional, Union

import llvs

from . import _abi, _metadata, _structs, errors
from ._coordinator_store import MOVE_SIZE, CoordinatorStore
from .versions import SavedVersion
from .words import Choice

lib = _abi.lib
byref = ctypes.byref


class CoordinatorRules(CoordinatorStore):
    """The rules, and open conflicts."""

    def schema(self) -> llvs.Schema:
        """The rules for merging that the store holds at the current version. As `Store.schema`."""
        return self.store.schema(self._current_id)

    def register_schema(self, rules: Union[Mapping[str, Any], bytes]) -> llvs.Schema:
        """Adds rules for merging ({"merge": 1, "ids": {...}}) to those of the store, as `Store.schema` says.

        What is new is saved as a version of its own, which becomes current; what the store holds already is not saved again. Where the two
        say different things about one pattern the store's rule stands, and the result tells of it in `contradictions`: to change it, save
        the value "__llvs_schema".

        While nothing was ever saved, the rules are remembered, and written right before the first save, or when the first content that
        arrives is merged. Devices that start apart with the same rules then make one and the same first version.

        So they are while the rules of the store are of a number that is not known here: those stand, and are the `problem` of the result.
        Each merge raises UnsupportedError then, when all else is done.

        Raises InvalidArgumentError, UnsupportedError, StorageError; nothing is stored then.
        """
        from .documents import rules_text, take_schema

        text = rules_text(rules)
        made, move = ctypes.c_void_p(), _structs.llvs_move(struct_size=MOVE_SIZE)
        with self._call as pointer:
            lib.llvs_coordinator_register_schema(pointer, text, byref(move), byref(made))
        return take_schema(made.value)

    def open_conflicts(self) -> llvs.Conflicts:
        """The conflicts that are open at the current version. As `Store.open_conflicts`."""
        return self.store.open_conflicts(self._current_id)

    def choose(
        self,
        conflict: Union[llvs.Conflict, llvs.ObjectConflict],
        choice: Choice,
        *,
        metadata: Optional[_metadata.Metadata] = None,
    ) -> SavedVersion:
        """Closes an open conflict by a save: what was chosen ("newer", "older", or "result" for what stands) becomes current.

        Raises MovedError when something else stands there by now, InvalidArgumentError, and what `save` raises. As `Store.choose`.
        """
        while True:
            at = self._current_id
            changes = self.store.choices(conflict, choice, at=at)
            try:
                saved = self.save(changes=changes, metadata=metadata, expected=at)
            except errors.MovedError:
                # Somebody else saved or merged meanwhile: looked at again, there.
                continue
            assert saved is not None
            return saved
