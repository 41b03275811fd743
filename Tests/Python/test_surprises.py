"""The section "What surprises" of docs/merging.md is true, and the alternatives that it names work."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Callable, Iterator, Optional

import llvs
import pytest

PLACES = map("memory:test_surprises-{}".format, itertools.count())
Devices = tuple[llvs.Coordinator, llvs.Coordinator]


@pytest.fixture
def devices() -> Iterator[Devices]:
    place = next(PLACES)
    with (
        llvs.Coordinator(storage="memory", exchange=place, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, device="b") as b,
    ):
        yield a, b


def sync(devices: Devices) -> None:
    for device in (*devices, devices[0]):
        device.sync()


@dataclass
class Item:
    id: str = ""
    visits: Annotated[int, llvs.models.Counter()] = 0


@llvs.models.model("board/")
@dataclass
class Board:
    todo: list[Item] = field(default_factory=list)
    doing: list[Item] = field(default_factory=list)
    done: list[Item] = field(default_factory=list)


@llvs.models.model("card/")
@dataclass
class Card:
    column: str = "todo"
    parent: Optional[str] = None


def test_an_element_that_both_moved_to_other_lists_is_in_both(devices: Devices) -> None:
    a, b = devices
    a.collection(Board)["1"] = Board([Item("x")])
    sync(devices)
    for device, name in ((a, "doing"), (b, "done")):
        with device.collection(Board).edit("1") as board:
            getattr(board, name).append(board.todo.pop())
    sync(devices)
    assert a.collection(Board)["1"] == Board([], [Item("x")], [Item("x")])
    assert not a.open_conflicts().records


def test_the_list_as_a_member_of_the_element_is_one(devices: Devices) -> None:
    a, b = devices
    a.collection(Card)["x"] = Card()
    sync(devices)
    for device, name in ((a, "doing"), (b, "done")):
        with device.collection(Card).edit("x") as card:
            card.column = name
    sync(devices)
    for device in devices:
        assert device.collection(Card)["x"].column == "done"
        (conflict,) = device.open_conflicts()["card/x"]
        assert conflict.path == ("column",) and json.loads(conflict.older or b"") == "doing"


def circles(cards: dict[str, Card]) -> list[set[str]]:
    """A check of the model."""
    found: list[set[str]] = []
    for id in cards:
        seen: list[str] = []
        at: Optional[str] = id
        while at is not None and at in cards and at not in seen:
            seen.append(at)
            at = cards[at].parent
        if at == id and set(seen) not in found:
            found.append(set(seen))
    return found


def test_two_moves_make_a_circle_that_a_check_of_the_model_reports(devices: Devices) -> None:
    a, b = devices
    a.collection(Card).update({"x": Card(), "y": Card(), "z": Card(parent="x")})
    sync(devices)
    for device, id, parent in ((a, "x", "y"), (b, "y", "x")):
        assert not circles(dict(device.collection(Card).items()))
        with device.collection(Card).edit(id) as card:
            card.parent = parent
    sync(devices)
    for device in devices:
        assert circles(dict(device.collection(Card).items())) == [{"x", "y"}]
        assert not device.open_conflicts().records, "no merge sees it"
    with b.collection(Card).edit("y") as card:
        card.parent = None
    sync(devices)
    assert not circles(dict(a.collection(Card).items()))


def test_newer_is_reported_for_the_whole_object(devices: Devices) -> None:
    a, b = devices
    a.collection(Card)["x"] = Card()
    sync(devices)
    with a.collection(Card).edit("x") as card:
        card.column = "first"
    with b.collection(Card).edit("x") as card:
        card.column = "second"
    with a.collection(Card).edit("x") as card:
        card.parent = "y"
    sync(devices)
    assert b.collection(Card)["x"] == Card("first", "y")
    assert [conflict.path for conflict in b.open_conflicts()["card/x"]] == [("column",)]


def reverted(device: llvs.Coordinator, version: str) -> None:
    done = device.store.revert(version, at=device.current_version)
    assert done.version is not None
    device.current_version = done.version


def undone(device: llvs.Coordinator, version: str) -> None:
    device.revert(version)


def brought_back(device: llvs.Coordinator, version: str) -> None:
    with device.collection(Board).edit("1") as board:
        board.todo = [Item("x", 3)]


@pytest.mark.parametrize("act, expected", [(reverted, [-3]), (undone, [0]), (brought_back, [6])])
def test_a_counter_knows_no_saves(devices: Devices, act: Callable[[llvs.Coordinator, str], None], expected: Any) -> None:
    """Two devices make the same change: each one counts, unless both are known to undo the same save."""
    a, b = devices
    a.collection(Board)["1"] = Board([Item("x")])
    with a.collection(Board).edit("1") as board:
        if act is not brought_back:
            board.todo[0].visits += 3
        else:
            board.todo = []
    saved = a.current_version
    sync(devices)
    for device in devices:
        act(device, saved)
    sync(devices)
    assert [item.visits for item in a.collection(Board)["1"].todo] == expected


@pytest.mark.parametrize("order, expected", [("abc", b'{"n":1}'), ("acb", b'{"n":-4}')])
def test_a_counter_that_two_devices_remove_and_a_third_adds_to(order: str, expected: bytes) -> None:
    """If both removed it, the removal counts once; otherwise each removal subtracts the former value."""
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={"c": b'{"n":5}', "__llvs_schema": b'{"merge":1,"ids":{"c":{"/n":"counter"}}}'})
        made = {"a": b"{}", "b": b'{"x":1}', "c": b'{"n":6}'}
        versions = [store.make_version(base, update={"c": made[name]}) for name in order]
        merged = store.merge(store.merge(versions[0], versions[1]), versions[2])
        assert json.loads(store.at(merged)["c"]) == {"x": 1, **json.loads(expected)}
        assert [record.kind.value for record in store.explain(merged).records] == ["delete-edit"]


def test_an_element_of_a_list_that_is_put_into_another_slot_removes_the_one_there() -> None:
    """A list without equal elements is merged by its elements: all that was removed and added is in the result, but no four slots."""
    def merged(rule: str, *values: list[int]) -> tuple[list[int], int]:
        base, newer, older = (json.dumps({"v": value}).encode() for value in values)
        found = llvs.merge.merge_values(base, newer, older, {"/v": rule})
        return json.loads(found.data or b"")["v"], len(found.records)

    sides = [1, 2, 3, 4], [1, 2, 3, 8], [1, 2, 4, 8]
    assert merged("auto", *sides) == ([1, 2, 8], 0)
    assert merged("tuple", *sides) == ([1, 2, 4, 8], 0)
