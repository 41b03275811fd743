"""Checks that relative links in Markdown documents lead somewhere: to an existing file, and to a heading in it. Files of the engine that
are named with their folders (`Merge/MergePlan.swift`) have to be in a module of Sources, in Sources or at that path.

    check_links.py <document.md>...
    check_links.py --self-test          checks that planted broken links are found
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path


ROOT = Path(__file__).resolve().parents[2]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(document: Path) -> set[str]:
    """Returns what a link may have after its `#`, as GitHub derives it from headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *$", without_code(document.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number, name = 0, slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.add(name)
    return found


def broken(document: Path) -> list[str]:
    """Returns a line for each broken link of the document, and for each file of the engine that does not exist."""
    found = []
    for name in re.findall(r"`([\w+./]+/[\w+]+\.swift)`", without_code(document.read_text())):
        if not any((root / name).exists() for root in (ROOT, ROOT / "Sources", *(ROOT / "Sources").glob("LLVS*"))):
            found.append(f"{document}: {name} is not there")
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if not file.exists():
            found.append(f"{document}: {target} is not there")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            found.append(f"{document}: {target} names no heading")
    return found


def self_test() -> int:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        page.write_text("# A `page`, with words\n\n[a](page.md#a-page-with-words) [b](missing.md) [c](#nothing) [d](https://e.org)\n"
            "`Store/Store.swift` `Sources/LLVSCore/Store/Store.swift` `Map/Store.swift`\n")
        found = broken(page)
    expected = [f"{page}: Map/Store.swift is not there", f"{page}: missing.md is not there", f"{page}: #nothing names no heading"]
    print("\n".join(found))
    return int(found != expected)


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    found = [line for document in map(Path, arguments) for line in broken(document)]
    print("\n".join(found) or "all links lead somewhere")
    return int(bool(found))


sys.exit(main(sys.argv[1:]))
