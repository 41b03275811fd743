"""Reads the wrapper for C++ (bindings/c/llvs/*.hpp) as far as scripts/reference needs it: public declarations with their comments, and the
functions of the C interface that they call.

The wrapper has a plain style: comments in `///` lines directly before the declaration, and nothing public in macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(
    r"(?P<words>///[^\n]*)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*#(?:\\\n|[^\n])*)"
    r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<label>\b(?:public|protected|private)\s*:(?!:))"
    r"|(?P<open>\{)|(?P<close>\})|(?P<end>;)|(?P<other>\s+|\w+|.)",
    re.S | re.M,
)
_SCOPE = re.compile(r"^(?:template\s*<.*>\s*)?(namespace|class|struct|enum(?: class)?|union)\b\s*([\w:]*)")


@dataclass(frozen=True)
class Declaration:
    """A public declaration: a class (`owner` empty), a function, or a member of a class."""

    owner: str
    text: str
    words: str
    #: Functions of the C interface that its body calls.
    calls: tuple[str, ...]

    @property
    def name(self) -> str:
        """Returns its name for messages."""
        found = re.search(r"(?!noexcept)\b([~\w]+|operator\W+?)\s*\(", self.text) or re.search(r"(\w+)\s*(?:=.*)?$", self.text)
        name = found[1] if found and not self.is_class else self.text.split(":")[0].split()[-1]
        return f"{self.owner}::{name}" if self.owner else name

    @property
    def is_class(self) -> bool:
        """Whether it is a class or struct."""
        return bool(re.match(r"(?:template\s*<.*>\s*)?(class|struct) ", self.text)) and "(" not in self.text


@dataclass
class _Scope:
    """A pair of braces that contains declarations."""

    kind: str
    name: str
    is_public: bool
    pending: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def take(self) -> tuple[str, str]:
        """Returns the declaration that has been read, and its comment."""
        text, words = " ".join("".join(self.pending).split()), "\n".join(self.words)
        self.pending, self.words = [], []
        return text, words


def declarations(text: str) -> Iterator[Declaration]:
    """Yields the public declarations in a header of the wrapper, in order; none of the namespace `detail`."""
    scopes = [_Scope("file", "", True)]
    #: The depth of braces that are not scopes, and their content.
    depth, body = 0, ""
    for match in _TOKEN.finditer(text):
        token, scope = match[0], scopes[-1]
        if depth:
            depth += (token == "{") - (token == "}")
            body += token
            if depth == 0 and not _is_initialiser(scope.pending):
                yield from _found(scope, body)
                body = ""
            continue
        if match["words"] is not None:
            scope.words.append(token.removeprefix("///").strip())
        elif match["comment"] is not None or match["directive"] is not None:
            continue
        elif match["label"] is not None:
            scope.is_public = token.startswith("public")
            scope.take()
        elif token in "{}" and "".join(scope.pending).count("(") > "".join(scope.pending).count(")"):
            # The default of a parameter.
            scope.pending.append(token)
        elif token == "{":
            head = " ".join("".join(scope.pending).split())
            kind = _SCOPE.match(head)
            if kind and "(" not in head and not kind[1].startswith("enum"):
                is_public = scope.is_public and scope.kind != "hidden" and kind[2] not in ("detail", "")
                if kind[1] != "namespace":
                    yield from _found(scope, "")
                else:
                    scope.take()
                scopes.append(_Scope(kind[1] if is_public else "hidden", kind[2], kind[1] != "class"))
            else:
                depth, body = 1, "{"
        elif token == "}":
            if len(scopes) > 1:
                scopes.pop()
        elif token == ";":
            yield from _found(scope, body)
            body = ""
        else:
            scope.pending.append(token)


def _is_initialiser(pending: list[str]) -> bool:
    """Returns whether braces after this belong to a value; a `;` follows them."""
    head = " ".join("".join(pending).split())
    return "(" not in head or bool(re.search(r"=\s*$", head)) or head.startswith("enum")


def _found(scope: _Scope, body: str) -> Iterator[Declaration]:
    text, words = scope.take()
    if not text or not scope.is_public or scope.kind in ("file", "hidden") or text.startswith(("friend ", "static_assert")):
        return
    # A constructor is shown without its member initialisers.
    text = re.sub(r"\)\s*(noexcept)?\s*:(?!:).*$", lambda end: ")" + (f" {end[1]}" if end[1] else ""), text)
    named = re.findall(r"\b(llvs_\w+)\s*\(", body) + re.findall(r"\b(llvs_(?:coordinator|store|exchange)_\w+),", body)
    calls = tuple(name for name in dict.fromkeys(named) if not name.endswith(("_dispose", "_free", "llvs_str")))
    owner = scope.name if scope.kind in ("class", "struct") else ""
    yield Declaration(owner, text, words, calls)


def undocumented(path: Path, text: str) -> list[str]:
    """Returns classes without a comment, and functions that have none and call no function of the C interface."""
    found = []
    for each in declarations(text):
        is_made_by_itself = re.search(r"=\s*(default|delete)$", each.text) or re.match(r"(static )?llvs_\w+_options options\(", each.text)
        if each.words or is_made_by_itself or (each.owner and "(" not in each.text):
            continue
        if each.is_class or ("(" in each.text and not each.calls):
            found.append(f"{path.name}: {each.name} has no words")
    return found


def page(folder: Path) -> str:
    """Returns a page with all headers of the wrapper."""
    lines = [
        "# llvs.hpp", "", "Made by scripts/reference from the wrapper's headers. What a member calls is explained in c.md.", ""
    ]
    for path in sorted(folder.glob("*.hpp")):
        text = path.read_text()
        lines += [f"## {path.name}", "", text.splitlines()[0].removeprefix("//").strip(), ""]
        for each in declarations(text):
            if each.is_class or not each.owner:
                lines += [f"### {each.name}", ""]
            lines += ["```cpp", each.text + ";", "```", ""]
            words = [each.words] if each.words else []
            if each.calls:
                words.append("Calls " + ", ".join(each.calls) + ".")
            if words:
                lines += ["```text", "\n".join(words), "```", ""]
    return "\n".join(lines)
