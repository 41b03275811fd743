"""Defects outside the code: documents, examples, mirrored files, rules of the sources, pages and tools."""

from __future__ import annotations

from defect import check, defect, document, example, module, python

CODES, STORE = "include/llvs/common.h", "include/llvs/store.h"

DEFECTS = [
    defect(
        "example-program-broken", "broken example", "An example program in Python reads a value that it never saved.",
        "examples/python/notes.py",
        'print("then:", store.at(v1)["note/1"].decode())', 'print("then:", store.at(v1)["note/3"].decode())',
        example("examples/python/notes.py")),
    defect(
        "example-of-readme-broken", "broken example", "The first example in Python of the README reads another note than it saves.",
        "README.md",
        '    print(notes["note/1"].decode())\n', '    print(notes["note/2"].decode())\n',
        document("README.md", 1)),
    defect(
        "link-leads-nowhere", "stale document", "A link of the README leads to a page that is not there.",
        "README.md",
        "**C** ([guide](docs/c.md)):", "**C** ([guide](docs/guide-to-c.md)):",
        check("scripts/lib/check_links.py", "README.md")),
    defect(
        "figure-is-stale", "stale document", "A page gives another limit than the header.",
        "docs/choosing.md",
        "<!-- figure: limit.value_id -->4,096 bytes of UTF-8", "<!-- figure: limit.value_id -->2,048 bytes of UTF-8",
        check("scripts/check_figures.py")),
    defect(
        "page-shows-another-id", "stale document", "The page about the format shows an id that nobody computes.",
        "docs/format.md",
        "0D857AF1-E80E-8964-ADA3-9A11E10F965E", "0D857AF1-E80E-8964-ADA3-9A11E10F965F",
        python("Tests/Python/test_content_ids.py::test_the_page_shows_the_vectors")),
    defect(
        "vector-changed", "stale file", "A vector for ids was edited by hand.",
        "Tests/Vectors/content-ids.json",
        '-E77186E2B1A5"\n  },\n  {\n   "name": "the same, an update', '-E77186E2B1A6"\n  },\n  {\n   "name": "the same, an update',
        python("Tests/Python/test_content_ids.py::test_the_file_is_what_the_program_computes")),
    defect(
        "constant-out-of-step", "stale file", "A limit in the header is not the one that the Python package has.",
        CODES,
        "#define LLVS_VALUE_ID_SIZE_MAX 4096", "#define LLVS_VALUE_ID_SIZE_MAX 2048",
        check("scripts/generate_bindings", "--check")),
    defect(
        "number-of-error-changed", "wrong error", "An error has another number than programs were compiled with.",
        CODES,
        "LLVS_ERROR_IO = -27", "LLVS_ERROR_IO = -127",
        check("scripts/abi", "check")),
    defect(
        "export-missing", "stale file", "A function that the header declares is not exported.",
        "include/llvs.symbols",
        "llvs_store_value LLVS_0.1\n", "",
        check("scripts/generate_bindings", "--check")),
    defect(
        "function-undocumented", "stale document", "A function in the header has no documentation.",
        STORE,
        "/** Releases the cursor. Since 0.1. */\nLLVS_API void llvs_history_cursor_free(", "LLVS_API void llvs_history_cursor_free(",
        check("scripts/reference", "--check")),
    defect(
        "shared-state-unexplained", "race", "A class that threads share does not say what guards it.",
        "Sources/LLVSCore/Store/Making/Commits.swift",
        "    // Sendable: `lock` guards `isLeft`, which only ever becomes true.\n", "",
        check("scripts/check_locks.py")),
    defect(
        "modules-import-in-a-circle", "broken layer", "Two modules of the Python package import each other.",
        "bindings/python/src/llvs/_abi/memory.py",
        "from __future__ import annotations\n", "from __future__ import annotations\n\nfrom ..store import _values\n",
        check("scripts/check_imports.py")),
    defect(
        "type-not-declared", "wrong type", "A method of the package does not say that it may return None.",
        "bindings/python/src/llvs/store/_values.py",
        "def value(self, id: str, *, at: AnyVersion) -> Optional[Value]:", "def value(self, id: str, *, at: AnyVersion) -> Value:",
        module("mypy", "--strict", "bindings/python/src/llvs")),
    defect(
        "other-origin-answered", "hostile input accepted", "The inspector answers requests of other pages in the browser.",
        "bindings/python/src/llvs/inspector/guard.py",
        'if any(origin != f"http://{host[0].lower()}" for origin in origins):', "if False:",
        python("Tests/Inspector/test_guard.py::test_another_origin_gets_nothing")),
    defect(
        "token-not-needed", "hostile input accepted", "LoCo answers a program that does not have the token.",
        "bindings/python/src/llvs/inspector/guard.py",
        'return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())', "return True",
        python("Tests/LoCo/test_server.py::test_who_is_answered")),
    defect(
        "terminal-controlled-by-values", "hostile input accepted", "A value can send control sequences to the terminal that shows it.",
        "bindings/python/src/llvs/tools/escape.py",
        "    return _in_lines.sub(_escaped, text)", "    return text",
        python("Tests/Python/tools/test_hostile_surroundings.py")),
]
