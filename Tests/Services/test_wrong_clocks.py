"""Clocks that are wrong by a day, here and at the service, and places that are read-only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from box import Box
from clouds import Cloud, exchange, ids, save
from containers import Container
from drive import GoogleDrive
from onedrive import OneDrive
from patience import PATIENCE
from pcloud import PCloud
from service import Request

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud, "cloudkit": None}
LAYOUTS = ["interchange", "packed"]

#: A library for LD_PRELOAD that changes the time of day of a process. Monotonic clocks stay right.
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long long off(void) { const char *text = getenv("WRONG_BY"); return text ? atoll(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*genuine)(clockid_t, struct timespec *);
    if (!genuine) genuine = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = genuine(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += off();
    return result;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
"""
DEVICE = """
import json, sys, time
import llvs
url, tokens, folder, name = sys.argv[1:]
with llvs.Store(folder) as store:
    store.make_version(store.most_recent_head, insert={name: name.encode()})
    with llvs.Exchange(store, llvs.Remote(url, token_file=tokens)) as way:
        received, sent = way.retrieve(), way.send()
        told = [problem.code for problem in received.problems]
        assert told in ([], [llvs.ErrorCode.CLOCK_AHEAD]) and not sent.problems
    print(json.dumps({"clock": time.time(), "told": bool(told), "ids": sorted(version.id for version in store)}))
"""


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c", "-ldl"], check=True)
    return folder / "clock.so"


@pytest.fixture(params=KINDS)
def service(request: Any, tmp_path: Path) -> Iterator[Any]:
    made: Any = Container(tmp_path) if request.param == "cloudkit" else Cloud(KINDS[request.param](), request.param, tmp_path)
    yield made
    made.close()


@pytest.mark.in_turn("layout", "service")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_clock_that_is_wrong_by_a_day(service: Any, clock: Path, tmp_path: Path, layout: str) -> None:
    """Devices with clocks that are slow, fast and right send and receive as usual: nothing needed for that reads a clock.

    A device that receives versions from a clock ahead of its own reports that.
    """
    known: set[str] = set()
    times, told = [], []
    for round in range(2):
        for wrong in (0, 86_400, -86_400):
            environment = {**os.environ, "LD_PRELOAD": str(clock), "WRONG_BY": str(wrong), "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run(
                [sys.executable, "-c", DEVICE, service.url(layout=layout), str(service.tokens), str(tmp_path / f"store{wrong}"),
                 f"{round}{wrong}"], env=environment, capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip
            assert done.returncode == 0, done.stderr
            found = json.loads(done.stdout)
            assert known < set(found["ids"]) and len(found["ids"]) == len(known) + 1
            known = set(found["ids"])
            times.append(found["clock"])
            told.append(found["told"])
    assert max(times) - min(times) > 86_400, "the clocks were wrong"
    assert told == [False, False, True, True, False, True]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_place_that_may_only_be_read(service: Any, store: llvs.Store, new_store: Any, layout: str, monkeypatch: Any) -> None:
    """A folder that another user shares for reading only. Sending is an error that names the reason, receiving continues, and nothing is
    lost."""
    place, second = service.place(layout=layout), new_store()
    exchange(store, place)
    inner = service.service.answer

    def answer(request: Request) -> Any:
        """The refusals of each service, as its documents define them."""
        path, method = request.path, request.method
        cloudkit = path.endswith(("/records/modify", "/zones/modify", "/assets/upload"))
        changes = method in ("PUT", "PATCH", "DELETE", "POST") or "createfolder" in path or "upload" in path
        if service.scheme == "cloudkit":
            if not cloudkit:
                return inner(request)
            raise service.service.refuse(403, "ACCESS_DENIED", "write operation not permitted")
        if not changes or "/token" in path or "oauth" in path:
            return inner(request)
        if service.scheme == "pcloud":
            from service import Answer

            return Answer.of({"result": 2003, "error": "Access denied. You do not have permissions to preform this operation."})
        code = {"gdrive": "insufficientFilePermissions", "onedrive": "accessDenied", "box": "access_denied_insufficient_permissions"}
        raise service.service.refuse(403, code[service.scheme], "The user does not have sufficient permissions.")

    monkeypatch.setattr(service.service, "answer", answer)
    save(store, "more")
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        with pytest.raises(llvs.Error) as told:
            way.send()
        assert told.value.code == llvs.ErrorCode.PERMISSION, told.value
    with llvs.Exchange(second, place) as way:
        assert len(way.retrieve().retrieved) == 3
    monkeypatch.setattr(service.service, "answer", inner)
    exchange(store, place)
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 4
