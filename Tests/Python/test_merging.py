"""Merging: built-in arbiters; arbiters in Python with their inputs, results and failures."""

from __future__ import annotations

import threading
from typing import Any, Callable

import llvs
import pytest


@pytest.fixture
def conflict(memory: llvs.Store) -> tuple[llvs.Store, llvs.Version, llvs.Version]:
    """A store with two versions that conflict in "both" and "gone"; the second is the newer."""
    base = memory.make_version(insert={"both": b"0", "gone": b"0", "left": b"0", "right": b"0"})
    one = memory.make_version(base, update={"both": b"1", "left": b"1"}, remove=["gone"])
    two = memory.make_version(base, update={"both": b"2", "gone": b"2", "right": b"2"})
    return memory, one, two


def state(store: llvs.Store, version: llvs.Version) -> dict[str, bytes]:
    return dict(store.at(version).items())


BROUGHT = {"left": b"1", "right": b"2"}


@pytest.mark.parametrize(
    ("arbiter", "expected"),
    [
        (None, {"both": b"2", "gone": b"2"}),
        (llvs.MostRecentChange(), {"both": b"2", "gone": b"2"}),
        (llvs.MostRecentBranch(), {"both": b"2", "gone": b"2"}),
        (llvs.Ours(), {"both": b"1"}),
        (llvs.Theirs(), {"both": b"2", "gone": b"2"}),
    ],
    ids=repr,
)
def test_built_in_arbiters(conflict: Any, arbiter: Any, expected: dict[str, bytes]) -> None:
    store, one, two = conflict
    merged = store.merge(one, two, arbiter)
    assert state(store, merged) == {**expected, **BROUGHT}
    assert merged.predecessors == (two.id, one.id)
    assert store.heads() == (merged,)


def test_the_order_of_arguments_does_not_matter(new_store: Callable[[], llvs.Store], conflict: Any) -> None:
    store, one, two = conflict
    assert store.merge(one, two) == store.merge(two.id, one.id)


def test_an_arbiter_sees_the_merge(conflict: Any) -> None:
    store, one, two = conflict
    kept: list[llvs.merge.Merge] = []

    def arbiter(merge: llvs.merge.Merge, given: llvs.Store) -> list[llvs.Change]:
        kept.append(merge)
        assert given is store
        assert (merge.first, merge.second, merge.ours, merge.theirs) == (two, one, one, two)
        (base,) = merge.bases
        assert given.at(base)["both"] == b"0"
        forks = merge.forks
        assert list(forks) == ["both", "gone", "left", "right"] and len(forks) == 4
        assert forks["both"] == llvs.merge.Fork(
            llvs.merge.ForkKind.TWICE_UPDATED,
            None,
            llvs.store.Reference("both", two.id),
            llvs.store.Reference("both", one.id),
            llvs.store.Reference("both", base.id),
            (llvs.store.Reference("both", base.id),),
        )
        gone = forks["gone"]
        assert gone.kind == "removed_and_updated" and gone.branch is llvs.merge.Side.SECOND and gone.second is None
        assert (forks["left"].kind, forks["left"].branch) == ("updated", "second") and not forks["left"].conflicting
        assert list(forks.conflicting) == ["both", "gone"] and "nothing" not in forks
        assert forks["both"].second is not None
        value = given.value_by_reference(forks["both"].second)
        assert value is not None
        return [llvs.Change.update("both", value.data + b"+"), llvs.Change.remove("gone"), llvs.Change.insert("new", b"n")]

    merged = store.merge(one, two, arbiter, metadata={"by": "me"})
    assert state(store, merged) == {"both": b"1+", "new": b"n", **BROUGHT} and merged.metadata == {"by": "me"}
    assert kept[0].forks["both"].kind == "twice_updated"  # objects that were read before stay valid
    unseen: list[llvs.merge.Merge] = []
    three = store.make_version(merged, update={"both": b"3"})
    four = store.make_version(merged, update={"both": b"4"})

    def unseeing(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
        unseen.append(merge)
        return [llvs.Change.update("both", b"5")]

    store.merge(three, four, unseeing)
    with pytest.raises(llvs.ClosedError):
        unseen[0].forks


def test_objects_and_fallbacks(conflict: Any) -> None:
    store, one, two = conflict

    class Partly:
        fallback = llvs.Ours()

        def resolve(self, merge: llvs.merge.Merge, store: llvs.Store) -> llvs.merge.Pass:
            return llvs.merge.Pass([llvs.Change.update("both", b"mine")])

    assert state(store, store.merge(one, two, Partly())) == {"both": b"mine", **BROUGHT}


def test_forwarding_without_a_receiver_fails(conflict: Any) -> None:
    store, one, two = conflict
    with pytest.raises(llvs.errors.UnresolvedConflictError) as caught:
        store.merge(one, two, lambda merge, store: llvs.merge.PASS)
    assert caught.value.value_id in ("both", "gone")
    with pytest.raises(llvs.errors.UnresolvedConflictError):
        store.merge(one, two, lambda merge, store: None)
    assert len(store.heads()) == 2


def test_preserving_and_removing(conflict: Any) -> None:
    store, one, two = conflict
    merged = store.merge(
        one, two, lambda merge, store: [llvs.Change.preserve(merge.forks["both"].ancestor), llvs.Change.preserve_removal("gone")]
    )
    assert state(store, merged) == {"both": b"0", **BROUGHT}


class Stop(BaseException):
    """An exception that is not an Exception."""


@pytest.mark.parametrize(
    "problem", [ValueError("no"), KeyboardInterrupt(), Stop(), SystemExit(3), MemoryError(), UnicodeError("\ud800")], ids=repr
)
def test_what_an_arbiter_raises_is_raised(conflict: Any, problem: BaseException) -> None:
    store, one, two = conflict

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
        raise problem

    with pytest.raises(type(problem)) as caught:
        store.merge(one, two, arbiter)
    assert caught.value is problem
    with pytest.raises(type(problem)) as caught:
        store.merge_heads(one, arbiter)
    assert caught.value is problem
    assert len(store.heads()) == 2 and store.merge(one, two)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (llvs.Change.update("", b""), "INVALID_VALUE_ID"),
        (llvs.Change.update("x" * 4097, b""), "INVALID_VALUE_ID"),
        (llvs.Change.update("\ud800", b""), "INVALID_UTF8"),
        (llvs.Change.preserve(llvs.store.Reference("both", "nope")), "INVALID_REFERENCE|UNKNOWN_VERSION"),
        (llvs.Change.preserve(llvs.store.Reference("both", "not an id")), "INVALID_VERSION_ID"),
    ],
    ids=repr,
)
def test_what_the_store_cannot_hold(conflict: Any, change: llvs.Change, code: str) -> None:
    store, one, two = conflict
    with pytest.raises(llvs.Error) as caught:
        store.merge(
            one,
            two,
            lambda merge, store: [
                *({"both": llvs.Change.update("both", b""), "gone": llvs.Change.update("gone", b"")} | {change.id: change}).values()
            ],
        )
    assert isinstance(caught.value.code, llvs.ErrorCode) and caught.value.code.name in code.split("|")
    assert len(store.heads()) == 2


def test_answers_of_a_wrong_type(conflict: Any) -> None:
    store, one, two = conflict
    with pytest.raises(TypeError):
        store.merge(one, two, lambda merge, store: ["both"])
    with pytest.raises(TypeError):
        store.merge(one, two, lambda merge, store: 5)
    with pytest.raises(TypeError):
        store.merge(one, two, "ours")
    with pytest.raises(TypeError, match=r"Ours\(\)"):
        store.merge(one, two, llvs.Ours)


def test_an_arbiter_may_use_the_store(conflict: Any) -> None:
    store, one, two = conflict

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
        extra = store.make_version(insert={"from the arbiter": b"1"}, root=True)
        other = store.merge(one, two, llvs.Ours())
        assert {extra, other} <= set(store.heads())
        return [llvs.Change.update(id, b"x") for id in merge.forks.conflicting]

    assert store.at(store.merge(one, two, arbiter))["both"] == b"x"


def test_threads_with_arbiters(conflict: Any) -> None:
    store, one, two = conflict
    found: list[Any] = []

    def work(number: int) -> None:
        def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
            if number % 2:
                raise RuntimeError(str(number))
            return [llvs.Change.update(id, str(number).encode()) for id in merge.forks.conflicting]

        for _ in range(20):
            try:
                found.append((number, store.at(store.merge(one, two, arbiter))["both"]))
            except RuntimeError as problem:
                found.append((number, str(problem).encode()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 120 and all(str(number).encode() == answer for number, answer in found)


def test_relations(memory: llvs.Store) -> None:
    one, two = memory.make_version(insert={"a": b"1"}), memory.make_version(insert={"b": b"2"}, root=True)
    with pytest.raises(llvs.errors.NoCommonAncestorError):
        memory.merge(one, two, relation="related")
    merged = memory.merge(one, two, relation="any")
    assert state(memory, merged) == {"a": b"1", "b": b"2"} and memory.merge_bases(one, two) == ()
    three, four = memory.make_version(merged, update={"a": b"3"}), memory.make_version(merged, update={"b": b"4"})
    seen: list[llvs.merge.Merge] = []

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> Any:
        assert merge.bases == ()
        seen.append(merge)
        return [llvs.Change.preserve(fork.first) for fork in merge.forks.values() if fork.conflicting and fork.first]

    memory.merge(three, four, arbiter, relation="unrelated")
    assert seen
    with pytest.raises(llvs.errors.InvalidArgumentError):
        memory.merge(one, two, relation="distant")


def test_fast_forward(memory: llvs.Store) -> None:
    one = memory.make_version(insert={"a": b"1"})
    two = memory.make_version(one, update={"a": b"2"})
    assert memory.merge(one, two) == memory.merge(two, one) == memory.merge(two, two) == two
    assert memory.merge_heads(two) is None and memory.merge_heads(one) == two
    assert memory.statistics().versions == 2


def test_selecting_heads(memory: llvs.Store) -> None:
    root = memory.make_version()
    plain = [memory.make_version(root, insert={f"plain {index}": b""}) for index in range(2)]
    drafts = {name: memory.make_version(root, branch=name, insert={name: b""}) for name in ("one", "two")}
    only = memory.merge_heads(drafts["one"], selection=llvs.merge.Heads.branches("two"))
    assert only is not None and set(state(memory, only)) == {"one", "two"}
    unbranched = memory.merge_heads(plain[0])
    assert unbranched is not None and set(state(memory, unbranched)) == {"plain 0", "plain 1", "one", "two"}
    with pytest.raises(llvs.errors.InvalidArgumentError):
        memory.merge_heads(plain[0], selection="some")
    assert memory.merge_heads(unbranched, selection=llvs.merge.Heads.ALL) is None
    assert memory.merge_heads(unbranched, selection=llvs.merge.Heads.unbranched_and("one")) is None


def test_progress_and_cancellation_of_merging_heads(memory: llvs.Store) -> None:
    root = memory.make_version()
    heads = [memory.make_version(root, insert={str(index): b"1"}) for index in range(20)]
    seen: list[llvs.control.Progress] = []

    def progress(now: llvs.control.Progress) -> None:
        seen.append(now)

    with pytest.raises(llvs.CancelledError):
        memory.merge_heads(heads[0], progress=lambda now: False)
    with llvs.CancelToken() as token:
        token.cancel()
        with pytest.raises(llvs.CancelledError):
            memory.merge_heads(heads[0], cancel=token)
    assert len(memory.heads()) == 20
    merged = memory.merge_heads(heads[0], progress=progress)
    assert merged is not None and len(memory.at(merged)) == 20 and memory.heads() == (merged,) and seen
