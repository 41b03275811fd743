"""Conflicts: of two versions before they are merged, of merges, open ones, and decisions."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Iterator, Optional

import llvs
import pytest
from llvs.merge.documents import plain_path

RULES = b"""{"merge":1,"ids":{
    "d/": {"/n": "counter", "/m": {"as": "counter", "max": 5}, "/bio": "text", "/tags": "set", "/pair": {"as": "tuple"},
           "/items": {"as": "list", "key": ["/id"]}},
    "t/": "text",
    "b/": "bytes"}}"""


_open: list[llvs.Store] = []


@pytest.fixture(autouse=True)
def stores_are_closed() -> Iterator[None]:
    yield
    while _open:
        _open.pop().close()


def memory_store() -> llvs.Store:
    """A store that is closed after the test."""
    _open.append(llvs.Store(storage="memory"))
    return _open[-1]


class Fork:
    """A store with rules, a base, and two versions on it; the second is the newer."""

    def __init__(self, base: dict[str, Any], older: dict[str, Any], newer: dict[str, Any]) -> None:
        self.store = memory_store()
        self.base = self.make(None, {"__llvs_schema": RULES, **base})
        self.older, self.newer = self.make(self.base, older), self.make(self.base, newer)

    def make(self, at: Optional[llvs.Version], values: dict[str, Any]) -> llvs.Version:
        update = {
            id: value if isinstance(value, bytes) else json.dumps(value).encode() for id, value in values.items() if value is not None
        }
        return self.store.make_version(at, update=update, remove=[id for id, value in values.items() if value is None])

    def value(self, id: str, at: llvs.store.AnyVersion) -> Any:
        data = self.store.at(at).get(id)
        return None if data is None else json.loads(data)


def test_what_a_merge_would_find_is_what_it_finds() -> None:
    fork = Fork(
        {"d/1": {"name": "A", "n": 1}, "d/2": {"x": 1}, "plain": b"0", "gone": b"0"},
        {"d/1": {"name": "B", "n": 2}, "d/2": {"x": 2}, "plain": b"1", "gone": b"1"},
        {"d/1": {"name": "C", "n": 5}, "d/2": None, "plain": b"2", "gone": None},
    )
    store = fork.store
    before = len(list(store.history()))
    found = store.conflicts(fork.older, fork.newer)
    assert len(list(store.history())) == before and list(found) == ["d/1", "d/2", "gone", "plain"]
    (one,) = found["d/1"]
    assert one.path == ("name",) and one.kind is llvs.merge.ConflictKind.PICK and one.version == "" and one.id == "d/1"
    assert (one.base, one.newer, one.older, one.result) == (b'"A"', b'"C"', b'"B"', b'"C"')
    (two,) = found["d/2"]
    assert two.kind is llvs.merge.ConflictKind.DELETE_EDIT and two.older is None and two.result == b'{"x":2}'
    # A value without rules is decided as a whole, and is not JSON here.
    (whole,) = found["plain"]
    assert whole.path == () and whole.rule is None and whole.result == whole.newer and json.loads(whole.newer or b"")["size"] == 1
    assert found["gone"][0].kind is llvs.merge.ConflictKind.DELETE_EDIT and found["gone"][0].result == found["gone"][0].newer
    assert store.conflicts(fork.newer, fork.older).records == found.records
    assert store.conflicts(fork.newer, fork.older, id="d/1").records == (one,)
    assert store.conflicts(fork.base, fork.newer).records == () == store.conflicts(fork.newer, fork.newer).records

    merged = store.merge(fork.older, fork.newer)
    explained = store.explain(merged)
    assert explained.recorded and explained.digest == found.digest == merged.metadata["__llvs_conflicts"]["hash"]
    assert explained.records == tuple(record._replace(version=merged.id) for record in found.records)
    assert store.explain(fork.newer).records == () and store.explain(fork.newer).recorded
    by_other = store.explain(merged, rules={"/name": {"pick": "older"}})
    assert not by_other.recorded and by_other["d/1"][-1].result == b'"B"'
    with pytest.raises(llvs.errors.UnknownVersionError):
        store.explain("nothing")


def test_a_merge_by_others_is_distinguished() -> None:
    fork = Fork({"d/1": {"a": 0}}, {"d/1": {"a": 1}}, {"d/1": {"a": 2}})
    hosts = fork.store.merge(fork.older, fork.newer, lambda merge, store: [llvs.Change.update("d/1", b'{"a":7}')])
    assert not fork.store.explain(hosts).recorded
    changed = fork.store.merge(fork.older, fork.newer, llvs.MostRecentChange())
    assert not fork.store.explain(changed).recorded
    plain = memory_store()
    base = plain.make_version(insert={"x": b"0"})
    a, b = plain.make_version(base, update={"x": b"1"}), plain.make_version(base, update={"x": b"2"})
    merged = plain.merge(a, b, llvs.Ours())
    # Without rules the result is the value in the merge version.
    (one,) = plain.explain(merged).records
    assert plain.explain(merged).recorded and one.result == one.older and merged.predecessors == (b.id, a.id)


CASES: list[tuple[Any, Any, Any, tuple[Any, ...], str, Any]] = [
    # base, older, newer, path, choice, result
    ({"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 2, "b": 0}, ("a",), "older", {"a": 1, "b": 1}),
    ({"a": {"x": 0}}, {"a": {"x": 1}}, {"a": {"x": [2]}}, ("a", "x"), "older", {"a": {"x": 1}}),
    ({"a": 1, "z": 0}, {"a": 2, "z": 1}, {"z": 0}, ("a",), "newer", {"z": 1}),
    ({"a": 1, "z": 0}, {"z": 1}, {"a": 2, "z": 0}, ("a",), "older", {"z": 1}),
    ({"pair": [1, 2]}, {"pair": [3, 2]}, {"pair": [4, 5]}, ("pair", {"index": 0}), "older", {"pair": [3, 5]}),
    ({"l": [1, 2]}, {"l": [9, 2]}, {"l": [7, 2]}, ("l", {"index": 0}), "older", {"l": [9, 2]}),
    (
        {"items": [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]},
        {"items": [{"id": 1, "t": "A"}, {"id": 2, "t": "b"}]},
        {"items": [{"id": 2, "t": "b"}, {"id": 1, "t": "aa"}]},
        ("items", {"key": 1}, "t"), "older", {"items": [{"id": 2, "t": "b"}, {"id": 1, "t": "A"}]},
    ),
    ({"bio": "The cat."}, {"bio": "The dog."}, {"bio": "The fox."}, ("bio",), "older", {"bio": "The dog."}),
    ({"a~/\u00e9": 1}, {"a~/\u00e9": 2}, {"a~/\u00e9": 3}, ("a~/\u00e9",), "older", {"a~/\u00e9": 2}),
]


@pytest.mark.parametrize("base, older, newer, path, choice, expected", CASES)
def test_choosing_another_side(base: Any, older: Any, newer: Any, path: tuple[Any, ...], choice: str, expected: Any) -> None:
    fork = Fork({"d/1": base}, {"d/1": older}, {"d/1": newer})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert conflict.path == path and conflict.version == merged.id
    # Later edits of other members stay, and so does the conflict.
    beside = fork.make(merged, {"d/1": {**fork.value("d/1", merged), "beside": 1}})
    assert fork.store.open_conflicts(beside).records == (conflict,)
    chosen = fork.store.choose(conflict, choice, at=beside)
    assert fork.value("d/1", chosen) == {**expected, "beside": 1}
    assert fork.store.open_conflicts(chosen).records == ()
    with pytest.raises(llvs.MovedError):
        fork.store.choose(conflict, choice, at=chosen)


@pytest.mark.parametrize("base, older, newer, path, choice, expected", CASES)
def test_choosing_what_stands(base: Any, older: Any, newer: Any, path: tuple[Any, ...], choice: str, expected: Any) -> None:
    fork = Fork({"d/1": base}, {"d/1": older}, {"d/1": newer})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    chosen = fork.store.choose(conflict, "result", at=merged)
    assert fork.value("d/1", chosen) == fork.value("d/1", merged) and fork.store.open_conflicts(chosen).records == ()
    assert [id for id in fork.store.at(chosen) if id.startswith("__llvs_chosen/")]
    assert fork.store.open_conflicts(merged).records == (conflict,)


@pytest.mark.parametrize(
    "id, base, older, newer, choice, expected",
    [
        ("b/1", b"\0", b"\1\1", b"\2", "older", b"\1\1"),
        # A side without the value counts as the older side, whatever the time of the removal.
        ("b/1", b"\0", b"\1", None, "older", None),
        ("d/1", b"[1", b"[2", b"[3", "older", b"[2"),
        ("t/1", b"The cat.", b"The dog.", b"The fox.", "older", b"The dog."),
    ],
)
def test_choosing_a_whole_value(
    id: str, base: bytes, older: Optional[bytes], newer: Optional[bytes], choice: str, expected: Optional[bytes]
) -> None:
    fork = Fork({id: base}, {id: older}, {id: newer})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    chosen = fork.store.choose(conflict, choice, at=merged)
    assert fork.store.at(chosen).get(id) == expected and fork.store.open_conflicts(chosen).records == ()


def test_places_in_a_list_are_looked_at_only() -> None:
    fork = Fork(
        {"d/1": {"items": [{"id": i} for i in (0, 1, 2)]}}, {"d/1": {"items": [{"id": i} for i in (1, 2, 0)]}},
        {"d/1": {"items": [{"id": i} for i in (1, 0, 2)]}},
    )
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert conflict.kind is llvs.merge.ConflictKind.MOVE_MOVE
    with pytest.raises(llvs.errors.InvalidArgumentError, match="saving the list"):
        fork.store.choose(conflict, "older", at=merged)
    assert not fork.store.open_conflicts(fork.store.choose(conflict, "result", at=merged))


def test_the_sides_of_a_counter_outside_of_its_bounds_are_no_alternatives() -> None:
    """Otherwise the numbers that two users chose would be added up."""
    fork = Fork({"d/1": {"m": 5}}, {"d/1": {"m": 6}}, {"d/1": {"m": 6}})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert conflict.kind is llvs.merge.ConflictKind.BOUND and fork.value("d/1", merged) == {"m": 7}
    for side in ("newer", "older"):
        # Also if the record says that a side prevails.
        for given in (conflict, conflict._replace(newer=b"7", older=b"7")):
            with pytest.raises(llvs.errors.InvalidArgumentError, match="saving the wanted number"):
                fork.store.choose(given, side, at=merged)
    chosen = fork.store.choose(conflict, "result", at=merged)
    assert fork.value("d/1", chosen) == {"m": 7} and not fork.store.open_conflicts(chosen)
    assert not fork.store.open_conflicts(fork.make(merged, {"d/1": {"m": 5}}))


def test_an_edit_closes_a_conflict_also_when_it_is_taken_back() -> None:
    fork = Fork({"d/1": {"a": 0}}, {"d/1": {"a": 1}}, {"d/1": {"a": 2}})
    merged = fork.store.merge(fork.older, fork.newer)
    edited = fork.make(merged, {"d/1": {"a": 3}})
    back = fork.make(edited, {"d/1": {"a": 2}})
    assert not fork.store.open_conflicts(edited) and not fork.store.open_conflicts(back) and fork.store.open_conflicts(merged)


def test_the_same_conflict_again_is_open_again() -> None:
    fork = Fork({"d/1": {"a": 0}}, {"d/1": {"a": 1}}, {"d/1": {"a": 2}})
    store = fork.store
    merged = store.merge(fork.older, fork.newer)
    looked = store.choose(store.open_conflicts(merged).records[0], "result", at=merged)
    again = fork.make(looked, {"d/1": {"a": 0}})
    older, newer = fork.make(again, {"d/1": {"a": 1}}), fork.make(again, {"d/1": {"a": 2}})
    second = store.merge(older, newer)
    (conflict,) = store.open_conflicts(second).records
    assert conflict.version == second.id
    assert not store.open_conflicts(store.choose(conflict, "result", at=second))


def test_two_devices_see_each_others_choices() -> None:
    def device() -> llvs.Coordinator:
        return llvs.Coordinator(storage="memory", exchange="memory:test_conflicts-choices", schema=json.loads(RULES))

    with device() as a, device() as b:
        a.save(insert={"d/1": b'{"a":0,"b":0}'})
        a.sync()
        b.sync()
        a.save(update={"d/1": b'{"a":1,"b":1}'})
        b.save(update={"d/1": b'{"a":2,"b":2}'})
        for notes in (a, b, a):
            notes.sync()
        found = [notes.open_conflicts() for notes in (a, b)]
        assert found[0].records == found[1].records and len(found[0]["d/1"]) == 2
        one, two = found[0]["d/1"]
        a.choose(one, "older")
        b.choose(two, "result")
        for notes in (a, b, a):
            notes.sync()
        assert a.current_version == b.current_version and json.loads(a["d/1"]) == {"a": 1, "b": 2}
        assert not a.open_conflicts() and not b.open_conflicts()


def test_what_is_wrong_with_a_conflict() -> None:
    fork = Fork({"d/1": {"a": 0}}, {"d/1": {"a": 1}}, {"d/1": {"a": 2}})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    for wrong in (conflict._replace(version=""), conflict._replace(path=(1,)), conflict._replace(result=b"[")):  # type: ignore[arg-type]
        with pytest.raises(llvs.errors.InvalidArgumentError):
            fork.store.choose(wrong, "older", at=merged)
    with pytest.raises(llvs.errors.InvalidArgumentError):
        fork.store.choose(conflict, "ours", at=merged)
    with pytest.raises(llvs.errors.InvalidIDError):
        fork.store.choose(conflict._replace(id=""), "older", at=merged)
    for lost in (conflict._replace(path=("a", "b", {"key": 1})), conflict._replace(path=({"index": 5}, "x"))):
        with pytest.raises(llvs.MovedError):
            fork.store.choose(lost, "older", at=merged)
    # A side that never was is written as it is given: a choice is an edit.
    other = fork.store.choose(conflict._replace(older=b'{"x":[1.50]}'), "older", at=merged)
    assert fork.store.at(other)["d/1"] == b'{"a":{"x":[1.50]}}'


def test_rules_that_are_not_valid_are_reported_once() -> None:
    """The merge that brings the rules to the other side reports them. Later merges inherit the conflict: it stays open, and is not recorded
    again."""
    store = memory_store()

    def edit(at: llvs.Version, name: str, value: int) -> llvs.Version:
        return store.make_version(at, update={"d/1": json.dumps({**json.loads(store.at(at)["d/1"]), name: value}).encode()})

    base = store.make_version(insert={"__llvs_schema": RULES, "d/1": b'{"a":0,"b":0}'})
    broken = edit(store.make_version(base, update={"__llvs_schema": b"no rules"}), "a", 1)
    merged = store.merge(broken, edit(base, "b", 1))
    (conflict,) = store.open_conflicts(merged).records
    assert (conflict.id, conflict.path, conflict.version) == ("__llvs_schema", (), merged.id)
    for number in range(3):
        merged = store.merge(edit(merged, "a", number + 5), edit(merged, "b", number + 5))
        assert "__llvs_conflicts" not in merged.metadata and store.explain(merged).recorded
        assert store.open_conflicts(merged).records == (conflict,)
    # A side that did not have the rules yet: the merge reports them for that side.
    late = store.merge(merged, edit(base, "c", 1))
    assert [record.id for record in store.explain(late).records] == ["__llvs_schema"]
    assert len(store.open_conflicts(late).records) == 1
    mended = store.make_version(late, update={"__llvs_schema": RULES})
    assert store.open_conflicts(mended).records == ()


@pytest.mark.parametrize("key", ["123456789012345678901234567890", "0.12345678901234567891", "1.5", "7", '"7"', "1e400"])
def test_elements_are_found_by_their_keys_again(key: str) -> None:
    """Numbers that no float holds, too."""
    def data(number: int) -> bytes:
        return b'{"l":[{"id":%s,"v":%d}]}' % (key.encode(), number)

    store = memory_store()
    base = store.make_version(insert={"__llvs_schema": b'{"merge":1,"ids":{"c/":{}}}', "c/1": data(0)})
    older, newer = (store.make_version(base, update={"c/1": data(number)}) for number in (1, 2))
    merge = store.merge(newer, older)
    (conflict,) = store.open_conflicts(merge).records
    assert conflict.path == ("l", {"key": json.loads(key, parse_float=Decimal)}, "v")
    chosen = store.choose(conflict, "older", at=merge)
    assert json.loads(store.at(chosen)["c/1"])["l"][0]["v"] == 1 and not store.open_conflicts(chosen).records
    json.dumps(plain_path(conflict))


def fork_of(base: Any, older: Any, newer: Any, rules: Any = "auto") -> Fork:
    """A fork of one value `e/1` under rules of its own."""
    fork = Fork.__new__(Fork)
    fork.store = memory_store()
    schema = {"merge": 1, "ids": {"e/": rules}}
    fork.base = fork.make(None, {"__llvs_schema": schema, **({} if base is None else {"e/1": base})})
    fork.older, fork.newer = fork.make(fork.base, {"e/1": older}), fork.make(fork.base, {"e/1": newer})
    return fork


ELSEWHERE: list[tuple[Any, Any, Any, Any, Any]] = [
    # base, older, newer, the merge's result, and the result with the older side's value in the place of the conflict
    (
        [{"a": 2, "z": 0}, {"a": 1}], [{"a": 2, "z": 0}, {"a": 3}], [{"q": 0}, {"a": 2, "z": 0}, {"a": 2}],
        [{"q": 0}, {"a": 2, "z": 0}, {"a": 2}], [{"q": 0}, {"a": 2, "z": 0}, {"a": 3}],
    ),
    ([{"k": 0}, {"a": 1}], [{"k": 0}, {"a": 3}], [{"q": 0}, {"k": 0}, {"a": 2}], [{"q": 0}, {"k": 0}, {"a": 2}],
     [{"q": 0}, {"k": 0}, {"a": 3}]),
    ([7, 1], [7, 9], [5, 7, 7], [5, 7, 7], [5, 7, 9]),
    (["k", 1], ["k", 9], ["n", "k", 7], ["n", "k", 7], ["n", "k", 9]),
    ([{"id": 1, "v": 0}, {"id": 1, "v": 0}], [{"id": 1, "v": 0}, {"id": 1, "v": 2}], [{"id": 1, "v": 0}, {"id": 1, "v": 1}],
     [{"id": 1, "v": 0}, {"id": 1, "v": 1}], [{"id": 1, "v": 0}, {"id": 1, "v": 2}]),
]  # fmt: skip


@pytest.mark.parametrize("base, older, newer, merged, expected", ELSEWHERE)
def test_an_element_that_came_out_elsewhere_than_in_the_base(base: Any, older: Any, newer: Any, merged: Any, expected: Any) -> None:
    fork = fork_of({"l": base}, {"l": older}, {"l": newer})
    at = fork.store.merge(fork.older, fork.newer)
    assert fork.value("e/1", at) == {"l": merged}
    (conflict,) = fork.store.open_conflicts(at).records
    chosen = fork.store.choose(conflict, "older", at=at)
    assert fork.value("e/1", chosen) == {"l": expected}
    assert not fork.store.open_conflicts(chosen)


@pytest.mark.parametrize(
    "base, older, newer, since, expected",
    [
        # An equal element was inserted before it, another element was inserted before it, an element before it was removed, or another
        # member was edited.
        ([{"a": 1}], [{"a": 3}], [{"a": 2}], [{"a": 2, "new": 1}, {"a": 2}], [{"a": 2, "new": 1}, {"a": 3}]),
        ([{"b": 1}, {"a": 1}], [{"b": 1}, {"a": 3}], [{"b": 1}, {"a": 2}], [{"a": 2}], [{"a": 3}]),
        ([{"a": 1, "b": 1}, 5], [{"a": 3, "b": 1}, 5], [{"a": 2, "b": 1}, 5], [{"a": 2, "b": 4}, 5], [{"a": 3, "b": 4}, 5]),
        # Two elements equal the result, or none does: it is unknown which one is meant, so the conflict is closed.
        (["x", "a", "q"], ["x", "c", "q"], ["x", "b", "q"], ["b", "x", "b", "q"], None),
        ([{"a": 1}], [{"a": 3}], [{"a": 2}], [], None),
        ([{"id": 1, "v": 0}] * 2, [{"id": 1, "v": 0}, {"id": 1, "v": 2}], [{"id": 1, "v": 0}, {"id": 1, "v": 1}], [{"id": 1, "v": 1}],
         [{"id": 1, "v": 2}]),
        ([{"id": 1, "v": 0}] * 2, [{"id": 1, "v": 0}, {"id": 1, "v": 2}], [{"id": 1, "v": 0}, {"id": 1, "v": 1}],
         [{"id": 1, "v": 9}, {"id": 1, "v": 1}, {"id": 1, "v": 1}], None),
    ],
)  # fmt: skip
def test_an_element_that_stands_elsewhere_since(base: Any, older: Any, newer: Any, since: Any, expected: Any) -> None:
    """An open conflict can be chosen; one whose element cannot be identified is not open: no other element is ever changed."""
    fork = fork_of({"l": base}, {"l": older}, {"l": newer})
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    edited = fork.make(merged, {"e/1": {"l": since}})
    assert bool(fork.store.open_conflicts(edited)) == (expected is not None)
    if expected is None:
        with pytest.raises(llvs.MovedError):
            fork.store.choose(conflict, "older", at=edited)
        return
    assert fork.value("e/1", fork.store.choose(conflict, "older", at=edited)) == {"l": expected}


def test_an_element_that_is_chosen_back_stands_where_it_stood() -> None:
    rules = {"/l": {"as": "list", "key": ["/k"]}, "/l/*": {"delete": "delete"}}
    fork = fork_of({"l": [{"k": i} for i in range(3)]}, {"l": [{"k": 0}, {"k": 1, "v": 2}, {"k": 2}]}, {"l": [{"k": 0}, {"k": 2}]}, rules)
    merged = fork.store.merge(fork.older, fork.newer)
    assert fork.value("e/1", merged) == {"l": [{"k": 0}, {"k": 2}]}
    (conflict,) = fork.store.open_conflicts(merged).records
    edited = fork.make(merged, {"e/1": {"l": [{"k": 9}, {"k": 0}, {"k": 2}]}})
    for at, before in ((merged, []), (edited, [{"k": 9}])):
        chosen = fork.store.choose(conflict, "older", at=at)
        assert fork.value("e/1", chosen) == {"l": [*before, {"k": 0}, {"k": 1, "v": 2}, {"k": 2}]}


@pytest.mark.parametrize("beside", [{"a": 0, "b": 5}, {"a": 5, "b": 5}, {"a": 5, "b": 0}])
def test_what_was_edited_beside_the_merge_closes_nothing(beside: Any) -> None:
    """The device that edited it could not know of the conflict."""
    fork = fork_of({"a": 0, "b": 0}, {"a": 7, "b": 0}, {"a": 8, "b": 0})
    older = fork.make(fork.base, {"e/1": beside})
    newer_edits = [fork.make(fork.base, {"e/1": {"a": value, "b": 0}}) for value in (17, 18)]
    merged = fork.store.merge(*newer_edits)
    both = fork.store.merge(merged, older)
    assert fork.value("e/1", both)["a"] == 18
    found = {json.loads(conflict.older or b"null") for conflict in fork.store.open_conflicts(both).records}
    assert found == ({17} if beside["a"] == 0 else {5, 17})
    edited = fork.make(both, {"e/1": {"a": 1, "b": 0}})
    assert not fork.store.open_conflicts(edited)


@pytest.mark.parametrize("id, wrapped", [("e/1", False), ("e/1", True)])
def test_lines_of_a_text_whose_line_ends_were_converted(id: str, wrapped: bool) -> None:
    def value(text: str) -> Any:
        return {"t": text} if wrapped else text.encode()

    fork = fork_of(
        value("one\ntwo\nthree\n"), value("one\nTWO\nextra\nthree\n"), value("one\r\nzwei\r\nmore\r\nthree\r\n"),
        {"/t": "text"} if wrapped else "text",
    )
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert json.loads(conflict.result or b"") == "zwei\r\nmore\r\n"
    chosen = fork.store.at(fork.store.choose(conflict, "older", at=merged))[id]
    text = "one\r\nTWO\r\nextra\r\nthree\r\n"
    assert (json.loads(chosen)["t"] if wrapped else chosen.decode()) == text


def test_lines_that_are_there_twice_are_found_by_their_place() -> None:
    fork = fork_of(b"dog\nand\ncat\n", b"dog\nand\nfox\n", b"dog\nand\ndog\n", "text")
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert fork.store.at(fork.store.choose(conflict, "older", at=merged))["e/1"] == b"dog\nand\nfox\n"
    edited = fork.make(merged, {"e/1": b"So\ndog\nand\ndog\n"})
    assert fork.store.open_conflicts(edited).records == (conflict,)
    assert fork.store.at(fork.store.choose(conflict, "older", at=edited))["e/1"] == b"So\ndog\nand\nfox\n"


def test_one_value_is_looked_at_as_where_others_conflict_too() -> None:
    """The value's open conflicts are reported, and a choice is applied at its place: an element at its former place, lines at theirs."""
    phones = [{"id": 1}, {"id": 2}]
    fork = Fork(
        {"d/1": {"items": phones}, "d/2": {"bio": "a\nb\nc"}, "d/3": 0},
        {"d/1": {"items": [{"id": 2}]}, "d/2": {"bio": "a\nb\ny"}, "d/3": 1},
        {"d/1": {"items": [{"id": 1, "t": 1}, {"id": 2}]}, "d/2": {"bio": "z\nb\nz"}, "d/3": 2},
    )
    merged = fork.store.merge(fork.older, fork.newer)
    assert [fork.value(id, merged) for id in ("d/1", "d/2")] == [{"items": [{"id": 1, "t": 1}, {"id": 2}]}, {"bio": "z\nb\nz"}]
    everything = fork.store.open_conflicts(merged)
    assert list(everything) == ["d/1", "d/2", "d/3"]
    for id in everything:
        assert fork.store.open_conflicts(merged, id=id) == {id: everything[id]} == fork.store.explain(merged, id=id)
    chosen = fork.store.choose(everything["d/2"][0], "older", at=merged)
    assert fork.value("d/2", chosen) == {"bio": "z\nb\ny"}
    removed = fork.store.choose(everything["d/1"][0], "older", at=merged)
    assert fork.value("d/1", removed) == {"items": [{"id": 2}]}
    rules = RULES.replace(b'"/items": {', b'"/items/*": {"delete": "delete"}, "/items": {')
    back = Fork(
        {"d/1": {"items": phones}, "d/3": 0, "__llvs_schema": rules}, {"d/1": {"items": [{"id": 1, "t": 1}, {"id": 2}]}, "d/3": 1},
        {"d/1": {"items": [{"id": 2}]}, "d/3": 2},
    )
    merged = back.store.merge(back.older, back.newer)
    assert back.value("d/1", merged) == {"items": [{"id": 2}]}
    chosen = back.store.choose(back.store.open_conflicts(merged)["d/1"][0], "older", at=merged)
    assert back.value("d/1", chosen) == {"items": [{"id": 1, "t": 1}, {"id": 2}]}


def test_a_line_of_which_another_one_like_it_is_left_is_gone() -> None:
    """The merged text had two equal lines, of which one is the conflict's. After an edit the other one is left."""
    fork = fork_of(b"The sky\nis\ngray\n", b"The sky\nis\ndark\n", b"Blue\nThe sky\nis\nBlue\n", "text")
    merged = fork.store.merge(fork.older, fork.newer)
    (conflict,) = fork.store.open_conflicts(merged).records
    assert fork.store.at(fork.store.choose(conflict, "older", at=merged))["e/1"] == b"Blue\nThe sky\nis\ndark\n"
    edited = fork.make(merged, {"e/1": b"Blue\nThe sky\nis\ngreen\n"})
    assert not fork.store.open_conflicts(edited).records
    with pytest.raises(llvs.MovedError):
        fork.store.choose(conflict, "older", at=edited)


@pytest.mark.parametrize("since", [None, {}, {"box": 7}, {"box": []}, [], b"no json"])
@pytest.mark.parametrize(
    "rules, base, changed, removed",
    [
        ({"/box/t": {"delete": "delete"}}, {"box": {"t": 1}}, {"box": {"t": 2}}, {"box": {}}),
        ({"/box/*": {"delete": "delete"}}, {"box": {"t": {"u": 1}}}, {"box": {"t": {"u": 2}}}, {"box": {}}),
        ({"/box/l/*": {"delete": "delete"}}, {"box": {"l": [{"id": 1, "v": 1}]}}, {"box": {"l": [{"id": 1, "v": 2}]}}, {"box": {"l": []}}),
    ],
)
def test_what_is_not_there_is_no_open_conflict_once_what_it_was_in_is_gone(
    rules: Any, base: Any, changed: Any, removed: Any, since: Any
) -> None:
    fork = fork_of(base, changed, removed, rules)
    merged = fork.store.merge(fork.older, fork.newer)
    assert fork.value("e/1", merged) == removed
    (conflict,) = fork.store.open_conflicts(merged).records
    assert conflict.kind is llvs.merge.ConflictKind.DELETE_EDIT and conflict.result is None
    assert fork.value("e/1", fork.store.choose(conflict, "older", at=merged)) == changed
    beside = fork.make(merged, {"e/1": {**removed, "other": 1}})
    assert fork.store.open_conflicts(beside).records == (conflict,)
    gone = fork.make(merged, {"e/1": since})
    assert not fork.store.open_conflicts(gone).records
    with pytest.raises(llvs.MovedError):
        fork.store.choose(conflict, "older", at=gone)
