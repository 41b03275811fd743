"""Changes that the page may make if the inspector was started with `--write`: each makes a version, and none removes one."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Optional

import llvs
from ..tools.exact_json import parsed
from . import values
from .exchanges import exchange
from .inspected import Inspected, NotFound, shown, title_of, told
from .merges import mark_of

#: The device in the metadata of versions that are made here.
DEVICE = "llvs inspect"
#: The value of `confirmed` in a change that may replace JSON by other data.
NO_JSON = "no-json"
CHOICES: dict[str, llvs.words.Choice] = {"newer": "newer", "older": "older", "result": "result"}


class Refused(Exception):
    """A change that cannot be made. The text has the reason, and what to do."""

    def __init__(self, message: str, status: int = 409, confirm: Optional[str] = None) -> None:
        """confirm: the value of `confirmed` with which the change can be made nevertheless."""
        super().__init__(message)
        self.status, self.confirm = status, confirm


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise Refused(f'The change names no "{name}".', 400)
    return value


def _head(inspected: Inspected, given: dict[str, Any]) -> llvs.Version:
    """Returns the version to save on. It must still be a head: a change on an older version would begin a separate line by accident."""
    at = inspected.find(_text(given, "at"))
    if inspected.store.successors(at):
        raise Refused("This version is not the newest any more: other changes were saved on it. Look at the newest one, and change that.")
    return at


def _about(what: str) -> dict[str, str]:
    """Returns the metadata of a version that is made here. what: the description that the history shows."""
    return {"device": DEVICE, "message": what}


def change(inspected: Inspected, what: str, given: dict[str, Any]) -> dict[str, Any]:
    """Makes a change. Raises Refused, NotFound, llvs.Error; nothing is stored then."""
    if not inspected.write:
        raise Refused("This inspector only reads: start it with --write to change the store.", 403)
    if what == "exchange":
        message = exchange(inspected, _text(given, "remote"))
        inspected.changed()
        return {"version": None, "message": message}
    if what == "work":
        inspected.work_on(_head(inspected, given).id)
        inspected.changed()
        return {"version": None, "message": "What you change now goes on from this version."}
    actions = {"merge": _merge, "choose": _choose, "edit": _edit, "remove": _remove, "revert": _revert, "undo": _undo, "redo": _redo}
    if what not in actions:
        raise Refused("There is no such change.", 404)
    with inspected.changing:
        made, message = actions[what](inspected, given)
        if made is not None:
            inspected.count_made += 1
            inspected.work_on(made.id)
            if what not in ("undo", "redo", "merge"):
                inspected.made.append(made.id)
                inspected.undone.clear()
    if made is not None:
        inspected.changed()
    return {"version": None if made is None else told(inspected.store, made), "message": message}


_Made = tuple[Optional[llvs.Version], str]


def _merge(inspected: Inspected, given: dict[str, Any]) -> _Made:
    store = inspected.store
    first, second = (inspected.find(_text(given, name)) for name in ("a", "b"))
    if first.id == second.id or any(store.successors(version) for version in (first, second)):
        raise Refused("Only two heads can be merged here, which are versions that no other was saved on.")
    made = store.merge(first, second)
    return made, "The merge was made as a new version."


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
        made = store.choose(record, choice, at=head, metadata=_about(f"Decide a conflict in {shown(id)}"))
        if made is not None:
            inspected.decided[made.id] = record
        return made, "The decision was saved as a new version."
    except llvs.MovedError:
        raise Refused("This place was changed again since the merge, so there is nothing left to choose: edit the value instead.") from None


def _edit(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, id = _head(inspected, given), _text(given, "id")
    text, packed = given.get("text"), given.get("base64")
    try:
        data = text.encode() if isinstance(text, str) else base64.b64decode(packed, validate=True) if isinstance(packed, str) else None
    except (UnicodeEncodeError, binascii.Error, ValueError):
        data = None
    if data is None:
        raise Refused("The new value is neither text that can be written as UTF-8 nor bytes as Base64.", 400)
    _check_json(inspected, id, head, data, given.get("confirmed"))
    made = inspected.store.make_version(head, update={id: data}, metadata=_about(f"Edit {shown(id)}"))
    return made, "The value was saved as a new version."


def _check_json(inspected: Inspected, id: str, head: llvs.Version, data: bytes, confirmed: Any) -> None:
    """Raises Refused if a JSON value would be replaced by data that is not JSON, which the application could not read; unless confirmed."""
    if confirmed == NO_JSON or inspected.store.reference(id, at=head) is None:
        return
    if values.describe(inspected.store, id, head.id)["kind"] != "json":
        return
    try:
        parsed(data.decode())
    except RecursionError:
        raise Refused("This is nested too deep to be checked, and the value was JSON before. The application may not be able to read it.",
                      confirm=NO_JSON) from None
    except ValueError as problem:
        place = f" (line {problem.lineno}, column {problem.colno})" if isinstance(problem, json.JSONDecodeError) else ""
        raise Refused(f"This is not JSON{place}, and the value was JSON before. The application may not be able to read it.",
                      confirm=NO_JSON) from None


def _remove(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, id = _head(inspected, given), _text(given, "id")
    if inspected.store.reference(id, at=head) is None:
        raise NotFound("There is no such value at this version.")
    made = inspected.store.make_version(head, remove=[id], metadata=_about(f"Remove {shown(id)}"))
    return made, "The value was removed in a new version. Older versions still have it."


def _revert(inspected: Inspected, given: dict[str, Any]) -> _Made:
    head, version = _head(inspected, given), inspected.find(_text(given, "version"))
    title = title_of(inspected.store, version.id) or version.id[:8]
    done = inspected.store.revert(version, at=head, metadata=_about(f"Take back {shown(title)}"))
    if done.version is None:
        return None, "Nothing of that version is left to take back."
    kept = f" {_values(len(done.superseded))} changed again since, and stay." if done.superseded else ""
    return done.version, f"Taken back in {_values(len(done.undone))}.{kept}"


def _values(count: int) -> str:
    return f"{count} value" if count == 1 else f"{count} values"


def _undo(inspected: Inspected, given: dict[str, Any]) -> _Made:
    return _take_back(inspected, given, inspected.made, inspected.undone, "undo")


def _redo(inspected: Inspected, given: dict[str, Any]) -> _Made:
    return _take_back(inspected, given, inspected.undone, inspected.made, "redo")


def _take_back(inspected: Inspected, given: dict[str, Any], stack: list[str], other: list[str], what: str) -> _Made:
    if not stack:
        raise Refused(f"There is nothing to {what}: this inspector made no change that stands.")
    head = _head(inspected, given)
    last = stack[-1]
    title = title_of(inspected.store, last)
    about = f"Undo: {title}" if what == "undo" else title.removeprefix("Undo: ")
    done = inspected.store.revert(last, at=head, metadata=_about(about))
    stack.pop()
    record = inspected.decided.pop(last, None)
    if done.version is None:
        return None, f"Nothing is left to {what} of this: {title}. It was changed again since."
    other.append(done.version.id)
    if record is not None:
        inspected.decided[done.version.id] = record
    return done.version, f"Taken back: {title}." if what == "undo" else f"Made again: {about}."


