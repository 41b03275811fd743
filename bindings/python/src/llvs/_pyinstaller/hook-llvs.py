"""For programs that import llvs: adds the library, the SQLite extension, and the modules that `__getattr__` of the package imports."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

#: PyInstaller searches for libraries named lib*.so, but the file name of libllvs ends in its version.
binaries = [(str(path), "llvs") for path in sorted(PACKAGE.glob("libllvs*.so*"))]
if not binaries:
    raise FileNotFoundError(f"{PACKAGE} has no libllvs, so the frozen program would have none: install llvs from a wheel (docs/install.md)")

#: Without llvs.tools, llvs.inspector and llvs.testing: a program that uses these imports them by name.
hiddenimports = [
    *(f"llvs.{path.stem}" for path in sorted(PACKAGE.glob("*.py")) if path.stem != "__init__"),
    *("llvs.models" if path.stem == "__init__" else f"llvs.models.{path.stem}" for path in sorted(PACKAGE.glob("models/*.py"))),
]
