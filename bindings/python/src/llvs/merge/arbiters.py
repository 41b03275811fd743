"""Merging: merges as arbiters see them, the built-in arbiters, and arbiters written in Python."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Protocol, Sequence, Union

import llvs

from .. import _abi, errors
from .._abi.memory import copy, decode
from .._generated import constants as c, structs as _structs
from ..store import _pages
from ..store.versions import FORK_KINDS, SIDES, Change, Fork, Reference, Version

lib = _abi.lib


class Forks(Mapping[str, Fork]):
    """The forks of a merge by value id, in byte order of the ids."""

    def __init__(self, forks: dict[str, Fork]) -> None:
        self._forks = forks

    def __getitem__(self, id: str) -> Fork:
        return self._forks[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._forks)

    def __len__(self) -> int:
        return len(self._forks)

    @property
    def conflicting(self) -> dict[str, Fork]:
        """The forks that an arbiter must decide. O(forks)."""
        return {id: fork for id, fork in self._forks.items() if fork.conflicting}

    def __repr__(self) -> str:
        return f"Forks({self._forks!r})"


class Merge:
    """One merge, as an arbiter sees it.

    Attributes that were read stay valid; others raise `ClosedError` after the arbiter has returned.
    """

    def __init__(self, pointer: int) -> None:
        self._pointer: int | None = pointer
        self._forks: Forks | None = None
        self._bases: tuple[Version, ...] | None = None
        self._versions: dict[str, Version] = {}

    def _get(self) -> Any:
        """The `llvs_merge`."""
        if self._pointer is None:
            raise errors.ClosedError("a merge can be looked at only while its arbiter resolves it")
        return _structs.llvs_merge.from_address(self._pointer)

    def _version(self, name: str) -> Version:
        if name not in self._versions:
            self._versions[name] = _pages.version_at(getattr(self._get(), name))
        return self._versions[name]

    @property
    def first(self) -> Version:
        """The newer version: the first predecessor of the merge version."""
        return self._version("first")

    @property
    def second(self) -> Version:
        """The older version."""
        return self._version("second")

    @property
    def ours(self) -> Version:
        """The first argument of the merge as it was called."""
        return self._version("ours")

    @property
    def theirs(self) -> Version:
        """The second argument of the merge as it was called."""
        return self._version("theirs")

    @property
    def bases(self) -> tuple[Version, ...]:
        """The best common ancestors, newest first; empty if there are none."""
        if self._bases is None:
            self._bases = tuple(_pages.borrowed_versions(self._get().bases))
        return self._bases

    @property
    def forks(self) -> Forks:
        """How values differ, conflicting or not, by id. O(forks) at its first use."""
        if self._forks is None:
            merge = self._get()
            found = {}
            for _, kind, side, _, id_data, id_size, *versions in _pages.elements(_pages.FORK, merge.forks, merge.fork_count):
                id = decode(copy(id_data, id_size))
                first, second, ancestor = (
                    Reference(id, decode(copy(versions[at], versions[at + 1]))) if versions[at + 1] else None for at in (0, 2, 4)
                )
                ancestors = tuple(Reference(id, decode(version)) for version in _pages.bytes_array(versions[6], versions[7]))
                found[id] = Fork(FORK_KINDS[kind], SIDES.get(side), first, second, ancestor, ancestors)
            self._forks = Forks(found)
        return self._forks

    def _end(self) -> None:
        self._pointer = None


class Pass(NamedTuple):
    """Returned by an arbiter to leave the conflicts without a change to its fallback. `PASS` has no changes at all."""

    #: The changes that it decided.
    changes: Sequence[Change] = ()


#: Returned by an arbiter to let the fallback decide.
PASS = Pass()

#: What an arbiter may return: changes (None: no changes at all, if there is no conflict), or `PASS` or `Pass(changes)`, with which the
#: fallback decides the conflicts without a change.
Resolution = Union[Iterable[Change], Pass, None]


class Arbiter(Protocol):
    """An object that resolves merges. A function of (merge, store) is accepted as well.

    `resolve` returns changes: one for every conflicting fork, and any others. For forks without a change, the store uses the value of the
    side that changed it. It returns `PASS` (or `Pass(changes)`) to let a fallback decide the rest: the attribute `fallback`, if there is
    one. It is called by the thread that merges, and may use the store. If it raises, the merge raises the same exception and stores
    nothing.
    """

    def resolve(self, merge: Merge, store: llvs.Store) -> Resolution:
        """Decides the conflicts of one merge."""
        ...


class ArbiterFunction(Protocol):
    """A function that resolves merges, as `Arbiter.resolve` does."""

    def __call__(self, merge: Merge, store: llvs.Store, /) -> Resolution: ...


class BuiltInArbiter:
    """An arbiter of the library."""

    _kind: int

    def __repr__(self) -> str:
        return f"llvs.{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class Rules:
    """Merges inside values, by rules: the changes of both sides are kept. With the rules of the store, it is the default.

        store.make_version(head, update={"__llvs_schema": b'{"merge":1,"ids":{"contact/":{"/visits":"counter","/tags":"set"}}}'})
        store.merge(a, b)                                                   # by the rules of the store
        store.merge(a, b, llvs.Rules({"/visits": "counter"}))               # by these, whatever the store holds

    rules: as for `merge_values`; None: those that the store has under "__llvs_schema" (`check_schema` says whether they are valid). Values
    without rules are decided as by `MostRecentChange()`.

    The number of conflicts that were decided is in the metadata of the merge version, under "__llvs_conflicts".

    A merge raises InvalidArgumentError if the given rules are invalid, and UnsupportedError if they, or those of the store, have a version
    that the library does not know.
    """

    def __init__(self, rules: Optional[llvs.merge.MergeRules] = None) -> None:
        self._rules = rules

    def __repr__(self) -> str:
        return f"llvs.Rules({'' if self._rules is None else repr(self._rules)})"


class ValueFunction(Protocol):
    """A function that merges two sides of a value without rules."""

    def __call__(self, id: str, base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes], /) -> Union[bytes, Pass, None]: ...


class PartFunction(Protocol):
    """A function that merges two sides of a place in a value; all are JSON text."""

    def __call__(
        self, id: str, path: tuple[Any, ...], base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes], /
    ) -> Union[bytes, Pass, None]: ...


class ValueMerger:
    """Merges by rules, as `Rules` does, and asks functions of yours about conflicts that the rules leave to them, one value at a time.

        def merge_notes(id, base, newer, older):                # bytes, or None if the value is absent
            return merged_by_hand(base, newer, older)           # bytes; None: there is to be no value; llvs.merge.PASS: as by `Rules`

        store.merge(a, b, llvs.merge.ValueMerger(merge_notes))

    merge: called for each value without rules that both sides changed, or that one changed and the other removed (then `older` is None).
    part: called for each place in a value that both sides changed and that rules leave to it ({"pick": "arbiter"}), with its path and JSON
    text; None: the newer prevails.
    rules: as for `Rules`.

    If versions were merged across each other and have several common ancestors, they may also be called to merge the ancestors' values.
    They must decide from their arguments alone, and give the same result on all devices. If they raise, the merge raises the same exception
    and stores nothing; a result for a part that is not JSON raises InvalidArgumentError.
    """

    def __init__(
        self, merge: Optional[ValueFunction] = None, *, part: Optional[PartFunction] = None, rules: Optional[llvs.merge.MergeRules] = None
    ) -> None:
        self._merge, self._part, self._rules = merge, part, rules

    def __repr__(self) -> str:
        return f"llvs.merge.ValueMerger({self._merge!r}, part={self._part!r}, rules={self._rules!r})"


class MostRecentChange(BuiltInArbiter):
    """In each conflict the change that was stored in the later version wins; an update beats a removal."""

    _kind = c.ARBITER_MOST_RECENT_CHANGE


class MostRecentBranch(BuiltInArbiter):
    """In every conflict the newer of the two versions wins, removals included."""

    _kind = c.ARBITER_MOST_RECENT_BRANCH


class Ours(BuiltInArbiter):
    """The first argument's side wins. Such merges depend on who makes them."""

    _kind = c.ARBITER_OURS


class Theirs(BuiltInArbiter):
    """The second argument's side wins. Such merges depend on who makes them."""

    _kind = c.ARBITER_THEIRS


#: What `merge` accepts as an arbiter.
AnyArbiter = Union[BuiltInArbiter, Rules, ValueMerger, Arbiter, ArbiterFunction]
