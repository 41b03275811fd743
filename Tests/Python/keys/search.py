"""Queries of an index: equality, ranges, prefixes, both orders, pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, NamedTuple, Optional

from documents import json_model as j

from .definition import Definition
from .encoding import CUT, LIMIT, Tuple, compare_parts, encoded_parts, encoded_prefix
from .folding import fold


class Entry(NamedTuple):
    """A key and the value that has it. Entries are sorted by key, then by id."""

    key: bytes
    id: bytes


@dataclass(frozen=True)
class Question:
    """A query: keys that begin with `equal`, and whose next part is in a range or begins with a text."""

    equal: Tuple = ()
    begin: Optional[str] = None
    low: Tuple = ()
    low_open: bool = False
    high: Tuple = ()
    high_open: bool = False

    def bounds(self, folds: bool) -> tuple[bytes, Optional[bytes]]:
        """Returns the first bytes that match, and the first ones after them that do not; None: all that follow match."""
        if self.begin is not None:
            first = encoded_prefix(self.equal, self.begin, folds)
            return first, behind(first)
        here = encoded_parts(self.equal, folds)
        low, high = here, behind(here)
        if self.low:
            low = here + encoded_parts(self.low, folds)
            low = (behind(low) or b"") if self.low_open else low
        if self.high:
            end = here + encoded_parts(self.high, folds)
            high = end if self.high_open else behind(end)
        return low, high


def behind(data: bytes) -> Optional[bytes]:
    """Returns the least bytes after all those that begin with these; None if there are none."""
    kept = data.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def is_within(key: bytes, low: bytes, high: Optional[bytes]) -> Optional[bool]:
    """Returns whether a key matches; None if it was cut before that can be decided."""
    if len(key) < LIMIT or key[-1] != CUT:
        return key >= low and (high is None or key < high)
    kept = key[:-1]
    if (kept < low and not low.startswith(kept)) or (high is not None and kept >= high):
        return False
    is_open = kept < low or (high is not None and high.startswith(kept))
    return None if is_open else True


class Index:
    """The sorted entries of the values of one version."""

    def __init__(self, definition: Definition, values: Mapping[bytes, bytes]) -> None:
        self.definition = definition
        self.values = values
        self.entries = sorted(Entry(key, value_id) for value_id, data in values.items() for key in definition.keys(value_id, data))

    def find(
        self, question: Question, reverse: bool = False, after: Optional[Entry] = None, limit: Optional[int] = None
    ) -> list[Entry]:
        """Returns one page: entries after `after` in the requested order."""
        low, high = question.bounds(self.definition.folds)
        found: list[Entry] = []
        for entry in reversed(self.entries) if reverse else self.entries:
            if after is not None and (entry >= after if reverse else entry <= after):
                continue
            if limit is not None and len(found) == limit:
                break
            if self._is_meant(entry, low, high):
                found.append(entry)
        return found

    def _is_meant(self, entry: Entry, low: bytes, high: Optional[bytes]) -> bool:
        answer = is_within(entry.key, low, high)
        if answer is not None:
            return answer
        wholes = self.definition.whole_keys(entry.id, self.values[entry.id])
        cut = (key for key in wholes if len(key) > LIMIT and key.startswith(entry.key[:-1]))
        return any(key >= low and (high is None or key < high) for key in cut)


def scan(definition: Definition, values: Mapping[bytes, bytes], question: Question) -> set[bytes]:
    """Returns the ids that a query finds, without any key or index."""
    found = set()
    for value_id, data in values.items():
        if any(_is_asked(question, parts, definition.folds) for parts in definition.tuples(value_id, data)):
            found.add(value_id)
    return found


def _is_asked(question: Question, parts: Tuple, folds: bool) -> bool:
    rest = parts[len(question.equal) :]
    if _order(parts, question.equal, folds):
        return False
    if question.begin is not None:
        text = rest[0] if rest else None
        if not isinstance(text, j.String):
            return False
        return fold(text.text).startswith(fold(question.begin)) if folds else text.text.startswith(question.begin)
    if question.low and (below := _order(rest, question.low, folds)) <= 0 and (below < 0 or question.low_open):
        return False
    return not (question.high and (above := _order(rest, question.high, folds)) >= 0 and (above > 0 or question.high_open))


def _order(parts: Tuple, others: Tuple, folds: bool) -> int:
    """Returns the order of tuples, up to the length of the second one, without regard to spelling."""
    return next((order for a, b in zip(parts, others) if (order := compare_parts(a, b, folds))), 0)
