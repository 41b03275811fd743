"""Joins include/llvs.h and the headers that it includes into one text, as programs see it.

    one_header.py >FILE
"""

from __future__ import annotations

import re
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"


def parts(include: Path = INCLUDE) -> list[Path]:
    """The headers that llvs.h includes, in order."""
    return [include / name for name in re.findall(r'^#include "(llvs/\w+\.h)"$', (include / "llvs.h").read_text(), re.M)]


def one_header(include: Path = INCLUDE) -> str:
    """The text of all headers, with one guard around them and one block of declarations."""
    overview = (include / "llvs.h").read_text()
    begin = overview.index('#include "')
    bodies = []
    for path in parts(include):
        text = re.sub(r'^(#include "\w+\.h"|#ifndef LLVS_\w+_H|#define LLVS_\w+_H|LLVS_END_DECL)\n', "", path.read_text(), flags=re.M)
        text = text.rstrip().removesuffix("#endif")
        bodies.append(text if not bodies else text.replace("\nLLVS_BEGIN_DECL\n", "", 1))
    return overview[:begin] + "".join(bodies) + "\nLLVS_END_DECL\n\n#endif\n"


if __name__ == "__main__":
    print(one_header(), end="")
