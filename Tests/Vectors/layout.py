"""The layout of vectors in JSON: each item of a list is on a line of its own, so that a reader and a diff see its contents."""

from __future__ import annotations

import json
from typing import Any

#: A wider container is broken into lines, unless it is nested this deeply.
COLUMNS, DEPTH = 140, 4


def text(value: Any) -> str:
    """Returns the text of a file that holds `value`."""
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Any, depth: int) -> list[str]:
    whole = json.dumps(value)
    if depth >= DEPTH or depth + len(whole) <= COLUMNS or not isinstance(value, (dict, list)):
        return [whole]
    items = [(f"{json.dumps(name)}: ", item) for name, item in value.items()] if isinstance(value, dict) else [("", item) for item in value]
    made = []
    for name, item in items:
        first, *others = _lines(item, depth + 1)
        made += [f" {name}{first}", *(f" {line}" for line in others)]
        made[-1] += ","
    made[-1] = made[-1][:-1]
    return ["{", *made, "}"] if isinstance(value, dict) else ["[", *made, "]"]
