"""A program that PyInstaller freezes works if only the frozen program is available."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvs._pyinstaller
import pytest

PROGRAM = """
import os, sys
import llvs

with llvs.Store("notes.llvs") as notes:
    made = notes.make_version(insert={"a": b"1"})
with llvs.Store("notes.llvs") as notes, llvs.Store("other.llvs", storage="sqlite") as other:
    assert notes.at(made)["a"] == b"1"
    other.unpack(notes.pack())
    assert other.at(made)["a"] == b"1"
# The package imports each module when a name of it is first asked for.
for module in [llvs, *(getattr(llvs, name) for name in dir(llvs) if not name.startswith("_"))]:
    for name in getattr(module, "__all__", ()):
        getattr(module, name)
assert "llvs.testing.faults" in sys.modules and "llvs.live.nearby" in sys.modules
assert os.path.isfile(llvs.sqlite.extension_path())

# Every module that is imported lies in the frozen program. (Those that it starts with have no folder.)
files = [file for module in list(sys.modules.values()) if os.path.isabs(file := getattr(module, "__file__", None) or "")]
assert files and all(file.startswith(sys._MEIPASS + "/") for file in files), files
# So does every library that is loaded, unless it is the system's.
with open("/proc/self/maps") as maps:
    libraries = {path for line in maps if (path := line.split(None, 5)[-1].strip()).startswith("/") and ".so" in path}
ours = {path for path in libraries if "llvs" in os.path.basename(path)}
assert ours and all(path.startswith(sys._MEIPASS + "/") for path in ours), ours
assert all(path.startswith((sys._MEIPASS + "/", "/lib", "/usr/lib")) for path in libraries), libraries
print("the store works")
"""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frozen program, in a folder that PyInstaller does not know."""
    work = tmp_path_factory.mktemp("freezing")
    (work / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level=WARN", "program.py"]
    settings = {**os.environ, "PYINSTALLER_CONFIG_DIR": str(work / "cache")}
    done = subprocess.run(command, cwd=work, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    moved = tmp_path_factory.mktemp("elsewhere") / "program"
    shutil.move(work / "dist" / "program", moved)
    return moved


def test_a_frozen_program(frozen: Path, tmp_path: Path) -> None:
    done = subprocess.run([frozen / "program"], cwd=tmp_path, env={}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "the store works\n", done.stdout + done.stderr


def test_a_program_with_the_command_gets_all_of_its_modules() -> None:
    """The command imports the modules of its commands by their names, which PyInstaller cannot see."""
    from llvs.tools.command import COMMANDS

    assert {f"llvs.tools.{module}" for module, _ in COMMANDS.values()} <= set(hook("llvs.tools")["hiddenimports"])


def test_a_program_with_the_inspector_gets_its_page() -> None:
    from llvs.inspector.app import PAGE
    from llvs.inspector.shared import FILES

    wanted = {path for path in [*PAGE.iterdir(), *FILES.values()] if path.is_file()}
    found = {Path(source): Path(target, Path(source).name) for source, target in hook("llvs.inspector")["datas"]}
    assert len(wanted) > 15 and wanted <= set(found)
    # In the frozen program each file is where the modules search for it.
    assert all(source.is_relative_to(sys.prefix) and source.match(f"site-packages/{target}") for source, target in found.items())


def hook(module: str) -> dict[str, Any]:
    """Returns what a hook gives to PyInstaller."""
    (folder,) = llvs._pyinstaller.get_hook_dirs()
    return runpy.run_path(str(Path(folder, f"hook-{module}.py")))
