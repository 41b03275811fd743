#!/usr/bin/env python3
"""Writes programs with random models: structures of random Codable types.

    random_models.py <seed> <count> <kept.swift> <refused.swift>

The first program saves an object of each model, reads it, edits each member, and compares. It prints what differs, and the number of
models. Each structure of the second has one member that a model cannot keep, and a comment with its name; each must be an error of the
macro.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

HEAD = """import Foundation
import LLVS
import LLVSModel

nonisolated(unsafe) var failures = 0
func check(_ isSo: Bool, _ what: String) { if !isSo { failures += 1; print("failed: \\(what)") } }
"""


class Models:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text: list[str] = [HEAD]
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def literal(self) -> str:
        letters = ["a", "é", "\\u{1F600}", "\\\"", "\\\\", "\\n", "/", "~", "*", " ", "0"]
        return '"' + "".join(self.random.choice(letters) for _ in range(self.random.randint(0, 6))) + '"'

    def plain(self) -> tuple[str, list[str]]:
        """A type, and expressions of different values of it; the first is its default."""
        r = self.random
        return r.choice([
            lambda: ("Int", [str(r.randint(-9, 9)), "Int.max", "Int.min", "77"]),
            lambda: ("UInt8", ["0", "255", "7"]),
            lambda: ("Int64", ["0", "-9_007_199_254_740_993", "5"]),
            lambda: ("Double", ["0.5", "-1e300", "5e-324", "3"]),
            lambda: ("Float", ["0.25", "-8", "1e30"]),
            lambda: ("Bool", ["false", "true"]),
            lambda: ("String", [self.literal(), '"x' + self.literal()[1:], '"y"']),
            lambda: ("Date", ["Date(timeIntervalSince1970: 0)", f"Date(timeIntervalSince1970: {r.random() * 4e9!r})",
                              "Date(timeIntervalSinceReferenceDate: 0.125)"]),
            lambda: ("UUID", ['UUID(uuidString: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F")!',
                              'UUID(uuidString: "00000000-0000-0000-0000-000000000001")!']),
            lambda: ("Data", ["Data()", "Data([0, 255, 10])", "Data([1])"]),
            lambda: ("URL", ['URL(string: "https://example.com/a?b=%20")!', 'URL(string: "file:///x")!']),
            lambda: ("Decimal", ["Decimal(3)", "Decimal(string: \"-12345678901234567890.5\")!"]),
        ])()

    def hashable(self) -> tuple[str, list[str]]:
        while (found := self.plain())[0] in ("Double", "Float", "Decimal"):
            pass
        return found

    def nested(self, depth: int) -> tuple[str, list[str]]:
        r = self.random
        kind = r.choice(["raw", "payload", "plain", "part"])
        name = self.name("N")
        if kind == "raw":
            base = r.choice(["String", "Int"])
            self.text.append(f"enum {name}: {base}, Codable, Sendable, Equatable {{ case one, two, three }}")
            return name, [f"{name}.one", f"{name}.two", f"{name}.three"]
        if kind == "payload":
            inner, values = self.type(depth + 1)
            self.text.append(f"enum {name}: Codable, Sendable, Equatable {{ case none, one({inner}), two(x: {inner}, y: Int) }}")
            return name, [f"{name}.none", f"{name}.one({values[1]})", f"{name}.two(x: {values[0]}, y: 3)"]
        members = [(f"m{i}", *self.type(depth + 1)) for i in range(r.randint(1, 3))]
        head = "@Model struct" if kind == "part" else "struct"
        conforms = "Equatable" if kind == "part" else "Codable, Sendable, Equatable"
        lines = "; ".join(f"var {m}: {t} = {v[0]}" for m, t, v in members)
        self.text.append(f"{head} {name}: {conforms} {{ {lines} }}")
        first, _, values = members[0]
        return name, [f"{name}()", f"{name}({first}: {values[1]})"]

    def type(self, depth: int = 0) -> tuple[str, list[str]]:
        r = self.random
        kind = r.choice(["plain"] * 4 + (["optional", "array", "set", "names", "nested"] if depth < 3 else []))
        if kind == "plain":
            return self.plain()
        if kind == "nested":
            return self.nested(depth)
        if kind == "set":
            element, values = self.hashable()
            return f"Set<{element}>", ["[]", f"[{', '.join(values[:2])}]", f"[{values[1]}]"]
        element, values = self.type(depth + 1)
        if kind == "optional":
            if element.endswith("?"):
                return element, values
            return f"{element}?", ["nil", *values[:2]]
        if kind == "names":
            return f"[String: {element}]", ["[:]", f'["a": {values[0]}, {self.literal()[:-1]}b": {values[1]}]', f'["": {values[1]}]']
        return f"[{element}]", ["[]", f"[{values[0]}, {values[1]}, {values[0]}]", f"[{values[1]}]"]

    def model(self) -> None:
        name = self.name("T")
        members = [(f"m{i}", *self.type()) for i in range(self.random.randint(1, 6))]
        lines = "\n".join(f"    var {m}: {t} = {v[0]}" for m, t, v in members)
        self.text.append(f'@Model(prefix: "{name}/") struct {name}: Equatable {{\n{lines}\n}}')
        body = [f"    let all = try device.collection({name}.self)", f"    var one = {name}()",
                '    try all.save(one, id: "1")', f'    check(try all["1"] == one, "{name}() is read as it was saved")']
        for m, _, values in members:
            for value in values[1:]:
                body.append(f"    one.{m} = {value}")
                body.append(f'    try all.edit("1") {{ $0.{m} = {value} }}')
                body.append(f'    check(try all["1"] == one, "{name}.{m} is read as it was saved")')
        body.append('    check(try all.save(one, id: "1") == nil, "an equal object of ' + name + ' is no change")')
        self.text.append(f"func try{name}(_ device: StoreCoordinator) throws {{\n" + "\n".join(body) + "\n}")

    def refused(self) -> str:
        r = self.random
        name = self.name("R")
        kind, values = self.plain()
        good = f"    var ok: {kind} = {values[0]}"
        bad = r.choice([
            f"    var bad: {kind}", "    let bad = UUID()", "    let id = 3", f"    let bad = Date()", "    var (bad, worse) = (1, 2)",
            f"    var bad: [{kind}]", f"    var bad, worse: {kind}",
        ])
        return f'@Model(prefix: "{name}/") struct {name} {{\n{good}\n{bad} // {name}\n}}'


def main(seed: int, count: int, kept: Path, refused: Path) -> None:
    models = Models(seed)
    for _ in range(count):
        models.model()
    calls = [line.split("(")[0].split()[-1] for text in models.text for line in text.splitlines() if line.startswith("func tryT")]
    models.text.append("do {\n    var options = StoreCoordinator.Options()\n    options.store.storage = .memory\n"
                       '    let device = try StoreCoordinator(path: "", options: options)')
    models.text += [f"    try {call}(device)" for call in calls]
    models.text.append('} catch { check(false, "\\(error)") }')
    models.text.append(f'print("{count} models, \\(failures) failures")\nexit(failures == 0 ? 0 : 1)\n')
    kept.write_text("\n".join(models.text))
    refused.write_text("import Foundation\nimport LLVSModel\n\n" + "\n".join(models.refused() for _ in range(count // 5)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        print(__doc__)
        sys.exit(2)
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
