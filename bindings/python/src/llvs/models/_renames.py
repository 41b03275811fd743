"""Reads values of a later form in a program that knows an earlier one: gives renamed members their earlier names."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NamedTuple, Optional

from ._json import Number


class _Rename(NamedTuple):
    to: Decimal
    source: list[str]
    path: list[str]


class _Forms(NamedTuple):
    #: The renames as the rules list them.
    told: dict[str, Any]
    at: list[str]
    #: The renames in the order in which they are undone: those of the latest form first.
    renames: list[_Rename]


class Renames:
    """The renames in the rules of a store, for the values under a prefix."""

    def __init__(self, rules: Optional[bytes], prefix: str) -> None:
        """rules: valid rules as JSON text; None if there are none. prefix: the prefix of the ids of the values."""
        ids = json.loads(rules, parse_int=Decimal, parse_float=Decimal).get("ids", {}) if rules else {}
        found = {one: _forms(patterns) for one, patterns in ids.items() if one.startswith(prefix) or prefix.startswith(one)}
        #: By prefix, the longest first: the longest match applies.
        self._forms = sorted(found.items(), key=lambda entry: len(entry[0]), reverse=True) if any(found.values()) else []

    def __bool__(self) -> bool:
        return bool(self._forms)

    def _of(self, value_id: str) -> Optional[_Forms]:
        return next((forms for prefix, forms in self._forms if value_id.startswith(prefix)), None)

    def standing(self, value_id: str, own: dict[str, Any]) -> dict[str, Any]:
        """Returns `schema` of the rules as it is after those of a model are registered: the store's, unless the model's adds to it."""
        forms = self._of(value_id)
        if forms is None:
            return own
        stored, given = (_shown(one) for one in (forms.told, own))
        return own if stored[0] == given[0] and stored[1] <= given[1] else forms.told

    def undone(self, tree: Any, value_id: str, form: int) -> Any:
        """Returns a value of a later form with the names that its members had in form `form`; any other value unchanged. Does not modify
        the tree.

        If an upgrade left a member under the old name, the member with the new name replaces it.
        """
        forms = self._of(value_id)
        number = _get(tree, forms.at) if forms is not None else None
        if forms is None or not isinstance(number, Number):
            return tree
        own = Decimal(number.text)
        for rename in forms.renames:
            if form < rename.to <= own:
                tree = _moved(tree, rename.path, rename.source)
        return tree


def _forms(patterns: Any) -> Optional[_Forms]:
    found = patterns.get("schema") if isinstance(patterns, dict) else None
    if not isinstance(found, dict) or not found.get("renames"):
        return None
    renames = [_Rename(one["to"], _names(one["from"]), _names(one["path"])) for one in found["renames"]]
    renames.sort(key=lambda rename: rename.to)
    told = {**found, "renames": [{**one, "to": _plain(one["to"])} for one in found["renames"]]}
    return _Forms(told, _names(found["at"]), renames[::-1])


def _plain(number: Decimal) -> Any:
    return int(number) if number == number.to_integral_value() else float(number)


def _shown(told: dict[str, Any]) -> tuple[Any, set[tuple[Decimal, str, str]]]:
    """Returns where the form number is stored, and the renames."""
    return told.get("at"), {(Decimal(str(one["to"])), one["from"], one["path"]) for one in told.get("renames", ())}


def _names(pointer: str) -> list[str]:
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


_MISSING: Any = object()


def _get(tree: Any, names: list[str]) -> Any:
    for name in names:
        tree = tree.get(name, _MISSING) if isinstance(tree, dict) else _MISSING
    return tree


def _put(tree: Any, names: list[str], new: Any) -> Any:
    """Returns the tree with another member at a path, or without it; None if something on the path is not an object."""
    if not isinstance(tree, dict):
        return None
    name, made = names[0], dict(tree)
    if len(names) > 1:
        inner = tree.get(name, _MISSING)
        if inner is _MISSING and new is _MISSING:
            return made
        new = _put({} if inner is _MISSING else inner, names[1:], new)
        if new is None:
            return None
    if new is _MISSING:
        made.pop(name, None)
    else:
        made[name] = new
    return made


def _moved(tree: Any, path: list[str], source: list[str]) -> Any:
    """Undoes one rename; returns the tree unchanged if something on the path is not an object."""
    member = _get(tree, path)
    without = _put(tree, path, _MISSING)
    made = None if without is None else _put(without, source, member)
    return tree if made is None else made
