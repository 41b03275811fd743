"""Writes the examples of documents to separate files, to be built and run.

    extract_examples.py <folder> <document.md>...       fenced blocks marked c, cpp, python, swift or cmake
    extract_examples.py --header <folder> <header.h>    the first indented block of the header's first comment, as a program
    extract_examples.py --parts <folder> <header.h>...  the same as functions, whose parameters are what the examples do not declare

Files are named <document>-<number>.<suffix>, the document's folders included. A block marked `c prelude` or `cpp prelude` is not a program:
it is prepended to every later block of that language in its document. A C or C++ block without a main is put into one. A Python block that
does not begin with an import is a fragment, and left out.
"""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

SUFFIXES = {"c": ".c", "cpp": ".cpp", "python": ".py", "swift": ".swift", "cmake": ".cmake"}
#: Functions of the host in examples, and the fields of `llvs_files_callbacks` that they are for.
CALLBACKS = {"list_files": "list", "read_file": "read", "publish_file": "publish", "remove_file": "remove"}
HEADERS = {"c": "#include <llvs.h>\n#include <stdio.h>\n", "cpp": "#include <llvs.hpp>\n#include <iostream>\n"}


def fenced_blocks(text: str) -> list[tuple[str, bool, str]]:
    """Returns the language of each block, whether it is a prelude, and its lines."""
    found = re.findall(rf"^```({'|'.join(SUFFIXES)})( prelude)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, bool(prelude), code) for language, prelude, code in found]


def header_example(text: str) -> str:
    """Returns the first indented block of the first comment."""
    lines = text[: text.index("*/")].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(" *     "))
    block = itertools.takewhile(lambda line: line.startswith(" *     "), lines[start:])
    return "".join(f"{line[len(' *     '):]}\n" for line in block)


def function(code: str) -> str:
    """Returns a file with an example as a function."""
    callbacks = "".join(f", __typeof__(((llvs_files_callbacks *)0)->{field}) {name}" for name, field in CALLBACKS.items())
    given = "llvs_store *store, llvs_version_id ours, llvs_version_id theirs, llvs_bytes pairing, void *service"
    return f"{HEADERS['c']}int example({given}{callbacks}) {{\n{{\n{code}}}\nreturn 0;\n}}\n"


def program(language: str, prelude: str, code: str) -> str:
    """Returns a complete program in C or C++; blocks in other languages are complete already."""
    if language not in HEADERS:
        return code
    if "int main" not in code:
        code = "int main(void) {\n" + "".join(f"    {line}\n" if line else "\n" for line in code.splitlines()) + "    return 0;\n}\n"
        return (prelude or HEADERS[language]) + "\n" + code
    return prelude + code


def main(arguments: list[str]) -> None:
    if arguments[0] == "--header":
        folder, header = map(Path, arguments[1:])
        (folder / f"{header.stem}-header.c").write_text(program("c", "", header_example(header.read_text())))
        return
    if arguments[0] == "--parts":
        for header in map(Path, arguments[2:]):
            (Path(arguments[1]) / f"{header.stem}.h.c").write_text(function(header_example(header.read_text())))
        return
    folder = Path(arguments[0])
    for document in map(Path, arguments[1:]):
        counts = dict.fromkeys(SUFFIXES, 0)
        preludes = dict.fromkeys(SUFFIXES, "")
        stem = str(document.with_suffix("")).replace("/", "-")
        for language, is_prelude, code in fenced_blocks(document.read_text()):
            if is_prelude:
                preludes[language] += code
                continue
            if language == "python" and not code.startswith(("import ", "from ")):
                continue
            counts[language] += 1
            (folder / f"{stem}-{counts[language]}{SUFFIXES[language]}").write_text(program(language, preludes[language], code))


main(sys.argv[1:])
