"""Stores, folders and snapshots of earlier versions have the same contents as then (Tests/Vectors/stores)."""

from __future__ import annotations

import json
import sys
import tarfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, refusals

import llvs

STORES = ROOT / "Tests" / "Vectors" / "stores"
sys.path.insert(0, str(STORES))
import expected as expectations  # noqa: E402
from generate import describe  # noqa: E402

VERSIONS = sorted(folder.name for folder in STORES.iterdir() if (folder / expectations.NAME).is_file())


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """Returns what a version wrote, unpacked, and its expected contents."""
    with tarfile.open(STORES / request.param / "stores.tar.xz") as archive:
        archive.extractall(tmp_path)
    return tmp_path, expectations.read(STORES / request.param) | {"name": request.param}


def same(store: llvs.Store, expected: dict[str, Any]) -> None:
    """The store has the expected contents, without damage."""
    shown = json.loads(json.dumps(describe(store)))
    assert shown["heads"] == expected["heads"]
    by_id = {version["id"]: version for version in shown["versions"]}
    assert set(by_id) == {version["id"] for version in expected["versions"]}
    for version in expected["versions"]:
        assert by_id[version["id"]] == version
    report = store.verify()
    assert not report.damages and report.pending == 0


@pytest.mark.parametrize("name", ["file", "sqlite", "compacted", "coordinator"])
def test_stores(old: tuple[Path, dict[str, Any]], name: str) -> None:
    """Each storage: the contents are the same, and the store can be used further."""
    folder, expected = old
    options = {"storage": "sqlite"} if name == "sqlite" else {}
    with llvs.Store(folder / name, **options) as store:
        same(store, expected["stores"][name])
        added = store.make_version(store.most_recent_head, update={"note/1": b"by a later version"})
    with llvs.Store(folder / name, **options) as store:
        value = store.value("note/1", at=added)
        assert value is not None and value.data == b"by a later version"


def test_folder(old: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """An exchange folder."""
    folder, expected = old
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, (folder / "folder").as_uri()) as exchange:
        assert not exchange.retrieve().problems
        same(store, expected["stores"]["file"])
        # The form of the oldest version files stopped other implementations: a device that has the versions rewrites them.
        is_old_form = expected["name"] == "0.1"
        assert bool(refusals(folder / "folder")) == is_old_form
        assert len(exchange.send().sent) == (len(list(store.history())) if is_old_form else 0) and not refusals(folder / "folder")
        assert not exchange.send().sent
    with llvs.Store(folder / "file") as store, llvs.Exchange(store, (folder / "folder").as_uri()) as exchange:
        assert not exchange.verify().problems


def test_snapshot(old: tuple[Path, dict[str, Any]]) -> None:
    """A snapshot."""
    folder, expected = old
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, (folder / "snapshot").as_uri()) as exchange:
        exchange.restore_snapshot()
        same(store, expected["stores"]["sqlite"])


def test_coordinator(old: tuple[Path, dict[str, Any]]) -> None:
    """A coordinator is where it was."""
    folder, expected = old
    with llvs.Coordinator(folder / "coordinator") as notes:
        assert notes.current_version.id == expected["current"]
        assert dict(notes.at()) == {id: b64decode(data) for id, data in expected["current_values"].items()}
