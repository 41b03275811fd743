"""Addresses that are secrets themselves, such as those of upload sessions and of temporary downloads. No message, log or report contains
them, whatever fails."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from box import Box
from clouds import Cloud, exchange, save
from containers import Container
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud
from service import Answer, Request

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud, "cloudkit": None}
#: Larger than one request, or record, of the service can be.
LARGE = {"gdrive": 6 << 20, "onedrive": 6 << 20, "box": 16 << 20, "pcloud": 6 << 20, "cloudkit": 1 << 20}
SECRET = "pl4nted"


class Planted(int):
    """A number that becomes a secret when it is written into an address."""

    def __str__(self) -> str:
        return f"{SECRET}{int(self)}"

    def __format__(self, form: str) -> str:
        return format(int(self), form) if form else str(self)


@pytest.fixture(params=KINDS)
def service(request: Any, tmp_path: Path) -> Iterator[Any]:
    made: Any = Container(tmp_path) if request.param == "cloudkit" else Cloud(KINDS[request.param](), request.param, tmp_path)
    made.service.serials = map(Planted, itertools.count(1))
    if request.param == "cloudkit":
        numbers = itertools.count(1)
        made.service._count = lambda: Planted(next(numbers))
    yield made
    made.close()


def in_path(request: Request) -> bool:
    """Whether the address of a request has a secret."""
    return SECRET in request.path or any(SECRET in value for name, value in request.query.items() if name == "upload_id")


def answers(status: int, **headers: str) -> Callable[[Request], Answer]:
    return lambda request: Answer(status, b"<html>no</html>", {"Content-Type": "text/html", **headers})


#: The false answers. None is a 404, since after that an upload begins again.
LIES: dict[str, Callable[[Request], Answer]] = {
    **{str(status): answers(status) for status in (200, 400, 403, 507)},
    "elsewhere": answers(302, Location=f"https://elsewhere.invalid/{SECRET}/x?{SECRET}"),
    "in clear": answers(302, Location=f"http://elsewhere.invalid/{SECRET}/x?{SECRET}"),
    "nowhere": answers(302, Location=f"gopher://{SECRET}"),
}


#: Services and directions without such secrets in addresses.
WITHOUT = {("gdrive", "receiving"), ("box", "sending"), ("pcloud", "sending")}
WAYS = [(kind, what) for kind in KINDS for what in ("sending", "receiving")]
#: For these one false answer suffices, since no request uses such an address. For the others every third one is tested in the usual run.
CASES = [
    pytest.param(*way, lie, marks=[] if lie == "200" and way in WITHOUT or (at + number) % 3 == 0 else pytest.mark.deep)
    for at, way in enumerate(WAYS) for number, lie in enumerate(LIES) if lie == "200" or way not in WITHOUT
]  # fmt: skip


@pytest.mark.parametrize("service, what, lie", CASES, indirect=["service"])
def test_they_are_in_no_message(service: Any, new_store: Any, monkeypatch: pytest.MonkeyPatch, lie: str, what: str) -> None:
    said: list[str] = []
    told: list[str] = []
    store, second, inner = new_store(), new_store(), service.service.answer
    save(store, "large", random.Random(5).randbytes(LARGE[service.scheme]))
    if what == "receiving":
        exchange(store, service.place())

    def answer(request: Request) -> Answer:
        if not in_path(request):
            return inner(request)
        told.append(request.path)
        assert len(told) < 500, "it goes on for ever"
        return LIES[lie](request)

    monkeypatch.setattr(service.service, "answer", answer)
    with llvs.log.observe_log(lambda level, message: said.append(message), "debug"):
        with llvs.Exchange(store if what == "sending" else second, service.place()) as way:
            try:
                result = way.send() if what == "sending" else way.retrieve()
                said += [f"{problem!r} {problem.reason}" for problem in result.problems]
            except llvs.Error as error:
                said += [str(error), repr(error), repr(vars(error))]
    has_none = (service.scheme, what) in WITHOUT
    assert bool(told) != has_none, told
    assert has_none or len(said) > 2
    assert not [text for text in said if SECRET in text]


@pytest.mark.parametrize("scheme", ["gdrive", "onedrive"])
def test_what_is_kept_of_a_session_is_for_its_owner_alone(tmp_path: Path, scheme: str) -> None:
    """The session's file beside the store, also if a group shares the store."""
    cloud = Cloud(KINDS[scheme](), scheme, tmp_path)
    cloud.service.serials = map(Planted, itertools.count(1))
    with llvs.Store(tmp_path / "device", options=llvs.StoreOptions(file_mode=0o660)) as store:
        save(store, "large", random.Random(5).randbytes(9 << 20))
        # The connection breaks in the session, again and again.
        cloud.service.inject("lost answer", 1_000, in_path)
        with llvs.Exchange(store, cloud.place()) as way, pytest.raises(llvs.TransportError) as error:
            way.send()
        assert SECRET not in str(error.value)
        holding = [path for path in (tmp_path / "device").rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
        assert len(holding) == 1 and holding[0].stat().st_mode & 0o777 == 0o600
    cloud.close()


@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_a_database_that_a_group_shares_holds_no_session(tmp_path: Path, mode: int) -> None:
    cloud = Cloud(KINDS["gdrive"](), "gdrive", tmp_path)
    cloud.service.serials = map(Planted, itertools.count(1))
    with llvs.Store(tmp_path / "device.sqlite", storage="sqlite", options=llvs.StoreOptions(file_mode=mode)) as store:
        save(store, "large", random.Random(5).randbytes(9 << 20))
        cloud.service.inject("lost answer", 1_000, lambda request: request.method == "PUT" and in_path(request))
        with llvs.Exchange(store, cloud.place()) as way, pytest.raises(llvs.TransportError):
            way.send()
        held = any(SECRET.encode() in path.read_bytes() for path in tmp_path.glob("device.sqlite*"))
        assert held == (mode == 0o600)
    cloud.close()
