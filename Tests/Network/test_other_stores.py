"""A place of another store at the address of one's own: nothing is received from it, and nothing is sent (docs/exchanges.md)."""

from __future__ import annotations

from typing import Any

import llvs
import pytest
from conftest import ids
from dav_server import DavServer
from test_layouts import both, save

AUTOMATIC, PACKED, SINGLE, BRIDGED = "", "?layout=packed", "?layout=interchange", "?layout=bridged"
#: Pairs of layouts. An exchange with a named layout sees only that layout.
PAIRS = [(AUTOMATIC, PACKED), (AUTOMATIC, SINGLE), (PACKED, PACKED), (SINGLE, SINGLE), (BRIDGED, PACKED), (BRIDGED, BRIDGED)]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("mine, theirs", PAIRS)
def test_the_files_of_another_account_are_refused(server: DavServer, new_store: Any, mine: str, theirs: str, is_open: bool) -> None:
    """Refused by an open exchange, and by the next one."""
    ann, bob = new_store(), new_store()
    # Both make the same first version, as devices with the same rules do.
    for each in (ann, bob):
        each.make_version(insert={"rules": b"1"}, timestamp=978307200.0)
    save(ann, "ann")
    way = llvs.Exchange(ann, server.url + mine)
    way.retrieve()
    way.send()
    anns = (server.files, server.folders)
    server.files, server.folders = {}, {"", "/dav"}
    save(bob, "bob")
    both(bob, server.url + theirs)
    bobs, before, known = (server.files, server.folders), dict(server.files), ids(ann)
    save(ann, "more")
    if not is_open:
        way.close()
        way = llvs.Exchange(ann, server.url + mine)
    for call in (way.retrieve, way.send, way.retrieve):
        with pytest.raises(llvs.NotFoundError):
            call()
    assert server.files == before and len(ids(ann) - known) == 1
    server.files, server.folders = anns
    assert not way.retrieve().problems and len(way.send().sent) == 1
    server.files, server.folders = bobs
    way.restoration_state = b"new"
    if (mine, theirs) == (BRIDGED, PACKED):
        # A place with packs alone stays so, whichever device joins it.
        with pytest.raises(llvs.errors.InvalidArgumentError, match="only packs"):
            way.retrieve()
    else:
        assert len(way.retrieve().retrieved) == 1 and way.send().sent
    way.close()


@pytest.mark.parametrize("layout", [AUTOMATIC, PACKED, SINGLE])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("change", [
    ("/dav/notes/", "/dav/notes"), ("/notes/", "/n%6ftes/"), ("http+webdav", "HTTP+WebDAV"),
    ("localhost", "LocalHost")])
def test_each_spelling_of_an_address_is_the_same_place(
    server: DavServer, new_store: Any, layout: str, is_first: bool, change: tuple[str, str]
) -> None:
    """The result does not depend on the order of the two addresses."""
    plain = server.url.replace("127.0.0.1", "localhost")
    other = plain.replace(*change)
    assert other != plain
    first, second = (other, plain) if is_first else (plain, other)
    ann, bob = new_store(), new_store()
    save(ann, "ann")
    both(ann, first + layout)
    anns = (server.files, server.folders)
    server.files, server.folders = {}, {"", "/dav"}
    save(bob, "bob")
    both(bob, first + layout)
    before, known = dict(server.files), ids(ann)
    for url in (second, first, second):
        with llvs.Exchange(ann, url + layout) as way:
            for call in (way.retrieve, way.send):
                with pytest.raises(llvs.NotFoundError):
                    call()
    assert server.files == before and ids(ann) == known
    server.files, server.folders = anns
    assert both(ann, second + layout) == (0, 0)


@pytest.mark.parametrize("theirs", [PACKED, BRIDGED])
def test_packs_of_another_store_where_single_files_were(server: DavServer, new_store: Any, theirs: str) -> None:
    """The layout is not named. A device that had single files there does not switch to the packs of another store."""
    ann, bob = new_store(), new_store()
    save(ann, "ann")
    both(ann, server.url + SINGLE)
    with llvs.Exchange(ann, server.url) as way:
        assert not way.retrieve().retrieved
        save(ann, "more")
        server.files, server.folders = {}, {"", "/dav"}
        save(bob, "bob")
        both(bob, server.url + theirs)
        before = dict(server.files)
        for _ in range(3):
            for call in (way.retrieve, way.send):
                with pytest.raises(llvs.NotFoundError):
                    call()
    with llvs.Exchange(ann, server.url) as way, pytest.raises(llvs.NotFoundError, match="another store"):
        way.retrieve()
    assert server.files == before and len(ids(ann)) == 2


def test_packs_that_came_beside_the_single_files(server: DavServer, new_store: Any) -> None:
    """The packs are the store's own: the device switches to them."""
    ann, other = new_store(), new_store()
    save(ann, "ann")
    both(ann, server.url + SINGLE)
    assert both(ann, server.url) == (0, 0)
    both(other, server.url + BRIDGED)
    save(other, "other")
    both(other, server.url + BRIDGED)
    assert both(ann, server.url)[0] == 1
