"""Indexes, compared with the model of keys (keys/) and a scan at random versions; and their answers to bad input."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Callable, Iterator, Optional

import llvs
import pytest
from documents import json_model as j
from keys import definition as d
from keys import search
from llvs import models
from sampling import sample, seeds
from waiting import eventually

VECTORS = Path(__file__).resolve().parents[1] / "Vectors"


def definition(text: str) -> d.Definition:
    return d.definition(j.parse(text.encode()))


def parts(text: Optional[str]) -> tuple[llvs.indexes.KeyPart, ...]:
    """A tuple of the vectors as `Index` takes it. Numbers keep their spelling."""

    def part(node: j.Node) -> Any:
        if isinstance(node, j.String):
            return node.text
        if isinstance(node, j.Number):
            return Decimal(node.lexeme)
        return llvs.indexes.MISSING if isinstance(node, j.Object) else node.value  # type: ignore[union-attr]

    return tuple(map(part, j.parse(text.encode()).items)) if text is not None else ()  # type: ignore[union-attr]


def ask(index: llvs.indexes.Index, asked: dict[str, Any], **more: Any) -> llvs.indexes.Found:
    """A question of the vectors."""
    if "begin" in asked:
        return index.prefix(*parts(asked.get("equal")), asked["begin"], **more)
    bounds = {"low": parts(asked.get("low")), "high": parts(asked.get("high"))}
    opens = {name: asked.get(name, False) for name in ("low_open", "high_open")}
    return index.range(*parts(asked.get("equal")), **bounds, **opens, **more)


def model_question(asked: dict[str, Any]) -> search.Question:
    tuples = {
        name: tuple(None if isinstance(item, j.Object) else item for item in j.parse(asked[name].encode()).items)  # type: ignore
        for name in ("equal", "low", "high") if name in asked
    }  # fmt: skip
    opens = {name: asked.get(name, False) for name in ("low_open", "high_open")}
    return search.Question(begin=asked.get("begin"), **opens, **tuples)


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as opened:
        yield opened


# MARK: Vectors


def test_the_vectors(store: llvs.Store) -> None:
    vectors = json.loads((VECTORS / "index-keys.json").read_text(encoding="utf-8"))
    version = store.make_version(insert={row["id"]: row["data"].encode() for row in vectors["values"]})
    indexes = {row["name"]: store.index(definition=row["definition"]) for row in vectors["definitions"]}
    for row in vectors["definitions"]:
        for value in row["values"]:
            told = indexes[row["name"]].explain(value["id"], at=version)
            assert [key.hex() for key in told.key_bytes] == value["keys"], (row["name"], value["id"])
            assert told.why == value.get("why"), (row["name"], value["id"])
    for asked in vectors["questions"]:
        index, expected = indexes[asked["definition"]], [row["id"] for row in asked["found"]]
        for reverse in (False, True):
            found = ask(index, asked, at=version, reverse=reverse)
            assert list(found) == (expected[::-1] if reverse else expected), asked
            assert found.count() == len(expected)
            for entry in found.entries():
                assert entry.id in expected


# MARK: Against the model, at random versions

DEFINITIONS = [
    '{"prefix":"v","on":["/a"]}', '{"prefix":"v","on":["/a","/b"],"text":"fold"}', '{"prefix":"v","on":["/t/*"]}',
    '{"prefix":"","on":["/t/*","/a"]}', '{"prefix":"v","on":["/a"],"where":{"/b":{"present":true}}}', '{"prefix":"v1","on":["/b"]}',
    '{"prefix":"v","on":["/t/*/k","/t/*/n"]}', '{"prefix":"v","on":[""],"text":"fold"}',
]  # fmt: skip
WORDS = ["", "a", "A", "á", "ab", "Ab", "b", "\u0000", "Straße", "strasse", "x" * 1_010, "x" * 1_022, "x" * 1_023 + "y", "X" * 1_023 + "z",
         "x" * 1_100]  # fmt: skip


def scalar(rng: random.Random) -> Any:
    return rng.choice([None, True, False, 0, 1, -1, 10, 1.5, 1e300, -2.25, 12345678901234567890, *WORDS, *WORDS])


def data(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return rng.choice([b"", b"no JSON", b'{"a":1,"a":2}', b"[" * 200 + b"]" * 200, b"\xff", b'{"a":1e99999}', b'{"a":12e9999}'])
    if kind < 0.2:
        return json.dumps(scalar(rng)).encode()
    made: dict[str, Any] = {"a": scalar(rng)}
    if rng.random() < 0.7:
        made["b"] = rng.choice([scalar(rng), [], {}])
    if rng.random() < 0.6:
        made["t"] = rng.choice([
            [scalar(rng) for _ in range(rng.randrange(5))], {"p": scalar(rng), "q": scalar(rng)},
            [{"k": scalar(rng), "n": scalar(rng)} for _ in range(rng.randrange(4))], scalar(rng),
        ])  # fmt: skip
    return json.dumps(made, ensure_ascii=rng.random() < 0.5).encode()


def history(store: llvs.Store, rng: random.Random, steps: int, values: int) -> list[str]:
    """Versions in branches that merge."""
    versions = [store.make_version(insert={f"v{i}": data(rng) for i in range(values)}).id]
    for _ in range(steps):
        base = rng.choice(versions[-4:])
        if rng.random() < 0.2 and len(versions) > 3:
            merged = store.merge(base, rng.choice(versions[-6:]), arbiter=llvs.MostRecentChange())
            versions.append(merged.id)
            continue
        ids = rng.sample([f"v{i}" for i in range(values + 5)] + ["w1", "__llvs_x"], rng.choice([1, 1, 2, 5]))
        there = store.at(base)
        gone = [id for id in ids if id in there and rng.random() < 0.3]
        changed = {id: data(rng) for id in ids if id not in gone}
        versions.append(store.make_version(base, update=changed, remove=gone).id)
    return versions


def question(rng: random.Random, count: int) -> dict[str, Any]:
    def some(most: int) -> str:
        return json.dumps([rng.choice([scalar(rng), {}]) for _ in range(rng.randint(1, most))])

    asked: dict[str, Any] = {}
    left = count
    if rng.random() < 0.6:
        asked["equal"] = some(count)
        left -= len(json.loads(asked["equal"]))
    if left and rng.random() < 0.4:
        asked["begin"] = rng.choice(WORDS)
    elif left:
        for name in ("low", "high"):
            if rng.random() < 0.5:
                asked[name] = some(left)
                asked[name + "_open"] = rng.random() < 0.5
    return asked


@pytest.mark.parametrize("seed", seeds(range(2), range(6)))
def test_an_index_is_what_a_scan_finds(seed: int) -> None:
    rng = random.Random(seed)
    # With almost no memory, trees are evicted, and rebuilt from what is left.
    with llvs.Store(storage="memory", options=llvs.StoreOptions(memory_budget=rng.choice([0, 1 << 16]))) as store:
        versions = history(store, rng, 40, rng.choice([3, 25, 80]))
        indexes = [(definition(text), store.index(definition=text)) for text in rng.sample(DEFINITIONS, 3)]
        for _ in range(sample(8, 20)):
            version, (model, index) = rng.choice(versions), rng.choice(indexes)
            values = {id.encode(): data for id, data in store.at(version).items()}
            expected = search.Index(model, values)
            for _ in range(2):
                asked = question(rng, len(model.on))
                asked_of_model, context = model_question(asked), (seed, version, model.text, asked)
                entries = expected.find(asked_of_model)
                ids = [entry.id.decode() for entry in entries]
                assert {id.encode() for id in ids} == search.scan(model, values, asked_of_model)
                found = ask(index, asked, at=version)
                assert list(found) == ids, context
                assert found.count() == len(ids), context
                assert list(ask(index, asked, at=version, reverse=True)) == ids[::-1], context
                for reverse in (False, True):
                    once = list(dict.fromkeys(ids[::-1] if reverse else ids))
                    unique = ask(index, asked, at=version, reverse=reverse, unique=True)
                    assert list(unique) == once, context
                    assert unique.count() == len(once), context
                    size, pages, cursor = rng.randint(1, 4), [], None
                    while True:
                        page = ask(index, asked, at=version, reverse=reverse).page(size, cursor)
                        pages += [entry.id for entry in page.entries]
                        cursor = page.cursor
                        if cursor is None:
                            break
                    assert pages == (ids[::-1] if reverse else ids), context
                assert [(value.id, value.data) for value in found.values()] == [(id, values[id.encode()]) for id in ids]
            everything = {(entry.id.decode(), entry.key) for entry in expected.entries}
            told = {(entry.id, key) for entry in index.find(at=version).entries() for key in index.explain(entry.id, at=version).key_bytes}
            assert told == everything


@pytest.mark.parametrize("text", sample(DEFINITIONS[:4:3], DEFINITIONS[:4]))
def test_many_values_are_shared_among_threads(memory: llvs.Store, text: str) -> None:
    """Enough values for several units of work, in an index that is built in one call."""
    store = memory
    rng = random.Random(text)
    values = {f"v{i:04}": data(rng) for i in range(3_000)}
    store.make_version(insert=values)
    expected = search.Index(definition(text), {id.encode(): data for id, data in values.items()})
    index = store.index(definition=text)
    assert list(index.find()) == [entry.id.decode() for entry in expected.entries]
    assert index.find().count() == len(expected.entries) > 500


def test_keys_with_more_bytes_than_a_piece_of_work_may_have(store: llvs.Store) -> None:
    words = {f"v{i}": [f"{n:04}{i}" + "x" * 1_000 for n in range(2_500)] for i in range(2)}
    few = {f"w{i:04}": [f"y{i:04}"] for i in range(2_000)}
    store.make_version(insert={id: json.dumps({"t": list}).encode() for id, list in {**words, **few}.items()})
    index = store.index(definition={"prefix": "", "on": ["/t/*"]})
    assert list(index.find()) == [f"v{i}" for _ in range(2_500) for i in range(2)] + list(few)
    assert list(index.range(low="2499")) == ["v0", "v1", *few]


# MARK: Declarations

SCHEMA: dict[str, Any] = {"merge": 1, "indexes": {"by-name": {"prefix": "c/", "on": ["/name"]}}}


def test_what_is_declared_is_found_by_its_name(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store") as notes:
        notes.save(insert={"c/1": b'{"name":"Ann","age":5}'})
        before = notes.current_version.id
        with pytest.raises(llvs.NotFoundError, match="No index is"):
            notes.index("by-name").find("Ann").count()
        notes.register_schema(SCHEMA)
        by_name = notes.index("by-name")
        notes.save(insert={"c/2": b'{"name":"Bob","age":7}'})
        assert list(by_name.find()) == ["c/1", "c/2"]
        # An index that is declared later finds earlier versions, too.
        assert list(by_name.find(at=before)) == ["c/1"]
        middle = notes.current_version.id
        changed = {**SCHEMA, "indexes": {"by-name": {"prefix": "c/", "on": ["/age"]}}}
        notes.save(update={"__llvs_schema": json.dumps(changed).encode()})
        assert list(by_name.find(7)) == ["c/2"]
        # The definition that is declared at a version counts there.
        assert list(by_name.find("Bob", at=middle)) == ["c/2"] and not list(by_name.find(7, at=middle))
        assert by_name.explain("c/2").declared_at == notes.current_version.id
        with pytest.raises(llvs.NotFoundError, match='Declared are "by-name"'):
            notes.index("other").find().count()
        assert notes.store.index("by-name").find(7).count() == 1


@pytest.mark.parametrize("wrong, where", [({"prefix": "c/"}, "/on"), ({"prefix": "c/", "on": ["name"]}, "/on/0"), ([], "")])
def test_a_declaration_that_is_not_valid_voids_itself_alone(tmp_path: Path, wrong: Any, where: str) -> None:
    rules = {**SCHEMA, "ids": {"c/": "auto"}, "indexes": {**SCHEMA["indexes"], "b/ad": wrong}}
    with pytest.raises(llvs.errors.InvalidArgumentError) as refused:
        llvs.merge.check_schema(rules)
    assert refused.value.path == "/indexes/b~1ad" + where
    with llvs.Coordinator(tmp_path / "store") as notes:
        with pytest.raises(llvs.errors.InvalidArgumentError):
            notes.register_schema(rules)
        notes.save(insert={"c/1": b'{"name":"Ann"}', "__llvs_schema": json.dumps(rules).encode()})
        assert list(notes.index("by-name").find("Ann")) == ["c/1"]
        with pytest.raises(llvs.NotFoundError, match="not validly"):
            notes.index("b/ad").find().count()
        assert notes.store.schema(notes.current_version).problem is None


def test_more_indexes_than_there_may_be_are_refused_when_they_are_registered(tmp_path: Path) -> None:
    def indexes(letter: str, count: int) -> dict[str, Any]:
        return {"merge": 1, "indexes": {f"{letter}{i}": {"prefix": "c/", "on": [f"/{letter}{i}"]} for i in range(count)}}

    with llvs.Coordinator(tmp_path / "store") as notes:
        notes.register_schema(indexes("a", 60))
        before = notes.current_version
        with pytest.raises(llvs.errors.InvalidArgumentError, match="more than 64 indexes"):
            notes.register_schema(indexes("b", 5))
        assert notes.current_version == before
        notes.register_schema(indexes("b", 4))
        notes.save(insert={"c/1": b'{"b3":1}'})
        assert notes.index("b3").find(1).count() == 1


def test_a_renamed_index_is_there_at_once(tmp_path: Path) -> None:
    """An index is known by its definition: under another name nothing is read again."""
    with llvs.Coordinator(tmp_path / "store") as notes:
        notes.save(insert={f"c/{i}": b'{"name":"%d"}' % i for i in range(300)})
        notes.register_schema(SCHEMA)
        assert read(notes.index("by-name"))[0] == 300
        before = notes.current_version.id
        notes.save(update={"__llvs_schema": json.dumps({"merge": 1, "indexes": {"renamed": SCHEMA["indexes"]["by-name"]}}).encode()})
        count, values = read(notes.index("renamed"))
        assert count == 300 and values < 10
        assert notes.index("by-name").find(at=before).count() == 300


def test_devices_that_declare_one_name_differently_end_with_one_of_both(tmp_path: Path) -> None:
    place = str(tmp_path / "shared")
    with llvs.Coordinator(tmp_path / "a", exchange=place) as a, llvs.Coordinator(tmp_path / "b", exchange=place) as b:
        a.save(insert={"c/1": b'{"name":"Ann","age":5}'})
        a.sync()
        b.sync()
        a.register_schema(SCHEMA)
        b.register_schema({"merge": 1, "indexes": {"by-name": {"prefix": "c/", "on": ["/age"]}}})
        for one in (a, b, a):
            one.sync()
        assert a.current_version == b.current_version
        found = [list(one.index("by-name").find().entries()) for one in (a, b)]
        assert found[0] == found[1] and found[0][0].key in (("Ann",), (5,))
        told = a.store.open_conflicts(a.current_version)["__llvs_schema"]
        assert [conflict.path for conflict in told] == [("indexes", "by-name")]


# MARK: Collections


INDEXES: dict[str, Any] = {"merge": 1, "indexes": {
    "folded": {"prefix": "c/", "on": ["/lastName"], "text": "fold"}, "of-others": {"prefix": "d/", "on": ["/age"]},
    "by-name": {"prefix": "c/", "on": ["/lastName", "/age"]}, "by-tag": {"prefix": "c/", "on": ["/tags/*", "/first"]},
    "some": {"prefix": "c/", "on": ["/first"], "where": {"/age": 1}},
}}  # fmt: skip


@models.model("c/")
@dataclass
class Contact:
    first: str = ""
    last: Annotated[str, models.Named("lastName")] = ""
    age: int = 0
    tags: set[str] = field(default_factory=set)


def test_collections_find_by_members(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store") as notes:
        people = notes.collection(Contact)
        with pytest.raises(llvs.NotFoundError, match="/lastName"):
            list(people.where(last="Smith"))
        notes.register_schema(INDEXES)
        people.update({"1": Contact("Ann", "Smith", 40, {"x", "y"}), "2": Contact("Bob", "smith", 30, {"x"})})
        people["3"] = Contact("Cy", "Smith", 5)
        smiths = people.where(last="Smith")
        assert sorted(smiths) == ["1", "3"] and smiths.count() == 2
        assert list(smiths.order_by("age")) == ["3", "1"] and list(smiths.order_by("age", reverse=True)) == ["1", "3"]
        assert list(people.where(last="Smith", age=5).items()) == [("3", people["3"])]
        assert list(people.where(age=40, last="Smith")) == ["1"]
        assert list(people.order_by("last", "age")) == ["3", "1", "2"]
        assert [one.first for one in people.where(tags="x").order_by("first").values()] == ["Ann", "Bob"]
        assert people.where(tags="nobody").first() is None
        del people["3"]
        assert list(smiths.order_by("age")) == ["3", "1"] and list(smiths.at(notes.current_version)) == ["1"]
        for wanted in ({"first": "Ann"}, {"age": 5}):
            with pytest.raises(llvs.NotFoundError):
                list(people.where(**wanted))
        with pytest.raises(TypeError, match="no member"):
            people.where(nothing=1)
        with pytest.raises(TypeError):
            list(people.where(last=5))
        with pytest.raises(TypeError, match="last: is null"):
            people.where(last=None)


@models.model("t/")
@dataclass
class Task:
    title: str = ""
    done: bool = False
    due: Optional[date] = None
    at: Annotated[Optional[datetime], models.Pick("max")] = None
    seen: Optional[datetime] = None
    stars: Optional[int] = None
    note: Optional[str] = "-"


def test_collections_find_what_is_none() -> None:
    with llvs.Coordinator(storage="memory") as notes:
        tasks = notes.collection(Task)
        notes.register_schema({"merge": 1, "indexes": {
            "by-done": {"prefix": "t/", "on": ["/done", "/due", "/title"]}, "by-note": {"prefix": "t/", "on": ["/note"]},
            "some-day": {"prefix": "t/", "on": ["/title"], "where": {"/due": {"present": False}}},
            "starred": {"prefix": "t/", "on": ["/stars"]}, "open": {"prefix": "t/", "on": ["/seen"], "where": {"/done": False}},
        }})  # fmt: skip
        tasks.update({"1": Task("one"), "2": Task("two", due=date(2026, 5, 1)), "3": Task("three", True), "4": Task("four", note=None)})
        notes.save(update={"t/5": b'{"title":"five","done":false,"due":null}'})
        assert sorted(tasks.where(done=False, due=None)) == ["1", "4", "5"], "left out by models, and null by others"
        assert list(tasks.where(done=False, due=None).order_by("title")) == ["4", "1", "5"]
        assert list(tasks.where(done=False, due=None).order_by("title", reverse=True)) == ["5", "1", "4"]
        assert tasks.where(done=False, due=None).count() == 3 and tasks.where(done=True, due=None).first() == Task("three", True)
        assert list(tasks.where(due=None).order_by("title")) == ["4", "1", "3"], "what an index says in its where"
        assert sorted(tasks.where(due=None)) == ["1", "3", "4"]
        assert list(tasks.where(note=None)) == ["4"], "null where the default is another"
        for wanted in ({"stars": None}, {"seen": None}):
            with pytest.raises(llvs.NotFoundError):
                list(tasks.where(**wanted))
        with pytest.raises(llvs.NotFoundError):
            list(tasks.where(done=False, seen=None))


def test_collections_find_ranges() -> None:
    def moment(day: int, hour: int = 0, zone: int = 0) -> datetime:
        return datetime(2026, 1, day, hour, tzinfo=timezone(timedelta(hours=zone)))

    with llvs.Coordinator(storage="memory") as notes:
        tasks = notes.collection(Task)
        notes.register_schema({"merge": 1, "indexes": {
            "due": {"prefix": "t/", "on": ["/done", "/due", "/title"]}, "at": {"prefix": "t/", "on": ["/at"]},
            "stars": {"prefix": "t/", "on": ["/stars"]}, "open": {"prefix": "t/", "on": ["/due"], "where": {"/done": False}},
        }})  # fmt: skip
        for day in range(1, 10):
            tasks[str(day)] = Task(f"day {day}", day == 9, date(2026, 1, day), moment(day, 12, day % 3), None, day)
        notes.save(update={"t/text": b'{"title":"x","done":false,"stars":"many"}', "t/yes": b'{"title":"y","done":false,"stars":true}'})
        open = tasks.where(done=False)
        assert list(open.between("due", date(2026, 1, 3), date(2026, 1, 5))) == ["3", "4", "5"]
        assert list(open.between("due", date(2026, 1, 7))) == ["7", "8"]
        assert list(open.between("due", high=date(2026, 1, 2)).order_by("due", "title", reverse=True)) == ["2", "1"]
        assert open.between("due", date(2026, 1, 3)).count() == 6
        assert list(tasks.where(done=True).between("due", date(2026, 1, 1))) == ["9"], "an index of open tasks has none that are done"
        assert list(tasks.between("at", moment(3, 11), moment(4, 11, 1))) == ["3"], "moments, whatever their zone"
        assert list(tasks.between("stars", 8)) == ["8", "9"] and list(tasks.between("stars", high=2)) == ["1", "2"], "numbers alone"
        index = notes.index("due")
        assert list(index.range(False, low=date(2026, 1, 7), high=date(2026, 1, 8))) == ["t/7", "t/8"]
        assert list(index.find(False, date(2026, 1, 7))) == ["t/7"] and not list(index.find(False, moment(7).time()))
        assert list(notes.index("at").find(datetime(2026, 1, 3, 12, tzinfo=timezone.utc))) == [], "as it is written"
        for wrong in ({"name": "seen", "low": moment(1)}, {"name": "due", "low": "2026"}, {"name": "nothing", "low": 1},
                      {"name": "done", "low": True}, {"name": "title", "low": 1}):  # fmt: skip
            with pytest.raises(TypeError):
                tasks.between(**wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            tasks.between("due")
        with pytest.raises(llvs.NotFoundError):
            list(tasks.between("title", "a"))


# MARK: Bad input


def test_bad_questions(store: llvs.Store) -> None:
    version = store.make_version(insert={"a": b'{"a":1,"b":2}', "b": b'{"a":2}'})
    index, other = (store.index(definition={"prefix": "", "on": on}) for on in (["/a"], ["/a", "/b"]))
    with pytest.raises(llvs.errors.InvalidArgumentError, match="names 2 parts"):
        index.find(1, 2).count()
    with pytest.raises(llvs.errors.InvalidArgumentError, match="names 2 parts"):
        index.range(1, low=2).count()
    with pytest.raises(llvs.errors.InvalidArgumentError):
        index.find("\ud800").count()
    with pytest.raises(ValueError):
        index.find(float("nan"))
    with pytest.raises(TypeError):
        index.find([1])  # type: ignore[arg-type]
    with pytest.raises(llvs.errors.InvalidArgumentError, match="400 digits"):
        index.find(10**400).count()
    cursor = index.find().page(1).cursor
    assert cursor is not None and [entry.id for entry in index.find().page(1, cursor).entries] == ["b"]
    for wrong in (b"x", cursor[:9], cursor[:-1], cursor + b"\xff", b"\x02" + cursor[1:]):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="cursor"):
            index.find().page(1, wrong)
    with pytest.raises(llvs.errors.InvalidArgumentError, match="cursor"):
        other.find().page(1, cursor)
    with pytest.raises(llvs.errors.UnknownVersionError):
        index.find(at="nowhere").count()
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.index()
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.index("a", definition={"prefix": "", "on": ["/a"]})
    assert index.find(at=version).count() == 2
    index.close()
    with pytest.raises(llvs.ClosedError):
        index.find().count()


def test_an_empty_store(store: llvs.Store) -> None:
    index = store.index(definition={"prefix": "", "on": ["/a"]})
    assert index.find().count() == 0 and list(index.find()) == [] and index.find().first() is None


def test_values_that_are_deep_or_large_or_have_many_keys(memory: llvs.Store) -> None:
    store = memory
    values = {
        "deep": b'{"a":' * 128 + b"1" + b"}" * 128, "deepest": b'{"a":' * 127 + b'{"a":1}' + b"}" * 127,
        "large": b'{"a":"' + b"x" * (2 << 20) + b'"}', "over": b'{"a":"' + b"x" * (64 << 20) + b'"}',
        "many": json.dumps({"t": list(range(10_000))}).encode(), "more": json.dumps({"t": list(range(10_001))}).encode(),
    }  # fmt: skip
    store.make_version(insert=values)
    index, each = (store.index(definition={"prefix": "", "on": [on]}) for on in ("/a", "/t/*"))
    assert list(index.find()) == ["large"]
    assert index.explain("deep").why == "no-first-part" and index.explain("over").why == "not-json"
    assert list(index.prefix("x" * 2_000)) == ["large"] and list(index.find("x" * (2 << 20))) == ["large"]
    assert not list(index.find("x" * (2 << 20) + "x"))
    assert each.find().count() == 10_000 and each.explain("more").why == "too-many-keys"
    assert each.find(unique=True).count() == 1


def test_values_whose_keys_take_more_room_than_they_may(memory: llvs.Store) -> None:
    """Such values are in no index; the reason is reported, also by a version that changes them. With only a star, any number of short keys
    is accepted."""
    store = memory
    value = json.dumps({"a": [f"{n}" + "x" * 900 for n in range(10)], "b": [str(n) for n in range(1_000)]}).encode()
    first = store.make_version(insert={f"n/{n}": value for n in range(20)})
    index = store.index(definition={"prefix": "n/", "on": ["/a/*", "/b/*"]})
    assert index.find(at=first).count() == 0 and index.explain("n/7").why == "too-many-keys"
    assert store.index(definition={"prefix": "n/", "on": ["/b/*"]}).find(at=first).count() == 20_000
    small = json.dumps({"a": ["x" * 900], "b": [str(n) for n in range(50)]}).encode()
    second = store.make_version(first, update={"n/3": small})
    assert index.find(at=second).count() == 50 and index.explain("n/3").why is None
    third = store.make_version(second, update={"n/3": value})
    assert index.find(at=third).count() == 0 and index.find(at=second).count() == 50


def test_a_damaged_value_fails_the_question(tmp_path: Path) -> None:
    with llvs.Store(tmp_path / "store") as store:
        values = {f"v{i}": json.dumps({"a": f"word{i}"}).encode() for i in range(10)}
        version = store.make_version(insert=values)
        good = store.make_version(version, update={"v3": b'{"a":1}'})
    for file in (tmp_path / "store").rglob("*"):
        if file.is_file() and b'"word3"' in (content := file.read_bytes()):
            file.write_bytes(content.replace(b'"word3"', b'"word4"'))
    with llvs.Store(tmp_path / "store") as store:
        index = store.index(definition={"prefix": "v", "on": ["/a"]})
        assert index.find(at=good).count() == 10
        with pytest.raises(llvs.StorageError) as problem:
            index.find(at=version).count()
        assert problem.value.value_id == "v3"
        assert index.find(1, at=good).count() == 1


def test_the_first_of_several_damaged_values_is_named(tmp_path: Path) -> None:
    """The error names the first damaged value, whichever thread finds a damaged value first."""
    with llvs.Store(tmp_path / "store") as store:
        version = store.make_version(insert={f"v{i:04}": json.dumps({"a": f"word{i:04}."}).encode() for i in range(5_000)})
    for file in (tmp_path / "store").rglob("*"):
        if file.is_file() and b'"word1500."' in (content := file.read_bytes()):
            for word in b"word1500.", b"word1600.", b"word4900.":
                content = content.replace(word, word.upper())
            file.write_bytes(content)
    with llvs.Store(tmp_path / "store") as store:
        for _ in range(5):
            with pytest.raises(llvs.StorageError) as problem:
                store.index(definition={"prefix": "v", "on": ["/a"]}).find(at=version).count()
            assert problem.value.value_id in ("v1500", "v1600")


# MARK: Control and threads


def test_making_an_index_can_be_cancelled(store: llvs.Store) -> None:
    store.make_version(insert={f"v{i}": json.dumps({"a": i}).encode() for i in range(5_000)})
    index = store.index(definition={"prefix": "v", "on": ["/a"]})
    token = llvs.CancelToken()
    token.cancel()
    with pytest.raises(llvs.CancelledError):
        index.find().count(cancel=token)
    told: list[int] = []

    def stop(progress: llvs.control.Progress) -> bool:
        told.append(progress.completed)
        return progress.completed < 2_000

    with pytest.raises(llvs.CancelledError):
        index.find().count(progress=stop)
    assert max(told) >= 2_000
    assert index.find().count() == 5_000


def test_asking_for_the_index_that_is_being_made(store: llvs.Store) -> None:
    store.make_version(insert={f"v{i}": json.dumps({"a": i}).encode() for i in range(3_000)})
    index, other = (store.index(definition={"prefix": "v", "on": [on]}) for on in ("/a", "/b"))
    seen: list[Any] = []

    def progress(state: llvs.control.Progress) -> None:
        if not state.completed:
            return  # not begun yet
        try:
            seen.append((other.find().count(), index.find().count()))
        except llvs.BusyError as error:
            seen.append(error)

    assert index.find().count(progress=progress) == 3_000
    assert any(isinstance(one, llvs.BusyError) for one in seen)
    assert index.find().count() == 3_000


def test_many_threads_ask_at_once(store: llvs.Store) -> None:
    versions = history(store, random.Random(1), 20, 200)
    index = store.index(definition={"prefix": "v", "on": ["/a"]})
    expected = {version: store.index(definition={"prefix": "v", "on": ["/a"]}).find(at=version).count() for version in versions}
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(30):
            version = rng.choice(versions)
            found = len(list(index.find(at=version)))
            if found != expected[version]:
                wrong.append((version, found))

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


ASKED: list[Callable[..., Any]] = [
    lambda found, **how: list(found.ids(**how)), lambda found, **how: list(found.entries(**how)),
    lambda found, **how: list(found.values(**how)), lambda found, **how: list(found.items(**how)),
    lambda found, **how: found.first(**how), lambda found, **how: found.page(5, **how), lambda found, **how: found.count(**how),
]


@pytest.mark.parametrize("ask", ASKED)
def test_each_way_of_asking_can_be_watched_and_cancelled(ask: Callable[..., Any]) -> None:
    with llvs.Store(storage="memory") as store:
        store.make_version(insert={f"v{i}": b'{"a":%d}' % i for i in range(3_000)})
        found = store.index(definition='{"prefix":"v","on":["/a"]}').find()
        token = llvs.CancelToken()
        token.cancel()
        with pytest.raises(llvs.CancelledError):
            ask(found, cancel=token)
        with pytest.raises(ZeroDivisionError):
            ask(found, progress=lambda state: 1 // 0)
        told: list[int] = []
        answer = ask(found, progress=lambda state: told.append(state.completed))
        assert max(told) >= 3_000
        assert ask(found) == answer


# MARK: Caches on disk


def read(index: llvs.indexes.Index, version: Optional[str] = None) -> tuple[int, int]:
    """Returns the number of entries, and the number of values that were read for it."""
    seen = [0]
    return index.find(at=version).count(progress=lambda state: seen.append(state.completed)), max(seen)


def caches(path: Path) -> list[Path]:
    return sorted((path / "cache").glob("index-*.cache"))


def test_a_later_handle_reads_what_changed_alone(tmp_path: Path) -> None:
    path, text = tmp_path / "store", '{"prefix":"v","on":["/a"]}'
    with llvs.Store(path) as store:
        versions = [store.make_version(insert={f"v{i}": b'{"a":%d}' % i for i in range(1_000)}).id]
        assert read(store.index(definition=text)) == (1_000, 1_000)
        assert len(caches(path)) == 1
        for i in range(5):
            versions.append(store.make_version(versions[-1], update={f"v{i}": b'{"b":1}'}).id)
    with llvs.Store(path) as store:
        assert read(store.index(definition=text), versions[0]) == (1_000, 0)
        count, values = read(store.index(definition=text), versions[-1])
        assert count == 995 and 5 <= values <= 20
        # The same index in another spelling, and another index.
        assert read(store.index(definition='{"on":["/a"],"prefix":"v","text":"bytes"}'), versions[0]) == (1_000, 0)
        assert read(store.index(definition='{"prefix":"v","on":["/b"]}'), versions[-1]) == (5, 1_000)
    # No index is written if the store is opened for reading only, or if few values were indexed.
    shutil.rmtree(path / "cache")
    with llvs.Store(path, read_only=True) as store:
        assert read(store.index(definition=text), versions[0]) == (1_000, 1_000)
    assert not caches(path)
    with llvs.Store(path) as store:
        assert read(store.index(definition='{"prefix":"v99","on":["/a"]}'), versions[0]) == (11, 11)
    assert not caches(path)


def test_the_file_is_written_anew_after_many_changes(tmp_path: Path) -> None:
    path, text = tmp_path / "store", '{"prefix":"v","on":["/a"]}'
    with llvs.Store(path) as store:
        head = store.make_version(insert={f"v{i}": b'{"a":%d}' % i for i in range(600)}).id
        assert read(store.index(definition=text)) == (600, 600)
        first = caches(path)[0].read_bytes()
        for step in range(10):
            head = store.make_version(head, update={f"v{i}": b'{"a":"%d"}' % step for i in range(step * 40, step * 40 + 40)}).id
            assert read(store.index(definition=text), head)[0] == 600
        assert caches(path)[0].read_bytes() != first
    with llvs.Store(path) as store:
        count, values = read(store.index(definition=text), head)
        assert count == 600 and values < 600


def test_old_files_go(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        store.make_version(insert={f"v{i}": b'{"a":%d}' % i for i in range(300)})
        for i in range(20):
            assert read(store.index(definition={"prefix": "v", "on": ["/a", f"/{i}"]}))[0] == 300
    assert len(caches(path)) == 16


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("seed", seeds(range(1), range(3)))
def test_caches_that_are_deleted_and_corrupted(tmp_path: Path, storage: str, seed: int) -> None:
    """Each answer is that of a scan, at random versions, whatever is in the caches."""
    rng = random.Random(seed)
    path = tmp_path / "store"

    def names() -> list[str]:
        with closing(sqlite3.connect(path)) as database:
            return [name for (name,) in database.execute("SELECT name FROM caches WHERE name LIKE 'index%' ORDER BY name")]

    def spoil(kind: str) -> None:
        if storage == "file":
            files = caches(path)
            if not files:
                return
            file = rng.choice(files)
            data = bytearray(file.read_bytes())
        else:
            found = names()
            if not found:
                return
            name = rng.choice(found)
            with closing(sqlite3.connect(path)) as database:
                data = bytearray(database.execute("SELECT data FROM caches WHERE name = ?", [name]).fetchone()[0])
        new: Optional[bytes] = None
        if kind == "flip":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            new = bytes(data)
        elif kind == "cut":
            new = bytes(data[: rng.randrange(len(data))])
        elif kind == "swap" and storage == "file":
            new = rng.choice(files).read_bytes()
        elif kind == "swap":
            new = b""
        if storage == "file":
            file.unlink() if new is None else file.write_bytes(new)
        else:
            with closing(sqlite3.connect(path)) as database, database:
                if new is None:
                    database.execute("DELETE FROM caches WHERE name = ?", [name])
                else:
                    database.execute("UPDATE caches SET data = ? WHERE name = ?", [new, name])

    with llvs.Store(path, storage=storage) as store:
        versions = history(store, rng, 15, 300)
    texts = rng.sample(DEFINITIONS[:5], 2)
    loaded = 0
    for step in range(sample(7, 12)):
        with llvs.Store(path, storage=storage) as store:
            for text in texts:
                version, model, index = rng.choice(versions), definition(text), store.index(definition=text)
                values = {id.encode(): data for id, data in store.at(version).items()}
                expected = search.Index(model, values)
                count, values_read = read(index, version)
                loaded += values_read < 250
                assert count == len(expected.entries)
                assert [entry.id for entry in index.find(at=version).entries()] == [entry.id.decode() for entry in expected.entries]
                asked = question(rng, len(model.on))
                found = [entry.id.decode() for entry in expected.find(model_question(asked))]
                assert list(ask(index, asked, at=version)) == found, (seed, step, text, asked)
        if step % 3:
            spoil(rng.choice(["flip", "cut", "swap", "delete"]))
    assert loaded > sample(1, 3)


def test_a_cache_of_another_store(tmp_path: Path) -> None:
    text = '{"prefix":"v","on":["/a"]}'
    for name in "one", "two":
        with llvs.Store(tmp_path / name) as store:
            # A version with the same id and another state.
            store.make_version(insert={f"v{i}": b'{"a":"%s"}' % name.encode() for i in range(300)}, id="same")
            assert store.index(definition=text).find(name).count() == 300
    assert caches(tmp_path / "one")[0].name == caches(tmp_path / "two")[0].name
    shutil.copy(caches(tmp_path / "one")[0], caches(tmp_path / "two")[0])
    with llvs.Store(tmp_path / "two") as store:
        assert store.index(definition=text).find("two").count() == 300
        assert store.index(definition=text).find("one").count() == 0


def test_a_cursor_goes_on_in_another_process_and_after_saves(tmp_path: Path) -> None:
    """A cursor always continues at its version, whatever was saved since; at another version it continues from the same place."""
    text = '{"prefix":"v","on":["/a"]}'
    with llvs.Store(tmp_path / "store") as store:
        version = store.make_version(insert={f"v{i}": b'{"a":%d}' % i for i in range(400)}).id
        page = store.index(definition=text).find(at=version).page(150)
    with llvs.Store(tmp_path / "store") as store:
        head = store.make_version(version, update={f"v{i}": b'{"a":"gone"}' for i in range(100, 390)}).id
        index = store.index(definition=text)
        rest = index.find(at=version).page(1_000, page.cursor)
        assert [entry.id for entry in (*page.entries, *rest.entries)] == [f"v{i}" for i in range(400)] and rest.cursor is None
        later = [entry.key[0] for entry in index.find(at=head).page(1_000, page.cursor).entries]
        assert later == [*range(390, 400), *["gone"] * 290]


# MARK: Warming


def test_a_warm_index_is_there_before_anybody_asks(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "store") as notes:
        # An index that is not declared yet does not affect it.
        index = notes.index("by-name", warm=True)
        notes.save(insert={f"c/{i}": b'{"name":"%d"}' % i for i in range(300)})
        notes.register_schema(SCHEMA)
        for step in range(3):
            notes.save(update={f"c/{i}": b'{"name":"again"}' for i in range(step * 50, step * 50 + 50)})

            def counted() -> Optional[int]:
                """Returns what is found without reading a value: it was cached."""
                token = llvs.CancelToken()

                def stop(state: llvs.control.Progress) -> None:
                    if state.completed:
                        token.cancel()

                try:
                    count: int = index.find("again").count(progress=stop, cancel=token)
                except llvs.CancelledError:
                    return None
                return count

            assert eventually(counted) == step * 50 + 50
        index.close()
        notes.save(remove=["c/0"])
        assert notes.index("by-name").find("again").count() == 149
    with llvs.Store(tmp_path / "store") as store, pytest.raises(TypeError):
        store.index("by-name", warm=True)  # type: ignore[call-arg]


def test_closing_with_a_warm_index(tmp_path: Path) -> None:
    """At any moment of the work behind: before it began, in the middle, and afterwards."""
    for order in range(6):
        notes = llvs.Coordinator(tmp_path / str(order))
        notes.register_schema(SCHEMA)
        notes.save(insert={f"c/{i}": b'{"name":"%d"}' % i for i in range(2_000)})
        index = notes.index("by-name", warm=True)
        time.sleep(0.01 * order)
        for handle in (notes, index) if order % 2 else (index, notes):
            handle.close()
