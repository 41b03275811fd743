"""Merged packs that a connection or a server refuses: the device's own versions are sent nevertheless."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any, Callable

import llvs
import pytest
from conftest import ids
from dav_server import DavServer, Handler

MOST = 4_000_000


def save(store: llvs.Store, name: str, data: bytes = b"1") -> llvs.Version:
    return store.make_version(store.most_recent_head, insert={name: data})


def exchange(store: llvs.Store, place: str) -> int:
    """Exchanges; returns the number of versions that were sent."""
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        return len(way.send().sent)


class Line:
    """Cuts, or refuses, uploads of more than 4 MB."""

    def __init__(self, server: DavServer, status: int) -> None:
        self.status, self.cuts = status, 0
        server.fault = self

    def __call__(self, handler: Handler) -> bool:
        if handler.command != "PUT" or int(handler.headers.get("Content-Length") or 0) <= MOST:
            return False
        self.cuts += 1
        if not self.status:
            handler.rfile.read(MOST)
            return handler.cut()
        handler.body()
        handler.answer(self.status)
        return True


@pytest.mark.parametrize("status", [0, 403, 504])
def test_own_versions_go_beside_an_adoption(server: DavServer, new_store: Any, status: int) -> None:
    place, rng = server.url + "?layout=packed", random.Random(1)
    # One device is gone, and there is no third one: otherwise random ids would decide which device adopts.
    gone = new_store()
    for number in range(6):
        save(gone, f"k{number}", rng.randbytes(900_000))
        exchange(gone, place)
    with llvs.Exchange(gone, place) as way:
        way.retire()
    line, device = Line(server, status), new_store()
    save(device, "first")
    with suppress(llvs.TransportError, llvs.errors.PermissionDeniedError):
        exchange(device, place)
    assert line.cuts
    before = line.cuts
    for number in range(4):
        save(device, f"own{number}")
        assert exchange(device, place) == 1
    assert line.cuts == before, "nothing as large is sent again"
    server.fault = None
    other = new_store()
    exchange(other, place)
    assert ids(device) <= ids(other)


@pytest.mark.parametrize("status", [0, 504])
def test_own_packs_are_merged_in_smaller_ones(server: DavServer, new_store: Any, status: int) -> None:
    place, rng, store = server.url + "?layout=packed", random.Random(1), new_store()
    line = Line(server, status)
    for number in range(9):
        save(store, f"k{number}", rng.randbytes(900_000))
        try:
            exchange(store, place)
        except llvs.TransportError:
            assert number == 8 and line.cuts and not status
    before = line.cuts
    assert before
    for _ in range(3):
        assert exchange(store, place) == 0
    assert line.cuts == before
    server.fault = None
    other = new_store()
    exchange(other, place)
    assert ids(other) == ids(store)
