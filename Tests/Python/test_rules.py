"""Merging stores by rules: random histories of two and three devices, criss-crosses among them, compared with the model; which rules
apply."""

from __future__ import annotations

import json
import random
from typing import Any, Optional

import llvs
import pytest
from documents import merge as m
from documents import rules as r
from documents.versions import Graph, Held, Outcome
from random_documents import Generator, dumps
from sampling import drawn, sample

FIXED = {
    "doc/": {"/n": "counter", "/tags": "set", "/items": {"as": "list", "key": ["/id"]}, "/bio": {"as": "text", "unit": "line"}},
    "count/": "counter",
}
IDS = ["doc/1", "count/1", "any/1", "any/2", "plain"]


def schema(rules: Any) -> bytes:
    return ('{"merge":1,"ids":' + dumps(rules) + "}").encode()


def random_schema(generator: Generator) -> bytes:
    """Valid rules: fixed ones, and random ones under "any/"."""
    while True:
        text = schema({**FIXED, "any/": generator.rules()})
        try:
            r.parse_schema(text)
        except r.InvalidSchema:
            continue
        return text


class Histories:
    """Stores of some devices, and the graph of all versions with the values of the model."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.generator = Generator(self.chance)
        self.text = random_schema(self.generator)
        self.schema = r.parse_schema(self.text)
        self.graph = Graph()
        self.merges: set[str] = set()
        self.held: dict[tuple[str, str], Held] = {}
        #: The effect of each edit: the delta of the counters, and its tag.
        self.deltas: dict[str, int] = {}
        #: The device that made each edit, and the number that it put into its own member.
        self.fields: dict[str, tuple[str, int]] = {}
        self.stores = [llvs.Store(storage="memory") for _ in range(self.chance.choice([2, 3, 3]))]
        self.exchanges = [llvs.Exchange(store, f"memory:test_rules-{seed}") for store in self.stores]
        root = self.stores[0].make_version(insert={
            "__llvs_schema": self.text,
            "doc/1": b'{"n":10,"tags":[],"items":[],"bio":"","f":{"0":0,"1":0,"2":0}}',
            "count/1": b"0",
            "any/1": dumps(self.generator.value(2)).encode(),
            "plain": b"0",
        })
        self.deltas[root.id] = 0
        self.exchanges[0].send()
        self.current = [root.id] * len(self.stores)
        for exchange in self.exchanges[1:]:
            exchange.retrieve()
        self.learn(self.stores[0])

    def close(self) -> None:
        for exchange, store in zip(self.exchanges, self.stores):
            exchange.close()
            store.close()

    # Steps

    def edit(self, device: int) -> None:
        store, at = self.stores[device], self.current[device]
        state = store.at(at)
        delta = self.chance.choice([1, 1, 1, 2, -3])
        update: dict[str, bytes] = {}
        remove: list[str] = []
        tag = f"t{len(self.graph.times):03}"
        document = json.loads(state["doc/1"])
        document["n"] += delta
        document["tags"].append(tag)
        document["items"].insert(self.chance.randrange(len(document["items"]) + 1), {"id": tag})
        document["f"][str(device)] = number = len(self.graph.times)
        document["bio"] += f"{tag}\n"
        update["doc/1"] = json.dumps(document).encode()
        update["count/1"] = str(json.loads(state["count/1"]) + delta).encode()
        for value_id in ("any/1", "any/2"):
            if self.chance.randrange(2):
                update[value_id] = self.random_value(state.get(value_id))
            elif value_id in state and self.chance.randrange(6) == 0:
                remove.append(value_id)
        if self.chance.randrange(3) == 0:
            update["plain"] = str(self.chance.randrange(3)).encode()
        version = store.make_version(at, update=update, remove=remove)
        self.deltas[version.id] = delta
        self.fields[version.id] = str(device), number
        self.current[device] = version.id
        self.learn(store)

    def random_value(self, now: Optional[bytes]) -> bytes:
        """Returns the present value, edited, or a new one; sometimes the same bytes again."""
        if now is not None and self.chance.randrange(10) == 0:
            return now
        try:
            value = json.loads(now) if now is not None else None
        except ValueError:
            value = None
        if value is None:
            return dumps(self.generator.value(2)).encode()
        return dumps(self.generator.edited(value, self.chance.choice([1, 1, 2, 3]))).encode()

    def merge(self, device: int) -> None:
        store = self.stores[device]
        arbiter = self.chance.choice([None, llvs.Rules(), llvs.Rules(self.text)])
        metadata = self.chance.choice([None, None, {"device": device}])
        if self.chance.randrange(2):
            made = store.merge_heads(self.current[device], arbiter, metadata=metadata)
            self.current[device] = made.id if made else self.current[device]
        else:
            other = self.chance.choice(sorted(head.id for head in store.heads()))
            self.current[device] = store.merge(self.current[device], other, arbiter, metadata=metadata).id
        self.learn(store)

    def exchange(self, device: int) -> None:
        self.exchanges[device].retrieve()
        self.exchanges[device].send()

    # The model

    def learn(self, store: llvs.Store) -> None:
        """Compares new versions with the expected ones."""
        new = [version for version in store if version.id not in self.graph.times]
        for version in sorted(new, key=lambda version: (version.timestamp, version.id)):
            state = dict(zip(IDS, store.values(IDS, at=version)))
            if len(version.predecessors) == 2:
                self.merges.add(version.id)
                self.check_merge(version, state)
            for value_id, value in state.items():
                if value is not None and value.stored_version == version.id and (value_id, version.id) not in self.held:
                    self.held[value_id, version.id] = Held(value.data, (version.timestamp, version.id), version.id)
            held = {value_id: self.held[value_id, value.stored_version] for value_id, value in state.items() if value is not None}
            self.graph.add(version.id, version.timestamp, version.predecessors, held)
            self.check_laws(version.id)

    def is_settled(self, a: str, b: str) -> bool:
        above = self.graph.above
        return bool(above[a] & above[b]) and (above[a] ^ above[b]) <= self.merges

    def are_equal(self, a: str, b: str) -> bool:
        x, y = self.graph.states[a], self.graph.states[b]
        return x.keys() == y.keys() and all(
            x[value_id].data == y[value_id].data
            and (x[value_id].stored == y[value_id].stored or not self.schema.rules(value_id).has_counter(()))
            for value_id in x
        )

    def check_merge(self, version: llvs.Version, state: dict[str, Optional[llvs.Value]]) -> None:
        first, second = version.predecessors
        found = {value_id: value.stored_version for value_id, value in state.items() if value is not None}
        if self.is_settled(first, second) or self.are_equal(first, second):
            sides = [{value_id: held.stored for value_id, held in self.graph.states[side].items()} for side in (first, second)]
            assert found in sides
            return
        assert version.metadata["__llvs_arbiter"] == "rules"
        records: list[tuple[str, m.Record]] = []
        for value_id in sorted(IDS):
            value = state[value_id]
            if value_id == "plain":
                stored = [self.graph.states[side][value_id].stored for side in (first, second) if value_id in self.graph.states[side]]
                assert value is not None and value.stored_version in stored
                continue
            outcome = self.graph.merge(value_id, first, second, self.schema.rules(value_id))
            records += [(value_id, record) for record in outcome.records]
            self.check_value(value_id, version, value, outcome)
        told = version.metadata.get("__llvs_conflicts")
        if records:
            ids = sorted({value_id for value_id, _ in records})
            assert told == {"hash": m.conflicts_digest(records), "ids": ids, "n": len(records)}
        else:
            assert told is None

    def check_value(self, value_id: str, version: llvs.Version, value: Optional[llvs.Value], outcome: Outcome) -> None:
        expected = outcome.held
        assert (value and value.data) == (expected and expected.data), (value_id, self.text)
        if value is None or expected is None:
            return
        if expected.stored is None:
            assert value.stored_version == version.id
            self.held[value_id, version.id] = Held(expected.data, expected.recency, version.id)
        else:
            assert self.held[value_id, value.stored_version].data == expected.data
            assert self.held[value_id, value.stored_version].recency == expected.recency

    def check_laws(self, version: str) -> None:
        """Counters are exact and no edit is lost, in every version."""
        behind = self.graph.above[version]
        total = sum(self.deltas.get(one, 0) for one in behind)
        state = self.graph.states[version]
        assert json.loads(state["count/1"].data) == total
        document = json.loads(state["doc/1"].data)
        assert document["n"] == 10 + total
        fields = [self.fields[one] for one in behind & self.fields.keys()]
        assert document["f"] == {device: max((number for by, number in fields if by == device), default=0) for device in "012"}
        edits = len(behind & self.deltas.keys()) - 1
        assert len(document["tags"]) == len(set(document["tags"])) == edits
        assert {item["id"] for item in document["items"]} == set(document["tags"])
        # Lines that merges in different orders put into other places may be there twice; none is missing.
        assert set(document["bio"].split()) == set(document["tags"])


@pytest.mark.parametrize("part", sample(range(3), range(20)))
def test_random_histories(part: int) -> None:
    for number in drawn(range(12), range(12)):
        run(100 * part + number)


def run(seed: int) -> None:
    histories = Histories(seed)
    try:
        for _ in range(14):
            device = histories.chance.randrange(len(histories.stores))
            step = histories.chance.choice([histories.edit, histories.edit, histories.merge, histories.merge, histories.exchange])
            step(device)
        # In the end all have equal states with all edits.
        for _ in range(4):
            for device in range(len(histories.stores)):
                histories.exchange(device)
                made = histories.stores[device].merge_heads(histories.current[device])
                histories.current[device] = made.id if made else histories.current[device]
                histories.learn(histories.stores[device])
        states = [dict(store.at(at)) for store, at in zip(histories.stores, histories.current)]
        assert all(state == states[0] for state in states)
        assert histories.deltas.keys() <= histories.graph.above[histories.current[0]]
    finally:
        histories.close()


def conflicting(rules: Optional[str] = '{"merge":1,"ids":{"c":"counter"}}') -> tuple[llvs.Store, llvs.Version, llvs.Version]:
    store = llvs.Store(storage="memory")
    base = store.make_version(insert={"c": b"1", **({"__llvs_schema": rules.encode()} if rules else {})})
    return store, store.make_version(base, update={"c": b"3"}), store.make_version(base, update={"c": b"6"})


@pytest.mark.parametrize("arbiter, expected", [
    (None, b"8"), (llvs.Rules(), b"8"), (llvs.Rules("auto"), b"6"), (llvs.Rules({"": {"pick": "older"}}), b"3"),
    (llvs.Rules({"merge": 1, "ids": {"c": "counter"}}), b"8"), (llvs.MostRecentChange(), b"6"),
])  # fmt: skip
def test_which_rules_hold(arbiter: Any, expected: bytes) -> None:
    store, a, b = conflicting()
    with store:
        assert store.at(store.merge(a, b, arbiter))["c"] == expected


def test_without_rules() -> None:
    store, a, b = conflicting(None)
    with store:
        assert store.merge(a, b) == store.merge(a, b, llvs.MostRecentChange()) == store.merge(b, a, llvs.Rules())


def test_rules_that_cannot_be_used() -> None:
    store, a, b = conflicting()
    with store:
        with pytest.raises(llvs.errors.InvalidArgumentError) as invalid:
            store.merge(a, b, llvs.Rules({"/a": "best"}))
        assert invalid.value.path == "/~1a"
        newer = store.make_version(b, update={"__llvs_schema": b'{"merge":2}'})
        with pytest.raises(llvs.errors.UnsupportedError, match="newer version of the library") as unknown:
            store.merge(a, newer)
        assert unknown.value.path == "/merge"
        assert len(store.heads()) == 2
        assert store.at(store.merge(a, newer, llvs.MostRecentChange()))["c"] == b"6"


def test_the_fallback_of_an_arbiter() -> None:
    class Asking:
        fallback = llvs.Rules()

        def resolve(self, merge: llvs.merge.Merge, store: llvs.Store) -> llvs.merge.Resolution:
            return llvs.merge.PASS

    store, a, b = conflicting()
    with store:
        merged = store.merge(a, b, Asking())
        assert store.at(merged)["c"] == b"8"
        assert merged.metadata == {"__llvs_arbiter": "host"}


def test_coordinators_merge_by_the_rules_of_the_store() -> None:
    place = "memory:test_rules-coordinators"
    with llvs.Coordinator(storage="memory", exchange=place) as one, llvs.Coordinator(storage="memory", exchange=place) as two:
        one.save(update={"__llvs_schema": b'{"merge":1,"ids":{"c":"counter"}}', "c": b"0"})
        one.sync()
        two.sync()
        for device in (one, two):
            device.save(update={"c": b"1"})
        for device in (one, two, one):
            device.sync()
        assert one["c"] == two["c"] == b"2"
