"""Erasing while other processes save to the store: no call fails, nothing that they saved is lost, and nothing erased is left."""

from __future__ import annotations

import contextlib
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
from deep import IS_DEEP
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
            version = store.make_version(version, root=version is None, **change).id
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


@pytest.mark.parametrize("storage", ["file", "sqlite"])
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
        store.erase(containing=token)
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


#: Reads values at random until it may end, through a store that it opens again now and then. All must be whole, or erased.
READER = textwrap.dedent("""
    import json, os, random, sys
    import llvs

    path, storage, seed, log, end = sys.argv[1:]
    with open(log) as lines:
        saved = [json.loads(line) for line in lines]
    rng, store = random.Random(int(seed)), llvs.Store(path, storage=storage)
    while not os.path.exists(end):
        for version, id, value in rng.sample(saved, 8):
            try:
                assert store.value(id, at=version).data == value.encode()
            except llvs.errors.ErasedError:
                pass
            assert store.version(version).id == version and [change.id for change in store.changes(version)] == [id]
        if rng.random() < 0.3:
            store.close()
            store = llvs.Store(path, storage=storage)
        elif rng.random() < 0.5:
            store.reload()
    store.close()
""")

#: Erases values, one after the other, until it is killed.
ERASER = textwrap.dedent("""
    import sys
    import llvs

    path, storage = sys.argv[1:]
    with llvs.Store(path, storage=storage) as store:
        for line in sys.stdin:
            store.erase(containing=bytes.fromhex(line))
""")


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("seed", range(30 if IS_DEEP else 2))
def test_reading_beside_erasures(tmp_path: Path, storage: str, seed: int) -> None:
    """Processes read while one erases, which is killed in the middle. Nobody's call fails; the next opening completes what was ordered."""
    folder, rng, log, end = tmp_path / "store", random.Random(seed), tmp_path / "0.log", tmp_path / "end"
    folder.mkdir()
    path = folder / ("store.db" if storage == "sqlite" else "store")
    options: dict[str, Any] = {"storage": storage}
    for number in range(3):
        arguments = [str(path), storage, str(10 * seed + number), str(tmp_path / f"{number}.log")]
        subprocess.run([sys.executable, "-c", WORKER, *arguments], check=True)
    log.write_text("".join((tmp_path / f"{number}.log").read_text() for number in range(3)))
    values = acknowledged(tmp_path)
    held = llvs.Store(path, **options)
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, str(path), storage, str(10 * seed + number), str(log), str(end)])
        for number in range(2)
    ]
    for _ in range(2):
        tokens = [rng.choice(TOKEN.findall(rng.choice(values)[2])) for _ in range(4)]
        with subprocess.Popen([sys.executable, "-c", ERASER, str(path), storage], stdin=subprocess.PIPE) as eraser:
            assert eraser.stdin
            eraser.stdin.write(b"".join(token.hex().encode() + b"\n" for token in tokens))
            eraser.stdin.close()
            # It is killed when it has made some of the orders, wherever it is then.
            wanted = rng.randrange(1, 5)
            while len(held.erasures()) < wanted and eraser.poll() is None:
                with contextlib.suppress(llvs.errors.ErasedError):
                    held.value(values[0][1], at=values[0][0])
            for _ in range(rng.randrange(200)):
                os.sched_yield()
            eraser.kill()
    end.touch()
    assert [reader.wait() for reader in readers] == [0, 0]
    held.close()
    with llvs.Store(path, **options) as store:
        assert store.erase("nothing").waiting == ()
        # If the process was killed after it saved an order and before it noted that it counts, the order does not count.
        assert all(order.followed for order in store.erasures() if order.state != llvs.store.ErasureState.NOT_VALID)
        gone = set()
        for version, id, value in values:
            try:
                assert store.value(id, at=version).data == value  # type: ignore[union-attr]
            except llvs.errors.ErasedError:
                gone.add(value)
        assert len(gone) >= 2
        assert (store.verify().damages, store.verify().pending) == ((), 0)
    erased = {token for value in gone for token in TOKEN.findall(value)} - {
        token for _, _, value in values if value not in gone for token in TOKEN.findall(value)
    }
    for file in folder.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert not erased & (set(TOKEN.findall(data)) | set(TOKEN.findall(inflated(data)))), file
