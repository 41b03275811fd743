"""PyInstaller hooks. They add to a frozen program what PyInstaller cannot find in the code: libraries, lazy modules, data files."""

from __future__ import annotations

import os


def get_hook_dirs() -> list[str]:
    """Returns the folder of the hooks. PyInstaller calls it by the entry point `hook-dirs` of the group `pyinstaller40`."""
    return [os.path.dirname(__file__)]
