"""Makes text from other devices harmless for a terminal.

Ids, metadata, names of branches and values may come from anybody. Characters that would move the cursor, colour the screen or change the
direction of writing are shown as escapes: `\\x1b`, `\\n`, `\\u202e`. Characters that join letters remain. `page/dom.js` of the inspector
has the same rule.
"""

from __future__ import annotations

import re

#: Control characters (C0, DEL, C1), line separators, direction marks, invisible characters, and lone surrogates.
_HARMFUL = (
    "\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
#: Letters and symbols between which a zero width joiner or non-joiner is a part of the text: Persian, Indic scripts, families of emoji.
#: Elsewhere it would make two different names look alike.
_JOINED = "\u0590-\u061b\u061d-\u167f\u1681-\u180d\u180f-\u1dff\u2190-\u2bff\u2e80-\u2fff\u3001-\ud7ff\uf900-\ufefe\U00010000-\U000dffff"
#: After these characters a joiner is a part of the text, whatever follows.
_VIRAMA = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"
#: After these characters a variation selector is a part of the text.
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
#: The flags of England, Scotland and Wales: a black flag, and invisible letters.
_FLAGS = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in ("gbeng", "gbsct", "gbwls"))
)
_ALONE = (
    f"(?<![{_JOINED}])[\u200c\u200d]|(?<![{_VIRAMA}])[\u200c\u200d](?![{_JOINED}])|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
)
_in_a_line = re.compile(f"{_FLAGS}|[{_HARMFUL}]|{_ALONE}")
_in_lines = re.compile(f"{_FLAGS}|(?![\n\t])[{_HARMFUL}]|{_ALONE}")
_in_json = re.compile(f"{_FLAGS}|(?!\n)[{_HARMFUL}]|{_ALONE}")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if len(character) > 1:
        return character
    number = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escaped_in_json(match: re.Match[str]) -> str:
    character = match.group()
    if len(character) > 1:
        return character
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    return "\\u{:04x}\\u{:04x}".format(0xD800 + ((number - 0x10000) >> 10), 0xDC00 + ((number - 0x10000) & 0x3FF))


class Styled(str):
    """Text that is harmless on a terminal: printing does not escape it again.

    Only `output` makes it: `style`, `row`, `text` and the functions that use them. A method of `str` or an f-string turns it into a plain
    `str`, which is escaped when it is printed, styles included. So such a mistake is visible, and harmless.
    """

    __slots__ = ()


def line(text: str) -> str:
    """Returns the text as a part of one line: line ends and tabs are escaped as well. O(size)."""
    if isinstance(text, Styled) or (text.isascii() and text.isprintable()):
        return text
    return _in_a_line.sub(_escaped, text)


def lines(text: str) -> str:
    """Returns the text with line ends and tabs unchanged. O(size)."""
    if isinstance(text, Styled):
        return text
    return _in_lines.sub(_escaped, text)


def json(text: str) -> str:
    """Returns JSON text with line ends unchanged, and with escapes of JSON. O(size)."""
    return text if text.isascii() and "\x7f" not in text else _in_json.sub(_escaped_in_json, text)
