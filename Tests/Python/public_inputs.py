"""Where public test inputs lie: JSONTestSuite, naughty strings, addresses. They are no part of this project.

LLVS_CONFORMANCE names the folder; else it is the folder `shared/conformance` beside the checkout. Tests that need it are skipped where
there is none.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("LLVS_CONFORMANCE") or Path(__file__).resolve().parents[3] / "shared" / "conformance")


def needed(name: str) -> pytest.MarkDecorator:
    """A mark for tests that need one of its folders."""
    where = f"{FOLDER / name} is not there: LLVS_CONFORMANCE names the folder of public test inputs"
    return pytest.mark.skipif(not (FOLDER / name).is_dir(), reason=where)
