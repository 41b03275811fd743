"""`import llvs` is quick: it loads the library, and few modules of Python. Imports are counted, since times vary.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
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
        "llvs._generated.prototypes", "llvs._names",
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


#: The packages whose names are imported at their first use. Their modules are for the package alone.
PACKAGES = ["llvs", "llvs.coordinator", "llvs.exchange", "llvs.indexes", "llvs.live", "llvs.merge", "llvs.store"]


def test_a_first_program_finds_what_it_needs_at_the_top() -> None:
    """The other names are in modules, which are usable without an import of their own. Forty names can be read at a glance."""
    names = set(llvs.__all__)
    assert {"Store", "Coordinator", "Exchange", "Error", "MostRecentChange", "library_version", "log_to"} <= names and len(names) < 40
    for module in ("aio", "coordinator", "errors", "exchange", "indexes", "live", "merge", "models", "sqlite", "storage", "store", "words"):
        assert getattr(llvs, module).__name__ == f"llvs.{module}" and module in dir(llvs)
    assert issubclass(llvs.errors.MovedError, llvs.Error) and llvs.errors.MovedError is llvs.MovedError


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_there(name: str) -> None:
    package = importlib.import_module(name)
    names = set(package.__all__)
    assert names and names <= set(dir(package))
    for each in names:
        assert getattr(package, each) is not None
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Stroe'"):
        package.Stroe
    space: dict[str, object] = {}
    exec(f"from {name} import *", space)
    assert names <= set(space)


def test_an_unknown_name_that_another_module_has() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Arbiter'; it is llvs\.merge\.Arbiter$"):
        llvs.Arbiter  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"it is llvs\.merge\.Arbiter$"):
        llvs.store.Arbiter  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'$"):
        llvs.Nothing  # type: ignore[attr-defined]


def test_a_name_at_the_top_is_in_one_module_as_well() -> None:
    modules = [importlib.import_module(f"llvs.{module.name}") for module in pkgutil.iter_modules(llvs.__path__)]
    public = [module for module in modules if module.__name__.rpartition(".")[2] in dir(llvs) and hasattr(module, "__all__")]
    assert len(public) > 12
    for name in set(llvs.__all__) - {"library_version"}:
        assert [module.__name__ for module in public if name in module.__all__ and getattr(module, name) is getattr(llvs, name)], name


def seen(path: Path, package: str) -> tuple[dict[str, str], dict[str, str]]:
    """The names of a package with their modules: as type checkers read them, and as `attach` gets them."""
    block = next(node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If))
    read = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            assert all(alias.asname == alias.name for alias in node.names)
            base = package.split(".")[1:][: 1 - node.level or None]
            read |= {alias.name: ".".join([*base, node.module]) for alias in node.names}
    call = next(node for node in ast.walk(block) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "attach")
    table = ast.literal_eval(call.args[1])
    return read, {name: module for module, names in table.items() for name in names.split()}


@pytest.mark.parametrize("name", PACKAGES)
def test_type_checkers_see_the_same_names(name: str) -> None:
    """The imports that only type checkers read, and the table that is used instead of them."""
    package = importlib.import_module(name)
    assert package.__file__ is not None
    read, used = seen(Path(package.__file__), name)
    assert read == used and set(used) == set(package.__all__) - {"library_version"}


def test_type_checkers_see_the_same_modules() -> None:
    assert llvs.__file__ is not None
    block = next(node for node in ast.parse(Path(llvs.__file__).read_text()).body if isinstance(node, ast.If))
    modules = next(node for node in block.body if isinstance(node, ast.ImportFrom) and node.module is None)
    call = next(node for node in ast.walk(block) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "attach")
    assert [alias.name for alias in modules.names] == ast.literal_eval(call.keywords[0].value).split()


def test_a_missing_library_is_reported_at_the_import() -> None:
    script = "import os; os.environ['LLVS_LIBRARY'] = '/nowhere/libllvs.so'\nimport llvs"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert llvs.__file__ is not None
    if list(Path(llvs.__file__).parent.glob("libllvs.so*")):
        assert run.returncode == 0  # a wheel's own copy goes before
    else:
        assert run.returncode == 1 and "ImportError: LLVS_LIBRARY names '/nowhere/libllvs.so', where there is no file" in run.stderr


def test_models_are_imported_when_they_are_used_and_pydantic_never() -> None:
    assert not [name for name in imported("import llvs; llvs.Coordinator(storage='memory').close()") if name.startswith("llvs.models")]
    found = imported("import llvs; llvs.models.model")
    assert "llvs.models.collection" in found and not [name for name in found if name.startswith("pydantic")]
