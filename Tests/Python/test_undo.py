"""Undo, redo, revert and cherry-pick: merges in other roles, of values and of members, in groups, across restarts and syncs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import llvs
import pytest
from sampling import seeds

RULES = {"merge": 1, "ids": {"d/": {"/n": "counter", "/tags": "set", "/bio": "text", "/items": {"as": "list", "key": ["/id"]}}}}


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as store:
        yield store


def made(store: llvs.Store, at: Optional[llvs.Version], **values: Any) -> llvs.Version:
    """A version with these values, as JSON; None removes."""
    ids = {id.replace("_", "/"): value for id, value in values.items()}
    return store.make_version(
        at, update={id: json.dumps(value).encode() for id, value in ids.items() if value is not None},
        remove=[id for id, value in ids.items() if value is None],
    )


def ruled(store: llvs.Store, **values: Any) -> llvs.Version:
    return store.make_version(made(store, None, **values), update={"__llvs_schema": json.dumps(RULES).encode()})


def state(store: llvs.Store, at: Any) -> dict[str, Any]:
    return {id: json.loads(data) for id, data in store.at(at).items() if not id.startswith("__llvs")}


def test_members_that_came_since_stay(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A", "n": 10, "tags": ["a"], "bio": "One two three.", "items": [{"id": 1, "t": 1}]}, plain=0)
    edit = made(
        store, base, d_1={"name": "B", "n": 13, "tags": ["b"], "bio": "One 2 three.", "items": [{"id": 2}, {"id": 1, "t": 2}]}, plain=1
    )
    later = made(
        store,
        edit,
        d_1={
            "name": "B",
            "n": 20,
            "tags": ["b", "c"],
            "bio": "One 2 three four.",
            "items": [{"id": 2}, {"id": 3}, {"id": 1, "t": 2}],
            "new": 1,
        },
    )
    done = store.revert(edit, at=later)
    assert done.version is not None and done.undone == ("d/1", "plain") and done.superseded == () and done.conflicts == ()
    assert done.versions == (edit.id,) and not done.counts
    assert state(store, done.version) == {
        "d/1": {"name": "A", "n": 17, "tags": ["a", "c"], "bio": "One two three four.", "items": [{"id": 3}, {"id": 1, "t": 1}], "new": 1},
        "plain": 0,
    }
    # L13: at the version itself a revert restores the state before, byte for byte; and reverting that restores the version.
    exact = store.revert(edit, at=edit)
    assert exact.version is not None and dict(store.at(exact.version)) == dict(store.at(base))
    again = store.revert(done.version, at=done.version)
    assert again.version is not None and dict(store.at(again.version)) == dict(store.at(later))


def test_what_was_changed_since_stays_and_is_reported(store: llvs.Store) -> None:
    base = ruled(store, d_1={"a": 0, "b": 0}, d_2={"a": 0}, plain=0, gone=0, d_gone={"a": 0}, d_new=None, same=0)
    edit = made(store, base, d_1={"a": 1, "b": 1}, d_2={"a": 1}, plain=1, gone=1, d_gone={"a": 1}, d_new={"a": 1}, same=1)
    later = made(store, edit, d_1={"a": 2, "b": 1}, d_2={"a": 2}, plain=2, gone=None, d_gone=None, d_new={"a": 2}, same=0)
    done = store.revert(edit, at=later)
    assert done.version is not None and done.undone == ("d/1",)
    # A value that was removed since then stays removed. A value that the version created, and that was edited since then, stays.
    assert done.superseded == ("d/1", "d/2", "d/gone", "d/new", "gone", "plain")
    assert state(store, done.version) == {"d/1": {"a": 2, "b": 0}, "d/2": {"a": 2}, "plain": 2, "d/new": {"a": 2}, "same": 0}
    (one, two, three, four) = done.conflicts
    assert [conflict.id for conflict in done.conflicts] == ["d/1", "d/2", "d/new", "plain"]
    assert (one.path, one.base, one.newer, one.older) == (("a",), b"1", b"2", b"0") and three.kind is llvs.merge.ConflictKind.DELETE_EDIT
    nothing = store.revert(edit, at=done.version)
    assert nothing.version is None and nothing.undone == () and "d/1" in nothing.superseded


def test_a_merge_is_undone_against_either_side(store: llvs.Store) -> None:
    base = ruled(store, x=0, y=0)
    a = made(store, base, x=1)
    b = made(store, base, y=2)
    merged = store.merge(a, b)
    assert merged.predecessors == (b.id, a.id)
    first, second = store.revert(merged, at=merged), store.revert(merged, at=merged, parent=2)
    assert first.version is not None and state(store, first.version) == {"x": 0, "y": 2}
    assert second.version is not None and state(store, second.version) == {"x": 1, "y": 0}
    with pytest.raises(llvs.errors.InvalidArgumentError, match="second predecessor"):
        store.revert(a, at=merged, parent=2)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.revert(a, at=merged, parent=3)
    root = next(version for version in store.history() if not version.predecessors)
    gone = store.revert(root, at=root)
    assert gone.version is not None and state(store, gone.version) == {}


def test_what_was_picked_in_full_is_not_superseded(store: llvs.Store) -> None:
    """If the head lacks the value or the object, the result has the counts of the version itself, and all of its other members."""
    rules = store.make_version(root=True, update={"__llvs_schema": b'{"merge":1,"ids":{"d/":{"/n":"counter","/m/n":"counter"}}}'})
    for before, was, became, result in (
        (None, {"a": 1, "n": 1}, {"a": 2, "n": 3}, {"a": 2, "n": 2}),
        ({"a": 0}, {"a": 0, "m": {"a": 1, "n": 1}}, {"a": 0, "m": {"a": 2, "n": 3}}, {"a": 0, "m": {"a": 2, "n": 2}}),
    ):
        head = rules if before is None else made(store, rules, d_1=before)
        done = store.cherry_pick(made(store, made(store, head, d_1=was), d_1=became), onto=head)
        assert done.version is not None and state(store, done.version)["d/1"] == result
        assert done.superseded == () and [conflict.kind.value for conflict in done.conflicts] == ["delete-edit"]
    # Values that the head has differently, and that were not taken over, are reported.
    head = made(store, made(store, rules, d_1={"a": 1}), d_1={"a": 3})
    kept = store.cherry_pick(made(store, made(store, rules, d_1={"a": 1}), d_1={"a": 2}), onto=head)
    assert [conflict.kind.value for conflict in kept.conflicts] == ["pick"]


def test_cherry_pick(store: llvs.Store) -> None:
    base = ruled(store, d_1={"a": 0, "n": 1}, plain=0, d_2={"a": 0}, d_3={"a": 0})
    head = made(store, base, d_1={"a": 0, "n": 5, "b": 1}, plain=5, d_2={"a": 9}, d_3=None)
    picked = made(store, base, d_1={"a": 1, "n": 2}, plain=1, d_2={"a": 1, "c": 1}, d_3={"a": 1}, d_4={"a": 1})
    done = store.cherry_pick(picked, onto=head)
    assert done.version is not None and done.version.predecessors == (head.id,) and done.counts
    # The picked version has the newer role: what both changed is as in the picked version.
    assert state(store, done.version) == {
        "d/1": {"a": 1, "n": 6, "b": 1},
        "plain": 1,
        "d/2": {"a": 1, "c": 1},
        "d/3": {"a": 1},
        "d/4": {"a": 1},
    }
    assert [conflict.id for conflict in done.conflicts] == ["d/2", "d/3", "plain"] and done.superseded == ()
    again = store.cherry_pick(picked, onto=picked)
    # A counter counts each time.
    assert again.version is not None and state(store, again.version)["d/1"] == {"a": 1, "n": 3} and again.undone == ("d/1",)
    plain = made(store, base, plain=7)
    assert not store.cherry_pick(plain, onto=head).counts
    with pytest.raises(llvs.errors.UnknownVersionError):
        store.cherry_pick("nothing", onto=head)


def saved(notes: llvs.Coordinator, value: Any, id: str = "x", **more: Any) -> llvs.store.SavedVersion:
    made = notes.save(update={id: json.dumps(value).encode()}, **more)
    assert made is not None
    return made


def test_undo_and_redo_step_by_step() -> None:
    with llvs.Coordinator(storage="memory", device="a") as notes:
        assert notes.undo() is None and not notes.can_undo and notes.redo() is None and not notes.can_redo
        for number in range(4):
            saved(notes, number, description=f"set {number}")
        assert notes.can_undo and notes.undo_description == "set 3" and not notes.can_redo
        values: list[Any] = []
        descriptions = []
        while done := notes.undo():
            assert done.version is not None and done.version.id == notes.current_version.id
            values.append(json.loads(notes.get("x", b"null")))
            descriptions.append(done.description)
        assert values == [2, 1, 0, None] and descriptions == ["set 3", "set 2", "set 1", "set 0"]
        assert not notes.can_undo and notes.redo_description == "set 0"
        for expected in (0, 1):
            redone = notes.redo()
            assert redone is not None and json.loads(notes["x"]) == expected
        assert notes.undo() is not None and json.loads(notes["x"]) == 0
        assert notes.redo() is not None and json.loads(notes["x"]) == 1
        # A new save leaves nothing to redo.
        saved(notes, 9)
        assert not notes.can_redo and notes.redo() is None
        # A save that changes nothing leaves nothing to redo either, and nothing to undo.
        assert notes.undo() is not None and notes.can_redo
        notes.save(update={"x": notes["x"]})
        assert not notes.can_redo
        assert notes.undo() is not None and not notes.can_redo and notes.redo() is None
        assert notes.undo() is not None and json.loads(notes["x"]) == 0


def test_groups_count_as_one() -> None:
    with llvs.Coordinator(storage="memory", device="a") as notes:
        saved(notes, 0)
        saved(notes, 1, group="drag", description="drag")
        saved(notes, 7, "y", group="drag")
        saved(notes, 2, group="drag")
        saved(notes, 3, group="other")
        assert notes.undo() is not None and json.loads(notes["x"]) == 2
        done = notes.undo()
        assert done is not None and len(done.versions) == 3 and json.loads(notes["x"]) == 0 and "y" not in notes
        redone = notes.redo()
        assert redone is not None and json.loads(notes["x"]) == 2 and json.loads(notes["y"]) == 7
        assert notes.redo() is not None and json.loads(notes["x"]) == 3


def test_undo_goes_on_after_a_restart_and_a_sync(tmp_path: Path) -> None:
    def device(name: str) -> llvs.Coordinator:
        return llvs.Coordinator(tmp_path / name, exchange=tmp_path / "shared", device=name, schema=RULES)

    with device("a") as a, device("b") as b:
        saved(a, {"n": 1, "a": 0, "b": 0}, "d/1")
        a.sync()
        b.sync()
        saved(a, {"n": 2, "a": 1, "b": 0}, "d/1", description="mine")
        saved(b, {"n": 5, "a": 0, "b": 1}, "d/1", description="theirs")
        for notes in (a, b, a):
            notes.sync()
        assert json.loads(a["d/1"]) == {"n": 6, "a": 1, "b": 1} and a.current_version == b.current_version
    with device("a") as a, device("b") as b:
        assert a.undo_description == "mine" and b.undo_description == "theirs"
        done = a.undo()
        assert done is not None and json.loads(a["d/1"]) == {"n": 5, "a": 0, "b": 1} and done.superseded == ()
        # Later saves of others stay.
        saved(b, {"n": 7, "a": 8, "b": 1}, "d/1")
        for notes in (a, b, a):
            notes.sync()
        assert json.loads(a["d/1"]) == {"n": 6, "a": 8, "b": 1}
    with device("a") as a:
        done = a.redo()
        assert done is not None and json.loads(a["d/1"]) == {"n": 7, "a": 8, "b": 1} and done.superseded == ("d/1",)


def test_what_cannot_be_undone_is_reported_and_passed_over() -> None:
    with llvs.Coordinator(storage="memory", device="a") as notes:
        saved(notes, 0)
        saved(notes, 1)
        saved(notes, 5, "y")
        notes.undo()
        # Another device changes it.
        other = notes.store.make_version(notes.current_version, update={"x": b"7"})
        assert notes.merge() and notes.current_version == other
        done = notes.undo()
        assert done is not None and done.version is None and done.superseded == ("x",) and notes.current_version == other
        first = notes.undo()
        assert first is not None and first.version is None and first.superseded == ("x",)
        assert notes.undo() is None and json.loads(notes["x"]) == 7


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_what_cannot_be_undone_is_reported_once_by_several_processes(tmp_path: Path, storage: str) -> None:
    """Each undo runs in a process of its own."""
    place = tmp_path / "store"
    with llvs.Coordinator(place, storage=storage, device="a") as notes:
        saved(notes, 1, "y")
        saved(notes, 1, "x")
        saved(notes, 2, "x")
    with llvs.Coordinator(place, storage=storage, device="b") as others:
        saved(others, 7, "x")

    def undo(function: str = "undo") -> Any:
        script = (
            "import json, sys, llvs\n"
            "with llvs.Coordinator(sys.argv[1], storage=sys.argv[2], device='a') as notes:\n"
            "    done = getattr(notes, sys.argv[3])()\n"
            "    print(json.dumps(done and [done.version is not None, done.undone, done.superseded]))\n"
        )
        made = subprocess.run([sys.executable, "-c", script, place, storage, function], check=True, capture_output=True)
        return json.loads(made.stdout)

    assert undo() == [False, [], ["x"]]
    assert undo() == [False, [], ["x"]]  # the save before
    assert undo() == [True, ["y"], []]
    assert undo() is None
    with llvs.Coordinator(place, storage=storage, device="a") as notes:
        assert dict(notes) == {"x": b"7"} and not notes.can_undo
    # A skipped save stays skipped, also after an undo and a redo.
    assert undo("redo") == [True, ["y"], []]
    assert undo() == [True, ["y"], []]
    assert undo() is None


@pytest.mark.parametrize("storage", ["file", "sqlite"])
def test_what_could_not_be_undone_can_be_once_others_took_theirs_back(tmp_path: Path, storage: str) -> None:
    def device(name: str) -> llvs.Coordinator:
        return llvs.Coordinator(tmp_path / "store", storage=storage, device=name)

    with device("a") as a:
        saved(a, 0)
        mine = saved(a, 1).id
        saved(a, 1, "y")
    with device("b") as b:
        saved(b, 2)
    with device("a") as a:
        # A revert of a version by its id does not affect the undo's record.
        assert a.revert(mine).version is None
        assert [done and done.undone for done in (a.undo(), a.undo())] == [("y",), ()]
    with device("a") as a:
        done = a.undo()
        assert done is not None and done.version is None and done.versions != (mine,)
        assert not a.can_undo
    with device("b") as b:
        assert b.undo() is not None and json.loads(b["x"]) == 1
    with device("a") as a:
        done = a.undo()
        assert done is not None and done.versions == (mine,) and done.undone == ("x",) and json.loads(a["x"]) == 0
        assert a.undo() is not None and "x" not in a and not a.can_undo


def crc32c(data: bytes) -> int:
    """The checksum by which the library checks a cache that a storage of the host returns."""
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    sum = 0xFFFFFFFF
    for byte in data:
        sum = sum >> 8 ^ table[(sum ^ byte) & 0xFF]
    return sum ^ 0xFFFFFFFF


class Caching(llvs.storage.DictStorage):
    """Stores caches, which the library rebuilds if they are gone."""

    name = "caching"

    def __init__(self) -> None:
        super().__init__()
        self.caches: dict[str, bytes] = {}

    def cache_get(self, name: str) -> Optional[bytes]:
        return self.caches.get(name)

    def cache_put(self, name: str, data: bytes) -> None:
        self.caches[name] = data

    def cache_delete(self, name: str) -> None:
        self.caches.pop(name, None)


def test_what_could_not_be_undone_is_kept_of_the_last_saves_alone() -> None:
    """The last 4,096 reported saves are recorded. The record is a cache: without it they are reported again."""
    most, storage = 4_096, Caching()

    def kept() -> list[bytes]:
        return storage.caches["undo-main"][4:].splitlines()

    with llvs.Coordinator(storage=storage, device="a") as notes:
        first = notes.save(insert={"x": b"1"})
        notes.store.make_version(notes.current_version, update={"x": b"2"})
        notes.merge()
        assert notes.undo() is not None and notes.undo() is None
        own = kept()
        assert len(own) == 1 and own[0].endswith(f" {first.id}".encode())
    others = [own[0].split()[0] + f" other-{number}".encode() for number in range(most + 500)]
    data = b"".join(line + b"\n" for line in others)
    for lines in (others, others[:most], others[: most - 1]):
        data = b"".join(line + b"\n" for line in lines)
        storage.caches["undo-main"] = crc32c(data).to_bytes(4, "little") + data
        with llvs.Coordinator(storage=storage, device="a") as notes:
            told = notes.undo()
            assert told is not None and told.version is None and told.superseded == ("x",)
            assert kept() == [*lines, *own][-most:] and len(kept()) == most
            assert notes.undo() is None


def test_a_given_version_is_reverted() -> None:
    with llvs.Coordinator(storage="memory", device="a") as notes:
        saved(notes, 0)
        one = saved(notes, 1, "y")
        saved(notes, 2, "z")
        done = notes.revert(one)
        assert done.version is not None and done.version.id == notes.current_version.id and sorted(notes) == ["x", "z"]
        # The save is undone already, and is not undone again.
        assert notes.undo() is not None and sorted(notes) == ["x"]
        assert notes.undo() is not None and sorted(notes) == []
    with llvs.Coordinator(storage="memory") as notes:
        one = saved(notes, 1)
        assert notes.revert(one).version is not None and len(notes) == 0
        for function in (notes.undo, notes.redo):
            with pytest.raises(llvs.errors.InvalidArgumentError, match="no device"):
                function()
        with pytest.raises(llvs.errors.InvalidArgumentError):
            notes.can_undo


def test_an_undo_that_is_reverted_by_its_id_counts_no_more() -> None:
    with llvs.Coordinator(storage="memory", device="a") as notes:
        for id in "xyz":
            saved(notes, 1, id, description=id)
        undo = notes.undo()
        assert undo is not None and undo.version is not None and sorted(notes) == ["x", "y"]
        back = notes.revert(undo.version)
        assert back.version is not None and sorted(notes) == ["x", "y", "z"]
        # The save that it restored is the next to be undone; and a redo reverts it once more.
        assert notes.undo_description == "z" and notes.can_redo
        assert notes.redo() is not None and sorted(notes) == ["x", "y"] and notes.undo_description == "y"
        redo = notes.redo()
        assert redo is not None and redo.version is not None and sorted(notes) == ["x", "y", "z"] and notes.undo_description == "z"
        # A redo that was reverted does not count either.
        assert notes.revert(redo.version).version is not None and sorted(notes) == ["x", "y"] and notes.undo_description == "y"
        for left in (["x"], []):
            assert notes.undo() is not None and sorted(notes) == left
        assert notes.undo() is None


@pytest.mark.parametrize("seed", seeds(range(2), range(8)))
def test_undoing_everything_of_one_leaves_the_others(seed: int) -> None:
    """Two devices edit members of their own and a common counter and set; a device that undoes everything leaves the other one's
    changes."""
    chance = random.Random(seed)

    def device(name: str) -> llvs.Coordinator:
        return llvs.Coordinator(storage="memory", exchange=f"memory:test_undo-{seed}", device=name, schema=RULES)

    with device("a") as a, device("b") as b:
        notes = {"a": a, "b": b}
        first = a.save(insert={"d/1": b'{"n":0,"tags":[],"a":0,"b":0}'}, metadata={"__llvs_device": "setup"})
        assert first is not None
        a.sync()
        b.sync()
        totals, tags, undone = {"a": 0, "b": 0}, {"a": [0], "b": [0]}, 0
        for step in range(25):
            name = chance.choice("ab")
            mine = notes[name]
            if chance.random() < 0.3:
                mine.sync()
                continue
            value = json.loads(mine["d/1"])
            delta = chance.randrange(1, 5)
            value["n"] += delta
            value["tags"].append(f"{name}{step}")
            value[name] = step + 1
            saved(mine, value, "d/1")
            totals[name] += delta
            tags[name].append(step)
        for one in (a, b, a):
            one.sync()
        while (done := a.undo()) is not None and done.version is not None:
            undone += 1
            if chance.random() < 0.3:
                a.sync()
        for one in (a, b, a):
            one.sync()
        value = json.loads(b["d/1"])
        assert value["a"] == 0 and value["b"] == (tags["b"][-1] + 1 if len(tags["b"]) > 1 else 0)
        assert value["n"] == totals["b"] and sorted(value["tags"]) == sorted(f"b{step}" for step in tags["b"][1:]), seed


@pytest.mark.parametrize(
    "rules, base, removed, edited",
    [
        ({"/n": "counter"}, {"n": 10}, None, {"n": 11}),
        ({"/t": "text"}, {"t": "hello big world"}, {}, {"t": "Oh, hello big world today"}),
        ("auto", {"l": ["a", "b"]}, {}, {"l": ["x", "a", "b"]}),
        ({"/l/*/n": "counter"}, {"l": [{"id": 1, "n": 10}]}, {"l": []}, {"l": [{"id": 1, "n": 11}]}),
    ],
)
def test_a_removal_over_which_an_edit_won_is_undone_without_adding_up(rules: Any, base: Any, removed: Any, edited: Any) -> None:
    """L13: the values that another device's edit kept are not added to those before the removal."""
    place, schema = f"memory:{random.random()}", {"merge": 1, "ids": {"c/": rules}}
    with (
        llvs.Coordinator(storage="memory", exchange=place, schema=schema, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, schema=schema, device="b") as b,
    ):
        a.save(insert={"c/1": json.dumps(base).encode()})
        a.sync()
        b.sync()
        if removed is None:
            a.save(remove=["c/1"])
        else:
            a.save(update={"c/1": json.dumps(removed).encode()})
        b.save(update={"c/1": json.dumps(edited).encode()})
        for one in (a, b, a):
            one.sync()
        assert json.loads(a["c/1"]) == edited
        undone = a.undo()
        assert json.loads(a["c/1"]) == edited
        assert undone is not None and undone.superseded == ("c/1",) and undone.version is None


@pytest.mark.parametrize("start", [0, 100])
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_counter_is_exact_over_removals_and_their_undoing(start: int, is_whole: bool, is_known: bool) -> None:
    """Removing a counter sets it to its initial value; later changes of others count, and undoing the removal restores the rest."""
    def value(number: Optional[int]) -> dict[str, Optional[bytes]]:
        text = None if number is None else str(number).encode() if is_whole else b'{"n":%d}' % number
        return {"c/1": text if is_whole or text is not None else b"{}"}

    def save(device: llvs.Coordinator, number: Optional[int]) -> None:
        made = value(number)["c/1"]
        device.save(update={} if made is None else {"c/1": made}, remove=["c/1"] if made is None else [])

    place = f"memory:{random.random()}"
    rule = {"as": "counter", "from": start}
    schema = {"merge": 1, "ids": {"c/": rule if is_whole else {"/n": rule}}}
    with (
        llvs.Coordinator(storage="memory", exchange=place, schema=schema, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, schema=schema, device="b") as b,
    ):
        save(a, start + 10)
        a.sync()
        b.sync()
        save(a, None)
        save(b, start + 13)
        if is_known:
            for one in (a, b, a):
                one.sync()
            assert a["c/1"] == value(start + 3)["c/1"]
        a.undo()
        for one in (a, b, a):
            one.sync()
        assert a["c/1"] == b["c/1"] == value(start + 13)["c/1"]
        # Undo the first increment, on which another device's count is based.
        a.undo()
        for one in (a, b, a):
            one.sync()
        assert a["c/1"] == b["c/1"] == value(start + 3)["c/1"]


def test_a_pick_of_what_is_there_already_adds_nothing_up(store: llvs.Store) -> None:
    base = ruled(store)
    added = made(store, base, d_1={"n": 10, "bio": "hello world"})
    later = made(store, added, d_1={"n": 11, "bio": "Oh, hello world"})
    assert state(store, store.cherry_pick(added, onto=later).version)["d/1"] == {"n": 10, "bio": "hello world"}


def test_a_pick_counts_when_a_counter_is_another_number(store: llvs.Store) -> None:
    base = ruled(store, d_1={"n": 1, "name": "A"}, d_3={"n": 0})
    other = made(store, base, d_2={"n": 5})
    assert not store.cherry_pick(made(store, base, d_1={"n": 1.0, "name": "B"}), onto=other).counts
    assert not store.cherry_pick(made(store, base, d_1=None), onto=other).counts
    assert store.cherry_pick(made(store, base, d_1={"n": 2, "name": "A"}), onto=other).counts
    assert store.cherry_pick(made(store, base, d_4={"n": 2}), onto=other).counts


def test_rules_that_are_not_known_undo_and_pick_nothing(store: llvs.Store) -> None:
    """P37."""
    base = ruled(store, d_1={"n": 1})
    edit = made(store, base, d_1={"n": 3})
    unknown = store.make_version(base, update={"__llvs_schema": b'{"merge":2,"ids":{}}', "d/1": b'{"n":4}'})
    after = made(store, unknown, d_1={"n": 5})
    for done in (
        lambda: store.cherry_pick(unknown, onto=edit), lambda: store.cherry_pick(edit, onto=unknown),
        lambda: store.cherry_pick(after, onto=edit), lambda: store.revert(edit, at=unknown), lambda: store.revert(after, at=after),
    ):
        with pytest.raises(llvs.errors.UnsupportedError, match="not known"):
            done()


@pytest.mark.parametrize(
    "rules, first, more, before, expected",
    [
        ({"/n": "counter"}, {"a": 1, "n": 1}, {"a": 1, "n": 3}, {"a": 1}, {"a": 1, "n": 2}),
        ({"/n": {"as": "counter", "from": 100}}, {"n": 101}, {"n": 108}, {}, {"n": 107}),
        ({"/m/*": "counter"}, {"m": {"b": 1, "x": 2}}, {"m": {"b": 1, "x": 2.5}}, {"m": {"b": 1}}, {"m": {"b": 1, "x": 0.5}}),
        ("counter", 5, 7, None, 2),
        ({"/n": "counter"}, {"n": 1}, {"n": 1, "a": 1}, {}, {"a": 1}),
        ({"/n": "counter"}, {"n": 1}, {"n": 1}, {}, {}),
    ],
)
def test_the_first_increment_is_undone_and_what_others_added_stays(
    store: llvs.Store, rules: Any, first: Any, more: Any, before: Any, expected: Any
) -> None:
    root = store.make_version(insert={"__llvs_schema": json.dumps({"merge": 1, "ids": {"c/": rules}}).encode()})
    counted = made(store, at := made(store, root, c_1=before), c_1=first)
    # On top of it, and by a device that did not know of it.
    later = made(store, counted, c_1=more)
    done = store.revert(counted, at=later)
    assert done.version is not None and done.undone == ("c/1",) and done.superseded == () and done.conflicts == ()
    assert state(store, done.version)["c/1"] == expected
    # Reverting the undo adds the same again.
    if expected != before and expected != {"a": 1}:
        assert state(store, store.revert(done.version, at=done.version).version)["c/1"] == more
    assert state(store, store.revert(counted, at=counted).version).get("c/1") == state(store, at).get("c/1")


def test_the_first_increment_is_undone_after_a_merge(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A"})
    mine, theirs = made(store, base, d_1={"name": "A", "n": 1}), made(store, base, d_1={"name": "B", "n": 2})
    merged = store.merge(mine, theirs)
    assert state(store, merged)["d/1"] == {"name": "B", "n": 3}
    done = store.revert(mine, at=merged)
    assert state(store, done.version)["d/1"] == {"name": "B", "n": 2} and done.superseded == ()


def test_what_a_new_value_began_with_is_undone_where_others_counted_on(store: llvs.Store) -> None:
    """The value stays, since others changed it. Its counters are reduced by their initial values."""
    new = made(store, ruled(store), d_1={"name": "A", "n": 2})
    later = made(store, new, d_1={"name": "B", "n": 5})
    done = store.revert(new, at=later)
    assert state(store, done.version)["d/1"] == {"name": "B", "n": 3} and done.superseded == ("d/1",)
    assert state(store, store.revert(done.version, at=done.version).version)["d/1"] == {"name": "B", "n": 5}


WINNERS = {
    "plain": ({"plain": 0}, {"plain": 1}, {"plain": 2}),
    "member": ({"d_1": {"name": "A", "n": 1}}, {"d_1": {"name": "B", "n": 3}}, {"d_1": {"name": "C", "n": 8, "b": 1}}),
    "text": ({"d_1": {"bio": "The cat."}}, {"d_1": {"bio": "The dog."}}, {"d_1": {"bio": "The fox."}}),
    "lines": ({"d_1": {"bio": "a\nb\nc\n"}}, {"d_1": {"bio": "a\nb 1\nc\n"}}, {"d_1": {"bio": "a\nc\n"}}),
    "element": (
        {"d_1": {"items": [{"id": 1, "t": 0}, {"id": 2}]}}, {"d_1": {"items": [{"id": 1, "t": 1}, {"id": 2}]}},
        {"d_1": {"items": [{"id": 2}]}},
    ),
    "removed": ({"d_1": {"name": "A"}}, {"d_1": {"name": "B"}}, {"d_1": None}),
    "new": ({"d_1": None}, {"d_1": {"name": "B"}}, {"d_1": {"name": "C"}}),
}


@pytest.mark.parametrize("what", WINNERS)
def test_the_edit_that_lost_is_back_when_the_one_that_won_is_undone(store: llvs.Store, what: str) -> None:
    before, one, other = WINNERS[what]
    base = ruled(store, **before)
    a, b = made(store, base, **one), made(store, base, **other)
    merged = store.merge(a, b)
    for undone, left in ((a, b), (b, a)):
        done = store.revert(undone, at=merged)
        at = done.version or merged
        assert state(store, at) == state(store, left)
        # Reverting the undo restores the winning edit.
        if done.version is not None:
            assert state(store, store.revert(done.version, at=done.version).version) == state(store, merged)


def test_an_edit_before_the_one_that_won_is_reported(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A", "x": 0})
    other = made(store, base, d_1={"name": "theirs", "x": 0})
    first = made(store, base, d_1={"name": "first", "x": 0})
    second = made(store, first, d_1={"name": "second", "x": 0})
    merged = store.merge(second, other)
    later = made(store, merged, d_1={"name": "second", "x": 5})
    assert state(store, merged)["d/1"]["name"] == "second"
    # Without the second edit the first one wins, with the same conflict.
    done = store.revert(second, at=later)
    assert state(store, done.version)["d/1"] == {"name": "first", "x": 5} and done.superseded == ()
    (conflict,) = done.conflicts
    assert (conflict.newer, conflict.older, conflict.result) == (b'"first"', b'"theirs"', b'"first"')
    # Without both, the losing edit prevails; later edits stay.
    done = store.revert(first, at=done.version)
    assert state(store, done.version)["d/1"] == {"name": "theirs", "x": 5} and done.conflicts == () and done.superseded == ()


def test_edits_that_lost_in_several_merges(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A", "n": 0})
    one, other = made(store, base, d_1={"name": "B", "n": 1}), made(store, base, d_1={"name": "C", "n": 2})
    mine = made(store, base, d_1={"name": "mine", "n": 4})
    at = store.merge(store.merge(mine, one), other)
    assert state(store, at)["d/1"] == {"name": "mine", "n": 7}
    done = store.revert(mine, at=at)
    # The edit that lost against the undone one in the first merge takes its place, and so wins against the other edit, too.
    assert state(store, done.version)["d/1"] == {"name": "B", "n": 3}
    assert [(c.newer, c.older) for c in done.conflicts] == [(b'"B"', b'"C"')]


def test_an_undo_of_what_won_on_two_devices(tmp_path: Path) -> None:
    place = tmp_path / "place"
    with llvs.Coordinator(tmp_path / "one", device="one", exchange=place) as one:
        one.save(update={"name": b"0"})
        one.sync()
        with llvs.Coordinator(tmp_path / "two", device="two", exchange=place) as two:
            two.sync()
            one.save(update={"name": b"1"})
            two.save(update={"name": b"2"})
            for device in (one, two, one):
                device.sync()
            assert one["name"] == two["name"] == b"2"
            two.undo()
            two.sync()
            one.sync()
            assert one["name"] == two["name"] == b"1"


def test_a_slot_that_lost_goes_back_once_the_edit_that_won_is_undone(store: llvs.Store) -> None:
    """Beside a text that both changed: in each order nothing of either is left."""
    base = ruled(store, d_1={"bio": "one\ntwo\n", "slots": [100, 200], "n": 0})
    a = made(store, base, d_1={"bio": "one\nAnn's\ntwo\n", "slots": [5, 200], "n": 1})
    b = made(store, base, d_1={"bio": "one\nBob's\ntwo\n", "slots": [7, 200], "n": 10})
    merged = store.merge(a, b)
    assert state(store, merged)["d/1"] == {"bio": "one\nAnn's\nBob's\ntwo\n", "slots": [7, 200], "n": 11}
    for at in (merged, made(store, merged, d_1={**state(store, merged)["d/1"], "later": 1})):
        later = {key: value for key, value in state(store, at)["d/1"].items() if key == "later"}
        first = store.revert(b, at=at)
        assert state(store, first.version) == {"d/1": {**state(store, a)["d/1"], **later}}
        second = store.revert(a, at=first.version)
        assert state(store, second.version) == {"d/1": {**state(store, base)["d/1"], **later}}
        # Then the redo.
        redone = store.revert(second.version, at=second.version)
        assert state(store, redone.version) == state(store, first.version)
        assert state(store, store.revert(first.version, at=redone.version).version) == state(store, at)
    # The edit that lost first. Its slot had nothing left to revert, and is restored; then the same with the second.
    first = store.revert(a, at=merged)
    assert state(store, first.version)["d/1"] == {"bio": "one\nBob's\ntwo\n", "slots": [7, 200], "n": 10}
    assert first.superseded == ("d/1",)
    second = store.revert(b, at=first.version)
    assert state(store, second.version)["d/1"] == {"bio": "one\ntwo\n", "slots": [5, 200], "n": 0}


def test_an_edit_before_the_one_that_won_beside_a_text(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A", "bio": "one\ntwo\n"})
    other = made(store, base, d_1={"name": "theirs", "bio": "one\nTheirs\ntwo\n"})
    first = made(store, base, d_1={"name": "first", "bio": "one\nFirst\ntwo\n"})
    second = made(store, first, d_1={"name": "second", "bio": "one\nFirst\ntwo\n"})
    merged = store.merge(second, other)
    done = store.revert(second, at=merged)
    assert state(store, done.version)["d/1"] == {"name": "first", "bio": "one\nTheirs\nFirst\ntwo\n"}
    done = store.revert(first, at=done.version)
    assert state(store, done.version)["d/1"] == state(store, other)["d/1"]


def test_edits_that_lost_in_several_merges_come_back_by_their_age(store: llvs.Store) -> None:
    """An edit is undone, and then the edit on which it was made: the edits that lost against them return by their age."""
    base = ruled(store, d_1={"name": "A", "n": 0})
    other = made(store, base, d_1={"name": "other", "n": 2})
    one = made(store, base, d_1={"name": "one", "n": 1})
    first = made(store, base, d_1={"name": "first", "n": 4})
    second = made(store, first, d_1={"name": "second", "n": 12})
    at = store.merge(store.merge(second, one), other)
    assert state(store, at)["d/1"] == {"name": "second", "n": 15}
    done = store.revert(second, at=at)
    assert state(store, done.version)["d/1"] == {"name": "first", "n": 7}
    done = store.revert(first, at=done.version)
    assert state(store, done.version)["d/1"] == {"name": "one", "n": 3}
    assert [(c.newer, c.older) for c in done.conflicts if c.path == ("name",) and c.older == b'"other"']


def test_the_edit_that_lost_in_a_criss_cross_is_back(store: llvs.Store) -> None:
    """The two lines have several common ancestors; each has only a part of their common history."""
    base = ruled(store, d_1={"name": "0", "n": 0})
    a, b = made(store, base, d_1={"name": "0", "n": 1}), made(store, base, d_1={"name": "0", "n": 2})
    left = store.merge(made(store, a, other=1), b)
    right = store.merge(a, made(store, b, another=1))
    assert len(store.merge_bases(left, right)) == 2
    anns = made(store, left, d_1={"name": "Ann's", "n": 3})
    bobs = made(store, right, d_1={"name": "Bob's", "n": 3})
    merged = store.merge(anns, bobs)
    assert state(store, merged)["d/1"] == {"name": "Bob's", "n": 3}
    done = store.revert(bobs, at=merged)
    assert state(store, done.version)["d/1"] == {"name": "Ann's", "n": 3} and done.superseded == ()
    assert store.revert(anns, at=merged).version is None


@pytest.mark.parametrize("is_behind", [False, True])
def test_the_edit_that_lost_in_another_head_of_the_same_state_is_back(is_behind: bool) -> None:
    """Two devices reach equal states, and only one of them merged the edit that lost; both heads stay, since their states are equal."""
    with llvs.Coordinator(storage="memory", device="carol") as notes:
        store = notes.store
        # (With counters equal bytes do not imply equal states.)
        schema = store.make_version(update={"__llvs_schema": b'{"merge":1,"ids":{"d/":{"/tags":"set"}}}'})
        base = made(store, schema, d_1={"name": "0", "tags": []})
        bobs = made(store, base, d_1={"name": "0", "tags": ["b"]})
        anns = made(store, base, d_1={"name": "Ann's", "tags": []})
        mark = {"__llvs_device": "carol"}
        carols = store.make_version(base, update={"d/1": b'{"name":"Carol\'s","tags":[]}'}, metadata=mark)
        heads = store.merge(store.merge(anns, bobs), carols), store.merge(bobs, carols)
        assert state(store, heads[0]) == state(store, heads[1]) and heads[0].id != heads[1].id
        notes.current_version = heads[is_behind]
        done = notes.undo()
        assert json.loads(notes["d/1"]) == {"name": "Ann's", "tags": ["b"]}
        assert done is not None and done.superseded == () and done.versions == (carols.id,)


@pytest.mark.parametrize("counted", [1, 5])
def test_an_edit_that_an_arbiter_left_out_takes_nothing_off(store: llvs.Store, counted: int) -> None:
    base = ruled(store, d_1={"n": 0, "name": ""})
    a, b = made(store, base, d_1={"n": 1, "name": "A"}), made(store, base, d_1={"n": 2, "name": "B"})
    for sides, kept, dropped in (((a, b), a, b), ((b, a), b, a)):
        merged = store.merge(*sides, llvs.Ours())
        assert state(store, merged) == state(store, kept)
        done = store.revert(dropped, at=merged)
        assert done.version is None and done.superseded == ("d/1",)
        later = made(store, merged, d_1={"n": counted, "name": "later"})
        done = store.revert(dropped, at=later)
        assert done.version is None and done.superseded == ("d/1",)
        # Reverting the kept save subtracts what it counted.
        done = store.revert(kept, at=merged)
        assert state(store, done.version) == state(store, dropped)


def test_it_is_reported_if_what_lost_is_not_known(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "0"})
    a, b = made(store, base, d_1={"name": "A", "a": 1}), made(store, base, d_1={"name": "B", "b": 1})
    merged = store.merge(a, b, llvs.Rules({"merge": 1, "ids": {"d/": {"/name": {"pick": "older"}}}}))
    assert state(store, merged)["d/1"] == {"name": "A", "a": 1, "b": 1}
    done = store.revert(a, at=merged)
    assert state(store, done.version)["d/1"] == {"name": "0", "b": 1} and done.superseded == ("d/1",)


REMOVED = {
    "member": ({"name": "A", "k": 0}, {"name": "B", "k": 0}, {"k": 0}),
    "row": ({"items": [{"id": 1, "t": 0}, {"id": 2}]}, {"items": [{"id": 1, "t": 1}, {"id": 2}]}, {"items": [{"id": 2}]}),
    "counter": ({"n": 1, "k": 0}, {"n": 5, "k": 0}, {"k": 0}),
    "object": ({"d": {"k": {"t": 0}}}, {"d": {"k": {"t": 1}}}, {"d": {}}),
    "line": ({"bio": "one\ntwo\nthree\n"}, {"bio": "one\ntwo, new\nthree\n"}, {"bio": "one\nthree\n"}),
    "value": ({"name": "A"}, {"name": "B"}, None),
}


@pytest.mark.parametrize("what", REMOVED)
def test_what_was_removed_since_stays_removed(store: llvs.Store, what: str) -> None:
    before, edited, removed = REMOVED[what]
    base = ruled(store, d_1=before)
    edit = made(store, base, d_1=edited)
    at = made(store, edit, d_1=removed)
    done = store.revert(edit, at=at)
    assert done.version is None and done.superseded == ("d/1",)
    # The removal is undone as ever.
    assert state(store, store.revert(at, at=at).version).get("d/1") == edited


def test_a_removal_is_picked_if_the_removed_part_was_not_changed(store: llvs.Store) -> None:
    base = ruled(store, d_1={"name": "A", "k": 0})
    removal = made(store, base, d_1={"k": 0})
    picked = store.cherry_pick(removal, onto=made(store, base, d_1={"name": "A", "k": 1}))
    assert state(store, picked.version)["d/1"] == {"k": 1}
    picked = store.cherry_pick(removal, onto=made(store, base, d_1={"name": "C", "k": 1}))
    assert picked.version is None and [c.kind.value for c in picked.conflicts] == ["delete-edit"]


@pytest.mark.parametrize("seed", seeds(range(6), range(60)))
def test_undoing_one_side_of_a_merge_gives_the_other(seed: int) -> None:
    """Undoing one side of a merge gives the other side, also if both changed the same members, elements, or values without rules. (Equal
    changes of both are undone for both.)"""
    draw = random.Random(seed)

    def document(side: int, removes: float) -> dict[str, Any]:
        drawn: dict[str, Any] = {name: 10 * side + draw.randrange(3) for name in "abn" if draw.random() >= removes}
        drawn["items"] = [{"id": i, "t": 10 * side + draw.randrange(2)} for i in range(3) if draw.random() >= removes]
        return drawn

    for _ in range(20):
        with llvs.Store(storage="memory") as store:
            base = ruled(store, d_1=document(0, 0.2), plain=0)
            a = made(store, base, d_1=document(1, 0), plain=1)
            b = made(store, base, d_1=document(2, 0.2), plain=2)
            merged = store.merge(a, b)
            for undone, left in ((a, b), (b, a)):
                done = store.revert(undone, at=merged)
                assert state(store, done.version or merged) == state(store, left), seed
