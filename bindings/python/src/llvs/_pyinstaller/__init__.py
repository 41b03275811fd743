"""Hooks by which PyInstaller puts into a frozen program what it cannot see in the code: libraries, lazy modules, data files."""

from __future__ import annotations

import os


def get_hook_dirs() -> list[str]:
    """The folder of the hooks. PyInstaller asks by the entry point `hook-dirs` of the group `pyinstaller40`."""
    return [os.path.dirname(__file__)]
