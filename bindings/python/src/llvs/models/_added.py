"""Refuses upgrades that change counters or texts: if two devices upgraded one value, a merge would apply the change twice."""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterator, Mapping, Optional

from ._codecs import shown
from ._json import canonical, parse, write
from .errors import Mismatch
from .rules import escaped

_Rules = list[tuple[list[str], Mapping[str, Any]]]


class Added:
    """The counters and texts of a model, found by its rules."""

    def __init__(self, rules: Mapping[str, Mapping[str, Any]]) -> None:
        """rules: rules by pattern."""
        split = [(pattern.split("/")[1:], rule) for pattern, rule in rules.items() if pattern.startswith("/")]
        #: All rules; empty if none of them is for a counter or a text.
        self.rules: _Rules = split if any(_is_added(rule) for _, rule in split) else []

    def problem(self, before: Any, after: Any) -> Optional[Mismatch]:
        """Returns why the upgraded value could not be merged; None if it can.

        A merge adds up the changes of both sides since their base: to counters, and in texts. So both devices must get the same counters
        and texts from the upgrade as the value already has: in its members, by renames that the rules name, or as defaults of absent
        members.
        """
        return _problem(before, after, self.rules, 0, [])


def _is_added(rule: Mapping[str, Any]) -> bool:
    return rule.get("as") in ("counter", "text")


def _problem(before: Any, after: Any, rules: _Rules, depth: int, path: list[str]) -> Optional[Mismatch]:
    rule: Mapping[str, Any] = {}
    here = [(segments, one) for segments, one in rules if len(segments) == depth]
    if here:
        rule = max(here, key=lambda found: [segment != "*" for segment in found[0]])[1]  # the most specific one
    if _is_added(rule) and depth:
        return _changed(before, after, rule, path)
    deeper = [(segments, one) for segments, one in rules if len(segments) > depth]
    if rule.get("as") == "register" or not any(_is_added(one) for _, one in deeper):
        return None
    for name, old, new in _pairs(before, after, rule):
        part = escaped(name)
        there = [(segments, one) for segments, one in deeper if segments[depth] in ("*", "~2" if name == "*" else part)]
        found = _problem(old, new, there, depth + 1, [name, *path])
        if found is not None:
            return found
    return None


def _pairs(before: Any, after: Any, rule: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Returns the names or indices, each with its earlier and its present value."""
    if isinstance(after, dict):
        was = before if isinstance(before, dict) else {}
        return [(name, was.get(name, _MISSING), after.get(name, _MISSING)) for name in dict.fromkeys([*after, *was])]
    if not isinstance(after, list):
        return []
    stood = before if isinstance(before, list) else []
    if rule.get("as") == "tuple":
        return [(str(index), stood[index] if index < len(stood) else _MISSING, element) for index, element in enumerate(after)]
    keys = [[part for part in pointer.split("/")[1:]] for pointer in rule["key"]] if "key" in rule else None
    places = {key: stood[index] for index, key in _keyed(stood, keys)}
    return [(str(index), places.get(key, _MISSING), after[index]) for index, key in _keyed(after, keys)]


def _keyed(elements: list[Any], keys: Optional[list[list[str]]]) -> Iterator[tuple[int, tuple[Any, int]]]:
    """Yields the index of each element that has a key, and the key with the number of earlier elements with the same key.

    An element without a key is identified by its whole content, and not merged inside.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for index, element in enumerate(elements):
        key = _key(element, keys or [["id"]])
        # Unless a key is declared, an id is text or a number.
        if key is None or (keys is None and (element["id"] is None or isinstance(element["id"], (bool, dict, list)))):
            continue
        yield index, (key, counts[key])
        counts[key] += 1


def _key(element: Any, keys: list[list[str]]) -> Optional[tuple[str, ...]]:
    found = []
    for pointer in keys:
        value = element
        for part in pointer:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(value, dict) or name not in value:
                return None
            value = value[name]
        found.append(canonical(value))
    return tuple(found)


def _changed(before: Any, after: Any, rule: Mapping[str, Any], path: list[str]) -> Optional[Mismatch]:
    is_text = rule["as"] == "text"
    absent = rule.get("absent", "" if is_text else rule.get("from", 0))
    old, new = (absent if value is _MISSING else value for value in (before, after))
    if _equal(old, new):
        return None
    if is_text:
        kind, remedy = "a text", "or leave the new text empty, and show the old one while it is"
    else:
        kind, remedy = "a counter", "or let the counter begin with its default, and show the sum of it and the old member"
    return Mismatch(
        f"is {kind} that the upgrade makes {shown(new)} of {shown(old)}: two devices that upgrade the value both would each add that. Name "
        f"a member that has only another name under \"schema\" in rules= (docs/merging.md), {remedy}",
        *path,
    )


def _equal(one: Any, other: Any) -> bool:
    return canonical(parse(write(one))) == canonical(parse(write(other)))


_MISSING: Any = object()
