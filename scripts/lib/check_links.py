"""Fails when a relative link in a Markdown document leads to no file."""

import re
import sys
from pathlib import Path

broken = [
    f"{document}: {target}"
    for document in map(Path, sys.argv[1:])
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text())
    if "://" not in target and not (document.parent / target).exists()
]
print("\n".join(broken) or "all links lead somewhere")
sys.exit(bool(broken))
