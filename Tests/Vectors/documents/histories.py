"""Writes histories.json: the results of merging several versions of one value, by the model in Tests/Python/documents.

    histories.py        rewrites the file
    histories.py --check  checks that the model gives it

They test what three values alone do not show: several bases, who is newer, whose reference a merge preserves, which of two merges wins.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple, Optional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

from documents import rules as r  # noqa: E402
from documents.merge import conflicts_digest  # noqa: E402
from documents.versions import Graph, Held  # noqa: E402


class Save(NamedTuple):
    """A version that stores the value, or removes it."""

    name: str
    above: str
    value: Any


class Merge(NamedTuple):
    """A merge of two versions; `metadata` distinguishes merges that different devices make of the same two."""

    name: str
    one: str
    other: str
    metadata: Optional[dict[str, str]] = None
    arbiter: str = "rules"
    #: The expected result if the model, which has no arbiters, cannot give it: the value, and the version that stores it.
    expected: Optional[tuple[Any, str]] = None


COUNTER = {"/n": "counter"}


def three(base: Any, one: Any, two: Any, last: Any) -> list[Any]:
    """Returns three saves on one version."""
    return [Save("o", "", base), Save("x", "o", one), Save("y", "o", two), Save("z", "o", last)]


A, B = {"device": "a"}, {"device": "b"}


def crossed(base: Any, one: Any, two: Any, after_one: Any, after_two: Any) -> list[Any]:
    """Returns two merges of the same two edits, each followed by another edit, and a merge of these, whose base was contested."""
    return [
        Save("o", "", base), Save("x", "o", one), Save("y", "o", two), Merge("m", "x", "y", A), Merge("k", "x", "y", B),
        Save("x2", "m", after_one), Save("y2", "k", after_two), Merge("z", "x2", "y2"),
    ]  # fmt: skip


def notes(*texts: str) -> list[Any]:
    """Returns elements without keys, which are identified by their whole content."""
    return [{"t": text, "u": 0} for text in texts]

#: name, rules, steps in the order of time
HISTORIES: list[tuple[str, Any, list[Any]]] = [
    ("P2 several bases: a criss-cross counts each increment once", COUNTER, [
        Save("o", "", {"n": 0}), Save("x", "o", {"n": 1}), Save("y", "o", {"n": 10}), Merge("m", "x", "y", A), Merge("k", "x", "y", B),
        Save("x2", "m", {"n": 111}), Save("y2", "k", {"n": 1011}), Merge("z", "x2", "y2"),
    ]),
    ("P2 several bases: one side left alone what both merges decided", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", {"v": 2}), Merge("m", "x", "y", A), Merge("k", "x", "y", B),
        Save("x2", "m", {"v": 5}), Save("y2", "k", {"v": 2, "w": 1}), Merge("z", "x2", "y2"),
    ]),
    ("P2 three levels of criss-cross", COUNTER, [
        Save("o", "", {"n": 0}), Save("x", "o", {"n": 1}), Save("y", "o", {"n": 2}), Merge("m", "x", "y", A), Merge("k", "x", "y", B),
        Save("x2", "m", {"n": 4}), Save("y2", "k", {"n": 5}), Merge("m2", "x2", "y2", A), Merge("k2", "x2", "y2", B),
        Save("x3", "m2", {"n": 16}), Save("y3", "k2", {"n": 26}), Merge("z", "x3", "y3"),
    ]),
    ("P4 an increment that was taken over counts twice", COUNTER, [
        Save("o", "", {"n": 0}), Save("x", "o", {"n": 1}), Save("y", "o", {"n": 0, "w": 1}),
        Save("picked", "y", {"n": 1, "w": 1}), Merge("z", "x", "picked"),
    ]),
    ("P34 three registers, merged from the left", "auto", [
        *three({"v": 0}, {"v": 1}, {"v": 2}, {"v": 3}), Merge("xy", "x", "y"), Merge("xyz", "xy", "z"),
    ]),
    ("P34 three registers, merged from the right", "auto", [
        *three({"v": 0}, {"v": 1}, {"v": 2}, {"v": 3}), Merge("yz", "y", "z"), Merge("xyz", "x", "yz"),
    ]),
    ("P34 three lists, merged from the left", "auto", [
        *three([], ["x"], ["y"], ["z"]), Merge("xy", "x", "y"), Merge("xyz", "xy", "z"),
    ]),
    ("P34 three lists, merged from the right", "auto", [
        *three([], ["x"], ["y"], ["z"]), Merge("yz", "y", "z"), Merge("xyz", "x", "yz"),
    ]),
    ("P36 a merge makes nothing newer", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("other", "o", {"v": 0, "w": 1}), Save("y", "o", {"v": 2}),
        Merge("m", "x", "other"), Merge("z", "m", "y"),
    ]),
    ("P36 a merge that comes to the bytes of a side keeps its reference", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", {"v": 2}), Merge("m", "x", "y"),
        Save("c", "o", {"v": 3}), Merge("z", "m", "c"),
    ]),
    ("P37 a whole value never beats a merge that kept both", "auto", [
        Save("o", "", {"v": 0, "w": 0}), Save("x", "o", {"v": 1, "w": 0}), Save("y", "o", {"v": 0, "w": 1}), Merge("m", "x", "y", A),
        Merge("k", "x", "y", B, "most_recent_change", ({"v": 0, "w": 1}, "y")),
        Merge("z", "m", "k", None, "rules", ({"v": 1, "w": 1}, "m")),
    ]),
    ("P37 nor where the whole value came first", "auto", [
        Save("o", "", {"v": 0, "w": 0}), Save("x", "o", {"v": 1, "w": 0}), Save("y", "o", {"v": 0, "w": 1}),
        Merge("k", "x", "y", B, "most_recent_change", ({"v": 0, "w": 1}, "y")), Merge("m", "x", "y", A),
        Merge("z", "k", "m", None, "rules", ({"v": 1, "w": 1}, "m")),
    ]),
    ("P39 merges on a merge store nothing anew where the other side brings nothing", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", {"v": 0, "w": 1}), Save("other", "o", {"v": 0}),
        Merge("m", "x", "y"), Merge("k", "m", "other", A), Merge("l", "other", "m", B), Merge("z", "k", "l"),
    ]),
    ("P39 what one side alone changed is stored once, however often it is merged", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", {"v": 0}), Merge("m", "x", "y", A), Merge("k", "y", "x", B),
        Merge("z", "m", "k"),
    ]),
    ("an edit beats a removal, whichever is the newer", "auto", [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", None), Merge("z", "x", "y"),
    ]),
    ("a removal that the other side did not touch stands", "auto", [
        Save("o", "", {"v": 0}), Save("y", "o", None), Save("x", "o", {"v": 0}), Merge("z", "x", "y"),
    ]),
    ("a counter that one device removed begins anew", COUNTER, [
        Save("o", "", {"n": 1}), Save("x", "o", {}), Save("y", "o", {"n": 2}), Merge("z", "x", "y"),
    ]),
    ("an edit does not lose to what it had overwritten, where another merge kept that", "auto", [
        Save("o", "", {"p": 0, "q": 0}), Save("u", "o", {"p": 1, "q": 0}), Save("t", "o", {"p": 2, "q": 0}),
        Save("e", "u", {"p": 4, "q": 0}), Save("q", "u", {"p": 1, "q": 5}), Merge("m", "e", "t"), Merge("k", "q", "t"),
        Merge("z", "m", "k"),
    ]),
    ("nor in an element of a list", "auto", [
        Save("o", "", [{"id": 1, "p": 0, "q": 0}]), Save("u", "o", [{"id": 1, "p": 1, "q": 0}]),
        Save("t", "o", [{"id": 1, "p": 2, "q": 0}]), Save("e", "u", [{"id": 1, "p": 4, "q": 0}]),
        Save("q", "u", [{"id": 2}, {"id": 1, "p": 1, "q": 5}]), Merge("m", "e", "t"), Merge("k", "q", "t"), Merge("z", "m", "k"),
    ]),
    ("contested: two merges decided otherwise", {"/v": {"pick": "newer"}}, [
        Save("o", "", {"v": 0}), Save("x", "o", {"v": 1}), Save("y", "o", {"v": 2}), Merge("m", "x", "y", A), Merge("k", "x", "y", B),
        Save("x2", "m", {"v": 1}), Save("y2", "k", {"v": 2, "w": 1}), Merge("z", "x2", "y2"),
    ]),
    ("contested: a member of an element with an id", "auto", crossed(
        [{"id": 1, "v": 0}], [{"id": 1, "v": 1}], [{"id": 1, "v": 2}], [{"id": 1, "v": 1}], [{"id": 1, "v": 2, "w": 1}])),
    ("contested: a paired element of a list", "auto", crossed(
        {"l": [1, 2]}, {"l": [7, 2]}, {"l": [9, 2]}, {"l": [7, 2]}, {"l": [9, 2], "w": 1})),
    ("contested: a paired element, behind others that are new", "auto", crossed(
        {"l": [5, 1, 2]}, {"l": [5, 7, 2]}, {"l": [5, 9, 2]}, {"l": [0, 5, 7, 2]}, {"l": [5, 9, 2, 3], "w": 1})),
    ("contested: of two paired elements one", "auto", crossed([1, 2], [7, 8], [5, 6], [7, 6, 3], [4, 5, 6])),
    ("contested: a member of a paired element", "auto", crossed(
        notes("a", "z"), notes("b", "z"), notes("c", "z"), notes("b", "z"), notes("c", "z", "y"))),
    ("contested: a paired element in a paired element", "auto", crossed(
        [[1, 2], 0], [[3, 2], 0], [[4, 2], 0], [[3, 2], 0], [[4, 2], 0, 1])),
    ("contested: another value than any of a paired element is none of them", "auto", crossed(
        [1, 2], [7, 2], [9, 2], [8, 2], [9, 2, 3])),
    ("contested: an element that both kept is none", "auto", crossed([1, 2], [7, 2], [9, 2], [7, 9, 2], [9, 2, 3])),
    ("contested: equal values in another place are none", "auto", crossed([1, 2], [7, 2], [9, 2], [2, 7], [9, 2, 3])),
    ("contested: a line of a text", {"/t": "text"}, crossed(
        {"t": "Hm.\nThe cat sat."}, {"t": "Hm.\nThe dog sat."}, {"t": "Hm.\nThe fox sat."}, {"t": "Well.\nHm.\nThe dog sat."},
        {"t": "Oh.\nHm.\nThe fox sat."})),
    ("contested: a line of a text as a whole", "text", crossed(
        "The cat sat.", "The dog sat.", "The fox sat.", "The dog sat.", "The fox sat.")),
    ("contested: words beside it were added since, so it is another line", {"/t": "text"}, crossed(
        {"t": "The cat sat."}, {"t": "The dog sat."}, {"t": "The fox sat."}, {"t": "The dog sat. It slept."}, {"t": "Well. The fox sat."})),
    ("contested: lines of two places of a text", {"/t": "text"}, crossed(
        {"t": "é\na\nb\nc\nd\ne"}, {"t": "é\na\n1\nc\n2\ne"}, {"t": "é\na\n3\nc\n4\ne"}, {"t": "é\na\n1\nc\n4\ne\nf"},
        {"t": "0\né\na\n3\nc\n2\ne"})),
    ("contested: lines beside others that were replaced, too", {"/t": "text"}, crossed(
        {"t": "a\nb\nc\nd"}, {"t": "a\n1\nc\nd"}, {"t": "a\n2\nc\nd"}, {"t": "a\n1\nx\nd"}, {"t": "a\n2\nc\nd\ne"})),
    ("contested: an edit that met a removal", {"/t": "text"}, crossed(
        {"t": "a\nb\nc\n"}, {"t": "a\nc\n"}, {"t": "a\nb 2\nc\n"}, {"t": "a\nc\nd\n"}, {"t": "0\na\nb 2\nc\n"})),
    ("contested: lines", {"/t": {"as": "text", "unit": "line"}}, crossed(
        {"t": "a\nb\nc\n"}, {"t": "a\n1\nc\n"}, {"t": "a\n2\nc\n"}, {"t": "0\na\n1\nc\n"}, {"t": "a\n2\nc\nd\n"})),
    ("contested: lines of which the older's stand", {"/t": {"as": "text", "pick": "older"}}, crossed(
        {"t": "a\nb\nc"}, {"t": "a\n1\nc"}, {"t": "a\n2\nc"}, {"t": "a\n1\nc"}, {"t": "a\n2\nc\nd"})),
    ("contested: a text whose line ends one side changed", {"/t": {"as": "text", "unit": "line"}}, crossed(
        {"t": "a\nb\nc\n"}, {"t": "a\r\n1\r\nc\r\n"}, {"t": "a\n2\nc\n"}, {"t": "0\r\na\r\n1\r\nc\r\n"},
        {"t": "a\r\n2\r\nc\r\nd\r\n"})),
    ("contested: a text in a paired element", {"/*/t": "text"}, crossed(
        [{"t": "a\nb"}, 0], [{"t": "a\n1"}, 0], [{"t": "a\n2"}, 0], [{"t": "a\n1"}, 0], [{"t": "a\n2"}, 0, 1])),
]  # fmt: skip


def text_of(value: Any) -> Optional[str]:
    """Returns the value as JSON text."""
    return None if value is None else json.dumps(value, separators=(",", ":"))


def history(name: str, rules: Any, steps: list[Any]) -> dict[str, Any]:
    """Returns one history, with the value of each version, the version that stores it, and the records of merges."""
    schema = json.dumps({"merge": 1, "ids": {"": "bytes", "a": rules}}, separators=(",", ":"))
    rule_set, graph, versions = r.parse_schema(schema.encode()).rules("a"), Graph(), []
    graph.add("", 1.0, (), {})
    for number, step in enumerate(steps):
        time = 10.0 + number
        if isinstance(step, Save):
            text = text_of(step.value)
            state = {} if text is None else {"a": Held(text.encode(), (time, step.name), step.name)}
            graph.add(step.name, time, (step.above,), state)
            versions.append({
                "name": step.name, "time": time, "predecessors": [step.above] if step.above else [], "value": text,
                "stored": None if text is None else step.name,
            })  # fmt: skip
            continue
        above = (step.one, step.other)
        # A merge version has the next possible time after the later of the two, so that no save comes between.
        time = max(graph.times[one] for one in above) + 1e-6
        if step.expected is not None:
            value, stored = step.expected
            held: Optional[Held] = Held(json.dumps(value, separators=(",", ":")).encode(), (graph.times[stored], stored), stored)
            records = digest = None
        else:
            outcome = graph.merge("a", *above, rule_set)
            held = outcome.same_as or outcome.held and Held(outcome.held.data, outcome.held.recency, step.name)
            records = [record.kind for record in outcome.records]
            digest = conflicts_digest([("a", record) for record in outcome.records]) if records else None
        graph.add(step.name, time, above, {} if held is None else {"a": held})
        versions.append({
            "name": step.name, "predecessors": list(above), "arbiter": step.arbiter, "metadata": step.metadata,
            "value": None if held is None else held.data.decode(), "stored": None if held is None else held.stored, "records": records,
            "digest": digest,
        })  # fmt: skip
    return {"name": name, "schema": schema, "versions": versions}


def text() -> str:
    """Returns the file's text."""
    lines = ",\n".join(json.dumps(history(*one), ensure_ascii=False) for one in HISTORIES)
    return '{"format": 1, "histories": [\n' + lines + "\n]}\n"


if __name__ == "__main__":
    path = HERE / "histories.json"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text())
    path.write_text(text())
