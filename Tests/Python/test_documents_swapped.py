"""Merges in swapped roles: undoing a version gives the result of the model in plain Python, on random documents."""

from __future__ import annotations

import random
from typing import Optional

import llvs
import pytest
from documents import json_model as j
from documents import merge as m
from documents import rules as r
from random_documents import Generator, dumps
from sampling import drawn, sample


def are_same(one: Optional[bytes], other: Optional[bytes]) -> bool:
    """Returns whether both are one value, whatever the spelling."""
    if one is None or other is None or one == other:
        return one == other
    try:
        return j.equal(j.parse(one, scalar=True), j.parse(other, scalar=True))
    except j.NotMergeable:
        return False


@pytest.mark.parametrize("seed", sample(range(2), range(8)))
def test_random_values_are_undone_as_the_model_says(seed: int) -> None:
    for number in drawn(range(100), range(100)):
        undo_random(Generator(random.Random(1000 * seed + number)))


def undo_random(generator: Generator) -> None:
    """A version brings a value from `older` to `base`, the next one to `newer`; the first of these is undone."""
    rules, (base, newer, older) = generator.case()
    if generator.rng.randrange(3) == 0:
        older = None
    schema = dumps({"merge": 1, "ids": {"": rules}}).encode()
    try:
        checked = r.parse_schema(schema).rules("a")
    except r.InvalidSchema:
        return
    if newer is None or base is None or base == older:
        return  # Values that were removed since stay removed; vectors test values that the undone version removed.
    with llvs.Store(storage="memory") as store:
        before = store.make_version(insert={"__llvs_schema": schema, **({} if older is None else {"a": older})})
        undone = store.make_version(before, update={"a": base})
        now = store.make_version(undone, update={"a": newer})
        done = store.revert(undone, at=now)
        expected = m.merge_values(base, newer, older, checked, swapped=True, undone=True)
        about = f"{schema.decode()} {base!r} {newer!r} {older!r}"
        result = store.at(done.version or now).get("a")
        # If the result equals the present value, its spelling stays.
        assert result == expected.data or (result == newer and are_same(newer, expected.data)), about
        records = [{name: j.canonical(value) for name, value in record.node("a").members} for record in expected.records]
        told = [(record.kind.value, record.base, record.newer, record.older, record.result) for record in done.conflicts]
        assert told == [
            (record.kind, members.get("o"), members.get("x"), members.get("y"), members.get("result"))
            for record, members in zip(expected.records, records)
        ], about
