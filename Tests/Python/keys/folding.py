"""The folding of strings: scalar by scalar, from a table that never changes."""

from __future__ import annotations

from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "Vectors" / "index-folding.txt"


def read(path: Path) -> dict[int, str]:
    """Returns what each scalar folds to; others stay as they are. Each line has a scalar or a range, and its replacement."""
    table: dict[int, str] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("#"):
            continue
        scalars, _, result = line.partition(" ")
        first, _, last = scalars.partition("-")
        for scalar in range(int(first, 16), int(last or first, 16) + 1):
            assert scalar not in table, hex(scalar)
            table[scalar] = "".join(chr(int(word, 16)) for word in result.split())
    return table


_table = read(TABLE)


def fold(text: str) -> str:
    """Returns the string without case and diacritics."""
    return "".join(_one(char) for char in text)


def _one(char: str) -> str:
    syllable = ord(char) - 0xAC00
    if not 0 <= syllable < 11_172:
        return _table.get(ord(char), char)
    trailing = syllable % 28
    letters = chr(0x1100 + syllable // 588) + chr(0x1161 + syllable % 588 // 28)
    return letters + (chr(0x11A7 + trailing) if trailing else "")
