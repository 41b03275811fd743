#!/usr/bin/env python3
"""Documents use the words of docs/glossary.md, and none that its last table says to avoid.

    scripts/check_words.py              prints each place that uses such a word, exits 1 if there are any
    scripts/check_words.py --self-test  checks that planted words are found

The table's first column has the words in backticks. They are looked for in prose alone: not in code, and not where a link leads to.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs/glossary.md"


def avoided(glossary: str) -> dict[str, str]:
    """The words to avoid, in lower case, and what the glossary has in their place."""
    table = glossary.partition("\n## Words that documents avoid\n")[2]
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|$", table, re.MULTILINE)
    return {word.lower(): better for words, better in rows for word in re.findall(r"`([^`]+)`", words)}


def blank(match: re.Match[str]) -> str:
    """As many empty lines as a match has, so that the lines behind it keep their numbers."""
    return "\n" * match[0].count("\n")


def prose(page: str) -> str:
    """A page of Markdown without its code, comments and the targets of links."""
    page = re.sub(r"^ *```.*?^ *```$", blank, page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"(?<=\n\n)(?:(?: {4}|\t).*\n|\n)+", blank, page)
    page = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", blank, page, flags=re.DOTALL)
    return page


def found(page: str, words: dict[str, str]) -> list[tuple[int, str]]:
    """The words of a page that are to be avoided, with the number of the line in which each begins."""
    text = prose(page)
    phrases = [(re.compile(r"\b" + r"\s+".join(map(re.escape, word.split())) + r"\b", re.IGNORECASE), word) for word in words]
    hits = [(match.start(), word) for phrase, word in phrases for match in phrase.finditer(text)]
    return [(text.count("\n", 0, start) + 1, word) for start, word in sorted(hits)]


def documents() -> list[Path]:
    folders = ("", "docs/", "bindings/*/", "examples/*/", "Tests/*/", "Tests/Vectors/*/")
    return sorted({path for folder in folders for path in ROOT.glob(f"{folder}*.md")})


def self_test() -> int:
    glossary = "x\n\n## Words that documents avoid\n\n| not | but |\n|---|---|\n| `anew`, `put together` | again |\n"
    page = (
        "It is made Anew, and put\ntogether.\n\n    anew in code\n\nAs `anew` and [here](anew.md) <!-- anew --> say, renewed.\n"
        "```\nanew\n```\n"
        "- an item\n\n  goes on anew\n\n| a table | anew |\n")
    expected = [(1, "anew"), (1, "put together"), (12, "anew"), (14, "anew")]
    words = avoided(glossary)
    hits = found(page, words)
    print(hits)
    # With the glossary as it is: each of its words is found in a page that says it, and none of them in a plain sentence.
    real = avoided(GLOSSARY.read_text())
    missed = [word for word in real if word not in {hit for _, hit in found(f"The store {word} it.\n", real)}]
    print("not found:", *missed)
    return int(hits != expected or words != {"anew": "again", "put together": "again"} or bool(missed) or len(real) < 10
               or bool(found("The store saves a version.\n", real)))


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    words, count = avoided(GLOSSARY.read_text()), 0
    if not words:
        print("docs/glossary.md has no table of words to avoid")
        return 1
    for document in documents():
        name = str(document.relative_to(ROOT))
        for line, word in found(document.read_text(), words):
            print(f'{name}:{line}: "{word}"; docs/glossary.md: {words[word]}')
            count += 1
    print(f"{len(words)} words to avoid, {count} uses")
    return int(bool(count))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
