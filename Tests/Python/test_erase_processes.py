"""Erasing while other processes save to the store: nothing that they saved is lost, and nothing erased is left.

A call that meets a record while another process replaces it may fail, and succeeds when it is made again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import llvs
import pytest
from deep import IS_DEEP, usually
from test_erase_random import TOKEN, inflated

ERASED = "erased"

#: Saves values that grow, so that they are differences from each other, and writes a line for each version that was acknowledged. Some of
#: these processes end without closing the store.
WORKER = textwrap.dedent("""
    import json, os, random, sys
    import llvs

    path, storage, seed, log = sys.argv[1:]
    rng, values, version = random.Random(int(seed)), {}, None
    store = llvs.Store(path, storage=storage)
    with open(log, "w") as acknowledged:
        for number in range(rng.randrange(15, 60)):
            if rng.random() < 0.1:
                store.close()
                store = llvs.Store(path, storage=storage)
            id = f"{seed}/{rng.randrange(3)}"
            token = b"token-%d-%032x" % (number, rng.getrandbits(128))
            value = values.get(id, b"x" * rng.choice([10, 3_000])) + token
            change = {"update" if id in values else "insert": {id: value}}
            for left in reversed(range(5)):
                try:
                    version = store.make_version(version, root=version is None, **change).id
                    break
                except (llvs.errors.StorageError, llvs.errors.GoneError):
                    if not left:
                        raise
            values[id] = value
            acknowledged.write(json.dumps([version, id, value.decode()]) + "\\n")
            acknowledged.flush()
    if rng.random() < 0.3:
        os._exit(0)
    store.close()
""")


def acknowledged(folder: Path) -> list[tuple[str, str, bytes]]:
    """What the workers have saved. The last line of a file may not be whole yet."""
    lines = [line for file in sorted(folder.glob("*.log")) for line in file.read_text().split("\n")[:-1]]
    return [(version, id, value.encode()) for version, id, value in map(json.loads, lines)]


@pytest.mark.parametrize("storage", usually(["file", "sqlite"], "sqlite"))
@pytest.mark.parametrize("seed", range(60 if IS_DEEP else 3))
def test_erasing_beside_others_that_save(tmp_path: Path, storage: str, seed: int) -> None:
    folder, rng = tmp_path / "store", random.Random(seed)
    folder.mkdir()
    path = folder / ("store.db" if storage == "sqlite" else "store")
    options: dict[str, Any] = {"storage": storage}
    store = llvs.Store(path, **options)
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(path), storage, str(10 * seed + number), str(tmp_path / f"{number}.log")])
        for number in range(3)
    ]
    erased: set[bytes] = set()
    while any(worker.poll() is None for worker in workers):
        known = acknowledged(tmp_path)
        if not known:
            os.sched_yield()
            continue
        token = rng.choice(TOKEN.findall(rng.choice(known)[2]))
        if rng.random() < 0.2:
            store.close()
            store = llvs.Store(path, **options)
        erased.add(token)
        try:
            store.erase(containing=token)
        except llvs.errors.GoneError:
            pass
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    # A value that was saved after an order is not affected by it.
    store.close()
    store = llvs.Store(path, **options)
    for token in sorted(erased):
        report = store.erase(containing=token)
    assert report.waiting == ()
    for version, id, value in acknowledged(tmp_path):
        found: Any
        try:
            found = store.value(id, at=version)
            found = found and found.data
        except llvs.errors.ErasedError:
            found = ERASED
        assert found == (ERASED if any(token in value for token in erased) else value)
    verified = store.verify()
    assert (verified.damages, verified.pending) == ((), 0)
    store.close()
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not erased & (set(TOKEN.findall(data)) | set(TOKEN.findall(inflated(data)))), file
