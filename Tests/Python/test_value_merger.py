"""Value mergers: merges that rules leave to functions of the app, of whole values and of places in them, also in criss-crosses."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any, Iterator, Optional, Union

import llvs
import pytest
from sampling import seeds

PARTS = (
    b'{"merge":1,"ids":{"d/":{"/a":{"pick":"arbiter"},"/l":{"as":"list","key":["/id"]},"/l/*/p":{"pick":"arbiter"}},'
    b'"w/":{"":{"as":"bytes","pick":"arbiter"}}}}'
)


@pytest.fixture
def store() -> Iterator[llvs.Store]:
    with llvs.Store(storage="memory") as store:
        yield store


def total(id: str, base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes]) -> bytes:
    """Adds up the changes of both sides, in a form that is not JSON."""
    numbers = [int((value or b"#0")[1:]) for value in (base, newer, older)]
    return b"#%d" % (numbers[1] + numbers[2] - numbers[0])


def fork(store: llvs.Store, base: dict[str, Any], older: dict[str, Any], newer: dict[str, Any]) -> tuple[llvs.Version, ...]:
    """A base, and two versions on it of which the second is the newer; None removes."""

    def make(at: Optional[llvs.Version], values: dict[str, Any]) -> llvs.Version:
        return store.make_version(
            at, update={id: value for id, value in values.items() if value is not None}, remove=[id for id in values if values[id] is None]
        )

    at = make(None, base)
    return at, make(at, older), make(at, newer)


def test_whole_values(store: llvs.Store) -> None:
    asked: list[Any] = []

    def merge(id: str, base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes]) -> Union[bytes, llvs.merge.Pass, None]:
        asked.append((id, base, newer, older))
        if id == "sum":
            return total(id, base, newer, older)
        answers: dict[str, Union[bytes, llvs.merge.Pass, None]] = {"none": None, "pass": llvs.merge.PASS, "gone": b"back", "newer": newer}
        return answers[id]

    _, a, b = fork(
        store,
        {"sum": b"#1", "none": b"0", "pass": b"0", "gone": b"0", "one": b"0", "same": b"0", "both": b"0", "newer": b"0"},
        {"sum": b"#3", "none": b"1", "pass": b"1", "gone": b"1", "one": b"1", "same": b"1", "both": None, "newer": b"1"},
        {"sum": b"#9", "none": b"2", "pass": b"2", "gone": None, "same": b"1", "both": None, "newer": b"2"},
    )
    merged = store.merge(a, b, llvs.merge.ValueMerger(merge))
    assert dict(store.at(merged)) == {"sum": b"#11", "pass": b"2", "gone": b"back", "one": b"1", "same": b"1", "newer": b"2"}
    # A side that removed a value counts as the older one.
    assert asked == [
        ("gone", b"0", b"1", None),
        ("newer", b"0", b"2", b"1"),
        ("none", b"0", b"2", b"1"),
        ("pass", b"0", b"2", b"1"),
        ("sum", b"#1", b"#9", b"#3"),
    ]
    assert sorted(change.id for change in store.changes(merged)) == ["gone", "none", "one", "sum"]
    assert merged.metadata == {}
    with pytest.raises(TypeError):
        store.merge(a, b, llvs.merge.ValueMerger(lambda *_: 7))  # type: ignore[arg-type]


def test_places_that_rules_leave_to_it(store: llvs.Store) -> None:
    asked: list[Any] = []

    def part(
        id: str, path: tuple[Any, ...], base: Optional[bytes], newer: Optional[bytes], older: Optional[bytes]
    ) -> Union[bytes, llvs.merge.Pass, None]:
        asked.append((id, path, base, newer, older))
        return b'{"x" : [1.50]}' if path == ("a",) else None if id == "d/1" else llvs.merge.PASS

    def document(a: Any, p: Any) -> bytes:
        return json.dumps({"a": a, "l": [{"id": 1, "p": p}], "o": a}).encode()

    _, a, b = fork(
        store,
        {"__llvs_schema": PARTS, "d/1": document(0, 0), "d/2": document(0, 0), "w/1": b"0"},
        {"d/1": document(1, 1), "d/2": document(0, 1), "w/1": b"1"},
        {"d/1": document(2, 2), "d/2": document(5, 2), "w/1": b"2"},
    )
    merged = store.merge(a, b, llvs.merge.ValueMerger(lambda id, base, newer, older: (newer or b"") + (older or b""), part=part))
    assert store.at(merged)["d/1"] == b'{"a":{"x":[1.50]},"l":[{"id":1}],"o":2}'
    assert json.loads(store.at(merged)["d/2"]) == {"a": 5, "l": [{"id": 1, "p": 2}], "o": 5} and store.at(merged)["w/1"] == b"21"
    key = ("l", {"key": 1}, "p")
    assert sorted(asked, key=str) == sorted(
        [("d/1", ("a",), b"0", b"2", b"1"), ("d/1", key, b"0", b"2", b"1"), ("d/2", key, b"0", b"2", b"1")], key=str
    )
    assert merged.metadata["__llvs_arbiter"] == "host" and merged.metadata["__llvs_conflicts"]["n"] == 5
    # A merge without the merger has other results.
    assert not store.explain(merged).recorded
    by_rules = store.merge(a, b)
    assert by_rules.metadata["__llvs_arbiter"] == "rules" and json.loads(store.at(by_rules)["d/1"])["a"] == 2
    # The answer of the app prevails in the end.
    settled = store.merge(merged, by_rules)
    assert store.at(settled)["w/1"] == b"21" and settled.metadata == {"__llvs_arbiter": "host"}


def test_what_it_answered_is_an_open_conflict(store: llvs.Store) -> None:
    _, a, b = fork(store, {"__llvs_schema": PARTS, "d/1": b'{"a":0}'}, {"d/1": b'{"a":1}'}, {"d/1": b'{"a":2}'})
    merged = store.merge(a, b, llvs.merge.ValueMerger(part=lambda *_: b"7"))
    (conflict,) = store.open_conflicts(merged).records
    assert conflict.kind is llvs.merge.ConflictKind.ARBITER and conflict.result == b"7" and conflict.newer == b"2"
    assert store.at(store.choose(conflict, "newer", at=merged))["d/1"] == b'{"a":2}'
    assert not store.open_conflicts(store.choose(conflict, "result", at=merged))


def test_what_rules_decided_beside_it_is_an_open_conflict(store: llvs.Store) -> None:
    schema = b'{"merge":1,"ids":{"d/":{"/bio":"text","/a":{"pick":"arbiter"}}}}'
    _, a, b = fork(
        store,
        {"__llvs_schema": schema, "d/1": b'{"bio":"the dog and the cat"}', "d/2": b'{"a":1}'},
        {"d/1": b'{"bio":"the dog and the fox"}', "d/2": b'{"a":2}'},
        {"d/1": b'{"bio":"the dog and the dog"}', "d/2": b'{"a":3}'},
    )
    merged = store.merge(a, b, llvs.merge.ValueMerger(part=lambda *_: b"99"))
    found = store.open_conflicts(merged)
    assert [(record.id, record.kind) for record in found.records] == [
        ("d/1", llvs.merge.ConflictKind.OVERLAP), ("d/2", llvs.merge.ConflictKind.ARBITER),
    ]  # fmt: skip
    assert found["d/1"] == store.open_conflicts(merged, id="d/1")["d/1"] and found["d/2"][0].result == b"99"
    chosen = store.choose(store.explain(merged)["d/1"][0], "older", at=merged)
    assert store.at(chosen)["d/1"] == b'{"bio":"the dog and the fox"}'


def test_a_merger_without_anything_to_say_is_as_rules(store: llvs.Store) -> None:
    _, a, b = fork(store, {"__llvs_schema": PARTS, "d/1": b'{"a":0}'}, {"d/1": b'{"a":1}'}, {"d/1": b'{"a":2}'})
    assert store.merge(a, b, llvs.merge.ValueMerger(lambda *_: llvs.merge.PASS, part=lambda *_: llvs.merge.PASS)) == store.merge(a, b)


@pytest.mark.parametrize("seed", seeds(range(2), range(6)))
def test_criss_crosses_are_exact(seed: int) -> None:
    """The merger adds up, and is asked for the bases: every edit counts once, in every history."""
    chance = random.Random(seed)
    merger = llvs.merge.ValueMerger(total)
    with llvs.Store(storage="memory") as store:
        root = store.make_version(insert={"n": b"#0"})
        deltas, heads = {root.id: 0}, [root] * 3
        for step in range(40):
            i, j = chance.sample(range(3), 2)
            if chance.random() < 0.5:
                # Equal bytes on both sides would be one edit: no two sums are the same.
                delta = 1 << step
                now = int(store.at(heads[i])["n"][1:])
                heads[i] = store.make_version(heads[i], update={"n": b"#%d" % (now + delta)})
                deltas[heads[i].id] = delta
            else:
                heads[i] = store.merge(heads[i], heads[j], merger, metadata={"by": step})
            ancestors = {version.id for version in store.history(heads[i])}
            assert int(store.at(heads[i])["n"][1:]) == sum(deltas.get(id, 0) for id in ancestors), (seed, step)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, llvs.CancelledError])
def test_what_it_raises_is_raised_from_the_merge(store: llvs.Store, failure: type[BaseException]) -> None:
    _, a, b = fork(store, {"x": b"0"}, {"x": b"1"}, {"x": b"2"})

    def merge(*_: Any) -> bytes:
        raise failure("no")

    with pytest.raises(failure, match="no"):
        store.merge(a, b, llvs.merge.ValueMerger(merge))
    assert {head.id for head in store.heads()} == {a.id, b.id}


def test_an_answer_that_is_no_json(store: llvs.Store) -> None:
    _, a, b = fork(store, {"__llvs_schema": PARTS, "d/1": b'{"a":0}'}, {"d/1": b'{"a":1}'}, {"d/1": b'{"a":2}'})
    for answer in (b"", b"[", b"1,2", b"\xff", b'{"a":1,"a":2}', b"[" * 129):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="one JSON text"):
            store.merge(a, b, llvs.merge.ValueMerger(part=lambda *_: answer))
    assert len(store.heads()) == 2
    with pytest.raises(llvs.errors.InvalidArgumentError):
        store.merge(a, b, llvs.merge.ValueMerger(rules={"/a": "best"}))


def test_it_may_call_back_in(store: llvs.Store) -> None:
    _, a, b = fork(store, {"x": b"0"}, {"x": b"1"}, {"x": b"2"})

    def merge(id: str, *_: Any) -> bytes:
        beside = store.make_version(a, update={"beside": b"1"})
        assert store.at(beside)["x"] == b"1" and store.merge(a, beside).id == beside.id and store.conflicts(beside, b)["x"]
        return b"".join(value.data for value in store.values([id], at=a) if value) + store.at(b)[id]

    assert store.at(store.merge(a, b, llvs.merge.ValueMerger(merge)))["x"] == b"12"


def test_a_coordinator_is_busy_while_it_asks() -> None:
    def merge(id: str, *_: Any) -> bytes:
        with pytest.raises(llvs.BusyError):
            notes.save(update={"x": b"3"})
        with pytest.raises(llvs.BusyError):
            notes.merge()
        assert notes[id]
        return b"9"

    with llvs.Coordinator(storage="memory", arbiter=llvs.merge.ValueMerger(merge)) as notes:
        first = notes.save(insert={"x": b"0"})
        assert first is not None
        notes.save(update={"x": b"1"})
        notes.store.make_version(first, update={"x": b"2"})
        assert notes.merge() and notes["x"] == b"9"


def test_devices_that_answer_differently_each_time_agree_in_the_end() -> None:
    answers = itertools.count()

    def device(name: str) -> llvs.Coordinator:
        merger = llvs.merge.ValueMerger(lambda *_: b"%s%d" % (name.encode(), next(answers)))
        return llvs.Coordinator(storage="memory", exchange="memory:test_value_merger-differ", arbiter=merger)

    with device("a") as a, device("b") as b, device("c") as c:
        a.save(insert={"x": b"0"})
        for notes in (a, b, c):
            notes.sync()
        for number, notes in enumerate((a, b, c)):
            notes.save(update={"x": b"edit%d" % number})
        for _ in range(5):
            for notes in (a, b, c):
                notes.exchange()
            for notes in (a, b, c):
                notes.merge()
        assert a["x"] == b["x"] == c["x"] and not a["x"].startswith(b"edit")
