"""Random texts of three sides, in which equal lines, blank lines, all kinds of words and mixed line ends are frequent."""

from __future__ import annotations

import random

from documents import tokens as k

#: Words of all kinds, and the characters between them.
WORDS = [
    "a", "b", "the", "milk", "10:30", "3.50", "https://a.b/c", "é", "e\u0301", "日本", "茶", "か\u3099", "갔다", "왔다", "🏳️\u200d🌈", "👍🏽",
    "🇩🇪", "-", "...", "\u0301", "\u200d",
]  # fmt: skip
#: Texts with mixed line ends. (With `\\n` and `\\r`, a blank line may follow a line that ends in `\\r`, and then is not a line.)
MIXED = [["\n", "\r\n"], ["\r", "\r\n"]]
Texts = tuple[str, str, str]


class Writer:
    """Writes texts, and edits them: equal lines, blank lines and mixed line ends are frequent."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.number = 0
        self.words = WORDS[: chance.choice([3, 9, len(WORDS)])]
        #: Whether lines end in one way or several, or are joined without spaces.
        self.ends = chance.choice([["\n"], ["\n"], ["\r\n"], ["\r"], *MIXED])
        self.spaces = chance.choice([[" "], [" ", " ", "\t", "\u3000", "  "], [" ", ""]])

    def word(self) -> str:
        self.number += 1
        return self.chance.choice(self.words) if self.chance.randrange(3) else f"w{self.number}"

    def line(self) -> str:
        if self.chance.randrange(5) == 0:
            return ""
        return self.chance.choice(self.spaces).join(self.word() for _ in range(self.chance.choice([1, 2, 3, 5, 8])))

    def text(self, lines: list[str]) -> str:
        text = "".join(line + self.end(line) for line in lines)
        return k.split_end(text)[0] if self.chance.randrange(3) == 0 else text

    def end(self, line: str) -> str:
        """Returns the end of a line. In texts with mixed line ends most lines have the same one."""
        return self.chance.choice(self.ends) if self.chance.randrange(20) == 0 else self.ends[sum(map(ord, line)) % len(self.ends)]

    def edited(self, lines: list[str]) -> list[str]:
        found = list(lines)
        for _ in range(self.chance.choice([0, 1, 1, 2, 2, 3, 5])):
            what, at = self.chance.randrange(8), self.chance.randrange(len(found) + 1)
            if what < 2 or not found:
                found[at:at] = [self.line() for _ in range(self.chance.choice([1, 1, 2]))]
            elif what == 2:
                del found[at : at + self.chance.choice([1, 1, 2])]
            elif what == 3:
                found.insert(at, self.chance.choice(found))
            else:
                at = min(at, len(found) - 1) // 2
                found[at] = self.edited_line(found[at]) if what < 7 else self.line()
        return found

    def edited_line(self, line: str) -> str:
        tokens = k.tokens(line)
        at = self.chance.randrange(len(tokens) + 1)
        new = self.chance.choice([[" ", self.word()], [self.word(), " "], [self.word()], []])
        return "".join([*tokens[:at], *new, *tokens[at + self.chance.choice([0, 1, 1, 2]) :]])

    def three(self) -> Texts:
        base = [self.line() for _ in range(self.chance.randrange(9))]
        if self.chance.randrange(3) == 0:
            # Both sides edit the same lines.
            base = [" ".join(self.word() for _ in range(self.chance.randrange(4, 10))) for _ in range(self.chance.randrange(1, 3))]
            x, y = ([self.edited_line(line) for line in base] for _ in "xy")
            return self.text(base), self.text(x), self.text(y)
        x, y = self.edited(base), self.edited(base)
        if self.chance.randrange(4) == 0:
            y = self.edited(x)  # Both sides have some equal edits.
        return self.text(base), self.text(x), self.text(y)
