"""The check of every folder that a test writes (conftest.py) refuses files that another implementation cannot read."""

from __future__ import annotations

import json
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import ROOT, refusals

import llvs

OTHERS = ROOT / "Tests" / "Vectors" / "interchange" / "folder"


def test_what_others_wrote_is_read() -> None:
    assert not refusals(OTHERS)


def metadata(key: str, data: bytes) -> Callable[[dict[str, Any], list[Any]], None]:
    """Plants a metadata entry."""

    def plant(document: dict[str, Any], changes: list[Any]) -> None:
        document["version"]["metadata"] = [key, {"data": b64encode(data).decode()}]

    return plant


@pytest.mark.parametrize(
    "plant",
    [
        lambda document, changes: document.update(digest="a5"),
        lambda document, changes: document["version"].update(timestamp=True),
        lambda document, changes: document["version"].pop("metadata"),
        lambda document, changes: document["version"].pop("predecessors", None) and changes.append({"preserveRemoval": "x"}),
        lambda document, changes: changes.append({"insert": {"id": "x", "data": ""}, "remove": "y"}),
        lambda document, changes: changes.append({"explode": "x"}),
        metadata("__llvs_branch", b"draft"),
        metadata("__llvs_branch", b'["draft"]'),
    ],
    ids=[
        "a member beside",
        "a timestamp",
        "no metadata",
        "a preserve without a merge",
        "two kinds",
        "no kind",
        "a bare branch",
        "a branch that is a list",
    ],
)
def test_a_planted_violation_is_refused(
    tmp_path_factory: pytest.TempPathFactory, plant: Callable[[dict[str, Any], list[Any]], None]
) -> None:
    folder = tmp_path_factory.mktemp("planted") / "folder"
    shutil.copytree(OTHERS, folder)
    head = json.loads((OTHERS.parent / "expected.json").read_text())["mostRecentHead"]
    version, changes = folder / "versions" / head, folder / "changes" / head
    document, list_of_changes = json.loads(version.read_text()), json.loads(changes.read_text())
    plant(document, list_of_changes)
    version.write_text(json.dumps(document))
    changes.write_text(json.dumps(list_of_changes))
    assert len(refusals(folder)) == 1


def test_what_is_refused_here_when_made_is_carried_when_it_comes(tmp_path_factory: pytest.TempPathFactory, memory: llvs.Store) -> None:
    """A branch that is no JSON string, and an empty key: versions with these are accepted, together with their descendants."""
    folder = tmp_path_factory.mktemp("carried") / "folder"
    for name in ("versions", "changes"):
        (folder / name).mkdir(parents=True)
    for id, before, pairs in [("odd", None, {"__llvs_branch": b"draft", "": b"1"}), ("next", "odd", {})]:
        flat = [part for key, value in pairs.items() for part in (key, {"data": b64encode(value).decode()})]
        document = {"identifier": id, "timestamp": 1.0, "metadata": flat, **({"predecessors": {"idOfFirst": before}} if before else {})}
        (folder / "versions" / id).write_text(json.dumps({"version": document}))
        (folder / "changes" / id).write_text("[]")
    with llvs.Exchange(memory, folder.as_uri()) as exchange:
        result = exchange.retrieve()
    assert result.retrieved == ("odd", "next") and not result.problems
    odd = memory.version("odd")
    assert odd is not None and odd.branch is None and odd.metadata == {"__llvs_branch": b"draft", "": 1}
    for made in ({"__llvs_branch": b"draft"}, {"__llvs_branch": ["draft"]}, {"": 1}):
        with pytest.raises(llvs.errors.InvalidMetadataError):
            memory.make_version("next", metadata=made)
