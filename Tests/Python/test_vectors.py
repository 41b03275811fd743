"""The vectors in Tests/Vectors, through the library; and the reference model makes the same ones."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import llvs
import pytest
from interchange import DictTransport, read_version
from reference import Change, Preserve, PreserveRemoval, Remove, Set, Version

FOLDER = Path(__file__).resolve().parents[1] / "Vectors"
VECTORS = [
    vector for name in ("merging", "random") for vector in json.loads((FOLDER / f"{name}.json").read_text())["vectors"]
]
ARBITERS: dict[str, Any] = {
    "most_recent_change": llvs.MostRecentChange(),
    "most_recent_branch": llvs.MostRecentBranch(),
    "ours": llvs.Ours(),
    "theirs": llvs.Theirs(),
}


def model_version(found: dict[str, Any]) -> Version:
    changes: dict[bytes, Change] = {}
    for change in found["changes"]:
        id, kind = bytes.fromhex(change["id"]), change["kind"]
        if kind in ("insert", "update"):
            changes[id] = Set(bytes.fromhex(change["data"]))
        elif kind == "preserve":
            changes[id] = Preserve(change["version"])
        else:
            changes[id] = Remove() if kind == "remove" else PreserveRemoval()
    (timestamp,) = struct.unpack(">d", bytes.fromhex(found["timestampBits"]))
    assert timestamp == found["timestamp"]
    metadata = {bytes.fromhex(entry["key"]): bytes.fromhex(entry["value"]) for entry in found["metadata"]}
    return Version(found["id"], tuple(found["predecessors"]), timestamp, changes, metadata)


def check_state(store: llvs.Store, version: str, values: list[dict[str, str]]) -> None:
    found = store.values([bytes.fromhex(value["id"]).decode() for value in values], at=version)
    assert [(value.data.hex(), value.stored_version) if value else None for value in found] == [
        (value["data"], value["version"]) for value in values
    ]
    assert [id.encode().hex() for id in store.at(version)] == [value["id"] for value in values]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any], memory: llvs.Store) -> None:
    transport = DictTransport()
    for version in vector["versions"]:
        inserted = [bytes.fromhex(change["id"]) for change in version["changes"] if change["kind"] == "insert"]
        transport.put(model_version(version), inserted)
    with llvs.Exchange(memory, transport) as exchange:
        result = exchange.retrieve()
        # (Some of the histories are from the future.)
        assert {problem.code for problem in result.problems} <= {llvs.ErrorCode.CLOCK_AHEAD}
        assert len(result.versions) == len(vector["versions"])
    assert [head.id for head in memory.heads()] == vector["heads"]
    for state in vector["states"]:
        check_state(memory, state["version"], state["values"])
    for pair in vector["bases"]:
        assert [base.id for base in memory.merge_bases(pair["a"], pair["b"])] == pair["bases"]
    for pair in vector["differences"]:
        found = [
            {
                "kind": change.kind.value,
                "id": change.id.encode().hex(),
                "version": change.reference.stored_version if change.reference else None,
            }
            for change in memory.diff(pair["from"], pair["to"])
        ]
        assert found == pair["changes"]
    for merge in vector["merges"]:
        check_merge(memory, merge)


def check_merge(store: llvs.Store, merge: dict[str, Any]) -> None:
    seen: list[Any] = []

    class Watching:
        """Passes to the built-in arbiter, and records the merge."""

        fallback = ARBITERS[merge["arbiter"]]

        def resolve(self, found: llvs.merge.Merge, store: llvs.Store) -> llvs.merge.Pass:
            seen.append(
                [
                    {
                        "id": id.encode().hex(),
                        "kind": fork.kind.value,
                        "side": fork.branch.value if fork.branch else None,
                        **{name: getattr(fork, name) and getattr(fork, name).stored_version for name in ("first", "second", "ancestor")},
                    }
                    for id, fork in found.forks.items()
                ]
            )
            assert [base.id for base in found.bases] == merge["bases"]
            return llvs.merge.PASS

    metadata = {bytes.fromhex(entry["key"]).decode(): bytes.fromhex(entry["value"]) for entry in merge["metadata"]}
    result = store.merge(merge["ours"], merge["theirs"], Watching(), metadata=metadata)
    assert seen == ([merge["forks"]] if merge["asksArbiter"] else [])
    expected = model_version(merge["result"])
    recorder = DictTransport()
    with llvs.Exchange(store, recorder) as exchange:
        exchange.send()
    assert result.id == expected.id
    version, labels = read_version(recorder.versions[result.id], recorder.changes[result.id])
    assert version == expected and version.changes == expected.changes and version.metadata == expected.metadata
    assert {id.hex(): label for id, label in labels.items()} == {change["id"]: change["kind"] for change in merge["result"]["changes"]}
    check_state(store, result.id, merge["state"])
    assert store.merge(merge["ours"], merge["theirs"], ARBITERS[merge["arbiter"]], metadata=metadata) == result


def test_the_vectors_are_what_the_model_makes() -> None:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, content in module.files().items():
        assert (FOLDER / name).read_text() == content, f"{name}: run Tests/Vectors/generate.py"
