"""Rules for merging in the annotations of a model: `Annotated[int, Counter()]`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable, Literal, Mapping, Optional, Union

#: A number of a rule, kept to the last digit.
Number = Union[int, float, Decimal]


class MergeRule:
    """A rule for merging a member of a model, or a part of one: one `Annotated` may have several.

    docs/merging.md explains each kind, with examples.
    """

    def rule(self) -> dict[str, Any]:
        """The rule in the form of "__llvs_schema"."""
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], Any]) -> Any:
        """Puts the rule into the JSON Schema that pydantic makes of a model, as `x-merge`."""
        made = handler(core_schema)
        made.setdefault("x-merge", {}).update(self.rule())
        return made


@dataclass(frozen=True)
class Counter(MergeRule):
    """A number that both sides may add to: all additions count.

        visits: Annotated[int, Counter()] = 0

    start: the value of a counter before the first write. If the member has a default, it must be that. min, max: bounds. A merge reports if
    they are exceeded, but never enforces them: clamp the number where it is read.
    """

    start: Optional[Number] = None
    min: Optional[Number] = None
    max: Optional[Number] = None

    def rule(self) -> dict[str, Any]:
        """`{"as": "counter", ...}`."""
        bounds = {"from": self.start, "min": self.min, "max": self.max}
        return {"as": "counter", **{name: value for name, value in bounds.items() if value is not None}}


@dataclass(frozen=True)
class Text(MergeRule):
    """A string that is merged like text, by its lines; other strings are merged as a whole.

    A line that both sides changed is merged by its words, if that is clean; otherwise the newer side's whole line wins, and a conflict has
    both. With unit "line" a line is never mixed: for code and configuration. Before the first write, the text is the default of the member,
    at most 1,024 bytes.
    """

    unit: Literal["word", "line"] = "word"

    def rule(self) -> dict[str, Any]:
        """`{"as": "text", ...}`."""
        made = {"as": "text"}
        if self.unit != "word":
            made["unit"] = self.unit
        return made


class Key(MergeRule):
    """Sets the members that identify the elements of a list or set.

        phones: Annotated[list[Phone], Key("id")] = field(default_factory=list)

    The names are those of the members in Python. Without it, elements with an `id` in the JSON are identified by that, others by their
    whole contents. `Key()` is the element itself: a list in which each element occurs once. A name that begins with "/" is a JSON pointer.
    At most 16 members.

    Elements with equal keys are identified by their order: the first of one side is the first of the other.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    @property
    def pointers(self) -> list[str]:
        """The members as JSON pointers."""
        return [name if name.startswith("/") else "/" + escaped(name) for name in self.names] or [""]

    def rule(self) -> dict[str, Any]:
        """`{"key": [...]}`."""
        return {"key": self.pointers}

    def __eq__(self, other: object) -> bool:
        return self.names == other.names if isinstance(other, Key) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Key({', '.join(map(repr, self.names))})"


@dataclass(frozen=True)
class Register(MergeRule):
    """A member that is never merged inside: one side wins as a whole. For parts that must fit together."""

    def rule(self) -> dict[str, Any]:
        """`{"as": "register"}`."""
        return {"as": "register"}


@dataclass(frozen=True)
class Tuple(MergeRule):
    """An array of a fixed length, merged slot by slot. Without it, a `tuple` of a fixed length is merged as a whole."""

    def rule(self) -> dict[str, Any]:
        """`{"as": "tuple"}`."""
        return {"as": "tuple"}


class Pick(MergeRule):
    """Sets which side wins if both changed a place that is not merged inside; without it, the newer.

        last_seen: Annotated[Optional[datetime], Pick("max")] = None
        avatar: Annotated[Optional[Avatar], Register(), Pick(max="taken")] = None

    Numbers are compared as numbers, and strings by their characters. So dates and times with "max" or "min" are written in UTC, with six
    digits of the second. Stored ones in another form are read as before, and stay until they are changed. (An index finds them as they are
    written.)
    """

    def __init__(
        self,
        which: Optional[Literal["newer", "older", "max", "min", "arbiter"]] = None,
        *,
        max: Optional[str] = None,
        min: Optional[str] = None,
    ) -> None:
        """which: "newer", "older", "max", "min", or "arbiter": the side that the app's `ValueMerger(part=...)` chooses; without one, the
        newer. Or only `max` or `min`: the side with the larger or smaller member of this name."""
        if [which, max, min].count(None) != 2:
            raise TypeError("Pick takes one thing to go by: Pick('max'), or Pick(max='member')")
        self.which: Union[str, dict[str, str]]
        if which is not None:
            if which not in ("newer", "older", "max", "min", "arbiter"):
                raise TypeError(f"Pick({which!r}): use newer, older, max, min or arbiter")
            self.which = which
        else:
            name = max or min or ""
            self.which = {"min" if max is None else "max": name if name.startswith("/") else "/" + escaped(name)}

    def rule(self) -> dict[str, Any]:
        """`{"pick": ...}`."""
        return {"pick": self.which}

    def __eq__(self, other: object) -> bool:
        return self.which == other.which if isinstance(other, Pick) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self.which))

    def __repr__(self) -> str:
        return f"Pick({self.which!r})"


@dataclass(frozen=True)
class DeleteWins(MergeRule):
    """A removal wins over a change by the other side; without it, the change wins.

        phones: list[Annotated[Phone, DeleteWins()]] = field(default_factory=list)     # each phone
        draft: Annotated[Optional[str], DeleteWins()] = None                           # the member

    It is refused if it could have no effect, at a member that is always written; also if it is given by a pattern in `rules` of `model`.
    `rules={"": DeleteWins()}` is for whole objects.
    """

    def rule(self) -> dict[str, Any]:
        """`{"delete": "delete"}`."""
        return {"delete": "delete"}


class Absent(MergeRule):
    """Sets the value of a missing member: `settings: Annotated[dict[str, str], Absent({})]`.

    It must be the default of the member, if that is not None: a value without the member is read as the default.
    """

    def __init__(self, value: Any) -> None:
        """value: any JSON value."""
        self.value = value

    def rule(self) -> dict[str, Any]:
        """`{"absent": ...}`."""
        return {"absent": self.value}

    def __repr__(self) -> str:
        return f"Absent({self.value!r})"


class Identity(MergeRule):
    """Two objects that both sides added at one place are merged only if these members are equal; else one of them wins.

        @model("book/", rules={"": Identity("isbn")})
    """

    def __init__(self, *names: str) -> None:
        """names: members, at most 16, or JSON pointers that begin with "/"."""
        if not names:
            raise TypeError("Identity takes the names of one member or more")
        self.names = names

    def rule(self) -> dict[str, Any]:
        """`{"identity": [...]}`."""
        return {"identity": Key(*self.names).pointers}

    def __repr__(self) -> str:
        return f"Identity({', '.join(map(repr, self.names))})"


@dataclass(frozen=True)
class Named:
    """Sets the name of a member in the JSON, if it differs from its name in Python: `full_name: Annotated[str, Named("fullName")]`."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise TypeError("Named takes the name that the member has in the JSON")


@dataclass(frozen=True)
class Convert:
    """Converts a member of a type that this package does not know to JSON and back.

        folder: Annotated[Path, Convert(str, Path)] = Path()
    """

    #: Converts a member to a JSON value.
    encode: Callable[[Any], Any]
    #: Converts back; `DecodeError` reports its exceptions.
    decode: Callable[[Any], Any]


def escaped(name: str) -> str:
    """A name as a segment of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def segment(name: str) -> str:
    """A name as a segment of a pattern, in which "*" alone means any."""
    return "~2" if name == "*" else escaped(name)


def short_rule(rule: Mapping[str, Any]) -> Any:
    """Returns the shortest form of a rule: only a name, if possible."""
    return rule.get("as", "auto") if set(rule) <= {"as"} else dict(rule)
