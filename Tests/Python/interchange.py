"""Converts version files of the interchange layout to and from the reference model, and a transport that carries them."""

from __future__ import annotations

import base64
import json
from typing import Any, Iterable, Optional, Sequence

import llvs
from reference import Change, Preserve, PreserveRemoval, Remove, Set, Version


def version_file(version: Version) -> bytes:
    """Returns the file versions/<id>."""
    content: dict[str, Any] = {"identifier": version.id}
    if version.predecessors:
        names = ("idOfFirst", "idOfSecond")
        content["predecessors"] = dict(zip(names, version.predecessors))
    content["timestamp"] = version.timestamp
    content["valueDataSize"] = sum(len(change.data) for change in version.changes.values() if isinstance(change, Set))
    content["metadata"] = [
        part for key, value in sorted(version.metadata.items()) for part in (key.decode(), {"data": base64.b64encode(value).decode()})
    ]
    return json.dumps({"version": content}).encode()


def changes_file(version: Version, inserted: Iterable[bytes] = ()) -> bytes:
    """Returns the file changes/<id>; ids in `inserted` have the label insert."""
    inserted = set(inserted)
    content: list[dict[str, Any]] = []
    for id, change in sorted(version.changes.items()):
        text = id.decode()
        if isinstance(change, Set):
            label = "insert" if id in inserted else "update"
            content.append({label: {"id": text, "data": base64.b64encode(change.data).decode()}})
        elif isinstance(change, Preserve):
            content.append({"preserve": {"valueId": text, "storedVersionId": change.version}})
        elif isinstance(change, Remove):
            content.append({"remove": text})
        else:
            content.append({"preserveRemoval": text})
    return json.dumps(content).encode()


def read_version(version_json: bytes, changes_json: bytes) -> tuple[Version, dict[bytes, str]]:
    """Returns a version from its two files, and the labels of its changes."""
    content = json.loads(version_json)["version"]
    predecessors = tuple(content["predecessors"][name] for name in ("idOfFirst", "idOfSecond") if name in content.get("predecessors", {}))
    flat = content["metadata"]
    metadata = {flat[i].encode(): base64.b64decode(flat[i + 1]["data"]) for i in range(0, len(flat), 2)}
    changes: dict[bytes, Change] = {}
    labels: dict[bytes, str] = {}
    for item in json.loads(changes_json):
        ((kind, body),) = item.items()
        if kind in ("insert", "update"):
            id, change = body["id"], Set(base64.b64decode(body["data"]))
        elif kind == "preserve":
            id, change = body["valueId"], Preserve(body["storedVersionId"])
        else:
            id, change = body, (Remove() if kind == "remove" else PreserveRemoval())
        changes[id.encode()] = change
        labels[id.encode()] = kind
    assert content.get("valueDataSize") == sum(len(change.data) for change in changes.values() if isinstance(change, Set))
    return Version(content["identifier"], predecessors, content["timestamp"], changes, metadata), labels


class DictTransport(llvs.exchange.Transport):
    """A place in this process: two dicts. It also records what was sent last."""

    name = "dict"

    def __init__(self, versions: Optional[dict[str, bytes]] = None, changes: Optional[dict[str, bytes]] = None) -> None:
        self.versions = {} if versions is None else versions
        self.changes = {} if changes is None else changes
        self.sent: list[llvs.exchange.VersionFiles] = []

    def list(self) -> Iterable[str]:
        return list(self.versions)

    def fetch_versions(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [self.versions.get(name) for name in names]

    def fetch_changes(self, names: Sequence[str]) -> Sequence[Optional[bytes]]:
        return [self.changes.get(name) for name in names]

    def send(self, files: Sequence[llvs.exchange.VersionFiles]) -> None:
        for file in files:
            self.changes[file.name] = file.changes
            self.versions[file.name] = file.version
        self.sent.extend(files)

    def put(self, version: Version, inserted: Iterable[bytes] = ()) -> None:
        """Puts a version of the model there; ids in `inserted` have the label insert."""
        self.changes[version.id] = changes_file(version, inserted)
        self.versions[version.id] = version_file(version)
