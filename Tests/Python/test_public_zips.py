"""The odd zips of libzip, as snapshots of the other implementation's kind (`zip-v1`). public_inputs.py says where to find them. The
engine's own tests compare the contents of entries with those that `zipfile` reads (OddZipsTests)."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Optional

import llvs
from public_inputs import FOLDER, needed

ID = "5D0A1B2C-0000-4000-8000-000000000001"
VERSION = json.dumps({"identifier": ID, "timestamp": 1, "metadata": []}).encode()
NODE = json.dumps({"children": {"values": [{"valueReference": {"valueId": "key", "storedVersionId": ID}}]}}).encode()
#: The files of a store directory with one version, in which "key" has a value.
STORE = {
    f"versions/{ID[:2]}/{ID[2:]}.json": VERSION,
    f"maps/__llvs_values/__/llvs_root/{ID[0]}/{ID[1:]}.json": NODE,
    f"values/ke/y/{ID[0]}/{ID[1:]}.json": b'"one"',
}


def zips() -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in sorted((FOLDER / "zip").glob("*.zip"))}
    assert len(found) >= 163
    return found


def restored(folder: Path, data: bytes) -> tuple[Optional[llvs.Error], dict[str, bytes]]:
    """Returns the answer of a new store to a snapshot of this one chunk, and its contents then."""
    place = folder / "snapshots"
    place.mkdir(exist_ok=True, parents=True)
    (place / "chunk-000").write_bytes(data)
    manifest = {"snapshotId": "S", "format": "zip-v1", "createdAt": 8e8, "latestVersionId": ID, "versionCount": 1, "chunkCount": 1}
    (place / "manifest.json").write_text(json.dumps({**manifest, "totalSize": len(data)}))
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        try:
            exchange.restore_snapshot()
        except llvs.Error as error:
            assert error.code in (llvs.ErrorCode.SNAPSHOT_DAMAGED, llvs.ErrorCode.FOREIGN_SNAPSHOT), error
            assert not list(store)
            return error, {}
        return None, dict(store.at(ID))


@needed("zip")
def test_odd_zips_are_no_snapshots(tmp_path: Path) -> None:
    """A zip that is read holds no store; one that is not read is damaged, or of several parts. Whatever is read, others list as well."""
    read = 0
    for name, data in zips().items():
        error, found = restored(tmp_path, data)
        assert error is not None and not found, name
        if "holds no store" not in str(error):
            continue
        read += 1
        try:
            names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        except zipfile.BadZipFile as problem:
            # Python looks into extra fields, which are not needed here.
            assert "extra field" in str(problem), name
        else:
            assert len(names) == len(set(names)), name
    assert read >= 120


@needed("zip")
def test_a_store_among_odd_entries(tmp_path: Path) -> None:
    """The files of a store, appended to each zip that Python can append to: all of the store is read, or nothing."""
    whole = 0
    for name, data in zips().items():
        file = io.BytesIO(data)
        try:
            with zipfile.ZipFile(file, "a") as archive:
                for path, content in STORE.items():
                    archive.writestr(path, content)
        except (zipfile.BadZipFile, OSError, NotImplementedError, struct.error):
            continue
        error, found = restored(tmp_path, file.getvalue())
        assert error is not None or found == {"key": b'"one"'}, name
        whole += error is None
    assert whole >= 110
