#!/usr/bin/env python3
"""Makes a package of Swift from the beginning of bindings/swift/README.md.

    swift_quickstart.py <folder> <address of this package>

Writes the files that the section "Two devices in 40 lines" shows, with that address in place of the README's, warnings as errors, and
another folder to share. Fails if the section has more than 40 lines of program.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "bindings" / "swift" / "README.md"
ADDRESS, SHARED = "https://example.com/llvs.git", "/tmp/contacts-of-ann"


def files(text: str) -> dict[str, str]:
    """Returns the files of the section, by their names."""
    section = text[text.index("## Two devices in 40 lines") :]
    section = section[: section.index("\n## ", 3)]
    return dict(re.findall(r"^`([\w.]+)`[^\n]*:\n\n```swift\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


def main(folder: Path, address: str) -> int:
    found = files(README.read_text())
    package, program = found["Package.swift"], found["Contacts.swift"]
    count = len(program.splitlines())
    if count > 40 or package.count(ADDRESS) != 1 or program.count(SHARED) != 1:
        print(f"{README}: a program of {count} lines (40 at most), with one address of the package and one folder")
        return 1
    package = package.replace(ADDRESS, address).replace(
        'package: "llvs")])', 'package: "llvs")],\n        swiftSettings: [.unsafeFlags(["-warnings-as-errors"])])')
    for path, text in {"Package.swift": package, "Sources/Contacts/Contacts.swift": program.replace(SHARED, f"{folder}/shared")}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
