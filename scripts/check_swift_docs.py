#!/usr/bin/env python3
"""Checks that public declarations of Swift modules are documented, have async forms, and that the articles show code of the example.

    scripts/check_swift_docs.py GRAPH...      symbol graphs (swift-symbolgraph-extract) of one module each
    scripts/check_swift_docs.py --topics CATALOGUE GRAPH...    the page of the module in the catalogue names each public type, function and
                                              macro at the outermost level
    scripts/check_swift_docs.py --async GRAPH...    each function that a program can cancel by a control has an async form
    scripts/check_swift_docs.py --articles    the code in Sources/LLVS/LLVS.docc is in examples/swift, line for line
    scripts/check_swift_docs.py --self-test   checks that an undocumented declaration is found, and a line that the example lacks

These need no documentation: declarations that the compiler made; those that fulfil a requirement of a protocol, which has the
documentation; defaults for such a requirement; and overrides.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Iterable

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "Sources" / "LLVS" / "LLVS.docc"
EXAMPLES = ROOT / "examples" / "swift"


def without_words(graph: dict[str, Any]) -> list[str]:
    """Returns public declarations without documentation, as file:line: name."""
    inherited = {
        relation["source"]
        for relation in graph["relationships"]
        if "sourceOrigin" in relation or relation["kind"] in ("defaultImplementationOf", "overrides")
    }
    found = []
    for symbol in graph["symbols"]:
        name = symbol["identifier"]["precise"]
        if "::SYNTHESIZED::" in name or name in inherited or symbol["kind"]["identifier"] == "swift.extension":
            continue
        lines = symbol.get("docComment", {}).get("lines", [])
        if any(line["text"].strip() for line in lines):
            continue
        place = symbol.get("location", {})
        file = place.get("uri", "").removeprefix("file://").removeprefix(f"{ROOT}/")
        line = place.get("position", {}).get("line", -1) + 1
        found.append(f"{file}:{line}: {'.'.join(symbol['pathComponents'])}")
    return sorted(found)


def blocks(text: str) -> list[list[str]]:
    """Returns the lines of each block of Swift in an article."""
    return [block.splitlines() for block in re.findall(r"^```swift\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def stands_in(block: list[str], sources: Iterable[list[str]]) -> bool:
    return any(source[i : i + len(block)] == block for source in sources for i in range(len(source)))


def articles() -> int:
    sources = [path.read_text().splitlines() for path in sorted(EXAMPLES.rglob("*.swift"))]
    count, failed = 0, 0
    for path in sorted(CATALOGUE.glob("*.md")):
        for block in blocks(path.read_text()):
            count += 1
            if not stands_in(block, sources):
                failed += 1
                print(f"{path.relative_to(ROOT)}: this stands in no example:\n    " + "\n    ".join(block))
    print(f"{count} blocks of code, {failed} of them in no example")
    return 1 if failed or count == 0 else 0


def without_topic(graph: dict[str, Any], page: str) -> list[str]:
    """Returns the outermost public declarations of a module that its page names in no topic."""
    named = set(re.findall(r"^- ``([^`]+)``$", page, re.MULTILINE))
    found = []
    for symbol in graph["symbols"]:
        path, kind = symbol["pathComponents"], symbol["kind"]["identifier"]
        if len(path) > 1 or kind in ("swift.extension", "swift.func.op") or "::SYNTHESIZED::" in symbol["identifier"]["precise"]:
            continue
        if path[0] not in named and path[0].split("(")[0] not in named:
            found.append(path[0])
    return sorted(found)


def topics(catalogue: str, paths: list[str]) -> int:
    page = Path(catalogue) / f"{Path(catalogue).stem}.md"
    missing = [name for path in paths for name in without_topic(json.loads(Path(path).read_text()), page.read_text())]
    for name in missing:
        print(f"in no topic of {page.name}: {name}")
    return 1 if missing or not paths else 0


#: Functions that take a control and need no async form: what transports do for an exchange, and what is answered from memory, or read page
#: by page by `Store.versions(matching:)`.
SYNCHRONOUS = re.compile(
    r".*Transport\.|PacedControl\.|OperationControl\.|onOwnThread|HistoryWalk\.next|"
    r"Store\.(add|allVersionIDs|heads|isAncestor|mergeBases|successors|walk)$"
)


def without_async(symbols: list[dict[str, Any]]) -> list[str]:
    """Returns the functions with a control of which there is no async function of that name and type."""
    blocking, waiting = set(), set()
    for symbol in symbols:
        path = symbol["pathComponents"]
        name = ".".join([*path[:-1], path[-1].split("(")[0]])
        words = {fragment["spelling"].strip() for fragment in symbol.get("declarationFragments", [])}
        if any("async" in word.split() for word in words):
            waiting.add(name)
        elif "OperationControl" in words and "func" in words and not SYNCHRONOUS.match(name):
            blocking.add(name)
    return sorted(blocking - waiting)


def async_forms(paths: list[str]) -> int:
    symbols = [symbol for path in paths for symbol in json.loads(Path(path).read_text())["symbols"]]
    missing = without_async(symbols)
    for name in missing:
        print(f"without an async form: {name}")
    return 1 if missing or not symbols else 0


def graphs(paths: list[str]) -> int:
    count, failed = 0, 0
    for path in paths:
        graph = json.loads(Path(path).read_text())
        count += len(graph["symbols"])
        for line in without_words(graph):
            failed += 1
            print(f"without words: {line}")
    print(f"{count} public symbols, {failed} of them without words")
    return 1 if failed or count == 0 else 0


def self_test() -> int:
    def symbol(name: str, *words: str, **more: Any) -> dict[str, Any]:
        comment = {"docComment": {"lines": [{"text": line} for line in words]}} if words else {}
        return {"identifier": {"precise": name}, "kind": {"identifier": "swift.method"}, "pathComponents": ["Type", name]} | comment | more

    place = {"uri": f"file://{ROOT}/Sources/LLVS/x.swift", "position": {"line": 6}}
    graph = {
        "symbols": [
            symbol("told", "What it does."), symbol("planted", location=place), symbol("empty", "", " "), symbol("witness"),
            symbol("default"), symbol("s:x::SYNTHESIZED::y"),
        ],
        "relationships": [
            {"kind": "memberOf", "source": "witness", "target": "Type", "sourceOrigin": {"identifier": "s", "displayName": "P"}},
            {"kind": "defaultImplementationOf", "source": "default", "target": "s"},
        ],
    }
    assert without_words(graph) == [":0: Type.empty", "Sources/LLVS/x.swift:7: Type.planted"], without_words(graph)
    outer = {"symbols": [symbol("told") | {"pathComponents": [name]} for name in ("Named", "call(_:)", "Planted")], "relationships": []}
    assert without_topic(outer, "- ``Named``\n- ``call(_:)``\nPlanted") == ["Planted"]
    def function(name: str, *spellings: str) -> dict[str, Any]:
        return {"pathComponents": name.split("."), "declarationFragments": [{"spelling": one} for one in ("func", *spellings)]}

    forms = [
        function("Store.verify(control:)", "OperationControl"), function("Store.verify(progress:)", " ", " async throws -> "),
        function("Store.size(_:control:)", "OperationControl"), function("Other.size(_:)", "async"), function("Store.close()"),
        function("Store.heads(limit:control:)", "OperationControl"), function("FolderTransport.list(_:)", "OperationControl"),
    ]
    assert without_async(forms) == ["Store.size"], without_async(forms)
    assert blocks("a\n```swift\nlet x = 1\n```\n```c\nint x;\n```\n") == [["let x = 1"]]
    assert stands_in(["b", "c"], [["a", "b", "c"]]) and not stands_in(["b", "d"], [["a", "b", "c"], ["d"]])
    print("what is planted is found")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] == ["--articles"]:
        return articles()
    if len(sys.argv) > 2 and sys.argv[1] == "--async":
        return async_forms(sys.argv[2:])
    if len(sys.argv) > 3 and sys.argv[1] == "--topics":
        return topics(sys.argv[2], sys.argv[3:])
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    return graphs(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
