"""Reads the headers of include as far as scripts/generate_bindings and the tests need it: functions, callbacks, structs,
constants.

The headers have a plain style (one declaration after the other, tags before pointer parameters), so a few regular expressions are enough.
A declaration that does not match them is an error here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from one_header import INCLUDE, parts

TESTING = INCLUDE / "llvs_testing.h"
HEADERS = (*parts(), TESTING)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its C type without `const`, its name, and its ownership tag ("owned", "borrowed" or "")."""

    type: str
    name: str
    ownership: str


@dataclass(frozen=True)
class Function:
    """A function or a callback type."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    #: Whether the compiler warns if its result is not used.
    checked: bool = False


@dataclass(frozen=True)
class Header:
    """What the headers declare."""

    functions: dict[str, Function]
    callbacks: dict[str, Function]
    structs: dict[str, tuple[tuple[str, str], ...]]
    constants: dict[str, int]
    enums: dict[str, dict[str, int]]
    sizes: dict[str, int]
    aliases: dict[str, str]
    #: The functions of llvs_testing.h.
    of_testing: frozenset[str]


def _without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//[^\n]*", " ", text)


def _type(text: str) -> str:
    text = text.replace("const ", " ").replace("*", " * ")
    words = text.split()
    stars = words.count("*")
    return " ".join(word for word in words if word != "*") + "*" * stars


def _parameter(text: str) -> Parameter:
    text = text.strip()
    ownership = ""
    for tag, name in (("LLVS_OWNED", "owned"), ("LLVS_BORROWED", "borrowed")):
        if text.startswith(tag):
            ownership, text = name, text[len(tag):].strip()
    match = re.fullmatch(r"(.*?)(\w+)", text, flags=re.S)
    assert match, f"not a parameter: {text!r}"
    return Parameter(_type(match[1]), match[2], ownership)


def _parameters(text: str) -> tuple[Parameter, ...]:
    text = text.strip()
    if text in ("", "void"):
        return ()
    return tuple(_parameter(part) for part in text.split(","))


def read_header() -> Header:
    """Parses the headers, and returns their declarations together."""
    text = _without_comments("\n".join(path.read_text(encoding="utf-8") for path in HEADERS))
    text = re.sub(r"static inline.*?\n}", " ", text, flags=re.S)

    functions = {}
    for match in re.finditer(r"LLVS_API\s+(LLVS_CHECKED\s+)?([\w\s\*]+?)(llvs_\w+)\s*\((.*?)\)\s*;", text, flags=re.S):
        functions[match[3]] = Function(match[3], _type(match[2]), _parameters(match[4]), bool(match[1]))

    callbacks = {}
    for match in re.finditer(r"typedef\s+([\w\s\*]+?)\(\s*\*\s*(llvs_\w+)\s*\)\s*\((.*?)\)\s*;", text, flags=re.S):
        callbacks[match[2]] = Function(match[2], _type(match[1]), _parameters(match[3]))

    structs: dict[str, tuple[tuple[str, str], ...]] = {}
    for match in re.finditer(r"typedef struct (llvs_\w+)\s*\{(.*?)\}\s*(llvs_\w+)\s*;", text, flags=re.S):
        fields = []
        for line in match[2].split(";"):
            line = line.strip()
            if not line:
                continue
            pointer = re.fullmatch(r"([\w\s\*]+?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", line, flags=re.S)
            if pointer:
                name = f"{match[1]}.{pointer[2]}"
                callbacks[name] = Function(name, _type(pointer[1]), _parameters(pointer[3]))
                fields.append((pointer[2], "function"))
                continue
            array = re.fullmatch(r"(.*?)(\w+)\[(\d+)\]", line, flags=re.S)
            if array:
                fields.append((array[2], f"{_type(array[1])}[{array[3]}]"))
                continue
            parameter = _parameter(line)
            fields.append((parameter.name, parameter.type))
        structs[match[1]] = tuple(fields)

    constants = {}
    enums = {}
    for match in re.finditer(r"\benum\s+(llvs_\w+)\s*\{(.*?)\}\s*;", text, flags=re.S):
        items = dict(item.split("=") for item in match[2].split(",") if item.strip())
        enums[match[1]] = {name.strip(): int(number) for name, number in items.items()}
        constants.update(enums[match[1]])
    for match in re.finditer(r"#define\s+(LLVS_\w+)\s+(-?\d+)\s*$", text, flags=re.M):
        constants[match[1]] = int(match[2])

    sizes = {match[1]: int(match[2]) for match in re.finditer(r"LLVS_LAYOUT\((llvs_\w+),\s*(\d+)\)", text)}
    aliases = {match[2]: match[1] for match in re.finditer(r"typedef\s+(u?int\d+_t)\s+(llvs_\w+)\s*;", text)}
    of_testing = frozenset(re.findall(r"\b(llvs_\w+)\s*\(", _without_comments(TESTING.read_text(encoding="utf-8"))))
    return Header(functions, callbacks, structs, constants, enums, sizes, aliases, of_testing & functions.keys())
