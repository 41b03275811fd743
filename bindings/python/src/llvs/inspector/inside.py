"""What differs inside two values: by member for JSON, by line and word for text.

All of it is bounded: what is too different to be compared finely in the time that somebody waits is told as replaced.
"""

from __future__ import annotations

import json
import re
from difflib import SequenceMatcher
from typing import Any, Iterator, Optional, Sequence

#: Lines, words and elements up to which two sequences are compared finely: the product of what is left of both sides.
LARGEST = 4_000_000
#: Differences that are told.
MOST = 2000
_words = re.compile(r"\w+|\s+|[^\w\s]")


class Number(str):
    """A number of JSON as it is written: no digit is lost."""


def parsed(text: str) -> tuple[bool, Any]:
    """Whether a text is JSON, and what it says, with its numbers as they are written."""
    try:
        return True, json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
    except (ValueError, RecursionError):
        return False, None


def written(value: Any) -> str:
    """JSON again, with its numbers as they were written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(part) for part in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def blocks(a: Sequence[Any], b: Sequence[Any]) -> Iterator[tuple[str, int, int, int, int]]:
    """How to come from one sequence to the other, as `SequenceMatcher.get_opcodes` tells it; what is too much is replaced as a whole."""
    begin = 0
    while begin < len(a) and begin < len(b) and a[begin] == b[begin]:
        begin += 1
    end = 0
    while end < len(a) - begin and end < len(b) - begin and a[-1 - end] == b[-1 - end]:
        end += 1
    if begin:
        yield "equal", 0, begin, 0, begin
    left, right = a[begin : len(a) - end], b[begin : len(b) - end]
    if not left and right:
        yield "insert", begin, begin, begin, begin + len(right)
    elif left and not right:
        yield "delete", begin, begin + len(left), begin, begin
    elif left and right:
        if len(left) * len(right) > LARGEST:
            yield "replace", begin, begin + len(left), begin, begin + len(right)
        else:
            for kind, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
                yield kind, begin + i, begin + j, begin + k, begin + m
    if end:
        yield "equal", len(a) - end, len(a), len(b) - end, len(b)


def words(a: str, b: str) -> list[tuple[str, str]]:
    """Two texts as pieces: ("=", both), ("-", of the first alone), ("+", of the second alone)."""
    left, right = _words.findall(a), _words.findall(b)
    found: list[tuple[str, str]] = []
    for kind, i, j, k, m in blocks(left, right):
        if kind == "equal":
            found.append(("=", "".join(left[i:j])))
            continue
        if j > i:
            found.append(("-", "".join(left[i:j])))
        if m > k:
            found.append(("+", "".join(right[k:m])))
    return found


def lines(a: str, b: str, context: int = 3) -> dict[str, Any]:
    """Two texts side by side: rows of [number, line] on each side, with the words of lines that changed."""
    left, right = a.splitlines(), b.splitlines()
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any]) -> bool:
        rows.append(row)
        return len(rows) < MOST

    operations = list(blocks(left, right))
    for position, (kind, i, j, k, m) in enumerate(operations):
        if kind == "equal":
            first, last = position == 0, position == len(operations) - 1
            head, tail = (0 if first else context), (0 if last else context)
            for at in range(j - i):
                if head <= at < j - i - tail:
                    if at == head:
                        add({"kind": "skip", "count": j - i - tail - head})
                    continue
                add({"kind": "same", "a": i + at + 1, "b": k + at + 1, "text": left[i + at]})
            continue
        for at in range(max(j - i, m - k)):
            was = left[i + at] if at < j - i else None
            now = right[k + at] if at < m - k else None
            row: dict[str, Any] = {
                "kind": "changed", "a": None if was is None else i + at + 1, "b": None if now is None else k + at + 1
            }
            if was is not None and now is not None:
                row["words"] = words(was, now) if len(was) + len(now) < 20_000 else [("-", was[:10_000]), ("+", now[:10_000])]
            else:
                row["words"] = [("-", was[:10_000])] if was is not None else [("+", (now or "")[:10_000])]
            if not add(row):
                return {"rows": rows, "cut": True}
    return {"rows": rows[:MOST], "cut": len(rows) > MOST}


def members(a: Any, b: Any) -> dict[str, Any]:
    """What differs between two JSON documents, member by member, in the order of the second, removed members at the end."""
    found: list[dict[str, Any]] = []
    todo: list[tuple[list[Any], Any, Any]] = [([], a, b)]
    while todo:
        path, was, now = todo.pop()
        if len(found) >= MOST:
            return {"members": found, "cut": True}
        if type(was) is type(now) and was == now:
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            parts: list[tuple[list[Any], Any, Any]] = [([*path, key], was.get(key, _ABSENT), part) for key, part in now.items()]
            parts += [([*path, key], part, _ABSENT) for key, part in was.items() if key not in now]
            todo.extend(reversed(parts))
        elif isinstance(was, list) and isinstance(now, list):
            todo.extend(reversed(_elements(path, was, now)))
        else:
            found.append(_told(path, was, now))
    return {"members": found, "cut": False}


_ABSENT: Any = object()


def _elements(path: list[Any], was: list[Any], now: list[Any]) -> list[tuple[list[Any], Any, Any]]:
    left, right = [written(part) for part in was], [written(part) for part in now]
    found: list[tuple[list[Any], Any, Any]] = []
    for kind, i, j, k, m in blocks(left, right):
        if kind == "equal":
            continue
        pairs = min(j - i, m - k)
        found += [([*path, k + at], was[i + at], now[k + at]) for at in range(pairs)]
        found += [([*path, at], was[at], _ABSENT) for at in range(i + pairs, j)]
        found += [([*path, at], _ABSENT, now[at]) for at in range(k + pairs, m)]
    return found


def _told(path: list[Any], was: Any, now: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"path": path, "kind": "insert" if was is _ABSENT else "remove" if now is _ABSENT else "update"}
    if was is not _ABSENT:
        row["was"] = _cut(written(was))
    if now is not _ABSENT:
        row["now"] = _cut(written(now))
    if isinstance(was, str) and isinstance(now, str) and type(was) is type(now) is str and len(was) + len(now) < 20_000:
        row["words"] = words(was, now)
    return row


def _cut(text: str, limit: int = 4000) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def difference(a: Optional[str], b: Optional[str]) -> dict[str, Any]:
    """What differs between two values that are texts (None: absent): members where both are JSON, else lines."""
    if a is not None and b is not None:
        (left_is, left), (right_is, right) = parsed(a), parsed(b)
        if left_is and right_is and isinstance(left, (dict, list)) and isinstance(right, (dict, list)):
            try:
                return {"by": "member", **members(left, right)}
            except RecursionError:
                pass
    return {"by": "line", **lines(a or "", b or "")}
