"""The contents of the wheel, and the files of it that are loaded: libraries, data files, manual pages, entry points."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvs
import pytest

SOURCES = Path(__file__).resolve().parents[2] / "bindings" / "python" / "src"
assert llvs.__file__ is not None
PACKAGE = Path(llvs.__file__).parent
LIBRARY, EXTENSION = PACKAGE / f"libllvs.so.{'.'.join(llvs.__version__.split('.')[:2])}", PACKAGE / "libllvs_sqlite.so"


def test_the_package_is_the_installed_one() -> None:
    assert PACKAGE.is_relative_to(sys.prefix)


def test_package_wheel_and_library_have_one_version() -> None:
    assert importlib.metadata.version("llvs") == llvs.__version__ == llvs.library_version()


def test_the_library_that_is_loaded_is_that_of_the_wheel() -> None:
    """LLVS_LIBRARY does not count where the package carries a library."""
    code = "import llvs; print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libllvs' in line})"
    done = subprocess.run([sys.executable, "-c", code], env={"LLVS_LIBRARY": "/nowhere"}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(LIBRARY)


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    """Each file of the tree is installed with the same bytes. The wheel adds the two libraries."""
    paths = [path for path in (SOURCES / "llvs").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wanted = {str(path.relative_to(SOURCES)): path.read_bytes() for path in paths}
    listed = importlib.metadata.files("llvs") or []
    installed = {str(path): path.read_binary() for path in listed if path.parts[0] == "llvs" and "__pycache__" not in path.parts}
    assert len(wanted) > 150 and {name for name in wanted if installed.get(name) != wanted[name]} == set()
    assert set(installed) - set(wanted) == {f"llvs/{LIBRARY.name}", f"llvs/{EXTENSION.name}"}


def test_the_licences_are_in_the_wheel() -> None:
    """The place where pip and tools that list licences search: the folder of the distribution's metadata."""
    root = SOURCES.parents[2]
    listed = {path.name: path for path in importlib.metadata.files("llvs") or [] if path.parts[-2:-1] == ("licenses",)}
    for name in ("LICENSE", "THIRD-PARTY-NOTICES.txt"):
        assert listed[name].read_binary() == (root / name).read_bytes(), name
        assert listed[name].parts[0].endswith(".dist-info")


@pytest.mark.parametrize("path", [LIBRARY, EXTENSION], ids=lambda path: path.name)
def test_a_library_can_be_loaded(path: Path) -> None:
    """The extension is linked with the library, and finds the one beside itself."""
    loaded = ctypes.CDLL(str(path))
    assert loaded.llvs_version_number() >> 16 == int(llvs.__version__.split(".")[0])


def test_all_modules_can_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(llvs.__path__, "llvs.") if not module.name.startswith("llvs.lib")]
    # These are programs, not modules to import: hooks of PyInstaller, and what `python -m` runs.
    names = [name for name in names if "hook-" not in name and not name.endswith(".__main__")]
    assert len(names) > 120
    for name in names:
        importlib.import_module(name)


def test_all_public_names_are_there() -> None:
    assert [name for name in llvs.__all__ if getattr(llvs, name, None) is None] == []


def test_type_checkers_find_its_types() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_each_command_has_a_manual_page() -> None:
    from llvs.tools.command import COMMANDS

    pages = Path(sys.prefix, "share", "man", "man1")
    for name in ["llvs", *(f"llvs-{command}" for command in COMMANDS)]:
        assert (pages / f"{name}.1").read_text().startswith(".TH "), name


def test_it_needs_no_other_package() -> None:
    """The packages that it needs are those of its extras."""
    needed = importlib.metadata.requires("llvs") or []
    assert needed and [name for name in needed if "extra ==" not in name] == []


def test_pyinstaller_finds_its_hooks() -> None:
    (entry,) = [point for point in entry_points() if point.group == "pyinstaller40"]
    (folder,) = entry.load()()
    assert {path.name for path in Path(folder).glob("hook-*.py")} == {"hook-llvs.py", "hook-llvs.tools.py", "hook-llvs.inspector.py"}


def entry_points() -> Any:
    return importlib.metadata.distribution("llvs").entry_points
