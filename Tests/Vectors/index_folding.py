"""Makes index-folding.txt: the folding of strings in keys of indexes (docs/index-keys.md), from Unicode 14.0.

The table is a part of the format and never changes. So this needs a Python whose `unicodedata` has that version (3.11); it is kept to
document the source of the table. The test runs it again if it can.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

TABLE = Path(__file__).resolve().with_name("index-folding.txt")
UNICODE = "14.0.0"
MARKS = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7),
    (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
)  # fmt: skip


def folded(scalar: int) -> str:
    """Returns a scalar decomposed, case folded, decomposed again, without marks; independent of its context."""
    if unicodedata.category(chr(scalar)) == "Cn" and not is_mark(scalar):
        return chr(scalar)
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFD", chr(scalar)).casefold())
    return "".join(char for char in text if not is_mark(ord(char)))


def is_mark(scalar: int) -> bool:
    return any(first <= scalar <= last for first, last in MARKS)


def table() -> str:
    """Returns the text of the file."""
    lines = [
        "# Folding of strings in keys of indexes: docs/index-keys.md. Made by index_folding.py from Unicode 14.0; never changes.",
        "# A scalar value or a range of them, in hexadecimal, and what each becomes. Hangul syllables are computed.",
    ]
    run: list[int] = []

    def close() -> None:
        if run:
            lines.append(f"{run[0]:04X}" if len(run) == 1 else f"{run[0]:04X}-{run[-1]:04X}")
            run.clear()

    for scalar in [*range(0xAC00), *range(0xAC00 + 11_172, 0xD800), *range(0xE000, 0x110000)]:
        result = folded(scalar)
        if result == chr(scalar):
            continue
        if not result:
            if run and run[-1] != scalar - 1:
                close()
            run.append(scalar)
            continue
        close()
        lines.append(f"{scalar:04X} " + " ".join(f"{ord(char):04X}" for char in result))
    close()
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    assert unicodedata.unidata_version == UNICODE, unicodedata.unidata_version
    TABLE.write_text(table(), encoding="ascii")
