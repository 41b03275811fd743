"""Writes texts.json: the results of merging texts and lists of plain values, by the model in Tests/Python/documents.

    texts.py          rewrites the file
    texts.py --check  checks that the model gives it

The examples are those of the specification, with its results and records. If the model gives others, nothing is written. The readings are
minimal cases for choices that the specification leaves open; the modules of the model describe them.

In the file a case has a name, a rule, `o`, `x` (newer), `y` (older), `result` and `records` of a kind with parts. Strings under a rule for
texts are whole values; other values are JSON. An absent part is left out. A case of `choose` has the merged text, the part of it that a
record is about (in scalars), the chosen text for it, the present text, and the resulting text: null if the part does not occur exactly
once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

from documents import json_model as j  # noqa: E402
from documents import merge as m  # noqa: E402
from documents import rules as r  # noqa: E402
from documents.text import choose  # noqa: E402

#: Name, base, newer, older, result, and the records in the specification: a kind, and the base's, the newer's and the older's part
#: with the result, or the kind alone.
Example = tuple[str, Any, Any, Any, Any, list[tuple[Any, ...]]]

TEXTS: list[Example] = [
    ("1", "one\ntwo\n", "one\ntwo\nthree\n", "zero\none\ntwo\n", "zero\none\ntwo\nthree\n", []),
    ("2", "The cat sat.", "The cat sat down.", "A cat sat.", "A cat sat down.", []),
    ("3", "Merging text is hard!", "Merging text is easy!", "With reconcile, merging documents is hard!",
     "With reconcile, merging documents is easy!", []),
    ("4", "The cat.", "The dog.", "The fox.", "The dog.", [("overlap", "The cat.", "The dog.", "The fox.", "The dog.")]),
    ("5", "Buy:\n", "Buy:\n* milk\n", "Buy:\n* two breads\n", "Buy:\n* two breads\n* milk\n", []),
    ("6", "a", "a\nb", "a\nc", "a\nc\nb", []),
    ("7", "cat", "cat dog", "cat fish", "cat fish dog", []),
    ("8", "cat", "cat dog", "cat dog house", "cat dog house", []),
    ("9", "Meeting at 10", "Meeting at 9", "Meeting at 10 in room 5", "Meeting at 9 in room 5", []),
    ("10", "10:30", "11:30", "10:45", "11:30", [("overlap", "10:30", "11:30", "10:45", "11:30")]),
    ("11", "v1", "v1.2", "v1.3", "v1.2", [("overlap", "v1", "v1.2", "v1.3", "v1.2")]),
    ("12", "Costs 3.50 net", "Costs 4.50 net", "Costs 3.60 net", "Costs 4.50 net",
     [("overlap", "Costs 3.50 net", "Costs 4.50 net", "Costs 3.60 net", "Costs 4.50 net")]),
    ("13", "Hello", "Hello!", "Hello.", "Hello!", [("overlap", "Hello", "Hello!", "Hello.", "Hello!")]),
    ("14", "- milk", "- milk 2 l\n- bread", "- oat milk", "- oat milk 2 l\n- bread", []),
    ("15", "a\nb\nc\n", "a\nc\n", "a\nb, new\nc\n", "a\nb, new\nc\n", [("delete-edit", "b\n", "", "b, new\n", "b, new\n")]),
    ("16", "Intro.\n\nWe meet on Monday.\n\nBye.\n", "Intro.\n\nBye.\n", "Intro.\n\nWe meet on Tuesday.\n\nBye.\n",
     "Intro.\n\nWe meet on Tuesday.\n\nBye.\n",
     [("delete-edit", "We meet on Monday.\n\n", "", "We meet on Tuesday.\n\n", "We meet on Tuesday.\n\n")]),
    ("17", "a\nb\nc\nd\ne\n", "a\ne\n", "a\nb\nc\nnew\nd\ne\n", "a\nnew\ne\n",
     [("delete-edit", "b\nc\nd\n", "", "b\nc\nnew\nd\n", "new\n")]),
    ("18", "a\nb\nc\n", "a\nc\n", "a\nb\nnew\nc\n", "a\nnew\nc\n", []),
    ("19", "Plan:\n\nTea at 5\n", "Plan:\n\nTea at 6\n", "Plan:\n\nBring cake\nTea at 6\n", "Plan:\n\nBring cake\nTea at 6\n", []),
    ("20", "q\n", "e\n", "p\ne\n", "p\ne\n", []),
    ("21", "one\ntwo\n", "ONE\ntwo\n", "one\nTWO\n", "ONE\nTWO\n", []),
    ("22", "a b c\n", "A b c\n", "a b C\n", "A b C\n", []),
    ("23", "s\n", "p\ns\n", "p\ne\n", "p\ne\n", []),
    ("24", "A.\n\nB.\n", "A.\n\nP1\n\nB.\n", "A.\n\nP2\n\nB.\n", "A.\n\nP2\n\nP1\n\nB.\n", []),
    ("25", "", "Call Ann\nat 10\n", "Call Bob\nat 10\n", "Call Bob\nat 10\nCall Ann\nat 10\n", []),
    ("26", "", "one\ntwo\nthree\n", "one\ntwo\nfour\n", "one\ntwo\nfour\nthree\n",
     [("overlap", "", "one\ntwo\nthree\n", "one\ntwo\nfour\n", "one\ntwo\nfour\nthree\n")]),
    ("27", "", "foo", "bar", "bar\nfoo", []),
    ("28", "x\n", "x", "x\ny\n", "x\ny", []),
    ("29", "a\r\nb\r\n", "a\nb\n", "a\r\nb\r\nc\r\n", "a\nb\nc\n", []),
    ("30", "a\nb\n", "a\r\nb\r\n", "a\rb\r", "a\r\nb\r\n", [("pick",)]),
    ("31", "Buy milk today", "Buy today", "Buy oat milk today", "Buy today",
     [("overlap", "Buy milk today", "Buy today", "Buy oat milk today", "Buy today")]),
    ("32", "The very long way home", "The way home", "The very long way back home", "The way back home", []),
    ("33", "我喜欢茶。", "我很喜欢茶。", "我喜欢绿茶。", "我很喜欢绿茶。", []),
    ("34", "갔다 왔다", "간다 왔다", "갔다 왔다 또", "간다 왔다 또", []),
    ("35", "x 🏳️‍🌈 y", "x 🏳️ y", "x 🏳️‍🌈 y z", "x 🏳️ y z", []),
]  # fmt: skip

LISTS: list[Example] = [
    ("L1", [1, 2], [7, 2], [9, 2], [7, 2], [("pick", 1, 7, 9, 7)]),
    ("L2", [1, 2], [7, 8], [1, 9], [7, 8], [("pick", 2, 8, 9, 8)]),
    ("L3", ["a"], ["a", "b", "c"], ["a", "b", "d"], ["a", "b", "d", "c"], []),
    ("L4", ["a"], [2, "a"], [1], [2, 1], []),
    ("L5", ["A", "B", "C"], ["B", "A", "C"], ["A", "C", "B"], ["A", "C", "B"], [("move-move", "A", "A", "A", "A")]),
    ("L6", [0, 0, 0, 0], [0, 5, 0, 0], [0, 0, 0, 5], [0, 5, 0, 5], []),
    ("L7", [0, 0, 0], [0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 1], []),
    ("L8", [1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0], []),
    ("L9", [[1, 3, 5], [2, 4, 6]], [[1, 5], [2, 4]], [[1, 5], [4, 6]], [[1, 5], [2, 4]], [("pick", [2, 4, 6], [2, 4], [4, 6], [2, 4])]),
    ("L10", ["a", "a"], ["a"], ["a", "a", "b"], ["a", "b"], []),
    ("L11", [1, 2], [7, 8], [9, 1], [9, 7, 8], []),
    ("L12", ["ok"], ["ok", "ok"], ["ok", "ok"], ["ok", "ok"], []),
    ("L13", [1, 1, 2], [1, 1, 3], [1, 1], [1, 1, 3], [("delete-edit", 2, 3, None, 3)]),
    ("L14", [0, 1, 2], [1, 0, 2], [1, 2, 0], [1, 0, 2], [("move-move", 0, 0, 0, 0)]),
    ("L15", [5, 5], [5, 5, 1, 2], [5, 5, 1, 3], [5, 5, 1, 3, 1, 2], []),
    ("L16", [12, 7, 9, 4], [12, 7, 9, 15], [15, 7, 9, 4], [15, 7, 9, 15], []),
    ("L17", [4, 0, 1], [4, 8, 5], [8, 0, 6], [8, 8, 5], [("pick", 1, 5, 6, 5)]),
    ("L18", [12, 7, 9, 4], [15, 12, 9, 4], [12, 7, 9, 15], [15, 12, 9, 15], []),
]  # fmt: skip

LINE, OLDER = {"as": "text", "unit": "line"}, {"as": "text", "pick": "older"}

#: Name, rule, base, newer, older.
READINGS: list[tuple[str, Any, Any, Any, Any]] = [
    ("2.1: other scalars end no line", "text", "a\x0bb\x85c\n", "A\x0bb\x85c\n", "a\x0bb\x85C\n"),
    ("2.2: a base without line ends", "text", "a", "a\n", "a\r\nb\r\n"),
    ("2.2: the older side's line ends are picked", OLDER, "a\nb\n", "a\r\nb\r\n", "a\rb\rc\r"),
    ("2.2: an overlap where line ends were converted", "text", "one\ntwo\nthree\n", "one\r\nzwei\r\nthree\r\n", "one\nTWO\nthree\n"),
    ("2.2: texts that mix line ends, as they stand", "text", "a\r\nb\n", "a\r\nc\n", "a\nb\n"),
    ("2.3: nobody has the last end", "text", "a\nb", "a\nb c", "A\nb"),
    ("2.3: a last line without an end, in texts that mix line ends", "text", "a\r\nb", "a\r\nb\r\nc\n", "x\r\nb"),
    ("2.3: an empty side has no say", "text", "a\nb\n", "", "a\nb\nc"),
    ("2.4: a sign is no word", "text", "---\n", "---\n***\n", "---\n+++\n"),
    ("2.5: a mark that does not stand behind one of the four ranges", "text", "a \u0301b c", "a \u0301b d", "a \u0301x c"),
    ("2.5: a mark behind one of the four ranges", "text", "\u304b\u3099 x", "\u304b x", "\u304b\u3099 y"),
    ("3: as many edits as are looked for", LINE, "a\nb\n" * 512, "a\nc\n" * 512, "a\nb\n" * 512 + "d\n"),
    ("3: one edit more than are looked for", LINE, "a\nb\n" * 513, "a\nc\n" * 513, "a\nb\n" * 513 + "d\n"),
    ("4.2: a line that both sides have weighs twice", "text", "a b\n", "a c\na b d\n", "a c\nq\n"),
    ("4.2: half of the base's words and a third of the side's", "text", "a b\n", "a c d\n", "a b x y z u\n"),
    ("4.2: less than a third of the side's words", "text", "a\n", "a c d e\n", "A a\n"),
    ("4.4: what both wrote before lines that another edit keeps", "text", "s\nt\n", "p\ns\nT u v\n", "p\nq\n"),
    ("4.4: the same, of the other roles", "text", "s\nt\n", "p\nq\n", "p\ns\nT u v\n"),
    ("4.4: an insertion without a word is written twice", "text", "a\ns\n", "a\n--\ns\n", "a\n--\nq\n"),
    ("4.5: half of the lines is not more than half", "text", "", "a\n\nb\n", "a\n\nc\n"),
    ("4.5: lines in another order", "text", "", "one\ntwo\nthree\n", "two\none\nthree\n"),
    ("4.6: lines without a word behind each hunk", "text", "a\nb\n\nc\n\nd\n", "a\nd\n", "a\nb 2\n\nc 2\n\nd\n"),
    ("4.6: both only remove", "text", "a\nb\nc\nd\ne\n", "a\nd\ne\n", "a\nb\ne\n"),
    ("4.7: shared lines at both ends, one side has no more", "text", "o\np\nq\n", "a\nc\n", "a\nd\nc\n"),
    ("4.7: shared lines at both ends, and the older side stands", OLDER, "o\np\nq\n", "a\nb\nc\n", "a\nd\nc\n"),
    ("4.7: no more shared lines than the base has", "text", "o\n", "a\nb\nc\n", "a\nd\nc\n"),
    ("5: by line nothing is mixed", LINE, "a b c\n", "A b c\n", "a b C\n"),
    ("5: the end of a line by itself", LINE, "a\nb\nc\r\n", "a\r\nb\nc\r\n", "a 2\nb\nc\r\n"),
    ("5: both ends changed, each otherwise", "text", "a\nb\nc\r\n", "a\r\nb\nc\r\n", "a 2\rb\nc\r\n"),
    ("5: the older's line stands", OLDER, "The cat.", "The dog.", "The fox."),
    ("5 a: one inserts inside what the other replaced", "text", "a b c d", "a b x c d", "a q d"),
    ("5 b: an insertion touches a removal", "text", "a b c", "a b", "a b x c"),
    ("5 c: one insertion ends with the other", "text", "a b", "a x b", "a y x b"),
    ("5 c: white space on one side only", "text", "\u6211\u8336", "\u6211x \u8336", "\u6211y\u8336"),
    ("5 d: what both replaced comes side by side", "text", "\u6211\u8336 q", "\u4f60\u8336 q", "\u6211\u6c34 q"),
    ("5 d: each removes one of two tokens", "text", "a\u6211\u559cb", "a\u559cb", "a\u6211b"),
    ("5 d: what one side removed is side by side there", "text", "\u6211\u5f88\u559c\u6b22\u8336", "\u6211\u559c\u6b22\u8336",
     "\u6211\u5f88\u559c\u6b22\u7eff\u8336"),
    ("5: an insertion that the touching replacement begins with", "text", "a b c", "a x b c", "a x q c"),
    ("6: told without the last end", "text", "a\nThe cat", "a\nThe dog", "a\nThe fox"),
    ("6: told with the last end because a part is a blank line", "text", "a\n\n", "a\nb", "a\nc"),
    ("8.1 a: an element that stays elsewhere", "auto", [0, {"a": 1}], [{"a": 1}, {"b": 2}], [{"c": 3}, {"d": 4}]),
    ("8.1 b: the same edit at another place", "auto", [1, 2], [7, 8], [8, 9]),
    ("8.1 c: of lists with keys", {"as": "list", "key": ["/id"]}, [{"id": 1}], [{"id": 2}, {"id": 1}], [{"id": 3}]),
    ("8.1 d: of lists with keys", {"as": "list", "key": ["/id"]}, [{"id": 1}, {"id": 2}, {"id": 3}], [{"id": 2}, {"id": 1}, {"id": 3}],
     [{"id": 1}, {"id": 3}, {"id": 2}]),
    ("8.1: rows that only one side changed", "auto", [[1, 3], [2, 4]], [[1, 5], [2, 4]], [[1, 3], [2, 6]]),
    ("8.1: objects without keys go on by member", "auto", [{"a": 1, "b": 1}], [{"a": 2, "b": 1}], [{"a": 1, "b": 2}]),
    ("8.2: equal numbers that are written otherwise", "auto", "[1,1.0]", "[1,7]", "[8,1.0]"),
    ("8.2: more elements are replaced than the script has edits", "auto", [0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1, 2]),
    ("8.2: hunks of as many elements", "auto", [5, 5, 1, 2, 6], [5, 5, 7, 8, 6, 9], [5, 5, 1, 3, 6]),
    ("8.2: new elements of which one side has all", "auto", [5, 5], [5, 5, 1], [5, 5, 2, 1]),
    ("8.2: rows of a matrix", "auto", [[0, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]),
]  # fmt: skip

#: Name, the merged text, the offset and length of the part in it, the choice, and the present text.
CHOICES: list[tuple[str, str, int, int, str, str]] = [
    ("in the same text", "a\nR\nb\n", 2, 2, "S\n", "a\nR\nb\n"),
    ("an empty part takes the lines away", "a\nR\nb\n", 2, 2, "", "a\nR\nb\n"),
    ("lines beside it were added since", "a\nR\nb\n", 2, 2, "S\nT\n", "new\na\nnew\nR\nb 2\n"),
    ("it was edited since", "a\nR\nb\n", 2, 2, "S\n", "a\nR 2\nb\n"),
    ("it is there twice", "a\nR\nb\n", 2, 2, "S\n", "a\nR\nq\nR\nb\n"),
    ("it is there twice, once beside kept lines", "a\nR\nb\n", 2, 2, "S\n", "R\na\nR\nb\n"),
    ("it is a part of a line", "a\nR S\nb\n", 2, 1, "T", "a\nR S\nb\n"),
    ("told without its end, and lines were added since", "a\nR", 2, 1, "S", "a\nR\nb"),
    ("told with its end, and the last end was taken off since", "a\nR\n", 2, 2, "S\n", "a\nR"),
    ("line ends were changed since", "a\nR\nb\n", 2, 2, "S\nT\n", "a\r\nR\r\nb\r\n"),
]  # fmt: skip


def encoded(value: Any) -> bytes:
    """Returns the bytes of a value."""
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def decoded(data: bytes, rule: Any) -> Any:
    """Returns the value of bytes."""
    return data.decode() if is_text(rule) else json.loads(data)


def is_text(rule: Any) -> bool:
    """Returns whether values are texts as a whole."""
    return rule == "text" or isinstance(rule, dict) and rule.get("as") == "text"


def vector(name: str, rule: Any, o: Any, x: Any, y: Any) -> dict[str, Any]:
    """Returns a case with the model's result."""
    rules = r.parse_schema(json.dumps({"merge": 1, "ids": {"": {"": rule}}}).encode()).rules("a")
    merged = m.merge_values(encoded(o), encoded(x), encoded(y), rules)
    assert merged.data is not None
    records = []
    for record in merged.records:
        members = json.loads(j.canonical(record.node()))
        records.append({key: members[key] for key in ("kind", "o", "x", "y", "result") if key in members})
    return {"name": name, "rule": rule, "o": o, "x": x, "y": y, "result": decoded(merged.data, rule), "records": records}


def is_as_told(found: dict[str, Any], example: Example) -> bool:
    """Returns whether a vector has the result of the specification."""
    *_, result, records = example
    told = [tuple(record.get(key) for key in ("kind", "o", "x", "y", "result")) for record in found["records"]]
    are_same = len(told) == len(records) and all(one[: len(other)] == other for one, other in zip(told, records))
    return bool(found["result"] == result) and are_same


def vectors() -> dict[str, list[dict[str, Any]]]:
    """Returns the contents of the file."""
    examples = []
    for rule, some in (("text", TEXTS), ("auto", LISTS)):
        for example in some:
            name, o, x, y, *_ = example
            found = vector(name, rule, o, x, y)
            assert is_as_told(found, example), found
            examples.append(found)
    choices = [
        {"name": name, "made": made, "start": start, "count": count, "chosen": chosen, "now": now,
         "result": choose(made, start, count, chosen, now)}
        for name, made, start, count, chosen, now in CHOICES
    ]  # fmt: skip
    return {"examples": examples, "readings": [vector(*case) for case in READINGS], "choose": choices}


def text() -> str:
    """Returns the file's text."""
    sections = []
    for name, found in vectors().items():
        assert len({case["name"] for case in found}) == len(found)
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in found)
        sections.append(f'"{name}": [\n{lines}\n]')
    return '{"format": 1, ' + ", ".join(sections) + "}\n"


if __name__ == "__main__":
    path = HERE / "texts.json"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text())
    path.write_text(text())
