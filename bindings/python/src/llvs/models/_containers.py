"""Converts lists, sets, tuples, dictionaries, unions and dataclasses to JSON and back."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Mapping, Optional

from ._codecs import Codec, Member, checked_text, json_type, shown
from ._json import canonical, write
from .errors import Mismatch


#: The parameter `turn` of `Codec.each_scalar`.
Turn = Callable[[Codec, Any, tuple[str, ...]], Any]


def _settled(new: Any, old: Any, codec_of: Callable[[str], Optional[Codec]]) -> Any:
    """Returns the members of an object, each settled by its codec."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    made = {}
    for name, one in new.items():
        codec, before = codec_of(name), old.get(name)
        made[name] = one if codec is None or one is None or before is None else codec.settled(one, before)
    return made


def _each_scalar(tree: Any, place: tuple[str, ...], turn: Turn, codec_of: Callable[[str], Optional[Codec]]) -> Any:
    if not isinstance(tree, dict):
        return tree
    made = {}
    for name, one in tree.items():
        codec = codec_of(name)
        made[name] = one if codec is None or one is None else codec.each_scalar(one, (*place, name), turn)
    return made


class Sequence(Codec):
    """`list`, `set`, `frozenset`, and `tuple` of any length."""

    json_types = frozenset({"array"})

    def __init__(self, type: type[Any], element: Member) -> None:
        self.type, self.element = type, element
        self.is_set = type in (set, frozenset)
        self.expected = "an array"
        self.rule = {"as": "set"} if self.is_set else {}

    def encode(self, value: Any) -> Any:
        if not isinstance(value, self.type):
            raise Mismatch(f"is {shown(value)}, where a {self.type.__name__} is expected")
        made = []
        for index, element in enumerate(value):
            try:
                made.append(self.element.encode(element))
            except Mismatch as problem:
                problem.path.append(str(index))
                raise
        return self.sorted(made)

    def sorted(self, made: list[Any]) -> list[Any]:
        """Returns the elements in the order in which sets are written; those of a list as they are."""
        return sorted(made, key=lambda tree: write(tree)) if self.is_set else made

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, list):
            raise self.refuse(tree)
        made = []
        for index, element in enumerate(tree):
            try:
                made.append(self.element.decode(element))
            except Mismatch as problem:
                problem.path.append(str(index))
                raise
        try:
            return self.type(made)
        except TypeError as problem:
            raise Mismatch(f"cannot be made a {self.type.__name__}: {problem}") from None

    def parts(self) -> Iterable[tuple[str, Member]]:
        return (("*", self.element),)

    def arrange(self, tree: Any) -> Any:
        return self.sorted([self.element.codec.arrange(element) for element in tree]) if isinstance(tree, list) else tree

    def settled(self, new: Any, old: Any) -> Any:
        if not isinstance(new, list) or not isinstance(old, list):
            return new
        # Elements are matched by id, or by index if both lists have the same length. (The elements of a set are sorted by content.)
        by_id = {canonical(one["id"]): one for one in old if isinstance(one, dict) and "id" in one}
        made = []
        for index, one in enumerate(new):
            before = old[index] if len(old) == len(new) else None
            if by_id and isinstance(one, dict) and "id" in one:
                before = by_id.get(canonical(one["id"]))
            made.append(one if before is None or one is None else self.element.codec.settled(one, before))
        return made

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Turn) -> Any:
        if not isinstance(tree, list) or self.element.codec.is_plain:
            return tree
        return [one if one is None else self.element.codec.each_scalar(one, (*place, "*"), turn) for one in tree]


class Fixed(Codec):
    """`tuple` of a fixed length, which is merged as a unit."""

    json_types = frozenset({"array"})
    rule: Mapping[str, Any] = {"as": "register"}

    def __init__(self, slots: list[Member]) -> None:
        self.slots = slots
        self.expected = f"an array of {len(slots)}"

    def encode(self, value: Any) -> Any:
        if not isinstance(value, tuple) or len(value) != len(self.slots):
            raise Mismatch(f"is {shown(value)}, where a tuple of {len(self.slots)} is expected")
        return self._each(value, Member.encode)

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, list) or len(tree) != len(self.slots):
            raise self.refuse(tree)
        return tuple(self._each(tree, Member.decode))

    def _each(self, values: Iterable[Any], turn: Callable[[Member, Any], Any]) -> list[Any]:
        made = []
        for index, (slot, value) in enumerate(zip(self.slots, values)):
            try:
                made.append(turn(slot, value))
            except Mismatch as problem:
                problem.path.append(str(index))
                raise
        return made

    def _fits(self, tree: Any) -> bool:
        return isinstance(tree, list) and len(tree) == len(self.slots)

    def arrange(self, tree: Any) -> Any:
        return [slot.codec.arrange(one) for slot, one in zip(self.slots, tree)] if self._fits(tree) else tree

    def settled(self, new: Any, old: Any) -> Any:
        if not self._fits(new) or not self._fits(old):
            return new
        both = zip(self.slots, new, old)
        return [one if one is None or before is None else slot.codec.settled(one, before) for slot, one, before in both]

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Turn) -> Any:
        if not self._fits(tree):
            return tree
        both = enumerate(zip(self.slots, tree))
        return [one if one is None else slot.codec.each_scalar(one, (*place, str(n)), turn) for n, (slot, one) in both]


class Names(Codec):
    """`dict` with strings as keys."""

    json_types = frozenset({"object"})
    expected = "an object"

    def __init__(self, value: Member) -> None:
        self.value = value

    def encode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            raise Mismatch(f"is {shown(value)}, where a dict is expected")
        made = {}
        for name, one in value.items():
            if not isinstance(name, str):
                raise Mismatch(f"has the key {name!r}, where a string is expected")
            try:
                made[checked_text(name)] = self.value.encode(one)
            except Mismatch as problem:
                problem.path.append(name)
                raise
        return made

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            raise self.refuse(tree)
        made = {}
        for name, one in tree.items():
            try:
                made[checked_text(name)] = self.value.decode(one)
            except Mismatch as problem:
                problem.path.append(name)
                raise
        return made

    def parts(self) -> Iterable[tuple[str, Member]]:
        return (("*", self.value),)

    def arrange(self, tree: Any) -> Any:
        return {name: self.value.codec.arrange(one) for name, one in tree.items()} if isinstance(tree, dict) else tree

    def settled(self, new: Any, old: Any) -> Any:
        return _settled(new, old, lambda name: self.value.codec)

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Turn) -> Any:
        return _each_scalar(tree, place, turn, lambda name: self.value.codec)


class Union(Codec):
    """A union whose members have different JSON types."""

    def __init__(self, choices: list[Member]) -> None:
        self.choices = choices
        self.json_types = frozenset().union(*(one.codec.json_types for one in choices))
        self.expected = " or ".join(one.codec.expected for one in choices)

    def encode(self, value: Any) -> Any:
        for one in self.choices:
            if one.codec.takes(value):
                return one.encode(value)
        raise self.refuse(value)

    def decode(self, tree: Any) -> Any:
        for one in self.choices:
            if json_type(tree) in one.codec.json_types:
                return one.decode(tree)
        raise self.refuse(tree)

    def parts(self) -> Iterable[tuple[str, Member]]:
        return (part for one in self.choices for part in one.codec.parts())

    def ordered(self) -> Codec:
        return Union([Member(one.codec.ordered(), one.rule, one.optional, one.name) for one in self.choices])

    def _reader(self, tree: Any) -> Optional[Codec]:
        """Returns the codec of the choice to which a tree belongs."""
        for one in self.choices:
            if json_type(tree) in one.codec.json_types and (len(self.choices) < 2 or one.codec.reads(tree)):
                return one.codec
        return None

    def settled(self, new: Any, old: Any) -> Any:
        codec = self._reader(new)
        return new if codec is None or codec is not self._reader(old) else codec.settled(new, old)

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Turn) -> Any:
        codec = self._reader(tree)
        return tree if codec is None else codec.each_scalar(tree, place, turn)

    def arrange(self, tree: Any) -> Any:
        fitting = [one.codec for one in self.choices if json_type(tree) in one.codec.json_types]
        if len(fitting) > 1:  # models of pydantic: their content decides
            fitting = [codec for codec in fitting if codec.reads(tree)]
        return fitting[0].arrange(tree) if fitting else tree


class Record(Codec):
    """A dataclass: a JSON object with a member for each field."""

    json_types = frozenset({"object"})
    expected = "an object"

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        #: The fields by their Python names, each with whether it is required. They are added later, because a class may contain itself.
        self.fields: dict[str, tuple[Member, bool]] = {}

    @property
    def is_closed(self) -> bool:
        """Returns whether the object has no members except its fields."""
        return True

    def encode(self, value: Any) -> Any:
        if not isinstance(value, self.cls):
            raise Mismatch(f"is {shown(value)}, where a {self.cls.__name__} is expected")
        if type(value) is not self.cls:
            self.refuse_more(value, [field.name for field in dataclasses.fields(value) if field.init])
        made = {}
        for attribute, (member, _) in self.fields.items():
            name = member.name or attribute
            try:
                written = member.encode(getattr(value, attribute))
            except Mismatch as problem:
                problem.path.append(name)
                raise
            if written is not None or member.writes_null:
                made[name] = written
        return made

    def refuse_more(self, value: Any, names: Iterable[str]) -> None:
        """Raises if an object of a subclass has members that would be lost."""
        more = [name for name in names if name not in self.fields]
        if more:
            raise Mismatch(
                f"is of the class {type(value).__name__}, whose member {more[0]!r} would be lost: only those of {self.cls.__name__} are "
                f"written. Make it a {self.cls.__name__}"
            )

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            raise self.refuse(tree)
        given = {}
        for attribute, (member, required) in self.fields.items():
            name = member.name or attribute
            if name in tree:
                try:
                    given[attribute] = member.decode(tree[name])
                except Mismatch as problem:
                    problem.path.append(name)
                    raise
            elif required and member.optional:
                given[attribute] = None
            elif required:
                raise Mismatch("is missing", name)
        try:
            return self.cls(**given)
        except Exception as problem:
            raise Mismatch(f"is refused by {self.cls.__name__}: {problem!r}") from problem

    def parts(self) -> Iterable[tuple[str, Member]]:
        return ((member.name or attribute, member) for attribute, (member, _) in self.fields.items())

    def _codec(self, name: str) -> Optional[Codec]:
        """Returns the codec of a member, by its name in JSON."""
        return next((member.codec for attribute, (member, _) in self.fields.items() if name == (member.name or attribute)), None)

    def settled(self, new: Any, old: Any) -> Any:
        return _settled(new, old, self._codec)

    def each_scalar(self, tree: Any, place: tuple[str, ...], turn: Turn) -> Any:
        return _each_scalar(tree, place, turn, self._codec)

    def arrange(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        codecs = {member.name or attribute: member.codec for attribute, (member, _) in self.fields.items()}
        return {name: codecs[name].arrange(one) if name in codecs else one for name, one in tree.items()}
