"""The command's cost grows with the size of the values and histories of others: bytes and steps are counted at n and at 4n."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from llvs.tools import blame_command, command, differing, exact_json, graph, inner_differences, output, values


def size(rows: Any) -> int:
    """The size of rows in bytes."""
    return sum(len(row.encode()) + 1 for row in rows)


def deep(depth: int, inner: str) -> bytes:
    return ("[" * depth + inner + "]" * depth).encode()


@pytest.mark.parametrize("depth", [15, 16, 17, 200, 800])
def test_json_is_indented_to_a_depth(depth: int) -> None:
    data = deep(depth, ",".join(["1"] * 5000))
    rows = list(values.rows(data))
    assert json.loads("\n".join(rows)) == json.loads(data)
    assert size(rows) <= 40 * len(data)
    told = output.as_json(values.shape(data), indent=2)
    assert json.loads(told)["json"] == json.loads(data) and len(told) <= 40 * len(data)
    named = ('{"a":' * depth + "[" + ",".join(['"x"'] * 5000) + "]" + "}" * depth).encode()
    assert len(output.as_json(json.loads(named), indent=2)) <= 40 * len(named)


def test_a_document_that_is_not_deep_is_indented_as_before() -> None:
    document = {"a": [1, {"b": []}, {}, "x", None, True, 1.5], "c": {"d": {"e": [[]]}}, "\u00fc": ""}
    assert output.as_json(document, indent=2) == json.dumps(document, indent=2, ensure_ascii=False)


class Leaf(str):
    """A text that counts how often it is read or compared."""

    touched = 0

    def _touch(self) -> None:
        Leaf.touched += 1

    def __eq__(self, other: object) -> bool:
        self._touch()
        return str.__eq__(self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> bool:
        self._touch()
        return str.__ne__(self, other)  # type: ignore[no-any-return]

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __repr__(self) -> str:
        self._touch()
        return str.__repr__(self)

    def encode(self, *arguments: Any, **options: Any) -> bytes:
        self._touch()
        return str.encode(self, *arguments, **options)


def nested(depth: int, leaves: int, side: str) -> Any:
    """Nested values: each level differs in two elements, and the lists of leaves at the bottom differ in one."""
    value: Any = [*(Leaf(f"leaf {number}") for number in range(leaves)), side]
    for level in range(depth):
        value = [value, f"{side}{level}"]
    return value


def test_differences_read_each_part_once_however_deep_it_lies() -> None:
    touched = {}
    for depth in (50, 200):
        Leaf.touched = 0
        found = list(differing.members(nested(depth, 500, "a"), nested(depth, 500, "b")))
        touched[depth] = Leaf.touched
        assert len(found) == depth + 1 and found[-1].pointer.endswith(f"/{depth - 1}a") is False
    assert touched[200] == touched[50] <= 4 * 2 * 500


def test_what_is_equal_and_what_is_not() -> None:
    def told(old: Any, new: Any) -> list[tuple[str, Any, Any]]:
        return [(member.pointer, member.old, member.new) for member in differing.members(old, new)]

    assert told([1], [True]) == [("/0", 1, True)] and told([1], [1.0]) == [("/0", 1, 1.0)]
    assert told({"a": {"x": 1, "y": [2]}}, {"a": {"y": [2], "x": 1}}) == []
    assert told([{"a": 1, "b": 2}, 3], [{"b": 2, "a": 1}, 4]) == [("/1", 3, 4)]
    assert told([exact_json.Number(b"1.0")], [exact_json.Number(b"1.00")]) == [("/0", b"1.0", b"1.00")]
    assert told(["1"], [exact_json.Number(b"1")]) == [("/0", "1", b"1")]
    assert told({"a": ["x"]}, {"a": ["x", ["y"]]}) == [("/a/1", differing.ABSENT, ["y"])]


def chained(depth: int, side: str) -> bytes:
    """Nested values: each level has elements that differ."""
    value: Any = side
    for level in range(depth):
        value = [value, *(f"{side}{level}.{number}" for number in range(20))]
    return json.dumps(value).encode()


def below(members: int, side: str) -> bytes:
    """Members that differ, below a name that is as long as all of them."""
    return json.dumps({"k" * (10 * members): {str(number): side for number in range(members)}}).encode()


@pytest.mark.parametrize("make, n", [(chained, 200), (below, 2000)])
def test_paths_are_not_reported_repeatedly(make: Callable[[int, str], bytes], n: int) -> None:
    told = {}
    for count in (n, 4 * n):
        old, new = make(count, "a"), make(count, "b")
        told[count] = size(inner_differences.rows(old, new)) / (len(old) + len(new))
        assert len(json.dumps(inner_differences.shape(old, new))) <= 60 * (len(old) + len(new))
    assert max(told.values()) <= 60


def test_members_of_a_document_that_is_not_deep_are_reported() -> None:
    old, new = (json.dumps({"a": {"b": [side] * 3, "c": 1}}).encode() for side in "xy")
    assert [member["path"] for member in inner_differences.shape(old, new)["members"]] == ["/a/b/0", "/a/b/1", "/a/b/2"]


def drawn(heads: int) -> tuple[int, int]:
    """The length of the longest row, and the number of characters, of a history with many open lanes."""
    lanes, rows = graph.Graph(), []
    for number in range(heads):
        rows += [lanes.node(f"head {number}", [f"before {number}"]), *lanes.links(), lanes.beside()]
    for number in reversed(range(heads)):
        rows += [lanes.node(f"before {number}", ["root"]), *lanes.links(), lanes.beside()]
    rows += [lanes.node("root", []), *lanes.links()]
    return max(map(len, rows)), size(rows)


def test_a_graph_is_as_wide_as_the_lanes_that_are_drawn() -> None:
    (narrow, small), (wide, large) = drawn(500), drawn(2000)
    assert narrow == wide == 2 * (graph.DRAWN + 1)
    assert large <= 4.1 * small


def test_lanes_beyond_are_in_one_column() -> None:
    lanes = graph.Graph()
    for number in range(graph.DRAWN):
        lanes.node(f"head {number}", [f"before {number}"])
    beyond = [lanes.node(f"far {number}", [f"before far {number}"]) for number in range(3)]
    assert [row[2 * graph.DRAWN:] for row in beyond] == ["○ "] * 3 and lanes.beside()[2 * graph.DRAWN:] == "┊ "
    row = lanes.node("before 0", ["before far 1"])
    assert row == "○ " + "│ " * (graph.DRAWN - 1) + "┊ "
    assert lanes.links() == ["╰─" + "┼─" * (graph.DRAWN - 1) + "┤ "]
    for number in range(3):
        lanes.node(f"before far {number}", ["root"])
    assert lanes.beside()[2 * graph.DRAWN:] == "┊ ", "one of them leads to the root"
    lanes.node("root", [])
    assert lanes.beside().rstrip().endswith("│"), "nothing is beyond any more"


def test_the_log_of_many_heads(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    path = tmp_path / "s.llvs"
    with llvs.Store(path, durability="normal") as store:
        root = store.make_version(insert={"a": b"1"}, timestamp=1.0)
        for number in range(120):
            store.make_version(store.make_version(root, insert={"b": b"1"}, timestamp=1000.0 + number), timestamp=1e9 + number)
    assert command.run(["-s", str(path), "log", "--graph", "--oneline"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len([row for row in rows if "○" in row or "@" in row]) == 241
    assert max(map(len, rows)) <= 2 * (graph.DRAWN + 1) + 80


def test_a_column_is_not_filled_up_to_the_longest_cell() -> None:
    rows = list(output.table([["x" * 100_000, "a"], *([["y", "b"]] * 1000)]))
    assert size(rows) < 300_000 and rows[1] == "y".ljust(output.WIDEST) + "  b"


def test_blame_is_not_filled_up_to_the_longest_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.llvs"
    with llvs.Store(path) as store:
        document = {"k" * 50_000: 1, **{str(number): 1 for number in range(500)}}
        store.make_version(insert={"v": json.dumps(document).encode()}, metadata={"author": "ann"})
    assert command.run(["-s", str(path), "blame", "v"]) == 0
    assert len(capsys.readouterr().out) < 250_000
    assert blame_command.SHOWN == 8
