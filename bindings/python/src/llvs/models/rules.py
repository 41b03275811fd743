"""Rules for merging as they stand in a model: `Annotated[int, llvs.Counter()]`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable, Literal, Mapping, Optional, Union

#: A number of a rule, kept to the last digit.
Number = Union[int, float, Decimal]


class MergeRule:
    """A rule for merging a member of a model, or a part of one: several may stand in one `Annotated`.

    What each kind does is told, with examples, in docs/merging.md.
    """

    def rule(self) -> dict[str, Any]:
        """The rule as it stands in "__llvs_schema"."""
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Callable[[Any], Any]) -> Any:
        """Puts the rule into the JSON Schema that pydantic makes of a model, as `x-merge`."""
        made = handler(core_schema)
        made.setdefault("x-merge", {}).update(self.rule())
        return made


@dataclass(frozen=True)
class Counter(MergeRule):
    """A number that both sides may add to: all that was added counts.

        visits: Annotated[int, llvs.Counter()] = 0

    start: what a counter is that nobody has written yet: the default of the member, and nothing else where it has one. min, max: bounds
    that are reported when a merge leaves them, and never enforced: bring the number within them where it is read.
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
    """A string that is merged like text, by its lines; other strings stand as a whole.

    A line that both sides changed is merged by its words, where that is clean; else the newer side's whole line stands, and a conflict has
    both. With unit "line" no line is ever mixed: for code and configuration. One that nobody has written yet is the default of the member,
    of 1,024 bytes at most.
    """

    unit: Literal["word", "line"] = "word"

    def rule(self) -> dict[str, Any]:
        """`{"as": "text", ...}`."""
        made = {"as": "text"}
        if self.unit != "word":
            made["unit"] = self.unit
        return made


class Key(MergeRule):
    """By which members the elements of a list or set are told apart.

        phones: Annotated[list[Phone], llvs.Key("id")] = field(default_factory=list)

    The names are those of the members in Python. Without it, elements that have an `id` in the JSON are told apart by that, others by all
    that they hold. `Key()` is the element itself: a list whose elements are there once each. A name that begins with "/" is a JSON pointer.
    At most 16 members.

    Elements with equal keys are told apart by their order: the first of one side is the first of the other.
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
    """A member that is never merged inside: what one side made of it stands as a whole. For what must fit together."""

    def rule(self) -> dict[str, Any]:
        """`{"as": "register"}`."""
        return {"as": "register"}


@dataclass(frozen=True)
class Tuple(MergeRule):
    """An array of a fixed length, merged slot by slot. Without it, a `tuple` of a fixed length stands as a whole."""

    def rule(self) -> dict[str, Any]:
        """`{"as": "tuple"}`."""
        return {"as": "tuple"}


class Pick(MergeRule):
    """Which side stands where both changed what is not merged inside; without it, the newer.

        last_seen: Annotated[Optional[datetime], llvs.Pick("max")] = None
        avatar: Annotated[Optional[Avatar], llvs.Register(), llvs.Pick(max="taken")] = None

    Numbers are compared as numbers, and strings by their characters. So dates and times that "max" and "min" are for are written in UTC,
    with six digits of the second; such as are there otherwise are read as ever, and stay until they are changed. (An index finds them as
    they are written.)
    """

    def __init__(
        self,
        which: Optional[Literal["newer", "older", "max", "min", "arbiter"]] = None,
        *,
        max: Optional[str] = None,
        min: Optional[str] = None,
    ) -> None:
        """which: "newer", "older", "max", "min", or "arbiter": what the app's `ValueMerger(part=...)` says, without one the newer. Or `max`
        or `min` alone: the side whose member of this name is the larger or smaller."""
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
    """What one side removed stays removed, though the other changed it; without it, the change stands.

        phones: list[Annotated[Phone, llvs.DeleteWins()]] = field(default_factory=list)     # each phone
        draft: Annotated[Optional[str], llvs.DeleteWins()] = None                           # the member

    Refused at a member that is always written, which nobody can remove, also where `rules` of `model` gives it by a pattern.
    `rules={"": llvs.DeleteWins()}` is about whole objects.
    """

    def rule(self) -> dict[str, Any]:
        """`{"delete": "delete"}`."""
        return {"delete": "delete"}


class Absent(MergeRule):
    """What a member stands for where it is missing: `settings: Annotated[dict[str, str], llvs.Absent({})]`.

    The same as the default of the member, where that is not None: a value without the member is read as that.
    """

    def __init__(self, value: Any) -> None:
        """value: whatever JSON can hold."""
        self.value = value

    def rule(self) -> dict[str, Any]:
        """`{"absent": ...}`."""
        return {"absent": self.value}

    def __repr__(self) -> str:
        return f"Absent({self.value!r})"


class Identity(MergeRule):
    """Two objects that both sides added under one name are merged only if these members are equal; else one of them stands.

        @llvs.model("book/", rules={"": llvs.Identity("isbn")})
    """

    def __init__(self, *names: str) -> None:
        """names: members, 16 at most, or JSON pointers that begin with "/"."""
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
    """What a member is called in the JSON, where that is not its name in Python: `full_name: Annotated[str, llvs.Named("fullName")]`."""

    name: str

    def __post_init__(self) -> None:
        if not self.name:
            raise TypeError("Named takes the name that the member has in the JSON")


@dataclass(frozen=True)
class Convert:
    """How a member of a type that this package does not know becomes JSON, and is made of it again.

        folder: Annotated[Path, llvs.Convert(str, Path)] = Path()
    """

    #: Makes of a member what JSON can hold.
    encode: Callable[[Any], Any]
    #: Makes the member again; what it raises is told by `DecodeError`.
    decode: Callable[[Any], Any]


def escaped(name: str) -> str:
    """A name as a segment of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def segment(name: str) -> str:
    """A name as a segment of a pattern, where "*" alone means any."""
    return "~2" if name == "*" else escaped(name)


def short_rule(rule: Mapping[str, Any]) -> Any:
    """A rule as short as it can be written: a name where it is nothing else."""
    return rule.get("as", "auto") if set(rule) <= {"as"} else dict(rule)
