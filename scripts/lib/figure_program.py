"""Measures a store of 20,000 versions, each of one value of 100 bytes under a UUID. Prints lines of a name and a number.

Needs LLVS_LIBRARY and the package on PYTHONPATH; scripts/lib/figures.py runs it.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path

import llvs

VERSIONS = 20_000
SENT = 500


def size(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, shared = Path(folder) / "notes.llvs", Path(folder) / "shared"
        with llvs.Store(path, durability="normal") as store:
            last = store.make_version(insert={str(uuid.uuid4()): os.urandom(100)})
            for _ in range(VERSIONS - 1):
                last = store.make_version(last, insert={str(uuid.uuid4()): os.urandom(100)})
        with llvs.Store(path) as store:
            print("memory_per_version", store.statistics().memory_used / VERSIONS)
        print("bytes_per_version", size(list(path.glob("segments/*"))) / VERSIONS)
        print("index_per_version", size(list(path.glob("cache/history*"))) / VERSIONS)
        print("map_per_id", size(list(path.glob("cache/map*"))) / VERSIONS)

        with llvs.Store(storage="memory") as store, llvs.Exchange(store, shared, durability="normal") as exchange:
            last = store.make_version(insert={str(uuid.uuid4()): os.urandom(100)})
            for _ in range(SENT - 1):
                last = store.make_version(last, insert={str(uuid.uuid4()): os.urandom(100)})
            exchange.send()
            files = [file for file in shared.rglob("*") if file.is_file()]
            print("folder_files_per_version", len(files) / SENT)
            print("folder_bytes_per_version", size(files) / SENT)


main()
