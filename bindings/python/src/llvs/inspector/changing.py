"""What the page may change, where the inspector was started with `--write`: each change makes a version, and none removes one."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Optional

import llvs
from .exchanges import exchange
from .inspected import Inspected, NotFound, told
from .merges import mark_of

#: What versions made here say of themselves.
METADATA = {"device": "llvs inspect"}
CHOICES: dict[str, llvs.Choice] = {"newer": "newer", "older": "older", "result": "result"}


class Refused(Exception):
    """A change that cannot be made. The text says why, and what to do."""

    def __init__(self, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.status = status


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(f'The change names no "{name}".', 400)
    return value


def _head(inspected: Inspected, given: dict[str, Any]) -> llvs.Version:
    """The version to go on from, which must still be a head: a change on an older one would begin a line of its own unasked."""
    at = inspected.find(_text(given, "at"))
    if inspected.store.successors(at):
        raise Refused("Others went on from this version meanwhile: look at the newest one, and change that.")
    return at


def change(inspected: Inspected, what: str, given: dict[str, Any]) -> dict[str, Any]:
    """Makes a change. Raises Refused, NotFound, llvs.Error; nothing is stored then."""
    if not inspected.write:
        raise Refused("This inspector only reads: start it with --write to change the store.", 403)
    if what == "exchange":
        message = exchange(inspected, _text(given, "remote"))
        inspected.changed()
        return {"version": None, "message": message}
    actions = {"choose": _choose, "edit": _edit, "remove": _remove, "revert": _revert, "undo": _undo, "redo": _redo}
    if what not in actions:
        raise Refused("There is no such change.", 404)
    with inspected.changing:
        made, message = actions[what](inspected, given)
        if made is not None and what not in ("undo", "redo"):
            inspected.made.append(made.id)
            inspected.undone.clear()
    if made is not None:
        inspected.changed()
    return {"version": None if made is None else told(made), "message": message}


_Made = tuple[Optional[llvs.Version], str]


def _choose(inspected: Inspected, given: dict[str, Any]) -> _Made:
    store, head, choice = inspected.store, _head(inspected, given), CHOICES.get(_text(given, "choice"))
    merge, id, mark = inspected.find(_text(given, "version")), _text(given, "id"), _text(given, "mark")
    if choice is None:
        raise Refused("A choice is newer, older or result.", 400)
    record = next((record for record in store.explain(merge, id=id).records if mark_of(record) == mark), None)
    if record is None:
        raise NotFound("The merge decided no such thing.")
    if not record.version:
        record = record._replace(version=merge.id)
    try:
        return store.choose(record, choice, at=head, metadata=METADATA), "The choice was saved in a version of its own."
    except llvs.MovedError:
        raise Refused("Somebody changed this place since the merge, so there is nothing left to choose: edit the value instead.") from None


def _edit(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, id = _head(inspected, given), _text(given, "id")
    text, packed = given.get("text"), given.get("base64")
    try:
        data = text.encode() if isinstance(text, str) else base64.b64decode(packed, validate=True) if isinstance(packed, str) else None
    except (UnicodeEncodeError, binascii.Error, ValueError):
        data = None
    if data is None:
        raise Refused("The new value is neither text that can be written as UTF-8 nor bytes as Base64.", 400)
    return inspected.store.make_version(head, update={id: data}, metadata=METADATA), "The value was saved in a new version."


def _remove(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, id = _head(inspected, given), _text(given, "id")
    if inspected.store.reference(id, at=head) is None:
        raise NotFound("There is no such value at this version.")
    return inspected.store.make_version(head, remove=[id], metadata=METADATA), "The value was removed in a new version."


def _revert(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, version = _head(inspected, given), inspected.find(_text(given, "version"))
    done = inspected.store.revert(version, at=head, metadata=METADATA)
    if done.version is None:
        return None, "Nothing of that version is left to take back."
    kept = f" {len(done.superseded)} were changed again since, and stay." if done.superseded else ""
    return done.version, f"Taken back in {len(done.undone)} values.{kept}"


def _undo(inspected: Inspected, given: dict[str, Any]) -> _Made:
    return _take_back(inspected, given, inspected.made, inspected.undone, "undo")


def _redo(inspected: Inspected, given: dict[str, Any]) -> _Made:
    return _take_back(inspected, given, inspected.undone, inspected.made, "redo")


def _take_back(inspected: Inspected, given: dict[str, Any], stack: list[str], other: list[str], what: str) -> _Made:
    if not stack:
        raise Refused(f"There is nothing to {what}: this inspector made no change that stands.")
    head = _head(inspected, given)
    done = inspected.store.revert(stack[-1], at=head, metadata=METADATA)
    stack.pop()
    if done.version is None:
        return None, "Nothing of that change is left."
    other.append(done.version.id)
    return done.version, "The last change was taken back." if what == "undo" else "The change was made again."


