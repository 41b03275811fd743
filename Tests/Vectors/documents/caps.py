"""Writes caps.json: the results of merging inside values at its caps, by the model in Tests/Python/documents.

    caps.py          rewrites the file
    caps.py --check  checks that the model gives it (the two cases of 2^26 steps take the model some minutes)

The values are large, so they are described: a text is a list of strings and of repetitions. `{"times": n, "of": [...]}` is n times its
content; in strings directly inside, each `#` is the number of the repetition, from 0 on. Results are given as SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

from documents import merge as m  # noqa: E402
from documents import rules as r  # noqa: E402

Text = list[Any]


def times(count: int, *of: Any) -> dict[str, Any]:
    """A repetition."""
    return {"times": count, "of": list(of)}


def written(text: Optional[Text]) -> Optional[str]:
    """Returns the text that is described."""
    return None if text is None else "".join(_parts(text, None))


def _parts(text: Text, number: Optional[int]) -> Iterator[str]:
    for part in text:
        if isinstance(part, str):
            yield part if number is None else part.replace("#", str(number))
        else:
            for i in range(part["times"]):
                yield from _parts(part["of"], i)


def gaps(count: int, word: str, *last: Any) -> Text:
    """Returns ranges of 511 pairs of lines without a unique line: to replace each second line takes 1,022 edits, 523,776 steps."""
    return [times(count, "n#\n", times(511, f"a\n{word}\n")), *last]


def deep(value: int, padding: int = 0) -> Text:
    """Returns nested objects, each with members that differ from those of the other sides."""
    extra = ['"y":"', times(padding, "q"), '",'] if padding else []
    return ['{"', times(1_000, "p"), '":{', times(1_093, f'"m#":{value},'), *extra, '"z":0}}']


def members(value: str, padding: int) -> Text:
    """An object of objects."""
    return ["{", times(150, f'"m#":{value},'), '"p":"', times(padding, "p"), '"}']


def standing(size: int, padding: int) -> tuple[Any, Text, Text, Text]:
    """Returns rules by which something long is written for each of many objects, and base, newer and older."""
    return {"/*/a": {"absent": "s" * size}}, members('{"a":"1"}', padding), members("{}", padding), members('{"a":"2","b":0}', padding)


#: name, rules for the value, base, newer, older, whether the model takes minutes for it.
CASES: list[tuple[str, Any, Text, Text, Text, bool]] = [
    ("1,024 edits between two anchors are compared", {"as": "text", "unit": "line"}, [times(512, "a\nx\n")], [times(512, "a\ny\n")],
     ["z\n", times(511, "a\nx\n"), "b\nx\n"], False),
    ("1,025 edits are one replacement", {"as": "text", "unit": "line"}, [times(512, "a\nx\n")], [times(512, "a\ny\n"), "y\n"],
     ["z\n", times(511, "a\nx\n"), "b\nx\n"], False),
    # 128 gaps take 67,043,328 of 67,108,864 steps.
    ("2^26 steps: as many as there are", "text", gaps(128, "x", "n\na\nx\na\nx\nn\n"),
     gaps(128, "y", "n\na\ny\na\ny\nn\n"), gaps(128, "x", "n\na\nx\nb\nx\nn\n"), True),
    ("2^26 steps: one gap more is one replacement", "text", gaps(129, "x", "a\nx\n"), gaps(129, "y", "a\ny\n"),
     gaps(129, "x", "b\nx\n"), True),
    # To the byte: 2 less than 4 times the inputs and 1 MiB, and 2 more.
    ("records of 4 times the inputs and 1 MiB are told", "auto", deep(0), deep(1, 186), deep(2), False),
    ("records of more than that are one", "auto", deep(0), deep(1, 185), deep(2), False),
    # To the byte: 8 times the inputs and 64 KiB, and 1 more.
    ("a result of 8 times the inputs and 64 KiB stands", *standing(810, 70), False),
    ("a longer one gives way to the newer side", *standing(812, 83), False),
]  # fmt: skip


def vector(name: str, rules: Any, base: Text, newer: Text, older: Text, is_slow: bool) -> dict[str, Any]:
    """Returns a vector with the model's result."""
    schema = json.dumps({"merge": 1, "ids": {"": "bytes", "a": rules}}, separators=(",", ":"))
    texts = [(written(text) or "").encode() for text in (base, newer, older)]
    merged = m.merge_values(*texts, r.parse_schema(schema.encode()).rules("a"))
    return {
        "name": name, "schema": schema, "base": base, "newer": newer, "older": older, "isSlow": is_slow,
        "sizes": [len(text) for text in texts], "result": hashlib.sha256(merged.data or b"").hexdigest(),
        "records": sorted({record.kind for record in merged.records}),
        "digest": m.conflicts_digest([("a", record) for record in merged.records]),
    }  # fmt: skip


def text(before: dict[str, Any] = {}) -> str:
    """Returns the file's text. Slow vectors are copied from the given text, by name, if their descriptions are equal there."""
    vectors = []
    for case in CASES:
        known = before.get(case[0]) if case[5] else None
        is_same = known is not None and all(known[name] == part for name, part in zip(("base", "newer", "older"), case[2:5]))
        vectors.append(known if known is not None and is_same else vector(*case))
    return '{"format": 1, "vectors": [\n' + ",\n".join(json.dumps(one, ensure_ascii=False) for one in vectors) + "\n]}\n"


if __name__ == "__main__":
    path = HERE / "caps.json"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text())
    path.write_text(text())
