"""From the types of a model to its codecs and rules."""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import typing
from decimal import Decimal
from typing import Any, Mapping, Optional

from . import _codecs, _containers
from ._codecs import Codec, Member
from ._pydantic import PydanticRecord
from .rules import Convert, MergeRule, Named, segment

#: The kinds of rules, with the types of JSON that they are for.
_KINDS = {
    "counter": ("number", "a number"), "text": ("string", "a string"), "set": ("array", "a list or a set"),
    "list": ("array", "a list"), "tuple": ("array", "a tuple or a list"),
}  # fmt: skip


class Compiler:
    """Makes the codecs of one model. Raises TypeError for what cannot be one, naming the class and the member."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """namespace: names that annotations may use beside those of the class's module."""
        self.namespace = dict(namespace)
        self.records: dict[type, Codec] = {}

    def member(self, hint: Any, where: str, foreign: bool = False) -> Member:
        """What an annotation says. foreign: of a pydantic model, which encodes types that are not known here."""
        rule: dict[str, Any] = {}
        name: Optional[str] = None
        convert: Optional[Convert] = None
        optional = False
        marks: list[Any] = []
        while True:
            if typing.get_origin(hint) is typing.Annotated:
                marks += hint.__metadata__
                hint = hint.__origin__
            elif typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint):
                optional = True
                rest = tuple(one for one in typing.get_args(hint) if one is not type(None))
                hint = typing.Union[rest]
            else:
                break
        for mark in marks:
            if isinstance(mark, Named):
                name = mark.name
            elif isinstance(mark, Convert):
                convert = mark
            elif isinstance(mark, MergeRule):
                for member, value in mark.rule().items():
                    if rule.setdefault(member, value) != value:
                        raise TypeError(f"{where}: {', '.join(map(repr, marks))} say different things of {member!r}; keep one")
            elif isinstance(mark, type) and issubclass(mark, (MergeRule, Convert, Named)):
                raise TypeError(f"{where}: write {mark.__name__}(), not the class {mark.__name__}")
        # The members by which the elements of a list are told apart are there whenever the element is.
        keys = {pointer[1:] for pointer in rule.get("key", ["/id"])}
        codec: Codec
        if convert is not None:
            codec = _codecs.Converted(convert.encode, convert.decode, f"what {where} converts")
        else:
            codec = self.codec(hint, where, foreign, keys)
        return Member(codec, self.complete(rule, codec, where), optional, name)

    def complete(self, rule: dict[str, Any], codec: Codec, where: str) -> dict[str, Any]:
        """The rule of a member with what comes with its type."""
        if "key" in rule and "as" not in rule:
            rule["as"] = codec.rule.get("as", "list")
        rule = {**codec.rule, **rule}
        json_type, expected = _KINDS.get(rule.get("as", "auto"), (None, ""))
        if json_type is not None and json_type not in codec.json_types:
            raise TypeError(f"{where}: the rule {rule['as']!r} is for {expected}; this member is {codec.expected}")
        if "key" in rule and rule["as"] not in ("list", "set"):
            raise TypeError(f"{where}: a key is for a list or a set, and the rule is {rule['as']!r}")
        return rule

    def codec(self, hint: Any, where: str, foreign: bool = False, keys: frozenset[str] | set[str] = frozenset()) -> Codec:
        """The codec of a type. keys: members that the elements of a list need no default for, where it is one."""
        if hint in _codecs.SCALARS:
            return _codecs.SCALARS[hint]
        if hint is Any or hint is object:
            return _codecs.Anything()
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint in (list, set, frozenset, dict, tuple) and not foreign:
            raise TypeError(f"{where}: say of what the {hint.__name__} is, as in list[str] or dict[str, int]; Any is allowed")
        if origin in (list, set, frozenset):
            return _containers.Sequence(origin, self.element(arguments[0], where, foreign, keys))
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return _containers.Sequence(tuple, self.element(arguments[0], where, foreign, keys))
            return _containers.Fixed([self.member(one, where, foreign) for one in arguments])
        if origin is dict:
            if arguments[0] is not str and not foreign:
                raise TypeError(f"{where}: the keys of a dict are strings in JSON; make it dict[str, ...]")
            return _containers.Names(self.member(arguments[1], where, foreign))
        if origin in (typing.Union, types.UnionType):
            return self.union(arguments, where, foreign)
        if origin is typing.Literal:
            return _codecs.Choice({value: value for value in arguments}, where)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            if any(isinstance(one.value, bool) or not isinstance(one.value, (str, int)) for one in hint):
                raise TypeError(f"{where}: the values of {hint.__name__} must be strings or integers")
            return _codecs.Choice({one: one.value for one in hint}, hint.__name__)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.record(hint)
        if is_pydantic(hint):
            return self.pydantic(hint)
        if foreign:
            return _codecs.Anything()
        raise TypeError(
            f"{where}: {getattr(hint, '__name__', hint)} is no type that can be kept as JSON here; use a dataclass, or say how by "
            "Annotated[..., llvs.Convert(encode, decode)]"
        )

    def element(self, hint: Any, where: str, foreign: bool, keys: frozenset[str] | set[str]) -> Member:
        """As `member`, for the elements of a list or set: the members of their key need no default."""
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return Member(self.record(hint, keys), {})
        if is_pydantic(hint):
            return Member(self.pydantic(hint, keys), {})
        return self.member(hint, where, foreign)

    def union(self, arguments: tuple[Any, ...], where: str, foreign: bool) -> Codec:
        """A union, when JSON can tell its members apart."""
        choices = [self.member(one, where, foreign) for one in arguments]
        seen: set[str] = set()
        for one in choices:
            if seen & one.codec.json_types and not foreign:
                raise TypeError(
                    f"{where}: JSON cannot tell {' from '.join(each.codec.expected for each in choices)}; use one class with optional "
                    "members, or llvs.Convert"
                )
            seen |= one.codec.json_types
        return _containers.Union(choices)

    def pydantic(self, model: Any, keys: frozenset[str] | set[str] = frozenset()) -> Codec:
        """A model of pydantic. keys: members that need no default."""
        if model in self.records:
            return self.records[model]
        made = self.records[model] = PydanticRecord(model)
        if model.model_config.get("extra") == "forbid":
            raise TypeError(
                f"{model.__name__} forbids members that it does not know, and could not read what a newer version of the app saves; "
                "remove extra='forbid' from its configuration"
            )
        hints = self.hints(model)
        for name, info in model.model_fields.items():
            place, alias = f"{model.__name__}.{name}", info.serialization_alias or info.alias or name
            member = self.member(hints[name], place, foreign=True)
            if info.is_required() and alias not in keys:
                raise TypeError(needs_default(place))
            if member.rule.get("as") == "counter" and member.codec is _codecs.SCALARS[Decimal]:
                raise TypeError(f"{place}: pydantic writes a Decimal as a string, which cannot be a counter; make it an int")
            begin_with(member, info.default)
            made.fields[name] = (Member(member.codec, member.rule, member.optional, alias), False)
        return made

    def record(self, cls: type, keys: frozenset[str] | set[str] = frozenset()) -> Codec:
        """A dataclass. keys: members that need no default."""
        if cls in self.records:
            return self.records[cls]
        made = self.records[cls] = _containers.Record(cls)
        hints = self.hints(cls)
        for field in dataclasses.fields(cls):
            if not field.init:
                continue
            place = f"{cls.__name__}.{field.name}"
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            member = self.member(hints[field.name], place)
            name = member.name or field.name
            if required and not member.optional and name not in keys:
                raise TypeError(needs_default(place))
            if any(name == (other.name or attribute) for attribute, (other, _) in made.fields.items()):
                raise TypeError(f"{place}: another member is called {name!r} in JSON already")
            begin_with(member, field.default)
            made.fields[field.name] = (member, required)
        return made

    def hints(self, cls: type) -> dict[str, Any]:
        """The annotations of a class."""
        try:
            return typing.get_type_hints(cls, localns={**self.namespace, cls.__name__: cls}, include_extras=True)
        except NameError as problem:
            unknown = f"{cls.__name__}: an annotation uses {problem.name!r}, which is not known here"
            raise TypeError(f"{unknown}; define it before the model") from None


def needs_default(place: str) -> str:
    """Why a member without a default is refused."""
    return (
        f"{place} needs a default: a merge can leave a member out that one side removed, and a version of the app that does not know it "
        "writes none. Give it one, or make it Optional with None"
    )


def begin_with(member: Member, default: Any) -> None:
    """A counter begins with the default of its member, unless its rule says with what."""
    if member.rule.get("as") == "counter" and isinstance(default, (int, float, Decimal)) and default:
        member.rule.setdefault("from", default)


def is_pydantic(hint: Any) -> bool:
    """Whether a type is a model of pydantic, which is not imported for that."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def patterns(codec: Codec) -> dict[str, dict[str, Any]]:
    """The rules of what a codec leads to, by pattern. Raises TypeError where a class that holds itself has rules."""
    found: dict[str, dict[str, Any]] = {}
    holding_themselves: set[str] = set()
    _collect(codec, "", {}, found, holding_themselves)
    for place in found:
        if any(place.startswith(above + "/") for above in holding_themselves):
            raise TypeError(
                f"{place}: a class that holds itself can have no rules inside, since a pattern has a fixed depth; "
                "leave the rule out (write a set as a list), or use one class for each depth"
            )
    return found


def _collect(codec: Codec, at: str, above: dict[int, str], found: dict[str, dict[str, Any]], holding_themselves: set[str]) -> None:
    above = {**above, id(codec): at}
    for name, member in codec.parts():
        place = f"{at}/{name if name == '*' and not isinstance(codec, _containers.Record) else segment(name)}"
        rule = {name: value for name, value in member.rule.items() if (name, value) != ("as", "auto")}
        if rule and found.setdefault(place, rule) != rule:
            raise TypeError(f"{place}: two parts of a union have different rules for it")
        if id(member.codec) in above:
            holding_themselves.add(above[id(member.codec)])
        elif rule.get("as") not in ("register", "counter", "text") and (rule.get("as") != "set" or "key" in rule):
            _collect(member.codec, place, above, found, holding_themselves)
