"""Explains the decisions of merges."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from typing import Any, Iterator, Optional, Sequence

import llvs

from ..merge.documents import ConflictKind, plain_path
from ..tools.differing import Effort, sentence, words, writers
from ..tools.exact_json import parsed, written
from .inspected import NotFound, told
from .values import LARGEST_JSON, picture_type, text_of

#: The largest number of conflicts in one answer.
MOST = 500
#: The number of places that a list of merges names for each merge.
OF = 3
#: The largest part of a side that is sent, in bytes.
SIDE = 16 * 1024
#: The number of values of a merge for which the authors of words are shown.
WRITTEN = 8

_WHY = {
    "pick": "Both sides changed it, and nothing merges inside it.",
    "delete-edit": "One side removed what the other changed.",
    "type": "The sides are of different types, or of one that the rule is not for.",
    "not-json": "A side is no JSON that can be merged inside.",
    "overlap": "Both sides changed the same lines of the text.",
    "move-move": "Both sides moved the element, to different places.",
    "contested": "The sides hold two values between which an earlier merge had to choose.",
    "bound": "The counter went out of the bounds that its rule gives. What both sides added is in it.",
    "limit": "The two are too different to be compared finely, or the counter has too many digits.",
    "arbiter": "The rules leave this place to the application.",
}


def explain(store: llvs.Store, version: llvs.Version, at: Optional[llvs.Version] = None) -> dict[str, Any]:
    """Returns the bases, both sides and each conflict of a merge, with its result and the reason. Raises NotFound for a version that is not
    a merge.

    at: the version on which decisions are saved; if it is given, each conflict has whether the merge's result still prevails there.
    """
    if len(version.predecessors) != 2:
        raise NotFound("This version is no merge: it has fewer than two predecessors.")
    first, second = store.versions(version.predecessors)
    found = store.explain(version)
    return {
        "version": told(store, version),
        "first": told(store, first),
        "second": told(store, second),
        "bases": [told(store, base) for base in store.merge_bases(first, second)],
        "recorded": found.recorded,
        "conflicts": [
            {**_told(store, record, first, second, version),
             "canChoose": at is not None and _is_undecided(store, record._replace(version=record.version or version.id), at)}
            for record in found.records[:MOST]
        ],
        "count": len(found.records),
        "written": list(_written(store, first, second, version)),
    }


def foreseen(store: llvs.Store, a: llvs.Version, b: llvs.Version) -> dict[str, Any]:
    """Returns the same for a merge that was not made: what it would have to decide."""
    first, second = (a, b) if (a.timestamp, a.id) >= (b.timestamp, b.id) else (b, a)
    found = store.conflicts(a, b)
    return {
        "version": None,
        "first": told(store, first),
        "second": told(store, second),
        "bases": [told(store, base) for base in store.merge_bases(a, b)],
        "recorded": True,
        "conflicts": [_told(store, record, first, second, None) for record in found.records[:MOST]],
        "count": len(found.records),
    }


def unanswered(store: llvs.Store, at: llvs.Version, reopened: Sequence[llvs.merge.Conflict] = ()) -> dict[str, Any]:
    """Returns the open conflicts of merges among the ancestors of a version.

    reopened: conflicts whose decisions were undone. They are open again if the merge's result still prevails.
    """
    records = [*store.open_conflicts(at).records, *(record for record in reopened if _is_undecided(store, record, at))]
    merges: dict[str, dict[str, Any]] = {}
    for record in records:
        merge = merges.get(record.version)
        if merge is None:
            merge = merges[record.version] = {**told(store, store[record.version]), "count": 0, "of": []}
        merge["count"] += 1
        if len(merge["of"]) < OF:
            merge["of"].append({"id": record.id, "path": plain_path(record)})
    return {"at": at.id, "merges": list(merges.values()), "count": len(records)}


def _is_undecided(store: llvs.Store, record: llvs.merge.Conflict, at: llvs.Version) -> bool:
    try:
        store.choices(record, "result", at=at)
    except llvs.Error:
        return False
    return True


def mark_of(record: llvs.merge.Conflict) -> str:
    """Returns a text that identifies a record among those of its merge, since several records of one text have the same path. (A page could
    not return the path either: it reads all numbers as `float`.)
    """
    # (Requests for all conflicts of a merge, and for those of one value, return the same records.)
    return hashlib.sha256(repr(record._replace(version="")).encode("utf-8", "surrogatepass")).hexdigest()


def _told(
    store: llvs.Store, record: llvs.merge.Conflict, first: llvs.Version, second: llvs.Version, merge: Optional[llvs.Version]
) -> dict[str, Any]:
    newer_is_first = store.sides(record.id, first, second).newer.at == first.id
    newer, older = _text(record.newer), _text(record.older)
    base, result = _text(record.base), _text(record.result)
    has_both = record.newer is not None and record.older is not None
    is_of_lines = record.kind is ConflictKind.OVERLAP or record.kind is ConflictKind.DELETE_EDIT and has_both
    if not record.path and not is_of_lines:
        # Show the bytes of a whole value themselves, even if they are not JSON. (Other records have lines of a text.)
        here = {version.id: _value(store, record.id, version) for version in (first, second)}
        newer, older = (here[first.id], here[second.id]) if newer_is_first else (here[second.id], here[first.id])
        bases = store.merge_bases(first, second)
        base = _value(store, record.id, bases[0]) if len(bases) == 1 else base
        result = _value(store, record.id, merge) if merge is not None else result
    stands = "result"
    if record.result == record.newer:
        stands = "newer"
    elif record.result == record.older:
        stands = "older"
    if record.kind is ConflictKind.OVERLAP:
        # Show the whole sentences that contain the words in question.
        places = {"newer": first if newer_is_first else second, "older": second if newer_is_first else first, "result": merge}
        bases = store.merge_bases(first, second)
        places["base"] = bases[0] if len(bases) == 1 else None
        newer, older, base, result = (
            _sentence(store, record, places[name], part) for name, part in
            (("newer", newer), ("older", older), ("base", base), ("result", result))
        )
    effort = Effort()
    for side in (newer, older):
        _mark(base, side, effort)
    return {
        "id": record.id,
        "mark": mark_of(record),
        "path": plain_path(record),
        "kind": str(record.kind.value),
        "rule": None if record.rule is None else list(record.rule),
        "why": _WHY[record.kind.value],
        "base": base,
        "newer": newer,
        "older": older,
        "result": result,
        "newerIs": "first" if newer_is_first else "second",
        "stands": stands,
        "hasSides": record.kind not in (ConflictKind.MOVE_MOVE, ConflictKind.BOUND) and not _is_counter(store, record, merge),
    }


def _is_counter(store: llvs.Store, record: llvs.merge.Conflict, merge: Optional[llvs.Version]) -> bool:
    """Returns whether one side removed a counter that the other added to. Then only the result can be chosen."""
    if record.kind is not ConflictKind.DELETE_EDIT or record.rule is None or merge is None:
        return False
    prefix, pattern = record.rule
    rule = ((store.schema(merge).rules or {}).get("ids") or {}).get(prefix)
    if isinstance(rule, dict) and "as" not in rule:
        rule = rule.get(pattern)
    return (rule.get("as") if isinstance(rule, dict) else rule) == "counter"


def _text(data: Optional[bytes]) -> Optional[dict[str, Any]]:
    if data is None:
        return None
    text = text_of(data[:SIDE], len(data) <= SIDE)
    return {"text": text, "size": len(data), "isWhole": len(data) <= SIDE}


def _value(store: llvs.Store, id: str, version: llvs.Version) -> Optional[dict[str, Any]]:
    try:
        with store.open_value(id, at=version) as reader:
            data = reader.read_range(0, SIDE)
            found: dict[str, Any] = {"text": text_of(data, len(data) == reader.size), "size": reader.size}
            picture = picture_type(data)
            if picture is not None:
                found |= {"picture": picture, "at": version.id}
            return {**found, "isWhole": len(data) == reader.size}
    except KeyError:
        return None


_Part = Optional[dict[str, Any]]


def _sentence(store: llvs.Store, record: llvs.merge.Conflict, version: Optional[llvs.Version], part: _Part) -> _Part:
    """Returns the sentences at a version that contain a part of a text; the part itself if they cannot be found."""
    if part is None or version is None:
        return part
    try:
        whole = (store.read_range(record.id, 0, LARGEST_JSON, at=version) or b"").decode()
        if record.path:
            whole = json.loads(whole)
            for step in record.path:
                whole = whole[step]
        wanted = json.loads(part["text"] or "") if part["text"] and part["text"][0] == '"' else part["text"]
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return part
    if not isinstance(wanted, str) or not isinstance(whole, str):
        return part
    return {**part, "text": sentence(whole, wanted)[:SIDE]}


def _mark(base: _Part, side: _Part, effort: Effort) -> None:
    """Adds the words that a side changed, if both are texts."""
    if base is None or side is None or base["text"] is None or side["text"] is None or base["text"] == side["text"]:
        return
    side["words"] = [piece for piece in words(base["text"], side["text"], effort) if piece[0] != "-"]


def _written(store: llvs.Store, first: llvs.Version, second: llvs.Version, merge: llvs.Version) -> Iterator[dict[str, Any]]:
    """Yields the texts that both sides changed, then those that one side changed, each as pieces with their authors: see `writers`."""
    bases = store.merge_bases(first, second)
    if len(bases) != 1:
        return
    changed = [{change.id for change in islice(store.diff(bases[0], side, with_data=False), MOST)} for side in (first, second)]
    ids = [*sorted(changed[0] & changed[1]), *sorted(changed[0] ^ changed[1])]
    effort = Effort()
    for id in ids[:WRITTEN]:
        base, *sides = (_lines_of(store, id, version) for version in (bases[0], first, second, merge))
        if None not in (base, *sides):
            pieces = writers(base or "", [side or "" for side in sides[:2]], sides[2] or "", effort)
            if any(of for of, _ in pieces):
                yield {"id": id, "pieces": pieces}


def _lines_of(store: llvs.Store, id: str, version: llvs.Version) -> Optional[str]:
    """Returns a value as text, JSON with a line for each member; "" if it is absent. None if it is too large, or is not text."""
    data = store.read_range(id, 0, SIDE + 1, at=version)
    if data is None:
        return ""
    text = text_of(data, True) if len(data) <= SIDE else None
    try:
        return None if text is None else written(parsed(text), indent=2, sort_keys=True)
    except (ValueError, RecursionError):
        return text
