"""Progress and cancellation of calls that take long because the store is large: opening, reading and merging."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

import llvs

VERSIONS = 2_500


@pytest.fixture(params=["file", "sqlite"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A store of many versions: where, and on which storage."""
    place, storage = str(tmp_path / "store"), request.param
    with llvs.Store(place, storage=storage, durability="normal") as store:
        last = None
        for i in range(VERSIONS):
            last = store.make_version(last, insert={f"value/{i % 50}": b"x"})
    return place, storage


def stopping_at(number: int, seen: list[llvs.control.Progress], how: Callable[[], Any] = lambda: False) -> llvs.control.ProgressCallback:
    def progress(now: llvs.control.Progress) -> Any:
        seen.append(now)
        return how() if len(seen) == number else None

    return progress


@pytest.mark.parametrize("kind", [llvs.Store, llvs.Coordinator])
def test_opening(path: tuple[str, str], kind: Callable[..., Any]) -> None:
    place, storage = path
    seen: list[llvs.control.Progress] = []
    kind(place, storage=storage, progress=seen.append).close()
    # At the beginning, within, and in the end.
    assert len(seen) > 3 and all(now.stage is llvs.control.Stage.READING for now in seen)
    assert [now.completed for now in seen] == sorted(now.completed for now in seen) and seen[-1].completed >= VERSIONS
    token = llvs.CancelToken()
    # (The number of polls also depends on the time.)
    for number in range(1, 5):
        again: list[llvs.control.Progress] = []
        with pytest.raises(llvs.CancelledError, match="nothing was changed"):
            kind(place, storage=storage, progress=stopping_at(number, again))
        assert len(again) == number
        with pytest.raises(ZeroDivisionError):
            kind(place, storage=storage, progress=stopping_at(number, [], lambda: 1 // 0))
    # A cancellation from another thread, here during the callback, works like one by the callback. It is permanent.
    with pytest.raises(llvs.CancelledError):
        kind(place, storage=storage, cancel=token, progress=stopping_at(2, [], token.cancel))
    with pytest.raises(llvs.CancelledError):
        kind(place, storage=storage, cancel=token)
    # No resource remains in use: the coordinator's name is free, and all data exist.
    with llvs.Coordinator(place, storage=storage, cancel=llvs.CancelToken()) as notes:
        assert len(notes) == 50 and notes.store.statistics().versions == VERSIONS


def test_nothing_is_made_of_what_was_cancelled_before(tmp_path: Path) -> None:
    token = llvs.CancelToken()
    token.cancel()
    with pytest.raises(llvs.CancelledError):
        llvs.Store(tmp_path / "store", cancel=token)
    assert not (tmp_path / "store").exists()
    with pytest.raises(TypeError, match="cancel takes an llvs.CancelToken"):
        llvs.Store(tmp_path / "store", cancel=5)  # type: ignore[arg-type]


def test_reading_and_merging() -> None:
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={f"{i:04}": b"0" for i in range(VERSIONS)})
        a = store.make_version(base, update={f"{i:04}": b"a" for i in range(VERSIONS)})
        b = store.make_version(base, update={f"{i:04}": b"b" for i in range(VERSIONS)})
        calls: dict[str, Callable[..., Any]] = {
            "changes": lambda **control: list(store.changes(a, with_data=False, **control)),
            "diff": lambda **control: list(store.diff(a, b, with_data=False, **control)),
            "merge": lambda **control: store.merge(a, b, llvs.MostRecentChange(), **control),
            "merge by hand": lambda **control: store.merge(
                a, b, lambda merge, store: [llvs.Change.preserve(fork.first) for fork in merge.forks.values()], metadata={"x": 1}, **control
            ),
            "revert": lambda **control: store.revert(a, at=a, **control),
        }
        for name, call in calls.items():
            before = store.statistics().versions
            seen: list[llvs.control.Progress] = []
            # Stop in the middle. The callback may read the store.
            with pytest.raises(llvs.CancelledError):
                call(progress=stopping_at(2, seen, lambda: len(store.at(a)) != VERSIONS))
            assert [now.stage for now in seen] == [llvs.control.Stage.READING] * 2 and seen[1].completed <= VERSIONS, name
            with pytest.raises(ZeroDivisionError):
                call(progress=stopping_at(2, [], lambda: 1 // 0))
            token = llvs.CancelToken()
            token.cancel()
            with pytest.raises(llvs.CancelledError):
                call(cancel=token)
            assert store.statistics().versions == before, name
            assert call(progress=seen.append) and len(seen) > 3, name
        some = list(store.changes(a, prefix="00", start="0090"))
        assert [change.id for change in some] == [f"{i:04}" for i in range(90, 100)] and some[0].data == b"a"
        assert list(store.changes(a, prefix="9", stop="1")) == []


def test_questions_about_history(tmp_path: Path) -> None:
    """Each call reports progress, ends if the callback or a token says so, and returns the same result the next time."""
    with llvs.Coordinator(tmp_path / "store", device="laptop") as notes:
        store = notes.store
        first = store.make_version(insert={"x": b"0"})
        a, b = store.make_version(first, update={"x": b"1"}, branch="draft"), store.make_version(first, update={"x": b"2"})
        assert a and b
        notes.save(insert={"y": b"1"})
        calls: dict[str, Callable[..., Any]] = {
            "heads": lambda **control: store.heads(**control),
            "some heads": lambda **control: store.heads(limit=2, **control),
            "heads of a branch": lambda **control: store.heads(branch="draft", **control),
            "successors": lambda **control: store.successors(first, **control),
            "is ancestor": lambda **control: store.is_ancestor(first, a, **control),
            "merge bases": lambda **control: store.merge_bases(a, b, **control),
            "version at": lambda **control: store.version_at(1e10, a, **control),
            "versions of": lambda **control: store.versions_of("x", **control),
            "reload": lambda **control: store.reload(**control),
            "undo": lambda **control: notes.next_undo(**control),
            "redo": lambda **control: notes.next_redo(**control),
        }
        for name, call in calls.items():
            expected, seen = call(), list[llvs.control.Progress]()
            assert call(progress=seen.append) == expected and seen, name
            with pytest.raises(llvs.CancelledError):
                call(progress=lambda _: False)
            with pytest.raises(ZeroDivisionError):
                call(progress=lambda _: 1 // 0)
            token = llvs.CancelToken()
            assert call(cancel=token) == expected
            token.cancel()
            with pytest.raises(llvs.CancelledError):
                call(cancel=token)
            assert call() == expected
        assert calls["heads"]() == store.heads() and calls["some heads"]() == store.heads()[:2]
        assert calls["merge bases"]() == (first,) and calls["version at"]() == a and calls["is ancestor"]() is True
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.heads(limit=-1)
        # `next_undo` reports what would be undone, and `undo` reverts it.
        assert notes.can_undo and not notes.can_redo
        with pytest.raises(llvs.CancelledError):
            notes.undo(cancel=token)
        assert notes.undo(cancel=llvs.CancelToken()) is not None and notes.next_redo() is not None
