"""docs/sqlite.md: the output of its examples."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import llvs
import pytest

from conftest import ROOT

_spec = importlib.util.spec_from_file_location("documents", ROOT / "Tests" / "Python" / "tools" / "documents.py")
assert _spec is not None and _spec.loader is not None
documents = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(documents)


def test_the_examples_print_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTENSION", os.path.splitext(llvs.sqlite.extension_path())[0])
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "bindings" / "python" / "src"))
    folder = documents.Folder(tmp_path)
    count = 0
    for block in documents.blocks((ROOT / "docs" / "sqlite.md").read_text(encoding="utf-8")):
        for example in documents.examples(block):
            printed = folder.run(example.command)
            assert documents.is_as_said(printed, example.printed), f"$ {example.command}\nprints\n{printed}\nand not\n{example.printed}"
            count += 1
    assert count >= 8
