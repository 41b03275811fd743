"""The suite that all places of named files pass, over every available server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import llvs
import llvs.testing
import pytest
import servers
from dav_server import DavServer, on
from deep import usually
from places import KINDS, Service, started
from llvs.testing import Disturbance

CHECKS = llvs.testing.files_checks()
#: Needs thousands of requests.
MANY = "many files are listed and read"
AT_ONCE = "if two handles publish one name at once, one of them wins"
#: Servers that check for a name, and then move a file to it: two clients at once may both get a success, or the answer that it is locked.
LOOK_FIRST = ["apache", "nginx", "lighttpd", "wsgidav", "rclone"]


#: The effects of Digest authentication are tested in test_webdav.py and test_packed.py.
DEEP = ("radosgw", "wsgidav-digest")
#: The real WebDAV servers share the checks, each of which is made at one of them. The requests are those to the server in memory, where
#: every check is made.
TURNS = [kind for kind in servers.NAMES if kind not in DEEP]
MARKS = {**dict.fromkeys(DEEP, pytest.mark.deep), **dict.fromkeys(TURNS, pytest.mark.in_turn("service", "check"))}


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=MARKS[kind]) if kind in MARKS else kind for kind in KINDS])
def service(request: Any) -> Iterator[Service]:
    yield from started(request.param)


def run(service: Service, check: str) -> None:
    plan = llvs.testing.FaultPlan()
    group = f"f{abs(hash(check)):x}-"
    report = llvs.testing.check_files(lambda number: plan.transport(service(f"{group}{number}")("")), only=check)
    assert [one.name for one in report.checks] == [check]


@pytest.mark.parametrize("check", [check for check in CHECKS if check != MANY])
def test_files(service: Service, check: str, request: Any) -> None:
    if check == AT_ONCE and any(name in request.node.name for name in LOOK_FIRST):
        pytest.skip("it is not atomic there (docs/remote-files.md)")
    run(service, check)


@pytest.mark.parametrize("service", usually([kind for kind in KINDS if "wsgidav" not in kind], "memory", "openssh"), indirect=True)
def test_many_files(service: Service) -> None:
    """One test for each kind of list; test_s3.py tests a bucket's pages. wsgidav and rclone need a minute for this."""
    run(service, MANY)


@pytest.mark.parametrize("check", CHECKS)
def test_folders(check: str, tmp_path: Path) -> None:
    plan = llvs.testing.FaultPlan()
    report = llvs.testing.check_files(lambda number: plan.transport(tmp_path / str(number)), only=check)
    assert report


def test_a_server_that_cannot_be_reached(server: DavServer) -> None:
    plan = llvs.testing.FaultPlan()

    def disturb(place: int, what: Disturbance) -> None:
        server.fault = on("")(lambda handler: handler.answer(404)) if what is Disturbance.FAIL else None

    def cut(place: int, what: Disturbance) -> None:
        server.fault = (lambda handler: handler.cut()) if what is Disturbance.FAIL else None

    def files(number: int) -> llvs.testing.FaultyTransport:
        return plan.transport(llvs.Remote(server.url + f"{number}/"))

    only = "an unreachable place is an error"
    report = llvs.testing.check_files(files, only=only, disturb=cut)
    assert report.checks[0].outcome is llvs.testing.Outcome.PASSED
    # A server without files differs from one that cannot be reached: the suite distinguishes them.
    with pytest.raises(llvs.testing.ConformanceError, match="did not fail|is reported as existing already"):
        llvs.testing.check_files(files, only=only, disturb=disturb)
