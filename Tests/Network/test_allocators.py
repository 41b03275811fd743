"""Processes with another allocator than the C library's, preloaded or linked, through places of every kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import llvs
import places
import pytest
from deep import usually
from places import Place, Service

FOLDER = Path(f"/usr/lib/{os.uname().machine}-linux-gnu")
ALLOCATORS = {
    "jemalloc": FOLDER / "libjemalloc.so.2",
    "tcmalloc": FOLDER / "libtcmalloc_minimal.so.4",
    "mimalloc": FOLDER / "libmimalloc.so.2",
}

#: Two devices and a place: each device receives what the other saved. The arguments: a folder, a storage, and the options of the place.
DEVICES = """
import json, sys
import llvs

folder, storage, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
place = llvs.Remote(**options)
for name, values in (("a", {"large": bytes(3_000_000), "x": b"1"}), ("b", {"y": b"2"}), ("a", {})):
    with llvs.Coordinator(f"{folder}/{name}", storage=storage, exchange=place) as device:
        if values:
            device.save(update=values)
        assert not device.sync().problems
        kept = {key: len(device[key]) for key in device}
assert kept == {"large": 3_000_000, "x": 1, "y": 1}, kept
maps = open("/proc/self/maps").read()
print("done with", [name for name in ("jemalloc", "tcmalloc", "mimalloc") if name in maps], "curl" in maps)
"""

#: A program in C that saves and syncs as one device; it is linked with the allocator.
PROGRAM = r"""
#include <llvs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    llvs_coordinator_options options = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_exchange_options place = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_coordinator *device;
    llvs_error *error = NULL;
    void *own = malloc(10);
    store.storage = LLVS_STORAGE_SQLITE;
    options.store = &store;
    place.passphrase = llvs_str("six random words");
    place.layout = LLVS_LAYOUT_PACKED;
    change.kind = LLVS_CHANGE_UPDATE;
    change.id = change.data = llvs_str("a");
    if (argc != 3 || llvs_coordinator_open(llvs_str(argv[1]), &options, &device, &error) ||
        llvs_coordinator_save(device, &change, 1, sizeof change, NULL, NULL, NULL, NULL, &error) ||
        llvs_coordinator_attach(device, llvs_str(argv[2]), &place, &error) || llvs_coordinator_sync(device, NULL, NULL, &error))
        return fprintf(stderr, "%s\n", error ? llvs_error_message(error) : "no arguments"), 1;
    llvs_coordinator_free(device);
    free(own);
    puts("done");
    return 0;
}
"""


#: The kinds that open each of the system's libraries: libcurl, libcrypto beside it, and the program ssh.
@pytest.fixture(scope="module", params=usually(places.KINDS, "memory", "bucket", "openssh"))
def service(request: Any) -> Iterator[Service]:
    yield from places.started(request.param)


def environment(**more: str) -> dict[str, str]:
    """The environment of this process, without entries that only tests need."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **more}


def options(place: Place, **more: Any) -> dict[str, Any]:
    return {"url": f"{place.url}{'&' if '?' in place.url else '?'}layout=packed", **place._options, **more}


def run(folder: Path, allocator: str, storage: str, **options: Any) -> None:
    assert ALLOCATORS[allocator].exists(), f"{allocator} is not installed (scripts/suites/53-network does that)"
    done = subprocess.run(
        [sys.executable, "-c", DEVICES, str(folder), storage, json.dumps(options, default=str)],
        env=environment(LD_PRELOAD=str(ALLOCATORS[allocator])), capture_output=True, text=True)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert f"done with ['{allocator}'] True" in done.stdout, "it was not under test"


@pytest.mark.in_turn("service", "allocator")
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_preloaded_allocator(service: Service, tmp_path: Path, allocator: str) -> None:
    place = service(f"{allocator}p")
    run(tmp_path, allocator, "file", **options(place))


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_preloaded_allocator_with_encryption_and_sqlite(server: Any, tmp_path: Path, allocator: str) -> None:
    """Each library of the system that is opened frees what it made. (A passphrase: test_a_linked_allocator.)"""
    run(tmp_path, allocator, "sqlite", url=server.url + "?layout=packed", identity=llvs.exchange.make_identity().secret)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_linked_allocator(server: Any, tmp_path: Path, allocator: str) -> None:
    source, program, ours = tmp_path / "program.c", tmp_path / "program", Path(os.environ["LLVS_LIBRARY"]).resolve()
    source.write_text(PROGRAM)
    include = Path(__file__).resolve().parents[2] / "include"
    subprocess.run(
        ["cc", str(source), f"-I{include}", "-Wl,--no-as-needed", str(ALLOCATORS[allocator]), str(ours), f"-Wl,-rpath,{ours.parent}", "-o",
         str(program)], check=True)
    done = subprocess.run([program, str(tmp_path / "notes"), server.url], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "done\n", f"{done.returncode}: {done.stderr}"
