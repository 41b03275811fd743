"""Contested values, compared with the model: random criss-crosses, in which each side continues with one of the two values."""

from __future__ import annotations

import json
import random
from typing import Any, Optional

import llvs
import pytest
from documents import merge as m
from documents import rules as r
from documents.versions import Graph, Held
from random_documents import Generator, dumps
from sampling import drawn, sample

#: Rules that lead to conflicts in elements of paired lists, in texts, and in both.
RULES: list[Any] = [
    "auto", "text", {"as": "text", "unit": "line"}, {"as": "text", "pick": "older"}, {"/t": "text"}, {"/*": "text"},
    {"/*/t": {"as": "text", "unit": "line"}}, {"": "list", "/*": "tuple"}, {"/t": "list", "/t/*/t": "text"},
    {"": {"as": "list", "key": ["/k"]}, "/*/t": "text"},
]  # fmt: skip


class Case:
    """A criss-cross in a store, and the same in the model."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.generator = Generator(self.chance)
        self.rules = self.chance.choice(RULES)
        self.schema = ('{"merge":1,"ids":{"":"bytes","a":' + dumps(self.rules) + "}}").encode()
        self.rule_set = r.parse_schema(self.schema).rules("a")
        self.graph = Graph()
        self.made: dict[str, llvs.Version] = {}

    def value(self) -> Any:
        chance = self.chance
        words = " ".join(chance.choice(["a", "b", "c", "d\n", "\u00e9."]) for _ in range(chance.randrange(2, 7)))
        if self.rule_set.top.kind == "text":
            return words
        items: list[Any] = [[1, 2], {"t": words, "k": 1}, {"t": "x y z", "id": 1}, words, 3, 4, 5, [words, 6], {"t": words}]
        some = [chance.choice(items) for _ in range(chance.randrange(2, 5))]
        return some if self.rule_set.top.kind == "list" or chance.randrange(3) else {"t": chance.choice([words, some]), "a": some}

    def put(self, value: Any, chance: random.Random, side: int) -> Any:
        """Replaces a scalar or a word at a random place. Pairing matches such values, and both sides overlap if they replace at the same
        place."""
        if isinstance(value, list) and value:
            place = chance.randrange(len(value))
            return value[:place] + [self.put(value[place], chance, side)] + value[place + 1 :]
        if isinstance(value, dict) and value:
            name = chance.choice(sorted(set(value) - {"id", "k"}) or sorted(value))
            return {**value, name: self.put(value[name], chance, side)}
        if isinstance(value, str):
            words = value.split(" ")
            words[chance.randrange(len(words))] = f"w{side}"
            return " ".join(words)
        return 100 + side

    def grown(self, value: Any) -> Any:
        """Adds something at a random place."""
        if isinstance(value, list):
            place = self.chance.randrange(len(value) + 1)
            return value[:place] + [200 + self.chance.randrange(9)] + value[place:]
        if isinstance(value, dict):
            return {**value, "more": self.chance.randrange(9)}
        return self.chance.choice([f"{value} more", f"more {value}"]) if isinstance(value, str) else value

    def save(self, store: llvs.Store, name: str, above: str, value: Any) -> Any:
        time = 10.0 + len(self.made)
        text = value if isinstance(value, str) and self.rule_set.top.kind == "text" else json.dumps(value, ensure_ascii=False)
        made = store.make_version(self.made.get(above), update={"a": text.encode()}, timestamp=time, metadata={"name": name})
        self.made[name] = made
        self.graph.add(made.id, time, (self.made[above].id,), {"a": Held(text.encode(), (time, made.id), made.id)})
        return value

    def merge(self, store: llvs.Store, name: str, one: str, other: str, metadata: Optional[dict[str, Any]]) -> tuple[m.Record, ...]:
        made = self.made[name] = store.merge(self.made[one], self.made[other], metadata=metadata)
        outcome = self.graph.merge("a", self.made[one].id, self.made[other].id, self.rule_set)
        assert outcome.held is not None
        value = store.value("a", at=made)
        assert value is not None and value.data == outcome.held.data, (self.rules, outcome.held.data)
        told = made.metadata.get("__llvs_conflicts")
        records = [("a", record) for record in outcome.records]
        about = (self.rules, [record.node("a") for record in outcome.records], list(store.explain(made).records))
        assert (told and told["hash"]) == (m.conflicts_digest(records) if records else None), about
        held = outcome.same_as or Held(outcome.held.data, outcome.held.recency, made.id)
        self.graph.add(made.id, made.timestamp, made.predecessors, {"a": held})
        return outcome.records

    def run(self) -> list[m.Record]:
        """The contested records of the last merge."""
        with llvs.Store(storage="memory") as store:
            self.made["root"] = store.make_version(insert={"__llvs_schema": self.schema}, timestamp=1.0)
            self.graph.add(self.made["root"].id, 1.0, (), {})
            base = self.save(store, "o", "root", self.value())
            # Usually both replace at the same place.
            seed = self.chance.random()
            places = [random.Random(seed), random.Random(seed if self.chance.randrange(4) else -seed)]
            sides = [self.save(store, name, "o", self.put(base, places[side], side)) for side, name in enumerate("xy")]
            self.merge(store, "m", "x", "y", {"device": "a"})
            self.merge(store, "k", "x", "y", {"device": "b"})
            for name, above, side in (("x2", "m", sides[0]), ("y2", "k", sides[1])):
                self.save(store, name, above, self.grown(side) if self.chance.randrange(2) else side)
            records = self.merge(store, "z", "x2", "y2", None)
            self.check_open(store)
            return [record for record in records if record.kind == "contested"]

    def check_open(self, store: llvs.Store) -> None:
        """A contested value is open while the merge's result prevails there."""
        made = self.made["z"]
        told = [one for one in store.explain(made).records if one.kind is llvs.merge.ConflictKind.CONTESTED]
        for conflict in told:
            # (Of a removed place it cannot be decided whether it prevails.)
            if conflict.result in (None, b'""'):
                continue
            assert conflict in store.open_conflicts(made).records, (self.rules, conflict)
            chosen = store.choose(conflict, "older", at=made)
            assert conflict not in store.open_conflicts(chosen).records


@pytest.mark.parametrize("part", sample(range(2), range(10)))
def test_contested_places_of_random_criss_crosses(part: int) -> None:
    found = [record for seed in drawn(*[range(60 * part, 60 * part + 60)] * 2) for record in Case(seed).run()]
    # Conflicts in elements, and in texts that contain more than the contested part.
    assert any(not isinstance(step, str) for record in found for step in record.path)
    assert any(isinstance(step, m.Part) for record in found for step in record.inner)
