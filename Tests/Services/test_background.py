"""Syncers over each service: what starts a round, and what happens to rounds that fail."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from box import Box
from clouds import Cloud
from containers import Container
from drive import GoogleDrive
from moved_clock import MovedClock
from patience import PATIENCE, eventually
from llvs.syncer import SyncConditions, SyncReason, SyncState
from onedrive import OneDrive
from pcloud import PCloud

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud, "cloudkit": None}
LAYOUTS = ["interchange", "packed"]
#: Settings with which only the test itself leads to rounds.
SELDOM: dict[str, Any] = {"after_save": 0.05, "after_saves": 0.5, "poll": 10_000.0, "longest_poll": 10_000.0, "longest_pause": 0.1}


@pytest.fixture(params=KINDS)
def service(request: Any, tmp_path: Path) -> Iterator[Any]:
    made: Any = Container(tmp_path) if request.param == "cloudkit" else Cloud(KINDS[request.param](), request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=LAYOUTS)
def devices(request: Any, service: Any, tmp_path: Path) -> Iterator[tuple[llvs.Coordinator, llvs.Coordinator]]:
    with ExitStack() as stack:
        place = service.place(layout=request.param)
        laptop, phone = (stack.enter_context(llvs.Coordinator(tmp_path / name, exchange=place)) for name in ("laptop", "phone"))
        yield laptop, phone


def test_what_leads_to_a_round(clock: MovedClock, devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    """Rounds begin after opening, a save, a notification of news, a return to the foreground, the return of the network, and on request."""
    laptop, phone = devices
    with llvs.Syncer(laptop, **SELDOM) as syncer:
        eventually(lambda: syncer.status.rounds >= 1 and syncer.status.state == SyncState.IDLE)
        laptop.save(insert={"saved": b"1"})
        eventually(lambda: syncer.status.sent == 1)
        phone.sync()
        assert phone["saved"] == b"1"
        for number, lead in enumerate((syncer.has_news, syncer.now)):
            phone.save(insert={f"news{number}": b"2"})
            phone.sync()
            lead()
            eventually(lambda: f"news{number}" in laptop)
        # The last round has ended, and was counted.
        eventually(lambda: syncer.status.state == SyncState.IDLE)
        syncer.conditions = SyncConditions.OFFLINE
        eventually(lambda: syncer.status.state == SyncState.WAITING and syncer.status.reason == SyncReason.OFFLINE)
        sent = syncer.status.sent
        laptop.save(insert={"offline": b"3"})
        # The save is noticed, and the delay for further saves is over.
        eventually(lambda: syncer.status.places[0].pending_versions == 1)
        clock.advance(1)
        # A round may have merged what had arrived before, which needs no network.
        eventually(lambda: syncer.status.state == SyncState.WAITING)
        assert syncer.status.sent == sent and syncer.status.places[0].pending_versions == 1
        syncer.conditions = SyncConditions.NONE
        eventually(lambda: syncer.status.places[0].failures == 0 and syncer.status.sent >= 2)
        phone.sync()
        assert phone["offline"] == b"3"


def test_polls(devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    laptop, phone = devices
    with llvs.Syncer(laptop, poll=0.05, longest_poll=0.1) as syncer:
        phone.save(insert={"polled": b"1"})
        phone.sync()
        eventually(lambda: "polled" in laptop)
        assert syncer.run(deadline=PATIENCE)


@pytest.mark.in_turn("devices", "kind", "service")
@pytest.mark.parametrize("kind", ["rate limit", "server error", "lost answer", "cut answer"])
def test_failures_pass(service: Any, devices: tuple[llvs.Coordinator, llvs.Coordinator], kind: str) -> None:
    """Failed rounds are repeated, and no save made meanwhile is left out."""
    laptop, phone = devices
    laptop.save(insert={"first": b"1"})
    service.service.inject(kind, 12)
    with llvs.Syncer(laptop, **SELDOM) as syncer:
        laptop.save(insert={"second": b"2"})
        eventually(lambda: syncer.status.sent >= 2 and syncer.status.places[0].failures == 0)
    phone.sync()
    assert phone["first"] == b"1" and phone["second"] == b"2"


def test_the_user_has_to_sign_in(clock: MovedClock, service: Any, devices: tuple[llvs.Coordinator, llvs.Coordinator]) -> None:
    """No round begins automatically then. A round that is requested after the user has signed in succeeds."""
    laptop, phone = devices
    if service.scheme == "pcloud":
        service.sign_in(refresh_token=None)  # it issues none
    if service.scheme in ("cloudkit", "pcloud"):
        service.service.expire_tokens()
    else:
        service.service.accounts.revoke()
    with llvs.Syncer(laptop, **SELDOM) as syncer:
        laptop.save(insert={"a": b"1"})
        eventually(lambda: syncer.status.places and syncer.status.places[0].reason == SyncReason.SIGN_IN)
        # A save may lead to one more round, which ends in the same way. After that, time alone leads to no round.
        eventually(lambda: syncer.status.state == SyncState.PAUSED and syncer.status.next_round is None)
        for _ in range(3):
            clock.advance(5)
            eventually(lambda: syncer.status.state == SyncState.PAUSED and syncer.status.places[0].reason == SyncReason.SIGN_IN)
        rounds = syncer.status.rounds
        assert rounds <= 2
        service.sign_in()
        syncer.now()
        eventually(lambda: syncer.status.sent == 1 and syncer.status.places[0].failures == 0)
        assert syncer.status.rounds == rounds + 1
    phone.sync()
    assert phone["a"] == b"1"
