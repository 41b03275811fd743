"""The model of merging texts and lists of plain values: the examples of the specification (texts.md), its readings, and its properties.

Only the model is tested here, not the engine.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

import pytest

import llvs
from documents import alignment as a
from documents import json_model as j
from documents import merge as m
from documents import plain_lists as p
from documents import rules as r
from documents import text as t
from documents import tokens as k
from documents import words as w
from documents.sequences import keys_of
from random_texts import MIXED, Texts, Writer
from sampling import drawn, sample

VECTORS = Path(__file__).resolve().parents[1] / "Vectors" / "documents"
CASES: dict[str, list[dict[str, Any]]] = json.loads((VECTORS / "texts.json").read_text("utf-8"))


def rule_set(rule: Any) -> r.RuleSet:
    """A rule for the whole value of any id."""
    return r.parse_schema(json.dumps({"merge": 1, "ids": {"": {"": rule}}}).encode()).rules("any")


def encoded(value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def merged(o: Any, x: Any, y: Any, rule: Any = "auto") -> m.Merged:
    return m.merge_values(encoded(o), encoded(x), encoded(y), rule_set(rule))


def told(found: m.Merged) -> list[dict[str, Any]]:
    members = [json.loads(j.canonical(record.node())) for record in found.records]
    return [{name: one[name] for name in ("kind", "o", "x", "y", "result") if name in one} for one in members]


# The examples and the readings.


@pytest.mark.parametrize("case", CASES["examples"] + CASES["readings"], ids=lambda case: case["name"])
def test_cases(case: dict[str, Any]) -> None:
    """The result of each case, and its records."""
    found = merged(case["o"], case["x"], case["y"], case["rule"])
    assert found.data is not None
    is_text = case["rule"] == "text" or isinstance(case["rule"], dict) and case["rule"]["as"] == "text"
    assert (found.data.decode() if is_text else json.loads(found.data)) == case["result"]
    assert told(found) == case["records"]


def test_there_are_53_examples() -> None:
    """35 of texts and 15 of lists. (That they are those of the specification is held where they are made.)"""
    assert [case["name"] for case in CASES["examples"]] == [*map(str, range(1, 36)), *(f"L{number}" for number in range(1, 19))]
    assert subprocess.run([sys.executable, str(VECTORS / "texts.py"), "--check"], check=False).returncode == 0


@pytest.mark.parametrize("case", CASES["choose"], ids=lambda case: case["name"])
def test_choose(case: dict[str, Any]) -> None:
    assert t.choose(*(case[name] for name in ("made", "start", "count", "chosen", "now"))) == case["result"]


@pytest.mark.parametrize("rule,where", [({"unit": "char"}, "unit"), ({"overlap": "both"}, "overlap"), ({"overlap": "pick"}, "overlap")])
def test_options_that_are_gone(rule: dict[str, str], where: str) -> None:
    """Options that no longer exist are refused like unknown options (10)."""
    with pytest.raises(r.InvalidSchema) as caught:
        r.parse_schema(json.dumps({"merge": 1, "ids": {"a": {"/x": {"as": "text", **rule}}}}).encode())
    assert caught.value.where == f"/ids/a/~1x/{where}"


# Parts.


def test_lines_words_and_tokens() -> None:
    assert k.lines("a\nb\r\nc\rd\x0b\x85\u2028e") == ["a\n", "b\r\n", "c\r", "d\x0b\x85\u2028e"]
    assert k.words("- Hi, naïve 日本x\u3000y。\n") == ["Hi", "naïve", "日", "本", "x", "y。"]
    assert not k.has_word("--- *** \t\u3000\r\n")
    assert k.tokens("At 10:30, 3.50\t  http://a/b?c 갔다") == ["At", " ", "10:30,", " ", "3.50", "\t  ", "http://a/b?c", " ", "갔다"]
    assert k.tokens("日\u0301本\U000e0100x\u0301 か\u3099") == ["日\u0301", "本\U000e0100", "x\u0301", " ", "か\u3099"]
    assert k.tokens("🏳\ufe0f\u200d🌈👍🏽 🇩🇪") == ["🏳\ufe0f\u200d🌈👍🏽", " ", "🇩🇪"]


def distance(one: str, other: str) -> int:
    """Insertions and removals between two texts."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one):
        before, row = row, [i + 1]
        for at, right in enumerate(other):
            row.append(before[at] if left == right else 1 + min(before[at + 1], row[at]))
    return row[-1]


def test_alignment() -> None:
    """Only equal tokens are kept, in their order. If no token is unique, the script is a shortest one. No hunk can slide further."""
    chance = random.Random(5)
    for _ in range(sample(500, 5000)):
        letters = chance.choice(["ab", "abc", "abcdef"])
        one = [chance.choice(letters) for _ in range(chance.randrange(2, 12))]
        other = [chance.choice(letters) for _ in range(chance.randrange(2, 12))]
        if letters == "ab":
            one, other = [*one, *"abab"], [*other, *"baba"]
        pairs = a.align(one, other, a.Budget())
        assert all(one[i] == other[at] for i, at in pairs)
        assert all(i < p and at < q for (i, at), (p, q) in zip(pairs, pairs[1:]))
        if letters == "ab":
            assert len(one) + len(other) - 2 * len(pairs) == distance("".join(one), "".join(other))
        for hunk in a.hunks(pairs, (0, len(one)), (0, len(other))):
            if hunk.end < len(one) and (hunk.inserts or hunk.removes):
                assert one[hunk.end] != (other[hunk.first] if hunk.inserts else one[hunk.start])


def test_limits() -> None:
    """A part of more than 1,024 edits, and one that the budget does not reach, are one replacement. Steps are counted."""
    chance = random.Random(6)
    one, other = ([chance.choice("ab") for _ in range(4000)] for _ in range(2))
    budget = a.Budget()
    assert not a.align(one, [*other, "c"], budget)[50:] and budget.limited and budget.steps == 1025 * 1026 // 2
    budget = a.Budget(a.MAX_STEPS - 5)
    assert a.align("abab", "baba", budget) == [] and budget.limited and budget.left == 2
    budget = a.Budget(a.MAX_STEPS - 6)
    assert a.align("abab", "baba", budget) == [(1, 0), (2, 1), (3, 2)] and not budget.limited and budget.left == 0


def test_units_of_pairing() -> None:
    """A hunk that needs more units than remain, or more than 2^22, stays unpaired and uses none."""
    base, side = ["a b\n", "c\n"], ["a\n"]
    budget = a.Budget()
    assert t.pair_hunk(base, side, set(), budget) == [(0, 0)] and budget.steps == 1 * (3 + 2) + 2 * (1 + 1)
    budget = a.Budget(a.MAX_STEPS - 8)
    assert t.pair_hunk(base, side, set(), budget) == [] and budget.left == 8 and not budget.limited
    many = ["a\n"] * 1024
    assert t.pair_hunk(many, [*many, "a\n"], set(), a.Budget()) == []
    assert len(t.pair_hunk(many[:100], many[:100], set(), a.Budget())) == 100


def brute_pairs(base: list[str], side: list[str]) -> list[tuple[int, int]]:
    """Returns the pairs of lines, found by trying all: of the assignments of the largest weight, the one that pairs as early as possible,
    and otherwise leaves O's line unpaired."""

    def weight(i: int, at: int) -> int:
        one, other = k.words(base[i]), k.words(side[at])
        common = sum((Counter(one) & Counter(other)).values())
        return common if 2 * common >= len(one) and 3 * common >= len(other) else 0

    def best(i: int, at: int) -> tuple[int, list[tuple[int, int]]]:
        if i == len(base) or at == len(side):
            return 0, []
        ways = []
        if weight(i, at):
            rest = best(i + 1, at + 1)
            ways.append((rest[0] + weight(i, at), [(i, at), *rest[1]]))
        ways += [best(i + 1, at), best(i, at + 1)]
        return max(ways, key=lambda way: way[0])

    return best(0, 0)[1]


def test_pairing() -> None:
    chance = random.Random(7)
    for _ in range(sample(200, 2000)):
        base, side = (
            ["".join(chance.choices(["a ", "b ", "c ", "d "], k=chance.randrange(4))) + "\n" for _ in range(chance.randrange(5))]
            for _ in "ox"
        )
        assert t.pair_hunk(base, side, set(), a.Budget()) == brute_pairs(base, side), (base, side)


# Random texts.

def texts(first: int, usual: int, deep: int) -> Iterator[Texts]:
    for seed in drawn(range(first, first + usual), range(first, first + deep)):
        yield Writer(random.Random(seed)).three()


def bodies(text: str) -> list[str]:
    return [k.split_end(line)[0] for line in k.lines(text)]


def merge_clean(o: str, x: str, y: str, **options: Any) -> t.MergedText:
    return t.merge_text(o, x, y, options.pop("unit", "word"), **options)


def test_identity() -> None:
    """M(o,o,y)=y, M(o,x,o)=x, M(o,x,x)=x, byte for byte and without records; by the core, and by the merge of texts alone."""
    for o, x, _ in texts(0, 400, 15_000):
        for three, expected in (((o, o, x), x), ((o, x, o), x), ((o, x, x), x)):
            found = merged(*three, "text")
            assert found.data == expected.encode() and not found.records, three
            alone = merge_clean(*three)
            assert alone.text == expected and not alone.conflicts and not alone.picked_style, three


def test_merged_again() -> None:
    """A merged text, merged with itself over any of the three, is itself."""
    for o, x, y in texts(50_000, 300, 3000):
        made = merge_clean(o, x, y).text
        assert all(merge_clean(base, made, made).text == made for base in (o, x, y))


def test_no_token_that_was_never_written() -> None:
    """Each token of a line of m that is no white space is one of o, x or y. Each line of m is one of these, or a clean merge by words of
    three alike lines.
    """
    clean_merges = 0
    for o, x, y in texts(100_000, 500, 20_000):
        made = merge_clean(o, x, y).text
        three = [bodies(text) for text in (o, x, y)]
        known = {token for lines in three for line in lines for token in k.tokens(line)}
        lines = {line for lines in three for line in lines}
        for line in bodies(made):
            # (Two insertions, each with white space at its border, may give a run of white space that no side wrote.)
            assert {token for token in k.tokens(line) if not k.is_space(token)} <= known, (o, x, y, made)
            if line not in lines:
                clean_merges += 1
                assert is_clean_merge(line, three), (o, x, y, made)
        by_line = merge_clean(o, x, y, unit="line").text
        assert set(bodies(by_line)) <= lines, (o, x, y, by_line)
    print(clean_merges, "lines merged by words")
    assert clean_merges > sample(12, 5000)


def is_clean_merge(line: str, three: list[list[str]]) -> bool:
    """Returns whether it is a merge by words of one line of each side, both of which are alike that of o."""
    for base in set(three[0]):
        alike = [[side for side in set(lines) if t.pair_hunk([base], [side], set(), a.Budget())] for lines in three[1:]]
        for x in alike[0]:
            if any(w.merge_line(base, x, y, "word", a.Budget()) == line for y in alike[1]):
                return True
    return False


def told_of(found: t.MergedText, swapped: bool = False) -> list[tuple[str, ...]]:
    """Returns the records, in any order: kinds and parts. The result depends on roles."""

    def plain(*parts: str) -> list[str]:
        """A style that was picked depends on roles, too."""
        return [k.convert(part, "\n") if found.picked_style else part for part in parts]

    sides = [(one, (one.older, one.newer) if swapped else (one.newer, one.older)) for one in found.conflicts]
    return sorted((one.kind, *plain(one.base, *both)) for one, both in sides)


def anyhow(text: str) -> Counter[tuple[str, ...]]:
    """The lines in any order, and the tokens of each that are no white space in any order.

    (2.3: a blank last line may lose its end, and then is none. 5 c: runs of white space may come side by side, and are one then.)
    """
    return Counter(tuple(sorted(token for token in k.tokens(line) if not k.is_space(token))) for line in bodies(text) if line)


def test_roles() -> None:
    """The records, and the lines without a record in any order, do not depend on who is newer."""
    with_records = 0
    for o, x, y in texts(200_000, 500, 20_000):
        one, other = merge_clean(o, x, y), merge_clean(o, y, x)
        assert told_of(one) == told_of(other, swapped=True) and one.picked_style == other.picked_style, (o, x, y)
        with_records += bool(one.conflicts)
        if not one.conflicts and not one.picked_style:
            # (5 c: within a line, the order of two insertions depends on roles.)
            assert anyhow(one.text) == anyhow(other.text), (o, x, y)
        # `pick: older` exchanges the roles if a side is picked, and has no other effect.
        assert one.picked_style or told_of(merge_clean(o, x, y, newer_wins=False)) == told_of(one)
    assert with_records > sample(50, 2000)


def test_line_ends_before_or_after() -> None:
    """Converting all line ends before or after gives the same, records included."""
    for o, x, y in texts(300_000, 400, 15_000):
        plain = [k.convert(text, "\n") for text in (o, x, y)]
        first = merge_clean(*plain)
        for end in ("\r\n", "\r"):
            # (If no text has a line end, the result uses "
            # ".)
            if not any(k.style(text) for text in plain):
                continue
            second = merge_clean(*(k.convert(text, end) for text in plain))
            assert second.text == k.convert(first.text, end), (o, x, y)
            of_first = [[k.convert(part, end) for part in (one.base, one.newer, one.older, one.result)] for one in first.conflicts]
            assert [[one.base, one.newer, one.older, one.result] for one in second.conflicts] == of_first
            if k.style(plain[0]) and k.style(plain[1]) and k.style(plain[2]):
                mixed = merge_clean(plain[0], k.convert(plain[1], end), plain[2])
                assert mixed.text == k.convert(first.text, end), (o, x, y)


def test_records_are_of_whole_lines_and_say_where() -> None:
    """The result of a record is at the recorded place, parts consist of whole lines of their texts, and sides can be chosen."""
    chosen = 0
    for o, x, y in texts(400_000, 400, 15_000):
        found = merge_clean(o, x, y)
        places = [(one.start, one.start + len(one.result)) for one in found.conflicts]
        assert all(end <= start for (_, end), (start, _) in zip(places, places[1:]))
        for one in found.conflicts:
            if one.start + len(one.result) > len(found.text) and bodies(one.result)[-1] == "":
                continue  # (2.3: a blank last line lost its end, and is no line.)
            stands = t.told_part(found.text, one.start, len(one.result))
            assert one.result and k.convert(stands, "\n") == k.convert(one.result, "\n"), (o, x, y)
            assert t.lines_of_part(found.text, one.start, len(one.result)) is not None
            if t.choose(found.text, one.start, len(one.result), one.result, found.text) is None:
                continue
            chosen += 1
            other = t.choose(found.text, one.start, len(one.result), one.older, found.text)
            assert other is not None
            rest = found.text[: one.start], found.text[one.start + len(one.result) :]
            if one.older and None not in map(k.style, (o, x, y)) and one.start + len(one.result) < len(found.text):
                assert other == rest[0] + one.older + rest[1], (o, x, y, one)
    assert chosen > sample(50, 2000)


def is_moved(word: str, base: str, side: str) -> bool:
    """Returns whether a side has the line, but not among the lines that it kept, nor in an alike one in its place: it was written again
    there."""
    o, s = k.whole_lines(k.convert(base, "\n")), k.whole_lines(k.convert(side, "\n"))
    before, behind = (next((n for n, line in enumerate(lines) if word in k.words(line)), None) for lines in (o, s))
    if before is None or behind is None:
        return False
    pairs = a.align(o, s, a.Budget())
    if (before, behind) in pairs:
        return False
    for hunk in a.hunks(pairs, (0, len(o)), (0, len(s))):
        if hunk.start <= before < hunk.end and hunk.first <= behind < hunk.last:
            return False
    return True


def unique_words(text: str) -> Counter[str]:
    return Counter(word for word in k.words(text) if word[0] == "w")


def test_what_was_added_or_removed_is_there_or_reported() -> None:
    """A word that a side wrote, and that only one text has, is in m or in a record. A word that a side removed is gone or recorded.

    The specification permits one loss: a line that was rewritten beyond recognition beside one that both wrote (9).
    """
    lost, looked_at = 0, 0
    for o, x, y in texts(500_000, 500, 20_000):
        found = merge_clean(o, x, y)
        recorded = Counter(word for one in found.conflicts for part in (one.base, one.newer, one.older) for word in unique_words(part))
        in_o, in_x, in_y, in_m = map(unique_words, (o, x, y, found.text))
        for word in in_o.keys() | in_x.keys() | in_y.keys():
            if in_o[word] > 1 or in_x[word] > 1 or in_y[word] > 1 or word in recorded:
                continue
            added = not in_o[word] and (in_x[word] or in_y[word])
            removed = in_o[word] and not (in_x[word] and in_y[word])
            if removed and (is_moved(word, o, x) or is_moved(word, o, y)):
                continue
            looked_at += bool(added or removed)
            lost += bool(added and not in_m[word]) or bool(removed and in_m[word])
    assert looked_at > sample(500, 20_000)
    assert lost <= looked_at / 5000, lost


# Other programs' merges.


def has_program(program: str) -> bool:
    """Returns whether it is installed, with the option that is needed."""
    if shutil.which(program if program == "diff3" else "git") is None:
        return False
    usage = subprocess.run(["git", "merge-file", "-h"], capture_output=True, check=False) if program == "histogram" else None
    return usage is None or b"diff-algorithm" in usage.stdout + usage.stderr


def run_merge(command: Callable[[list[str]], list[str]], o: str, x: str, y: str, folder: Path) -> Optional[str]:
    """Returns the merge of another program; None if it has a conflict."""
    for name, text in (("o", o), ("x", x), ("y", y)):
        (folder / name).write_bytes(text.encode())
    done = subprocess.run(command([str(folder / name) for name in "xoy"]), capture_output=True, check=False)
    return done.stdout.decode() if done.returncode == 0 else None


def lined(seed: int, repeated: bool) -> Texts:
    """Texts of lines, with or without equal lines. A side inserts lines of its own, or lines that the other side inserts, too."""
    chance = random.Random(seed)
    kinds = chance.choice([3, 6, 12])
    base = [f"line {chance.randrange(kinds) if repeated else number}" for number in range(chance.randrange(4, 16))]
    if repeated:
        base = ["" if chance.randrange(5) == 0 else line for line in base]

    def side(name: str) -> list[str]:
        found = list(base)
        for number in range(chance.choice([1, 1, 2, 3])):
            at, what = chance.randrange(len(found) + 1), chance.randrange(4)
            line = f"line {chance.randrange(kinds)}" if repeated and chance.randrange(2) else f"{name} {number} of {seed}"
            if what == 0 and found:
                del found[at : at + chance.choice([1, 2])]
            elif what == 1 and at < len(found):
                found[at] = line
            else:
                found.insert(at, line)
        return found

    o, x, y = ("".join(line + "\n" for line in lines) for lines in (base, side("newer"), side("older")))
    return o, x, y


#: The programs that merge the same texts. "histogram" needs git 2.44 or later, whose merge-file has an option for the algorithm.
PROGRAMS: dict[str, Callable[[list[str]], list[str]]] = {
    "git": lambda names: ["git", "merge-file", "-p", *names],
    "histogram": lambda names: ["git", "merge-file", "-p", "--diff-algorithm=histogram", *names],
    "diff3": lambda names: ["diff3", "-m", *names],
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("repeated", [False, True])
def test_clean_merges_of_others(program: str, repeated: bool, tmp_path: Path) -> None:
    """If git merge-file or diff3 merge without a conflict, the result is the same, except for other alignments of repeated lines."""
    if not has_program(program):
        pytest.skip(f"{program} is not installed")
    clean = differ = 0
    for seed in drawn(range(25), range(2500)):
        o, x, y = lined(seed, repeated)
        other = run_merge(PROGRAMS[program], o, x, y, tmp_path)
        if other is None:
            continue
        clean += 1
        found = t.merge_text(o, x, y, "word").text if x != o != y != x else y if x == o else x
        if found != other:
            differ += 1
            assert repeated, (program, o, x, y, found, other)
    print(f"{program}, {'with' if repeated else 'without'} repeated lines: {differ} of {clean} clean merges differ")
    assert clean > sample(7, 800) and differ <= (clean / 8 if repeated else 0)


# Lists.

Value = Union[int, str, list[int]]


def lists(seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Lists of small numbers, flags, or rows; with equal elements or without."""
    chance = random.Random(seed)
    kind = chance.choice(["few", "many", "flags", "rows", "unique"])

    def element() -> Any:
        if kind == "rows":
            return [chance.randrange(3) for _ in range(chance.randrange(4))]
        return chance.choice([True, False]) if kind == "flags" else chance.randrange({"few": 3, "many": 12, "unique": 1000}[kind])

    base = [element() for _ in range(chance.randrange(8))]
    if kind == "unique":
        base = chance.sample(range(30), len(base))

    def edited(items: list[Any]) -> list[Any]:
        found = list(items)
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            what, at = chance.randrange(6), chance.randrange(len(found) + 1)
            if what < 2 or not found:
                found.insert(at, element())
            elif what < 4:
                found[min(at, len(found) - 1)] = element()
            elif what == 4:
                del found[min(at, len(found) - 1)]
            else:
                found.insert(chance.randrange(len(found)), found.pop(min(at, len(found) - 1)))
        return found

    return base, edited(base), edited(base)


def names(items: list[Any]) -> Counter[str]:
    return Counter(map(json.dumps, items))


def test_lists() -> None:
    """Identities; no element is invented; records, and the elements without records, do not depend on roles."""
    for seed in drawn(range(600), range(25_000)):
        o, x, y = lists(seed)
        for three, expected in (((o, o, y), y), ((o, x, o), x), ((o, x, x), x)):
            same = merged(*three)
            assert same.data == json.dumps(expected).encode() and not same.records, three
        one, other = merged(o, x, y), merged(o, y, x)
        found, swapped = json.loads(one.data or b""), json.loads(other.data or b"")
        assert names(found).keys() <= names([*o, *x, *y]).keys(), (o, x, y, found)
        first, second = (
            sorted(json.dumps([e["kind"], e.get("o"), *(e.get(name) for name in order)]) for e in told(both))
            for both, order in ((one, "xy"), (other, "yx"))
        )
        assert first == second, (o, x, y)
        if not one.records:
            assert names(found) == names(swapped), (o, x, y, found, swapped)


def is_moved_element(o: list[Any], x: list[Any], y: list[Any], name: str) -> bool:
    """Returns whether a side has the element at another place, in lists with equal elements: it was removed and added again."""
    keys = [p_keys(items) for items in (o, x, y)]
    if not p.has_equal(*keys):
        return False
    at = [next((n for n, item in enumerate(items) if json.dumps(item) == name), None) for items in (o, x, y)]
    return any(
        place is not None and p.by_place(keys[0], side, a.Budget())[place] != at[0] for place, side in zip(at[1:], keys[1:])
    )  # fmt: skip


def p_keys(items: list[Any]) -> list[Any]:
    return keys_of(j.parse(json.dumps(items).encode()).items, None)  # type: ignore[union-attr]


def test_what_was_added_to_lists_is_there_or_reported() -> None:
    """A value that only one side has is in m or in a record. A value that a side removed, and that occurred once, is gone or recorded."""
    for seed in drawn(range(100_000, 100_600), range(100_000, 125_000)):
        o, x, y = lists(seed)
        found = merged(o, x, y)
        result, in_o, in_x, in_y = (names(items) for items in (json.loads(found.data or b""), o, x, y))
        recorded = {json.dumps(one[name]) for one in told(found) for name in ("o", "x", "y") if name in one}
        for name in in_o.keys() | in_x.keys() | in_y.keys():
            if max(in_o[name], in_x[name], in_y[name]) > 1 or name in recorded:
                continue
            added = not in_o[name] and (in_x[name] or in_y[name])
            removed = in_o[name] and not (in_x[name] and in_y[name]) and not is_moved_element(o, x, y, name)
            assert not (added and not result[name]) and not (removed and result[name]), (o, x, y, result)


def test_flips() -> None:
    """Arrays of flags or numbers in which each side sets one or two slots keep all of them."""
    for seed in drawn(range(600), range(25_000)):
        chance = random.Random(seed)
        size, kinds = chance.randrange(2, 12), chance.choice([2, 3, 10])
        base = [chance.randrange(kinds) for _ in range(size)]
        if len(set(base)) == size:
            continue
        places = chance.sample(range(size), min(size, chance.choice([2, 3, 4])))
        half = chance.randrange(1, len(places))
        x, y, both = list(base), list(base), list(base)
        for number, at in enumerate(places):
            side = x if number < half else y
            side[at] = both[at] = (base[at] + chance.randrange(1, kinds)) % kinds
        if sum(one != other for one, other in zip(base, x)) > 2 or sum(one != other for one, other in zip(base, y)) > 2:
            continue
        found = merged(base, x, y)
        assert json.loads(found.data or b"") == both and not found.records, (base, x, y)


@pytest.mark.parametrize("count", [3_000, 6_000, 9_000, 12_000])
def test_texts_of_many_words_in_another_order(count: int) -> None:
    """The table of tokens grows, and moves, while one text is cut along another."""
    base, newer, older = (
        b" ".join(b"%d" % number for number in [*range(at, count + at), *range(at)]) for at in (0, count // 3, count // 2)
    )
    merged = llvs.merge.merge_values(base, newer, older, rules={"as": "text", "unit": "word"})
    assert merged.data == newer and merged.records
