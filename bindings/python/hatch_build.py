"""Builds a wheel that carries libllvs.

The library is the one that LLVS_LIBRARY names, else the one built in this tree (build/lib). The wheel's platform is
this machine's ("linux_x86_64"), or the one that LLVS_WHEEL_PLATFORM names: "manylinux_2_35_x86_64", where auditwheel
has found the library fit for it (see README.md).
"""

from __future__ import annotations

import os
import shutil
import stat
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGED_NAME = "libllvs.so.0"


def find_library(root: Path) -> Path:
    """The library to carry. Raises FileNotFoundError, with what to do, when there is none."""
    named = os.environ.get("LLVS_LIBRARY")
    candidates = [Path(named)] if named else [root / ".." / ".." / "build" / "lib" / PACKAGED_NAME]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise FileNotFoundError(
        f"no library at {', '.join(str(candidate) for candidate in candidates)}: build libllvs first "
        "(cmake -B build && cmake --build build at the root of the project), or set LLVS_LIBRARY to its path"
    )


def platform_tag() -> str:
    """The platform part of the wheel's name."""
    return os.environ.get("LLVS_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling runs before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stages the library and names the platform. An editable install uses LLVS_LIBRARY at run time instead."""
        if version == "editable":
            return
        staged = Path(self.directory) / "staged" / PACKAGED_NAME
        staged.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(find_library(Path(self.root)), staged)
        staged.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"
        build_data["force_include"][str(staged)] = f"llvs/{PACKAGED_NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was staged."""
        shutil.rmtree(Path(self.directory) / "staged", ignore_errors=True)
