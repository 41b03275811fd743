"""Objects of a collection found by what is in them, through the indexes that the store declares."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Callable, Generic, Iterator, Mapping, Optional, TypeVar

import llvs

from .. import errors
from ..versions import AnyVersion
from ._json import Number
from ._renames import Renames
from .definition import Definition
from .errors import Mismatch

_Model = TypeVar("_Model")


def _segment(name: str) -> str:
    """A member's name in a pointer of an index."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return "/" + (escaped.replace("*", "~2") if escaped in ("*", "**") else escaped)


class Selection(Generic[_Model]):
    """Some objects of a collection, at one version: `Collection.where` and `Collection.order_by` make it. Iterates over ids.

    What is found is what an index finds: one whose first parts are the members given, and whose next are those to order by. Where the store
    declares none, NotFoundError says so when it is used; nothing is ever found by reading all values. Strings are compared as the index
    does, with `"text": "fold"` without case and diacritics. An object that lacks the first part of an index is not in it.
    """

    def __init__(
        self,
        coordinator: llvs.Coordinator,
        definition: Definition[_Model],
        version: str,
        renames: Callable[[str], Optional[Renames]],
        equal: Mapping[str, Any],
        order: tuple[str, ...] = (),
        reverse: bool = False,
    ) -> None:
        """What `Collection` calls."""
        self._coordinator, self._definition, self._version, self._renames = coordinator, definition, version, renames
        self._equal, self._order, self._reverse = dict(equal), order, reverse
        for name, value in self._equal.items():
            if value is None:
                raise ValueError(f"{name}: objects without a member are not found by an index; give a value")
            self._pointer(name)

    @property
    def version(self) -> str:
        """The version: the one that was current when this was made, or that of `at`."""
        return self._version

    def at(self, version: AnyVersion) -> Selection[_Model]:
        """The same at another version."""
        id = version if isinstance(version, str) else version.id
        return Selection(self._coordinator, self._definition, id, self._renames, self._equal, self._order, self._reverse)

    def order_by(self, *names: str, reverse: bool = False) -> Selection[_Model]:
        """In the order of these members, or the reverse of it."""
        return Selection(self._coordinator, self._definition, self._version, self._renames, self._equal, names, reverse)

    def _pointer(self, name: str) -> str:
        fields = getattr(self._definition._codec, "fields", None)
        if fields is None:
            return _segment(name)
        if name not in fields:
            raise TypeError(f"{self._definition.model.__name__} has no member {name!r}")
        return _segment(fields[name][0].name or name)

    def _part(self, name: str) -> Any:
        """The value of a member as it stands in JSON."""
        fields, value = getattr(self._definition._codec, "fields", None), self._equal[name]
        if fields is not None:
            try:
                value = fields[name][0].encode(value)
            except Mismatch as problem:
                raise TypeError(f"{name}: {problem.why}") from None
        return Decimal(value.text) if isinstance(value, Number) else value

    def _declared(self, version: str) -> dict[str, Any]:
        rules = self._coordinator.store.schema(version).data
        found = json.loads(rules).get("indexes") if rules else None
        return found if isinstance(found, dict) else {}

    def _found(self) -> llvs.Found:
        equal, order = {self._pointer(name): name for name in self._equal}, [self._pointer(name) for name in self._order]
        # Elements of lists and sets are given as they are.
        equal |= {pointer + "/*": name for pointer, name in equal.items()}
        size = len(self._equal)
        for version in (self._version, self._coordinator.current_version):
            fitting = []
            for name, index in sorted(self._declared(version).items()):
                on = index.get("on") if isinstance(index, dict) else None
                if not isinstance(on, list) or index.get("prefix") != self._definition.prefix or index.get("where"):
                    continue
                first = [equal.get(pointer) for pointer in on[:size] if isinstance(pointer, str)]
                if len(set(first)) == size and None not in first and on[size : size + len(order)] == order:
                    fitting.append((index.get("text") == "fold", len(on), name, on))
            if fitting:
                _, _, name, on = min(fitting)
                parts = [self._equal[equal[one]] if one.endswith("/*") else self._part(equal[one]) for one in on[:size]]
                several = any("/*" in pointer for pointer in on)
                return self._coordinator.index(name).find(*parts, at=self._version, reverse=self._reverse, unique=several)
        wanted = [self._pointer(name) for name in self._equal] + order
        raise errors.NotFoundError(
            f"no index of the values under {self._definition.prefix!r} begins with {', '.join(wanted)}: declare one under \"indexes\" in "
            "the rules of the store"
        )

    def __iter__(self) -> Iterator[str]:
        size = len(self._definition.prefix)
        return (id[size:] for id in self._found())

    def items(self) -> Iterator[tuple[str, _Model]]:
        """Ids and objects. Raises DecodeError at a value that cannot be read."""
        size, renames = len(self._definition.prefix), self._renames(self._version)
        for found in self._found().values():
            yield found.id[size:], self._definition.read(found.data, found.id, found.stored_version, renames)

    def values(self) -> Iterator[_Model]:
        """The objects. Raises DecodeError at a value that cannot be read."""
        return (object for _, object in self.items())

    def first(self) -> Optional[_Model]:
        """The first object, or None."""
        found = self._found().first()
        if found is None:
            return None
        return self._definition.read(found.data, found.id, found.stored_version, self._renames(self._version))

    def count(self) -> int:
        """How many there are."""
        return self._found().count()

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value!r}" for name, value in self._equal.items())
        return f"<{self._definition.model.__name__} where {asked or 'all'} at version {self._version}>"
