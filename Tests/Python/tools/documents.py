"""Runs the examples of docs/command.md and compares their output.

    python Tests/Python/tools/documents.py --write      writes the present output into the document

A block marked `console` has commands, each after "$ ", and their output, both streams. All blocks run one after another in one folder.
"..." in the output stands for any text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "command.md"
_block = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: The environment that the document describes.
SURROUNDINGS = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "LLVS_DEVICE": "docs", "PAGER": "cat", "COLUMNS": "100"}


class Example(NamedTuple):
    """A command, and its output in the document."""

    command: str
    printed: str


def examples(block: str) -> Iterator[Example]:
    """Yields the commands of a block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        while command.endswith("\\"):
            more, _, printed = printed.partition("\n")
            command += f"\n{more}"
        yield Example(command, printed)


def blocks(text: str) -> list[str]:
    """Returns the blocks of a document."""
    return _block.findall(text)


def is_as_said(printed: str, said: str) -> bool:
    """Returns whether the output is that of the document, in which "..." stands for any text."""
    pattern = ".*?".join(map(re.escape, said.split("...")))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


class Folder:
    """A folder in which the examples run, with the command on the PATH."""

    def __init__(self, directory: Path) -> None:
        self.work, programs = directory / "work", directory / "bin"
        self.work.mkdir()
        programs.mkdir()
        program = programs / "llvs"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m llvs.tools "$@"\n')
        program.chmod(0o755)
        own = {"XDG_STATE_HOME": str(directory / "state of the user"), "PATH": f"{programs}:{os.environ['PATH']}"}
        self._environment = {**os.environ, **SURROUNDINGS, **own}
        for name in ("LLVS_STORE", "NO_COLOR", "LLVS_PASSWORD", "LLVS_TOKEN"):
            self._environment.pop(name, None)

    def run(self, command: str) -> str:
        """Returns the output of a command."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.work, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=300, check=False,
        )
        return done.stdout.decode()


def main() -> None:
    """Rewrites the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        folder = Folder(Path(directory))

        def again(match: re.Match[str]) -> str:
            made = ""
            for example in examples(match[1]):
                printed = folder.run(example.command)
                made += f"$ {example.command}\n" + (example.printed if is_as_said(printed, example.printed) else printed)
            return f"```console\n{made}```"

        DOCUMENT.write_text(_block.sub(again, text), encoding="utf-8")


if __name__ == "__main__" and "--write" in sys.argv:
    main()
