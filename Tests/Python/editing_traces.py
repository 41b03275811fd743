"""Merges the texts of recorded editing sessions by the model, and counts the merges that equal what the people saw.

    editing_traces.py <trace.json.gz>...

A trace is a graph of transactions of single keystrokes, some with two parents: github.com/josephg/editing-traces, concurrent traces. A
sequence CRDT (Fugue) computes the expected text at each transaction; its last text has to be that of the trace. For each transaction with
two parents, the texts of both are merged over the text of their best common ancestor (over a virtual base if there are several), and the
result is compared with the expected text.

The specification (texts.md) claims 2,258 of 2,258 equal merges of `friendsforever` and 3,619 of 3,628 of `clownschool`, and the model gives
these. It takes some minutes for each.
"""

from __future__ import annotations

import gzip
import json
import sys
from typing import Any, Iterator

from documents.text import merge_text

#: Sets of versions, as bits of a number.
Versions = int


class Trace:
    """The letters of all versions in one tree, which has the same order for every version."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.steps: list[dict[str, Any]] = trace["txns"]
        self.end: str = trace["endContent"]
        self.letters, self.makers, self.removers = [""], [-1], [0]
        self.left: list[list[int]] = [[]]
        self.right: list[list[int]] = [[]]
        self.above: list[Versions] = []

    def replay(self, every: int = 0) -> Iterator[tuple[int, str]]:
        """Makes all versions, and yields those with two parents, each with the text of its parents. With `every` it yields one version
        of so many instead, each with its own text."""
        uses = [step["numChildren"] for step in self.steps]
        texts: dict[int, list[int]] = {}
        for number, step in enumerate(self.steps):
            above: Versions = 0
            for parent in step["parents"]:
                above |= self.above[parent]
                uses[parent] -= 1
            if len(step["parents"]) == 1:
                (parent,) = step["parents"]
                letters = list(texts[parent]) if uses[parent] else texts[parent]
            else:
                letters = self.letters_at(above)
            if len(step["parents"]) == 2 and not every:
                yield number, "".join(self.letters[letter] for letter in letters)
            self.above.append(above | 1 << number)
            for place, removed, inserted in step["patches"]:
                for letter in letters[place : place + removed]:
                    self.removers[letter] |= 1 << number
                del letters[place : place + removed]
                for offset, text in enumerate(inserted):
                    self.insert(number, above, letters, place + offset, text)
            for parent in step["parents"]:
                if not uses[parent]:
                    texts.pop(parent, None)
            texts[number] = letters
            if every and number % every == every - 1:
                yield number, "".join(self.letters[letter] for letter in letters)
        if "".join(self.letters[letter] for letter in texts[len(self.steps) - 1]) != self.end:
            raise SystemExit("the trace does not come to the text that it says")

    def insert(self, number: int, above: Versions, letters: list[int], place: int, text: str) -> None:
        """Inserts a letter after the one before it; or before the letter that already follows that one."""
        known, before = above | 1 << number, letters[place - 1] if place else 0
        new = len(self.letters)
        self.letters.append(text)
        self.makers.append(number)
        self.removers.append(0)
        self.left.append([])
        self.right.append([])
        among = self.right[before]
        behind = self.known(among, known)
        while behind:
            among = self.left[behind[0]]
            behind = self.known(among, known)
        among.append(new)
        among.sort(key=lambda letter: (self.steps[self.makers[letter]]["agent"], self.makers[letter]))
        letters.insert(place, new)

    def known(self, letters: list[int], known: Versions) -> list[int]:
        return [letter for letter in letters if known >> self.makers[letter] & 1]

    def letters_at(self, above: Versions) -> list[int]:
        """Returns the letters that exist at a set of versions, in order."""
        found: list[int] = []
        todo = [(0, False)]
        while todo:
            letter, is_open = todo.pop()
            if is_open:
                if letter and not self.removers[letter] & above:
                    found.append(letter)
                continue
            todo += [(other, False) for other in reversed(self.known(self.right[letter], above))]
            todo.append((letter, True))
            todo += [(other, False) for other in reversed(self.known(self.left[letter], above))]
        return found

    def text(self, version: int) -> str:
        return "".join(self.letters[letter] for letter in self.letters_at(self.above[version]))


class Merges:
    """Merges of a trace, with their bases."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.texts: dict[int, str] = {}
        self.made: dict[tuple[Versions, Versions], str] = {}

    def text(self, version: int) -> str:
        if version not in self.texts:
            self.texts[version] = self.trace.text(version)
        return self.texts[version]

    def bases(self, one: Versions, other: Versions) -> list[int]:
        """Returns the best common ancestors, oldest first."""
        common, found = one & other, []
        while common:
            found.append(common.bit_length() - 1)
            common &= ~self.trace.above[found[-1]]
        return sorted(found)

    def base(self, one: Versions, other: Versions) -> str:
        """Returns the text of the only base, or the virtual one of several."""
        if (one, other) not in self.made:
            first, *others = self.bases(one, other)
            text, above = self.text(first), self.trace.above[first]
            for version in others:
                text, _ = merged(self.base(above, self.trace.above[version]), self.text(version), text)
                above |= self.trace.above[version]
            self.made[one, other] = text
        return self.made[one, other]


def merged(base: str, newer: str, older: str) -> tuple[str, bool]:
    """Returns the result of a merge, and whether it has records."""
    if newer == base:
        return older, False
    if older in (base, newer):
        return newer, False
    found = merge_text(base, newer, older, "word")
    return found.text, bool(found.conflicts)


def main(paths: list[str]) -> None:
    for path in paths:
        with gzip.open(path) as file:
            trace = Trace(json.load(file))
        merges = Merges(trace)
        total = equal = several = told = untold = 0
        for number, truth in trace.replay():
            older, newer = sorted(trace.steps[number]["parents"])
            above = trace.above[older], trace.above[newer]
            text, is_told = merged(merges.base(*above), merges.text(newer), merges.text(older))
            total += 1
            equal += text == truth
            several += len(merges.bases(*above)) > 1
            told += is_told
            untold += text != truth and not is_told
        print(f"{path}: {equal} of {total} merges equal to the truth; {several} have several bases; {told} have records;")
        print(f"  {untold} are other than the truth without a record")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1:])
