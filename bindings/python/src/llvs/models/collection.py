"""Collections: the values of a model, as a mutable mapping from ids to objects."""

from __future__ import annotations

import warnings
from collections.abc import ItemsView, ValuesView
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Iterable, Iterator, Mapping, MutableMapping, Optional, TypeVar, Union, overload

import llvs

from .. import errors
from .._abi import metadata as _metadata
from ..merge.documents import Conflict, Schema
from ..store.versions import AnyVersion, ChangeKind, SavedVersion, Version
from ._json import write
from ._renames import Renames
from .at import ModelsAt
from .conflict import ObjectConflict, object_conflict
from .definition import Reading, definition_of
from .errors import DecodeError, SchemaWarning
from .schema import SCHEMA_ID, Contradiction, contradictions_of, schema_of, taken_back
from .selection import Selection

_Model = TypeVar("_Model")
_Default = TypeVar("_Default")


@dataclass(frozen=True)
class PastObject(Generic[_Model]):
    """An object as it was at a version that changed it."""

    #: The version that changed it.
    version: Version
    #: The kind of change; a merge records "preserve" and "preserve_removal".
    kind: ChangeKind
    #: The object at the version; None if it was removed, or cannot be read.
    object: Optional[_Model]
    #: Why it cannot be read; None if it can, or was removed.
    problem: Optional[DecodeError]


class Collection(MutableMapping[str, _Model], Generic[_Model]):
    """The objects of a model at the current version of a coordinator, by id without the prefix; made by `Coordinator.collection`.

        people = coordinator.collection(Contact)
        people["1"] = Contact("Ann")                # saved at once, as one version
        with people.edit("1") as ann:               # what the block changes is saved at its end, and nothing else
            ann.tags.add("friend")
        del people["1"]

    An object that was read is a copy: changing it changes nothing in the store. To change an object use `edit`, since that saves only the
    differences from the object read, and keeps changes from elsewhere. Assigning an object sets all members that the model knows. Members
    that the model does not know, such as those of a newer app version, are always kept, as they are written.

    Each read is at the version that is current at that moment; `at()` reads at one fixed version. Safe from all threads.
    """

    #: The rules of the model that contradict those of the store, as of the last comparison. The store's rules win.
    contradictions: tuple[Contradiction, ...]

    def __init__(self, coordinator: llvs.Coordinator, model: type[_Model]) -> None:
        """coordinator: the coordinator of the values. model: a class with `llvs.models.model`."""
        self._coordinator, self._definition = coordinator, definition_of(model)
        self._schema = write(schema_of(model))
        self._compared: Optional[tuple[Optional[str], Schema]] = None
        self._renamed: Optional[tuple[str, Optional[Renames]]] = None
        self._told: set[str] = set()
        self.contradictions = ()
        self._register()

    @property
    def model(self) -> type[_Model]:
        """The class of its objects."""
        return self._definition.model

    @property
    def prefix(self) -> str:
        """The prefix of the ids of its values in the store."""
        return self._definition.prefix

    @property
    def coordinator(self) -> llvs.Coordinator:
        """The coordinator with which it reads and saves."""
        return self._coordinator

    def at(self, version: Optional[AnyVersion] = None) -> ModelsAt[_Model]:
        """Returns the objects at the version that is current now, or at another, as a read-only mapping. Raises UnknownVersionError."""
        state = self._coordinator.at(version)
        return ModelsAt(state, self._definition, self._renames(state.version))

    def where(self, **members: Any) -> Selection[_Model]:
        """Selects the objects with these members, with an index of the store's rules; `order_by` sorts them.

            people.where(last="Smith").order_by("first").values()
            people.where(tags="friend").count()                     # of a list or set: one element
            tasks.where(due=None)                                   # those without one: see `Selection`

        Reads at the version that is current now. Raises TypeError for a member that the model does not have, and, when it is used,
        NotFoundError if there is no suitable index: it never searches by reading all values.
        """
        return Selection(self._coordinator, self._definition, self._coordinator._current_id, self._renames, members)

    def order_by(self, *names: str, reverse: bool = False) -> Selection[_Model]:
        """Selects all objects in an index on these members, in its order or the reverse. As `where`."""
        return self.where().order_by(*names, reverse=reverse)

    def between(self, name: str, low: Any = None, high: Any = None) -> Selection[_Model]:
        """Selects the objects with a member of at least `low` and at most `high`. As `Selection.between`."""
        return self.where().between(name, low, high)

    def __getitem__(self, id: str) -> _Model:
        return self.at()[id]

    @overload
    def get(self, id: str, /) -> Optional[_Model]: ...

    @overload
    def get(self, id: str, /, default: Union[_Model, _Default]) -> Union[_Model, _Default]: ...

    def get(self, id: str, /, default: Any = None) -> Any:
        """Returns the object with an id, or the default. Raises DecodeError for a value that cannot be read."""
        return self.at().get(id, default)

    def __contains__(self, id: object) -> bool:
        return id in self.at()

    def __iter__(self) -> Iterator[str]:
        return iter(self.at())

    def __len__(self) -> int:
        return len(self.at())

    def __bool__(self) -> bool:
        return True

    def values(self) -> ValuesView[_Model]:
        """The objects, fetched by the page, at the version that is current now. Raises DecodeError at an object that cannot be read."""
        return self.at().values()

    def items(self) -> ItemsView[str, _Model]:
        """Ids and objects, as `values`."""
        return self.at().items()

    def problems(self) -> dict[str, DecodeError]:
        """Returns the errors of the values that cannot be read as objects of the model, by id. Reads all values."""
        return self.at().problems()

    def read_all(self) -> tuple[dict[str, _Model], dict[str, DecodeError]]:
        """Returns all objects that can be read, by id, and the errors of the others: for lists that one bad value must not empty."""
        return self.at().read_all()

    def history(self, id: str) -> Iterator[PastObject[_Model]]:
        """Returns the history of one object: every version in which it changed, newest first, with the object at that version.

        Includes all versions of the store, also those on branches and those not merged yet. Errors and cost as for `Store.value_history`.
        """
        value_id, store = self._value_id(id), self._coordinator.store
        for version, kind in store.value_history(value_id):
            found = store.value(value_id, at=version)
            object, problem = None, None
            try:
                if found is not None:
                    object = self._definition.read(found.data, value_id, found.stored_version, self._renames(version.id))
            except DecodeError as raised:
                problem = raised
            yield PastObject(version, kind, object, problem)

    def open_conflicts(self) -> dict[str, tuple[ObjectConflict, ...]]:
        """Returns the open conflicts of its objects, by id, with their sides as the model reads them.

        `Coordinator.choose` closes one. As `Store.open_conflicts`.
        """
        found = self._coordinator.open_conflicts()
        return {
            id[len(self.prefix) :]: tuple(object_conflict(self._definition, record) for record in records)
            for id, records in found.items()
            if id.startswith(self.prefix)
        }

    def conflict(self, record: Conflict) -> ObjectConflict:
        """Returns a conflict in one of its objects, such as one from `Store.explain`, with its sides as the model reads them."""
        if not record.id.startswith(self.prefix):
            raise ValueError(f"the conflict is not in an object of this collection: {record.id!r}")
        return object_conflict(self._definition, record)

    def __setitem__(self, id: str, object: _Model) -> None:
        self.save({id: object})

    def __delitem__(self, id: str) -> None:
        if id not in self:
            raise KeyError(id)
        self.save(remove=[id])

    def update(self, *objects: Any, **named: _Model) -> None:
        """Saves several objects, given as for `dict.update`, as one version."""
        self.save(dict(*objects, **named))

    def clear(self) -> None:
        """Removes all objects, as one version."""
        self.save(remove=list(self))

    def save(
        self,
        objects: Optional[Mapping[str, _Model]] = None,
        *,
        remove: Iterable[str] = (),
        metadata: Optional[_metadata.Metadata] = None,
        expected: Optional[AnyVersion] = None,
        group: Optional[str] = None,
        description: Optional[str] = None,
    ) -> Optional[SavedVersion]:
        """Saves objects, and removes others, as one version; returns None if nothing changed.

        metadata, expected, group, description: as for `Coordinator.save`; `expected` is compared even if there is nothing to change.
        Raises TypeError for an object that does not match its model, DecodeError if the stored value cannot be read (to replace it, remove
        it first), and what `Coordinator.save` raises; nothing is saved then.
        """
        if isinstance(remove, str):
            raise TypeError(f"remove takes several ids: remove=[{remove!r}], not remove={remove!r}")
        remove = list(remove)
        for id in (*(objects or {}), *remove):
            self._value_id(id)
        return self._save(dict(objects or {}), {}, remove, expected, metadata=metadata, group=group, description=description)

    @contextmanager
    def edit(
        self,
        id: str,
        default: Optional[_Model] = None,
        *,
        at: Optional[AnyVersion] = None,
        metadata: Optional[_metadata.Metadata] = None,
        group: Optional[str] = None,
        description: Optional[str] = None,
    ) -> Iterator[_Model]:
        """Yields an object, and saves at the end of the block what the block changed; nothing if it raises.

            with people.edit("1") as ann:
                ann.visits += 1

        If others changed the object meanwhile, both edits are merged by the rules at once, as if two devices had made them. Members that
        both changed are open conflicts. default: the object to begin with if there is none; the block gets a copy. If there is an object at
        its end, the block's changes are applied to that.
        at: the version at which the object is read; by default the current one. Pass the version from which a form on the screen was
        filled, so that later changes are kept. If the current version does not descend from it, the block's changes are applied to the
        current object.
        metadata, group, description: as for `Coordinator.save`.
        Raises KeyError if there is no object and no default, UnknownVersionError, and at the end what `save` raises.
        """
        read = self._coordinator._current_id if at is None else at
        found = self._coordinator.value(self._value_id(id), at=read)
        if found is not None:
            renames = self._renames(_id(read))
            object, reading = self._definition.reading(found.data, found.id, found.stored_version, renames)
        elif default is not None:
            object, reading = self._definition.beginning(default, self.prefix + id)
        else:
            raise KeyError(id)
        yield object
        about = {"metadata": metadata, "group": group, "description": description}
        if found is None:
            self._save({id: object}, {id: reading}, [], None, **about)
        else:
            self._save_edit(id, object, reading, read, **about)

    def _save_edit(self, id: str, object: _Model, reading: Reading, read: AnyVersion, **about: Any) -> None:
        """Saves the changes of an edit."""
        value_id = self.prefix + id
        rules = self._rules(self._coordinator._current_id)
        made = self._definition.splice(reading, object, reading.data, value_id, rules.data or self._schema, self._renames(_id(read)))
        update = {} if made is None or made == reading.data else {value_id: made}
        if not update and about["metadata"] is None:
            return
        if rules.changed:
            self._register()
        try:
            self._coordinator.save(update=update, expected=read, merges=True, **about)
        except errors.MovedError:
            self._save({id: object}, {id: reading}, [], None, **about)

    def _save(
        self,
        objects: dict[str, _Model],
        readings: dict[str, Reading],
        remove: list[str],
        expected: Optional[AnyVersion],
        **about: Any,
    ) -> Optional[SavedVersion]:
        """Merges each object into the stored value, and saves; retries if the current version moves meanwhile."""
        while True:
            base = self._coordinator._current_id
            rules = self._rules(base)
            update: dict[str, bytes] = {}
            for id, object in objects.items():
                value_id = self.prefix + id
                there = self._coordinator.value(value_id, at=base)
                reading = readings.get(id)
                if reading is None:
                    reading = Reading(None, None)
                    if there is not None:
                        reading = self._definition.reading(there.data, value_id, there.stored_version, self._renames(base))[1]
                current = None if there is None else there.data
                made = self._definition.splice(reading, object, current, value_id, rules.data or self._schema, self._renames(base))
                if made is not None and (there is None or made != there.data):
                    update[value_id] = made
            if not update and not remove and about["metadata"] is None:
                wanted = base if expected is None else expected if isinstance(expected, str) else expected.id
                if wanted == base:
                    return None
            if rules.changed and expected is None and self._register():
                continue
            try:
                on = base if expected is None else expected
                return self._coordinator.save(update=update, remove=[self.prefix + id for id in remove], expected=on, **about)
            except errors.MovedError:
                if expected is not None:
                    raise

    def _value_id(self, id: str) -> str:
        """Returns the id of the value. Raises TypeError for an object that is not an id."""
        if not isinstance(id, str):
            raise TypeError(f"the ids of {self.model.__name__} objects are strings: {str(id)!r}, not {id!r}")
        return self.prefix + id

    # Rules

    def _rules(self, version: str) -> Schema:
        """Returns the rules at a version together with those of the model."""
        store = self._coordinator.store
        reference = store.reference(SCHEMA_ID, at=version)
        stored = None if reference is None else reference.stored_version
        if self._compared is None or self._compared[0] != stored:
            try:
                found = store.schema(version, self._schema)
            except errors.UnsupportedError as problem:
                self._tell(f"the rules of the store cannot be followed, and stay as they are: {problem}")
                found = Schema(self._schema, stored, False, None, (), None)
            self._compared = (stored, found)
            self.contradictions = contradictions_of(found) + taken_back(self._definition, found.data)
            for one in self.contradictions:
                self._tell(f"{one}; the store's stands")
            if found.problem is not None:
                why, where = found.problem
                self._tell(f"the rules of the store are not valid at {where!r}, so the newest valid ones count: {why}")
        return self._compared[1]

    def _renames(self, version: str) -> Optional[Renames]:
        """Returns the renames with which values of later forms are read at a version; None if there are none."""
        store = self._coordinator.store
        reference = store.reference(SCHEMA_ID, at=version)
        if reference is None:
            return None
        stored, known = reference.stored_version, self._renamed
        if known is None or known[0] != stored:
            try:
                found = Renames(store.schema(version).data, self.prefix)
            except errors.UnsupportedError: # rules of a newer library, which this one cannot use for reading
                found = Renames(None, self.prefix)
            self._renamed = known = (stored, found or None)
        return known[1]

    def _register(self) -> bool:
        """Adds missing rules of the model to the store's; returns True if that made a version."""
        if not self._rules(self._coordinator._current_id).changed:
            return False
        try:
            return self._coordinator.register_schema(self._schema).version is not None
        except (errors.PermissionDeniedError, errors.UnsupportedError):
            return False  # opened for reading, or rules that only a newer library knows

    def _tell(self, text: str) -> None:
        """Issues a warning, once."""
        if text not in self._told:
            self._told.add(text)
            warnings.warn(f"{self.model.__name__}: {text}", SchemaWarning, stacklevel=2)

    def __repr__(self) -> str:
        return f"<Collection of {self.model.__name__} under {self.prefix!r} of {self._coordinator._what()}>"


def _id(version: AnyVersion) -> str:
    return version if isinstance(version, str) else version.id
