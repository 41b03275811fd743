"""Merging: what an arbiter sees, the built-in arbiters, and arbiters written in Python."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Protocol, Sequence, Union

import llvs

from . import _abi, _callbacks, _constants as c, _metadata, _pages, _structs, errors
from ._change_array import CHANGE_SIZE, ChangeArray
from ._handle import Handle
from ._memory import BytesArray, address, copy, decode, encode
from .control import Control
from .versions import FORK_KINDS, SIDES, Change, Fork, Reference, Version

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
        """Those that an arbiter must decide. O(forks)."""
        return {id: fork for id, fork in self._forks.items() if fork.conflicting}

    def __repr__(self) -> str:
        return f"Forks({self._forks!r})"


class Merge:
    """One merge, as an arbiter sees it.

    What has been looked at stays; what has not raises `ClosedError` after the arbiter has returned.
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
        """The best common ancestors, newest first; empty when there are none."""
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
    """What an arbiter returns to pass on to its fallback what it has no change for. `PASS` has no changes at all."""

    #: What it has decided.
    changes: Sequence[Change] = ()


#: An arbiter's answer "let the fallback decide".
PASS = Pass()

#: What an arbiter may return: changes (None: no changes at all, when there is no conflict), or `PASS` or `Pass(changes)`, by which the
#: fallback decides what there is no change for.
Resolution = Union[Iterable[Change], Pass, None]


class Arbiter(Protocol):
    """Anything that resolves merges. A function of (merge, store) will do as well.

    `resolve` returns changes: one for every conflicting fork, and for whatever else it wants to change; what it leaves alone
    the store brings over. It returns `PASS` (or `Pass(changes)`) to let a fallback decide the rest: the
    attribute `fallback` when there is one. It is called by the thread that merges, and may use the store. What it raises is
    raised from the merge, which stores nothing.
    """

    def resolve(self, merge: Merge, store: llvs.Store) -> Resolution:
        """Decides the conflicts of one merge."""
        ...


class ArbiterFunction(Protocol):
    """A function that resolves merges, as `Arbiter.resolve` does."""

    def __call__(self, merge: Merge, store: llvs.Store, /) -> Resolution: ...


class _BuiltIn:
    """An arbiter of the library."""

    _kind: int

    def __repr__(self) -> str:
        return f"llvs.{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


class Rules:
    """Merges inside values, by rules: what both sides did is kept. The default, by the rules of the store.

        store.make_version(head, update={"__llvs_schema": b'{"merge":1,"ids":{"contact/":{"/visits":"counter","/tags":"set"}}}'})
        store.merge(a, b)                                                   # by the rules of the store
        store.merge(a, b, llvs.Rules({"/visits": "counter"}))               # by these, whatever the store holds

    rules: as for `merge_values`; None: those that the store holds under "__llvs_schema" (`check_schema` says whether they are valid).
    Values that no rules are for are decided as by `MostRecentChange()`.

    What had to be decided is counted in the metadata of the merge version, under "__llvs_conflicts".

    A merge by them raises InvalidArgumentError where the rules given are not valid, and UnsupportedError where they, or those of the
    store, are of a number that the library does not know.
    """

    def __init__(self, rules: Optional[llvs.MergeRules] = None) -> None:
        self._rules = rules

    def __repr__(self) -> str:
        return f"llvs.Rules({'' if self._rules is None else repr(self._rules)})"


class ValueFunction(Protocol):
    """A function that merges what two sides made of a value that no rules are for."""

    def __call__(self, id: str, base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes], /) -> Union[bytes, Pass, None]: ...


class PartFunction(Protocol):
    """A function that merges what two sides made of a place in a value; all are JSON text."""

    def __call__(
        self, id: str, path: tuple[Any, ...], base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes], /
    ) -> Union[bytes, Pass, None]: ...


class ValueMerger:
    """Merges by rules, as `Rules` does, and asks functions of yours about what these leave to them, one value after the other.

        def merge_notes(id, base, newer, older):                            # bytes, or None where the value is absent
            return merged_by_hand(base, newer, older)                       # bytes; None: there is to be no value; llvs.PASS: as by `Rules`

        store.merge(a, b, llvs.ValueMerger(merge_notes))

    merge: asked for each value that no rules are for, and that both sides changed, or one changed and the other removed (then `older` is
    None).
    part: asked for each place in a value that both sides changed and that rules leave to it ({"pick": "arbiter"}), with its path and JSON
    text;
    None: the newer stands.
    rules: as for `Rules`.

    They are asked for the base of a merge as well, where versions were merged across each other and have several common ancestors. They
    look at what they are given alone and answer the same on all devices. What they raise is raised from the merge, which stores nothing; an
    answer for a part that is no JSON raises InvalidArgumentError there.
    """

    def __init__(
        self, merge: Optional[ValueFunction] = None, *, part: Optional[PartFunction] = None, rules: Optional[llvs.MergeRules] = None
    ) -> None:
        self._merge, self._part, self._rules = merge, part, rules

    def __repr__(self) -> str:
        return f"llvs.ValueMerger({self._merge!r}, part={self._part!r}, rules={self._rules!r})"


class MostRecentChange(_BuiltIn):
    """Per conflict the change that was stored in the later version wins; an update beats a removal."""

    _kind = c.ARBITER_MOST_RECENT_CHANGE


class MostRecentBranch(_BuiltIn):
    """Every conflict goes to the newer of the two versions, removals included."""

    _kind = c.ARBITER_MOST_RECENT_BRANCH


class Ours(_BuiltIn):
    """The first argument's side wins. Such merges depend on who makes them."""

    _kind = c.ARBITER_OURS


class Theirs(_BuiltIn):
    """The second argument's side wins. Such merges depend on who makes them."""

    _kind = c.ARBITER_THEIRS


#: What `merge` takes for an arbiter.
AnyArbiter = Union[_BuiltIn, Rules, ValueMerger, Arbiter, ArbiterFunction]


class Heads:
    """Which heads to merge: `Heads.UNBRANCHED` (the default), `Heads.ALL`, `Heads.branches("draft", ...)`,
    or `Heads.unbranched_and("draft", ...)`.

    Without a branch, a head is a version that carries none and that no other such version has among its ancestors: a version on a branch
    hides nothing of the line that it is built on.
    """

    UNBRANCHED: Heads
    ALL: Heads

    def __init__(self, kind: int, names: tuple[str, ...] = ()) -> None:
        self._kind = kind
        self._names = names

    @classmethod
    def branches(cls, *names: str) -> Heads:
        """The heads on these branches only."""
        return cls(c.HEADS_BRANCHES, names)

    @classmethod
    def unbranched_and(cls, *names: str) -> Heads:
        """The heads without a branch, and those on these branches."""
        return cls(c.HEADS_UNBRANCHED_AND_BRANCHES, names)

    def __repr__(self) -> str:
        return f"Heads({self._kind}, {self._names!r})"


Heads.UNBRANCHED = Heads(c.HEADS_UNBRANCHED)
Heads.ALL = Heads(c.HEADS_ALL)

_SELECTIONS = {"unbranched": Heads.UNBRANCHED, "all": Heads.ALL}
_RELATIONS = {"any": c.RELATION_ANY, "related": c.RELATION_RELATED, "unrelated": c.RELATION_UNRELATED}


class MergeOptions:
    """An `llvs_merge_options`, and all that it points to."""

    def __init__(
        self,
        metadata: _metadata.Metadata | None,
        relation: str = "any",
        selection: Heads | str = Heads.UNBRANCHED,
        control: Control | None = None,
        parent: int = 1,
        version: bytes = b"",
    ) -> None:
        if parent not in (1, 2):
            raise errors.InvalidArgumentError(f"{parent!r} is no predecessor: 1 is the first, 2 the second")
        if relation not in _RELATIONS:
            raise errors.InvalidArgumentError(f"{relation!r} is no relation: use any, related or unrelated")
        if isinstance(selection, str):
            if selection not in _SELECTIONS:
                raise errors.InvalidArgumentError(
                    f"{selection!r} is no selection of heads: use unbranched, all, or llvs.Heads.branches(...)"
                )
            selection = _SELECTIONS[selection]
        self._entries = _metadata.Entries(metadata)
        self._branches = BytesArray(map(encode, selection._names))
        self._struct = _structs.llvs_merge_options(
            struct_size=ctypes.sizeof(_structs.llvs_merge_options),
            relation=_RELATIONS[relation],
            selection=selection._kind,
            parent=c.SIDE_SECOND if parent == 2 else c.SIDE_FIRST,
            branches=self._branches.address,
            branch_count=self._branches.count,
            metadata=self._entries.address,
            metadata_count=self._entries.count,
            control=control.address if control is not None else None,
        )
        self._version = version
        if version:
            self._struct.version = _structs.llvs_bytes(address(version), len(version))
        self.reference = ctypes.byref(self._struct)


class Reverted(NamedTuple):
    """What undoing a version, or picking one, came to."""

    #: The version that was made; None when there was nothing left to change, and nothing was stored.
    version: Optional[Version]
    #: The ids of the values that were changed: of which something, or all, is again as it was before the version; of a pick, those that
    #: took over something of it.
    undone: tuple[str, ...]
    #: The ids of the values of which the version changed something that was changed again since, to something else than it was before it:
    #: that stays. Where rules merge inside a value it may be in both.
    superseded: tuple[str, ...]
    #: What had to be decided, in byte order of the ids.
    conflicts: tuple[llvs.Conflict, ...] = ()
    #: Of a pick: rules count among the values; once both lines are merged, that counts twice.
    counts: bool = False
    #: The ids of the versions that were undone, newest first.
    versions: tuple[str, ...] = ()
    #: Of `Coordinator.undo` and `redo`: as the save was described; None when it was not.
    description: Optional[str] = None


def take_reverted(pointer: int) -> Reverted:
    """What an `llvs_revert_result` says, which is released."""
    try:
        made = _structs.llvs_revert_result.from_address(pointer)
        undone, superseded, versions = (
            tuple(map(decode, _pages.bytes_array(ids, count)))
            for ids, count in (
                (made.undone, made.undone_count), (made.superseded, made.superseded_count), (made.versions, made.version_count)
            )
        )
        records: tuple[llvs.Conflict, ...] = ()
        if made.conflict_count:
            from .documents import conflicts

            records = conflicts(made.conflicts, made.conflict_count)
        text = made.description
        return Reverted(
            _pages.version_at(made.version) if made.version else None,
            undone,
            superseded,
            records,
            bool(made.counts),
            versions,
            decode(copy(text.data, text.size)) if text.size else None,
        )
    finally:
        lib.llvs_revert_result_free(pointer)


class _Resolving:
    """What the thunk looks up: an arbiter, and how to get at the store it works on."""

    def __init__(self, arbiter: Any, store: Callable[[], llvs.Store]) -> None:
        self.resolve = getattr(arbiter, "resolve", arbiter)
        self.store = store


def _resolve(resolving: _Resolving, pointer: int, resolution: int) -> int:
    merge = Merge(pointer)
    try:
        answer = resolving.resolve(merge, resolving.store())
        passes = isinstance(answer, Pass)
        changes = ChangeArray(changes=answer.changes if isinstance(answer, Pass) else answer)
        if changes.count:
            lib.llvs_resolution_add(resolution, changes.address, changes.count, CHANGE_SIZE)
        return c.PASS if passes else c.OK
    finally:
        merge._end()


_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p], _resolve)


def _merge_value(merger: ValueMerger, pointer: int, resolution: int) -> int:
    question = _structs.llvs_value_question.from_address(pointer)

    def given(pair: Any) -> Optional[bytes]:
        return copy(pair.data, pair.size) if pair.data else None

    id, path = decode(given(question.id) or b""), given(question.path) or b"[]"
    sides = (given(question.base), given(question.newer), given(question.older))
    # Of the functions that are there, the one for a whole value is asked about whole values only, and that for parts about the others.
    answer: Any = PASS
    if path == b"[]" and merger._merge is not None:
        answer = merger._merge(id, *sides)
    elif path != b"[]" and merger._part is not None:
        import json

        answer = merger._part(id, tuple(json.loads(path)), *sides)
    if isinstance(answer, Pass):
        return c.PASS
    change = Change.remove(id) if answer is None else Change.update(id, answer)
    changes = ChangeArray(changes=[change])
    lib.llvs_resolution_add(resolution, changes.address, changes.count, CHANGE_SIZE)
    return c.OK


_value_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_void_p], _merge_value)


class ArbiterHandle(Handle):
    """An `llvs_arbiter`."""

    _release = "llvs_arbiter_free"
    _warns = False
    _calls_back = True

    def __init__(self, arbiter: AnyArbiter, store: Callable[[], llvs.Store]) -> None:
        pointer = ctypes.c_void_p()
        if isinstance(arbiter, type):
            raise TypeError(f"an arbiter is an object, not the class {arbiter.__name__}: write {arbiter.__name__}()")
        if isinstance(arbiter, _BuiltIn):
            lib.llvs_arbiter_builtin(arbiter._kind, ctypes.byref(pointer))
        elif isinstance(arbiter, Rules):
            from .documents import rules_text

            lib.llvs_arbiter_rules(b"" if arbiter._rules is None else rules_text(arbiter._rules), ctypes.byref(pointer))
        elif isinstance(arbiter, ValueMerger):
            from .documents import rules_text

            payload = _callbacks.register(arbiter)
            given = b"" if arbiter._rules is None else rules_text(arbiter._rules)
            lib.llvs_value_merger_create(_value_thunk, payload, _callbacks.payload_free, given, ctypes.byref(pointer))
        else:
            if not callable(getattr(arbiter, "resolve", arbiter)):
                raise TypeError(
                    f"an arbiter has a method resolve(merge, store), or is such a function; {type(arbiter).__name__} is neither"
                )
            fallback = getattr(arbiter, "fallback", None)
            if fallback is None:
                self._create(arbiter, store, None, pointer)
            else:
                with ArbiterHandle(fallback, store) as handle, handle._call as fallback_pointer:
                    self._create(arbiter, store, fallback_pointer, pointer)
        super().__init__(pointer.value or 0)

    @staticmethod
    def _create(arbiter: AnyArbiter, store: Callable[[], llvs.Store], fallback: int | None, pointer: ctypes.c_void_p) -> None:
        payload = _callbacks.register(_Resolving(arbiter, store))
        lib.llvs_arbiter_create(_thunk, payload, _callbacks.payload_free, fallback, ctypes.byref(pointer))

    def _what(self) -> str:
        return "the arbiter"
