#!/usr/bin/env python3
"""Counts the lines of the programs in docs/swift-comparison.md, and takes this library's from it.

    swift_comparison.py <file>       writes the program of this library to the file, with a test of two devices behind it
    swift_comparison.py --self-test  checks that a wrong count is found

Fails if the row "lines" of the page's table has other counts. A line counts if it is not empty and has more than a comment.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "swift-comparison.md"

# Two devices that change one contact while they are offline, and an undo.
TEST = """
@main struct Test {
    static func main() async throws {
        let folder = CommandLine.arguments[1]
        func open(_ name: String) async throws -> ContactBook {
            try await ContactBook(path: "\\(folder)/\\(name)", device: name, place: "file://\\(folder)/shared", passphrase: "six words")
        }
        let phone = try await open("phone"), laptop = try await open("laptop")
        func sync() async throws { for device in [phone, laptop, phone] { try await device.syncer.run() } }
        try await phone.save(Contact(name: "Ben"), id: "ben")
        try await phone.save(Contact(name: "Ann"), id: "ann")
        try await sync()
        try await phone.edit("ann") { $0.tags.insert("friend"); $0.visits += 1 }
        try await laptop.edit("ann") { $0.tags.insert("orchestra"); $0.visits += 1; $0.name = "Anna" }
        try await laptop.remove("ben")
        try await sync()
        for device in [phone, laptop] {
            for contact in try await device.byName() { print(contact.name, contact.tags.sorted(), contact.visits) }
        }
        try await phone.undo()
        try await sync()
        for contact in try await laptop.byName() { print(contact.name, contact.tags.sorted(), contact.visits) }
        for device in [phone, laptop] { try await device.contacts.coordinator.close() }
    }
}
"""


def programs(page: str) -> list[str]:
    """Returns the programs of the page, in its order."""
    return re.findall(r"^```swift\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def lines(program: str) -> int:
    """Returns how many lines are neither empty nor only a comment."""
    return sum(1 for line in program.splitlines() if line.strip() and not line.lstrip().startswith("//"))


def wrong(page: str) -> str:
    """Returns what is wrong with the counts in the table; nothing if they are right."""
    row = re.search(r"^\| lines \|(.*)\|$", page, re.MULTILINE)
    told = [int(cell) for cell in row[1].split("|")] if row else []
    counts = [lines(program) for program in programs(page)]
    return "" if told == counts and len(counts) == 4 else f"{PAGE.name} says {told}, and its programs have {counts} lines"


def self_test() -> int:
    page = "| lines | 1 | 1 | 2 | 1 |\n" + "```swift\n// a\n\na\n```\n" * 2 + "```swift\na\nb // c\n```\n```swift\na\n```\n"
    return 0 if not wrong(page) and wrong(page.replace("| 2 |", "| 3 |")) and wrong(page.replace("// a", "a")) else 1


def main(path: str) -> int:
    page = PAGE.read_text()
    problem = wrong(page)
    if problem:
        print(problem)
        return 1
    Path(path).write_text(programs(page)[0] + TEST)
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__)
        sys.exit(2)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else main(sys.argv[1]))
