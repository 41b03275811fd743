"""Writes the C and Python examples of documents to files of their own, to be built and run.

    extract_examples.py <folder> <document.md>...       fenced blocks marked c or python
    extract_examples.py --header <folder> <header.h>    the indented example in the header's first comment

Files are named <document>-<number>.<c|py>, the document's folders included. A C example without a main gets
one around it; a Python block that does not begin with an import is a fragment, and left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUFFIXES = {"c": ".c", "python": ".py"}


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(c|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def header_example(text: str) -> str:
    comment = text[: text.index("*/")]
    lines = [line[len(" *     ") :] for line in comment.splitlines() if line.startswith(" *     ")]
    start = next(i for i, line in enumerate(lines) if line.startswith("llvs_store *"))
    end = next(i for i, line in enumerate(lines) if line.startswith("llvs_store_free"))
    return "\n".join(lines[start : end + 1]) + "\n"


def with_main(code: str) -> str:
    if "int main" in code:
        return code
    body = "".join("    " + line + "\n" for line in code.splitlines())
    return f"#include <llvs.h>\n#include <stdio.h>\n\nint main(void) {{\n{body}    return 0;\n}}\n"


def main(arguments: list[str]) -> None:
    if arguments[0] == "--header":
        folder, header = map(Path, arguments[1:])
        (folder / f"{header.stem}-header.c").write_text(with_main(header_example(header.read_text())))
        return
    folder = Path(arguments[0])
    for document in map(Path, arguments[1:]):
        counts = {"c": 0, "python": 0}
        stem = str(document.with_suffix("")).replace("/", "-")
        for language, code in fenced_blocks(document.read_text()):
            if language == "python" and not code.startswith(("import ", "from ")):
                continue
            counts[language] += 1
            name = f"{stem}-{counts[language]}{SUFFIXES[language]}"
            (folder / name).write_text(with_main(code) if language == "c" else code)


main(sys.argv[1:])
