"""Writes stores of every storage, an exchange folder and a snapshot with the present library, and their contents.

    generate.py FOLDER     makes FOLDER/stores.tar.xz and FOLDER/expected.json (expected.py reads it)

Run once for each version of the formats. Its results are never made again, because they stand for the stores of users.
`Tests/Python/test_old_stores.py` reads all of them.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
import tarfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import llvs

sys.path.insert(0, str(Path(__file__).resolve().parent))

import expected as expectations  # noqa: E402

#: More than 1 MiB, so that file storage writes it to a separate file; compresses well.
LARGE = b"".join(b"%08d" % (number // 16) for number in range(140_000))


def fill(store: llvs.Store, seed: int) -> None:
    """A history with branches, merges, a revert, metadata, awkward ids, and values of every size."""
    chance = random.Random(seed)
    awkward = ["a/b", "..", "con:aux", "e\u0301", "\u00e9", "new\nline", "nul\0", "-dash", "\U0001f600", "x" * 4096]
    ids = [f"note/{number}" for number in range(40)] + awkward
    root = store.make_version(insert={id: f"{id[:20]} at first".encode() for id in ids[:30]}, metadata={"author": "ann", "n": 1})
    known = [root]
    for number in range(24):
        base = chance.choice(known[-6:])
        changes: dict[str, bytes] = {}
        for id in chance.sample(ids, chance.randrange(0, 6)):
            changes[id] = bytes(chance.randrange(256) for _ in range(chance.choice([0, 5, 300, 3000])))
        if number == 7:
            changes["large"] = LARGE
        if number == 9:
            changes["text"] = b"the same words again and again " * 4000
        removed = [id for id in chance.sample(ids, 2) if id not in changes]
        branch = "draft" if number % 7 == 3 else None
        known.append(store.make_version(base, update=changes, remove=removed, branch=branch, metadata={"n": number}))
    many = store.make_version(known[-1], insert={f"many/{number:05}": b"%d" % number for number in range(700)})
    known.append(many)
    for arbiter in (llvs.MostRecentChange(), llvs.MostRecentBranch(), llvs.MostRecentChange()):
        heads = store.heads()
        if len(heads) > 2:
            known.append(store.merge(heads[0], heads[-1], arbiter=arbiter))
    known.append(store.revert(known[5], at=store.most_recent_head).version)
    store.make_version(store.most_recent_head, remove=["text"], id="an-id-of-the-callers")


def describe(store: llvs.Store) -> dict[str, Any]:
    """Returns the contents of the store, at every version."""
    versions = []
    for version in store.history():
        state = store.at(version)
        values = {}
        for id, data in state.items():
            value = store.value(id, at=version)
            assert value is not None and value.data == data
            values[id] = [value.stored_version, len(data), hashlib.sha256(data).hexdigest()[:16]]
        versions.append({
            "id": version.id,
            "predecessors": list(version.predecessors),
            "timestamp": version.timestamp,
            "metadata": version.metadata,
            "size": version.value_data_size,
            "changes": [[change.kind.value, change.id] for change in store.changes(version)],
            "count": len(values),
            "digest": hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest(),
        })
    return {"heads": [head.id for head in store.heads()], "versions": versions}


def main(folder: Path) -> None:
    """Makes the stores in a folder, and packs them."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    expected: dict[str, Any] = {"library": llvs.__version__, "stores": {}}
    for name, options in (("file", {}), ("sqlite", {"storage": "sqlite"})):
        with llvs.Store(work / name, **options) as store:
            fill(store, 1 if name == "file" else 2)
        # Several handles, so that there are several segments.
        for number in range(3):
            with llvs.Store(work / name, **options) as store:
                store.make_version(store.most_recent_head, update={"note/1": b"handle %d" % number})
        with llvs.Store(work / name, **options) as store:
            expected["stores"][name] = describe(store)
    shutil.copytree(work / "file", work / "compacted")
    with llvs.Store(work / "compacted", options=llvs.StoreOptions(compaction_grace=0.001)) as store:
        store.compact()
    with llvs.Store(work / "compacted", options=llvs.StoreOptions(compaction_grace=0.001)) as store:
        store.make_version(store.most_recent_head, insert={"after": b"the compaction"})
        expected["stores"]["compacted"] = describe(store)
    with llvs.Store(work / "file") as store, llvs.Exchange(store, (work / "folder").absolute().as_uri()) as exchange:
        exchange.send()
    with llvs.Store(work / "sqlite", storage="sqlite") as store:
        store.write_snapshot(work / "snapshot")
    with llvs.Coordinator(work / "coordinator") as notes:
        notes.save(insert={"one": b"1"})
        notes.save(update={"one": b"2"}, insert={"two": b"2"})
        notes.save(update={"one": b"3"}, branch="draft")
        expected["current"] = notes.current_version.id
        expected["current_values"] = {id: b64encode(data).decode() for id, data in notes.at().items()}
        expected["stores"]["coordinator"] = describe(notes.store)
    expectations.write(folder, expected)
    with tarfile.open(folder / "stores.tar.xz", "w:xz") as archive:
        archive.add(work, arcname=".")
    shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
