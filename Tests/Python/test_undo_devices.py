"""Undo on several devices: undone edits do not return, in any order and on any device. Other edits remain."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import llvs
import pytest
from sampling import seeds

RULES = {"merge": 1, "ids": {"d/": {"/n": "counter", "/tags": "set", "/bio": "text", "/items": {"as": "list", "key": ["/id"]}}}}
PLACES = (f"memory:undo-devices-{number}" for number in itertools.count())
FIRST: dict[str, Any] = {"name": "0", "bio": "one\ntwo\n", "n": 0, "tags": [], "l": [1, 2, 3], "items": [{"id": 1, "t": 0}]}


def data(value: Any) -> bytes:
    return json.dumps(value).encode()


class Devices:
    """Several devices with one exchange. Each starts with a first save by another device."""

    def __init__(self, first: Optional[dict[str, Any]], count: int = 2, rules: Any = RULES) -> None:
        place = next(PLACES)
        self.all = [llvs.Coordinator(storage="memory", exchange=place, device="abc"[i]) for i in range(count)]
        with llvs.Coordinator(storage="memory", exchange=place, schema=rules, device="setup") as setup:
            setup.save(update={"other": b"0"} if first is None else {"d/1": data(first), "other": b"0"})
            setup.sync()
        self.sync()

    def __enter__(self) -> Devices:
        return self

    def __exit__(self, *_: Any) -> None:
        for one in self.all:
            one.close()

    def sync(self) -> None:
        for _ in range(3):
            for one in self.all:
                one.sync()

    def save(self, device: int, value: Any, id: str = "d/1") -> str:
        saved = self.all[device].save(update={} if value is None else {id: data(value)}, remove=[id] if value is None else [])
        assert saved is not None
        return saved.id

    def state(self, device: int) -> dict[str, Any]:
        return {id: json.loads(value) for id, value in self.all[device].items() if not id.startswith("__llvs")}

    def same(self) -> dict[str, Any]:
        """Syncs all devices, and returns their common state."""
        self.sync()
        states = [self.state(i) for i in range(len(self.all))]
        assert all(state == states[0] for state in states), states
        return states[0]

    def value(self, id: str = "d/1") -> Any:
        return self.same().get(id)


def changed(**members: Any) -> dict[str, Any]:
    return {**FIRST, **members}


#: The first value, the values that each of two devices saves, and the rules.
EDITS: dict[str, tuple[Any, Any, Any, Any]] = {
    "both create one object": (None, {"name": "A", "n": 2}, {"name": "B", "n": 1}, RULES),
    "one member": (FIRST, changed(name="A"), changed(name="B"), RULES),
    "a whole value": ({"v": 0}, {"v": 1}, {"v": 2}, None),
    "a word of a text": (FIRST, changed(bio="one\nred\n"), changed(bio="one\nblue\n"), RULES),
    "a line against its removal": (FIRST, changed(bio="one\nnew\n"), changed(bio="two\n"), RULES),
    "a line in the place of another": (FIRST, changed(bio="one\nnew\n"), changed(bio="uno\nnew two\n"), RULES),
    "equal edits": (FIRST, changed(name="E"), changed(name="E"), RULES),
    "equal edits beside others": (FIRST, changed(name="E", n=1), changed(name="E", x=1), RULES),
    "an equal whole value": ({"v": 0}, {"v": 1}, {"v": 1}, None),
    "an element of plain values": (FIRST, changed(l=[1, 9, 3]), changed(l=[1, 8, 3]), RULES),
    "equal elements of plain values": (FIRST, changed(l=[1, 2, 3, 4]), changed(l=[1, 2, 3, 4], x=1), RULES),
    "elements of plain values": (FIRST, changed(l=[1, 2, 3, 4, 4]), changed(l=[4, 1, 3]), RULES),
    "an equal tag": (FIRST, changed(tags=["t"]), changed(tags=["t"], n=2), RULES),
    "a row against its removal": (FIRST, changed(items=[{"id": 1, "t": 5}]), changed(items=[]), RULES),
    "an object against its removal": (FIRST, changed(n=3, name="A"), None, RULES),
}


@pytest.mark.parametrize("order", ["beside each other", "the first first", "the second first"])
@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize("what", EDITS)
def test_what_all_undid_is_away(what: str, is_swapped: bool, order: str) -> None:
    first, one, other, rules = EDITS[what]
    with Devices(first, rules=rules) as devices:
        devices.save(int(is_swapped), one)
        devices.save(int(not is_swapped), other)
        devices.sync()
        for device in (1, 0) if order == "the second first" else (0, 1):
            assert devices.all[device].undo() is not None
            if order != "beside each other":
                devices.sync()
        assert devices.value() == first
        # If both redo, both edits prevail again.
        for device in (0, 1):
            assert devices.all[device].redo() is not None
        again = devices.value()
    with Devices(first, rules=rules) as devices:
        devices.save(int(is_swapped), one)
        devices.save(int(not is_swapped), other)
        assert devices.value() == again


@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize("what", EDITS)
def test_what_one_undid_is_as_the_other_left_it(what: str, is_swapped: bool) -> None:
    """This holds for equal edits as well: the other device's edit remains, and the undo reports that it changed nothing."""
    first, one, other, rules = EDITS[what]
    for undoing in (0, 1):
        with Devices(first, rules=rules) as devices:
            devices.save(int(is_swapped), one)
            devices.save(int(not is_swapped), other)
            merged = devices.value()
            done = devices.all[undoing].undo()
            left = one if undoing == int(not is_swapped) else other
            assert done is not None and devices.value() == left
            assert (done.version is None) == (merged == left)
            assert done.version is not None or done.superseded == ("d/1",)


def test_an_undo_that_changes_nothing_is_noted_and_redone() -> None:
    with Devices(FIRST) as devices:
        a, b = devices.all
        mine = devices.save(0, changed(name="A"))
        devices.save(1, changed(name="B"))
        devices.sync()
        at = a.current_version
        done = a.undo()
        # The version that records the undo has the same values.
        assert done is not None and (done.version, done.undone, done.superseded) == (None, (), ("d/1",)) and done.versions == (mine,)
        assert a.current_version != at and not list(a.store.changes(a.current_version))
        assert a.undo() is None and a.can_redo
        devices.sync()
        redone = a.redo()
        assert redone is not None and redone.version is None and not a.can_redo and a.undo_description is None and a.can_undo
        devices.sync()
        assert b.undo() is not None and devices.value() == changed(name="A")
        assert a.undo() is not None and devices.value() == FIRST
        assert b.redo() is not None and devices.value() == changed(name="B")


@pytest.mark.parametrize("is_newer", [False, True])
@pytest.mark.parametrize("is_merged", [False, True])
def test_the_last_save_is_undone_where_two_heads_have_one_state(is_newer: bool, is_merged: bool) -> None:
    """Two devices reach one state by different histories. The undo reverts the last save of the device, whether one of the two heads or
    their merge is current."""
    place = next(PLACES)
    with (
        llvs.Coordinator(storage="memory", exchange=place, device="a") as a,
        llvs.Coordinator(storage="memory", exchange=place, device="b") as b,
    ):
        a.save(update={"x": b"0", "y": b"0"})
        a.save(update={"y": b"1"})
        for one in (a, b):
            one.sync()

        def save() -> str:
            a.save(update={"x": b"1"})
            saved = a.save(update={"x": b"2"})
            assert saved is not None
            return saved.id

        mine = "" if is_newer else save()
        b.save(update={"x": b"2"})
        mine = mine or save()
        for one in (a, b, a, b):
            one.sync()
        if is_merged:
            b.save(update={"z": b"1"})
            for one in (b, a):
                one.sync()
        assert len(a.store.heads()) == (1 if is_merged else 2)
        found = a.next_undo()
        assert found is not None and found.versions == (mine,)
        done = a.undo()
        assert done is not None and done.versions == (mine,) and a["y"] == b"1"
        # The save of b prevails, unless the first save of a is newer.
        assert a["x"] == (b"1" if is_newer else b"2")
        for one in (a, b, a, b):
            one.sync()
        assert dict(a) == dict(b) and b["x"] == a["x"]


def test_words_that_another_device_took_back_do_not_return() -> None:
    with Devices(FIRST) as devices:
        a, b = devices.all
        devices.save(0, changed(bio="one\nmine\ntwo\n"))
        devices.save(1, changed(bio="one\ntheirs\ntwo\n"))
        devices.sync()
        later = json.loads(a["d/1"])
        devices.save(0, {**later, "bio": later["bio"].replace("mine", "mine, more").replace("two", "two!")})
        devices.sync()
        b.undo()
        devices.sync()
        a.undo()
        assert devices.value()["bio"] == "one\nmine\ntwo\n"
        a.undo()
        assert devices.value() == FIRST


def test_what_was_saved_over_an_edit_stays_when_that_is_undone_beside_it() -> None:
    with Devices(FIRST) as devices:
        a, b = devices.all
        devices.save(0, 4, "other")
        devices.sync()
        devices.save(1, 5, "other")
        a.undo()
        assert devices.value("other") == 5
        b.undo()
        assert devices.value("other") == 0


def test_an_edit_that_lost_against_one_that_was_undone_elsewhere_is_back() -> None:
    """One device undoes an edit. Meanwhile another device, which undoes nothing, merges an edit that lost against it."""
    with Devices(FIRST, 3) as devices:
        a, b, c = devices.all
        devices.save(2, changed(name="C"))
        devices.save(0, changed(name="A"))
        for one in (a, b):
            one.sync()
        c.sync()
        b.sync()
        assert json.loads(b["d/1"])["name"] == "A"
        a.undo()
        assert devices.value()["name"] == "C"


def test_two_devices_revert_one_save_once() -> None:
    with Devices(FIRST) as devices:
        counted = devices.save(0, changed(n=3))
        devices.sync()
        for device in devices.all:
            assert device.revert(counted).version is not None
        assert devices.value() == FIRST


def test_a_mark_that_names_the_empty_root_undoes_nothing() -> None:
    """Any device may write such a mark. The edit that carries it prevails."""
    place = next(PLACES)
    schema = {"merge": 1, "ids": {"d/": "auto"}}
    with llvs.Coordinator(storage="memory", device="a", exchange=place, schema=schema) as a, \
            llvs.Coordinator(storage="memory", device="b", exchange=place) as b:
        a.save(update={"d/1": b'{"x":0,"y":0}'})
        a.sync()
        b.sync()
        b.save(update={"d/1": b'{"x":0,"y":9}'})
        a.save(update={"d/1": b'{"x":1,"y":0}'}, metadata={"__llvs_undo": ["00000000-0000-8000-8000-000000000000"]})
        for _ in range(2):
            a.sync()
            b.sync()
        assert a["d/1"] == b["d/1"] == b'{"x":1,"y":9}'


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("with_caches", [True, False])
def test_undos_count_after_the_stores_were_opened_again(tmp_path: Path, storage: Any, with_caches: bool) -> None:
    def device(name: str) -> llvs.Coordinator:
        if not with_caches and storage == "file":
            for cache in (tmp_path / name).rglob("*cache*"):
                if cache.is_file():
                    cache.unlink()
        return llvs.Coordinator(tmp_path / name, storage=storage, exchange=tmp_path / "place", device=name, schema=RULES)

    def each(act: Callable[[llvs.Coordinator], Any]) -> None:
        for name in "ab":
            with device(name) as notes:
                act(notes)

    with device("setup") as setup:
        setup.save(insert={"d/1": data(FIRST)})
        setup.sync()
    each(lambda notes: notes.sync())
    each(lambda notes: notes.save(update={"d/1": data(changed(name="E", n=1))}))
    for _ in range(2):
        each(lambda notes: notes.sync())
    with device("a") as a:
        assert json.loads(a["d/1"]) == changed(name="E", n=2)
    each(lambda notes: notes.undo())
    for _ in range(2):
        each(lambda notes: notes.sync())
    with device("a") as a, device("b") as b:
        assert json.loads(a["d/1"]) == json.loads(b["d/1"]) == FIRST


class Drawn:
    """A random history: devices save, undo, redo and sync at random."""

    def __init__(self, seed: int, count: int, apart: bool) -> None:
        """apart: each save adds something unique, so that the state shows which saves prevail."""
        self.draw, self.apart = random.Random(seed), apart
        self.devices = Devices({**FIRST, "l": [1, 2], "items": []}, count)
        self.first = self.devices.same()
        self.saves: dict[str, tuple[str, int]] = {}
        #: For each device: the saves that are not undone, and the undone saves. For all devices: the saves of which nothing could be
        #: undone.
        self.standing: list[list[str]] = [[] for _ in self.devices.all]
        self.undone: list[list[str]] = [[] for _ in self.devices.all]
        self.passed: set[str] = set()
        self.numbers = itertools.count(1)

    def edit(self, device: int) -> None:
        draw, number = self.draw, next(self.numbers)
        kinds = ["n", "tags", "bio", "items", "name", "l", "other", "new"]
        kind = draw.choice(kinds if self.apart else [*kinds, "remove row", "edit row", "edit line", "remove line", "remove object"])
        own = number if self.apart else draw.randrange(3)
        if kind in ("other", "new"):
            id = "other" if kind == "other" else f"d/{own + 10}"
            return self.save(device, kind, number, id, own if kind == "other" else {"name": f"new {own}", "n": own})
        if kind == "remove object":
            id = draw.choice(["d/1", "d/10"])
            return self.save(device, kind, number, id, None) if id in self.devices.all[device] else None
        value = self.devices.state(device).get("d/1")
        if value is None:
            return None
        lines, rows, plain = value["bio"].splitlines(True), value["items"], value["l"]
        if kind == "n":
            value["n"] += number % 3 + 1
        elif kind == "tags":
            value["tags"] += [] if f"t{own}" in value["tags"] else [f"t{own}"]
        elif kind == "name":
            value["name"] = f"name {own}"
        elif kind == "bio":
            lines.insert(draw.randrange(len(lines) + 1), f"line {own}\n")
        elif kind == "l":
            plain.insert(draw.randrange(len(plain) + 1), 100 + own)
        elif kind == "items" and all(row["id"] != own for row in rows):
            rows.insert(draw.randrange(len(rows) + 1), {"id": own, "t": 0})
        elif kind == "edit row" and rows:
            draw.choice(rows)["t"] = number
        elif kind == "remove row" and rows:
            rows.pop(draw.randrange(len(rows)))
        elif kind == "edit line" and lines:
            place = draw.randrange(len(lines))
            lines[place] = lines[place].rstrip("\n") + f" word {own}\n"
        elif kind == "remove line" and lines:
            lines.pop(draw.randrange(len(lines)))
        return self.save(device, kind, number, "d/1", {**value, "bio": "".join(lines)})

    def save(self, device: int, kind: str, number: int, id: str, value: Any) -> None:
        saved = self.devices.save(device, value, id)
        self.saves[saved] = (kind, number)
        self.standing[device].append(saved)
        self.undone[device].clear()

    def undo(self, device: int) -> bool:
        notes, standing = self.devices.all[device], self.standing[device]
        before = notes.current_version
        done = notes.undo()
        if done is None:
            assert self.passed.issuperset(standing)
            return False
        (version,) = done.versions
        # The undo chooses the last save of this device, except for saves of which nothing was left at an earlier undo.
        assert [one for one in standing if one not in self.passed or one == version][-1:] == [version]
        if notes.current_version == before:
            self.passed.add(version)
        else:
            standing.remove(version)
            self.undone[device].append(version)
        return True

    def redo(self, device: int) -> None:
        if self.devices.all[device].redo() is not None and self.undone[device]:
            self.standing[device].append(self.undone[device].pop())
            # A skipped save may be later than this one. Undos proceed from the newest save to the oldest.
            self.standing[device].sort(key=lambda version: self.saves[version][1])

    def check(self) -> None:
        """If each save adds something unique, checks that the state contains every addition that is not undone, once."""
        state = self.devices.same()
        if not self.apart:
            return
        standing = [self.saves[version] for versions in self.standing for version in versions]

        def numbers(kind: str) -> list[int]:
            return sorted(number for one, number in standing if one == kind)

        value = state["d/1"]
        assert value["n"] == sum(number % 3 + 1 for number in numbers("n"))
        assert sorted(value["tags"]) == sorted(f"t{number}" for number in numbers("tags"))
        assert sorted(value["bio"].splitlines()) == sorted(["one", "two"] + [f"line {number}" for number in numbers("bio")])
        assert sorted(row["id"] for row in value["items"]) == numbers("items")
        assert sorted(value["l"]) == [1, 2] + [100 + number for number in numbers("l")]
        assert sorted(state.keys() - {"d/1", "other"}) == sorted(f"d/{number + 10}" for number in numbers("new"))
        assert value["name"] in ([f"name {number}" for number in numbers("name")] or ["0"])
        assert state["other"] in (numbers("other") or [0])

    def run(self, steps: int) -> None:
        draw, count = self.draw, len(self.devices.all)
        undos = draw.choice((0, 0.2, 0.4))
        for _ in range(steps):
            device, chance = draw.randrange(count), draw.random()
            if chance < 0.3:
                self.devices.all[device].sync()
            elif chance < 0.3 + undos:
                self.undo(device)
            elif chance < 0.3 + 1.3 * undos:
                self.redo(device)
            else:
                self.edit(device)
            if draw.random() < 0.1:
                self.check()
        if draw.random() < 0.7:
            self.check()
        # All devices undo all their saves. What others undid may leave more to undo, so the last round follows a sync.
        quiet = 0
        while quiet < 2:
            quiet, left = quiet + 1, list(range(count))
            while left:
                device = draw.choice(left)
                if draw.random() < 0.3:
                    self.devices.all[device].sync()
                elif self.undo(device):
                    quiet = 0
                else:
                    left.remove(device)
            self.devices.sync()
        assert self.devices.same() == self.first


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> Iterator[Drawn]:
    made = Drawn(*request.param)
    with made.devices:
        yield made


@pytest.mark.parametrize(
    "drawn, steps",
    [
        ((seed, count, apart), 14 + seed % 8) for seed in seeds(range(25), range(1_000)) for count in (2, 3) for apart in (True, False)
    ],
    indirect=["drawn"],
)
def test_random_histories_of_undos(drawn: Drawn, steps: int) -> None:
    """Replicas are equal. Edits that are not undone are present once. After all devices undid all saves, the first state is restored."""
    drawn.run(steps)
