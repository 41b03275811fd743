"""Ids that are computed from the contents of versions: Tests/Vectors/content-ids.json, and the ids that the library makes."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import llvs

VECTORS = ROOT / "Tests" / "Vectors"
sys.path.insert(0, str(VECTORS))
import content_ids  # noqa: E402

CASES = json.loads((VECTORS / "content-ids.json").read_text())["versions"]
EPOCH = 978_307_200.0


def described(store: llvs.Store, id: str) -> dict[str, Any]:
    """A version in the form that the program beside the vectors reads."""
    version = store.version(id)
    assert version is not None
    changes = []
    for change in store.changes(id):
        found: dict[str, Any] = {"kind": {"preserve_removal": "preserveRemoval"}.get(change.kind.value, change.kind.value), "id": change.id}
        if found["kind"] in ("insert", "update"):
            value = store.value(change.id, at=id)
            assert value is not None
            found["data"] = b64encode(value.data).decode()
        elif found["kind"] == "preserve":
            assert change.reference is not None
            found["stored"] = change.reference.stored_version
        changes.append(found)
    return {
        "predecessors": list(version.predecessors),
        "metadata": {key: b64encode(value).decode() for key, value in version.raw_metadata.items()}, "changes": changes,
    }


def candidates(version: dict[str, Any], timestamp: float) -> set[str]:
    """The ids for all timestamps since 2001 that may correspond to one since 1970."""
    import math

    found, at = set(), timestamp - EPOCH
    low = high = at
    for _ in range(8):
        found |= {content_ids.content_id(version | {"timestamp": number.hex()}) for number in (low, high)}
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return found


def test_the_file_is_what_the_program_computes() -> None:
    """The file and the program are consistent."""
    subprocess.run([sys.executable, str(VECTORS / "content_ids.py"), "--check"], check=True)


def file_of(case: dict[str, Any], id: str) -> tuple[bytes, bytes]:
    """The two files of a version in an exchange folder."""
    timestamp = float.fromhex(case["timestamp"])
    predecessors = dict(zip(("idOfFirst", "idOfSecond"), case["predecessors"]))
    metadata: list[Any] = []
    for key, value in case["metadata"].items():
        metadata += [key, {"data": value}]
    changes: list[dict[str, Any]] = []
    for change in case["changes"]:
        if change["kind"] in ("insert", "update"):
            changes.append({change["kind"]: {"id": change["id"], "data": content_ids.b64(content_ids.value_of(change))}})
        elif change["kind"] == "preserve":
            changes.append({"preserve": {"valueId": change["id"], "storedVersionId": change["stored"]}})
        else:
            changes.append({change["kind"]: change["id"]})
    version = {"identifier": id, "predecessors": predecessors, "timestamp": timestamp, "metadata": metadata}
    if not predecessors:
        del version["predecessors"]
    return json.dumps({"version": version}).encode(), json.dumps(changes).encode()


def put(folder: Path, id: str, files: tuple[bytes, bytes]) -> None:
    """Publishes a version."""
    for name, data in zip(("versions", "changes"), files):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / id).write_bytes(data)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vector(case: dict[str, Any], tmp_path: Path) -> None:
    """A version with the id is accepted. One that differs in any respect is refused."""
    folder = tmp_path / "folder"
    # The predecessors. Their contents do not matter, since their ids are of other kinds.
    before = float.fromhex(case["timestamp"]) - 1e-6 if len(case["predecessors"]) == 2 else -1.0
    named = set(case["predecessors"]) | {change["stored"] for change in case["changes"] if "stored" in change}
    for i, id in enumerate(sorted(named)):
        stored = [{"kind": "insert", "id": change["id"], "data": ""} for change in case["changes"] if change.get("stored") == id]
        put(folder, id, file_of({"predecessors": [], "timestamp": (before - i).hex(), "metadata": {}, "changes": stored}, id))
    outside = [id for id in named if id not in case["predecessors"]]
    if outside:
        # A preserved value must be in the ancestry.
        first = case["predecessors"][0]
        stored = [{"kind": "insert", "id": change["id"], "data": ""} for change in case["changes"] if change.get("stored") == first]
        put(folder, first, file_of({"predecessors": outside[:1], "timestamp": before.hex(), "metadata": {}, "changes": stored}, first))
    put(folder, case["id"], file_of(case, case["id"]))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
        result = exchange.retrieve()
        # (Some are from the future.)
        assert {problem.code for problem in result.problems} <= {llvs.ErrorCode.CLOCK_AHEAD}, result.problems
        assert store.version(case["id"]) is not None
        assert store.verify().unvouched == len(named)
    wrong = [case | {"timestamp": (float.fromhex(case["timestamp"]) / 2 + 1).hex()}, case | {"metadata": case["metadata"] | {"more": ""}}]
    wrong.append(case | {"changes": [*case["changes"], {"kind": "insert", "id": "\U0001f601more", "data": ""}]})
    for other in wrong:
        put(folder, case["id"], file_of(other, case["id"]))
        with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder.as_uri()) as exchange:
            assert [(p.name, p.code) for p in exchange.retrieve().problems] == [(case["id"], llvs.ErrorCode.CONTENT_MISMATCH)]


@pytest.mark.parametrize("storage", ["file", "sqlite", "memory"])
def test_what_is_made(storage: str, tmp_path: Path) -> None:
    """Saves, loads, merges, folds and reverts have the ids of the document, computed without the library."""
    chance = random.Random(5)
    path = None if storage == "memory" else tmp_path / "store"
    with llvs.Store(path, storage=storage) as store:
        known = [store.make_version(insert={f"id/{i}": bytes([i]) for i in range(200)}, metadata={"n": 1})]
        for i in range(20):
            size = chance.choice([0, 1, 63, 64, 300, 65_536, 65_537, 1_200_000])
            known.append(store.make_version(chance.choice(known), update={f"id/{i}": bytes(size), "x": b"%d" % i}, remove=[f"id/{i + 1}"]))
        store.merge(known[-1], known[-2])
        store.merge_heads(known[-1])
        store.revert(known[1], at=store.most_recent_head)
        for version in store.history():
            assert version.id in candidates(described(store, version.id), version.timestamp), version.id
        report = store.verify()
        assert report.vouched == len(list(store.history())) and report.unvouched == 0


def test_saves_are_never_one_by_accident() -> None:
    """The same content is saved on the same version, as fast as possible and with a given timestamp: each save is a version of its own."""
    with llvs.Store(storage="memory") as store:
        root = store.make_version(insert={"x": b"1"})
        made = [store.make_version(root, update={"x": b"2"}) for _ in range(200)]
        assert len(set(made)) == 200
        version = store.version(made[0])
        assert version is not None
        at = version.timestamp + 10
        assert store.make_version(root, update={"x": b"2"}, timestamp=at) == store.make_version(root, update={"x": b"2"}, timestamp=at)


@pytest.mark.parametrize("id", ["0D857AF1-E80E-8964-ADA3-9A11E10F965E", "0d857af1-e80e-8964-ada3-9a11e10f965e"])
def test_callers_cannot_take_such_ids(id: str) -> None:
    """Ids in the form of content ids are refused, also in small letters."""
    with llvs.Store(storage="memory") as store, pytest.raises(llvs.errors.InvalidArgumentError) as caught:
        store.make_version(insert={"x": b"1"}, id=id)
    assert caught.value.code == llvs.ErrorCode.INVALID_VERSION_ID


def test_the_page_shows_the_vectors() -> None:
    """The ids that docs/format.md computes by hand."""
    page = (ROOT / "docs" / "format.md").read_text()
    for marker, index in (("content id", 0), ("content id of a change", 4)):
        lines = page.split(f"<!-- vector: {marker} -->", 1)[1].split("\n\n**", 1)[0].split("\n\nAnother", 1)[0].split()
        data, id = bytes.fromhex("".join(lines[:-1])), lines[-1]
        assert id == CASES[index]["id"] and content_ids.uuid8(hashlib.sha256(data).digest()) == id
