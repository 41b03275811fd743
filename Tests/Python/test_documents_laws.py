"""The laws of merging inside values on random inputs, in the engine. test_documents_tables.py lists the tests of each law."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal
from typing import Any, Iterator, Optional

import llvs
from documents import json_model as j
from documents import rules as r
from random_documents import Generator, dumps
from sampling import sample

Texts = list[Optional[bytes]]


def merge(o: Optional[bytes], x: Optional[bytes], y: Optional[bytes], rules: Any = "auto", **options: Any) -> llvs.merge.MergedValue:
    return llvs.merge.merge_values(o, x, y, dumps(rules).encode(), **options)


def data(value: Any) -> bytes:
    return json.dumps(value).encode()


def value(merged: llvs.merge.MergedValue) -> Any:
    return json.loads(merged.data or b"null")


def cases(seed: int, count: int, without: tuple[str, ...] = ()) -> Iterator[tuple[Any, Texts]]:
    """Random valid rules without the given words, and three texts."""
    number = 0
    while count:
        number += 1
        rules, texts = Generator(random.Random(seed * 100_000 + number)).case()
        written = dumps(rules)
        if any(f'"{word}"' in written for word in without):
            continue
        try:
            r.parse_schema(('{"merge":1,"ids":{"":' + written + "}}").encode())
        except r.InvalidSchema:
            continue
        count -= 1
        yield rules, texts


def mergeable(text: Optional[bytes]) -> Optional[j.Node]:
    try:
        return None if text is None else j.parse(text)
    except j.NotMergeable:
        return None


def test_l1_unit() -> None:
    """M(o,o,y)=y and M(o,x,o)=x, byte for byte."""
    for rules, (o, x, y) in cases(1, sample(200, 800)):
        for side in (x, y):
            if side is None and '"absent"' in dumps(rules):
                continue
            for merged in (merge(o, o, side, rules), merge(o, side, o, rules)):
                assert merged.data == side and not merged.records, (rules, o, side)


def test_l2_same() -> None:
    """M(o,x,x)=x where no rule is a counter."""
    for rules, (o, x, _) in cases(2, sample(200, 800), without=("counter",)):
        if x is None and '"absent"' in dumps(rules):
            continue
        merged = merge(o, x, x, rules)
        assert merged.data == x and not merged.records, (rules, o, x)


def test_l2c_same_of_counters() -> None:
    """M(o,x,x)=2x-o, exactly."""
    chance, exact = random.Random(3), Context(prec=900)
    for _ in range(sample(125, 500)):
        o, x = (f"{chance.choice(['', '-'])}{chance.randrange(10 ** chance.choice([1, 3, 25]))}e{chance.randrange(-30, 30)}" for _ in "ox")
        merged = merge(f'{{"n":{o}}}'.encode(), f'{{"n":{x}}}'.encode(), f'{{"n":{x}}}'.encode(), {"/n": "counter"})
        found = json.loads(merged.data or b"", parse_float=Decimal, parse_int=Decimal)["n"]
        wanted = Decimal(x) if Decimal(o) == Decimal(x) else exact.subtract(exact.multiply(2, Decimal(x)), Decimal(o))
        assert found == wanted, (o, x)


def test_l3_total() -> None:
    """Every input gives a result: one of the sides, or JSON in which no name occurs twice."""
    chance = random.Random(4)
    for rules, texts in cases(4, sample(200, 800), without=("text",)):
        for at in range(3):
            if texts[at] is not None and chance.randrange(3) == 0:
                broken = bytearray(texts[at] or b"{}")
                for _ in range(chance.choice([1, 1, 3])):
                    place = chance.randrange(len(broken) + 1)
                    noise = chance.choices(b'{}[],:"\\0123456789.eu\x00\xff abc', k=chance.randrange(3))
                    broken[place : place + chance.randrange(3)] = bytes(noise)
                texts[at] = bytes(broken)
        merged = merge(*texts, rules)
        assert merged.data is None or merged.data in texts or j.parse(merged.data, scalar=True)


def test_l4_pure_on_many_threads() -> None:
    """The result is the same on one thread and on four. The vectors test fresh processes and all bindings."""
    given = list(cases(5, sample(75, 300)))

    def work(case: tuple[Any, Texts]) -> tuple[Optional[bytes], str]:
        merged = merge(*case[1], case[0])
        return merged.data, merged.digest

    alone = [work(case) for case in given]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(work, given)) == alone


def leaves(node: Optional[j.Node]) -> set[bytes]:
    if isinstance(node, j.Object):
        return set().union(*(leaves(child) for _, child in node.members))
    if isinstance(node, j.Array):
        return set().union(*map(leaves, node.items))
    return set() if node is None else {j.identity(node)}


def test_l5_no_invention() -> None:
    """Each leaf occurs in the base or on a side, except in texts and counters, and for absent values of rules."""
    for rules, texts in cases(6, sample(200, 800), without=("text", "counter", "absent", "schema")):
        result = mergeable(merge(*texts, rules).data)
        assert leaves(result) <= set().union(*(leaves(mergeable(text)) for text in texts)), (rules, texts)


def test_l6_disjoint() -> None:
    """Edits at disjoint paths of objects and keyed elements are both there, without a record."""
    chance = random.Random(7)
    for _ in range(sample(100, 400)):
        base = {name: {"f": 0, "list": [{"id": number, "a": 0, "b": 0} for number in range(chance.randrange(5))]} for name in "abc"}
        x, y, both = (json.loads(json.dumps(base)) for _ in range(3))
        for name in "abc":
            sides = [x, y] if chance.randrange(2) else [y, x]
            for side in (sides[0], both):
                side[name]["f"] = 1
            for number, _ in enumerate(base[name]["list"]):
                for side in (x, both):
                    side[name]["list"][number]["a"] = number + 10
                for side in (y, both):
                    side[name]["list"][number]["b"] = number + 20
            gone, new = chance.randrange(2), chance.randrange(2)
            for side in (sides[1], both):
                if new:
                    side[name]["list"].append({"id": "new"})
                side[name][f"added {gone}"] = [1]
        merged = merge(data(base), data(x), data(y))
        assert value(merged) == both and not merged.records


def scalars(node: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(node, dict):
        return {path: node}
    return {at: leaf for name, child in node.items() for at, leaf in scalars(child, (*path, name)).items()}


def test_l7_no_silent_loss() -> None:
    """Each change of a side is in the result, or a record has its place or one above it."""
    chance = random.Random(8)

    def tree(depth: int) -> Any:
        if depth <= 0 or chance.randrange(3) == 0:
            return chance.randrange(4)
        return {name: tree(depth - 1) for name in chance.sample("abcd", chance.randrange(1, 4))}

    def edit(node: Any, depth: int) -> Any:
        if not isinstance(node, dict) or chance.randrange(6) == 0:
            return tree(depth)
        out = dict(node)
        for name in chance.sample("abcd", chance.randrange(3)):
            if name in out and chance.randrange(4) == 0:
                del out[name]
            else:
                out[name] = edit(out.get(name, 0), depth - 1)
        return out

    rule_sets: list[Any] = ["auto", {"/a": "register"}, {"/*/*": {"pick": "older"}}, {"/*": {"delete": "delete"}},
        {"/b": {"pick": "max"}, "/c": {"identity": ["/a"]}}]
    for _ in range(sample(375, 1500)):
        base = {"a": tree(3), "b": tree(3), "c": tree(2)}
        x, y = (edited if isinstance(edited, dict) else base for edited in (edit(base, 3), edit(base, 3)))
        merged = merge(data(base), data(x), data(y), chance.choice(rule_sets))
        result, was = scalars(value(merged)), scalars(base)
        told = [record.path for record in merged.records]
        for side in (scalars(x), scalars(y)):
            for path in was.keys() | side.keys():
                if side.get(path) != was.get(path) and result.get(path) != side.get(path):
                    assert any(path[: len(at)] == tuple(at) for at in told), (base, x, y, path)


def unordered(node: Optional[j.Node]) -> Any:
    if isinstance(node, j.Object):
        return {name: unordered(child) for name, child in node.members}
    if isinstance(node, j.Array):
        return sorted((unordered(item) for item in node.items), key=repr)
    return None if node is None else j.identity(node)


def test_l8_role_swap() -> None:
    """Exchanging the sides changes the contents of records, and the order of elements."""
    looked_at = 0
    for rules, (o, x, y) in cases(9, sample(375, 1500), without=("text",)):
        one, other = merge(o, x, y, rules), merge(o, y, x, rules)
        if one.records or other.records:
            continue
        looked_at += 1
        assert unordered(mergeable(one.data)) == unordered(mergeable(other.data)), (rules, o, x, y)
    assert looked_at > sample(75, 300)


def test_l9_lists_of_keyed_elements() -> None:
    """The result has the surviving keys, each once. Elements that one side inserted together stay together."""
    chance = random.Random(10)
    for _ in range(sample(200, 800)):
        base = [{"id": number, "v": 0} for number in range(chance.randrange(9))]
        sides = []
        for name in "xy":
            side = [dict(element) for element in base]
            for number in range(chance.randrange(4)):
                what, at = chance.randrange(4), chance.randrange(len(side) + 1)
                if what == 0:
                    side[at:at] = [{"id": f"{name}{number}{k}", "v": 0} for k in range(chance.randrange(1, 4))]
                elif what == 1 and side:
                    side.insert(at, side.pop(chance.randrange(len(side))))
                elif what == 2 and side:
                    del side[chance.randrange(len(side))]
                elif side:
                    chance.choice(side)["v"] = number + 1
            sides.append(side)
        merged = [element["id"] for element in value(merge(data(base), data(sides[0]), data(sides[1])))]
        was = {element["id"]: element for element in base}
        x, y = ({element["id"]: element for element in side} for side in sides)
        survive = {key for key in was.keys() | x.keys() | y.keys()
            if (key not in was) or (key in x and key in y) or any(key in side and side[key] != was[key] for side in (x, y))}
        assert len(merged) == len(set(merged)) and set(merged) == survive
        for side in sides:
            ids = [element["id"] for element in side]
            for first, second in zip(ids, ids[1:]):
                if first not in was and second not in was:
                    assert merged.index(second) == merged.index(first) + 1


def test_l13_revert() -> None:
    """At the version itself a revert restores its predecessor. Reverting the revert restores the version, and edits of other members
    stay."""
    chance = random.Random(11)
    for rules, (_, v, p) in cases(11, sample(75, 300)):
        assert merge(v, v, p, rules).data == p or '"absent"' in dumps(rules)
    for _ in range(sample(75, 300)):
        p = {name: chance.randrange(5) for name in "abcdef"}
        v = {**p, "a": 10, "b": [1]}
        h = {**v, "c": 11}
        reverted = value(merge(data(v), data(h), data(p)))
        assert reverted == {**p, "c": 11}
        later = {**reverted, "d": 12}
        assert value(merge(data(reverted), data(later), data(h))) == {**h, "d": 12}


def test_l14_splice() -> None:
    """Each save of a program preserves what the program does not know, in objects and in keyed elements that it keeps."""
    chance = random.Random(12)

    def whole(depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {"known": chance.randrange(5), "unknown": chance.randrange(1000)}
        if depth:
            made["inner"] = whole(depth - 1)
            made["list"] = [{"id": number, **whole(depth - 1)} for number in range(chance.randrange(4))]
        return made

    def decoded(node: Any) -> Any:
        if isinstance(node, list):
            return [decoded(item) for item in node]
        return {name: decoded(child) for name, child in node.items() if name != "unknown"} if isinstance(node, dict) else node

    def edited(node: Any) -> Any:
        """Edits a value: the part that the program knows, or the whole in the same way."""
        node["known"] += chance.randrange(3)
        if "inner" in node:
            edited(node["inner"])
            items = node["list"]
            for item in items:
                edited(item)
            if items and chance.randrange(2):
                items.pop(chance.randrange(len(items)))
            chance.shuffle(items)

    for _ in range(sample(75, 300)):
        read = whole(2)
        wanted = json.loads(json.dumps(read))
        edited(wanted)
        saved = merge(data(decoded(read)), data(decoded(wanted)), data(read), saving=True)
        assert value(saved) == wanted


def test_l15_fixpoint() -> None:
    """A computed result is written in the form in which it would be written again."""
    looked_at = 0
    for rules, texts in cases(13, sample(300, 1200), without=("text",)):
        merged = merge(*texts, rules)
        if merged.data and merged.data not in texts:
            looked_at += 1
            assert j.canonical(j.parse(merged.data, scalar=True)) == merged.data, (rules, texts)
    assert looked_at > sample(50, 200)


def test_l17_locality() -> None:
    """Equal lines before and after, separated by unique lines, do not change the result between them."""
    chance = random.Random(14)
    for _ in range(sample(200, 800)):
        words = ["a", "b", " ", "c", ".", "\n"]
        o, before, behind = ("".join(chance.choices(words, k=chance.randrange(8))) for _ in range(3))
        x, y = (Generator(chance).edited(o, chance.randrange(4)) for _ in "xy")
        if any(not isinstance(text, str) or "\r" in text for text in (x, y)):
            continue
        # Whole lines, since the end of the last line is merged separately.
        texts = [text if not text or text.endswith("\n") else text + "\n" for text in (o, x, y)]
        alone = (merge(*(text.encode() for text in texts), "text").data or b"").decode()
        parts = [f"{before}\n#\n{text}@\n{behind}".encode() for text in texts]
        assert merge(*parts, "text").data == f"{before}\n#\n{alone}@\n{behind}".encode(), texts


def test_not_laws() -> None:
    """Counterexamples, so that no code relies on them: merging is not associative, does not absorb, and depends on which side is newer."""
    o = data(["-"])
    a, b, c = (data(["-", name]) for name in "abc")
    ab_c = merge(o, merge(o, a, b).data, c)
    a_bc = merge(o, a, merge(o, b, c).data)
    assert value(ab_c) == ["-", "c", "b", "a"] and value(a_bc) == ["-", "c", "b", "a"]
    ab, bc = merge(o, b, a).data, merge(o, b, c).data
    assert value(merge(o, c, ab)) == ["-", "a", "b", "c"] != value(merge(o, bc, a))
    n = [data({"n": number}) for number in (0, 1, 2)]
    assert value(merge(n[0], merge(n[0], n[1], n[2], {"/n": "counter"}).data, n[1], {"/n": "counter"})) == {"n": 4}
    assert value(merge(o, a, b)) != value(merge(o, b, a))
