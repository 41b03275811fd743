"""Changes of accounts and folders between two exchanges, at each of the services. Numbers are those of the list of bad input of
docs/cloud-drives.md; test_tables.py lists the test of each at each service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from box import Box
from cloudkit import Record
from clouds import Cloud, exchange, files, folders, ids, save
from containers import Container
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud

DRIVES: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}
LAYOUTS = ["interchange", "packed"]


@pytest.fixture(params=[*DRIVES, "cloudkit"])
def service(request: Any, tmp_path: Path) -> Iterator[Any]:
    made: Any = Container(tmp_path) if request.param == "cloudkit" else Cloud(DRIVES[request.param](), request.param, tmp_path)
    sign_in(made)
    yield made
    made.close()


def sign_in(service: Any) -> None:
    """Signs in. pCloud issues no refresh token."""
    service.sign_in(**({"refresh_token": None} if service.scheme == "pcloud" else {}))


only_drives = pytest.mark.parametrize("service", DRIVES, indirect=True)


def revoke(service: Any) -> None:
    """Revokes the consent, as the user can."""
    if service.scheme == "cloudkit":
        service.service.users.clear()
    else:
        service.service.accounts.revoke()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_token_that_was_revoked(service: Any, store: llvs.Store, new_store: Any, layout: str) -> None:
    """1: the error reports it, in the middle of an exchange and at its beginning; the token file stays. After the user has signed in again
    everything continues."""
    place, second = service.place(layout=layout), new_store()
    exchange(store, place)
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        revoke(service)
        kept = service.tokens.read_bytes()
        save(store, "more")
        for act in (way.send, way.retrieve):
            with pytest.raises(llvs.errors.PermissionDeniedError, match="[Ss]ign in"):
                act()
        with llvs.Exchange(second, place) as other, pytest.raises(llvs.errors.PermissionDeniedError, match="[Ss]ign in"):
            other.retrieve()
        assert service.tokens.read_bytes() == kept
        sign_in(service)
        assert len(way.send().sent) == 1
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_token_that_another_program_renewed(service: Any, store: llvs.Store, new_store: Any, layout: str) -> None:
    """2: the old token is invalid, and the one that the other program has written is used, without a further renewal."""
    place, second = service.place(layout=layout), new_store()
    with llvs.Exchange(store, place) as way:
        way.send()
        for number in range(3):
            revoke(service)
            sign_in(service)
            if service.scheme == "cloudkit":
                found = json.loads(service.tokens.read_text())
                service.service.users = {f"ann~{number}/+="}
                service.write(service.tokens, {**found, "web_auth_token": f"ann~{number}/+="})
            kept = service.tokens.read_bytes()
            save(store, f"more {number}")
            way.retrieve()
            assert len(way.send().sent) == 1
            assert service.tokens.read_bytes() == kept
    assert service.scheme == "cloudkit" or service.service.accounts.refreshes == 0
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 6


@only_drives
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_made_by_a_user(service: Any, store: llvs.Store, new_store: Any, layout: str) -> None:
    """7: copies of the folder, and copies of its files under other names, are neither read nor written, and do not disturb the exchange."""
    place, second, tree = service.place(layout=layout), new_store(), service.service.tree
    exchange(store, place)

    def copy(node: Any, parent: str, name: str) -> None:
        made = tree.add(parent, name, node.data)
        if hasattr(service.service, "kinds"):
            service.service.kinds[made.id] = service.service.kinds[node.id]
        for child in list(tree.children(node.id)):
            copy(child, made.id, child.name)

    inner = folders(service, "versions" if layout == "interchange" else "log")[0]
    originals = {node.id: node.data for node in tree.children(inner.id)}
    for node in list(tree.children(inner.id)):
        for name in (f"{node.name} (1)", f"Copy of {node.name}", f"{node.name}.conflict"):
            copy(node, inner.id, name)
    top = folders(service, "notes")[0]
    copy(inner, inner.parent, f"{inner.name} (2)")
    copy(top, top.parent, "notes (1)")
    copies = {node.id: node.data for node in tree.below(folders(service, "notes (1)")[0].id)}
    with llvs.Exchange(second, place) as way:
        problems = way.retrieve().problems
        assert not problems or layout == "interchange"
        save(second, "theirs")
        way.send()
    with llvs.Exchange(store, place) as way:
        way.retrieve()
    assert ids(second) == ids(store) and len(ids(store)) == 4
    assert {node.id: node.data for node in tree.below(folders(service, "notes (1)")[0].id)} == copies
    assert {id: tree.nodes[id].data for id in originals} == originals


def test_records_copied_by_a_user(tmp_path: Path, store: llvs.Store, new_store: Any) -> None:
    """7, at CloudKit: a record under a longer name is a copy of the version that it names, and stays unchanged."""
    container, second = Container(tmp_path), new_store()
    exchange(store, container.place())
    zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
    for name, record in list(zone.records.items()):
        zone.records[f"{name}-copy"] = Record(f"{name}-copy", record.type, dict(record.fields), "9", 1, 1)
        zone.changes.append(f"{name}-copy")
    with llvs.Exchange(second, container.place()) as way:
        assert not way.retrieve().problems and ids(second) == ids(store)
        save(second, "theirs")
        assert len(way.send().sent) == 1
    with llvs.Exchange(store, container.place()) as way:
        way.retrieve()
    assert ids(second) == ids(store) and len(ids(store)) == 4
    container.close()


@only_drives
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_that_lie_in_the_bin(service: Any, store: llvs.Store, new_store: Any, layout: str) -> None:
    """8: files in the bin count as absent; single files are sent again. A file that is restored from the bin does no harm."""
    place, second, tree = service.place(layout=layout), new_store(), service.service.tree
    exchange(store, place)
    save(store, "later")
    exchange(store, place)
    thrown = files(service, "versions" if layout == "interchange" else "log")[:1]
    for node in thrown:
        if service.scheme == "gdrive":
            node.trashed = True
            tree.touch(node)
        else:
            tree.delete(node)
    for _ in range(2):
        with llvs.Exchange(store, place) as way:
            way.retrieve()
            way.send()
    if layout == "interchange":
        assert set(exchange(second, place).retrieved) == ids(store)
    for node in thrown:
        node.trashed = False
        if node.id in tree.nodes:
            tree.touch(node)
        elif not tree.find(node.parent, node.name):
            tree.nodes[node.id] = node
            tree.changes.append(node.id)
    third = new_store()
    for each in (store, second, third):
        exchange(each, place)
    assert ids(second) == ids(store) == ids(third) and len(ids(store)) == 4
