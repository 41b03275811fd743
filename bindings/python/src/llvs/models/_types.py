"""Derives codecs and rules from the types of a model."""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import typing
from decimal import Decimal
from typing import Any, Callable, Mapping, Optional

from . import _codecs, _containers
from ._codecs import Codec, Member
from ._json import canonical, parse, write
from ._pydantic import PydanticRecord
from .errors import Mismatch
from .rules import Convert, MergeRule, Named, escaped, segment

#: The largest JSON text, in bytes, that a rule may have for an absent member.
_ABSENT_MAX = 1024
#: The kinds of rules, and the JSON types to which they apply.
_KINDS = {
    "counter": ("number", "a number"), "text": ("string", "a string"), "set": ("array", "a list or a set"),
    "list": ("array", "a list"), "tuple": ("array", "a tuple or a list"),
}  # fmt: skip


class Compiler:
    """Makes the codecs of one model. Raises TypeError for a type that it does not support, naming the class and the member."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        """namespace: names that annotations may use in addition to those of the class's module."""
        self.namespace = dict(namespace)
        self.records: dict[type, Codec] = {}
        #: Members without a default, by class, with their places; and for each use of a class, the members that need no default in that
        #: use.
        self.bare: dict[type, dict[str, str]] = {}
        self.uses: list[tuple[type, frozenset[str]]] = []

    def member(self, hint: Any, where: str, foreign: bool = False, known_by: frozenset[str] = frozenset()) -> Member:
        """Returns the member that an annotation describes. foreign: of a pydantic model, which encodes types that are not known here.
        known_by: if the annotation is a class with members, the members that need no default."""
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
        # Every element of a list has the members of its key.
        keys = frozenset(pointer[1:] for pointer in rule.get("key", ["/id"]))
        codec: Codec
        if convert is not None:
            codec = _codecs.Converted(convert.encode, convert.decode, f"what {where} converts")
        else:
            codec = self.codec(hint, where, foreign, keys, known_by)
        return Member(codec, self.complete(rule, codec, where), optional, name)

    def complete(self, rule: dict[str, Any], codec: Codec, where: str) -> dict[str, Any]:
        """Returns the rule of a member, completed by the rule of its type."""
        if "key" in rule and "as" not in rule:
            rule["as"] = codec.rule.get("as", "list")
        rule = {**codec.rule, **rule}
        json_type, expected = _KINDS.get(rule.get("as", "auto"), (None, ""))
        if json_type is not None and json_type not in codec.json_types:
            raise TypeError(f"{where}: the rule {rule['as']!r} is for {expected}; this member is {codec.expected}")
        if "key" in rule and rule["as"] not in ("list", "set"):
            raise TypeError(f"{where}: a key is for a list or a set, and the rule is {rule['as']!r}")
        return rule

    def codec(
        self, hint: Any, where: str, foreign: bool = False, keys: frozenset[str] = frozenset(), known_by: frozenset[str] = frozenset()
    ) -> Codec:
        """Returns the codec of a type. keys: if it is a list, the members that its elements need no default for. known_by: as in
        `member`."""
        if hint in _codecs.SCALARS:
            return _codecs.SCALARS[hint]
        if hint is Any or hint is object:
            return _codecs.Anything()
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint in (list, set, frozenset, dict, tuple) and not foreign:
            raise TypeError(f"{where}: say of what the {hint.__name__} is, as in list[str] or dict[str, int]; Any is allowed")
        if origin in (list, set, frozenset):
            return _containers.Sequence(origin, self.member(arguments[0], where, foreign, keys))
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return _containers.Sequence(tuple, self.member(arguments[0], where, foreign, keys))
            slots = [self.member(one, where, foreign) for one in arguments]
            if any(one.rule != dict(one.codec.rule) for one in slots):
                raise TypeError(f"{where}: a slot of a tuple has no rule of its own, since it stands as a whole; use a dataclass")
            return _containers.Fixed(slots)
        if origin is dict:
            if arguments[0] is not str and not foreign:
                raise TypeError(f"{where}: the keys of a dict are strings in JSON; make it dict[str, ...]")
            return _containers.Names(self.member(arguments[1], where, foreign))
        if origin in (typing.Union, types.UnionType):
            return self.union(arguments, where, foreign, known_by)
        if origin is typing.Literal:
            values = {value: value for value in arguments}
            if len(values) != len(arguments):
                raise TypeError(f"{where}: Python takes two values of {hint} for one, such as 1 and True; keep one of them")
            return _codecs.Choice(values, where)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            if any(isinstance(one.value, bool) or not isinstance(one.value, (str, int)) for one in hint):
                raise TypeError(f"{where}: the values of {hint.__name__} must be strings or integers")
            return _codecs.Choice({one: one.value for one in hint}, hint.__name__)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.record(hint, known_by)
        if is_pydantic(hint):
            return self.pydantic(hint, known_by)
        if foreign:
            return _codecs.Anything()
        if isinstance(hint, (MergeRule, Named, Convert)):
            raise TypeError(f"{where}: {hint!r} is no type, but says more of one: write Annotated[int, {hint!r}]")
        raise TypeError(
            f"{where}: {getattr(hint, '__name__', hint)} is no type that can be kept as JSON here; use a dataclass, or say how by "
            "Annotated[..., llvs.models.Convert(encode, decode)]"
        )

    def union(self, arguments: tuple[Any, ...], where: str, foreign: bool, known_by: frozenset[str]) -> Codec:
        """Returns the codec of a union, if JSON can distinguish its choices."""
        choices = [self.member(one, where, foreign, known_by) for one in arguments]
        seen: set[str] = set()
        for one in choices:
            if seen & one.codec.json_types and not foreign:
                raise TypeError(
                    f"{where}: JSON cannot tell {' from '.join(each.codec.expected for each in choices)}; use one class with optional "
                    "members, or llvs.models.Convert"
                )
            seen |= one.codec.json_types
        return _containers.Union(choices)

    def pydantic(self, model: Any, keys: frozenset[str] = frozenset()) -> Codec:
        """Returns the codec of a model of pydantic. keys: members that need no default."""
        self.uses.append((model, keys))
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
            if info.is_required():
                self.bare.setdefault(model, {})[alias] = place
            if info.exclude:
                raise TypeError(f"{place} is excluded, so that it would never be saved; leave exclude=True out, or the member")
            if alias not in readable(model, name, info):
                raise TypeError(f"{place} is written as {alias!r}, and not read under that name; give it one alias for both")
            if member.rule.get("as") == "counter" and member.codec is _codecs.SCALARS[Decimal]:
                raise TypeError(f"{place}: pydantic writes a Decimal as a string, which cannot be a counter; make it an int")
            begin_with(member, info.default, place)
            is_alone = not getattr(info, "default_factory_takes_validated_data", False)
            if "absent" in member.rule and is_alone and not info.is_required():
                adapter = sys.modules["pydantic"].TypeAdapter(hints[name])
                check_absent(member, info.get_default(call_default_factory=True), place, lambda tree: adapter.validate_json(write(tree)))
            field = Member(member.codec, member.rule, member.optional, alias)
            field.writes_null = not (info.is_required() or info.default is None and info.default_factory is None)
            check_removal(field, place)
            made.fields[name] = (field, False)
        return made

    def record(self, cls: type, keys: frozenset[str] = frozenset()) -> Codec:
        """Returns the codec of a dataclass. keys: members that need no default."""
        self.uses.append((cls, keys))
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
            if required and not member.optional:
                self.bare.setdefault(cls, {})[name] = place
            if any(name == (other.name or attribute) for attribute, (other, _) in made.fields.items()):
                raise TypeError(f"{place}: another member is called {name!r} in JSON already")
            begin_with(member, field.default, place)
            if field.default is not dataclasses.MISSING:
                check_absent(member, field.default, place)
            elif field.default_factory is not dataclasses.MISSING and "absent" in member.rule:
                check_absent(member, field.default_factory(), place)
            member.writes_null = not member.optional or not required and field.default is not None
            check_removal(member, place)
            made.fields[field.name] = (member, required)
        return made

    def check_defaults(self) -> None:
        """Raises if a member lacks a default that it needs. In elements of a list, the members of the key need none."""
        for cls, keys in self.uses:
            names = {attribute: member.name for attribute, (member, _) in getattr(self.records[cls], "fields").items()}
            for name, place in self.bare.get(cls, {}).items():
                if name not in keys and not any(names.get(key) == name for key in keys):
                    raise TypeError(needs_default(place))

    def hints(self, cls: type) -> dict[str, Any]:
        """Returns the annotations of a class."""
        try:
            return typing.get_type_hints(cls, localns={**self.namespace, cls.__name__: cls}, include_extras=True)
        except NameError as problem:
            unknown = f"{cls.__name__}: an annotation uses {problem.name!r}, which is not known here"
            raise TypeError(f"{unknown}; define it before the model") from None


def needs_default(place: str) -> str:
    """Returns the message that refuses a member without a default."""
    return (
        f"{place} needs a default: a merge can leave a member out that one side removed, and a version of the app that does not know it "
        "writes none. Give it one, or make it Optional with None"
    )


def begin_with(member: Member, default: Any, place: str) -> None:
    """Makes the default of a member the initial value of its counter or text."""
    kind = member.rule.get("as")
    if kind == "counter" and isinstance(default, (int, float, Decimal)):
        if member.rule.get("from", default) != default:
            raise TypeError(
                f"{place}: the counter begins with {member.rule['from']}, and its member with {default}: what is added would be added to "
                "two numbers. Leave start= out, and make it the default"
            )
        if default:
            member.rule["from"] = default
    if kind == "text" and isinstance(default, str) and default and "absent" not in member.rule:
        if len(write(default)) > _ABSENT_MAX:
            raise TypeError(
                f"{place}: the default of a text is {_ABSENT_MAX} bytes of JSON at most; make it \"\", and show the longer one where it is"
            )
        member.rule["absent"] = default


def check_absent(member: Member, default: Any, place: str, decode: Optional[Callable[[Any], Any]] = None) -> None:
    """Raises if a merge reads an absent member as another value than the model does. (A None that is left out is not compared.)

    decode: how the member is read, if its codec does not say.
    """
    if "absent" not in member.rule or default is None:
        return
    absent = member.rule["absent"]
    tree = parse(write(absent))
    try:
        is_same = canonical(parse(write(member.encode(default)))) == canonical(tree)
    except (Mismatch, TypeError, ValueError):
        return  # the default itself cannot be written
    try:
        is_same = is_same or bool((decode or member.decode)(tree) == default)
    except (Mismatch, TypeError, ValueError):
        pass
    if not is_same:
        raise TypeError(
            f"{place}: where the member is missing it is merged as {absent!r}, and read as its default, {default!r}. Let Absent() and the "
            "default be the same"
        )


def is_removed(member: Member) -> bool:
    """Returns whether a member is left out if it is None."""
    return member.optional and not member.writes_null


def check_removal(member: Member, place: str, rule: Optional[Mapping[str, Any]] = None) -> None:
    """Raises if a rule (by default the member's own) applies to the removal of a member that is never left out."""
    if (member.rule if rule is None else rule).get("delete") != "delete" or is_removed(member):
        return
    inside, codec = "", member.codec
    if isinstance(codec, _containers.Names):
        inside = "For what is removed from it, write dict[str, Annotated[..., llvs.models.DeleteWins()]]; for the dict itself, make"
    elif isinstance(codec, _containers.Sequence):
        if "object" in codec.element.codec.json_types:
            inside = f"For its elements, write {codec.type.__name__}[Annotated[..., llvs.models.DeleteWins()]]; for the whole, make"
        else:
            inside = "Its elements stay removed without it; for the whole, make"
    raise TypeError(
        f"{place}: DeleteWins() is about what one side removed, and this member is always written. {inside or 'Make'} it Optional with None"
    )


def readable(model: Any, name: str, info: Any) -> set[str]:
    """Returns the names under which a model of pydantic reads a member."""
    config, given = model.model_config, info.validation_alias if info.validation_alias is not None else info.alias
    aliases = getattr(given, "choices", [given])
    names = {one for one in aliases if isinstance(one, str)}
    names |= {path.path[0] for path in aliases if len(getattr(path, "path", ())) == 1}
    if given is None or config.get("populate_by_name") or config.get("validate_by_name"):
        names.add(name)
    return names


def is_pydantic(hint: Any) -> bool:
    """Returns whether a type is a model of pydantic, without importing pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def patterns(codec: Codec) -> dict[str, dict[str, Any]]:
    """Returns the rules of all members that a codec leads to, by pattern. Raises TypeError if a class that contains itself has rules."""
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


def places(codec: Codec, rules: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Returns the patterns of all members that a codec leads to and that can have rules. rules: those of `patterns`."""
    found: set[str] = set()
    open: list[tuple[Codec, str, frozenset[int]]] = [(codec, "", frozenset())]
    while open:
        one, at, above = open.pop()
        for name, member in _places(one):
            place = f"{at}/{name}"
            found.add(place)
            rule = rules.get(place, {})
            is_merged_inside = rule.get("as") not in ("register", "counter", "text") and (rule.get("as") != "set" or "key" in rule)
            if is_merged_inside and id(member.codec) not in above | {id(one)}:
                open.append((member.codec, place, above | {id(one)}))
    return frozenset(found)


def settle(codec: Codec, rules: dict[str, dict[str, Any]], model: str) -> None:
    """Adapts rules and codecs to each other: members in rules get their names in JSON, and members with `pick` get texts that are ordered.
    Raises TypeError if a rule names a member that does not exist."""
    root = Member(codec, {})
    for pattern, rule in rules.items():
        if pattern and not pattern.startswith("/"):
            continue  # an entry that is not a pattern
        found = [root]
        for name in pattern.split("/")[1:]:
            found = [member for one in found for part, member in _places(one.codec) if name == part]
        where = f"{model}: the rule at {pattern!r}"
        # (Elements can be removed. If several classes of a union have the member, one in which it can be removed is enough.)
        if pattern and not pattern.endswith("/*") and found and not any(is_removed(member) for member in found):
            check_removal(found[0], where, rule)
        if "key" in rule:
            inside = [member for one in found for part, member in _places(one.codec) if part == "*"]
            rule["key"] = [_named(pointer, inside, where, "a key") for pointer in rule["key"]]
        if "identity" in rule:
            rule["identity"] = [_named(pointer, found, where, "an identity") for pointer in rule["identity"]]
        pick = rule.get("pick")
        if isinstance(pick, dict):
            rule["pick"] = {which: _named(pointer, found, where, "what is picked by") for which, pointer in pick.items()}
            for pointer in rule["pick"].values():
                if isinstance(pointer, str):
                    _order([member for one in found for member in _behind(one, pointer)])
        elif pick in ("max", "min"):
            _order(found)


def _order(members: list[Member]) -> None:
    for member in members:
        member.codec = member.codec.ordered()


def _places(codec: Codec) -> list[tuple[str, Member]]:
    """Returns the members one level down, each with its segment as patterns spell it."""
    return [(name if name == "*" and not isinstance(codec, _containers.Record) else segment(name), part) for name, part in codec.parts()]


def _behind(member: Member, pointer: str) -> list[Member]:
    """Returns the members that a JSON pointer leads to."""
    found = [member]
    for name in pointer.split("/")[1:]:
        found = [part for one in found for place, part in one.codec.parts() if escaped(place) == name]
    return found


def _named(pointer: Any, members: list[Member], where: str, what: str) -> Any:
    """Returns a JSON pointer in which the first member has its name in JSON."""
    records = [each for one in members for each in _records(one.codec)]
    if not isinstance(pointer, str) or not pointer.startswith("/") or not records:
        return pointer
    first, *rest = pointer[1:].split("/")
    for record in records:
        names = {escaped(attribute): escaped(member.name or attribute) for attribute, (member, _) in record.fields.items()}
        if first in names.values() or not record.is_closed:
            return pointer
        if first in names:
            return "/".join(["", names[first], *rest])
    known = ", ".join(repr(name) for record in records for name in record.fields)
    raise TypeError(f"{where}: {what} names the member {first!r}, which {records[0].cls.__name__} has not got; its members are {known}")


def _records(codec: Codec) -> list[_containers.Record]:
    if isinstance(codec, _containers.Union):
        return [record for one in codec.choices for record in _records(one.codec)]
    return [codec] if isinstance(codec, _containers.Record) else []
