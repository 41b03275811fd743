#!/usr/bin/env python3
"""Compares numbers in the documents with those in the headers, the code, the logs and the output of programs.

    scripts/check_figures.py              prints each number that is wrong, exits 1 if there are any
    scripts/check_figures.py --write      writes the right numbers into the documents
    scripts/check_figures.py --self-test  checks that a planted wrong number is found

A number that is compared follows a mark that names its figure: <!-- figure: limit.value_id -->4,096. scripts/lib/figures.py lists the
figures with their sources. Logs are those of the last run of scripts/test; without a log, its figures are not compared.

In the pages of MARKED, outside of code, each number of four digits or more has to have a mark.
Dates (1970-01-01) and modes (0600) need none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/lib"))

from figures import FIGURES, Figure

LARGE = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+|(?<![\w.])[1-9]\d{3,}(?!\d*-\d)")
MARK = re.compile(r"(<!-- figure: ([\w.-]+) -->)([\d,.]*\d)?")
#: Pages in which each number of four digits or more has to have a mark.
MARKED = ["README.md", *(f"docs/{name}.md" for name in (
    "command", "durability", "exchanges", "finding", "glossary", "live-protocol", "operations", "testing"))]


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "bindings/python").glob("*.md")])


def written(value: float, figure: Figure, like: str) -> str:
    """Returns a value as the document writes it: with the same number of decimals; with three digits if it varies from run to run."""
    if figure.about and value >= 1_000:
        unit = 10 ** (len(str(int(value))) - 3)
        value = round(value / unit) * unit
    decimals = len(like.partition(".")[2])
    return f"{value:,.{decimals}f}"


def is_right(number: str, value: float, figure: Figure) -> bool:
    given = float(number.replace(",", ""))
    if figure.about:
        return abs(given - value) <= figure.about * value
    return number == written(value, figure, number)


class Checking:
    """One pass over the documents."""

    def __init__(self, figures: dict[str, Figure]) -> None:
        self.figures, self.wrong, self.unknown, self.compared = figures, [], set(), 0
        self.values: dict[str, float | None] = {}

    def value(self, name: str) -> float | None:
        if name not in self.values:
            self.values[name] = self.figures[name].value()
        return self.values[name]

    def check(self, name: str, text: str) -> str:
        """Checks the marks of one document, and returns its text with the right numbers."""

        def one(match: re.Match[str]) -> str:
            mark, figure, number = match[1], match[2], match[3]
            if figure not in self.figures:
                self.wrong.append(f"{name}: there is no figure {figure}; scripts/lib/figures.py lists them")
                return match[0]
            if number is None:
                self.wrong.append(f"{name}: no number stands behind the mark of {figure}")
                return match[0]
            value = self.value(figure)
            if value is None:
                self.unknown.add(figure)
                return match[0]
            self.compared += 1
            if is_right(number, value, self.figures[figure]):
                return match[0]
            right = written(value, self.figures[figure], number)
            self.wrong.append(f"{name}: {figure} is {right}, not {number} (scripts/check_figures.py --write)")
            return mark + right

        return MARK.sub(one, text)


def at_the_beginning(name: str, text: str) -> list[str]:
    """Reports marks at the beginning of a line, which end the paragraph in Markdown."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{name}:{number}: a mark at the beginning of a line ends the paragraph" for number, line in lines if MARK.match(line.lstrip())]


def unmarked(name: str, text: str) -> list[str]:
    """Reports large numbers that have no mark."""
    plain = re.sub(r"^```.*?^```$|^    .*?$|`[^`]*`|\]\([^)]*\)", "", MARK.sub("", text), flags=re.MULTILINE | re.DOTALL)
    return [f"{name}: {number} has no mark" for number in LARGE.findall(plain)]


def self_test() -> int:
    figures = {"a": Figure(lambda: 4096.0), "b": Figure(lambda: 80_133.0, about=0.15), "c": Figure(lambda: None)}
    text = "".join(f"<!-- figure: {mark} " for mark in (
        "a -->4,096.", "a -->4,095 bytes", "b -->81,000", "b -->50,000", "c -->7", "d -->1", "a -->many", "a -->**9**"))
    checking = Checking(figures)
    right = checking.check("page", text)
    checking.wrong += unmarked("page", "12 of 1,234, in 2026, mode 0600, of 1970-01-01 and `5,678`; <!-- figure: a -->4,096")
    checking.wrong += at_the_beginning("page", "of <!-- figure: a -->4,096\n  <!-- figure: a -->4,096")
    expected = [
        "page: a is 4,096, not 4,095 (scripts/check_figures.py --write)",
        "page: b is 80,100, not 50,000 (scripts/check_figures.py --write)",
        "page: there is no figure d; scripts/lib/figures.py lists them",
        "page: no number stands behind the mark of a",
        "page: no number stands behind the mark of a",
        "page: 1,234 has no mark",
        "page: 2026 has no mark",
        "page:2: a mark at the beginning of a line ends the paragraph",
    ]
    print("\n".join(checking.wrong))
    return int(checking.wrong != expected or "4,095" in right or "-->80,100" not in right or checking.unknown != {"c"})


def main() -> int:
    if "--self-test" in sys.argv:
        return self_test()
    checking = Checking(FIGURES)
    for document in documents():
        text = document.read_text()
        right = checking.check(str(document.relative_to(ROOT)), text)
        checking.wrong += at_the_beginning(str(document.relative_to(ROOT)), text)
        if str(document.relative_to(ROOT)) in MARKED:
            checking.wrong += unmarked(str(document.relative_to(ROOT)), text)
        if "--write" in sys.argv and right != text:
            document.write_text(right)
    print("\n".join([*checking.wrong, f"{checking.compared} numbers compared, {len(checking.wrong)} wrong"]))
    if checking.unknown:
        print("not compared, for lack of a log or a build:", *sorted(checking.unknown))
    return int(bool(checking.wrong) and "--write" not in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
