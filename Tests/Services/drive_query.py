"""The search language of Google Drive, as far as programs that store files use it.

After https://developers.google.com/drive/api/guides/ref-search-terms.
"""

from __future__ import annotations

import re
from typing import Any, Callable

Test = Callable[[dict[str, Any]], bool]
_TOKEN = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|(!=|<=|>=|=|<|>|\(|\))|([A-Za-z]+))")


def compile_query(text: str, aliases: dict[str, str]) -> Test:
    """Returns a test of a file's resource. `aliases` are names of folders that stand for ids. Raises for a text that is not in the
    language."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if not found:
            raise ValueError(text[at:])
        value, sign, word = found.groups()
        tokens.append(("value", re.sub(r"\\(.)", r"\1", value)) if value is not None else ("sign", sign) if sign else ("word", word))
        at = found.end()
    if not tokens:
        return lambda _: True
    test, rest = _either(tokens, aliases)
    if rest:
        raise ValueError(str(rest))
    return test


_Rest = list[tuple[str, str]]


def _either(tokens: _Rest, aliases: dict[str, str]) -> tuple[Test, _Rest]:
    tests = []
    while True:
        test, tokens = _all(tokens, aliases)
        tests.append(test)
        if tokens[:1] != [("word", "or")]:
            return (lambda file: any(test(file) for test in tests)), tokens
        tokens = tokens[1:]


def _all(tokens: _Rest, aliases: dict[str, str]) -> tuple[Test, _Rest]:
    tests = []
    while True:
        test, tokens = _one(tokens, aliases)
        tests.append(test)
        if tokens[:1] != [("word", "and")]:
            return (lambda file: all(test(file) for test in tests)), tokens
        tokens = tokens[1:]


def _one(tokens: _Rest, aliases: dict[str, str]) -> tuple[Test, _Rest]:
    if tokens[:1] == [("word", "not")]:
        test, rest = _one(tokens[1:], aliases)
        return (lambda file: not test(file)), rest
    if tokens[:1] == [("sign", "(")]:
        test, rest = _either(tokens[1:], aliases)
        if rest[:1] != [("sign", ")")]:
            raise ValueError("a parenthesis is open")
        return test, rest[1:]
    if len(tokens) < 3:
        raise ValueError("a term is not complete")
    (_, left), (_, operator), (kind, right), *rest = tokens
    if tokens[0][0] == "value" and operator == "in" and right == "parents":
        parent = aliases.get(left, left)
        return (lambda file: parent in file["parents"]), rest
    if tokens[0][0] != "word":
        raise ValueError(left)
    if left in ("trashed", "starred", "sharedWithMe") and kind == "word" and right in ("true", "false") and operator in ("=", "!="):
        wanted = (right == "true") == (operator == "=")
        return (lambda file: bool(file.get(left, False)) == wanted), rest
    if left in ("name", "mimeType", "modifiedTime") and kind == "value":
        compare: dict[str, Callable[[str], bool]] = {
            "=": lambda found: found == right,
            "!=": lambda found: found != right,
            "contains": lambda found: found.lower().startswith(right.lower()),
            ">": lambda found: found > right,
            "<": lambda found: found < right,
        }
        if operator in compare:
            return (lambda file: compare[operator](file[left])), rest
    raise ValueError(f"{left} {operator}")
