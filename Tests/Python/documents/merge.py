"""The core: one pure function from three values and rules to bytes and records.

`o` is the base, `x` the side whose value is the more recent, `y` the other; None is absent.

Readings of the specification where it leaves a choice:
- A pick or a delete-edit of the whole value gives the bytes of that side unchanged.
- `max` and `min` prefer a side in which their pointer finds something; ties go to the newer side. If a side is not JSON, the newer one
  wins.
- A counter whose base is not a number is picked, with one record of kind `type`.
- A counter that one side removed is set to its initial value plus what the other side has added since, with a record `delete-edit`. In
  swapped roles, a counter that is absent in the base, in an object that is not, counts as its initial value.
- If bases disagreed, one side may have a value from which they were merged, and the other side none. Then the first side did not change
  that value, and a pick gives the second.
- An element in a record's path is {"key": ...} (one declared pointer: its value; several: an array). An element that is identified by its
  value is {"index": n}, its index in the base.
- If the records of one value exceed 4 times the inputs and 1 MiB, there is one of the kind `limit` instead: each counts its path, its
  values and its rule as they are written, and 64 bytes. If the written result exceeds 8 times the inputs and 64 KiB, a side wins.
- Values that are not JSON are {"sha256": ..., "size": ...} in records.
- Contested values are looked up once, at the end: at their path in both outer sides. An element there is identified by its key in the
  result of the inner merge, which is the outer base. An element that is identified by its whole value may have been replaced in a side.
  Then the element in its place corresponds to it, if as many elements were replaced, one for one, between two elements that stayed. In a
  text, the contested value is a part of the outer base's text. A side's value is the text between the lines around the part that the side
  kept, written in the style of the part.
- A row (an array of plain values that is an element of a list of plain values) is one value: if both sides changed it differently, it is
  picked, as in example L9 of texts.md, unless there is a rule for it or for its contents, or an app saves it. "M for each key" alone would
  merge [2,4,6], [2,4], [4,6] to [4] without a record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Callable, Iterable, Optional, Union

from . import json_model as j
from .alignment import Budget
from .forms import is_later, lift_all
from .plain_lists import by_place, has_equal, has_equal_edits_in_two_slots, is_plain, keys_by_place, keys_of_places
from .rules import ELEMENT, Rule, RuleSet, Step
from .sequences import Key, emit, increasing, keys_of, pair, pair_saved, plain_key
from .text import lines_of_part, merge_text, part_in, told_part


@dataclass(frozen=True)
class Raw:
    """Bytes that are not mergeable JSON, or that are treated as opaque."""

    data: bytes


Value = Union[j.Node, Raw]
#: If both sides moved more elements of a list to different places than this, there is one record, of the list.
MOST_MOVES = 64


@dataclass(frozen=True)
class Part:
    """A part of a text: its offset and length. It is the last step of a path."""

    start: int
    count: int


#: A name, a key of an element, the index of a tuple's slot, or a part of a text.
PathStep = Union[str, Key, int, Part]
Path = tuple[PathStep, ...]
#: By path: the identities of the values between which an inner merge chose.
Contested = dict[Path, set[bytes]]


@dataclass(frozen=True)
class Record:
    """A conflict that was decided: its place, its kind, the values, and the rule."""

    path: tuple[Union[str, j.Node], ...]
    kind: str
    o: Optional[Value]
    x: Optional[Value]
    y: Optional[Value]
    result: Optional[Value]
    rule: Optional[tuple[str, str]]
    inner: Path = ()

    def with_key(self, depth: int, named: dict[Key, Key]) -> Record:
        """Returns the record with another key for an element in `inner`: its key in the result."""
        step = self.inner[depth] if depth < len(self.inner) else None
        if not isinstance(step, tuple) or step not in named:
            return self
        return replace(self, inner=self.inner[:depth] + (named[step],) + self.inner[depth + 1 :])

    @property
    def size(self) -> int:
        """Returns its size in the budget of all records."""
        parts = [found for found in map(self.node().get, ("path", "o", "x", "y", "result")) if found is not None]
        return 64 + sum(len(j.canonical(part)) for part in parts) + sum(len(text.encode()) for text in self.rule or ())

    def node(self, value_id: str = "") -> j.Object:
        """Returns it as JSON; absent values are left out."""
        members: list[tuple[str, j.Node]] = [
            ("id", j.String(value_id)),
            ("path", j.Array(tuple(j.String(step) if isinstance(step, str) else step for step in self.path))),
            ("kind", j.String(self.kind)),
        ]
        for name, value in (("o", self.o), ("x", self.x), ("y", self.y), ("result", self.result)):
            if isinstance(value, Raw):
                digest = hashlib.sha256(value.data).hexdigest()
                members.append((name, j.Object((("sha256", j.String(digest)), ("size", j.number(str(len(value.data))))))))
            elif value is not None:
                members.append((name, value))
        if self.rule:
            members.append(("rule", j.Array((j.String(self.rule[0]), j.String(self.rule[1])))))
        return j.Object(tuple(members))


@dataclass(frozen=True)
class Merged:
    """The result of merging one value: its bytes (None: absent) and the records."""

    data: Optional[bytes]
    records: tuple[Record, ...] = ()


#: Returns the winner for (path, base, newer, older), for rules with "pick": "arbiter".
Arbiter = Callable[[Path, Optional[Value], Value, Value], Value]


@dataclass
class _Merge:
    rules: RuleSet
    app_wins: bool = False
    swapped: bool = False
    undone: bool = False
    arbiter: Optional[Arbiter] = None
    contested: Contested = field(default_factory=dict)
    #: The objects that the base lacks.
    new: set[Path] = field(default_factory=set)
    records: list[Record] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)

    # The core, in the order of the specification.

    def core(
        self, o: Optional[Value], x: Optional[Value], y: Optional[Value], path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> Optional[Value]:
        rule = self.rules.rule(steps(path))
        new, missing = o is None, x is None and y is None
        if missing and rule.absent is None:
            return None
        if rule.absent is not None and not missing:
            # If one side left everything unchanged, missing members need no replacement.
            if same(x, o):
                return y
            if same(y, o) and not self.saves_objects(x, y, rule):
                return x
        if rule.absent is not None:
            o, x, y = (rule.absent if value is None else value for value in (o, x, y))
        result = self.lines(o, x, y, rule, path, where, new)
        return None if missing and same(result, rule.absent) else result

    def lines(
        self, o: Optional[Value], x: Optional[Value], y: Optional[Value], rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...],
        new: bool
    ) -> Optional[Value]:
        if same(x, o):
            return y
        if same(y, o) and not self.saves_objects(x, y, rule):
            return x
        if same(x, y) and not self.rules.has_counter(steps(path)):
            return x
        if self.swapped and rule.kind == "counter" and y is None and isinstance(o, j.Number) and isinstance(x, j.Number):
            # The undo of a new counter leaves later additions of others.
            total = x.value.plus(rule.start).plus(o.value, -1)
            if total.fits:
                return self.counted(total, o, x, None, rule, path, where)
        if self.swapped and y is None and rule.delete == "edit" and self.gives_back(o, x, rule, path):
            result = self.given_back(o, x, path, where)
            return self.record("delete-edit", o, x, y, result, rule, path, where)
        if self.undone and x is None:
            # Members that were removed after the undone change stay removed.
            return self.record("delete-edit", o, x, y, None, rule, path, where)
        if x is None or y is None:
            there = x if y is None else y
            begun = self.begun_anew(o, there, rule)
            if begun is not None:
                result = j.Number(begun.text(), begun)
                self.record("delete-edit", o, x, y, result, rule, path, where)
                return self.counted(begun, o, x, y, rule, path, where)
            keep = (y is None) if self.app_wins else rule.delete == "edit"
            return self.record("delete-edit", o, x, y, there if keep else None, rule, path, where)
        began = rule.kind == "counter" and (not path or (isinstance(path[-1], str) and path[:-1] not in self.new))
        if self.swapped and new and not began and would_add_up(x, y, rule):
            if same(x, y):
                return x
            return self.record("pick" if j.rank(node(x)) == j.rank(node(y)) else "type", o, x, y, x, rule, path, where)
        if rule.kind == "counter":
            return self.counter(o, x, y, rule, path, where)
        if isinstance(x, Raw) or isinstance(y, Raw):
            return self.pick("pick" if rule.kind == "bytes" else "not-json", o, x, y, rule, path, where)
        if rule.identity and o is None and isinstance(x, j.Object) and isinstance(y, j.Object):
            if not all(j.equal(j.resolve(x, pointer), j.resolve(y, pointer)) for pointer in rule.identity):
                return self.pick("pick", o, x, y, rule, path, where)
        base = None if isinstance(o, Raw) else o
        kind = rule.kind
        if isinstance(x, j.Object) and isinstance(y, j.Object) and (kind == "auto" or (self.app_wins and kind == "register")):
            return self.members(base, x, y, path, where)
        if isinstance(x, j.Array) and isinstance(y, j.Array):
            empty = base if isinstance(base, j.Array) else j.Array(())
            if kind in ("auto", "list"):
                return self.sequence(o, empty, x, y, rule, path, where)
            if kind == "set":
                return self.set(empty, x, y, rule, path, where)
            slots = {len(x.items), len(y.items)} | ({len(base.items)} if isinstance(base, j.Array) else set())
            if kind == "tuple" and len(slots) == 1:
                return self.slots(base if isinstance(base, j.Array) else None, x, y, path, where)
        if kind == "text" and isinstance(x, j.String) and isinstance(y, j.String):
            return self.text(base.text if isinstance(base, j.String) else "", o, x, y, rule, path, where)
        return self.pick("pick" if j.rank(x) == j.rank(y) else "type", o, x, y, rule, path, where)

    def saves_objects(self, x: Optional[Value], y: Optional[Value], rule: Rule) -> bool:
        """Returns whether to merge inside two objects of which only one side changed its own: a save preserves the spelling of unchanged
        numbers in them.
        """
        return self.app_wins and rule.kind in ("auto", "register") and isinstance(x, j.Object) and isinstance(y, j.Object)

    def gives_back(self, o: Optional[Value], x: Optional[Value], rule: Rule, path: Path) -> bool:
        """Returns whether both are objects with counters in them."""
        objects = isinstance(o, j.Object) and isinstance(x, j.Object)
        return objects and rule.kind == "auto" and self.rules.has_counter(steps(path))

    def given_back(self, o: Optional[Value], x: Optional[Value], path: Path, where: tuple[Union[str, j.Node], ...]) -> j.Object:
        """Returns an object that the undone change added, as others changed it since, but with counters reduced by their initial values."""
        assert isinstance(o, j.Object) and isinstance(x, j.Object)
        members: list[tuple[str, j.Node]] = []
        for name, value in sorted(x.members, key=lambda member: member[0].encode()):
            below, was = path + (name,), o.get(name)
            rule, new = self.rules.rule(steps(below)), value
            if was is not None and rule.kind == "counter":
                new = None if same(was, value) else self.lines(was, value, rule.absent, rule, below, where + (name,), False)
            elif self.gives_back(was, value, rule, below):
                new = self.given_back(was, value, below, where + (name,))
            if new is not None:
                members.append((name, node(new)))
        return j.Object(tuple(members))

    # Records and picks.

    def record(
        self, kind: str, o: Optional[Value], x: Optional[Value], y: Optional[Value], result: Optional[Value], rule: Rule,
        path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> Optional[Value]:
        self.records.append(Record(where, kind, o, x, y, result, rule.given, path))
        return result

    def pick(
        self, kind: str, o: Optional[Value], x: Value, y: Value, rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> Optional[Value]:
        if self.app_wins:
            return self.record(kind, o, x, y, x, rule, path, where)
        if rule.pick == "arbiter":
            return self.record("arbiter", o, x, y, self.arbiter(path, o, x, y) if self.arbiter else x, rule, path, where)
        known = self.contested.get(path, set()) if rule.pick in ("newer", "older") else set()
        if (identity(x) in known) != (identity(y) in known):
            # One side has a value between which inner merges chose. The other side's value was made from their result, so it wins.
            return self.record(kind, o, x, y, y if identity(x) in known else x, rule, path, where)
        return self.record(kind, o, x, y, x if newer_stands(rule, x, y) else y, rule, path, where)

    # The kinds.

    def counter(
        self, o: Optional[Value], x: Value, y: Value, rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> Optional[Value]:
        if not isinstance(x, j.Number) or not isinstance(y, j.Number) or not (o is None or isinstance(o, j.Number)):
            return self.pick("type", o, x, y, rule, path, where)
        total = x.value.plus(y.value).plus(o.value if o else rule.start, -1)
        if not total.fits:
            return self.pick("limit", o, x, y, rule, path, where)
        return self.counted(total, o, x, y, rule, path, where)

    def counted(
        self, total: j.Decimal, o: Optional[Value], x: Optional[Value], y: Optional[Value], rule: Rule, path: Path,
        where: tuple[Union[str, j.Node], ...]
    ) -> Value:
        result = j.Number(total.text(), total)
        if (rule.least and total.compare(rule.least) < 0) or (rule.most and total.compare(rule.most) > 0):
            self.record("bound", o, x, y, result, rule, path, where)
        return result

    def begun_anew(self, o: Optional[Value], there: Optional[Value], rule: Rule) -> Optional[j.Decimal]:
        """Returns a counter that one side removed: its initial value, and what the other side has added since."""
        if self.app_wins or self.swapped or rule.kind != "counter" or rule.delete != "edit":
            return None
        if not isinstance(o, j.Number) or not isinstance(there, j.Number):
            return None
        total = there.value.plus(rule.start).plus(o.value, -1)
        return total if total.fits else None

    def members(self, o: Optional[j.Node], x: j.Object, y: j.Object, path: Path, where: tuple[Union[str, j.Node], ...]) -> j.Node:
        base = o if isinstance(o, j.Object) else j.Object(())
        if not isinstance(o, j.Object):
            self.new.add(path)
        names = sorted({name for node in (base, x, y) for name, _ in node.members}, key=str.encode)
        merged = [(name, self.core(base.get(name), x.get(name), y.get(name), path + (name,), where + (name,))) for name in names]
        return j.Object(tuple((name, node(value)) for name, value in merged if value is not None))

    def slots(self, o: Optional[j.Array], x: j.Array, y: j.Array, path: Path, where: tuple[Union[str, j.Node], ...]) -> j.Node:
        merged = [
            self.core(o.items[n] if o else None, x.items[n], y.items[n], path + (n,), where + (index_step(n),)) for n in range(len(x.items))
        ]
        return j.Array(tuple(node(value) for value in merged if value is not None))

    def set(self, o: j.Array, x: j.Array, y: j.Array, rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...]) -> j.Node:
        if rule.key is None:
            of_o, of_x, of_y = ({j.identity(item): item for item in reversed(array.items)} for array in (o, x, y))
            made = as_made(o, y) if self.app_wins else {}
            of_y = {made.get(name, name): item for name, item in of_y.items() if name not in made or name not in of_x}
            kept = {**of_y, **{name: item for name, item in of_x.items() if name not in made.values() or name not in of_y}}
            return j.Array(
                tuple(j.sort_by_identity([item for name, item in kept.items() if name not in of_o or (name in of_x and name in of_y)]))
            )
        sides = [by_key(distinct(array), keys_of(distinct(array), rule.key)) for array in (o, x, y)]
        merged = self.elements(*sides, dict.fromkeys(key for side in sides for key in side), path, where, {})
        return j.Array(tuple(j.sort_by_identity(list(merged.values()))))

    def sequence(
        self, given: Optional[Value], o: j.Array, x: j.Array, y: j.Array, rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> j.Node:
        base, newer, older = (keys_of(array.items, rule.key) for array in (o, x, y))
        told = pair_saved(base, newer, older) if self.app_wins else None
        is_of_plain = rule.key is None and is_plain(base, newer, older)
        is_by_place = is_of_plain and (
            has_equal(base, newer, older) or has_equal_edits_in_two_slots(base, newer, older)
        )
        self.budget.limited = False
        if told is not None and is_by_place:
            newer, older = keys_of_places(base, by_place(base, newer, self.budget), "newer"), told[1]
        elif told is not None:
            newer, older = told
        elif is_by_place:
            newer, older = keys_by_place(base, newer, older, self.budget)
        elif rule.key is None:
            newer, older = pair(base, newer, older)
        is_limited = self.budget.limited
        sides = by_key(o.items, base), by_key(x.items, newer), by_key(y.items, older)
        place = {key: index for index, key in enumerate(base)}
        before = len(self.records)
        merged = self.elements(*sides, dict.fromkeys([*base, *newer, *older]), path, where, place, is_of_plain)
        order, moves = emit(base, newer, older, set(merged))
        whole = j.Array(tuple(merged[key] for key in order))
        named = dict(zip(order, keys_of(whole.items, rule.key)))
        for index in range(before, len(self.records)):
            self.records[index] = self.records[index].with_key(len(path), named)
        if len(moves) > MOST_MOVES:
            self.record("move-move", given, x, y, whole, rule, path, where)
        for key in moves if len(moves) <= MOST_MOVES else []:
            self.record(
                "move-move",
                sides[0][key],
                sides[1].get(key),
                sides[2].get(key),
                merged[key],
                rule,
                path + (named[key],),
                where + (element_step(key, place, rule),),
            )
        if is_limited:
            self.record("limit", given, x, y, whole, rule, path, where)
        return whole

    def elements(
        self, o: dict[Key, j.Node], x: dict[Key, j.Node], y: dict[Key, j.Node], keys: Iterable[Key], path: Path,
        where: tuple[Union[str, j.Node], ...], place: dict[Key, int], is_of_plain: bool = False
    ) -> dict[Key, j.Node]:
        rule = self.rules.rule(steps(path))
        merged: dict[Key, Optional[Value]] = {}
        for key in keys:
            base, newer, older, inner, shown = o.get(key), x.get(key), y.get(key), path + (key,), where + (element_step(key, place, rule),)
            if newer is not None and older is not None and is_of_plain and self.is_picked_row(base, newer, older, inner):
                merged[key] = self.pick("pick", base, newer, older, self.rules.rule(steps(inner)), inner, shown)
            else:
                merged[key] = self.core(base, newer, older, inner, shown)
        return {key: node(value) for key, value in merged.items() if value is not None}

    def is_picked_row(self, o: Optional[j.Node], x: j.Node, y: j.Node, path: Path) -> bool:
        """Returns whether an element is an array of plain values that both sides changed differently, and for which there is no rule."""
        if self.app_wins or self.rules.has_any(steps(path)) or same(x, o) or same(y, o) or same(x, y):
            return False
        return all(isinstance(row, j.Array) and is_plain(keys_of(row.items, None)) for row in (o, x, y))

    def text(
        self, base: str, o: Optional[Value], x: j.String, y: j.String, rule: Rule, path: Path, where: tuple[Union[str, j.Node], ...]
    ) -> j.Node:
        newer_wins = self.app_wins or rule.pick != "older"
        merged = merge_text(base, x.text, y.text, rule.unit, newer_wins, self.budget, self.undone)
        for found in merged.conflicts:
            three = j.String(found.base), j.String(found.newer), j.String(found.older)
            self.record(found.kind, *three, j.String(found.result), rule, path + (Part(found.start, len(found.result)),), where)
        result = j.String(merged.text)
        if merged.picked_style:
            self.record("pick", o, x, y, result, rule, path, where)
        if merged.limited:
            self.record("limit", o, x, y, result, rule, path, where)
        return result


def merge_values(
    o: Optional[bytes],
    x: Optional[bytes],
    y: Optional[bytes],
    rules: RuleSet = RuleSet(),
    *,
    contested: Optional[Contested] = None,
    app_wins: bool = False,
    swapped: bool = False,
    undone: bool = False,
    arbiter: Optional[Arbiter] = None,
) -> Merged:
    """Merges one value. Never raises, whatever the bytes are.

    `swapped`: for undoing and picking. The base is not a common ancestor, and both sides may have members that it lacks, for the same
    reason. `undone`: for undoing, in swapped roles. Members that the newer side lacks were removed since.
    """
    merge = _Merge(rules, app_wins, swapped, undone, arbiter, contested or {})
    kind = rules.top.kind
    # If a side equals the base byte for byte, the other side wins before anything is parsed: law L1.
    unchanged = o is not None and x is not None and y is not None and o in (x, y)
    if unchanged and not contested:
        return Merged(y if x == o else x)
    given = o, x, y
    total = sum(len(data) for data in given if data is not None)
    parsed = [None if data is None else read(data, kind) for data in given]
    # Values that the bytes alone decide are not brought into other forms.
    if rules.forms and x != o and y != o and (x != y or rules.has_counter(())):
        lifted = lift_all(parsed, rules.forms)
        o, x, y = (data if value is before else j.canonical(node(value)) for data, value, before in zip((o, x, y), lifted, parsed))
        parsed = lifted
        is_by_form = rules.forms.renames is None and not (app_wins or swapped)
        if is_by_form and x is not None and y is not None and is_later(parsed[2], parsed[1], rules.forms):
            x, y, parsed = y, x, [parsed[0], parsed[2], parsed[1]]
    result = (parsed[2] if x == o else parsed[1]) if unchanged else merge.core(parsed[0], parsed[1], parsed[2], (), ())
    again: list[Record] = []
    for path, values in (contested or {}).items():
        found = find_contested(path, [parsed[0], parsed[1], parsed[2], result], rules, values)
        if found is None:
            continue
        place, (base, mine, theirs, stands) = found
        if mine is not None and theirs is not None and not same(mine, theirs) and {identity(mine), identity(theirs)} <= values:
            again.append(Record(place, "contested", base, mine, theirs, stands, rules.rule(steps(path)).given, path))
    merge.records += sorted(again, key=lambda record: (path_bytes(record), j.canonical(record.node())))
    def limited(data: Optional[bytes], values: list[Optional[Value]], result: Optional[Value]) -> Merged:
        """Returns the result with one record of the whole instead of all records."""
        return Merged(data, (Record((), "limit", values[0], values[1], values[2], result, None),))

    def told(data: Optional[bytes]) -> Merged:
        if sum(record.size for record in merge.records) <= 4 * total + (1 << 20):
            return Merged(data, tuple(merge.records))
        whole = [None if value is None else read(value, kind) for value in (*given, data)]
        return limited(data, whole[:3], whole[3])

    # If a side wins as a whole, the result is its bytes; the newer's if both are the same object.
    for value, data in ((parsed[1], x), (parsed[2], y)):
        if result is value and value is not None:
            return told(data)
    data = None if result is None else write(result, kind)
    is_written = result is not None and not isinstance(result, Raw) and kind != "text"
    # The result is too much if it is too deep or too large to be merged again, or too long for the inputs.
    is_too_much = data is not None and result is not rules.top.absent and isinstance(read(data, kind), Raw)
    if data is not None and is_written and (is_too_much or len(data) > 8 * total + (1 << 16)):
        whole = [None if value is None else read(value, kind) for value in given]
        return limited(given[2] if given[1] is None else given[1], whole, whole[2] if given[1] is None else whole[1])
    return told(data)


def read(data: bytes, kind: str) -> Value:
    """Returns the value of bytes, as the kind of the whole value requires."""
    if kind == "bytes":
        return Raw(data)
    if kind == "text":
        try:
            return j.String(data.decode("utf-8"))
        except UnicodeDecodeError:
            return Raw(data)
    try:
        value = j.parse(data, scalar=kind == "counter")
    except j.NotMergeable:
        return Raw(data)
    return value if isinstance(value, (j.Object, j.Array, j.Number)) else Raw(data)


def write(value: Value, kind: str) -> bytes:
    """Returns the bytes of a computed value."""
    if isinstance(value, Raw):
        return value.data
    if kind == "text" and isinstance(value, j.String):
        return value.text.encode()
    return j.canonical(value)


def same(a: Optional[Value], b: Optional[Value]) -> bool:
    """Returns equality: JSON as JSON, other bytes as bytes."""
    if a is None or b is None or isinstance(a, Raw) or isinstance(b, Raw):
        return a == b
    return j.equal(a, b)


def identity(value: Value) -> bytes:
    """Returns a key that is equal for equal values only."""
    return b"bytes:" + value.data if isinstance(value, Raw) else b"json:" + j.identity(value)


def node(value: Value) -> j.Node:
    """Returns a value inside a container as JSON."""
    assert not isinstance(value, Raw)
    return value


def would_add_up(x: Value, y: Value, rule: Rule) -> bool:
    """Returns whether merging two values over an empty base would add them up, although one was made from the other."""
    if rule.kind == "counter":
        return not isinstance(x, Raw) and not isinstance(y, Raw)
    if rule.kind == "text":
        return isinstance(x, j.String) and isinstance(y, j.String)
    if rule.kind in ("auto", "list") and isinstance(x, j.Array) and isinstance(y, j.Array):
        key = rule.key if rule.kind == "list" else None
        return any(plain_key(item, key)[0] == "value" for item in (*x.items, *y.items))
    return False


def as_made(o: j.Array, y: j.Array) -> dict[bytes, bytes]:
    """Maps elements of a set to those that an app made from them, if as many are only in `o` as only in `y`. (It knows a part of each.)"""
    of_o, of_y = ({j.identity(item): item for item in distinct(array)} for array in (o, y))
    made, sources = [name for name in of_o if name not in of_y], [name for name in of_y if name not in of_o]
    if len(made) != len(sources) or any(j.rank(of_o[a]) != j.rank(of_y[b]) for a, b in zip(made, sources)):
        return {}
    return dict(zip(sources, made))


def newer_stands(rule: Rule, x: Value, y: Value) -> bool:
    """Returns the decision of `pick`."""
    if rule.pick in ("newer", "older") or isinstance(x, Raw) or isinstance(y, Raw):
        return rule.pick != "older"
    mine, theirs = j.resolve(x, rule.pick_pointer), j.resolve(y, rule.pick_pointer)
    if mine is None or theirs is None:
        return mine is not None or theirs is None
    order = j.compare(mine, theirs)
    return order >= 0 if rule.pick == "max" else order <= 0


def steps(path: Path) -> tuple[Step, ...]:
    """Returns the path as patterns match it: without a part of a text."""
    return tuple(ELEMENT if isinstance(step, tuple) else str(step) for step in path if not isinstance(step, Part))


def by_key(items: Iterable[j.Node], keys: list[Key]) -> dict[Key, j.Node]:
    """Returns the elements by key."""
    return dict(zip(keys, items))


def distinct(array: j.Array) -> list[j.Node]:
    """Returns the elements without duplicates: the first of equal ones stays."""
    found: dict[bytes, j.Node] = {}
    for item in array.items:
        found.setdefault(j.identity(item), item)
    return list(found.values())


def index_step(index: int) -> j.Node:
    """Returns an element in a record's path, by index."""
    return j.Object((("index", j.number(str(index))),))


def element_step(key: Key, place: dict[Key, int], rule: Rule) -> j.Node:
    """Returns an element in a record's path: by key, or by its index in the base if its key is its value."""
    source, name, occurrence = key
    if source == "value":
        return index_step(place.get(key, 0))
    value = j.parse(name, scalar=True)
    if source == "declared" and rule.key is not None and len(rule.key) == 1:
        assert isinstance(value, j.Array)
        value = value.items[0]
    return j.Object((("key", value), ("occurrence", j.number(str(occurrence)))) if occurrence else (("key", value),))


def find_contested(
    path: Path, sides: list[Optional[Value]], rules: RuleSet, values: set[bytes]
) -> Optional[tuple[tuple[Union[str, j.Node], ...], list[Optional[Value]]]]:
    """Returns the contents at a contested path in the base, the newer and the older side and the result; and the path as records show
    it."""
    shown: list[Union[str, j.Node]] = []
    for depth, step in enumerate(path):
        rule = rules.rule(steps(path[:depth]))
        if isinstance(step, Part):
            parts = find_part(step, sides, values)
            return None if parts is None else (tuple(shown), parts)
        if isinstance(step, str):
            sides = [value.get(step) if isinstance(value, j.Object) else None for value in sides]
            shown.append(step)
        elif isinstance(step, int):
            sides = [value.items[step] if isinstance(value, j.Array) and step < len(value.items) else None for value in sides]
            shown.append(index_step(step))
        else:
            lists = [value.items if isinstance(value, j.Array) else () for value in sides]
            keys = [keys_of(items, rule.key) for items in lists]
            shown.append(element_step(step, {key: index for index, key in enumerate(keys[0])}, rule))
            stands = keys[0].index(step) if step in keys[0] else None
            at = [in_place(keys[0], own, stands) if stands is not None and step[0] == "value" else index_of(own, step) for own in keys]
            sides = [None if index is None else items[index] for items, index in zip(lists, at)]
    return tuple(shown), sides


def index_of(keys: list[Key], key: Key) -> Optional[int]:
    """Returns the index of a key."""
    return keys.index(key) if key in keys else None


def in_place(base: list[Key], side: list[Key], index: int) -> Optional[int]:
    """Returns the element of a side that corresponds to one of the base: the one with its key, or the one that replaced it."""
    if base[index] in side:
        return side.index(base[index])
    place = {key: at for at, key in enumerate(base)}
    known = [at for at, key in enumerate(side) if key in place]
    anchors = [known[at] for at in increasing([place[side[at]] for at in known])]
    bounds = [(-1, -1)] + [(place[side[at]], at) for at in anchors] + [(len(base), len(side))]
    for (o0, s0), (o1, s1) in zip(bounds, bounds[1:]):
        if o0 < index < o1:
            gone, new = base[o0 + 1 : o1], side[s0 + 1 : s1]
            replaced = len(gone) == len(new) and all(key[0] == "value" for key in gone + new)
            replaced = replaced and not any(key in side for key in gone) and not any(key in place for key in new)
            return s0 + index - o0 if replaced else None
    return None


def find_part(part: Part, sides: list[Optional[Value]], values: set[bytes]) -> Optional[list[Optional[Value]]]:
    """Returns a part of the base's text, if merges chose it, and the parts of the other texts in its place."""
    texts = [value.text if isinstance(value, j.String) else None for value in sides]
    base = texts[0]
    if base is None or texts[1] is None or texts[2] is None or lines_of_part(base, part.start, part.count) is None:
        return None
    own = j.String(told_part(base, part.start, part.count))
    if identity(own) not in values:
        return None
    others = [None if text is None else part_in(base, text, part.start, part.start + part.count) for text in texts[1:]]
    return [own, *(None if other is None else j.String(other) for other in others)]


def path_bytes(record: Record) -> bytes:
    """Returns the path of a record, as JSON."""
    return j.canonical(j.Array(tuple(j.String(step) if isinstance(step, str) else step for step in record.path)))


def save(read_bytes: bytes, decoded: bytes, new: bytes, rules: RuleSet = RuleSet()) -> bytes:
    """Returns the save of a typed model. It preserves what the app does not know of the bytes that it read.

    `decoded` is the unchanged value as the app writes it: encode(decode(read_bytes)).
    """
    merged = merge_values(decoded, new, read_bytes, rules, app_wins=True)
    assert merged.data is not None
    return merged.data


def conflicts_digest(records: Iterable[tuple[str, Record]]) -> str:
    """Returns SHA-256 of the records as canonical JSON, in hexadecimal."""
    return hashlib.sha256(j.canonical(j.Array(tuple(record.node(value_id) for value_id, record in records)))).hexdigest()
