"""`import llvs` is quick: it loads the library, and few modules of Python. Imports are counted, since times vary.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import llvs
import pytest


def imported(code: str) -> set[str]:
    """The modules that `code` imports, beyond those that ctypes and the interpreter need."""
    script = f"import sys, os, ctypes; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    return set(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split())


def test_what_import_brings() -> None:
    found = imported("import llvs")
    assert found - {"__future__"} == {
        "llvs", "llvs._abi", "llvs._abi.library", "llvs._abi.parameters", "llvs._generated", "llvs._generated.constants",
        "llvs._generated.prototypes",
    }  # fmt: skip


@pytest.mark.parametrize("use", ["llvs.Store(storage='memory').close()", "llvs.Coordinator(storage='memory', exchange='memory:x').close()"])
def test_what_a_first_use_brings(use: str) -> None:
    found = imported(f"import llvs; {use}")
    assert not found & {
        "inspect",
        "dataclasses",
        "logging",
        "asyncio",
        "pathlib",
        "json",
        "urllib.parse",
        "platform",
        "tempfile",
        "uuid",
        "subprocess",
    }
    assert not [name for name in found if name.startswith("llvs.testing")] and "llvs.log" not in found


def test_every_name_is_there() -> None:
    names = set(llvs.__all__)
    assert names <= set(dir(llvs)) and {"Store", "Coordinator", "PASS", "library_version", "log_to"} <= names
    for name in names:
        assert getattr(llvs, name) is not None
    for module in llvs._SUBMODULES:
        assert getattr(llvs, module).__name__ == f"llvs.{module}"
    with pytest.raises(AttributeError, match="no attribute 'Stroe'"):
        llvs.Stroe  # type: ignore[attr-defined]
    space: dict[str, object] = {}
    exec("from llvs import *", space)
    assert names <= set(space)


def test_type_checkers_see_the_same_names() -> None:
    """The imports that only type checkers read, and the table that is used instead of them."""
    assert llvs.__file__ is not None
    tree = ast.parse(Path(llvs.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert all(alias.asname == alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names)
    assert seen == llvs._PLACES


def test_a_missing_library_is_told_at_the_import() -> None:
    script = "import os; os.environ['LLVS_LIBRARY'] = '/nowhere/libllvs.so'\nimport llvs"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert llvs.__file__ is not None
    if list(Path(llvs.__file__).parent.glob("libllvs.so*")):
        assert run.returncode == 0  # a wheel's own copy goes before
    else:
        assert run.returncode == 1 and "ImportError: LLVS_LIBRARY names '/nowhere/libllvs.so', where there is no file" in run.stderr


def test_models_are_imported_when_they_are_used_and_pydantic_never() -> None:
    assert not [name for name in imported("import llvs; llvs.Coordinator(storage='memory').close()") if name.startswith("llvs.models")]
    found = imported("import llvs; llvs.model")
    assert "llvs.models.collection" in found and not [name for name in found if name.startswith("pydantic")]
