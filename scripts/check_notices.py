#!/usr/bin/env python3
"""Checks that everything from elsewhere that is linked into libllvs has a notice in THIRD-PARTY-NOTICES.txt.

    scripts/check_notices.py                    compares the notices with what Package.swift and CMake link, and with generated tables
    scripts/check_notices.py --library FILE     searches a built library for copyright holders as well
    scripts/check_notices.py --self-test        checks that planted violations are found

A component names how it is linked, and its licence; the texts of licences follow. These are reported: a linked library without a
component, a component that nothing links any more, and a licence without its text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICES = "THIRD-PARTY-NOTICES.txt"
#: Flags that link the static form of a library.
FLAGS = re.compile(r"(?<![\w-])-static(?:-\w[\w+-]*)?|-Bstatic")
ARCHIVES = re.compile(r"lib[\w+.-]+\.a\b")
#: Copyright notices that some code contains, as they appear in the bytes of a library.
SAID = re.compile(rb"[\x20-\x7e]*(?:[Cc]opyright|\(c\) ?[12]\d{3}|CRYPTOGAMS)[\x20-\x7e]*")


def without_comments(text: str, mark: str) -> str:
    return "\n".join(line.partition(mark)[0] for line in text.splitlines())


def linked(root: Path) -> set[str]:
    """Returns the names of what is linked from elsewhere."""
    texts = [without_comments((root / "Package.swift").read_text(), "//")]
    texts += [without_comments(path.read_text(), "#") for path in sorted((root / "cmake").glob("*.cmake"))]
    found = {name for text in texts for pattern in (FLAGS, ARCHIVES) for name in pattern.findall(text)}
    for path in sorted((root / "Sources").rglob("*.swift")):
        with path.open() as file:
            if "Made by scripts/generate_folding" in file.read(400):  # a table of Unicode's data
                found.add(str(path.relative_to(root)))
    return found


def problems(root: Path, library: bytes = b"") -> list[str]:
    """Returns the violations, a sentence each."""
    text = (root / NOTICES).read_text()
    named: set[str] = set()
    texts = set(re.findall(r"^Text: (.+)$", text, re.MULTILINE))
    found = []
    for block in re.findall(r"^Component: (?:.+\n)+", text, re.MULTILINE):
        name = block.partition("\n")[0].removeprefix("Component: ")
        named |= set(re.findall(r"^Linked as: (.+)$", block, re.MULTILINE))
        for fact in ("Linked as", "Holds", "Copyright", "Origin", "Licence"):
            if not re.search(rf"^{fact}: \S", block, re.MULTILINE):
                found.append(f"{NOTICES}: {name} lacks its {fact}")
        for licence in re.findall(r"^Licence: (.+)$", block, re.MULTILINE):
            found += [f"{NOTICES}: the text {one} of {name} is not there" for one in licence.split(" WITH ") if one not in texts]
    there = linked(root)
    found += [f"{one} is linked, and no component of {NOTICES} names it" for one in sorted(there - named)]
    found += [f"{NOTICES}: nothing is linked as {one}" for one in sorted(named - there)]
    for said in sorted(set(SAID.findall(library))):
        words = said.decode("ascii").strip()
        holder = re.sub(r"^.*?(?:[Cc]opyright|\(c\))(?: ?\(c\))?[\s\d,-]*(?:by )?", "", words)[:12].strip()
        if not holder or holder not in text:
            found.append(f'the library says "{words}", and {NOTICES} names no such holder')
    return found


def self_test() -> int:
    import shutil
    import tempfile

    def planted(name: str, old: str, new: str, wanted: str, library: bytes = b"") -> bool:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for path in (NOTICES, "Package.swift", "cmake", "Sources/LLVSDocuments/IndexKeys"):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (ROOT / path).is_dir() else shutil.copy)(ROOT / path, root / path)
            text = (root / name).read_text()
            if old not in text:
                print(f"{name} does not have {old!r}")
                return False
            (root / name).write_text(text.replace(old, new))
            told = problems(root, library)
            print(*told, sep="\n")
            return any(wanted in one for one in told)

    zlib = b"\0 deflate 1.2.13 Copyright 1995-2022 Jean-loup Gailly and Mark Adler \0"
    found = [
        planted("Package.swift", '.linkedLibrary("z")', '.linkedLibrary(":libz.a")', "libz.a is linked, and no component"),
        planted("cmake/Library.cmake", "-Xswiftc -gnone", "-Xswiftc -static-libgcc", "-static-libgcc is linked"),
        planted(NOTICES, "Linked as: Sources/LLVSDocuments/IndexKeys/FoldingTable.swift\n", "", "FoldingTable.swift is linked"),
        planted(NOTICES, "Text: Unicode-3.0\n", "", "the text Unicode-3.0"),
        planted(NOTICES, "Holds: the runtime", "Linked as: libold.a\nHolds: the runtime", "nothing is linked as libold.a"),
        planted(NOTICES, "Licence: Unicode-3.0\n", "", "Unicode Character Database lacks its Licence"),
        planted(NOTICES, "Copyright: 1991", "Copyright: 1990", "Jean-loup Gailly", zlib),
        any("CRYPTOGAMS" in one for one in problems(ROOT, b"\0SHA256 block transform for x86_64, CRYPTOGAMS by <appro@openssl.org>\0")),
        not problems(ROOT, b"\0Copyright (c) 1991-2026 Unicode, Inc. All rights reserved.\0"),
    ]
    return 0 if all(found) else 1


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    library = Path(arguments[1]).read_bytes() if len(arguments) == 2 and arguments[0] == "--library" else b""
    if arguments and not library:
        print(__doc__)
        return 2
    found = problems(ROOT, library)
    print(*(found or ["everything that is linked has a notice"]), sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
