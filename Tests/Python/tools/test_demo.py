"""The example store: it is the same wherever it is made, and contains everything that the tools can show."""

from __future__ import annotations

from pathlib import Path

import llvs
from llvs.tools import demo, values

from .conftest import Run

#: The id of the current version, which commits to all that is behind it. Who changes the demo store changes it, here and in the documents.
CURRENT = "A7AEA47B-247E-8C59-85EE-6C4868AD14CA"


def test_it_is_the_same_each_time(llvs_run: Run, tmp_path: Path) -> None:
    assert llvs_run("demo-store", "one").out == "made a store with 411 versions at one\n"
    assert "already: nothing was changed" in llvs_run("demo-store", "one", code=3).err
    llvs_run("demo-store", "two.db", "--storage", "sqlite")
    ids = [found["id"] for found in llvs_run("-s", "one", "log", "--json").json_lines]
    assert ids == [found["id"] for found in llvs_run("-s", "two.db", "log", "--json").json_lines]
    assert llvs_run("-s", "one", "show", "--json").json["id"] == CURRENT


def test_what_is_in_it(tmp_path: Path) -> None:
    demo.make_demo_store(tmp_path / "demo")
    with llvs.Coordinator(tmp_path / "demo", read_only=True) as coordinator:
        store = coordinator.store
        versions = list(store.history())
        assert {version.metadata.get("device") for version in versions} >= set(demo.DEVICES)
        assert 29 * demo.DAY < versions[0].timestamp - versions[-1].timestamp < 31 * demo.DAY
        merges = [version for version in versions if len(version.predecessors) == 2]
        assert len(merges) > 20 and any(store.explain(merge).records for merge in merges)
        assert list(store.branches()) == ["poster"] and {version.branch for version in versions} == {None, "poster", "card"}
        first, second = [head for head in store.heads() if head.branch is None]
        kinds = {record.kind for record in store.conflicts(first, second).records}
        assert kinds >= {llvs.merge.ConflictKind.PICK, llvs.merge.ConflictKind.OVERLAP}
        pictures = list(store.at(first).prefix("picture/").values())
        assert len(pictures) == 6 and {values.kind_of(picture).words for picture in pictures} == {"PNG image, 64 x 48"}
        assert not store.verify().damages
