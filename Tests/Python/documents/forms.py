"""The forms of values: brings values of earlier forms into the latest one by renaming members.

Readings of the specification where it leaves a choice:
- The form of a value is the number at `at`, down through objects; a value without one has the earliest form.
- A value of an earlier form than the latest of the three gets the renames of the forms above its own, up to the latest, in the order of
  their `to` and then in the given order; then it gets the number of the latest form. A member moves only if its new place is free. Missing
  objects on the path are made. If something on the path is not an object, nothing is moved.
- If one of the three has the form of a rename, or a later one, and has a member under the old name, an upgrade left it there. Then lifting
  leaves that member as well.
- A value that would become too deep or too large stays as it is. A lifted value is written as computed values are.
- If no renames are given, nothing is lifted, and the side of the later form is `x`, except in saves and in swapped roles.
- Decisions that follow from the bytes of the three values (one side is the base, or both are equal) come before.
- An edit that brought a value into a later form is undone in that form. The value before the edit is lifted. Then it gets the number of the
  form, and the members at the top that the edited value has and it lacks, except counters and texts; unless something on the path there is
  not an object.
"""

from __future__ import annotations

from typing import Any, Optional

from . import json_model as j
from .rules import Forms, Pointer, RuleSet


def form(value: Any, forms: Forms) -> Optional[j.Decimal]:
    """Returns the number of a value's form."""
    found = get(value, forms.at)
    return found.value if isinstance(found, j.Number) else None


def is_later(a: Any, b: Any, forms: Forms) -> bool:
    """Returns whether `a` has a later form than `b`."""
    return _above(form(a, forms), form(b, forms))


def _above(a: Optional[j.Decimal], b: Optional[j.Decimal]) -> bool:
    return a is not None and (b is None or a.compare(b) > 0)


def get(value: Any, path: Pointer) -> Optional[j.Node]:
    """Returns the member at a path of names."""
    for name in path:
        value = value.get(name) if isinstance(value, j.Object) else None
    return value


def put(value: j.Object, path: Pointer, new: Optional[j.Node]) -> Optional[j.Object]:
    """Returns the tree with another member at a path, or without it; None if something on the path is not an object."""
    name, rest = path[0], path[1:]
    child: Optional[j.Node] = new
    if rest:
        inner = value.get(name)
        inner = j.Object(()) if inner is None else inner
        child = put(inner, rest, new) if isinstance(inner, j.Object) else None
        if child is None:
            return None
    members = tuple(member for member in value.members if member[0] != name)
    return j.Object(members if child is None else (*members, (name, child)))


def lift_all(values: list[Any], forms: Forms) -> list[Any]:
    """Returns the three values; those of earlier forms are brought into the latest."""
    found = [form(value, forms) for value in values]
    latest: Optional[j.Decimal] = None
    for number in found:
        latest = number if _above(number, latest) else latest
    if latest is None or forms.renames is None:
        return values
    return [
        lift(value, number, latest, forms, values) if isinstance(value, j.Object) and _above(latest, number) else value
        for value, number in zip(values, found)
    ]


def kept(before: Any, edited: Any, rules: RuleSet) -> tuple[Any, bool]:
    """Returns the result of undoing an edit, and whether it has members that the edit added."""
    forms = rules.forms
    old, new = (form(value, forms) if forms else None for value in (before, edited))
    if forms is None or new is None or not _above(new, old) or not isinstance(before, j.Object):
        return before, False
    own = before if forms.renames is None else lift(before, old, new, forms, [edited])
    added = [
        (name, value) for name, value in edited.members if own.get(name) is None and rules.rule((name,)).kind not in ("counter", "text")
    ]
    made = j.Object((*own.members, *added))
    made = put(made, forms.at, get(edited, forms.at)) or made
    return (before, False) if _is_too_much(made) else (made, any((name,) != forms.at for name, _ in added))


def lift(value: j.Object, own: Optional[j.Decimal], latest: j.Decimal, forms: Forms, others: list[Any]) -> j.Object:
    """Lifts one of them. If another one has the form of a rename and has kept the old name, lifting leaves that member, too."""
    made = value
    ordered: list[Any] = []
    for rename in forms.renames or ():
        # Insert the rename after all renames of the same form and of earlier forms.
        place = next((index for index, other in enumerate(ordered) if other.to.compare(rename.to) > 0), len(ordered))
        ordered.insert(place, rename)
    for rename in ordered:
        member = get(made, rename.source)
        if not _above(rename.to, own) or _above(rename.to, latest) or member is None or get(made, rename.path) is not None:
            continue
        left = any(get(other, rename.source) is not None and not _above(rename.to, form(other, forms)) for other in others)
        without = made if left else put(made, rename.source, None)
        made = (put(without, rename.path, member) if without else None) or made
    made = put(made, forms.at, j.Number(latest.text(), latest)) or made
    return value if _is_too_much(made) else made


def _is_too_much(value: j.Object) -> bool:
    """Returns whether a value is too deep or too large to be merged."""
    try:
        j.parse(j.canonical(value))
    except j.NotMergeable:
        return True
    return False
