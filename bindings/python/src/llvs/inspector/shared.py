"""Files that other pages share with the inspector; `examples/loco` does.

Such a page serves them at its top level, for instance `/look.css` and `/dom.js`, because they import each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

_HERE = Path(__file__).parent
#: By the name that a page uses. look.css: colours, sizes, and the common look. dom.js: makes elements from text that may come from
#: anybody. time.js: times and numbers for people. token.js: how a window enters (`guard`), and sends requests.
FILES: Mapping[str, Path] = {
    "look.css": _HERE / "look.css", **{name: _HERE / "page" / name for name in ("dom.js", "time.js", "token.js")},
}
#: The types of a page's files, by their suffixes.
TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
}
