"""docs/command.md: the output of its examples, and that it lists all commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llvs.tools import command

from . import documents

TEXT = documents.DOCUMENT.read_text(encoding="utf-8")


def test_the_examples_print_what_is_said(tmp_path: Path) -> None:
    folder = documents.Folder(tmp_path)
    count = 0
    for block in documents.blocks(TEXT):
        for example in documents.examples(block):
            printed = folder.run(example.command)
            assert documents.is_as_said(printed, example.printed), f"$ {example.command}\nprints\n{printed}\nand not\n{example.printed}"
            count += 1
    assert count > 30


def test_an_example_that_prints_something_else_is_noticed() -> None:
    assert documents.is_as_said("a 12 b\n", "a ... b\n") and not documents.is_as_said("a 12 c\n", "a ... b\n")
    found = list(documents.examples("$ one\n1\n$ two \\\n  more\n"))
    assert found == [("one", "1\n"), ("two \\\n  more", "")]


@pytest.mark.parametrize("name", command.COMMANDS)
def test_every_command_is_in_the_document(name: str) -> None:
    assert re.search(rf"`llvs {name}\b", TEXT), f"docs/command.md does not tell of llvs {name}"
