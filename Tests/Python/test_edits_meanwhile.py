"""Edits of an object that other devices change meanwhile: the edits in a form and the changes that arrived are merged like edits of two
devices."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Callable, Iterator

import llvs
import pytest
from llvs import models


@models.model("note/")
@dataclass
class Note:
    a: str = ""
    b: str = ""
    tags: set[str] = field(default_factory=set)


@pytest.fixture
def app() -> Iterator[llvs.Coordinator]:
    with llvs.Coordinator(storage="memory", device="here") as made:
        made.collection(Note)["1"] = Note("base", "base")
        yield made


def kinds(notes: models.Collection[Note], id: str = "1") -> list[tuple[tuple[Any, ...], str]]:
    return [(tuple(record.path), record.kind.value) for record in notes.open_conflicts().get(id, ())]


def change(app: llvs.Coordinator, **members: Any) -> None:
    with app.collection(Note).edit("1") as note:
        for name, value in members.items():
            setattr(note, name, value)


def predecessors(app: llvs.Coordinator) -> list[str]:
    version = app.store.version(app.current_version.id)
    assert version is not None
    return list(version.predecessors)


WAYS = ["in the block", "at a version"]


def edited_beside(app: llvs.Coordinator, way: str, meanwhile: Callable[[], None], edit: Callable[[Note], None]) -> None:
    """Edits the note as it was before another change was made."""
    notes, read = app.collection(Note), app.current_version.id
    if way == "at a version":
        meanwhile()
        with notes.edit("1", at=read) as note:
            edit(note)
    else:
        with notes.edit("1") as note:
            meanwhile()
            edit(note)


@pytest.mark.parametrize("way", WAYS)
def test_what_both_changed_is_a_conflict(app: llvs.Coordinator, way: str) -> None:
    notes = app.collection(Note)
    edited_beside(app, way, lambda: change(app, a="theirs"), lambda note: setattr(note, "a", "mine"))
    assert notes["1"] == Note("mine", "base")
    assert kinds(notes) == [(("a",), "pick")]
    (record,) = notes.open_conflicts()["1"]
    assert (record.base, record.newer, record.older) == ("base", "mine", "theirs")


@pytest.mark.parametrize("way", WAYS)
def test_other_members_are_merged(app: llvs.Coordinator, way: str) -> None:
    notes = app.collection(Note)

    def edit(note: Note) -> None:
        note.a = "mine"
        note.tags.add("mine")

    edited_beside(app, way, lambda: change(app, b="theirs", tags={"theirs"}), edit)
    assert notes["1"] == Note("mine", "theirs", {"mine", "theirs"})
    assert not notes.open_conflicts()


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_beside_a_removal_stands_and_is_reported(app: llvs.Coordinator, way: str) -> None:
    notes = app.collection(Note)
    edited_beside(app, way, lambda: notes.__delitem__("1"), lambda note: setattr(note, "a", "mine"))
    assert notes["1"] == Note("mine", "base")
    assert [kind for _, kind in kinds(notes)] == ["delete-edit"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_changed_saves_nothing(app: llvs.Coordinator, way: str) -> None:
    notes = app.collection(Note)
    edited_beside(app, way, lambda: change(app, a="theirs"), lambda note: None)
    assert notes["1"] == Note("theirs", "base")
    assert len(predecessors(app)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_goes_on_the_current_version_if_its_object_stayed(app: llvs.Coordinator, way: str) -> None:
    notes, current = app.collection(Note), []

    def meanwhile() -> None:
        notes["2"] = Note("another")
        current.append(app.current_version.id)

    edited_beside(app, way, meanwhile, lambda note: setattr(note, "a", "mine"))
    assert predecessors(app) == current
    assert notes["1"].a == "mine" and notes["2"].a == "another"


def test_the_same_edits_come_to_the_same_however_they_meet() -> None:
    """The same edits have the same result in the block of an edit, at the version of a form, and in a merge; on both devices."""
    found = []
    for way in [*WAYS, "a merge"]:
        place = "memory:meets " + way
        with (
            llvs.Coordinator(storage="memory", exchange=place, device="A") as one,
            llvs.Coordinator(storage="memory", exchange=place, device="B") as two,
        ):
            one.collection(Note)["1"] = Note("base")
            one.sync()
            two.sync()

            def theirs() -> None:
                change(two, a="theirs", b="theirs")
                if way != "a merge":
                    two.sync()
                    one.sync()

            if way == "a merge":
                theirs()
                change(one, a="mine")
            else:
                edited_beside(one, way, theirs, lambda note: setattr(note, "a", "mine"))
            for device in (one, two, one):
                device.sync()
            found += [(device.collection(Note)["1"], kinds(device.collection(Note))) for device in (one, two)]
    assert found == [(Note("mine", "theirs"), [(("a",), "pick")])] * 6


def test_two_windows_of_one_process(app: llvs.Coordinator) -> None:
    notes = app.collection(Note)
    with notes.edit("1") as first:
        first.a = "first"
        with notes.edit("1") as second:
            second.a = "second"
        assert notes["1"].a == "second"
    assert notes["1"].a == "first"
    assert kinds(notes) == [(("a",), "pick")]
    # An undo reverts the changes of the edit against the version that it read. The losing edit then prevails; the second undo reverts that.
    app.undo()
    assert notes["1"].a == "second"
    app.undo()
    assert notes["1"].a == "base"


def test_what_is_no_ancestor_brings_nothing_else(app: llvs.Coordinator) -> None:
    """A form was filled on another line of versions. Its changes are applied to the present values."""
    notes, base = app.collection(Note), app.current_version.id
    notes["2"] = Note("on this line")
    change(app, b="here")
    here = app.current_version.id
    app.current_version = base
    notes["3"] = Note("on the other line")
    change(app, b="there")
    there = app.current_version.id
    app.current_version = here
    with notes.edit("1", at=there) as note:
        note.a = "mine"
    assert notes["1"] == Note("mine", "here")
    assert set(notes) == {"1", "2"}


def test_a_default_is_changed_as_the_block_changed_it(app: llvs.Coordinator) -> None:
    notes = app.collection(Note)
    with notes.edit("2", default=Note()) as note:
        with notes.edit("2", default=Note()) as other:
            other.b = "theirs"
        note.a = "mine"
    assert notes["2"] == Note("mine", "theirs")
    assert not notes.open_conflicts()


def test_saves_that_merge(app: llvs.Coordinator) -> None:
    read = app.current_version.id
    app.save(update={"raw": b"1"})
    first = app.save(update={"raw": b"2"}, expected=read, merges=True)
    assert first is not None and app["raw"] == b"2"
    # The value was absent at the expected version, and exists now.
    assert list(first.predecessors) == [read] and len(predecessors(app)) == 2
    second = app.save(update={"else": b"3"}, expected=read, merges=True)
    assert second is not None and second.id == app.current_version.id
    with pytest.raises(llvs.errors.InvalidArgumentError):
        app.save(update={"raw": b"4"}, merges=True)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        app.save(update={"raw": b"4"}, expected=read, branch="draft", merges=True)
    with pytest.raises(llvs.errors.UnknownVersionError):
        app.save(update={"raw": b"4"}, expected="nowhere", merges=True)


def test_a_save_that_merges_where_the_current_version_does_not_descend(app: llvs.Coordinator) -> None:
    base = app.current_version.id
    ahead = app.save(update={"raw": b"1"})
    assert ahead is not None
    app.current_version = base
    with pytest.raises(llvs.MovedError):
        app.save(update={"raw": b"2"}, expected=ahead, merges=True)
    assert "raw" not in app


def test_a_save_that_cannot_be_merged_is_kept() -> None:
    """An arbiter of the host fails: the save is a head of its own, and the next merge reports why."""

    def arbiter(merge: llvs.merge.Merge, store: llvs.Store) -> list[llvs.Change]:
        raise ValueError("not now")

    with llvs.Coordinator(storage="memory", arbiter=arbiter) as app:
        app.save(insert={"raw": b"0"})
        read = app.current_version.id
        app.save(update={"raw": b"1"})
        current = app.current_version.id
        saved = app.save(update={"raw": b"2"}, expected=read, merges=True)
        assert saved is not None and app.current_version.id == current and app["raw"] == b"1"
        with pytest.raises(ValueError, match="not now"):
            app.merge()
        app.current_version = app.store.merge(current, saved, llvs.MostRecentChange())
        assert app["raw"] == b"2"


def test_threads_that_change_members_of_one_object() -> None:
    count = 250
    names = [f"member{number}" for number in range(8)]
    model = models.model("many/")(make_dataclass("Many", [(name, int, field(default=0)) for name in names]))
    with llvs.Coordinator(storage="memory") as app:
        objects: models.Collection[Any] = app.collection(model)
        objects["1"] = model()
        failures: list[BaseException] = []

        def work(name: str) -> None:
            try:
                for _ in range(count):
                    with objects.edit("1") as one:
                        setattr(one, name, getattr(one, name) + 1)
            except BaseException as problem:
                failures.append(problem)

        threads = [threading.Thread(target=work, args=[name]) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert objects["1"] == model(**dict.fromkeys(names, count))
        assert not objects.open_conflicts()
