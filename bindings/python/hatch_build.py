"""Builds a wheel that contains libllvs with its licences, the SQLite extension, and the manual pages of the command.

The library is the one that LLVS_LIBRARY names, otherwise the one built in this tree (build/lib); the extension is beside it. The wheel's
platform follows from what these need: "manylinux_2_35_x86_64" if they need version 2.35 of the C library, so that pip refuses the wheel on
systems that could not load it. LLVS_WHEEL_PLATFORM names another platform.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any, Iterator

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CONSTANTS = Path(__file__).parent / "src" / "llvs" / "_generated" / "constants.py"

#: As _abi/library.py of the package names it: libllvs.so.<major>.<minor>.
PACKAGED_NAME = "libllvs.so." + ".".join(re.findall(r"^VERSION_(?:MAJOR|MINOR): Final = (\d+)", _CONSTANTS.read_text(), re.M))

#: As _abi/library.py of the package names it.
EXTENSION_NAME = "libllvs_sqlite.so"


def find_library(root: Path) -> Path:
    """Returns the library for the wheel. Raises FileNotFoundError, which says what to do, if there is none."""
    named = os.environ.get("LLVS_LIBRARY")
    candidates = [Path(named)] if named else [root / ".." / ".." / "build" / "lib" / PACKAGED_NAME]
    for candidate in candidates:
        if candidate.is_file():
            return candidate.resolve()
    raise FileNotFoundError(
        f"no library at {', '.join(str(candidate) for candidate in candidates)}: build libllvs first "
        "(cmake -B build && cmake --build build at the root of the project), or set LLVS_LIBRARY to its path"
    )


def find_extension(library: Path) -> Path:
    """Returns the SQLite extension for the wheel, beside the library. Raises FileNotFoundError, which says what to do, if there is none."""
    extension = library.parent / EXTENSION_NAME
    if not extension.is_file():
        raise FileNotFoundError(f"no SQLite extension at {extension}: build it with the library (cmake --build build)")
    return extension


# The libraries that a manylinux wheel may expect from a system and that ours needs. (SQLite is opened at first use.)
EXPECTED = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z))\.so(\.\d+)*")

# By version of the C library, the least version of libstdc++ on manylinux systems (PEP 600; auditwheel's policies).
LIBSTDCXX = (
    ((2, 17), (3, 4, 19)),
    ((2, 24), (3, 4, 22)),
    ((2, 27), (3, 4, 24)),
    ((2, 31), (3, 4, 28)),
    ((2, 34), (3, 4, 29)),
    ((2, 35), (3, 4, 30)),
    ((2, 39), (3, 4, 33)),
)

SECTION_DYNAMIC, SECTION_VERSIONS_NEEDED, ENTRY_NEEDED = 6, 0x6FFFFFFE, 1


def needs(library: Path) -> tuple[set[str], set[str]]:
    """Returns the names of the libraries that a shared library needs, and of the versions in them ("GLIBC_2.35"). Raises ValueError for a
    file that is not ELF64.
    """
    data = library.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library} is no 64-bit little-endian ELF file")
    table, (size, count) = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQII", data, table + index * size) for index in range(count)]

    def text(section: int, offset: int) -> str:
        start = sections[section][4] + offset
        return data[start : data.index(b"\0", start)].decode()

    def versions(at: int, entries: int, names: int) -> Iterator[str]:
        for _ in range(entries):
            _, parts, _, part, following = struct.unpack_from("<HHIII", data, at)
            inner = at + part
            for _ in range(parts):
                _, _, _, name, next_part = struct.unpack_from("<IHHII", data, inner)
                yield text(names, name)
                inner += next_part
            at += following

    libraries, found = set(), set()
    for _, kind, _, _, offset, length, link, info in sections:
        if kind == SECTION_DYNAMIC:
            entries = struct.iter_unpack("<qQ", data[offset : offset + length])
            libraries |= {text(link, value) for tag, value in entries if tag == ENTRY_NEEDED}
        elif kind == SECTION_VERSIONS_NEEDED:
            found |= set(versions(offset, info, link))
    return libraries, found


def manylinux(libraries: set[str], versions: set[str]) -> str | None:
    """Returns "manylinux_2_35" for what a library needs; None if the wheel would not run on all such systems."""

    def latest(name: str) -> tuple[int, ...]:
        found = [tuple(map(int, version[len(name) :].split("."))) for version in versions if re.fullmatch(rf"{name}[\d.]+", version)]
        return max(found, default=())

    libc, libstdcxx = latest("GLIBC_"), latest("GLIBCXX_")
    fitting = [since for since, has in LIBSTDCXX if has >= libstdcxx]
    if not libc or not fitting or not all(EXPECTED.fullmatch(name) for name in libraries):
        return None
    return "manylinux_{}_{}".format(*max(libc[:2], fitting[0]))


def platform_tag(library: Path, extension: Path) -> str:
    """Returns the platform part of the wheel's name: this machine's if the contents fit no other."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    named = os.environ.get("LLVS_WHEEL_PLATFORM")
    if named or not here.startswith("linux_"):
        return named or here
    libraries, versions = needs(library)
    more_libraries, more_versions = needs(extension)
    # The wheel contains these.
    more_libraries.discard(PACKAGED_NAME)
    many = manylinux(libraries | more_libraries, versions | {version for version in more_versions if not version.startswith("LLVS_")})
    return here if many is None else many + here[len("linux") :]


#: Files that belong to the library: its licence, and the licences of what is linked into it.
NOTICES = ("LICENSE", "THIRD-PARTY-NOTICES.txt")


def find_notices(root: Path) -> list[Path]:
    """Returns the files with licences: of the project, or beside the package in a source distribution. Raises FileNotFoundError."""
    for folder in (root, root / ".." / ".."):
        found = [folder / name for name in NOTICES]
        if all(path.is_file() for path in found):
            return found
    raise FileNotFoundError(f"no {' and '.join(NOTICES)} in {root} or in the root of the project: a wheel carries these")


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling runs before it packs a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stages the library and names the platform. An editable install uses LLVS_LIBRARY at run time instead."""
        if version == "editable":
            return
        library = find_library(Path(self.root))
        extension = find_extension(library)
        for source, name in ((library, PACKAGED_NAME), (extension, EXTENSION_NAME)):
            staged = Path(self.directory) / "staged" / name
            staged.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, staged)
            staged.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            build_data["force_include"][str(staged)] = f"llvs/{name}"
        for path in find_notices(Path(self.root)):
            build_data["force_include"][str(path)] = f"llvs-{self.metadata.version}.dist-info/licenses/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library, extension)}"
        for page in self.manual_pages(library):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def manual_pages(self, library: Path) -> list[Path]:
        """Writes the pages for `man`, which the command makes from its help; none if the library is for another platform than this one."""
        if os.environ.get("LLVS_WHEEL_PLATFORM"):
            return []
        folder = Path(self.directory) / "staged" / "man"
        # pip finds its build requirements by PYTHONPATH, so the package of this tree is put before them, and does not replace them.
        path = os.pathsep.join(filter(None, [str(Path(self.root) / "src"), os.environ.get("PYTHONPATH")]))
        surroundings = {**os.environ, "PYTHONPATH": path, "LLVS_LIBRARY": str(library)}
        command = [sys.executable, "-m", "llvs.tools", "man-pages", str(folder)]
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the manual pages could not be made: {done.stderr.strip()}")
        return sorted(folder.glob("*.1"))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes the staged files."""
        shutil.rmtree(Path(self.directory) / "staged", ignore_errors=True)
