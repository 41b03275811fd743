"""Reads and writes expected.json: the contents of the stores beside it.

    expected.py FOLDER     prints the complete contents of FOLDER/expected.json

A file is complete, or names a `base`, which is a folder beside its own, and has only the differences. The differences of a list are an
object whose names are indices.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import layout  # noqa: E402

NAME = "expected.json"


def read(folder: Path) -> Any:
    """Returns the contents of the stores in a folder."""
    found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    base = found.pop("base", None)
    return changed(read(folder.parent / base), found) if base else found


def write(folder: Path, expected: Any) -> None:
    """Writes the contents of the stores in a folder.

    If a folder beside it has complete contents with the same structure, only the differences are written.
    """
    text = written(expected)
    found = expected = json.loads(text)
    for path in sorted(folder.resolve().parent.glob(f"*/{NAME}")):
        base = json.loads(path.read_text(encoding="utf-8"))
        if path.parent != folder.resolve() and "base" not in base and are_alike(base, expected):
            found = {"base": path.parent.name, **differences(base, expected)}
            break
    (folder / NAME).write_text(layout.text(found), encoding="utf-8")
    assert written(read(folder)) == text


def written(expected: Any) -> str:
    """Returns the text of complete contents."""
    return json.dumps(expected, indent=1, sort_keys=True) + "\n"


def are_alike(one: Any, other: Any) -> bool:
    """Returns whether the two have the same members, and lists of the same lengths."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_alike, one, other))
    return not isinstance(one, (dict, list)) and not isinstance(other, (dict, list))


def differences(one: Any, other: Any) -> Any:
    """Returns the parts of `other` that differ from `one`, which has the same structure."""
    if not isinstance(one, (dict, list)):
        return other
    names = list(one) if isinstance(one, dict) else list(range(len(one)))
    return {str(name): differences(one[name], other[name]) for name in names if json.dumps(one[name]) != json.dumps(other[name])}


def changed(base: Any, different: Any) -> Any:
    """Returns `base` with differences applied."""
    if not isinstance(base, (dict, list)):
        return different
    made = base.copy()
    for name, inner in different.items():
        place = name if isinstance(base, dict) else int(name)
        made[place] = changed(base[place], inner)
    return made


if __name__ == "__main__":
    sys.stdout.write(written(read(Path(sys.argv[1]))))
