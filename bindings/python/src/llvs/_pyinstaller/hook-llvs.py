"""For programs that import llvs: adds the library, the SQLite extension, and the modules that `__getattr__` of the package imports."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

#: PyInstaller searches for libraries named lib*.so, but the file name of libllvs ends in its version.
binaries = [(str(path), "llvs") for path in sorted(PACKAGE.glob("libllvs*.so*"))]
if not binaries:
    raise FileNotFoundError(f"{PACKAGE} has no libllvs, so the frozen program would have none: install llvs from a wheel (docs/install.md)")

#: A program that uses these imports them by name.
OTHERS = {"_pyinstaller", "inspector", "tools"}

hiddenimports = [
    ".".join(("llvs", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in OTHERS
]
