"""The model of keys of indexes (keys/), compared with the laws of docs/index-keys.md and with Tests/Vectors/index-keys.json."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any, Optional

import pytest
from documents import json_model as j
from hypothesis import given, settings
from hypothesis import strategies as st
from keys import definition as d
from keys import encoding as e
from keys.folding import fold, read
from keys.search import Index, Question, behind, is_within, scan
from sampling import sample

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "Tests" / "Vectors"

scalars = st.characters(blacklist_categories=["Cs"])
near = st.sampled_from(["\0", "\1", "\2", "a", "A", "b", "é", "e\u0301", "\u0301", "ß", "ss", "ẞ", "한", "한", "\uffff", "\U0001f600", "z"])
strings = st.one_of(st.lists(near, max_size=5).map("".join), st.text(scalars, max_size=8)).map(j.String)
coefficients = st.one_of(st.integers(-120, 120), st.integers(-(10**20), 10**20), st.integers(-(10**399), 10**399))
exponents = st.one_of(st.integers(-4, 4), st.integers(-9_500, 9_500))


def decimal(coefficient: int, exponent: int) -> j.Number:
    value = j.Decimal.of(coefficient, exponent)
    return j.Number(value.text(), value)


numbers = st.builds(decimal, coefficients, exponents)
literals = st.sampled_from([j.NULL, j.FALSE, j.TRUE])
parts = st.one_of(st.none(), literals, numbers, strings)
firsts = st.one_of(literals, numbers, strings)


def tuples(size: int) -> st.SearchStrategy[e.Tuple]:
    return st.tuples(firsts, *[parts] * (size - 1))


pairs = st.integers(1, 3).flatmap(lambda size: st.tuples(tuples(size), tuples(size)))


def sign(number: int) -> int:
    return (number > 0) - (number < 0)


def order(a: bytes, b: bytes) -> int:
    return (a > b) - (a < b)


# MARK: Keys


@pytest.mark.parametrize("folds", [False, True])
@given(pair=pairs)
@settings(max_examples=sample(66, 400))
def test_the_order_of_keys_is_that_of_tuples(pair: tuple[e.Tuple, e.Tuple], folds: bool) -> None:
    a, b = pair
    assert order(e.whole(a, folds), e.whole(b, folds)) == sign(e.compare(a, b, folds))


@given(parts=st.integers(1, 3).flatmap(tuples), data=st.data())
def test_spellings_are_in_order_behind_all_parts(parts: e.Tuple, data: st.DataObject) -> None:
    def spelled(part: e.Part) -> e.Part:
        if not isinstance(part, j.String):
            return part
        how = data.draw(st.sampled_from([str, fold, lambda text: unicodedata.normalize("NFD", text), lambda text: text + "\u0301"]))
        return j.String(how(part.text))

    others = tuple(spelled(part) for part in parts)
    assert order(e.whole(parts, True), e.whole(others, True)) == sign(e.compare(parts, others, True))
    others = tuple(j.String(part.text + "\u0301") if isinstance(part, j.String) else part for part in parts)
    assert e.encoded_parts(parts, True) == e.encoded_parts(others, True)
    assert (e.whole(parts, True) < e.whole(others, True)) == any(isinstance(part, j.String) for part in parts)


@given(a=numbers, b=numbers)
@settings(max_examples=sample(66, 400))
def test_numbers_are_in_order_of_their_values(a: j.Number, b: j.Number) -> None:
    assert order(e.encoded_part(a, False), e.encoded_part(b, False)) == sign(a.value.compare(b.value))


def test_every_type_stands_in_its_place() -> None:
    texts = ["null", "false", "true", "-1e9999", "-10", "-9.5", "-1e-9999", "0", "1e-9999", "0.5", "0.51", "1", "1.5", "9", "10", "99",
        "1e400",
             "9e9999", '""', r'"\u0000"', r'"\u0000\u0000"', r'"\u0001"', '" "', '"a"', r'"a\u0000"', '"aa"', '"b"', '"é"', '"\uffff"',
             '"😀"']  # fmt: skip
    values: list[e.Part] = [None, *(j.parse(text.encode(), scalar=True) for text in texts)]  # type: ignore[list-item]
    for i, a in enumerate(values):
        for k, b in enumerate(values):
            assert order(e.encoded_part(a, False), e.encoded_part(b, False)) == sign(i - k), (a, b)


@pytest.mark.parametrize("spellings", [("10", "1e1", "10.0", "100e-1", "1.0E+1"), ("0", "-0", "0e5", "0.000"), ("-2.50", "-25e-1")])
def test_equal_numbers_are_one_key(spellings: tuple[str, ...]) -> None:
    assert len({e.encoded((j.number(text),), False) for text in spellings}) == 1


@pytest.mark.parametrize("folds", [False, True])
@given(pair=pairs)
@settings(max_examples=sample(66, 400))
def test_no_key_begins_with_another(pair: tuple[e.Tuple, e.Tuple], folds: bool) -> None:
    a, b = (e.encoded(parts, folds) for parts in pair)
    assert a == b or not (a.startswith(b) or b.startswith(a))
    first, second = (e.encoded_part(parts[0], folds) for parts in pair)
    assert first == second or not (first.startswith(second) or second.startswith(first))


@pytest.mark.parametrize("folds", [False, True])
@given(parts=st.integers(1, 3).flatmap(tuples), value_id=st.binary(min_size=1, max_size=8))
def test_a_key_yields_its_tuple(parts: e.Tuple, folds: bool, value_id: bytes) -> None:
    key = e.encoded(parts, folds)
    decoded = e.decode(key + value_id, len(parts), folds)
    assert decoded.size == len(key)
    if decoded.parts is None:
        assert len(e.whole(parts, folds)) > e.LIMIT
    else:
        assert e.compare(decoded.parts, parts, False) == 0


@pytest.mark.parametrize("folds", [False, True])
@given(data=st.one_of(st.binary(max_size=12), st.tuples(tuples(2), st.binary(max_size=2), st.integers(0, 40)).map(
    lambda made: e.encoded(made[0], False)[: made[2]] + made[1])), count=st.integers(1, 2))  # fmt: skip
@settings(max_examples=sample(100, 600))
def test_bytes_are_a_key_that_is_written_so_or_none(data: bytes, count: int, folds: bool) -> None:
    try:
        decoded = e.decode(data, count, folds)
    except e.NoKey:
        return
    assert decoded.parts is not None and e.encoded(decoded.parts, folds) == data[: decoded.size]


@pytest.mark.parametrize("folds", [False, True])
@given(text=strings, begin=strings, head=st.lists(parts, max_size=2))
@settings(max_examples=sample(66, 400))
def test_keys_of_strings_begin_as_the_strings_do(text: j.String, begin: j.String, head: list[e.Part], folds: bool) -> None:
    def same(string: str) -> str:
        return fold(string) if folds else string

    for what in (text.text, begin.text + text.text):
        key = e.encoded_parts([*head, j.String(what)], folds)
        assert key.startswith(e.encoded_prefix(head, begin.text, folds)) == same(what).startswith(same(begin.text))


@given(pair=pairs, common=st.integers(990, 1_030), folds=st.booleans())
@settings(max_examples=sample(66, 400))
def test_what_is_cut_stays_in_order(pair: tuple[e.Tuple, e.Tuple], common: int, folds: bool) -> None:
    long = j.String("x" * common)
    a, b = ((long, *parts) for parts in pair)
    kept, whole = [e.encoded(parts, folds) for parts in (a, b)], [e.whole(parts, folds) for parts in (a, b)]
    assert all(len(key) <= e.LIMIT for key in kept)
    assert order(*kept) in (0, order(*whole))
    if kept[0] == kept[1]:
        assert whole[0] == whole[1] or kept[0][-1] == e.CUT
    assert [key[-1] == e.CUT for key in kept] == [len(key) > e.LIMIT for key in whole]


@given(pair=pairs, sizes=st.tuples(st.integers(990, 1_030), st.integers(990, 1_030)))
@settings(max_examples=sample(66, 400))
def test_a_cut_key_yields_true_parts(pair: tuple[e.Tuple, e.Tuple], sizes: tuple[int, int]) -> None:
    a, b = ((j.String("x" * size), *parts) for size, parts in zip(sizes, pair))
    whole, bound = e.whole(a, False), e.encoded_parts(b, False)
    for low, high in ((bound, None), (b"", bound), (bound, behind(bound)), (behind(bound) or b"", None)):
        answer = is_within(e.cut(whole), low, high)
        assert answer in (None, whole >= low and (high is None or whole < high))
        if len(bound) < e.LIMIT:
            assert answer is not None


# MARK: Folding


@given(a=st.text(scalars), b=st.text(scalars))
def test_folding_is_by_scalar_and_once_is_enough(a: str, b: str) -> None:
    assert fold(a + b) == fold(a) + fold(b)
    assert fold(fold(a)) == fold(a)


def test_folding_every_scalar_once_is_enough() -> None:
    """The usual run tests the scalars in the table, their foldings, and some of the others."""
    named = read(VECTORS / "index-folding.txt")
    scalars = {*named, *(ord(char) for result in named.values() for char in result), *range(0x80, 0x110000, 101)}
    for scalar in sorted(sample(scalars, set(range(0x110000))) - set(range(0xD800, 0xE000))):
        assert fold(fold(chr(scalar))) == fold(chr(scalar)), hex(scalar)


@given(text=st.text(scalars))
def test_folding_does_not_see_how_a_string_is_composed(text: str) -> None:
    # Scalars that every Python's Unicode and the table's know.
    text = "".join(char for char in text if unicodedata.ucd_3_2_0.category(char) != "Cn")
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize("a, b", [("Straße", "STRASSE"), ("Ångström", "angstrom"), ("É", "e"), ("ﬁ", "FI"), ("Ё", "е"), ("Σς", "σσ"),
                                  ("İ", "i"), ("한", "한"), ("שָׁלוֹם", "שלום"), ("K", "k")])  # fmt: skip
def test_what_folds_alike(a: str, b: str) -> None:
    assert fold(a) == fold(b)


@pytest.mark.parametrize("a, b", [("ø", "o"), ("ł", "l"), ("か", "が"), ("ı", "i"), ("æ", "ae"), ("कि", "क"), ("ａ", "a")])
def test_what_does_not(a: str, b: str) -> None:
    assert fold(a) != fold(b)


def test_the_table_is_what_it_is_made_from() -> None:
    sys.path.insert(0, str(VECTORS))
    import index_folding

    if unicodedata.unidata_version == index_folding.UNICODE:
        assert index_folding.table() == index_folding.TABLE.read_text(encoding="ascii")
        return
    # Newer versions of Unicode add scalars, and do not change existing ones.
    table = read(index_folding.TABLE)
    for scalar, result in table.items():
        assert unicodedata.category(chr(scalar)) == "Cn" or index_folding.folded(scalar) == result or not result, hex(scalar)


# MARK: Definitions and questions

members = st.sampled_from(["a", "b", "c"])
some_scalars = st.one_of(literals, st.builds(decimal, st.integers(-2, 2), st.just(0)), st.sampled_from(["", "a", "A", "á", "ab",
    "b"]).map(j.String))
nodes: st.SearchStrategy[j.Node] = st.recursive(
    some_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: j.Array(tuple(items))),
        st.dictionaries(members, inner, max_size=3).map(lambda made: j.Object(tuple(made.items()))),
    ),
    max_leaves=8,
)
documents = st.one_of(nodes.map(j.canonical), st.sampled_from([b"", b"\xff", b"{", b'{"a":1,"a":2}']))
pointers = st.sampled_from(["/a", "/b", "/a/*", "/a/*/b", "/a/*/c", "/*", "", "/a/0", "/b/*", "/a/*/*"])
conditions = st.dictionaries(st.sampled_from(["/b", "/a/0", "/c"]), st.sampled_from([True, None, 1, "a", {"present": True},
    {"present": False}]), max_size=1)
definitions = st.builds(
    lambda on, text, where: d.definition(j.parse(json.dumps({"prefix": "v", "on": on, "text": text, "where": where}).encode())),
    st.lists(pointers, min_size=1, max_size=3, unique=True), st.sampled_from(["bytes", "fold"]), conditions,
)  # fmt: skip
stores = st.dictionaries(st.sampled_from([b"v", b"v1", b"v2", b"v3", b"w", b"__llvs_x"]), documents, max_size=5)


@st.composite
def questions(draw: st.DrawFn, count: int) -> Question:
    part = st.one_of(st.none(), some_scalars)
    equal = tuple(draw(st.lists(part, max_size=count)))
    if len(equal) < count and draw(st.booleans()):
        return Question(equal, begin=draw(st.sampled_from(["", "a", "A", "ab", "á"])))
    rest = count - len(equal)
    low, high = (tuple(draw(st.lists(part, max_size=rest))) for _ in range(2))
    return Question(equal, None, low, draw(st.booleans()), high, draw(st.booleans()))


@given(definition=definitions, values=stores, data=st.data())
@settings(max_examples=sample(100, 600))
def test_an_index_finds_what_a_scan_finds(definition: d.Definition, values: dict[bytes, bytes], data: st.DataObject) -> None:
    index, question = Index(definition, values), data.draw(questions(len(definition.on)))
    found = index.find(question)
    assert {entry.id for entry in found} == scan(definition, values, question)
    assert found == index.find(question, reverse=True)[::-1]
    for reverse in (False, True):
        size, pages, last = data.draw(st.integers(1, 3)), [], None
        while page := index.find(question, reverse, last, size):
            pages += page
            last = page[-1]
        assert pages == index.find(question, reverse)
    for value_id, value in values.items():
        assert (definition.why_not(value_id, value) is None) == any(entry.id == value_id for entry in index.entries)


@given(sizes=st.lists(st.integers(1_010, 1_030), max_size=5, unique=True), bound=st.integers(1_005, 1_035), data=st.data())
@settings(max_examples=sample(33, 200))
def test_long_keys_are_checked_against_the_value(sizes: list[int], bound: int, data: st.DataObject) -> None:
    definition = d.definition(j.parse(b'{"prefix":"","on":["/a"]}'))
    values = {b"%d" % size: json.dumps({"a": "x" * size}).encode() for size in sizes}
    at = (j.String("x" * bound),)
    for question in (Question(at), Question(begin="x" * bound), Question(low=at, low_open=data.draw(st.booleans())), Question(high=at,
        high_open=True)):
        assert {entry.id for entry in Index(definition, values).find(question)} == scan(definition, values, question)


def test_what_is_chosen_for_one_star_holds_for_all_that_share_it() -> None:
    data = b'{"phones":[{"type":"home","number":1},{"type":"work","number":2}],"tags":["x","y"]}'
    shared = d.definition(j.parse(b'{"prefix":"","on":["/phones/*/type","/phones/*/number"]}'))
    apart = d.definition(j.parse(b'{"prefix":"","on":["/phones/*/type","/tags/*"]}'))
    assert len(shared.keys(b"v", data)) == 2
    assert len(apart.keys(b"v", data)) == 4


def test_too_many_keys_are_none() -> None:
    definition = d.definition(j.parse(b'{"prefix":"","on":["/a/*","/b/*"]}'))
    for size, expected in ((100, None), (101, "too-many-keys")):
        data = json.dumps({"a": list(range(100)), "b": list(range(size)), "large enough": "x" * 8_000}).encode()
        assert definition.why_not(b"v", data) == expected
        assert len(definition.keys(b"v", data)) == (0 if expected else 10_000)


def test_keys_that_take_too_much_room_are_none() -> None:
    """A byte more in the value is room for 64 bytes more of keys."""
    definition = d.definition(j.parse(b'{"prefix":"","on":["/a/*","/b/*"]}'))

    def why(rest: int, value_id: bytes) -> Optional[str]:
        return definition.why_not(value_id, json.dumps({"a": ["x" * 500], "b": list(range(1, 100)) * 2, "rest": "x" * rest}).encode())

    for value_id in (b"v", b"v" * 100):
        rest = next(rest for rest in range(2_000) if why(rest, value_id) is None)
        # Each number is two bytes of exponent, one of digits, and two around them.
        size = 198 * (502 + 5 + 1 + len(value_id) + 32)
        data = len(json.dumps({"a": ["x" * 500], "b": list(range(1, 100)) * 2, "rest": "x" * rest}))
        assert 0 <= 16_384 + 64 * (data + len(value_id)) - size < 64 and rest > 0
        assert why(rest - 1, value_id) == "too-many-keys"


def test_a_star_that_is_shared_is_counted_once() -> None:
    definition = d.definition(j.parse(b'{"prefix":"","on":["/p/*/a","/p/*/b"]}'))
    data = json.dumps({"p": [{"a": i, "b": -i} for i in range(10_000)]}).encode()
    assert len(definition.keys(b"v", data)) == 10_000


def test_one_definition_that_is_not_valid_takes_no_other_with_it() -> None:
    found, problems = d.declared(j.parse(b'{"indexes":{"a":{"prefix":"","on":["/x"]},"b/":{"prefix":"","on":["x"]},"":{}}}'))
    assert list(found) == ["a"]
    assert [problem.pointer for problem in problems] == ["/indexes/", "/indexes/b~1/on/0"]


def test_definitions_that_mean_the_same_are_one() -> None:
    texts = [b'{"prefix":"a","on":["/x"]}', b'{"on":["/x"],"prefix":"a","text":"bytes","where":{}}']
    assert len({d.definition(j.parse(text)).digest for text in texts}) == 1


# MARK: Vectors and the page


def _vectors() -> Any:
    return json.loads((VECTORS / "index-keys.json").read_text(encoding="utf-8"))


def test_the_vectors_are_what_the_model_makes() -> None:
    made = subprocess.run([sys.executable, str(VECTORS / "index_keys.py"), "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_the_vectors_stand_in_order() -> None:
    for group in _vectors()["orders"]:
        keys = [bytes.fromhex(item["key"]) for item in group["tuples"]]
        assert keys == sorted(keys), group["name"]


def test_the_examples_of_the_page() -> None:
    page = (ROOT / "docs" / "index-keys.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\[.*\])` \| (no|yes) \| `([0-9A-F ]+)` \|$", page, re.MULTILINE)
    assert len(rows) >= 12
    for text, folds, key in rows:
        parts = tuple(None if isinstance(item, j.Object) else item for item in j.parse(text.encode()).items)  # type: ignore[union-attr]
        assert e.encoded(parts, folds == "yes").hex(" ").upper() == key, text  # type: ignore[arg-type]
