"""Input that cannot be merged inside values, case by case: values, rules, and rules from other devices.

Each gives a result, or an error that names the place. Other cases are in the tests that test_documents_tables.py names.
"""

from __future__ import annotations

import json
from typing import Any

import llvs
import pytest

#: No mergeable JSON, with an object that has a member `a`.
BROKEN: dict[str, bytes] = {
    "no JSON": b"not json",
    "nothing": b"",
    "cut short": b'{"a":[1,2',
    "cut within a scalar": b'{"a":"\xc3',
    "no UTF-8": b'{"a":"\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"a":1}',
    "a name twice": b'{"a":1,"a":2}',
    "a name twice, escaped": b'{"a":1,"\\u0061":2}',
    "a lone surrogate": b'{"a":"\\ud800"}',
    "surrogates in the wrong order": b'{"a":"\\udc00\\ud800"}',
    "depth 129": b'{"a":' + b"[" * 128 + b"]" * 128 + b"}",
    "a number of 401 digits": b'{"a":' + b"1" * 401 + b"}",
    "an exponent of 10,000": b'{"a":1e10000}',
    "an exponent of -10,000": b'{"a":1E-10000}',
    "an exponent of many digits": b'{"a":1e' + b"9" * 400 + b"}",
    "a number of 10,000 places": b'{"a":123e9999}',
    "a number that begins 10,000 places behind the point": b'{"a":0.1e-9999}',
    "two texts": b'{"a":1}{"a":1}',
    "a scalar": b"1",
    "a comment": b'{"a":1}//',
}
#: At the limits.
WHOLE: dict[str, bytes] = {
    "depth 128": b'{"a":' + b"[" * 127 + b"]" * 127 + b"}",
    "a number of 400 digits": b'{"a":' + b"1" * 400 + b"}",
    "an exponent of 9,999": b'{"a":1e9999}',
    "a number of 400 digits, and zeros": b'{"a":' + b"1" * 400 + b"0" * 9 + b"}",
    "zero with an exponent of 9,999": b'{"a":0.00e9999}',
    "a pair of surrogates": b'{"a":"\\ud83d\\ude00"}',
}
RULES: list[Any] = ["auto", {"/a": "counter"}, {"/a": "set"}, {"/a": "text"}, {"schema": {"at": "/a", "renames": []}}]


@pytest.mark.parametrize("rules", RULES, ids=json.dumps)
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_values_that_cannot_be_merged_inside(broken: bytes, rules: Any) -> None:
    """If a side cannot be merged, the newer value wins as a whole, with a record. If the base cannot, it counts as absent."""
    mine, base = b'{"b":1}', b'{"b":0}'
    for x, y in ((broken, mine), (mine, broken)):
        merged = llvs.merge.merge_values(base, x, y, rules)
        assert merged.data == x and [record.kind.value for record in merged.records] == ["not-json"]
        assert merged.records[0].path == ()
    assert llvs.merge.merge_values(broken, mine, b'{"c":1}', rules).data == b'{"b":1,"c":1}'
    # The side that changed nothing loses nevertheless.
    assert llvs.merge.merge_values(broken, broken, mine, rules).data == mine
    assert llvs.merge.merge_values(base, base, broken, rules).data == broken


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_values_at_the_limits_are_merged_inside(whole: bytes) -> None:
    merged = llvs.merge.merge_values(b"{}", whole, b'{"b":1}')
    assert merged.data is not None and merged.data.endswith(b',"b":1}') and not merged.records


def test_a_value_that_is_too_large() -> None:
    """64 MiB are merged inside, and one byte more are not."""
    spaces = 64 << 20
    whole = b'{"a":1' + b" " * (spaces - 7) + b"}"
    assert llvs.merge.merge_values(b"{}", whole, b'{"b":1}').data == b'{"a":1,"b":1}'
    larger = whole + b" "
    merged = llvs.merge.merge_values(b"{}", larger, b'{"b":1}')
    assert merged.data == larger and [record.kind.value for record in merged.records] == ["not-json"]


REFUSED: list[tuple[str, str]] = [
    ("no rules", ""),
    ('{"merge":1,"ids":{"":{"/a":"coun', ""),
    ('{"merge":1,"merge":1}', ""),
    ('{"merge":1,"ids":{"":{"as":"auto","fold":1}}}', "/ids//fold"),
    ('{"merge":1,"ids":{"":{"/a":{"as":"set","from":1}}}}', "/ids//~1a/from"),
    ('{"merge":1,"ids":{"":{"/a":"best"}}}', "/ids//~1a"),
    # Contradictions.
    ('{"merge":1,"ids":{"":{"/a":{"as":"counter","min":2,"max":1}}}}', "/ids//~1a/min"),
    ('{"merge":1,"ids":{"":{"/*a":"auto","/~2a":"set"}}}', "/ids//~1~02a"),
    ('{"merge":1,"ids":{"":{"/a":"bytes"}}}', "/ids//~1a"),
    ('{"merge":1,"ids":{"":{"/a":{"as":"list","key":' + json.dumps(["/x"] * 17) + "}}}}", "/ids//~1a/key/16"),
    # Forms.
    ('{"merge":1,"ids":{"":{"schema":7}}}', "/ids//schema"),
    ('{"merge":1,"ids":{"":{"schema":{}}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"v"}}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":""}}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"' + "/a" * 17 + '"}}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v"},"/v":"counter"}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v"},"/v":{"pick":"max","delete":"delete"}}}}', "/ids//schema/at"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","lens":1}}}}', "/ids//schema/lens"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":{}}}}}', "/ids//schema/renames"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":[7]}}}}', "/ids//schema/renames/0"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":[{"to":2,"from":"/a"}]}}}}', "/ids//schema/renames/0"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":[{"to":"2","from":"/a","path":"/b"}]}}}}', "/ids//schema/renames/0/to"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":[{"to":2,"from":"/a","path":"/a/b"}]}}}}', "/ids//schema/renames/0/path"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":[{"to":2,"from":"/v","path":"/b"}]}}}}', "/ids//schema/renames/0/from"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v/w","renames":[{"to":2,"from":"/a","path":"/v"}]}}}}', "/ids//schema/renames/0/path"),
    ('{"merge":1,"ids":{"":{"schema":{"at":"/v","renames":'
        + json.dumps([{"to": n, "from": "/a", "path": "/b"} for n in range(65)]) + "}}}}", "/ids//schema/renames/64"),
    ('{"merge":1,"ids":{"":{"as":"auto","schema":{"at":"/v"}}}}', "/ids//schema"),
]


@pytest.mark.parametrize("text,where", REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_rules_that_are_refused(text: str, where: str) -> None:
    """Every call with rules refuses them, and names the wrong place. Nothing is stored."""
    with llvs.Store(storage="memory") as store:
        base = store.make_version(insert={"a": b"0"})
        one, other = (store.make_version(base, update={"a": data}) for data in (b"1", b"2"))
        calls = [lambda: llvs.merge.check_schema(text.encode()), lambda: llvs.merge.merge_values(b"[1]", b"[2]", b"[3]", text.encode()),
            lambda: store.merge(one, other, llvs.Rules(text.encode()))]
        for call in calls:
            with pytest.raises(llvs.errors.InvalidArgumentError) as raised:
                call()
            assert (raised.value.path or "") == where
        assert len(store.heads()) == 2
    with pytest.raises(llvs.errors.UnsupportedError) as unknown:
        llvs.merge.check_schema(b'{"merge":2}')
    assert unknown.value.path == "/merge"


@pytest.mark.parametrize("text", [text for text, _ in REFUSED[::4]])
def test_rules_that_came_from_elsewhere(text: str) -> None:
    """Such rules do not count. The newest valid ones before them do, with a record, and all heads are merged."""
    rules = b'{"merge":1,"ids":{"":{"/n":"counter"}}}'
    with llvs.Store(storage="memory") as theirs, llvs.Store(storage="memory") as ours:
        base = theirs.make_version(insert={"__llvs_schema": rules, "a": b'{"n":0}'})
        here = llvs.Exchange(ours, "memory:rules-from-elsewhere")
        with llvs.Exchange(theirs, "memory:rules-from-elsewhere") as there, here:
            there.send()
            here.retrieve()
            one = ours.make_version(base, update={"a": b'{"n":1}'})
            # Written as plain bytes, past all that checks rules.
            theirs.make_version(base, update={"__llvs_schema": text.encode(), "a": b'{"n":5}'})
            there.send()
            here.retrieve()
            merged = ours.merge_heads(one)
            assert merged is not None
            assert ours.at(merged)["a"] == b'{"n":6}'
            assert [record.id for record in ours.explain(merged).records] == ["__llvs_schema"]


@pytest.mark.parametrize("space", ["", " " * 20], ids=["written as it is to be", "with spaces"])
@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_a_merged_value_has_a_limit_to_the_byte(excess: int, space: str) -> None:
    """The limit is eight times the inputs and 64 KiB. If a rule's absent value is picked, it may be written very often.

    If the result is longer, a side wins.
    """
    names = [f"k{i:03}" for i in range(150)]

    def given(size: int, padding: int) -> tuple[bytes, list[bytes], bytes]:
        def spelled(value: object) -> bytes:
            return json.dumps(value, separators=(",", ":")).encode()

        stand, rest = "s" * size, {"p": "p" * padding}
        rules = spelled({"merge": 1, "ids": {"": {"/*/a": {"absent": stand}}}})
        sides = [{**{name: members for name in names}, **rest} for members in ({"a": "1"}, {}, {"a": "2", "b": 0})]
        result = spelled({**{name: {"a": stand, "b": 0} for name in names}, **rest})
        return rules, [spelled(side)[:-1] + space.encode() + b"}" for side in sides], result

    def over(size: int, padding: int) -> int:
        _, texts, result = given(size, padding)
        return len(result) - 8 * sum(map(len, texts)) - (1 << 16)

    # Each byte of the absent value occurs once for each name. A byte in all three inputs adds 24 to the limit, and itself to the result.
    start, padding = over(0, 0), 0
    while (excess - start + 23 * padding) % len(names):
        padding += 1
    size = (excess - start + 23 * padding) // len(names)
    assert over(size, padding) == excess
    rules, texts, result = given(size, padding)
    merged = llvs.merge.merge_values(*texts, rules)
    kinds = [llvs.merge.ConflictKind.LIMIT] if excess > 0 else [llvs.merge.ConflictKind.PICK] * len(names)
    assert [record.kind for record in merged.records] == kinds
    assert merged.data == (texts[1] if excess > 0 else result)
