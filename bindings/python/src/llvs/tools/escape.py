"""Text that others wrote, made harmless for a terminal.

Ids, metadata, names of branches and values come from anybody. What would move the cursor, colour the screen or turn the direction of
writing is shown as what it is: `\\x1b`, `\\n`, `\\u202e`.
"""

from __future__ import annotations

import re

#: The control characters (C0, DEL, C1), separators of lines, marks of direction, what cannot be seen, and lone surrogates.
_HARMFUL = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff"
)
_in_a_line = re.compile(f"[{_HARMFUL}]")
_in_lines = re.compile(f"(?![\n\t])[{_HARMFUL}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    number = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def line(text: str) -> str:
    """The text as a part of one line: ends of lines and tabs are escaped as well. O(size)."""
    return text if text.isascii() and text.isprintable() else _in_a_line.sub(_escaped, text)


def lines(text: str) -> str:
    """The text with its ends of lines and its tabs as they are. O(size)."""
    return _in_lines.sub(_escaped, text)


def is_harmful(character: str) -> bool:
    """Whether a character is one of those that `line` escapes."""
    return _in_a_line.match(character) is not None
