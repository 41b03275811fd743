"""Where to find public test inputs, which are not a part of this project: JSONTestSuite, naughty strings, addresses, files of age, zips.

LLVS_CONFORMANCE names the folder; by default it is `shared/conformance` beside the checkout. Tests that need it are skipped if it does not
exist.
"""

from __future__ import annotations

import bz2
import json
import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("LLVS_CONFORMANCE") or Path(__file__).resolve().parents[3] / "shared" / "conformance")


def needed(name: str) -> pytest.MarkDecorator:
    """Returns a mark for tests that need one of its folders."""
    where = f"{FOLDER / name} is not there: LLVS_CONFORMANCE names the folder of public test inputs"
    return pytest.mark.skipif(not (FOLDER / name).is_dir(), reason=where)


def naughty() -> list[str]:
    """Returns the naughty strings, without the empty one."""
    found: list[str] = json.loads((FOLDER / "naughty-strings" / "blns.json").read_text())
    assert len(found) > 400
    return [text for text in dict.fromkeys(found) if text]


#: Unicode's own test files: Debian's package unicode-data, or a folder with the same names, which LLVS_UNICODE_DATA names.
UNICODE = Path(os.environ.get("LLVS_UNICODE_DATA") or "/usr/share/unicode")


def unicode_lines(name: str) -> list[str]:
    """Returns the lines of a file of Unicode's, without comments and empty lines."""
    packed = UNICODE / f"{name}.bz2"
    data = bz2.decompress(packed.read_bytes()) if packed.exists() else (UNICODE / name).read_bytes()
    return [line for line in (line.partition("#")[0].strip() for line in data.decode("utf-8").splitlines()) if line]


def needs_unicode() -> pytest.MarkDecorator:
    """A mark for tests that need Unicode's files."""
    where = f"{UNICODE} has no files of Unicode's: install the package unicode-data, or name a folder in LLVS_UNICODE_DATA"
    return pytest.mark.skipif(not (UNICODE / "CaseFolding.txt").is_file(), reason=where)
