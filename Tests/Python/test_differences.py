"""Tests values as differences: the simple reader and writer of value_differences.py, the vectors, and the example of docs/format.md."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import format_reader as reader
import pytest
import value_differences as d
from sampling import sample, seeds

import llvs

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "Tests" / "Vectors"


def test_the_vectors_are_what_the_page_says() -> None:
    subprocess.run([sys.executable, str(VECTORS / "differences.py"), "--check"], check=True)


def test_the_example_of_the_page() -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    stored = bytes.fromhex(page.split("<!-- vector: difference -->", 1)[1].split("\n\n")[1])
    base, value = b"hello world, hello all", b"hello brave world, hello all"
    assert d.apply(stored, len(value), base) == value
    assert d.parse(stored, len(value)) == d.Difference(
        1, 42, "0C90A79B-B798-4F2B-B9AC-7665646A26C4", 22, 0, reader.checksum(base), reader.checksum(value), ((0, 6), b"brave ", (6, 16))
    )


@pytest.mark.parametrize("seed", seeds(range(2), range(20)))
def test_what_is_made_comes_back(seed: int) -> None:
    draw = random.Random(seed)
    for i in range(200):
        base = draw.randbytes(draw.randrange(400))
        value = base
        for _ in range(draw.randrange(5)):
            at = draw.randrange(len(value) + 1)
            value = value[:at] + draw.randbytes(draw.randrange(20)) + value[at + draw.randrange(20) :]
        stored = d.encode(base, value, d.find_operations(base, value), "a-version", deflates=i % 2 == 0)
        if not value or len(stored) > len(value) + 256:
            continue
        assert d.apply(stored, len(value), base) == value
        # A changed byte is reported, or is in a field that `apply` does not use. It never gives another value.
        place = draw.randrange(len(stored))
        wrong = stored[:place] + bytes([stored[place] ^ 1 << draw.randrange(8)]) + stored[place + 1 :]
        try:
            assert d.apply(wrong, len(value), base) == value
        except (reader.Damage, reader.NewerFormat):
            pass


def test_places() -> None:
    stands_on = {0: 0}
    for before in range(329):
        place, on = d.place_of(before)
        assert place == before + 1 and on < place
        # The base is one of those from which the previous value is computed.
        way = [before]
        while way[-1]:
            way.append(stands_on[way[-1]])
        assert on in way
        stands_on[place] = on
        steps = 0
        while place:
            place, steps = stands_on[place], steps + 1
        assert steps <= 4
    assert d.place_of(329) == (0, 0)
    assert [stands_on[place] for place in (1, 2, 5, 6, 7, 8, 9, 15)] == [0, 1, 0, 5, 6, 7, 5, 0]


def edited(draw: random.Random, value: bytes) -> bytes:
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(value) + 1)
        value = value[:at] + b"edit %d " % draw.randrange(10_000) + value[at + draw.randrange(12) :]
    return value


@pytest.mark.parametrize("seed", seeds(range(6), range(200)))
def test_the_page_reads_what_the_engine_saves(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    states: dict[str, dict[str, bytes]] = {}
    with llvs.Store(tmp_path / "store") as store:
        for i in range(draw.randrange(4, 40)):
            base = draw.choice(list(states)) if states and draw.random() < 0.2 else next(reversed(states), None)
            state = dict(states[base]) if base else {}
            changed: dict[str, bytes] = {}
            for id in draw.sample(("a", "b", "c", "small"), draw.randrange(1, 3)):
                size = 50 if id == "small" else draw.randrange(1_024, 3_000)
                changed[id] = edited(draw, state[id]) if id in state else b" ".join(b"%d" % draw.randrange(900) for _ in range(size))[:size]
            name = f"named-{i}" if draw.random() < 0.1 else None
            made = store.make_version(base, update=changed, id=name) if base else store.make_version(insert=changed, id=name)
            states[made.id] = {**state, **changed}
        count = store.statistics().differences
    read = reader.read_store(tmp_path / "store")
    assert not read.problems and not read.pending and set(read.versions) == set(states)
    for version, state in states.items():
        prevailing = read.state(version)
        assert {id.decode(): read.value(at, id) for id, at in prevailing.items()} == state
    assert count == sum(len(version.differences) for version in read.versions.values())


def test_the_engine_chooses_bases_by_places(tmp_path: Path) -> None:
    draw, text, made = random.Random(1), b" ".join(b"%d" % i for i in range(9_000)), []
    with llvs.Store(tmp_path / "store") as store:
        for i in range(340):
            text = edited(draw, text)
            changes = {"a": text}
            made.append((store.make_version(made[-1], update=changes) if made else store.make_version(insert=changes)).id)
    read = reader.read_store(tmp_path / "store")
    places = {made[0]: 0}
    for before, id in zip(made, made[1:]):
        version = read.versions[id]
        place, base = d.place_of(places[before])
        stored = version.differences.get(b"a")
        places[id] = place
        assert (stored is None) == (place == 0)
        if stored:
            difference = d.parse(stored, version.changes[b"a"].size)
            assert (difference.place, difference.base) == (place, made[made.index(id) - place + base])
    assert places[made[329]] == 329 and places[made[330]] == 0


def changed(draw: random.Random, value: bytes) -> bytes:
    """An edit of a value of some kilobytes, of one of many sorts."""
    at, end = sorted(draw.randrange(len(value) + 1) for _ in range(2))
    sort = draw.randrange(12)
    if sort == 0:
        return value[at:] + value[:at]
    if sort == 1:
        return value + value if len(value) < 4_000 else value[: len(value) // 2]
    if sort == 2:
        return draw.randbytes(draw.randrange(1_000, 1_400))
    if sort == 3:
        return value[:at] + draw.randbytes(draw.randrange(300)) + value[end:]
    if sort == 4:
        return value[:at] + value[end:] + value[at:end]
    return edited(draw, value)


def one_history(draw: random.Random, folder: Path) -> int:
    """Saves versions, branches and merges, and reads them with format_reader.py. Returns how many values are differences."""
    states: dict[str, dict[str, bytes]] = {}
    store = llvs.Store(folder, durability="normal")
    for i in range(draw.randrange(3, 12)):
        base = draw.choice(list(states)) if states and draw.random() < 0.2 else next(reversed(states), None)
        if base and draw.random() < 0.1:
            store.close()
            store = llvs.Store(folder, durability="normal")
            if draw.random() < 0.3:
                store.compact()
        other = draw.choice(list(states)) if states else None
        if base and other and other != base and draw.random() < 0.2:
            made = store.merge(base, other, arbiter=llvs.MostRecentChange())
            states[made.id] = dict(store.at(made))
            continue
        state = dict(states[base]) if base else {}
        update: dict[str, bytes] = {}
        remove = [id for id in ("a", "b") if id in state and draw.random() < 0.04]
        for id in draw.sample(("a", "b", "c"), draw.randrange(1, 3)):
            if id not in remove:
                update[id] = changed(draw, state[id]) if id in state else draw.randbytes(draw.choice((1_023, 1_024, 1_300, 2_000)))
        name = f"named-{i}" if draw.random() < 0.05 else None
        made = store.make_version(base, update=update, remove=remove, id=name)
        states[made.id] = {id: value for id, value in {**state, **update}.items() if id not in remove}
    store.close()
    read = reader.read_store(folder)
    assert not read.problems and not read.pending and set(read.versions) - {reader.EMPTY_ROOT} == set(states) - {reader.EMPTY_ROOT}
    for version, state in states.items():
        assert {id.decode(): read.value(at, id) for id, at in read.state(version).items()} == state
    return sum(len(version.differences) for version in read.versions.values())


@pytest.mark.parametrize("block", seeds(range(1), range(1_000)))
def test_random_histories(block: int, tmp_path: Path) -> None:
    """A hundred of them for each seed."""
    differences = 0
    for i in range(sample(20, 100)):
        folder = tmp_path / str(i)
        differences += one_history(random.Random(f"{block}-{i}"), folder)
        shutil.rmtree(folder)
    assert differences > 40


def test_the_option() -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError, match="auto, on or off"):
        llvs.Store(storage="memory", options=llvs.StoreOptions(differences="perhaps"))  # type: ignore[arg-type]
    draw = random.Random(1)
    value = b" ".join(b"%d" % draw.randrange(99_999) for _ in range(500))
    for differences, count in (("auto", 2), ("on", 2), ("off", 0)):
        with llvs.Store(storage="memory", options=llvs.StoreOptions(differences=differences)) as store:
            head = store.make_version(insert={"v": value})
            for i in range(2):
                head = store.make_version(head, update={"v": value + b"%d" % i})
            statistics = store.statistics()
            assert statistics.differences == count
            assert statistics.difference_value_bytes == count * (len(value) + 1)
            assert statistics.difference_bytes < 200
