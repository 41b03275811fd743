"""The objects of a model at one version, as a read-only mapping from ids to objects."""

from __future__ import annotations

from collections.abc import ItemsView, ValuesView
from typing import Any, Generic, Iterator, Mapping, Optional, TypeVar, Union, overload

import llvs

from ._renames import Renames
from .definition import Definition
from .errors import DecodeError

_Model = TypeVar("_Model")
_Default = TypeVar("_Default")


class ModelsAt(Mapping[str, _Model], Generic[_Model]):
    """The objects of a model at a version: a read-only mapping from ids, without the prefix. It never changes."""

    def __init__(self, state: llvs.store.State, definition: Definition[_Model], renames: Optional[Renames]) -> None:
        self._state, self._definition, self._renames = state.prefix(definition.prefix), definition, renames

    @property
    def version(self) -> str:
        """The id of the version."""
        return self._state.version

    def __getitem__(self, id: str) -> _Model:
        found = self._state.value(self._definition.prefix + id) if isinstance(id, str) else None
        if found is None:
            raise KeyError(id)
        return self._definition.read(found.data, found.id, found.stored_version, self._renames)

    @overload
    def get(self, id: str, /) -> Optional[_Model]: ...

    @overload
    def get(self, id: str, /, default: Union[_Model, _Default]) -> Union[_Model, _Default]: ...

    def get(self, id: str, /, default: Any = None) -> Any:
        """The object under an id, or the default. Raises DecodeError for a value that cannot be read."""
        return self[id] if id in self else default

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._definition.prefix + id in self._state

    def __iter__(self) -> Iterator[str]:
        size = len(self._definition.prefix)
        return (id[size:] for id in self._state)

    def __len__(self) -> int:
        return len(self._state)

    def values(self) -> ValuesView[_Model]:
        """The objects, fetched by the page. Raises DecodeError at an object that cannot be read; `problems` lists them all."""
        return _Values(self)

    def items(self) -> ItemsView[str, _Model]:
        """Ids and objects, fetched by the page. Raises DecodeError as `values`."""
        return _Items(self)

    def problems(self) -> dict[str, DecodeError]:
        """The values that cannot be read as objects of the model, by id, with why. Reads them all."""
        return self.read_all()[1]

    def read_all(self) -> tuple[dict[str, _Model], dict[str, DecodeError]]:
        """All objects that can be read, by id, and why the others cannot: for lists that one bad value must not empty."""
        found: dict[str, _Model] = {}
        problems: dict[str, DecodeError] = {}
        for id, data in self._state.items():
            try:
                found[id[len(self._definition.prefix) :]] = self._definition.read(data, id, None, self._renames)
            except DecodeError as problem:
                problems[id[len(self._definition.prefix) :]] = problem
        return found, problems

    def _walk(self) -> Iterator[tuple[str, _Model]]:
        size = len(self._definition.prefix)
        for id, data in self._state.items():
            yield id[size:], self._definition.read(data, id, None, self._renames)

    def __repr__(self) -> str:
        return f"<{self._definition.model.__name__} under {self._definition.prefix!r} at version {self._state.version}>"


class _Items(ItemsView[str, _Model]):
    def __iter__(self) -> Iterator[tuple[str, _Model]]:
        models: ModelsAt[_Model] = self._mapping  # type: ignore[attr-defined]
        return models._walk()


class _Values(ValuesView[_Model]):
    def __iter__(self) -> Iterator[_Model]:
        models: ModelsAt[_Model] = self._mapping  # type: ignore[attr-defined]
        return (one for _, one in models._walk())
