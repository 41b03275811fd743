"""What pages that look like the inspector share with it, for whoever serves one: `examples/loco` does.

The files stand at the top of such a page, since they import each other: `/look.css` and `/dom.js`, say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

_HERE = Path(__file__).parent
#: By the name under which a page has it. look.css: colours, sizes, and what is the same everywhere. dom.js: making elements of text that
#: anybody may have written. time.js: times and numbers as people read them. token.js: how a window enters (`guard`), and asks.
FILES: Mapping[str, Path] = {
    "look.css": _HERE / "look.css", **{name: _HERE / "page" / name for name in ("dom.js", "time.js", "token.js")},
}
#: The types of a page's files, by their endings.
TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
}
