#!/usr/bin/env python3
"""Checks that modules of the Python package import each other in one direction only. Each circle of imports is reported with its modules.

    scripts/check_imports.py [PACKAGE]      the folder of a package; bindings/python/src/llvs by default
    scripts/check_imports.py --self-test    checks that a planted circle is found

Imports within functions and imports for type checkers count as well: a reader of one module needs the other one.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "bindings" / "python" / "src" / "llvs"


def imports(package: Path) -> dict[str, set[str]]:
    """Returns for each module of the package the modules that it imports."""
    paths = {".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path for path in package.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in paths.items():
        found[module] = set()
        folder = list(path.relative_to(package).parts[:-1])
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or node.level == 0:
                continue
            base = folder[: len(folder) - (node.level - 1)] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                # A module of the package `base`, or else a name that `base` has.
                name = next((name for name in (".".join([*base, alias.name]), ".".join(base)) if name in paths), module)
                if name != module:
                    found[module].add(name)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns the strongly connected components of more than one module (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            members = stack[stack.index(module):]
            del stack[-len(members):]
            if len(members) > 1:
                found.append(sorted(members))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def self_test() -> int:
    """Tests a circle of three modules, one through a package's folder, and one through the names that a package has."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder)
        (package / "a.py").write_text("from .b import x\n")
        (package / "b.py").write_text("def f():\n    from . import c\n")
        (package / "c.py").write_text("")
        assert circles(imports(package)) == []
        (package / "c.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import y\n")
        assert circles(imports(package)) == [["a", "b", "c"]]
        (package / "c.py").write_text("")
        (package / "d").mkdir()
        (package / "d" / "__init__.py").write_text("from .e import x as x\n")
        (package / "d" / "e.py").write_text("from . import f\n")
        (package / "d" / "f.py").write_text("")
        assert circles(imports(package)) == []
        (package / "d" / "f.py").write_text("from ..d import x\n")
        assert circles(imports(package)) == [["d", "d.e", "d.f"]]
    print("a planted circle is found")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = circles(imports(Path(sys.argv[1]) if sys.argv[1:] else PACKAGE))
    for members in found:
        print("these modules import each other: " + ", ".join(members))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
