"""The value `__llvs_schema`: validation, and the rule that applies to a path.

Readings of the specification where it leaves a choice:
- Unknown members beside `merge`, `ids`, `indexes` and `models` are ignored; unknown members of a rule are invalid.
- An object under a prefix whose members are all patterns ("" or beginning with "/") is a map of patterns; any other one is a rule.
- A list or set element is matched by `*` alone; a slot of a tuple by `*` or by its index.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

from . import json_model as j

KINDS = ("auto", "register", "counter", "set", "list", "tuple", "text", "bytes")
PICKS = ("newer", "older", "max", "min", "arbiter")
#: The value id of the rules.
SCHEMA_ID = "__llvs_schema"

Pointer = tuple[str, ...]


class Star:
    """The segment of an element of a list or set: it is matched by `*`, and not by any name."""


ELEMENT = Star()
Step = str | Star


class InvalidSchema(Exception):
    """The rules are not valid: the place (a JSON pointer) and the reason."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where or '(the whole)'}: {why}")
        self.where = where


class UnknownMerge(InvalidSchema):
    """The rules have merge semantics that this version does not know; nothing is merged by them."""


@dataclass(frozen=True)
class Rule:
    """How the value at a path is merged."""

    kind: str = "auto"
    key: Optional[tuple[Pointer, ...]] = None
    pick: str = "newer"
    pick_pointer: Pointer = ()
    delete: str = "edit"
    absent: Optional[j.Node] = None
    start: j.Decimal = j.Decimal(0, 0)
    least: Optional[j.Decimal] = None
    most: Optional[j.Decimal] = None
    identity: tuple[Pointer, ...] = ()
    unit: str = "word"
    #: The prefix and the pattern under which the rule was given; None for a default.
    given: Optional[tuple[str, str]] = None


@dataclass(frozen=True)
class Rename:
    """A member that has another place from a form on."""

    to: j.Decimal
    source: Pointer
    path: Pointer


@dataclass(frozen=True)
class Forms:
    """The order of the forms of values: where the number of the form is, and the renames, if they are given."""

    at: Pointer
    renames: Optional[tuple[Rename, ...]] = None


#: A pattern as its segments; None is `*`.
Pattern = tuple[Optional[str], ...]


@dataclass(frozen=True)
class RuleSet:
    """The rules for one value id: patterns, each with a rule."""

    patterns: dict[Pattern, Rule] = field(default_factory=dict)
    forms: Optional[Forms] = None

    def rule(self, path: tuple[Step, ...]) -> Rule:
        """Returns the rule of the most specific pattern that matches: segment by segment, a name precedes `*`."""
        found = [pattern for pattern in self.patterns if len(pattern) == len(path) and _matches(pattern, path)]
        if not found:
            return Rule()
        return self.patterns[min(found, key=lambda pattern: tuple(segment is None for segment in pattern))]

    def has_counter(self, path: tuple[Step, ...]) -> bool:
        """Returns whether a counter may be at the path or below it."""
        return any(
            rule.kind == "counter" and len(pattern) >= len(path) and _matches(pattern[: len(path)], path)
            for pattern, rule in self.patterns.items()
        )

    def has_any(self, path: tuple[Step, ...]) -> bool:
        """Returns whether a rule is given for the path or for a place below it."""
        return any(len(pattern) >= len(path) and _matches(pattern[: len(path)], path) for pattern in self.patterns)

    @property
    def top(self) -> Rule:
        """Returns the rule of the whole value."""
        return self.rule(())


def _matches(pattern: Pattern, path: tuple[Step, ...]) -> bool:
    return all(segment is None or segment == step for segment, step in zip(pattern, path))


@dataclass(frozen=True)
class Schema:
    """Rules for value ids, by prefix."""

    prefixes: dict[str, RuleSet] = field(default_factory=dict)

    def rules(self, value_id: str) -> RuleSet:
        """Returns the rules of the longest prefix; shorter ones do not apply."""
        found = [prefix for prefix in self.prefixes if value_id.encode().startswith(prefix.encode())]
        return self.prefixes[max(found, key=lambda prefix: len(prefix.encode()))] if found else RuleSet()


def pointer(text: str, where: str) -> Pointer:
    """Returns the segments of an RFC 6901 pointer."""
    if text == "":
        return ()
    if not text.startswith("/"):
        raise InvalidSchema(where, "a pointer begins with /")
    return tuple(_unescape(segment, where, star=False) for segment in text[1:].split("/"))


def pattern(text: str, where: str) -> Pattern:
    """Returns the segments of a pattern: a pointer in which `*` stands for any member or element, and `~2` for a star."""
    if text == "":
        return ()
    if not text.startswith("/"):
        raise InvalidSchema(where, "a pattern begins with /")
    return tuple(None if segment == "*" else _unescape(segment, where, star=True) for segment in text[1:].split("/"))


def _unescape(segment: str, where: str, star: bool) -> str:
    parts = segment.split("~")
    for part in parts[1:]:
        if part[:1] not in (("0", "1", "2") if star else ("0", "1")):
            raise InvalidSchema(where, "~ stands before 0 or 1" + (" or 2" if star else ""))
    signs = {"0": "~", "1": "/", "2": "*"}
    return parts[0] + "".join(signs[part[0]] + part[1:] for part in parts[1:])


def _below(where: str, name: str) -> str:
    return where + "/" + name.replace("~", "~0").replace("/", "~1")


def parse_schema(data: bytes) -> Schema:
    """Returns the rules of a value `__llvs_schema`. InvalidSchema; UnknownMerge for another number of merge semantics."""
    try:
        node = j.parse(data)
    except j.NotMergeable as why:
        raise InvalidSchema("", str(why)) from None
    if not isinstance(node, j.Object):
        raise InvalidSchema("", "not an object")
    merge = node.get("merge")
    if not isinstance(merge, j.Number):
        raise InvalidSchema("/merge", "the number of the merge semantics is missing")
    if merge.value != j.Decimal(1, 0):
        raise UnknownMerge("/merge", f"merge semantics {merge.lexeme} are not known")
    ids = node.get("ids") or j.Object(())
    if not isinstance(ids, j.Object):
        raise InvalidSchema("/ids", "not an object")
    return Schema({prefix: _rule_set(prefix, value, _below("/ids", prefix)) for prefix, value in ids.members})


def is_patterns(node: j.Node) -> bool:
    """Returns whether the value under a prefix is a map of patterns, and not a rule."""
    return isinstance(node, j.Object) and all(name in ("", "schema") or name.startswith("/") for name, _ in node.members)


def _rule_set(prefix: str, node: j.Node, where: str) -> RuleSet:
    if not is_patterns(node):
        return RuleSet({(): _rule(node, where, (prefix, ""), top=True)})
    assert isinstance(node, j.Object)
    patterns: dict[Pattern, Rule] = {}
    forms: Optional[Forms] = None
    for text, value in node.members:
        at = _below(where, text)
        if text == "schema":
            forms = _forms(value, at)
            continue
        segments = pattern(text, at)
        if segments in patterns:
            raise InvalidSchema(at, "the same pattern in another spelling is there already")
        patterns[segments] = _rule(value, at, (prefix, text), top=not segments)
    if forms is not None:
        if replace(patterns.get(forms.at, Rule(pick="max")), given=None) != Rule(pick="max"):
            raise InvalidSchema(where + "/schema/at", "a rule of its own for the member that tells the form")
        patterns[forms.at] = Rule(pick="max")
    return RuleSet(patterns, forms)


#: Limits on the pointers of forms, and on the renames of one prefix.
MAX_SEGMENTS = 16
MAX_RENAMES = 64


def _forms(node: j.Node, where: str) -> Forms:
    if not isinstance(node, j.Object):
        raise InvalidSchema(where, "not an object")
    at: Optional[Pointer] = None
    renames: Optional[tuple[Rename, ...]] = None
    for name, value in node.members:
        below = _below(where, name)
        if name == "at":
            at = _member(value, below)
        elif name == "renames":
            if not isinstance(value, j.Array):
                raise InvalidSchema(below, "not an array")
            if len(value.items) > MAX_RENAMES:
                raise InvalidSchema(_below(below, str(MAX_RENAMES)), "too many renames")
            renames = tuple(_rename(item, _below(below, str(number))) for number, item in enumerate(value.items))
        else:
            raise InvalidSchema(below, "an unknown member")
    if at is None:
        raise InvalidSchema(_below(where, "at"), "missing")
    for number, rename in enumerate(renames or ()):
        for name, path in (("from", rename.source), ("path", rename.path)):
            if _overlap(at, path):
                raise InvalidSchema(f"{where}/renames/{number}/{name}", "the member that tells the form")
    return Forms(at, renames)


def _rename(node: j.Node, where: str) -> Rename:
    if not isinstance(node, j.Object):
        raise InvalidSchema(where, "not an object")
    readers: dict[str, Callable[[j.Node, str], Any]] = {"to": _decimal, "from": _member, "path": _member}
    found: dict[str, Any] = {}
    for name, value in node.members:
        at = _below(where, name)
        if name not in readers:
            raise InvalidSchema(at, "an unknown member")
        found[name] = readers[name](value, at)
    if len(found) < len(readers):
        raise InvalidSchema(where, "to, from and path")
    if _overlap(found["from"], found["path"]):
        raise InvalidSchema(_below(where, "path"), "one is in the other")
    return Rename(found["to"], found["from"], found["path"])


def _member(node: j.Node, where: str) -> Pointer:
    if not isinstance(node, j.String):
        raise InvalidSchema(where, "not a pointer")
    found = pointer(node.text, where)
    if not 0 < len(found) <= MAX_SEGMENTS:
        raise InvalidSchema(where, "1 to 16 segments")
    return found


def _overlap(a: Pointer, b: Pointer) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def _rule(node: j.Node, where: str, given: tuple[str, str], top: bool) -> Rule:
    if isinstance(node, j.String):
        node = j.Object((("as", node),))
    if not isinstance(node, j.Object):
        raise InvalidSchema(where, "a rule is the name of a kind, or an object")
    members = dict(node.members)
    kind = _choice(members.get("as", j.String("auto")), KINDS, _below(where, "as"))
    if kind == "bytes" and not top:
        raise InvalidSchema(where, "bytes is for whole values only")
    values: dict[str, Any] = {"kind": kind, "given": given}
    readers: dict[str, tuple[tuple[str, ...], Callable[[j.Node, str], dict[str, Any]]]] = {
        "as": (KINDS, lambda value, at: {}),
        "key": (("list", "set"), lambda value, at: {"key": _pointers(value, at)}),
        "pick": (KINDS, _pick),
        "delete": (KINDS, lambda value, at: {"delete": _choice(value, ("edit", "delete"), at)}),
        "absent": (KINDS, lambda value, at: {"absent": value}),
        "from": (("counter",), lambda value, at: {"start": _decimal(value, at)}),
        "min": (("counter",), lambda value, at: {"least": _decimal(value, at)}),
        "max": (("counter",), lambda value, at: {"most": _decimal(value, at)}),
        "identity": (KINDS, lambda value, at: {"identity": _pointers(value, at)}),
        "unit": (("text",), lambda value, at: {"unit": _choice(value, ("word", "line"), at)}),
    }
    for name, value in node.members:
        at = _below(where, name)
        if name not in readers:
            raise InvalidSchema(at, "an unknown member")
        kinds, read = readers[name]
        if kind not in kinds:
            raise InvalidSchema(at, f"not for {kind}")
        values.update(read(value, at))
    rule = Rule(**values)
    if rule.least is not None and rule.most is not None and rule.least.compare(rule.most) > 0:
        raise InvalidSchema(_below(where, "min"), "min is above max")
    return rule


def _choice(node: j.Node, names: tuple[str, ...], where: str) -> str:
    if not isinstance(node, j.String) or node.text not in names:
        raise InvalidSchema(where, "one of " + ", ".join(names))
    return node.text


def _decimal(node: j.Node, where: str) -> j.Decimal:
    if not isinstance(node, j.Number):
        raise InvalidSchema(where, "not a number")
    return node.value


def _pointers(node: j.Node, where: str) -> tuple[Pointer, ...]:
    if not isinstance(node, j.Array) or not node.items:
        raise InvalidSchema(where, "an array of pointers, at least one")
    if len(node.items) > 16:
        raise InvalidSchema(_below(where, "16"), "more than 16 pointers")
    found = []
    for index, item in enumerate(node.items):
        at = _below(where, str(index))
        if not isinstance(item, j.String):
            raise InvalidSchema(at, "not a pointer")
        found.append(pointer(item.text, at))
    return tuple(found)


def _pick(node: j.Node, where: str) -> dict[str, Any]:
    if isinstance(node, j.Object) and len(node.members) == 1 and node.members[0][0] in ("max", "min"):
        name, value = node.members[0]
        if not isinstance(value, j.String):
            raise InvalidSchema(_below(where, name), "not a pointer")
        return {"pick": name, "pick_pointer": pointer(value.text, _below(where, name))}
    return {"pick": _choice(node, PICKS, where)}
