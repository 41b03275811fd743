"""Writes vectors.txt: vectors.json and histories.json for programs without a reader of JSON (Tests/C/test_document_vectors.c).

    lines.py           writes the file anew
    lines.py --check   says whether it is what the two files say

One item a line, words separated by one space. Names, rules, values and metadata are hexadecimal; `-` is absent, `.` empty.

    merge <saving> <rules> <base> <newer> <older> <result> <digest> <name>     for a value with the id "a"
    history <rules> <name>                                                     then its versions, on one that holds the rules:
    save <version> <time> <predecessor> <value> <storing version>
    join <version> <ours> <theirs> <arbiter> <metadata "device"> <value> <storing version> <kinds of conflicts, or ?>
    end
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Iterator, Optional

HERE = Path(__file__).resolve().parent


def word(text: Optional[str]) -> str:
    """A word of a line."""
    return "-" if text is None else text.encode().hex() or "."


def lines() -> Iterator[str]:
    """The lines of the file."""
    for vector in json.loads((HERE / "vectors.json").read_text())["vectors"]:
        if vector.get("swapped"):  # The C API merges values in no such roles.
            continue
        values = [word(vector[name]) for name in ("schema", "base", "newer", "older", "result")]
        yield " ".join(["merge", str(int(vector.get("saving", False))), *values, vector["digest"], word(vector["name"])])
    for history in json.loads((HERE / "histories.json").read_text())["histories"]:
        yield f"history {word(history['schema'])} {word(history['name'])}"
        for version in history["versions"]:
            yield " ".join(step(version))
        yield "end"


def step(version: dict[str, Any]) -> list[str]:
    """The line of a version."""
    above, ends = version["predecessors"], [word(version["value"]), version["stored"] or "-"]
    if "arbiter" not in version:
        return ["save", version["name"], str(version["time"]), *(above or ["-"]), *ends]
    device = (version["metadata"] or {}).get("device")
    kinds = "?" if version["records"] is None else ",".join(version["records"]) or "-"
    return ["join", version["name"], *above, version["arbiter"], word(device and json.dumps(device)), *ends, kinds]


if __name__ == "__main__":
    path, text = HERE / "vectors.txt", "\n".join(lines()) + "\n"
    if "--check" in sys.argv[1:]:
        sys.exit(path.read_text() != text)
    path.write_text(text)
