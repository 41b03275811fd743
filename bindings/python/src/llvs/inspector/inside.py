"""Differences inside values, in the form that the page receives: by member for JSON, by line and word for text."""

from __future__ import annotations

from itertools import islice
from typing import Any, Optional

from ..tools.differing import ABSENT, Effort, Member, blocks, members, words
from ..tools.exact_json import parsed, written

#: The largest number of differences in one answer.
MOST = 2000
#: Longer lines and members are cut to this many characters, and not compared by word.
LONG, WORDY = 4000, 20_000


def lines(a: str, b: str, context: int = 3) -> dict[str, Any]:
    """Compares two texts: rows of [number, line] for each side, with the words of lines that changed."""
    left, right = a.splitlines(), b.splitlines()
    rows: list[dict[str, Any]] = []
    effort = Effort()
    operations = list(blocks(left, right, effort))
    for position, (is_equal, i, j, k, m) in enumerate(operations):
        if is_equal:
            head, tail = (0 if position == 0 else context), (0 if position == len(operations) - 1 else context)
            for at in range(j - i):
                if not head <= at < j - i - tail:
                    rows.append({"kind": "same", "a": i + at + 1, "b": k + at + 1, "text": left[i + at][:WORDY]})
                elif at == head:
                    rows.append({"kind": "skip", "count": j - i - tail - head})
        else:
            for at in range(max(j - i, m - k)):
                was = left[i + at] if at < j - i else None
                now = right[k + at] if at < m - k else None
                rows.append({
                    "kind": "changed", "a": None if was is None else i + at + 1, "b": None if now is None else k + at + 1,
                    "words": _line_words(was, now, effort),
                })
                if len(rows) > MOST:
                    break
        if len(rows) > MOST:
            return {"rows": rows[:MOST], "cut": True}
    return {"rows": rows, "cut": False}


def _line_words(was: Optional[str], now: Optional[str], effort: Effort) -> list[tuple[str, str]]:
    if was is not None and now is not None and len(was) + len(now) < WORDY:
        return words(was, now, effort)
    return [(sign, text[: WORDY // 2]) for sign, text in (("-", was), ("+", now)) if text is not None]


def told_members(a: Any, b: Any) -> dict[str, Any]:
    """Returns the differences between two JSON documents, by member."""
    effort = Effort()
    found = list(islice(members(a, b, effort), MOST + 1))
    return {"members": [_told(one, effort) for one in found[:MOST]], "cut": len(found) > MOST}


def _told(member: Member, effort: Effort) -> dict[str, Any]:
    path, was, now = member
    row: dict[str, Any] = {"path": list(path), "kind": "insert" if was is ABSENT else "remove" if now is ABSENT else "update"}
    if was is not ABSENT:
        row["was"] = _cut(written(was))
    if now is not ABSENT:
        row["now"] = _cut(written(now))
    if isinstance(was, str) and isinstance(now, str) and len(was) + len(now) < WORDY:
        row["words"] = words(was, now, effort)
    return row


def _cut(text: str) -> str:
    return text if len(text) <= LONG else text[:LONG] + "…"


def difference(a: Optional[str], b: Optional[str]) -> dict[str, Any]:
    """Returns the differences between two values that are texts (None: absent): by member if both are JSON, otherwise by line."""
    if a is not None and b is not None:
        try:
            left, right = parsed(a), parsed(b)
            if all(isinstance(one, (dict, list)) for one in (left, right)):
                return {"by": "member", **told_members(left, right)}
        except (ValueError, RecursionError):
            pass
    return {"by": "line", **lines(a or "", b or "")}
