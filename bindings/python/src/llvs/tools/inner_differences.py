"""Differences inside a value, as the command shows them: by member if both values are JSON, by line and word if both are text."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Optional

from . import exact_json, output
from .differing import ABSENT, Effort, Member, blocks, members, words as word_differences
from .escape import Styled
from .values import Kind, kind_of, words

#: Longer lines, in characters, are not compared by word.
_COMPARED_AT_MOST = 4000
#: How many times longer than the two documents the paths of their differences may be. If they are longer, the documents are compared as
#: texts: the path of a deep member, or of one below long names, is repeated for each difference.
_PATHS, _PATHS_AT_LEAST = 8, 1 << 16


class Hunk(NamedTuple):
    """Lines that differ: the number of the first line (from 1), the old lines, and the new lines."""

    line: int
    old: list[str]
    new: list[str]


def hunks(old: str, new: str, effort: Optional[Effort] = None) -> Iterator[Hunk]:
    """Yields the lines in which two texts differ."""
    before, after = old.split("\n"), new.split("\n")
    for block in blocks(before, after, effort):
        if not block.is_equal:
            yield Hunk(block.first + 1, before[block.first : block.last], after[block.start : block.end])


def rows(old: Optional[bytes], new: Optional[bytes]) -> Iterator[str]:
    """Yields the differences between two values, for people. None: an absent value."""
    before, after = (None if data is None else kind_of(data) for data in (old, new))
    found = _members(before, after, len(old or b"") + len(new or b""))
    if found is not None:
        yield from _member_rows(found)
    elif _is_text(before) and _is_text(after):
        yield from _text_rows(_text(before), _text(after))
    else:
        if old is not None:
            yield _removed(words(old))
        if new is not None:
            yield _added(words(new))


def shape(old: Optional[bytes], new: Optional[bytes]) -> dict[str, Any]:
    """Returns the differences as JSON; docs/command.md describes the members."""
    before, after = (None if data is None else kind_of(data) for data in (old, new))
    found = _members(before, after, len(old or b"") + len(new or b""))
    if found is not None:
        return {"members": [_member_shape(member) for member in found]}
    if before and after and _is_text(before) and _is_text(after):
        return {"lines": [hunk._asdict() for hunk in hunks(_text(before), _text(after))]}
    return {}


def _members(before: Optional[Kind], after: Optional[Kind], size: int) -> Optional[list[Member]]:
    """Returns the members in which two documents differ; None if one is not a document, or if the paths are much longer than the
    documents."""
    if not before or not after or not before.name == after.name == "json":
        return None
    found, room = [], _PATHS * size + _PATHS_AT_LEAST
    for member in members(before.content, after.content):
        room -= sum(len(step) if isinstance(step, str) else 8 for step in member.path)
        if room < 0:
            return None
        found.append(member)
    return found


def _member_shape(member: Member) -> dict[str, Any]:
    made = {"path": member.pointer}
    made.update({name: value for name, value in (("old", member.old), ("new", member.new)) if value is not ABSENT})
    return made


def _is_text(kind: Optional[Kind]) -> bool:
    return kind is None or kind.name in ("text", "json", "empty")


def _text(kind: Optional[Kind]) -> str:
    if kind is None or kind.name == "empty":
        return ""
    return str(kind.content) if kind.name == "text" else exact_json.written(kind.content, indent=2)


def _member_rows(found: list[Member]) -> Iterator[str]:
    arrow = "\u2192" if output.is_unicode() else "->"
    for member in found:
        path = output.row("  ", output.style(member.pointer or "/", "key"), ": ")
        if member.old is ABSENT:
            yield output.row(path, _added(output.as_json(member.new), "+ "))
        elif member.new is ABSENT:
            yield output.row(path, _removed(output.as_json(member.old), "- "))
        else:
            old, new = _removed(output.as_json(member.old), ""), _added(output.as_json(member.new), "")
            yield output.row(path, old, f" {arrow} ", new)


def _text_rows(old: str, new: str) -> Iterator[str]:
    if not old or not new:
        # The whole text was added or removed.
        yield from (_removed(row) for row in old.removesuffix("\n").split("\n") if old)
        yield from (_added(row) for row in new.removesuffix("\n").split("\n") if new)
        return
    effort = Effort()
    for hunk in hunks(old, new, effort):
        yield output.style(f"  line {hunk.line}", "quiet")
        pairs = [_line_rows(before, after, effort) for before, after in zip(hunk.old, hunk.new)]
        # In the usual order: first the removed lines, then the added ones.
        yield from (removed for removed, _ in pairs)
        yield from (_removed(row) for row in hunk.old[len(pairs) :])
        yield from (added for _, added in pairs)
        yield from (_added(row) for row in hunk.new[len(pairs) :])


def _line_rows(before: str, after: str, effort: Effort) -> tuple[str, str]:
    """Returns the rows of a removed line and of the line in its place. If at least half of the line is unchanged, the words that differ are
    marked."""
    whole = _removed(before), _added(after)
    if not output.is_coloured() or max(len(before), len(after)) > _COMPARED_AT_MOST:
        return whole
    pieces = word_differences(before, after, effort)
    if 2 * sum(len(text.strip()) for sign, text in pieces if sign == "=") < max(len(before), len(after)):
        return whole
    removed = (output.style(text, "removed") if sign == "-" else text for sign, text in pieces if sign != "+")
    added = (output.style(text, "added") if sign == "+" else text for sign, text in pieces if sign != "-")
    return output.row("  - ", *removed), output.row("  + ", *added)


def _removed(text: str, sign: str = "  - ") -> Styled:
    return output.row(sign, output.style(text, "removed"))


def _added(text: str, sign: str = "  + ") -> Styled:
    return output.row(sign, output.style(text, "added"))
