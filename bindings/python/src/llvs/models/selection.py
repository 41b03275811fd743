"""Finds objects of a collection by their contents, with the indexes of the store's rules."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Callable, Generic, Iterator, Mapping, NamedTuple, Optional, TypeVar

import llvs

from .. import errors
from ..indexes.keys import MISSING
from ..store.versions import AnyVersion
from ._codecs import Member, Ordered, Spelled
from ._json import Number
from ._renames import Renames
from .definition import Definition
from .errors import Mismatch

_Model = TypeVar("_Model")


def _segment(name: str) -> str:
    """A member's name in a pointer of an index."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return "/" + (escaped.replace("*", "~2") if escaped in ("*", "**") else escaped)


class _Range(NamedTuple):
    """The bounds of a member, as parts of a key; None: no bound."""

    name: str
    low: Any
    high: Any

    @property
    def bounds(self) -> dict[str, Any]:
        """Returns the arguments of `Index.range`. An open side ends with the type of the other one."""
        sample = self.high if self.low is None else self.low
        least, beyond = ("", ()) if isinstance(sample, str) else (True, "")
        asked: dict[str, Any] = {"low": self.low, "high": self.high}
        if self.low is None:
            asked |= {"low": least, "low_open": least is True}
        if self.high is None:
            asked |= {"high": beyond, "high_open": beyond == ""}
        return asked


class Selection(Generic[_Model]):
    """Some objects of a collection, at one version: `Collection.where` and `Collection.order_by` make it. Iterates over ids.

    A selection needs an index whose first parts are the given members, then that of `between`, then those of `order_by`. An index may also
    have a member in its `where`, instead of a part. If the store's rules define no such index, using the selection raises NotFoundError; it
    never searches by reading all values. Strings are compared as in the index: with `"text": "fold"` without case and diacritics.

    An object that lacks the first part of an index is not found. A member that is None is omitted from the JSON if None is its default; so
    `where(due=None)` needs an index with another member before it, or one with `"where": {"/due": {"present": false}}`.
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
        range: Optional[_Range] = None,
    ) -> None:
        """Called by `Collection`."""
        self._coordinator, self._definition, self._version, self._renames = coordinator, definition, version, renames
        self._equal, self._order, self._reverse, self._range = dict(equal), order, reverse, range
        for name in (*self._equal, *order):
            self._pointer(name)
        for name, value in self._equal.items():
            member = self._member(name)
            if value is None and member is not None and not any(part == "*" for part, _ in member.codec.parts()):
                self._part(name, None)

    @property
    def version(self) -> str:
        """The id of the version: the one that was current when this was made, or that of `at`."""
        return self._version

    def at(self, version: AnyVersion) -> Selection[_Model]:
        """Returns the same selection at another version."""
        id = version if isinstance(version, str) else version.id
        return Selection(self._coordinator, self._definition, id, self._renames, self._equal, self._order, self._reverse, self._range)

    def order_by(self, *names: str, reverse: bool = False) -> Selection[_Model]:
        """Returns the same selection in the order of these members, or the reverse."""
        return Selection(self._coordinator, self._definition, self._version, self._renames, self._equal, names, reverse, self._range)

    def between(self, name: str, low: Any = None, high: Any = None) -> Selection[_Model]:
        """Returns the objects of the selection with a member of at least `low` and at most `high`, in the order of the member; None: no
        bound on that side.

            tasks.where(done=False).between("due", date(2026, 1, 1), date(2026, 12, 31))

        For strings, numbers, dates, and for moments that are written so that their texts are in order: a `datetime` or `time` with
        `Pick("max")` or `Pick("min")`. Raises TypeError for another member, and for a bound that is not one of its values; ValueError
        without any bound.
        """
        if low is None and high is None:
            raise ValueError(f"{name}: give a low or a high bound")
        member = self._member(name)
        if member is not None and isinstance(member.codec, Spelled) and not isinstance(member.codec, Ordered):
            if member.codec.type in (datetime, time):
                raise TypeError(
                    f"{name}: times are compared as they are written, which is not their order; make the member "
                    f"Annotated[{member.codec.type.__name__}, llvs.models.Pick('max')], which writes them in order"
                )
        bounds = [None if bound is None else self._part(name, bound) for bound in (low, high)]
        for bound in bounds:
            if isinstance(bound, bool) or not isinstance(bound, (str, int, float, Decimal, type(None))):
                raise TypeError(f"{name}: a bound is a number, a string or a date, not {bound!r}")
        if len({isinstance(bound, str) for bound in bounds if bound is not None}) > 1:
            raise TypeError(f"{name}: the bounds are of two types")
        range = _Range(name, *bounds)
        return Selection(self._coordinator, self._definition, self._version, self._renames, self._equal, self._order, self._reverse, range)

    def _member(self, name: str) -> Optional[Member]:
        """Returns a member of the model; None if the model does not know its members."""
        fields = getattr(self._definition._codec, "fields", None)
        if fields is None:
            return None
        if name not in fields:
            raise TypeError(f"{self._definition.model.__name__} has no member {name!r}")
        found: Member = fields[name][0]
        return found

    def _pointer(self, name: str) -> str:
        member = self._member(name)
        return _segment(name if member is None else member.name or name)

    def _part(self, name: str, value: Any) -> Any:
        """Returns the value of a member as in JSON."""
        member = self._member(name)
        if member is not None:
            try:
                value = member.encode(value)
            except Mismatch as problem:
                raise TypeError(f"{name}: {problem.why}") from None
        return Decimal(value.text) if isinstance(value, Number) else value

    def _parts(self, name: str, pointer: str, is_first: bool) -> list[Any]:
        """Returns the parts of keys that an index may have for objects whose member has the value."""
        value = self._equal[name]
        if pointer.endswith("/*"):
            return [value]  # elements of lists and sets are given as they are
        part = self._part(name, value)
        return [part] if part is not None or is_first else [MISSING, None]

    def _may_lack(self, pointer: str) -> bool:
        """Returns whether objects of the model may lack the member at the pointer."""
        for name, (member, _) in getattr(self._definition._codec, "fields", {}).items():
            if pointer == _segment(member.name or name):
                return not member.writes_null
        return True

    def _declared(self, version: str) -> dict[str, Any]:
        rules = self._coordinator.store.schema(version).data
        found = json.loads(rules, parse_float=Decimal).get("indexes") if rules else None
        return found if isinstance(found, dict) else {}

    def _said(self, conditions: Any) -> Optional[set[str]]:
        """Returns the members whose wanted values the `where` of an index requires; None if it requires anything else."""
        said, pointers = set(), {self._pointer(name): name for name in self._equal}
        for pointer, condition in (conditions.items() if isinstance(conditions, dict) else ()):
            name = pointers.get(pointer)
            if name is None:
                return None
            part = self._part(name, self._equal[name])
            if isinstance(condition, dict):
                if condition != {"present": False} or part is not None:
                    return None
            elif type(condition) is bool or type(part) is bool or condition is None or part is None:
                if condition is not part:
                    return None
            elif condition != part:
                return None
            said.add(name)
        return said

    def _fit(self, index: Any) -> Optional[list[tuple[str, str]]]:
        """The members that the first parts of an index are, each with its pointer; None where the index does not serve."""
        on = index.get("on") if isinstance(index, dict) else None
        if not isinstance(on, list) or index.get("prefix") != self._definition.prefix:
            return None
        said = self._said(index.get("where"))
        if said is None:
            return None
        equal = {self._pointer(name) + end: name for name in self._equal if name not in said for end in ("", "/*")}
        size, ordered = len(self._equal) - len(said), [*([self._range.name] if self._range else []), *self._order]
        first = [(pointer, equal.get(pointer)) for pointer in on[:size] if isinstance(pointer, str)]
        found = [(pointer, name) for pointer, name in first if name is not None]
        if len({name for _, name in found}) != size or len(found) != size:
            return None
        order = [self._pointer(name) for name in dict.fromkeys(ordered)]
        if on[size : size + len(order)] != order:
            return None
        if size == 0 and not order and self._may_lack(on[0]):
            return None
        if found and self._equal[found[0][1]] is None and not found[0][0].endswith("/*") and self._may_lack(on[0]):
            return None
        return found

    def _found(self) -> list[llvs.indexes.Found]:
        for version in (self._version, self._coordinator._current_id):
            fitting = []
            for name, index in sorted(self._declared(version).items()):
                parts = self._fit(index)
                if parts is not None:
                    fitting.append((index.get("text") == "fold", len(index["on"]), name, parts, index["on"]))
            if fitting:
                _, _, name, parts, on = min(fitting)
                several = any("/*" in pointer for pointer in on)
                each = [self._parts(member, pointer, place == 0) for place, (pointer, member) in enumerate(parts)]
                asked = list(itertools.product(*each))
                opened = self._coordinator.index(name)
                return [self._ask(opened, key, several) for key in (reversed(asked) if self._reverse else asked)]
        wanted = [self._pointer(name) for name in dict.fromkeys((*self._equal, *([self._range.name] if self._range else []), *self._order))]
        raise errors.NotFoundError(
            f"no index of the values under {self._definition.prefix!r} begins with {', '.join(wanted) or 'a member that all have'}: "
            "declare one under \"indexes\" in the rules of the store"
        )

    def _ask(self, index: llvs.indexes.Index, key: tuple[Any, ...], several: bool) -> llvs.indexes.Found:
        if self._range is None:
            return index.find(*key, at=self._version, reverse=self._reverse, unique=several)
        return index.range(*key, at=self._version, reverse=self._reverse, unique=several, **self._range.bounds)

    def __iter__(self) -> Iterator[str]:
        size = len(self._definition.prefix)
        return (id[size:] for found in self._found() for id in found)

    def items(self) -> Iterator[tuple[str, _Model]]:
        """Returns ids and objects. Raises DecodeError at a value that cannot be read."""
        size, renames = len(self._definition.prefix), self._renames(self._version)
        for found in self._found():
            for value in found.values():
                yield value.id[size:], self._definition.read(value.data, value.id, value.stored_version, renames)

    def values(self) -> Iterator[_Model]:
        """Returns the objects. Raises DecodeError at a value that cannot be read."""
        return (object for _, object in self.items())

    def first(self) -> Optional[_Model]:
        """Returns the first object, or None."""
        for found in self._found():
            value = found.first()
            if value is not None:
                return self._definition.read(value.data, value.id, value.stored_version, self._renames(self._version))
        return None

    def count(self) -> int:
        """Returns how many there are."""
        return sum(found.count() for found in self._found())

    def __repr__(self) -> str:
        asked = [f"{name}={value!r}" for name, value in self._equal.items()]
        if self._range is not None:
            asked.append(f"{self._range.low!r} <= {self._range.name} <= {self._range.high!r}")
        return f"<{self._definition.model.__name__} where {', '.join(asked) or 'all'} at version {self._version}>"
