"""Lines, line ends, words and tokens of texts: section 2 of the specification of texts. No Unicode database is used.

Readings of the specification where it leaves a choice:
- 2.1: In texts that mix line ends a line that ends in `\\r` may come before a blank line that ends in `\\n`. They are read as one line
  then. Nothing in the specification forbids it.
- 2.2: If no side has a line end, the style is the base's. If no text has one, it is `\\n`: o empty, x `foo`, y `bar` gives `bar\\nfoo`.
- 2.2: A base without line ends is a style like others: o `a`, x `a\\n`, y `a\\r\\nb\\r\\n` is a style that both changed, each otherwise.
- 2.3: A last line that is blank is no line any more when its end is taken off: `a` and a blank line come to `a\\n`. With o `a` + `b`,
  x `a` + a blank line + `b` (both without last end) and y empty, the blank line stands, which without its end is the empty text. A
  record says so.
- 2.3: If one side has no say, the other one's end is the result's. If neither has a say, the result is empty.
- 2.3: In texts that are merged as they stand, a last line without an end gets `\\n` too, whatever ends the text has.
- 2.5: A scalar that attaches, but does not stand behind one of the four ranges, is one of all others: in `a \\u0301b` the mark and the b
  are one token.
"""

from __future__ import annotations

from typing import Optional

Ranges = tuple[tuple[int, int], ...]

#: The scalars that are words by themselves (2.4) and tokens by themselves (2.5).
_ALONE: Ranges = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
#: The scalars that belong to the token of such a scalar if they follow it (2.5).
_ATTACHED: Ranges = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05BD), (0x064B, 0x065F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x200D, 0x200D),
    (0x20D0, 0x20FF), (0x3099, 0x309A), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F), (0xE0100, 0xE01EF),
)  # fmt: skip
_SPACE = "\t \u3000"


def _in(letter: str, ranges: Ranges) -> bool:
    return any(first <= ord(letter) <= last for first, last in ranges)


# 2.1


def lines(text: str) -> list[str]:
    """Returns the lines of a text, with their ends."""
    found, start = [], 0
    for at, letter in enumerate(text):
        if letter == "\n" or (letter == "\r" and text[at + 1 : at + 2] != "\n"):
            found.append(text[start : at + 1])
            start = at + 1
    return found + ([text[start:]] if start < len(text) else [])


def split_end(line: str) -> tuple[str, str]:
    """Returns a line without its end, and its end."""
    for end in ("\r\n", "\n", "\r"):
        if line.endswith(end):
            return line[: -len(end)], end
    return line, ""


# 2.2


def style(text: str) -> Optional[str]:
    """Returns the one line end of a text, "" if it has none, None if it mixes kinds."""
    found = {split_end(line)[1] for line in lines(text)} - {""}
    return None if len(found) > 1 else found.pop() if found else ""


def merged_style(base: str, newer: str, older: str, newer_wins: bool) -> tuple[str, bool]:
    """Returns the line end to write, and whether it was picked because both sides changed it."""
    if not newer or not older:
        return newer or older or base or "\n", False
    if newer == base:
        return older, False
    if older == base or newer == older:
        return newer, False
    return newer if newer_wins else older, True


def convert(text: str, end: str) -> str:
    """Returns the text with all its line ends written so."""
    return "".join(body + (end if own else "") for body, own in map(split_end, lines(text)))


# 2.3


def has_last_end(text: str) -> Optional[bool]:
    """Returns whether the last line has an end; None for an empty text, which has no say."""
    return text[-1] in "\r\n" if text else None


def merged_last_end(base: Optional[bool], newer: Optional[bool], older: Optional[bool]) -> bool:
    """Returns whether the result has its last end."""
    if newer is None or older is None or newer == older:
        return bool(older if newer is None else newer)
    return True if base is None else newer if newer != base else older


def whole_lines(text: str) -> list[str]:
    """Returns the lines of a text, of which the last one has an end in any case."""
    found = lines(text)
    return found if has_last_end(text) in (None, True) else [*found[:-1], found[-1] + "\n"]


# 2.4


def _is_of_word(letter: str) -> bool:
    return letter.isalnum() if ord(letter) < 0x80 else letter != "\u3000"


def has_word(line: str) -> bool:
    """Returns whether a line has a word."""
    return any(map(_is_of_word, line))


def words(line: str) -> list[str]:
    """Returns the words of a line, for comparing."""
    found: list[str] = []
    in_run = False
    for letter in line:
        if not _is_of_word(letter):
            in_run = False
        elif _in(letter, _ALONE):
            found.append(letter)
            in_run = False
        elif in_run:
            found[-1] += letter
        else:
            found.append(letter)
            in_run = True
    return found


# 2.5


def is_space(token: str) -> bool:
    """Returns whether a token is a run of white space."""
    return token[0] in _SPACE


def tokens(body: str) -> list[str]:
    """Returns the tokens of a line without its end. Joined they are the line."""
    found: list[str] = []
    before = ""  # the kind of the last token
    for letter in body:
        kind = "space" if letter in _SPACE else "alone" if _in(letter, _ALONE) else "other"
        attaches = before == "alone" and _in(letter, _ATTACHED)
        if attaches or (found and kind == before != "alone"):
            found[-1] += letter
        else:
            found.append(letter)
        before = before if attaches else kind
    return found
