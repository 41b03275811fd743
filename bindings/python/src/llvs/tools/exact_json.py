"""Reads and writes JSON without losing a digit: `1.00` stays `1.00`, and `1e400` does not become infinite."""

from __future__ import annotations

import json
from typing import Any, Optional


class Number(bytes):
    """A JSON number in its original spelling. It equals no text and no list."""

    __slots__ = ()


def _number(text: str) -> Number:
    return Number(text.encode())


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice in one object")
    return made


def parsed(text: str) -> Any:
    """Returns the value of JSON text, with `Number` for numbers. Raises ValueError, RecursionError.

    Text with a duplicate name in one object, or with NaN, is refused: neither can be shown, merged or written as a document.
    """
    return json.loads(text, parse_int=_number, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object)


#: Levels that are indented. Deeper values are written in one line, so that an indented document is at most 40 times as long.
INDENTED = 16


class _Piece(str):
    """Text that is written already."""

    __slots__ = ()


def written(value: Any, *, indent: Optional[int] = None, sort_keys: bool = False) -> str:
    """Returns the JSON text of a value of any depth, with each `Number` in its original spelling. O(size).

    indent: spaces for each of the first `INDENTED` levels.
    """
    made: list[str] = []
    todo: list[tuple[Any, int]] = [(value, 0)]
    while todo:
        part, level = todo.pop()
        if isinstance(part, _Piece):
            made.append(part)
        elif isinstance(part, Number):
            made.append(part.decode())
        elif part and isinstance(part, (dict, list, tuple)):
            todo += reversed(_members(part, level + 1, indent if level < INDENTED else None, sort_keys))
        else:
            made.append(json.dumps(part, ensure_ascii=False))
    return "".join(made)


def _members(value: Any, level: int, indent: Optional[int], sort_keys: bool) -> list[tuple[Any, int]]:
    """Returns an object or a list as pieces of text with its values between them, each with its depth."""
    end, between = ("", ", ") if indent is None else ("\n" + " " * indent * (level - 1), ",\n" + " " * indent * level)
    begin = between.lstrip(", ")
    made: list[tuple[Any, int]] = []
    if isinstance(value, dict):
        for key, member in sorted(value.items()) if sort_keys else value.items():
            made += [(_Piece(f"{between if made else '{' + begin}{json.dumps(key, ensure_ascii=False)}: "), level), (member, level)]
        return [*made, (_Piece(end + "}"), level)]
    for member in value:
        made += [(_Piece(between if made else "[" + begin), level), (member, level)]
    return [*made, (_Piece(end + "]"), level)]
