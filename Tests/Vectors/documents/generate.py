"""Writes vectors.json: the results of merging inside values, by the model in Tests/Python/documents.

    generate.py        rewrites the file
    generate.py --check  checks that the model gives it

Cases have names; those of the pitfalls begin with their number. Expected results are not written here: for cases whose result is in the
specification, the tests of the model check it (Tests/Python/test_documents_model.py).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

from documents import json_model as j  # noqa: E402
from documents import merge as m  # noqa: E402
from documents import rules as r  # noqa: E402

#: name, rules for the value, base, newer, older. Texts are given directly, other values as JSON; None is absent.
Case = tuple[str, Any, Any, Any, Any]

FROZEN: list[Case] = [
    ("counter: equal changes add up", {"/n": "counter"}, '{"n":0}', '{"n":1}', '{"n":1}'),
    ("counter: absent base with from", {"/n": {"as": "counter", "from": 100}}, None, '{"n":105}', '{"n":103}'),
    ("counter: a reset keeps increments", {"/n": "counter"}, '{"n":10}', '{"n":0}', '{"n":12}'),
    ("auto: an edit beats a removal", "auto", '{"a":{"p":1}}', "{}", '{"a":{"p":2}}'),
    ("auto: 1.0 is no change", "auto", '{"a":1}', '{"a":1.0,"b":1}', '{"a":2}'),
    ("auto: null is a value", "auto", "{}", '{"a":null}', "{}"),
    ("list: both moved one", "auto", '{"l":[0,1,2]}', '{"l":[1,0,2]}', '{"l":[1,2,0]}'),
    ("list: replaced on both sides", "auto", '{"l":[1,2]}', '{"l":[7,2]}', '{"l":[9,2]}'),
    ("list: runs at one place", "auto", '{"l":["a"]}', '{"l":["a","b","c"]}', '{"l":["a","b","d"]}'),
    ("list: moved, edited and added", "auto", [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}], [{"id": 2, "t": "b"}, {"id": 1, "t": "A"}],
     [{"id": 1, "t": "a"}, {"id": 2, "t": "B"}, {"id": 3}]),
    ("text: two edits", "text", "The cat sat.", "The cat sat down.", "A cat sat."),
    ("text: overlap", "text", "The cat.", "The dog.", "The fox."),
    ("text: words replaced", "text", "Merging text is hard!", "Merging text is easy!", "With reconcile, merging documents is hard!"),
    ("text: moved tokens", "text", "一二三四五六", "一四五二三六", "一二四五三六"),
    ("auto: an array and an object", "auto", '{"a":[1]}', '{"a":{"0":1}}', '{"a":[1,2]}'),
]  # fmt: skip

PITFALLS: list[Case] = [
    ("P1 equal sides of a counter", {"/n": "counter"}, {"n": 0}, {"n": 1}, {"n": 1}),
    ("P3 bounds are reported", {"/s": {"as": "counter", "min": 0}}, {"s": 3}, {"s": 1}, {"s": 0}),
    ("P5 absent base", {"/s": {"as": "counter", "from": 100}}, {}, {"s": 105}, {"s": 103}),
    ("P6 unusable base", {"/n": "counter"}, {"n": "x"}, {"n": 5}, {"n": 6}),
    ("P7 exact decimals", {"/n": "counter"}, '{"n":0.3}', '{"n":0.1}', '{"n":0.2}'),
    ("P8 moved to two places", "auto", {"l": [0, 1, 2]}, {"l": [1, 0, 2]}, {"l": [1, 2, 0]}),
    ("P9 moves of numbers", "auto", {"l": [1, 2, 3]}, {"l": [2, 1, 3]}, {"l": [1, 3, 2]}),
    ("P9 replaced one for one", "auto", {"l": [1, 2]}, {"l": [7, 8]}, {"l": [1, 9]}),
    ("P9 declared tuple", {"/l": "tuple"}, {"l": [1, 2, 3]}, {"l": [2, 1, 3]}, {"l": [1, 3, 2]}),
    ("P10 pasted runs stay whole", "auto", ["a"], ["a", "x1", "x2", "x3"], ["a", "y1", "y2"]),
    ("P10 shared new elements", "auto", ["a"], ["a", "b", "c"], ["a", "b", "d"]),
    ("P11 removed and edited element", "auto", [{"id": 1, "v": 1}], [], [{"id": 1, "v": 2}]),
    ("P12 removed and moved element", "auto", [1, 2, 3], [2, 3], [2, 1, 3]),
    ("P13 equal keys in one array", "auto", [{"id": 1, "v": 1}, {"id": 1, "v": 2}], [{"id": 1, "v": 1}, {"id": 1, "v": 3}],
     [{"id": 1, "v": 0}, {"id": 1, "v": 2}]),
    ("P13 elements without the key", {"": {"as": "list", "key": ["/k"]}}, [{"k": 1}, {"x": 1}], [{"k": 1}, {"x": 1}, {"x": 2}],
     [{"x": 1}, {"k": 1, "v": 1}]),
    ("P14 equal entries on both sides", "auto", ["a"], ["a", "ok"], ["a", "ok"]),
    ("P15 removed and added again", "auto", [1, 2], [1, 2], [2]),
    ("P16 set of objects", {"/s": "set"}, {"s": [{"k": 1, "v": 1}]}, {"s": [{"k": 1, "v": 2}]}, {"s": [{"k": 1, "v": 3}]}),
    ("P16 set of objects with a key", {"/s": {"as": "set", "key": ["/k"]}}, {"s": [{"k": 1, "v": 1}]}, {"s": [{"k": 1, "v": 2}]},
     {"s": [{"k": 1, "w": 3, "v": 1}]}),
    ("P17 spellings of one number", "auto", '{"a":1,"b":2}', '{"a":1e0,"b":3}', '{"a":1.0,"b":2,"c":-0}'),
    ("P17 minus zero", "auto", '{"a":0}', '{"a":-0}', '{"a":5}'),
    ("P17 large integers", "auto", '{"a":9007199254740992}', '{"a":9007199254740993}', '{"a":9007199254740992,"b":1}'),
    ("P18 order, white space, escapes", "auto", '{"a":"\\u0041","b":1}', '{ "b" : 1, "a" : "A" }', '{"b":2,"a":"A"}'),
    ("P19 duplicate names", "auto", '{"a":1}', '{"a":1,"a":2}', '{"a":3}'),
    ("P20 composed and decomposed", "auto", '{"é":1}', '{"é":1,"é":2}', '{"é":3}'),
    ("P20 lone surrogate", "auto", '{"a":1}', '{"a":"\\ud800"}', '{"a":2}'),
    ("P21 missing, null and empty", "auto", '{"a":1,"b":1,"c":1}', '{"a":null,"b":1,"c":""}', '{"b":null,"a":1,"c":1}'),
    ("P21 absent declared", {"/s": {"absent": {}}}, "{}", '{"s":{"a":1}}', '{"s":{"b":2}}'),
    ("P21 absent declared, nobody has it", {"/s": {"absent": {}}}, '{"a":1}', '{"a":2}', '{"a":1,"b":1}'),
    ("P22 changed type and inner edit", "auto", {"a": {"0": 1}}, {"a": [1]}, {"a": {"0": 2}}),
    ("P23 one side is no JSON", "auto", {"a": 1}, "not json", {"a": 2}),
    ("P23 the base is no JSON", "auto", "not json", {"a": 1}, {"b": 1}),
    ("P24 added on both sides", "auto", None, {"title": "A", "author": "A"}, {"title": "B", "author": "B", "sub": "B"}),
    ("P24 identity", {"": {"identity": ["/title"]}}, None, {"title": "A", "author": "A"}, {"title": "B", "author": "B", "sub": "B"}),
    ("P25 register", {"/period": "register"}, {"period": {"from": 1, "to": 2}}, {"period": {"from": 3, "to": 4}},
     {"period": {"from": 1, "to": 9}}),
    ("P27 renamed and edited", "auto", {"name": "A"}, {"fullName": "A"}, {"name": "B"}),
    ("P28 overlap", "text", "cat", "dog", "fox"),
    ("P29 marks and clusters", "text", "か\u3099 a", "か\u3099 a b", "x か\u3099 a"),
    ("P30 line ends", "text", "a\nb\n", "a\r\nb\r\n", "a\nb\nc\n"),
    ("P31 strings are registers", "auto", {"url": "http://a/b"}, {"url": "http://a/c"}, {"url": "http://x/b"}),
    ("P32 words of JSON", "auto", {"a": True}, {"a": False, "b": True}, {"a": True, "c": True}),
    ("P33 members and elements have one order", {"/s": "set"}, {"s": []}, {**{name: 1 for name in "qwertyuiop"}, "s": ["q", "w", "e"]},
     {**{name: 2 for name in "asdfghjkl"}, "s": ["z", "x", "c"]}),
    ("P35 absorption is no law", "auto", {"l": ["a"]}, {"l": ["a"]}, {"l": []}),
    ("P35 the merge before that", "auto", {"l": ["a"]}, {"l": []}, {"l": ["a", "a"]}),
    ("P38 left to an arbiter of the host", {"/v": {"pick": "arbiter"}}, {"v": 0, "w": 0}, {"v": 1, "w": 0}, {"v": 2, "w": 3}),
]  # fmt: skip

#: The first form has a name, the second a full name, the third one within an object.
FORMS = {"schema": {"at": "/v", "renames": [{"to": 3, "from": "/fullName", "path": "/names/full"}, {"to": 2, "from": "/name",
    "path": "/fullName"}]}}
ONE_RENAME = {"schema": {"at": "/v", "renames": [{"to": 2, "from": "/a", "path": "/b"}]}}
LATER_IS_NEWER = {"schema": {"at": "/v"}}

#: Values of several forms.
OF_SEVERAL_FORMS: list[Case] = [
    ("P27 renamed by rules and edited", FORMS, {"v": 1, "name": "A"}, {"v": 2, "fullName": "A", "x": 1}, {"v": 1, "name": "B", "y": 1}),
    ("P27 edited, and renamed by the older side", FORMS, {"v": 1, "name": "A"}, {"v": 1, "name": "B"}, {"v": 2, "fullName": "A", "x": 1}),
    ("forms: renames of several forms, in their order", FORMS, {"name": "A"}, {"v": 3, "names": {"full": "A", "short": "a"}},
     {"v": 2, "fullName": "B"}),
    ("forms: nobody has the last one", FORMS, {"v": 1, "name": "A"}, {"v": 2, "fullName": "B"}, {"v": 1, "name": "A", "x": 1}),
    ("forms: who tells none is of the first", FORMS, {"name": "A"}, {"name": "B"}, {"v": 2, "fullName": "A"}),
    ("forms: a number that is none", FORMS, {"v": "1", "name": "A"}, {"v": 2, "fullName": "A"}, {"v": "1", "name": "B"}),
    ("forms: nobody tells one", FORMS, {"name": "A"}, {"name": "B"}, {"name": "A", "x": 1}),
    ("forms: all of one form", FORMS, {"v": 2, "fullName": "A"}, {"v": 2.0, "fullName": "B"}, {"v": 2, "fullName": "A", "name": "x"}),
    ("forms: both changed what was renamed", FORMS, {"v": 1, "name": "A"}, {"v": 2, "fullName": "B"}, {"v": 1, "name": "C"}),
    ("forms: removed and renamed", FORMS, {"v": 1, "name": "A"}, {"v": 2, "fullName": "A"}, {"v": 1}),
    ("forms: the new place is taken", ONE_RENAME, {"v": 1, "a": 1, "b": 1}, {"v": 2, "b": 2}, {"v": 1, "a": 3, "b": 1}),
    ("forms: something on the way is no object", FORMS, {"v": 2, "fullName": "A", "names": 7}, {"v": 3, "names": {"full": "A"}},
     {"v": 2, "fullName": "B", "names": 7}),
    ("forms: one whole value was removed", FORMS, {"v": 1, "name": "A"}, None, {"v": 2, "fullName": "A"}),
    ("forms: both added it", FORMS, None, {"v": 2, "fullName": "A"}, {"v": 1, "name": "B", "x": 1}),
    ("forms: bytes decide before", FORMS, {"v": 2, "fullName": "A"}, {"v": 2, "fullName": "A"}, {"v": 1, "name": "A"}),
    ("forms: a reverted upgrade stays reverted where nothing else is", FORMS, {"v": 2, "fullName": "A"}, '{"fullName":"A", "v":2}',
     {"v": 1, "name": "A"}),
    ("forms: a counter that was renamed", {"/b": "counter", **ONE_RENAME}, {"v": 1, "a": 5}, {"v": 2, "b": 6}, {"v": 1, "a": 7}),
    ("forms: a counter whose old name both upgrades left", {"/*": "counter", **ONE_RENAME}, {"a": 5}, {"v": 2, "a": 5, "b": 6},
     {"v": 2, "a": 5, "b": 7}),
    ("forms: a counter whose old name one upgrade left, counted under the old name", {"/*": "counter", **ONE_RENAME}, {"a": 5},
     {"v": 2, "a": 5, "b": 6}, {"a": 7}),
    ("forms: an old name that an upgrade left, edited by who knows no other", ONE_RENAME, {"a": "x"}, {"v": 2, "a": "x", "b": "x"},
     {"a": "y"}),
    ("forms: an old name is left in values of another form only", FORMS, {"name": "A"}, {"v": 3, "fullName": "A", "names": {"full": "B"}},
     {"v": 2, "fullName": "C", "name": "A"}),
    ("forms: text that was renamed", {"/b": "text", **ONE_RENAME}, {"v": 1, "a": "one two"}, {"v": 2, "b": "1 two"},
     {"v": 1, "a": "one 2"}),
    ("forms: equal bytes on both sides with a counter", {"/b": "counter", **ONE_RENAME}, {"v": 1, "a": 5}, {"v": 2, "b": 6},
     {"v": 2, "b": 6}),
    ("forms: spelling and escapes of what is lifted", ONE_RENAME, '{"v":1,"a":1.50}', '{"v":2.0,"b":1.5,"c":1}',
     '{ "v" : 1, "a" : 1.50, "\\u0064":"\\u0041" }'),
    ("forms: names with slashes and tildes", {"schema": {"at": "/f/~0", "renames": [{"to": 0.5, "from": "/a~1b", "path": "/c/~0~1"}]}},
     {"a/b": 1}, {"f": {"~": 1}, "c": {"~/": 1}, "x": 1}, {"a/b": 2}),
    ("forms: too deep where it would go", {"schema": {"at": "/v", "renames": [{"to": 2, "from": "/a", "path": "/b/c"}]}},
     '{"v":1,"a":' + "[" * 127 + "]" * 127 + "}", '{"v":2,"b":{"c":[]}}', '{"v":1,"x":1,"a":' + "[" * 127 + "]" * 127 + "}"),
    ("forms: arrays tell none", {"": "list", **ONE_RENAME}, [1], [1, 2], [1, 3]),
    ("forms: a side is no JSON", ONE_RENAME, {"v": 1, "a": 1}, "no json", {"v": 2, "b": 1}),
    ("forms: without renames the later one is the newer side", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 1, "a": 2}, {"v": 2, "a": 3}),
    ("forms: without renames, the newer side is the later one", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 2, "a": 2}, {"v": 1, "a": 3}),
    ("forms: without renames, both of one form", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 2, "a": 2}, {"v": 2, "a": 3}),
    ("forms: without renames the larger number stands", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 2, "a": 2}, {"v": 3, "b": 3}),
    ("forms: the rule of the member that tells the form may be written as well", {"/v": {"pick": "max"}, **LATER_IS_NEWER},
     {"v": 1, "a": 1}, {"v": 3, "a": 2}, {"v": 2, "b": 3}),
    ("forms: without renames, a text of the older side comes last", {"/t": "text", **LATER_IS_NEWER}, {"v": 1, "t": "a"},
     {"v": 1, "t": "a b"}, {"v": 2, "t": "a c"}),
    # This once ended the process: a remaining element of a run was searched by a class that it lacks.
    ("list: one element is left of what all have in common", "auto",
     [5, 5, 4, 3, 4, 1, 1, 1, 2, 4, 1, 5, 2, 0, 1, 1, 1, 0, 3, 3, 0, 3, 1, 0, 2, 4, 1, 5, 0, 1, 5, 2, 1, 3, 3, 1, 1, 5, 1, 2, 1, 2, 5, 2, 2,
      0, 2],
     [5, 5, 4, 3, 4, 1, 1, 1, 2, 2, 1, 5, 2, 0, 1, 1, 1, 0, 0, 1, 0, 2, 4, 1, 5, 0, 1, 5, 2, 1, 1, 1, 5, 1, 2, 1, 2, 5],
     [5, 4, 3, 4, 1, 1, 1, 2, 4, 1, 5, 2, 0, 1, 1, 1, 0, 3, 3, 0, 3, 1, 0, 2, 4, 1, 5, 0, 1, 5, 2, 1, 3, 3, 1, 1, 5, 1, 2, 1, 2, 5, 2, 2, 0,
      2]),
    ("list: as many moves as are told one by one", "auto", list(range(130)), list(range(129, -1, -1)),
     [*range(64, -1, -1), *range(129, 64, -1)]),
    ("list: so many moves that they are one conflict", "auto", {"l": list(range(132))}, {"l": list(range(131, -1, -1))},
     {"l": [*range(65, -1, -1), *range(131, 65, -1)]}),
]  # fmt: skip

#: Saves of a program that knows a part of a value: the rules, the value that it read as it would write it, the value that it saves, and the
#: stored value.
SAVES: list[Case] = [
    ("P26 members that the program does not know stay", "auto", {"name": "A"}, {"name": "B"}, '{"name":"A","later":{"z":1.50,"a":[1e2]}}'),
    ("P26 what the program removes is gone with all that is in it", "auto", {"a": {"x": 1}, "b": 1}, {"b": 1},
     {"a": {"x": 1, "new": 2}, "b": 1}),
    ("P26 elements keep what the program does not know", {"/l": {"as": "list", "key": ["/id"]}},
     {"l": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]},
     {"l": [{"id": 2, "n": 2}, {"id": 1, "n": 3}]}, {"l": [{"id": 1, "n": 1, "new": True}, {"id": 2, "n": 2, "new": False}]}),
    ("P26 a register is merged by member", {"/r": "register"}, {"r": {"x": 1}}, {"r": {"x": 2}}, {"r": {"x": 1, "new": 3}}),
    ("P26 what the program decided stands", {"/v": {"pick": "older"}}, {"v": 1}, {"v": 2}, {"v": 3}),
    ("P26 what came meanwhile stays", {"/n": "counter", "/s": "set", "/t": "text"}, {"n": 5, "s": ["a"], "t": "one two"},
     {"n": 6, "s": ["a", "b"], "t": "one 2"}, {"n": 15, "s": ["c"], "t": "1 two"}),
    ("P26 numbers stay as they are written where the program knows all", {"/r": "register"},
     {"n": 1.5, "name": "A", "o": {"p": 1, "q": 2}, "r": {"a": 1, "b": 1}},
     {"n": 1.5, "name": "B", "o": {"p": 2, "q": 2}, "r": {"a": 2, "b": 1}},
     '{"r":{"b":1.0,"a":1},"o":{"q":2.0,"p":1},"n":1.50,"name":"A"}'),
    ("P26 a save that changes nothing", "auto", {"name": "A"}, {"name": "A"}, '{ "name":"A", "later":1.50 }'),
    ("P26 a value that is not there yet", "auto", None, {"name": "A"}, None),
    ("P26 a value that is no JSON", "auto", {"name": "A"}, {"name": "B"}, '{"name":"A","name":"A","later":1}'),
    ("P27 a program of an earlier form saves", FORMS, {"v": 1, "name": "A", "n": 1}, {"v": 1, "name": "B", "n": 1},
     {"v": 2, "fullName": "A", "n": 1, "later": 1}),
    ("P27 a program of a later form saves", FORMS, {"v": 2, "fullName": "A"}, {"v": 2, "fullName": "B"}, {"v": 1, "name": "A", "n": 1}),
    ("P26 what the program removes of a list without keys", "auto", {"l": [{"a": 1}, {"a": 2}, {"a": 3}]}, {"l": [{"a": 2}]},
     {"l": [{"a": 1, "x": 9}, {"a": 2, "x": 8}, {"a": 3, "x": 7}]}),
    ("P26 all of a list without keys is removed", "auto", {"l": [{"a": 1}, {"a": 1}]}, {"l": []}, {"l": [{"a": 1, "x": 9}, {"a": 1}]}),
    ("P26 one of two elements that are alike to the program", "auto", {"l": [{"a": 1}, {"a": 1}]}, {"l": [{"a": 1}]},
     {"l": [{"a": 1, "x": 9}, {"a": 1}]}),
    ("P26 an element without a key is edited and one added", "auto", {"l": [{"a": 1}, {"a": 2}]},
     {"l": [{"a": 7}, {"a": 2}, {"a": 3}]}, {"l": [{"a": 1, "x": 9}, {"a": 2, "x": 8}]}),
    ("P26 an element that is written as another one is what it was", "auto", {"l": [{"a": 1}, {"a": 2}]},
     {"l": [{"a": 1, "x": 9}, {"a": 2}]}, {"l": [{"a": 1, "x": 9}, {"a": 2, "x": 8}]}),
    ("P26 members that the program knows by default", "auto", {"l": [{"a": 1, "x": 0}, {"a": 2, "x": 0}]}, {"l": [{"a": 2, "x": 0}]},
     {"l": [{"a": 1}, {"a": 2}]}),
    ("P26 elements that the program spells otherwise", "auto", {"l": ["2027-01-01", "2027-01-02", "2027-01-03"]},
     {"l": ["2027-01-03", "2027-01-01"]}, {"l": ["2027-1-1", "2027-1-2", "2027-1-3"]}),
    ("P26 a list in a list", "auto", {"l": [[{"a": 1}, {"a": 2}], [{"a": 3}]]}, {"l": [[{"a": 2}], [{"a": 3}]]},
     {"l": [[{"a": 1, "x": 1}, {"a": 2, "x": 2}], [{"a": 3, "x": 3}]]}),
    ("P26 lists by name", "auto", {"m": {"p": [{"a": 1}], "q": [{"a": 2}]}}, {"m": {"p": []}},
     {"m": {"p": [{"a": 1, "x": 1}], "q": [{"a": 2, "x": 2}]}}),
    ("P26 an element that stands elsewhere by now is known by what it is", "auto", {"l": ["a", "b", "c"]}, {"l": ["a", "c"]},
     {"l": ["b", "c", "d"]}),
    ("P26 an element with a key that is replaced by now", {"/l": {"as": "list", "key": ["/k"]}}, {"l": [{"k": 1, "n": 1}]},
     {"l": [{"k": 1, "n": 2}]}, {"l": [{"k": 2, "n": 3}]}),
    ("P26 a key that the program knows by default", {"/l": {"as": "list", "key": ["/k"]}}, {"l": [{"k": 0, "n": 1}, {"k": 1, "n": 1}]},
     {"l": [{"k": 1, "n": 1}]}, {"l": [{"n": 1}, {"k": 1, "n": 1}]}),
    ("P26 an element moved by the program", "auto", {"l": [{"a": 1}, {"a": 2}, {"a": 3}]}, {"l": [{"a": 3}, {"a": 1}, {"a": 2}]},
     {"l": [{"a": 1, "x": 1}, {"a": 2, "x": 2}, {"a": 3, "x": 3}]}),
    ("P26 what the program removes of a set", {"/s": "set"}, {"s": [{"a": 1}, {"a": 2}]}, {"s": [{"a": 2}, {"a": 3}]},
     {"s": [{"a": 1, "x": 9}, {"a": 2, "x": 8}]}),
    ("P26 all of a set is removed", {"/s": "set"}, {"s": ["1.0", "2"]}, {"s": []}, {"s": ["1.00", "2"]}),
    ("P26 an element of a set that is there for itself", {"/s": "set"}, {"s": [{"a": 1}]}, {"s": [{"a": 1}, {"a": 1, "x": 9}]},
     {"s": [{"a": 1, "x": 9}]}),
    ("P26 a set of which the other side has more by now", {"/s": "set"}, {"s": ["a", "b"]}, {"s": ["b"]}, {"s": ["a", "b", "c"]}),
    ("P27 without renames a save stays the newer side", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 1, "a": 2}, {"v": 2, "a": 3}),
]  # fmt: skip

#: Merges in swapped roles, for undoing or picking: rules, the undone value, the present value, the value before. (For a pick: the base, the
#: picked value, the present value.)
SWAPPED: list[Case] = [
    ("L13 a counter that was removed and is there all the same", {"/n": "counter"}, {}, {"n": 11}, {"n": 10}),
    ("L13 a value with counters that was removed and is there all the same", {"/n": "counter", "/t": "text"}, None,
     {"n": 11, "t": "Oh, hello big world today", "l": ["x", "a", "b"], "s": 1}, {"n": 10, "t": "hello big world", "l": ["a", "b"], "r": 1}),
    ("L13 a counter as a whole that was removed", "counter", None, 11, 10),
    ("L13 a text as a whole that was removed", "text", None, "Oh, hello big world", "hello big world"),
    ("L13 what is there is what was there before", {"/n": "counter", "/t": "text"}, None, {"n": 10, "t": "a"}, {"n": 10.0, "t": "a"}),
    ("L13 a list whose elements have keys goes on element by element", {"/l/*/n": "counter"}, {},
     {"l": [{"id": 1, "n": 11}, {"id": 3}]}, {"l": [{"id": 1, "n": 10, "m": 1}, {"id": 2}]}),
    ("L13 a list of which one element has no key", "auto", {}, {"l": [{"id": 1, "n": 2}]}, {"l": [{"id": 1, "n": 1}, 5]}),
    ("L13 names in an order go on by name", {"/l": {"as": "list", "key": [""]}}, {}, {"l": ["b", "c"]}, {"l": ["a", "b"]}),
    ("L13 a set goes on by element", {"/s": "set"}, {}, {"s": ["b", "c"]}, {"s": ["a", "b"]}),
    ("L13 what the rule says of who wins does not count for what was removed", {"/n": {"as": "counter", "pick": "older"}}, {},
     {"n": 11}, {"n": 10}),
    ("L13 a counter that was removed is a string by now", {"/n": "counter"}, {}, {"n": "x"}, {"n": 10}),
    ("L13 a removed counter for which something stands", {"/n": {"as": "counter", "absent": 5}}, {}, {"n": 11}, {"n": 10}),
    ("L13 slots of a tuple that was removed", {"/t": "tuple", "/t/0": "counter"}, {}, {"t": [11, 1]}, {"t": [10, 2]}),
    ("L13 a counter that was not there before", {"/n": "counter"}, {"n": 1}, {"n": 3}, {}),
    ("L13 a counter that begins with 100 and was not there before", {"/n": {"as": "counter", "from": 100}}, '{"n":101.5}', {"n": 103}, {}),
    ("L13 a counter as a whole that was not there before", "counter", 1, 3, None),
    ("L13 a counter that was not there before, and goes beyond what can be merged", {"/n": "counter"}, '{"n":1e-201}', '{"n":1e200}', {}),
    ("L13 a counter that was not there before is a string by now", {"/n": "counter"}, {"n": 1}, {"n": "x"}, {}),
    ("L13 a counter that was not there before is gone by now", {"/n": "counter"}, {"n": 1, "a": 1}, {"a": 2}, {}),
    ("L13 an object with a counter that was not there before", {"/m/n": "counter"}, {"m": {"n": 1, "a": 1, "z": 1}},
     {"m": {"n": 3, "a": 2, "b": 1}}, {"o": 1}),
    ("L13 a value with counters that was not there before", {"/n": "counter", "/m/*": {"as": "counter", "from": 10}, "/t": "text"},
     '{"t":"x","n":1,"m":{"a":1.0,"b":12,"c":3,"e":"x"},"l":[{"id":1,"k":1.0}],"u":[1.0]}',
     '{"t":"x y","n":3,"m":{"b":13,"a":1,"d":5,"e":"y"},"l":[{"id":1,"k":2}],"u":[1]}', None),
    ("L13 an object with a counter that was not there before, and is to be gone", {"/m": {"delete": "delete"}, "/m/n": "counter"},
     {"m": {"n": 1}}, {"m": {"n": 3}}, {}),
    ("L13 a register with a counter that was not there before", {"/m": "register", "/m/n": "counter"}, {"m": {"n": 1}}, {"m": {"n": 3}},
     {}),
    ("L13 a counter for which something stands, in an object that was not there before", {"/m/n": {"as": "counter", "absent": 10}},
     {"a": 1, "m": {"n": 12}}, {"a": 1, "m": {"n": 15}}, {"a": 1}),
    ("L13 a counter for which something stands and that nobody changed, in an object that was not there before",
     {"/m/n": {"as": "counter", "absent": 10}}, {"a": 1, "m": {"n": 12, "k": 1}}, {"a": 1, "m": {"n": 12, "k": 2}}, {"a": 1}),
    ("P27 done again, the later form is no newer side", LATER_IS_NEWER, {"v": 1, "a": 1}, {"v": 1, "a": 3}, {"v": 2, "a": 2, "made": 1}),
    ("L13 what the base has is merged as ever", {"/n": "counter", "/t": "text"}, {"n": 12, "t": "one two"}, {"n": 15, "t": "one two three"},
     {"n": 10, "t": "1 two"}),
]  # fmt: skip

#: Cases that two readers of the specification understood differently at first, or one of them got wrong.
READINGS: list[Case] = [
    ("unit: the other spelling of an unchanged value stays, byte for byte", "auto", '{"a":1}', '{ "a":1.0}', '{"a":1}'),
    ("unit: the older's spelling where the newer changed nothing", "auto", '{"a":1}', '{"a":1}', '{ "a":1.0}'),
    ("counter: equal sides over an unusable base", {"": "counter"}, "x", "5", "5.0"),
    ("absent: what one side removed and the other left alone is gone", {"/v": {"absent": 5}}, {"v": 7}, {"a": 1}, {"v": 7.0}),
    ("absent: a whole value was removed", {"": {"absent": {"n": 5}}}, {"n": 7}, None, '{ "n":7 }'),
    ("absent: what was removed and changed is changed from what stands for it", {"/v": {"absent": 5}}, {"v": 7}, {}, {"v": 8}),
    ("absent: what was added as what stands for it", {"/v": {"absent": 5}}, {}, {"v": 5}, {"a": 1}),
    ("absent: deeper than can be merged again", {"/a/b/c/d/e/f/g/h/i/j": {"absent": json.loads("[" * 121 + "]" * 121)}},
     '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"j":1}}}}}}}}}}', '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"k":1}}}}}}}}}}',
     '{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"j":2,"l":1}}}}}}}}}}'),
    ("limit: a sum of one digit more than numbers may have", {"/n": "counter"}, '{"n":0}', '{"n":' + "9" * 400 + "}", '{"n":2}'),
    ("limit: a sum of as many digits as numbers may have", {"/n": "counter"}, '{"n":0}', '{"n":' + "9" * 399 + "8}", '{"n":1}'),
    ("limit: a sum whose digits are far apart", {"/n": "counter"}, '{"n":0}', '{"n":1e200}', '{"n":1e-200}'),
    ("limit: a text with one edit more than are looked for", "text", "a b " * 513, "c b " * 513, "a b " * 513 + "d"),
    ("limit: a text with as many edits as are looked for", "text", "a b " * 512, "c b " * 512, "a b " * 512 + "d"),
    ("text: both changed all line ends, each otherwise", "text", "a\nb\n", "a\r\nb\r\n", "a\rb\rc\r"),
    ("text: both changed all line ends, and the older stands", {"as": "text", "pick": "older"}, "a\nb\n", "a\r\nb\r\n", "a\rb\rc\r"),
    ("text: an overlap where line ends were converted", "text", "one\ntwo\nthree\n", "one\r\nzwei\r\nmore\r\nthree\r\n",
     "one\nTWO\nextra\nthree\n"),
    ("counter: both removed it, absent is 0", {"/n": {"as": "counter", "absent": 0}}, {"n": 5}, {}, {"a": 1}),
    ("absent: an object with a counter that both removed", {"/v": {"absent": {"n": 0}}, "/v/n": "counter"}, {"v": {"n": 5}}, {}, {"a": 1}),
    ("register above a counter: equal sides are picked with a record", {"/v": "register", "/v/n": "counter"}, {"v": {"n": 1}},
     {"v": {"n": 2}}, {"v": {"n": 2.0}}),
    ("list: slices that hold one element twice pair", "auto", '["a","a","b"]', '["c","c","b"]', '["d","e","b"]'),
    ("list: an unchanged element in another place pairs with what was there", "auto", "[1,2]", "[7,8]", "[9,1]"),
    ("list: equal replacements are no pair", "auto", "[1,2,3]", "[7,8,3]", "[7,8,3,4]"),
    ("list: new elements in another order on both sides", "auto", '["a"]', '["a","b","c","d"]', '["a","d","c","b"]'),
    ("list: moved on both sides within one gap", "auto", "[1,2,3,4]", "[3,4,2,1]", "[3,4,1,2]"),
    ("list: moved and edited against removed", "auto", [{"id": 1, "v": 0}, {"id": 2}], [{"id": 2}], [{"id": 2}, {"id": 1, "v": 1}]),
    ("list: the second of two equal keys", "auto", [{"id": 1.0, "v": 0}, {"id": 1, "v": 0}], [{"id": 1, "v": 0}, {"id": 1, "v": 1}],
     [{"id": 1, "v": 0}, {"id": 1, "v": 2}]),
    ("set: elements of one key stay", {"as": "set", "key": ["/k"]}, [], [{"k": 1, "a": 1}, {"k": 1, "b": 1}, {"k": 1, "a": 1}],
     [{"k": 1, "a": 2}]),
    ("set: spellings of numbers", "set", "[1,2,10]", "[1.0,2,10]", "[1,2.0,1e1,9]"),
    ("pick: arrays by their elements", {"/v": {"as": "register", "pick": "max"}}, {"v": []}, {"v": [1, 2]}, {"v": [1, 2, 0]}),
    ("pick: objects by their members", {"/v": {"as": "register", "pick": "min"}}, {"v": {}}, {"v": {"b": 1}}, {"v": {"a": 9}}),
    ("pick: arbiter, also of different types", {"/v": {"pick": "arbiter"}}, {"v": 0}, {"v": 1}, {"v": "1"}),
    ("text: overlap that the older wins", {"as": "text", "pick": "older"}, "The cat.", "The dog.", "The fox."),
    ("text: a joiner at the beginning", "text", "\u200d. a", "\u200d. b", "\u200d, a"),
    ("text: line ends of both sides where there were none", "text", "a", "a\n", "a\r\nb\r\n"),
    ("text: line ends of one side alone", "text", "a", "a\r\n", "b"),
    ("text: an insertion slides over what repeats", "text", "零一二九", "零一二一二九", "零一二十九"),
    ("text: insertions that meet", "text", "零一二三一二九", "零一二一二一二三一二一二九", "零一二三一二！九"),
    ("text: lines that meet", {"as": "text", "unit": "line"}, "u\na\nb\nv\na\nb\nw\n", "u\na\nb\na\nb\na\nb\nv\na\nb\na\nb\nw\n",
     "u\na\nb\nv\na\nb\n!\nw\n"),
]  # fmt: skip

#: For each kind: rules at /v, and a base with two changes of it.
KINDS: dict[str, tuple[Any, Any, Any, Any]] = {
    "auto of objects": ("auto", {"k": 0}, {"k": 1}, {"k": 0, "l": 2}),
    "auto of arrays": ("auto", [1], [1, 2], [1, 3]),
    "auto of scalars": ("auto", 0, 1, 2),
    "register": ("register", {"k": 0}, {"k": 1}, {"k": 0, "l": 2}),
    "counter": ("counter", 10, 13, 17),
    "counter with from": ({"as": "counter", "from": 5}, 10, 13, 17),
    "set": ("set", ["a"], ["a", "b"], ["c"]),
    "set with key": ({"as": "set", "key": ["/k"]}, [{"k": 1, "v": 0}], [{"k": 1, "v": 1}], [{"k": 1, "v": 0}, {"k": 2}]),
    "list with key": ({"as": "list", "key": ["/k"]}, [{"k": 1, "v": 0}], [{"k": 1, "v": 1}], [{"k": 2}, {"k": 1, "v": 0}]),
    "list": ("list", [1, 2], [1, 3, 2], [2, 4]),
    "list of values, each once": ({"as": "list", "key": [""]}, ["a", "b"], ["b", "a", "c"], ["a", "d"]),
    "tuple": ("tuple", [1, 2], [3, 2], [1, 4]),
    "text": ("text", "one two", "one 2", "1 two"),
    "text by line": ({"as": "text", "unit": "line"}, "one\ntwo\n", "one\n2\n", "1\ntwo\n"),
    "text whose older side stands": ({"as": "text", "pick": "older"}, "cat", "dog", "fox"),
    "counter with bounds": ({"as": "counter", "min": 0, "max": 18}, 10, 13, 17),
    "bytes": ("bytes", [0], [1], [2]),
    "pick older": ({"pick": "older"}, 0, 1, 2),
    "pick max": ({"pick": "max"}, 0, 1, 2),
    "pick min": ({"pick": "min"}, 0, 1, 2),
    "pick arbiter": ({"pick": "arbiter"}, 0, 1, 2),
    "pick min of a member": ({"as": "register", "pick": {"min": "/t"}}, {"t": 0}, {"t": 1}, {"t": 2}),
    "pick max of a member": ({"as": "register", "pick": {"max": "/t"}}, {"t": 0}, {"t": 1}, {"t": 2}),
    "delete wins": ({"delete": "delete"}, 0, 1, 2),
    "delete wins over objects": ({"delete": "delete"}, {"k": 0}, {"k": 1}, {"k": 0, "l": 2}),
    "absent stands for": ({"absent": 0}, 0, 1, 2),
    "identity": ({"identity": ["/k"]}, {"k": 0}, {"k": 1, "x": 1}, {"k": 2, "y": 1}),
}

#: The absence table: base, newer, older; `q` is `p`, and `c` is `a`, in another spelling.
ABSENCE = ["-a-", "--b", "-aa", "-ab", "p--", "p-p", "pp-", "pap", "ppb", "p-b", "pa-", "paa", "pab"]
ABSENCE += ["-ac", "p-q", "pq-", "paq", "pqb", "pac"]


def cases() -> Iterator[Case]:
    """Yields all cases."""
    yield from FROZEN
    yield from PITFALLS
    yield from READINGS
    yield from OF_SEVERAL_FORMS
    for name, (rule, base, newer, older) in KINDS.items():
        texts = {"p": spelled(base), "a": spelled(newer), "b": spelled(older), "q": otherwise(base), "c": otherwise(newer)}
        for cell in ABSENCE:
            shown = "|".join(cell)
            if rule != "bytes":
                members = ["{}" if which == "-" else f'{{"v":{texts[which]}}}' for which in cell]
                yield (f"{name}: {shown} in an object", {"/v": rule}, *members)
                elements = ["[]" if which == "-" else f'[{{"id":1,"v":{texts[which]}}}]' for which in cell]
                yield (f"{name}: {shown} in an element", {"/*/v": rule}, *elements)
            # A text as a whole is not JSON.
            whole = {key: base if key in "pq" else newer if key in "ac" else older for key in texts} if isinstance(base, str) else texts
            yield (f"{name}: {shown} as a whole", {"": rule}, *(None if which == "-" else whole[which] for which in cell))


def spelled(value: Any) -> str:
    """Returns JSON text."""
    return json.dumps(value, separators=(",", ":"))


def otherwise(value: Any) -> str:
    """Returns the same value in another spelling: white space, members in reverse order, exponents, escapes."""
    if isinstance(value, dict):
        return "{ " + " , ".join(f"{otherwise(name)} : {otherwise(value[name])}" for name in reversed(value)) + " }"
    if isinstance(value, list):
        return "[ " + " , ".join(map(otherwise, value)) + " ]"
    if isinstance(value, str):
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in value) + '"'
    return f"{value}.0e0" if isinstance(value, int) and not isinstance(value, bool) else json.dumps(value)


def encoded(value: Any) -> Optional[bytes]:
    """Returns the bytes of a value of a case."""
    return None if value is None else (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode()


def vectors() -> dict[str, Any]:
    """Returns the contents of the file."""
    found = []
    of_roles = [("", list(cases())), ("saving", SAVES), ("swapped", SWAPPED)]
    for roles, (name, rules, base, newer, older) in [(roles, case) for roles, some in of_roles for case in some]:
        schema = json.dumps({"merge": 1, "ids": {"": rules}}, separators=(",", ":"))
        inputs = [encoded(value) for value in (base, newer, older)]
        merged = m.merge_values(*inputs, r.parse_schema(schema.encode()).rules("a"), app_wins=roles == "saving", swapped=roles == "swapped")
        texts = [None if data is None else data.decode() for data in (*inputs, merged.data)]
        records = [json.loads(j.canonical(record.node("a"))) for record in merged.records]
        found.append({
            "name": name, "schema": schema, "base": texts[0], "newer": texts[1], "older": texts[2], "result": texts[3], "records": records,
            "digest": m.conflicts_digest([("a", record) for record in merged.records]), **({roles: True} if roles else {}),
        })  # fmt: skip
    names = [vector["name"] for vector in found]
    assert len(names) == len(set(names))
    return {"format": 1, "vectors": found}


def text() -> str:
    """Returns the file's text."""
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors()["vectors"])
    return '{"format": 1, "vectors": [\n' + lines + "\n]}\n"


if __name__ == "__main__":
    path = HERE / "vectors.json"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text())
    path.write_text(text())
