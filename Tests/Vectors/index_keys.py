"""Makes index-keys.json with the model in Tests/Python/keys; docs/index-keys.md describes it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Python")]

import layout  # noqa: E402
from documents import json_model as j  # noqa: E402
from keys import definition as d  # noqa: E402
from keys import encoding as e  # noqa: E402
from keys.search import Index, Question  # noqa: E402


def parts(text: str) -> e.Tuple:
    """Returns the tuple of a JSON array, in which {} stands for a missing part."""
    array = j.parse(text.encode())
    assert isinstance(array, j.Array)
    return tuple(None if isinstance(item, j.Object) else item for item in array.items)  # type: ignore[misc]


ORDERS: list[tuple[str, bool, list[str]]] = [
    ("every type", False, ["[null]", "[false]", "[true]", "[-1]", "[0]", "[1]", '[""]', '["a"]']),
    ("numbers", False, [
        "[-9e9999]", "[-1e400]", "[-100]", "[-99.5]", "[-99]", "[-10]", "[-1.01]", "[-1]", "[-0.99]", "[-1e-9999]", "[0]", "[1e-9999]",
        "[0.05]",
        "[0.5]", "[0.505]", "[0.51]", "[1]", "[1.5]", "[2]", "[9]", "[10]", "[11]", "[99]", "[100]", "[9007199254740992]",
        "[9007199254740993]",
        "[9007199254740993.5]", "[1e400]", "[" + "9" * 400 + "e9600]",
    ]),
    ("strings by bytes", False, [
        '[""]', r'["\u0000"]', r'["\u0000\u0000"]', r'["\u0000\u0001"]', r'["\u0001"]', r'["\u0001\u0000"]', r'["\u0002"]', '["A"]',
        '["B"]',
        '["a"]', r'["a\u0000"]', r'["a\u0001"]', '["aa"]', '["b"]', '["e\u0301"]', '["z"]', '["\u00e9"]', '["\uffff"]', '["\U0001f600"]',
    ]),
    ("strings folded", True, [
        '[""]', '["\u0301"]', '["A"]', '["a"]', '["\u00c1"]', '["aa"]', '["Ab"]', '["B"]', '["b"]', '["STRASSE"]', '["Stra\u00dfe"]',
        '["\u00f8"]',
    ]),
    ("several parts", False, [
        '["a",{}]', '["a",null]', '["a",1]', '["a",""]', '["a","b"]', r'["a\u0000",{}]', '["aa",{}]', '["b",{}]',
    ]),
    ("several parts folded: spellings come last", True, [
        '["Ann",1]', '["ann",1]', '["ANN",2]', '["ANN","b"]', '["ann","B"]', '["ann","b"]', '["Bob",{}]',
    ]),
    ("about the limit", False, [
        '["' + "x" * 1_020 + '"]', '["' + "x" * 1_021 + '"]', '["' + "x" * 1_022 + '"]', '["' + "x" * 1_023 + '"]',
        '["' + "x" * 1_021 + 'y"]',
    ]),
]
EQUAL: list[list[str]] = [
    ["[10]", "[1e1]", "[10.0]", "[0.1E2]", "[1000e-2]"],
    ["[0]", "[-0]", "[0.00]", "[0e99]"],
    ['["/"]', r'["\/"]', r'["\u002f"]'],
]  # fmt: skip
NO_KEYS: list[tuple[str, int, bool, str]] = [
    ("nothing", 1, False, ""), ("no end", 1, False, "08 61 00"), ("no end of the string", 1, False, "08 61"), ("an unknown type", 1,
    False, "09 00"),
    ("the first part is missing", 1, False, "01 00"), ("a part too few", 2, False, "02 00"), ("an escape of nothing", 1, False,
    "08 01 03 00 00"),
    ("not UTF-8", 1, False, "08 FF 00 00"), ("digits that begin with 0", 1, False, "07 27 10 01 0B 00 00"), ("no digits", 1, False,
    "07 27 10 00 00"),
    ("digits that end with 00", 1, False, "07 27 10 0B 01 00 00"), ("a pair above 99", 1, False, "07 27 10 65 00 00"),
    ("an exponent of 10000", 1, False, "07 4E 20 0B 00 00"), ("a folding that is none", 1, True, "08 41 00 41 00 00"),
    ("a folding of another string", 1, True, "08 61 00 62 00 00"),
]  # fmt: skip
DEFINITIONS: list[tuple[str, str]] = [
    ("one part", '{"prefix":"v","on":["/a"]}'),
    ("two parts", '{"prefix":"v","on":["/a","/b"]}'),
    ("two parts folded", '{"prefix":"v","on":["/a","/b"],"text":"fold"}'),
    ("each element", '{"prefix":"v","on":["/t/*"]}'),
    ("each element, behind", '{"prefix":"v","on":["/a","/t/*"]}'),
    ("one star for two parts", '{"prefix":"v","on":["/p/*/k","/p/*/n"]}'),
    ("two stars", '{"prefix":"v","on":["/p/*/k","/t/*"]}'),
    ("a condition", '{"prefix":"v","on":["/a"],"where":{"/done":false}}'),
    ("something present", '{"prefix":"v","on":["/a"],"where":{"/b":{"present":true}}}'),
    ("nothing present", '{"prefix":"v","on":["/a"],"where":{"/b":{"present":false}}}'),
    ("a name that is a star, one with a slash", '{"prefix":"v","on":["/~2","/x~1y"]}'),
    ("the whole value", '{"prefix":"v","on":[""]}'),
    ("all ids", '{"prefix":"","on":["/a"]}'),
    ("reserved ids", '{"prefix":"__llvs_","on":["/a"]}'),
]
VALUES: list[tuple[str, str]] = [
    ("v1", '{"a":"Smith","b":"Ann","t":["x","y","x"],"done":false}'),
    ("v2", '{"a":"smith","b":"Bob","t":[],"done":true}'),
    ("v3", '{"a":10,"t":[1,1.0,{},[],null],"done":false}'),
    ("v4", '{"b":1,"p":[{"k":"home","n":1},{"k":"work","n":2},{"n":3}],"t":["x"]}'),
    ("v5", '{"a":{},"b":null,"p":{"u":{"k":"home"},"v":5}}'),
    ("v6", '{"a":"Sm\u00edth","b":{},"*":"star","x/y":"slash"}'),
    ("v7", "12"),
    ("v8", "no JSON"),
    ("v9", '{"a":1,"a":2}'),
    ("w", '{"a":"other"}'),
    ("__llvs_schema", '{"a":"reserved"}'),
    ("v-long", '{"a":"' + "x" * 1_100 + '"}'),
    ("v-many", '{"p":[{"k":"' + "x" * 1_000 + '"}],"t":[' + ",".join(map(str, range(150))) + "]}"),
]
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("one part", {}), ("one part", {"equal": '["Smith"]'}), ("one part", {"begin": "Sm"}), ("one part", {"low": "[10]"}),
    ("one part", {"high": "[10]"}), ("one part", {"high": "[10]", "high_open": True}), ("one part", {"low": "[10]", "low_open": True,
    "high": '["a"]'}),
    ("one part", {"equal": '["' + "x" * 1_100 + '"]'}), ("one part", {"begin": "x" * 1_099}), ("one part",
    {"equal": '["' + "x" * 1_099 + '"]'}),
    ("two parts", {"equal": '["Smith"]'}), ("two parts", {"equal": '["Smith","Ann"]'}), ("two parts", {"equal": '["Smith"]', "begin": "A"}),
    ("two parts", {"equal": "[10,{}]"}), ("two parts folded", {"equal": '["SMITH"]'}), ("two parts folded", {"begin": "SM\u00cd"}),
    ("two parts folded", {"equal": '["smith"]', "low": '["b"]'}), ("each element", {"equal": "[1]"}), ("each element", {"begin": ""}),
]  # fmt: skip


def question(asked: dict[str, Any]) -> Question:
    tuples = {name: parts(asked[name]) for name in ("equal", "low", "high") if name in asked}
    return Question(begin=asked.get("begin"), low_open=asked.get("low_open", False), high_open=asked.get("high_open", False), **tuples)


def vectors() -> dict[str, Any]:
    """Returns the contents of the file."""
    named = {name: d.definition(j.parse(text.encode())) for name, text in DEFINITIONS}
    values = {value_id.encode(): data.encode() for value_id, data in VALUES}

    def keys(name: str) -> list[dict[str, Any]]:
        found = named[name]
        rows = []
        for value_id, data in values.items():
            why: Optional[str] = found.why_not(value_id, data)
            rows.append({"id": value_id.decode(), "keys": [key.hex() for key in found.keys(value_id, data)],
                **({"why": why} if why else {})})
        return rows

    answers = []
    for name, asked in QUESTIONS:
        found = Index(named[name], values).find(question(asked))
        answers.append({"definition": name, **asked, "found": [{"id": entry.id.decode(), "key": entry.key.hex()} for entry in found]})
    return {
        "format": 1,
        "orders": [
            {"name": name, "fold": folds, "tuples": [{"tuple": text, "key": e.encoded(parts(text), folds).hex()} for text in texts]}
            for name, folds, texts in ORDERS
        ],
        "equal": [{"tuples": texts, "key": e.encoded(parts(texts[0]), False).hex()} for texts in EQUAL],
        "noKeys": [{"name": name, "parts": count, "fold": folds, "key": key.replace(" ", "").lower()} for name, count, folds,
        key in NO_KEYS],
        "values": [{"id": value_id, "data": data} for value_id, data in VALUES],
        "definitions": [
            {"name": name, "definition": text, "digest": named[name].digest.hex(), "values": keys(name)} for name, text in DEFINITIONS
        ],
        "questions": answers,
    }


if __name__ == "__main__":
    path, text = HERE / "index-keys.json", layout.text(vectors())
    if "--check" in sys.argv:
        assert path.read_text(encoding="ascii") == text, f"{path.name} is not what the model makes"
    else:
        path.write_text(text, encoding="ascii")
