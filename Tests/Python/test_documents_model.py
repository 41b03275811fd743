"""The model of merging inside values (documents/), compared with the specification: frozen vectors, tables, laws."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import pytest
from documents import json_model as j
from documents import merge as m
from documents import rules as r
from documents.sequences import increasing
from documents.versions import Graph, Held
from sampling import sample, seeds


def rule_set(rules: Any) -> r.RuleSet:
    """Rules for any id, as the schema has them under a prefix."""
    return r.parse_schema(json.dumps({"merge": 1, "ids": {"": rules}}).encode()).rules("any")


def merged(o: Any, x: Any, y: Any, rules: Any = "auto") -> m.Merged:
    """Merges JSON texts (str) or values; None is absent."""
    texts = [value if value is None else (value if isinstance(value, str) else json.dumps(value)).encode() for value in (o, x, y)]
    return m.merge_values(*texts, rule_set(rules))


VECTORS = [
    ('{"n":0}', '{"n":1}', '{"n":1}', {"/n": "counter"}, '{"n":2}', []),
    (None, '{"n":105}', '{"n":103}', {"/n": {"as": "counter", "from": 100}}, '{"n":108}', []),
    ('{"n":10}', '{"n":0}', '{"n":12}', {"/n": "counter"}, '{"n":2}', []),
    ('{"a":{"p":1}}', "{}", '{"a":{"p":2}}', "auto", '{"a":{"p":2}}', ["delete-edit"]),
    ('{"a":1}', '{"a":1.0,"b":1}', '{"a":2}', "auto", '{"a":2,"b":1}', []),
    ("{}", '{"a":null}', "{}", "auto", '{"a":null}', []),
    ('{"l":[0,1,2]}', '{"l":[1,0,2]}', '{"l":[1,2,0]}', "auto", '{"l":[1,0,2]}', ["move-move"]),
    ('{"l":[1,2]}', '{"l":[7,2]}', '{"l":[9,2]}', "auto", '{"l":[7,2]}', ["pick"]),
    ('{"l":["a"]}', '{"l":["a","b","c"]}', '{"l":["a","b","d"]}', "auto", '{"l":["a","b","d","c"]}', []),
    (
        '[{"id":1,"t":"a"},{"id":2,"t":"b"}]', '[{"id":2,"t":"b"},{"id":1,"t":"A"}]', '[{"id":1,"t":"a"},{"id":2,"t":"B"},{"id":3}]',
        "auto",
        '[{"id":2,"t":"B"},{"id":3},{"id":1,"t":"A"}]', [],
    ),
    ("The cat sat.", "The cat sat down.", "A cat sat.", "text", "A cat sat down.", []),
    ("The cat.", "The dog.", "The fox.", "text", "The dog.", ["overlap"]),
    (
        "Merging text is hard!", "Merging text is easy!", "With reconcile, merging documents is hard!", "text",
        "With reconcile, merging documents is easy!", [],
    ),
    ("123456", "145236", "124536", "text", "145236", ["overlap"]),
    ('{"a":[1]}', '{"a":{"0":1}}', '{"a":[1,2]}', "auto", '{"a":{"0":1}}', ["type"]),
    # Pitfalls that have an example of their own.
    ('{"p":[1,2,3]}', '{"p":[2,1,3]}', '{"p":[1,3,2]}', "auto", '{"p":[1,3,2]}', ["move-move"]),
    ('{"p":[1,2]}', '{"p":[7,8]}', '{"p":[1,9]}', "auto", '{"p":[7,8]}', ["pick"]),
    ('{"t":["a"]}', '{"t":["b","a"]}', '{"t":["c"]}', {"/t": "set"}, '{"t":["b","c"]}', []),
    (None, '{"title":"A","author":"A"}', '{"title":"B","author":"B","sub":"B"}', "auto", '{"author":"A","sub":"B","title":"A"}',
     ["pick", "pick"]),
    (None, '{"k":1,"a":1}', '{"k":2,"b":2}', {"": {"identity": ["/k"]}}, '{"k":1,"a":1}', ["pick"]),
    ('{"n":"x"}', '{"n":5}', '{"n":6}', {"/n": "counter"}, '{"n":5}', ["type"]),
    ('{"s":3}', '{"s":1}', '{"s":0}', {"/s": {"as": "counter", "min": 0}}, '{"s":-2}', ["bound"]),
    ('{"n":0.3}', '{"n":0.1}', '{"n":0.2}', {"/n": "counter"}, '{"n":0}', []),
    ('{"n":9007199254740993}', '{"n":9007199254740994}', '{"n":9007199254740995}', {"/n": "counter"}, '{"n":9007199254740996}', []),
    ('{"d":1}', "{}", '{"d":2}', {"/d": {"delete": "delete"}}, "{}", ["delete-edit"]),
    ('{"v":1}', '{"v":2}', '{"v":3}', {"/v": {"pick": "max"}}, '{"v":3}', ["pick"]),
    ('{"v":1}', '{"v":2}', '{"v":3}', {"/v": {"pick": "older"}}, '{"v":3}', ["pick"]),
    ('{"r":[1,5]}', '{"r":[2,5]}', '{"r":[1,6]}', {"/r": "tuple"}, '{"r":[2,6]}', []),
    ("{}", '{"s":{"a":1}}', '{"s":{"b":2}}', {"/s": {"absent": {}}}, '{"s":{"a":1,"b":2}}', []),
    ("cat", "dog", "fox", {"as": "text", "pick": "older"}, "fox", ["overlap"]),
    ("a\nb\n", "a\r\nb\r\n", "a\nb\nc\n", "text", "a\r\nb\r\nc\r\n", []),
    ("not json", '{"a":1}', '{"b":1}', "auto", '{"a":1,"b":1}', []),
    ('{"a":1}', "not json", '{"a":2}', "auto", "not json", ["not-json"]),
    ('{"a":1}', '{"a":1,"a":2}', '{"a":2}', "auto", '{"a":1,"a":2}', ["not-json"]),
    ('{"é":1}', '{"é":1,"e\u0301":2}', '{"é":3}', "auto", '{"e\u0301":2,"é":3}', []),
]  # fmt: skip


@pytest.mark.parametrize("o,x,y,rules,expected,records", VECTORS)
def test_vectors(o: Optional[str], x: str, y: str, rules: Any, expected: str, records: Optional[list[str]]) -> None:
    """The frozen vectors of the specification, and its pitfalls."""
    result = merged(o, x, y, rules)
    assert result.data == expected.encode()
    if records is not None:
        assert [record.kind for record in result.records] == records


def test_vectors_are_those_of_the_model() -> None:
    """Tests/Vectors/documents has exactly the model's results."""
    folder = Path(__file__).resolve().parents[1] / "Vectors" / "documents"
    for name in ("generate.py", "histories.py", "model_edits.py"):
        assert subprocess.run([sys.executable, str(folder / name), "--check"], check=False).returncode == 0


ABSENCE = [  # o, x, y, result, record; p is the base, a and b are changed, - is absent
    ("-", "a", "-", "a", None), ("-", "-", "b", "b", None), ("-", "a", "a", "a", None), ("-", "a", "b", "pick", "pick"),
    ("p", "-", "-", "-", None),
    ("p", "-", "p", "-", None), ("p", "p", "-", "-", None), ("p", "a", "p", "a", None), ("p", "p", "b", "b", None),
    ("p", "-", "b", "b", "delete-edit"),
    ("p", "a", "-", "a", "delete-edit"), ("p", "a", "a", "a", None), ("p", "a", "b", "pick", "pick"),
]  # fmt: skip


@pytest.mark.parametrize("o,x,y,expected,kind", ABSENCE)
@pytest.mark.parametrize("delete", ["edit", "delete"])
@pytest.mark.parametrize("place", ["member", "element", "whole"])
def test_absence(o: str, x: str, y: str, expected: str, kind: Optional[str], delete: str, place: str) -> None:
    """Every line of the absence table: for a member, a keyed element, and a whole value, of registers."""
    values = {"p": {"id": 1, "v": 0}, "a": {"id": 1, "v": 1}, "b": {"id": 1, "v": 2}, "-": None}
    rule = {"as": "register", "delete": delete}
    if kind == "delete-edit" and delete == "delete":
        expected = "-"
    wanted = values["a"] if expected == "pick" else values[expected]

    def placed(name: str) -> Any:
        value = values[name]
        if place == "member":
            return {} if value is None else {"m": value}
        if place == "element":
            return [] if value is None else [value]
        return value

    rules = {"member": {"/m": rule}, "element": {"/*": rule}, "whole": {"": rule}}[place]
    result = merged(placed(o), placed(x), placed(y), rules)
    got = None if result.data is None else json.loads(result.data)
    assert got == {"member": {} if wanted is None else {"m": wanted}, "element": [] if wanted is None else [wanted], "whole": wanted}[place]
    assert [record.kind for record in result.records] == ([kind] if kind else [])


@pytest.mark.parametrize("o,x,y", [line[:3] for line in ABSENCE])
def test_absence_of_counters(o: str, x: str, y: str) -> None:
    """The absence table for counters: equal changes count twice, an absent base counts as `from`."""
    values: dict[str, Optional[int]] = {"p": 10, "a": 13, "b": 17, "-": None}
    base, newer, older = values[o], values[x], values[y]
    documents = [{} if value is None else {"n": value} for value in (base, newer, older)]
    result = json.loads(merged(*documents, {"/n": {"as": "counter", "from": 5}}).data or b"").get("n")
    start = 5 if base is None else base
    if newer is not None and older is not None:
        assert result == newer + older - start
    elif base is None or (newer, older) in ((None, None),):
        assert result == (newer if older is None else older)
    else:
        # A counter that one side removed starts again, with the later additions of the other side.
        left = newer if older is None else older
        assert result == (None if left == base else left + 5 - base)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', '["\\ud800"]', "\ufeff{}", "1", '"s"', "{", "[1,]", "[01]", "[1.]", "[+1]", "[.5]", "[NaN]", '["\t"]', "{} {}", "",
     "nul", "[" * 129 + "]" * 129,
     "[1e10000]", "[1E-10000]", "[" + "1" * 401 + "]", '["\\x"]', "{a:1}", "[1 2]", "\xa0[]", "[0.1e10001]", "[10e9999]",
     "[123e9999]", "[0.1e-9999]", "[0e10000]", "[1" + "0" * 400 + "1]"],
)  # fmt: skip
def test_not_mergeable(text: str) -> None:
    """Bytes that are not mergeable JSON are treated as bytes."""
    with pytest.raises(j.NotMergeable):
        j.parse(text.encode())


def test_mergeable() -> None:
    """Mergeable JSON, at the limits, and how it is read."""
    for text in [
        "[" * 128 + "]" * 128,
        "[1e9999]",
        "[" + "1" * 400 + "]",
        "[" + "1" * 400 + "000]",
        "[0.1e-9998]",
        "[0.00e9999]",
        '["\\ud83d\\ude00"]',
        '{"a":{},"b":[],"c":[true,false,null,-0,1.5e+3]}',
        " [ 1 , 2 ] ",
    ]:
        assert json.loads(j.canonical(j.parse(text.encode()))) == json.loads(text)
    with pytest.raises(j.NotMergeable):
        j.parse(b'["\xff"]')
    assert j.canonical(j.parse(b'{"b":1.50,"a":"\\u00e9\\/\\u001f"}')) == '{"a":"é/\\u001f","b":1.50}'.encode()


@pytest.mark.parametrize(
    "lexeme,expected",
    [("0", "0"), ("-0.0", "0"), ("1e21", "1e+21"), ("1e20", "100000000000000000000"), ("0.000001", "0.000001"), ("0.0000001", "1e-7"),
     ("123.4500", "123.45"),
     ("-12e-1", "-1.2"), ("12345678901234567890123", "1.2345678901234567890123e+22"), ("1.0", "1")],
)  # fmt: skip
def test_plain_decimals(lexeme: str, expected: str) -> None:
    """The spelling of counters."""
    assert j.number(lexeme).value.text() == expected


BAD_SCHEMAS = [
    ("[]", ""), ("{", ""), ("{}", "/merge"), ('{"merge":1,"ids":[]}', "/ids"), ('{"merge":1,"ids":{"a":"sum"}}', "/ids/a/as"),
    ('{"merge":1,"ids":{"a":{"as":"auto","fold":1}}}', "/ids/a/fold"), ('{"merge":1,"ids":{"a":{"/x":"bytes"}}}', "/ids/a/~1x"),
    ('{"merge":1,"ids":{"a":{"/x":{"as":"counter","min":2,"max":1}}}}', "/ids/a/~1x/min"),
    ('{"merge":1,"ids":{"a":{"/x":{"key":["/id"]}}}}', "/ids/a/~1x/key"),
    ('{"merge":1,"ids":{"a":{"/x":{"as":"list","key":["id"]}}}}', "/ids/a/~1x/key/0"),
    ('{"merge":1,"ids":{"a":{"/~3":"set"}}}', "/ids/a/~1~03"),
    ('{"merge":1,"ids":{"a":{"/x":{"pick":"best"}}}}', "/ids/a/~1x/pick"),
    ('{"merge":1,"ids":{"a":{"/x":{"as":"text","unit":"page"}}}}', "/ids/a/~1x/unit"),
    ('{"merge":1,"ids":{"a":{"/x":{"as":"set","from":1}}}}', "/ids/a/~1x/from"), ('{"merge":1,"ids":{"a":7}}', "/ids/a"),
]  # fmt: skip


@pytest.mark.parametrize("text,where", BAD_SCHEMAS)
def test_bad_schemas(text: str, where: str) -> None:
    """Invalid schemas, and the place of each error."""
    with pytest.raises(r.InvalidSchema) as caught:
        r.parse_schema(text.encode())
    assert caught.value.where == where


def test_rules_for_paths() -> None:
    """The longest prefix alone; a name before a star, segment by segment; stars that are names."""
    schema = r.parse_schema(
        b'{"merge":1,"ids":{"":"set","a":{"/*/x":"counter","/b/*":"text","/~2":"tuple"},"ab":{}}}'
    )
    assert schema.rules("zzz").top.kind == "set"
    rules = schema.rules("a1")
    assert [rules.rule(path).kind for path in [("b", "x"), ("c", "x"), (r.ELEMENT, "x"), ("*",), ("q",), ()]] == [
        "text", "counter", "counter", "tuple", "auto", "auto",
    ]  # fmt: skip
    assert schema.rules("ab").rule(("b", "x")).kind == "auto"
    with pytest.raises(r.UnknownMerge):
        r.parse_schema(b'{"merge":2}')


def brute_increasing(positions: list[int]) -> list[int]:
    """Returns the longest increasing subsequence, found by trying all: of all longest ones, the one that selects the first possible element
    at each step."""
    best: tuple[int, ...] = ()
    for size in range(len(positions), 0, -1):
        found = [
            chosen for chosen in itertools.combinations(range(len(positions)), size)
            if all(positions[a] < positions[b] for a, b in zip(chosen, chosen[1:]))
        ]  # fmt: skip
        if found:
            best = min(found)
            break
    return list(best)


def test_increasing() -> None:
    """Against the definition, for all orders of up to 7."""
    for size in range(8):
        for positions in itertools.permutations(range(size)):
            assert increasing(positions) == brute_increasing(list(positions))


# Laws, on random documents.


def random_value(chance: random.Random, depth: int = 3) -> Any:
    """Any JSON value, small."""
    kind = chance.randrange(8 if depth else 5)
    if kind < 5:
        return chance.choice([None, True, 0, 1, 2.5, "a", "b", "word two"])
    if kind < 7:
        return {name: random_value(chance, depth - 1) for name in chance.sample("abcde", chance.randrange(4))}
    return random_list(chance, depth - 1)


def random_list(chance: random.Random, depth: int) -> list[Any]:
    """Elements with ids, or values."""
    if chance.random() < 0.5:
        return [{"id": number, "v": random_value(chance, 0)} for number in chance.sample(range(6), chance.randrange(5))]
    return [random_value(chance, 0) for _ in range(chance.randrange(5))]


def edited(chance: random.Random, value: Any) -> Any:
    """The value with an edit or none: moves, removals, insertions and changes."""
    if isinstance(value, dict) and value:
        changed = dict(value)
        name = chance.choice(list(changed))
        choice = chance.random()
        if choice < 0.2:
            del changed[name]
        elif choice < 0.8:
            changed[name] = edited(chance, changed[name])
        else:
            changed[chance.choice("abcdefg")] = random_value(chance, 1)
        return changed
    if isinstance(value, list) and value:
        items = list(value)
        choice = chance.random()
        at = chance.randrange(len(items))
        if choice < 0.3:
            items.insert(chance.randrange(len(items)), items.pop(at))
        elif choice < 0.5:
            items.pop(at)
        elif choice < 0.8:
            items[at] = edited(chance, items[at])
        else:
            items.insert(at, random_value(chance, 0))
        return items
    return random_value(chance, 1)


def three(chance: random.Random) -> tuple[Any, Any, Any]:
    """A base object and two edits of it."""
    base = {name: random_value(chance) for name in "abcd"}
    sides = []
    for _ in range(2):
        side = base
        for _ in range(chance.randrange(4)):
            side = edited(chance, side)
        sides.append(side if isinstance(side, dict) else base)
    return base, sides[0], sides[1]


LAW_RULES: list[Any] = ["auto", {"/a": "set", "/b": "text", "/c": {"as": "list", "key": ["/id"]}}, {"/a": "tuple", "/*": "register"}]


def leaves(value: Any) -> set[str]:
    """Every scalar in a value."""
    if isinstance(value, dict):
        return set().union(*map(leaves, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(leaves, value)) if value else set()
    return {json.dumps(value)}


@pytest.mark.parametrize("rules", LAW_RULES)
def test_laws(rules: Any) -> None:
    """L1 unit, L2 same, L3 total, L5 no invention, L15 fixpoint."""
    chance = random.Random(11)
    for _ in range(sample(100, 4000)):
        o, x, y = three(chance)
        spelled = json.dumps(y, indent=1)
        assert merged(o, o, spelled, rules).data == spelled.encode()
        assert merged(o, spelled, o, rules).data == spelled.encode()
        same = merged(o, x, x, rules)
        assert json.loads(same.data or b"") == x and not same.records
        result = merged(o, x, y, rules)
        assert result.data is not None
        if rules == "auto":
            assert leaves(json.loads(result.data)) <= leaves(o) | leaves(x) | leaves(y)
        assert j.canonical(j.parse(j.canonical(j.parse(result.data)))) == j.canonical(j.parse(result.data))


def test_disjoint_edits() -> None:
    """L6: edits of different members are both there, and nothing is a conflict. L13 of reverts: undoing one leaves the other."""
    chance = random.Random(12)
    for _ in range(sample(400, 4000)):
        base = {name: random_value(chance) for name in "abcd"}
        x, y = dict(base), dict(base)
        x["a"], y["b"] = random_value(chance), random_value(chance)
        result = merged(base, x, y)
        assert json.loads(result.data or b"") == {**base, "a": x["a"], "b": y["b"]} and not result.records
        undone = merged(x, {**x, "b": y["b"]}, base)
        assert json.loads(undone.data or b"") == {**base, "b": y["b"]}


def test_roles() -> None:
    """L8: exchanging the sides changes which elements of a list the result has only if a record says so."""
    chance = random.Random(13)
    for _ in range(sample(400, 4000)):
        items = chance.sample(range(8), 6)
        sides = []
        for _ in range(2):
            side = list(items)
            for _ in range(chance.randrange(4)):
                side = edited(chance, side) or [0]
            sides.append([item for item in side if isinstance(item, int)])
        one, other = merged([*items], sides[0], sides[1]), merged([*items], sides[1], sides[0])
        if not one.records and not other.records:
            assert sorted(json.loads(one.data or b"")) == sorted(json.loads(other.data or b""))


def test_not_laws() -> None:
    """Absorption does not hold, by the counterexample of the specification."""
    first = merged({"l": ["a"]}, {"l": []}, {"l": ["a", "a"]})
    assert json.loads(first.data or b"") == {"l": ["a"]}
    again = merged({"l": ["a"]}, json.loads(first.data or b""), {"l": []})
    assert json.loads(again.data or b"") == {"l": []}


def test_text_keeps_what_does_not_touch() -> None:
    """New words that both sides inserted are both in the result, or the line is recorded. Words that neither removed stay."""
    chance = random.Random(14)
    for _ in range(sample(300, 3000)):
        base = [chance.choice(["one", "two", "three", "four"]) for _ in range(chance.randrange(8))]
        x, y = list(base), list(base)
        x.insert(chance.randrange(len(x) + 1), "NEWER")
        y.insert(chance.randrange(len(y) + 1), "OLDER")
        result = merged(" ".join(base), " ".join(x), " ".join(y), "text")
        words = (result.data or b"").decode().split()
        assert words.count("NEWER") == words.count("OLDER") == 1 or [record.kind for record in result.records] == ["overlap"]
        if result.records:
            continue
        assert sorted(word for word in words if word.islower()) == sorted(base)


def test_caps() -> None:
    """L16: texts that defeat the diff end, as one replacement, with a record."""
    chance = random.Random(15)
    base, newer = ("".join(chance.choice("ab") + "\n" for _ in range(6000)) for _ in range(2))
    result = merged(base, newer, base + "c", {"as": "text", "unit": "line"})
    assert "limit" in [record.kind for record in result.records]


def test_splice() -> None:
    """L14: an app that knows fewer members keeps the others; members that it removed are gone."""
    read = b'{"name":"Ann","later":{"x":1.50},"phones":[{"id":1,"n":"1","new":true},{"id":2,"n":"2"}],"pos":{"lat":1,"alt":5}}'
    decoded = b'{"name":"Ann","phones":[{"id":1,"n":"1"},{"id":2,"n":"2"}],"pos":{"lat":1},"tags":[]}'
    new = b'{"name":"Anne","phones":[{"id":1,"n":"11"}],"pos":{"lat":2},"tags":[]}'
    saved = json.loads(m.save(read, decoded, new, rule_set({"/pos": "register"})))
    assert saved == {"name": "Anne", "later": {"x": 1.5}, "phones": [{"id": 1, "n": "11", "new": True}], "pos": {"lat": 2, "alt": 5}}


def test_records_as_json() -> None:
    """The digest of a merge's records is one of their meaning, the same each time."""
    result = merged('{"l":[1,2],"p":[{"id":7,"v":0}]}', '{"l":[7,2],"p":[{"id":7,"v":1}]}', '{"l":[9,2],"p":[{"id":7,"v":2}]}')
    assert [json.loads(j.canonical(record.node("contact/1"))) for record in result.records] == [
        {"id": "contact/1", "kind": "pick", "o": 1, "path": ["l", {"index": 0}], "result": 7, "x": 7, "y": 9},
        {"id": "contact/1", "kind": "pick", "o": 0, "path": ["p", {"key": 7}, "v"], "result": 1, "x": 1, "y": 2},
    ]
    assert m.conflicts_digest([("contact/1", record) for record in result.records]) == m.conflicts_digest(
        [("contact/1", record) for record in result.records]
    )


# Over histories.


@pytest.mark.parametrize("seed", seeds(range(12), range(60)))
def test_histories(seed: int) -> None:
    """L10 to L12: in any graph that merges alone joined, counters are exact, added set members are all there, and field edits survive."""
    chance = random.Random(seed)
    rules = rule_set({"/n": "counter", "/tags": "set"})
    graph = Graph()
    start = {"n": 100, "tags": [], "f": {name: 0 for name in "xyz"}}
    graph.add("v0", 0.0, (), {"a": Held(json.dumps(start).encode(), (0.0, "v0"), "v0")})
    deltas: dict[str, int] = {"v0": 0}
    edits: dict[str, tuple[str, int]] = {}
    heads = ["v0", "v0", "v0"]
    for number in range(1, 45):
        device = chance.randrange(3)
        name = f"v{number}"
        mine = heads[device]
        if chance.random() < 0.55:
            document = json.loads(graph.states[mine]["a"].data)
            delta = chance.randrange(-5, 6)
            document["n"] += delta
            document["tags"].append(name)
            field = "xyz"[device]
            document["f"][field] = number
            edits[name] = (field, number)
            graph.add(name, float(number), (mine,), {"a": Held(json.dumps(document).encode(), (float(number), name), name)})
            deltas[name] = delta
        else:
            other = heads[chance.randrange(3)]
            if other in graph.above[mine] or mine in graph.above[other]:
                heads[device] = mine if other in graph.above[mine] else other
                continue
            outcome = graph.merge("a", mine, other, rules)
            assert outcome.held is not None and not outcome.records
            held = outcome.same_as or Held(outcome.held.data, (float(number), name), name)
            graph.add(name, float(number), (mine, other), {"a": held})
            deltas[name] = 0
        heads[device] = name
        document = json.loads(graph.states[name]["a"].data)
        behind = graph.above[name]
        assert document["n"] == 100 + sum(deltas[version] for version in behind)
        assert set(document["tags"]) == {version for version in behind if version in edits}
        for field in "xyz":
            assert document["f"][field] == max(
                [number for version, (edit, number) in edits.items() if version in behind and edit == field] or [0]
            )


def test_contested() -> None:
    """A criss-cross whose merges were decided differently: the value follows the table, and there is a record."""
    rules = rule_set("auto")
    graph = Graph()

    def put(name: str, time: float, parents: tuple[str, ...], f: int) -> None:
        graph.add(name, time, parents, {"a": Held(json.dumps({"f": f, "g": time}).encode(), (time, name), name)})

    put("o", 0, (), 0)
    put("p", 1, ("o",), 1)
    put("q", 2, ("o",), 2)
    put("m", 3, ("p", "q"), 1)
    put("n", 4, ("p", "q"), 2)
    outcome = graph.merge("a", "m", "n", rules)
    assert [record.kind for record in outcome.records].count("contested") >= 1
    assert outcome.held is not None and json.loads(outcome.held.data)["f"] == 1
