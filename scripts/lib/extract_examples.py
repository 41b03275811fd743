"""Writes the examples of documents to separate files, to be built and run.

    extract_examples.py <folder> <document.md>...       fenced blocks marked c, cpp, python, swift or cmake
    extract_examples.py --header <folder> <header.h>    the indented example in the header's first comment

Files are named <document>-<number>.<suffix>, the document's folders included. A block marked `c prelude` or `cpp prelude` is not a program:
it is prepended to every later block of that language in its document. A C or C++ block without a main is put into one. A Python block that
does not begin with an import is a fragment, and left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUFFIXES = {"c": ".c", "cpp": ".cpp", "python": ".py", "swift": ".swift", "cmake": ".cmake"}
HEADERS = {"c": "#include <llvs.h>\n#include <stdio.h>\n", "cpp": "#include <llvs.hpp>\n#include <iostream>\n"}


def fenced_blocks(text: str) -> list[tuple[str, bool, str]]:
    """Returns the language of each block, whether it is a prelude, and its lines."""
    found = re.findall(rf"^```({'|'.join(SUFFIXES)})( prelude)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(language, bool(prelude), code) for language, prelude, code in found]


def header_example(text: str) -> str:
    comment = text[: text.index("*/")]
    lines = [line[len(" *     ") :] for line in comment.splitlines() if line.startswith(" *     ")]
    start = next(i for i, line in enumerate(lines) if line.startswith("llvs_coordinator *"))
    end = next(i for i, line in enumerate(lines) if line.startswith("llvs_coordinator_free"))
    return "\n".join(lines[start : end + 1]) + "\n"


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
