#!/usr/bin/env python3
"""Checks that everything which documents and messages tell users to install with pip can be installed.

    scripts/check_pip_names.py              prints each place that names llvs as if it were on PyPI, or an extra that does not exist
    scripts/check_pip_names.py --self-test  checks that planted places are found

No release is on PyPI yet, so "pip install llvs" and "pip install llvs[tools]" would install whatever a stranger registers there.
Texts name a checkout (./bindings/python) or a wheel file instead. docs/install.md lists all extras, each with its packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"", ".md", ".py", ".c", ".h", ".hpp", ".cpp", ".swift", ".sh", ".toml", ".js", ".html", ".yml", ".yaml"}
#: The rest of a line after `pip install`, up to the end of the command.
COMMAND = re.compile(r"\b(?:pip3?|pipx|uv pip|uv tool) (?:install|download|wheel) ([^`)\n]*)")
#: The name alone: not a path, a wheel file or another package.
NAME = re.compile(r"(?<![\w./-])llvs(?![\w./-])")
EXTRAS = re.compile(r"(?:bindings/python|\.whl)\[([^]]*)\]")


def extras() -> dict[str, list[str]]:
    """Returns the extras of the package, each with its packages. (Python 3.10 cannot read TOML.)"""
    text = (ROOT / "bindings/python/pyproject.toml").read_text()
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    lines = re.findall(r"^(\w+) = \[(.*)\]$", section, re.MULTILINE)
    return {name: re.findall(r'"([\w-]+)', packages) for name, packages in lines}


def wrong(text: str, known: set[str]) -> list[tuple[int, str]]:
    """Returns the lines of a text that name what cannot be installed, each with its number and the error."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if any(NAME.search(command.partition("#")[0]) for command in COMMAND.findall(line)):
            found.append((number, 'llvs is not on PyPI: name "./bindings/python" or a wheel file'))
        for names in EXTRAS.findall(line):
            found += [(number, f"the package has no extra {name}") for name in re.split(r"\s*,\s*", names) if name not in known]
    return found


def self_test() -> int:
    planted = (
        'pip install "llvs[tools]"',
        "`pip install llvs[pydantic]`",
        "    pip install llvs",
        "venv/bin/pip install -U 'llvs'",
        "python -m pip install --upgrade llvs pytest",
        "pipx install llvs",
        'pip install "./bindings/python[tool]"',
        "pip install 'dist/llvs-0.1.0-py3-none-any.whl[tools,mypy]'",
    )
    right = (
        'pip install "./bindings/python[tools,pydantic]"',
        "pip install dist/llvs-*.whl         # the wheel of llvs",
        "pip wheel ./bindings/python --no-deps -w dist",
        'pip install "llvs-0.1.0-py3-none-manylinux_2_35_x86_64.whl[tools]"',
        "~/llvs/venv/bin/pip install pyinstaller",
    )
    known = set(extras())
    missed, refused = [line for line in planted if not wrong(line, known)], [line for line in right if wrong(line, known)]
    for line in missed:
        print(f"not found: {line}")
    for line in refused:
        print(f"found, and right: {line}")
    return 1 if missed or refused or not {"tools", "pydantic"} <= known else 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    known, count, problems = extras(), 0, []
    for name in sorted(filter(None, listed.decode().split("\0"))):
        path = ROOT / name
        if path.suffix not in KINDS or path == Path(__file__).resolve() or not path.is_file():
            continue
        text = path.read_bytes().decode(errors="replace")
        if "pip" not in text and "bindings/python[" not in text:
            continue
        count += len(COMMAND.findall(text))
        problems += [f"{name}:{number}: {problem}" for number, problem in wrong(text, known)]
    page = (ROOT / "docs/install.md").read_text()
    for extra, packages in known.items():
        row = next((line for line in page.splitlines() if line.startswith(f"| `{extra}` |")), "")
        missing = [package for package in packages if package not in row]
        if not row or missing:
            problems.append(f"docs/install.md: the table of extras does not say of {extra} that it brings {', '.join(missing or packages)}")
    for problem in problems:
        print(problem)
    print(f"{count} commands of pip, {len(known)} extras, {len(problems)} wrong")
    return 1 if problems or not count else 0


sys.exit(main())
