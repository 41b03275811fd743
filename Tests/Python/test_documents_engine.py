"""The engine compared with the model of merging inside values: the same bytes, the same records, the same digest."""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import os
import pickle
import random
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import llvs
import pytest
from documents import json_model as j
from documents import merge as m
from documents import rules as r
from hypothesis import given, settings
from hypothesis import strategies as st
from random_documents import Generator, dumps
from random_texts import Writer
from sampling import drawn, sample, seeds

FILE = Path(__file__).parent.parent / "Vectors" / "documents" / "vectors.json"
ALL_VECTORS = json.loads(FILE.read_text())["vectors"]
VECTORS = [vector for vector in ALL_VECTORS if not vector.get("swapped")]
#: Vectors for undo and cherry-pick.
SWAPPED = [vector for vector in ALL_VECTORS if vector.get("swapped")]
HISTORIES = json.loads(FILE.with_name("histories.json").read_text())["histories"]


def shown(record: m.Record, value_id: str) -> dict[str, bytes]:
    """A record of the model as the engine's: JSON texts by name."""
    return {name: j.canonical(value) for name, value in record.node(value_id).members}


def told(record: llvs.merge.Conflict, value_id: str) -> dict[str, bytes]:
    """A conflict of the engine in the same form."""
    def text(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    members: dict[str, Optional[bytes]] = {
        "id": text(value_id),
        "path": None,
        "kind": text(record.kind.value),
        "o": record.base,
        "x": record.newer,
        "y": record.older,
        "result": record.result,
        "rule": None if record.rule is None else text(list(record.rule)),
    }
    return {name: value for name, value in members.items() if value is not None}


def compare(rules: Any, o: Optional[bytes], x: Optional[bytes], y: Optional[bytes], saving: bool = False) -> None:
    """Merges by both, and compares the results."""
    schema = ('{"merge":1,"ids":{"p":' + dumps(rules) + "}}").encode()
    try:
        checked = r.parse_schema(schema)
    except r.InvalidSchema as invalid:
        with pytest.raises((llvs.errors.InvalidArgumentError, llvs.errors.UnsupportedError)) as raised:
            llvs.merge.merge_values(o, x, y, schema, id="p")
        assert (raised.value.path or "") == invalid.where, schema
        return
    expected = m.merge_values(o, x, y, checked.rules("p"), app_wins=saving)
    merged = llvs.merge.merge_values(o, x, y, schema, id="p", saving=saving)
    about = f"{schema.decode()} {o!r} {x!r} {y!r}"
    assert merged.data == expected.data, about
    records = [shown(record, "p") for record in expected.records]
    for record in records:
        del record["path"]
    assert [told(record, "p") for record in merged.records] == records, about
    assert merged.digest == (m.conflicts_digest(("p", record) for record in expected.records) if records else ""), about


@pytest.mark.parametrize("seed", sample(range(3), range(24)))
def test_random_documents(seed: int) -> None:
    for number in drawn(range(150), range(150)):
        merge_random(Generator(random.Random(1000 * seed + number)))


@pytest.mark.parametrize("rule", ["text", {"as": "text", "unit": "line"}, {"as": "text", "pick": "older"}], ids=["word", "line", "older"])
@pytest.mark.parametrize("part", range(4))
def test_random_texts(part: int, rule: Any) -> None:
    """Whole texts, and now and then a text in a document."""
    for number in drawn(range(120), range(85_000)):
        o, x, y = Writer(random.Random(f"{part} {number} {rule}")).three()
        if number % 8:
            compare({"": rule}, o.encode(), x.encode(), y.encode())
        else:
            compare({"/t": rule}, *(dumps({"t": text}).encode() for text in (o, x, y)))


def merge_random(generator: Generator) -> None:
    """Makes a case, and compares."""
    rules, texts = generator.case()
    compare(rules, *texts, saving=generator.rng.randrange(8) == 0)


@settings(max_examples=sample(40, 300))
@given(st.randoms(use_true_random=False))
def test_random_documents_that_shrink(rng: random.Random) -> None:
    merge_random(Generator(rng))


class LongLists:
    """Long lists with few changes. The engine skips their common parts in one step."""

    RULES: list[Any] = ["auto", {"": {"as": "list", "key": ["/k"]}}, {"": {"as": "list", "key": ["/k", "/n"]}, "/*/n": "counter"},
        {"": {"as": "set"}}, {"": {"as": "set", "key": ["/k"]}}, {"": {"as": "list", "key": [""]}}, {"/*": {"absent": 0}}]

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.fresh = rng, 1000
        self.form = rng.choice(["few", "many", "many", "id", "key", "mixed"])

    def element(self) -> Any:
        self.fresh += 1
        form = self.rng.choice(["few", "many", "id", "key"]) if self.form == "mixed" else self.form
        if form == "few":
            return self.rng.randrange(6)
        if form == "many":
            return self.fresh
        known = self.fresh if self.rng.randrange(12) else 1005
        return {"id": known, "n": self.rng.randrange(3)} if form == "id" else {"k": known, "n": self.rng.randrange(3)}

    def edited(self, base: list[Any]) -> list[Any]:
        out = list(base)
        if self.rng.randrange(16) == 0:
            self.rng.shuffle(out)
        for _ in range(self.rng.choice([0, 1, 1, 2, 3, 6])):
            what, at = self.rng.randrange(9), self.rng.randrange(len(out) + 1)
            to, size = self.rng.randrange(len(out) + 1), self.rng.choice([1, 1, 2, 12])
            if what < 2:
                out[at:at] = [self.element() for _ in range(size)]
            elif what < 4:
                del out[at : at + size]
            elif what < 6:
                moved = out[at : at + size]
                del out[at : at + size]
                out[to:to] = moved
            elif what == 6:
                out[to:to] = out[at : at + size]
            elif at < len(out):
                old = out[at]
                out[at] = {**old, "n": self.rng.randrange(9)} if isinstance(old, dict) else self.element()
        return out


@pytest.mark.parametrize("seed", sample(range(3), range(12)))
def test_random_long_lists(seed: int) -> None:
    for number in drawn(range(40), range(40)):
        rng = random.Random(1000 * seed + number)
        lists = LongLists(rng)
        base = [lists.element() for _ in range(rng.choice([8, 20, 60, 60, 160]))]
        texts = [json.dumps(value, separators=(",", ":")).encode() for value in (base, lists.edited(base), lists.edited(base))]
        compare(rng.choice(lists.RULES), *texts, saving=rng.randrange(8) == 0)


class Towers:
    """Nested containers, usually with one child each, whose innermost values differ. The engine merges such levels in one step."""

    RULES: list[Any] = ["auto", "auto", "auto", {"/*": {"pick": "older"}}, {"/a": {"as": "list", "key": ["/k"]}}, {"/*/*": "counter"},
        {"": {"as": "set", "key": ["/k"]}}, {"": "list", "/*/a": {"absent": 1}}]

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.side = rng, 0

    def leaf(self) -> Any:
        number = self.rng.randrange(4)
        return self.rng.choice([number, "s", True, None, [], {}, {"id": number}, {"id": [1]}, {"k": 1, "n": 2}, [1, 2], "\u00e9\n", 1.5])

    def level(self, inner: Any) -> Any:
        kind, other = self.rng.randrange(16), self.rng.randrange(3)
        if kind > 11:
            # Among a few others, which have the same key or none, or differ as well.
            elements = [self.rng.choice([{"id": other, "v": 1}, {"id": other}, other, [other], {"v": [1]}]) for _ in range(kind - 12)]
            elements.insert(self.rng.randrange(len(elements) + 1), self.rng.choice([{"id": other, "v": inner}, inner]))
            if self.rng.randrange(3) == 0:
                elements[-1] = [inner, self.side] if elements[-1] is not inner else [inner]
            return elements
        if kind < 4:
            return {self.rng.choice(["a", "a", "id", "\n"]): inner}
        if kind < 8:
            return [inner]
        if kind == 8:
            return {"b": other, "a": inner}
        if kind == 9:
            return [other, inner]
        return {"id": other, "v": inner} if kind == 10 else {"k": inner}

    def sides(self, height: int) -> list[Any]:
        """Returns three sides, which have most levels in common."""
        if height == 0 or self.rng.randrange(30) == 0:
            return [self.leaf() for _ in "oxy"]
        inner, state = self.sides(height - 1), self.rng.getstate()
        made = []
        for self.side, value in enumerate(inner):
            # The same level on all sides, with rare exceptions.
            if self.rng.randrange(40):
                self.rng.setstate(state)
            made.append(self.level(value))
        return made


@pytest.mark.parametrize("seed", sample(range(2), range(8)))
def test_random_towers(seed: int) -> None:
    for number in drawn(range(60), range(60)):
        rng = random.Random(1000 * seed + number)
        towers, count = Towers(rng), rng.choice([1, 1, 1, 3])
        together = list(zip(*(towers.sides(rng.choice([1, 3, 6, 12, 30])) for _ in range(count))))
        separators = rng.choice([(",", ":"), (",", ":"), (", ", ": ")])
        for wrapped in (together, [{"t": side[0], "u": side[-1]} for side in together]):
            texts = [json.dumps(side, separators=separators, ensure_ascii=rng.randrange(2) == 0).encode() for side in wrapped]
            compare(rng.choice(towers.RULES), *texts, saving=rng.randrange(8) == 0)


class ManyMembers:
    """Objects of many members in some order, with names that begin alike: they are sorted by some bytes of them at a time."""

    RULES: list[Any] = ["auto", "auto", "auto", {"/*": "counter"}, {"/*": {"absent": 1}}, {"/a1": "counter"}, {"/*/n": "counter"}]

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        starts = [["", "a"], ["b" * 12], ["b" * 7, "b" * 8, "b" * 9, "b" * 30], ["\u00e9", "c\n", "c" * 8 + "\x01", "c" * 8]]
        self.starts = rng.choice(starts)
        self.count = rng.choice([9, 70, 70, 200, 200, 600, 1500])
        self.few = rng.randrange(2) == 0

    def name(self) -> str:
        # Zeros at the end: short names are distinguished by their lengths, too.
        end = self.rng.choice(["", "", "", "\x00", "\x00\x00", "x" * 8])
        return self.rng.choice(self.starts) + str(self.rng.randrange(2 * self.count)) + end

    def value(self) -> Any:
        if self.few:
            return self.rng.randrange(3)
        number = self.rng.randrange(3)
        return self.rng.choice([number, str(number), 1.5, {"n": number}, [number]])

    def edited(self, base: dict[str, Any]) -> dict[str, Any]:
        out = dict(base)
        for name in self.rng.sample(list(base), len(base) // self.rng.choice([2, 10, 50])):
            if self.rng.randrange(3):
                out[name] = self.value()
            else:
                del out[name]
        for _ in range(self.rng.choice([0, 1, 30])):
            out[self.name()] = self.value()
        return out if self.rng.randrange(2) else self.shuffled(out)

    def shuffled(self, members: dict[str, Any]) -> dict[str, Any]:
        names = list(members)
        self.rng.shuffle(names)
        return {name: members[name] for name in names}


@pytest.mark.parametrize("seed", sample(range(2), range(8)))
def test_random_objects_of_many_members(seed: int) -> None:
    for number in drawn(range(6), range(6)):
        rng = random.Random(1000 * seed + number)
        members = ManyMembers(rng)
        base = {members.name(): members.value() for _ in range(members.count)}
        sides = [base if rng.randrange(2) else members.shuffled(base), members.edited(base), members.edited(base)]
        if rng.randrange(4) == 0:
            # The same names in the same order on all sides.
            sides = [{name: members.value() for name in base} for _ in sides]
        texts = [json.dumps(value, separators=(",", ":"), sort_keys=rng.randrange(3) == 0, ensure_ascii=False).encode() for value in sides]
        compare(rng.choice(members.RULES), *texts, saving=rng.randrange(8) == 0)


def numbers_about_the_limits(rng: random.Random) -> str:
    """The spelling of a number that just can be merged, or just cannot."""
    def digits(count: int) -> str:
        return "".join(rng.choice("0123456789") for _ in range(count))

    whole = rng.choice(["0", str(rng.randrange(1, 10)), "1" + digits(rng.choice([1, 3, 397, 398, 399, 400, 401]))])
    fraction = rng.choice(["", "." + "0" * rng.choice([0, 1, 2, 390]) + digits(rng.choice([1, 2, 10]))])
    power = rng.choice([0, 1, 396, 9602, 9990, 9997, 9998, 9999, 10000])
    exponent = rng.choice(["", f"{rng.choice('eE')}{rng.choice(['', '+', '-'])}{power}"])
    return rng.choice(["", "-"]) + whole + fraction + exponent


@pytest.mark.parametrize("seed", seeds(range(2), range(8)))
def test_numbers_about_the_limits(seed: int) -> None:
    """Which numbers can be merged, and their sums. If a sum could not be merged again, a side is picked."""
    rng = random.Random(seed)
    for _ in range(150):
        o, x, y = (f'{{"n":{numbers_about_the_limits(rng)}}}'.encode() for _ in range(3))
        compare({"/n": "counter"}, rng.choice([o, None]), x, y)
    assert llvs.merge.merge_values(b'{"n":0}', b'{"n":9e9999}', b'{"n":1e9999}', {"/n": "counter"}).records[0].kind.value == "limit"


SPELLINGS = ["0", "-0", "0.0", "-0e5", "10", "1e1", "10.0", "-10", "100e-1", "1", "1.0", "0.1", "100", "12345678901234567890123"]


def test_spellings_of_numbers() -> None:
    """Equal numbers are recognised in every spelling."""
    for o in SPELLINGS:
        for x in SPELLINGS:
            compare("auto", *(f'{{"n":{number}}}'.encode() for number in (o, x, "7")))
            compare("set", *(f"[{numbers}]".encode() for numbers in (o, f"{o},{x}", "7")))


#: The engine's own tests (DocumentVectorTests) run all vectors, and so do those of the model. This test is about the package's results.
@pytest.mark.parametrize("vector", sample(VECTORS[::8], VECTORS), ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    texts = [None if vector[name] is None else vector[name].encode() for name in ("base", "newer", "older")]
    merged = llvs.merge.merge_values(*texts, vector["schema"].encode(), id="a", saving=vector.get("saving", False))
    assert merged.data == (None if vector["result"] is None else vector["result"].encode())
    empty = m.conflicts_digest(())
    assert (merged.digest or empty) == vector["digest"]
    assert [{**json_of(told(record, "a")), "path": list(record.path)} for record in merged.records] == vector["records"]


@pytest.mark.parametrize("vector", SWAPPED, ids=lambda vector: vector["name"])
def test_vectors_of_swapped_roles(vector: dict[str, Any]) -> None:
    """A version that led from the older side to the base is undone at the newer side, and picked if it led to that."""
    base, newer, older, result = (None if vector[name] is None else vector[name].encode() for name in ("base", "newer", "older", "result"))
    with llvs.Store(storage="memory") as store:
        def on(version: llvs.Version, data: Optional[bytes]) -> llvs.Version:
            """A version that holds this instead."""
            if data is None:
                return store.make_version(version, remove=["a"] if "a" in store.at(version) else [])
            return store.make_version(version, update={"a": data})

        rules = store.make_version(insert={"__llvs_schema": vector["schema"].encode()})
        removal = on(before := on(rules, older), base)
        now = on(removal, newer)
        undone = store.revert(removal, at=now)
        assert store.at(undone.version or now).get("a") == (result if undone.version else newer)
        assert m.j.equal(m.j.parse(result, scalar=True), m.j.parse(newer, scalar=True)) if not undone.version and result != newer else True
        assert [json_of(told(record, "a")) for record in undone.conflicts] == [
            {name: value for name, value in record.items() if name != "path"} for record in vector["records"]
        ]
        assert bool(undone.superseded) == bool(vector["records"])
        assert ("a" in store.at(before)) == (older is not None)
        picked = store.cherry_pick(on(started := on(rules, base), newer), onto=(head := on(started, older)))
        assert store.at(picked.version or head).get("a") in (result, older)
        assert [record.kind.value for record in picked.conflicts] == [record["kind"] for record in vector["records"]]


def json_of(record: dict[str, bytes]) -> dict[str, Any]:
    """The members of a record, without its path."""
    return {name: json.loads(value) for name, value in record.items()}


def test_vectors_in_a_store() -> None:
    """All vectors in one store, each with its own rules. Two versions are made and merged."""
    vectors = {f"{number:05}/v": vector for number, vector in enumerate(VECTORS) if not vector.get("saving")}
    rules = {value_id[:-1]: json.loads(vector["schema"])["ids"][""] for value_id, vector in vectors.items()}
    with llvs.Store(storage="memory") as store:
        def values(side: str) -> dict[str, bytes]:
            return {value_id: vector[side].encode() for value_id, vector in vectors.items() if vector[side] is not None}

        sides = {side: values(side) for side in ("base", "older", "newer")}
        base = store.make_version(insert={"__llvs_schema": json.dumps({"merge": 1, "ids": rules}).encode(), **sides["base"]})
        made = []
        for side in ("older", "newer"):
            changed = {value_id: data for value_id, data in sides[side].items() if data != sides["base"].get(value_id)}
            removed = [value_id for value_id in sides["base"] if value_id not in sides[side]]
            made.append(store.make_version(base, update=changed, remove=removed))
        found = store.conflicts(*made)
        merged = store.at(store.merge(*made))
        wrong = {}
        for value_id, vector in vectors.items():
            base_data, newer, older = (None if vector[side] is None else vector[side].encode() for side in ("base", "newer", "older"))
            # In a store the side with a value counts as the newer one if the other has none.
            roles = (older, newer) if newer is None else (newer, older)
            expected = llvs.merge.merge_values(base_data, *roles, vector["schema"].encode(), id="a")
            kinds = [record.kind for record in expected.records]
            if merged.get(value_id) != expected.data or [record.kind for record in found.get(value_id, ())] != kinds:
                wrong[vector["name"]] = merged.get(value_id), expected
        assert not wrong


def test_vectors_in_a_process_with_another_seed() -> None:
    """P33: results do not depend on the order of hashes, or on any other property of a process."""
    script = "import json, sys, hashlib, llvs\nfor v in json.load(open(sys.argv[1]))['vectors']:\n" + (
        "    if v.get('swapped'): continue\n"
        "    texts = [None if v[n] is None else v[n].encode() for n in ('base', 'newer', 'older')]\n"
        "    made = llvs.merge.merge_values(*texts, v['schema'].encode(), id='a', saving=v.get('saving', False))\n"
        "    assert made.data == (None if v['result'] is None else v['result'].encode()), v['name']\n"
    )
    for seed in ("1", "2"):
        subprocess.run([sys.executable, "-c", script, str(FILE)], check=True, env={**os.environ, "PYTHONHASHSEED": seed})


def test_every_pitfall_has_a_vector() -> None:
    """Each pitfall has a vector with its number. scripts/simulate also limits the number of merges (P39)."""
    names = [vector["name"] for vector in VECTORS] + [history["name"] for history in HISTORIES]
    numbers = {int(name[1:].split()[0]) for name in names if name.startswith("P")}
    assert numbers == set(range(1, 40))


def test_every_cell_of_the_absence_table_has_vectors() -> None:
    """For each kind: in an object, in an element of a list, and as a whole."""
    names = {vector["name"] for vector in VECTORS}
    cells = "-|a|- -|-|b -|a|a -|a|c -|a|b p|-|- p|-|p p|p|- p|-|q p|q|- p|a|p p|a|q p|p|b p|q|b p|-|b p|a|- p|a|a p|a|c p|a|b".split()
    kinds = {name.split(": ")[0] for name in names if name.endswith(" as a whole")}
    assert {"register", "counter", "set", "list", "tuple", "text", "bytes"} <= kinds and len(kinds) > 25
    missing = [
        f"{kind}: {cell} {where}"
        for kind in kinds for cell in cells for where in ("in an object", "in an element", "as a whole")
        if f"{kind}: {cell} {where}" not in names and (kind != "bytes" or where == "as a whole")
    ]  # fmt: skip
    assert not missing


# Histories: where several versions are involved.


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history["name"])
def test_histories(history: dict[str, Any]) -> None:
    arbiters = {"rules": None, "most_recent_change": llvs.MostRecentChange()}
    with llvs.Store(storage="memory") as store:
        root = store.make_version(insert={"__llvs_schema": history["schema"].encode()}, timestamp=1.0)
        made = {"": root}
        for version in history["versions"]:
            above = [made[name] for name in version["predecessors"]]
            if len(above) == 2:
                found = store.merge(above[0], above[1], arbiters[version["arbiter"]], metadata=version["metadata"])
            else:
                value_given = version["value"]
                changes: dict[str, Any] = {"remove": ["a"]} if value_given is None else {"update": {"a": value_given.encode()}}
                about = {"timestamp": version["time"], "metadata": {"name": version["name"]}}
                found = store.make_version(above[0] if above else root, **about, **changes)
            made[version["name"]] = found
            value = store.value("a", at=found)
            assert (None if value is None else value.data.decode()) == version["value"], version["name"]
            if value is not None:
                assert value.stored_version == made[version["stored"]].id, version["name"]
            if len(above) == 2 and version["records"] is not None:
                explained = store.explain(found)
                assert [record.kind.value for record in explained.records] == version["records"], version["name"]
                assert explained.digest == (version["digest"] or ""), version["name"]


CAPS: dict[str, Any] = runpy.run_path(str(FILE.with_name("caps.py")))
CAP_VECTORS = json.loads(FILE.with_name("caps.json").read_text())["vectors"]


def test_vectors_of_caps_are_what_the_model_gives() -> None:
    """Except for those that take the model minutes: `caps.py --check` tests these, too."""
    assert CAPS["text"]({vector["name"]: vector for vector in CAP_VECTORS}) == FILE.with_name("caps.json").read_text()


@pytest.mark.parametrize("vector", CAP_VECTORS, ids=lambda vector: vector["name"])
def test_vectors_of_caps(vector: dict[str, Any]) -> None:
    texts = [CAPS["written"](vector[name]).encode() for name in ("base", "newer", "older")]
    assert [len(text) for text in texts] == vector["sizes"]
    merged = llvs.merge.merge_values(*texts, vector["schema"].encode(), id="a")
    assert merged.data is not None and hashlib.sha256(merged.data).hexdigest() == vector["result"]
    assert sorted({record.kind.value for record in merged.records}) == vector["records"]
    assert merged.digest == (vector["digest"] if vector["records"] else "")


def test_very_many_records_are_made_when_they_are_asked_for() -> None:
    """Records that are made on demand equal ordinary records, and live as long as they are referenced."""
    o, x, y = (json.dumps({f"m{i:05}": f"{side} {i}" for i in range(2_500)}).encode() for side in "oxy")
    merged = llvs.merge.merge_values(o, x, y)
    records, again = merged.records, llvs.merge.merge_values(o, x, y).records
    del merged
    assert len(records) == 2_500 and records == again and records == tuple(again) and records != again[1:]
    assert [record.path for record in records] == [(f"m{i:05}",) for i in range(2_500)]
    last = llvs.merge.Conflict(("m02499",), llvs.merge.ConflictKind.PICK, b'"o 2499"', b'"x 2499"', b'"y 2499"', b'"x 2499"', None)
    assert records[-1] == records[2_499] == last and list(records)[-1] == last
    assert records[3:5] == tuple(list(again)[3:5]) and again[::-1][0] == last
    for place in (2_500, -2_501):
        with pytest.raises(IndexError):
            records[place]
    # Copies are independent: the library's data are released with the original.
    copies = [copy.copy(records), copy.deepcopy(records), pickle.loads(pickle.dumps(records))]
    del records
    gc.collect()
    assert all(one == again for one in copies)
    few = llvs.merge.merge_values(b'{"a":0}', b'{"a":1}', b'{"a":2}').records
    assert isinstance(few, tuple) and few == (llvs.merge.Conflict(("a",), llvs.merge.ConflictKind.PICK, b"0", b"1", b"2", b"1", None),)


def test_records_with_parts_of_all_sizes() -> None:
    """The size of a part is in one byte, in four before it, or the part is stored separately."""
    sizes = [1, *range(250, 260), *range(65_530, 65_540), 100_000]
    names = ["n" * size for size in sizes]
    texts = {side: {name: side * len(name) for name in names} | {"only" + side: 1} for side in "oxy"}
    for rules, stands in (("auto", "x"), ({"/*": {"pick": "older"}}, "y")):
        found = llvs.merge.merge_values(*(json.dumps(texts[side]).encode() for side in "oxy"), rules).records
        parts = [(one.path, one.kind.value, one.base, one.newer, one.older, one.result) for one in found]
        values = [[f'"{side * len(name)}"'.encode() for side in ("o", "x", "y", stands)] for name in names]
        assert parts == [((name,), "pick", *value) for name, value in zip(names, values)]
        assert all(one == again for one, again in zip(found, reversed(tuple(reversed(found)))))


# The memory of a merge.

MEMORY = Path(__file__).parents[2] / "Benchmarks" / "merging_memory.py"
KINDS: list[str] = runpy.run_path(str(MEMORY))["KINDS"]
#: One of each kind of document.
SAMPLE = [
    "text of other words", "list of digits", "list of objects", "set of words", "deep objects", "levels of two children", "auto conflicts",
]
# Exceptions: kinds of documents that exceed the limit slightly. Lists with elements of a byte or two do, and lists of equal elements of
# which both sides replaced almost all, differently: each element is then a conflict, recorded with its path.
ALLOWED = dict.fromkeys(["list of digits", "list of one key", "levels of two children"], 6.6)
ALLOWED |= {"list of other numbers": 7.0, "deep lists": 7.6}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="told by Linux's /proc")
@pytest.mark.parametrize("kind", sample(SAMPLE, KINDS))
def test_a_merge_takes_at_most_six_times_its_inputs(kind: str) -> None:
    """The peak of memory: 200 parts replaced, removed and moved on each side; and sides with nothing in common, or with conflicts
    everywhere."""
    told = subprocess.run([sys.executable, str(MEMORY), kind], capture_output=True, check=True, text=True).stdout
    assert float(told) <= ALLOWED.get(kind, 6.0), told
