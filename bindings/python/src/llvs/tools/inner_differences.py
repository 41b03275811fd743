"""What differs inside a value: by member where both are JSON, by line and word where both are text."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any, Iterator, NamedTuple, Optional

from . import escape, output
from .values import Kind, kind_of, words

#: Lists and texts of more elements than this are compared at their ends only, and the middle as a whole.
_COMPARED_AT_MOST = 4000


class Member(NamedTuple):
    """A place in a document that differs."""

    #: Where: a JSON pointer.
    path: str
    #: What was there, and what is, as JSON gives it; `ABSENT` for nothing.
    old: Any
    new: Any


ABSENT: Any = object()


class Hunk(NamedTuple):
    """Lines that differ: from a line on (the first is 1), what was there and what is."""

    line: int
    old: list[str]
    new: list[str]


def pointer_step(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def members(old: Any, new: Any, path: str = "") -> Iterator[Member]:
    """The places where two documents differ. O(size), for lists of up to 4000 elements their product at worst."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from members(old.get(key, ABSENT), new.get(key, ABSENT), f"{path}/{pointer_step(key)}")
    elif isinstance(old, list) and isinstance(new, list):
        yield from _elements(old, new, path)
    elif old is ABSENT or new is ABSENT or type(old) is not type(new) or old != new:
        yield Member(path, old, new)


def _elements(old: list[Any], new: list[Any], path: str) -> Iterator[Member]:
    before = [json.dumps(element, sort_keys=True) for element in old]
    after = [json.dumps(element, sort_keys=True) for element in new]
    for first, last, start, end in _blocks(before, after):
        common = min(last - first, end - start)
        for offset in range(common):
            yield from members(old[first + offset], new[start + offset], f"{path}/{first + offset}")
        for at in range(first + common, last):
            yield Member(f"{path}/{at}", old[at], ABSENT)
        for at in range(start + common, end):
            yield Member(f"{path}/{at}", ABSENT, new[at])


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The parts of two lists that differ: from and to in the old one, from and to in the new one."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle, other = old[same : len(old) - tail], new[same : len(new) - tail]
    if not middle and not other:
        return
    if len(middle) * len(other) > _COMPARED_AT_MOST * _COMPARED_AT_MOST:
        yield same, same + len(middle), same, same + len(other)
        return
    for tag, first, last, start, end in difflib.SequenceMatcher(None, middle, other, autojunk=False).get_opcodes():
        if tag != "equal":
            yield same + first, same + last, same + start, same + end


def hunks(old: str, new: str) -> Iterator[Hunk]:
    """The lines in which two texts differ."""
    before, after = old.split("\n"), new.split("\n")
    for first, last, start, end in _blocks(before, after):
        yield Hunk(first + 1, before[first:last], after[start:end])


_word = re.compile(r"\s+|\w+|[^\w\s]")


def word_differences(old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """A line in parts: what is the same in both, what was there, what is there instead."""
    before, after = _word.findall(old), _word.findall(new)
    for tag, first, last, start, end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        removed, added = "".join(before[first:last]), "".join(after[start:end])
        yield (removed, "", "") if tag == "equal" else ("", removed, added)


def rows(old: Optional[bytes], new: Optional[bytes]) -> Iterator[str]:
    """What differs between two values, for people. None: there is no value."""
    before, after = (None if data is None else kind_of(data) for data in (old, new))
    if before and after and before.name == after.name == "json":
        yield from _member_rows(before, after)
    elif _is_text(before) and _is_text(after):
        yield from _text_rows(_text(before), _text(after))
    else:
        if old is not None:
            yield _removed(words(old))
        if new is not None:
            yield _added(words(new))


def shape(old: Optional[bytes], new: Optional[bytes]) -> dict[str, Any]:
    """The same as JSON. docs/command.md states it."""
    before, after = (None if data is None else kind_of(data) for data in (old, new))
    if before and after and before.name == after.name == "json":
        return {"members": [_member_shape(member) for member in members(before.content, after.content)]}
    if before and after and _is_text(before) and _is_text(after):
        return {"lines": [hunk._asdict() for hunk in hunks(_text(before), _text(after))]}
    return {}


def _member_shape(member: Member) -> dict[str, Any]:
    made = {"path": member.path}
    made.update({name: value for name, value in (("old", member.old), ("new", member.new)) if value is not ABSENT})
    return made


def _is_text(kind: Optional[Kind]) -> bool:
    return kind is None or kind.name in ("text", "json", "empty")


def _text(kind: Optional[Kind]) -> str:
    if kind is None or kind.name == "empty":
        return ""
    return str(kind.content) if kind.name == "text" else json.dumps(kind.content, indent=2, ensure_ascii=False)


def _member_rows(before: Kind, after: Kind) -> Iterator[str]:
    arrow = "\u2192" if output.is_unicode() else "->"
    for member in members(before.content, after.content):
        path = output.style(escape.line(member.path) or "/", "key")
        if member.old is ABSENT:
            yield f"  {path}: {_added(output.as_json(member.new), '+ ')}"
        elif member.new is ABSENT:
            yield f"  {path}: {_removed(output.as_json(member.old), '- ')}"
        else:
            yield f"  {path}: {_removed(output.as_json(member.old), '')} {arrow} {_added(output.as_json(member.new), '')}"


def _text_rows(old: str, new: str) -> Iterator[str]:
    if not old or not new:
        # All of it came or went.
        yield from (_removed(escape.line(row)) for row in old.removesuffix("\n").split("\n") if old)
        yield from (_added(escape.line(row)) for row in new.removesuffix("\n").split("\n") if new)
        return
    for hunk in hunks(old, new):
        yield output.style(f"  line {hunk.line}", "quiet")
        for before, after in zip(hunk.old, hunk.new):
            yield from _line_rows(before, after)
        common = min(len(hunk.old), len(hunk.new))
        yield from (_removed(escape.line(row)) for row in hunk.old[common:])
        yield from (_added(escape.line(row)) for row in hunk.new[common:])


def _line_rows(before: str, after: str) -> Iterator[str]:
    if not output.is_coloured() or max(len(before), len(after)) > _COMPARED_AT_MOST:
        yield _removed(escape.line(before))
        yield _added(escape.line(after))
        return
    removed, added = "", ""
    for same, gone, came in word_differences(before, after):
        removed += escape.line(same) + output.style(escape.line(gone), "removed")
        added += escape.line(same) + output.style(escape.line(came), "added")
    yield f"  - {removed}"
    yield f"  + {added}"


def _removed(text: str, sign: str = "  - ") -> str:
    return sign + output.style(text, "removed")


def _added(text: str, sign: str = "  + ") -> str:
    return sign + output.style(text, "added")
