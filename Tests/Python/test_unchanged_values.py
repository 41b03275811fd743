"""A side has changed a value if its bytes differ from those of the base. It does not matter whether the same bytes were stored again."""

from __future__ import annotations

import json
from typing import Any, Optional

import llvs
import pytest

#: No rules, each rule for whole values, and a rule for a member.
RULES: list[Optional[dict[str, Any]]] = [
    None, {"merge": 1, "ids": {"": "register"}}, {"merge": 1, "ids": {"": "bytes"}}, {"merge": 1, "ids": {"": {"/m": "register"}}},
]  # fmt: skip
ONE, TWO, THREE = (json.dumps({"m": word}).encode() for word in ("one", "two", "three"))


@pytest.fixture(params=RULES, ids=lambda rules: json.dumps(rules))
def begun(request: pytest.FixtureRequest, memory: llvs.Store) -> tuple[llvs.Store, llvs.Version]:
    values = {"f": ONE} | ({"__llvs_schema": json.dumps(request.param).encode()} if request.param else {})
    return memory, memory.make_version(insert=values, timestamp=1.0)


@pytest.mark.parametrize("time", [5.0, 15.0, 25.0])
@pytest.mark.parametrize("way", [(ONE,), (TWO, ONE), (None, ONE)], ids=["saved", "put back", "removed and put back"])
def test_an_edit_stands_beside_a_value_that_is_unchanged(
    begun: tuple[llvs.Store, llvs.Version], way: tuple[Optional[bytes], ...], time: float
) -> None:
    store, base = begun
    one = base
    for at, data in zip((10.0, 20.0), way):
        one = store.make_version(one, update={"f": data} if data else {}, remove=[] if data else ["f"], timestamp=at)
    edited = store.make_version(base, update={"f": THREE}, timestamp=time)
    merged = store.merge(one, edited)
    assert store.at(merged)["f"] == THREE
    assert not store.explain(merged).records


@pytest.mark.parametrize("time", [5.0, 15.0])
def test_a_removal_stands_beside_a_value_that_is_unchanged(begun: tuple[llvs.Store, llvs.Version], time: float) -> None:
    store, base = begun
    one = store.make_version(base, update={"f": ONE}, timestamp=10.0)
    merged = store.merge(one, store.make_version(base, remove=["f"], timestamp=time))
    assert "f" not in store.at(merged)
    assert not store.explain(merged).records


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: json.dumps(rules))
def test_devices_keep_an_edit_that_another_saved_over_unchanged(rules: Optional[dict[str, Any]]) -> None:
    place = "memory:unchanged" + json.dumps(rules)
    options: dict[str, Any] = {"schema": rules} if rules else {}
    with llvs.Coordinator(storage="memory", exchange=place, **options) as one, llvs.Coordinator(storage="memory", exchange=place) as two:
        one.save(insert={"f": ONE})
        one.sync()
        two.sync()
        two.save(update={"f": THREE})
        one.save(update={"f": ONE})
        for device in (one, two, one):
            device.sync()
        assert one["f"] == two["f"] == THREE


def test_a_value_that_is_unchanged_since_folded_bases(memory: llvs.Store) -> None:
    """Two versions that were merged with one another have the value as it was before both; one of the two stored it again."""
    base = memory.make_version(insert={"f": ONE}, timestamp=1.0)
    left = memory.make_version(base, update={"f": THREE}, timestamp=2.0)
    right = memory.make_version(base, update={"f": ONE}, timestamp=3.0)
    one = memory.merge(left, right, llvs.Ours(), metadata={"side": b"1"})
    other = memory.merge(left, right, llvs.Theirs(), metadata={"side": b"2"})
    # The fold of `left` and `right` is the edit.
    one = memory.make_version(one, update={"f": THREE, "one": b"1"}, timestamp=4.0)
    other = memory.make_version(other, update={"f": TWO}, timestamp=3.5)
    merged = memory.merge(one, other)
    assert memory.at(merged)["f"] == TWO
    assert not memory.explain(merged).records
