"""An encrypted remote as it was written once (`Tests/Vectors/packs/encrypted.json`): a file of each kind, a ring, a passphrase. A library
that cannot open them has changed the format."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from packs import encrypted
from packs.names import BASE, BLOB, LOG, decode, parse
from packs.reader import value

FROZEN: dict[str, Any] = json.loads((Path(__file__).resolve().parents[1] / "Vectors" / "packs" / "encrypted.json").read_text())
FILES = {name: base64.b64decode(data) for name, data in FROZEN["files"].items()}
LARGE = (bytes(range(256)) * (FROZEN["large"]["size"] // 256 + 1))[: FROZEN["large"]["size"]]


def named(start: str) -> list[str]:
    return [name for name in FILES if name.startswith(start)]


@pytest.mark.parametrize("how", ["passphrase", "identity"])
def test_the_reader_made_from_the_page_opens_it(how: str) -> None:
    if how == "identity":
        secret = encrypted.secret_of(FROZEN["identity"])
    else:
        (name,) = named("pack1/keys/pass-")
        said = json.loads(encrypted.open_age(FILES[name], passphrase=FROZEN["passphrase"].encode()))
        secret = encrypted.secret_of(said["identity"])
    (ring,) = named("pack1/keys/ring-")
    said, epochs = encrypted.open_ring(FILES[ring], [secret])
    assert [epoch.number for epoch in epochs] == [1] and {one["kind"] for one in said["members"]} == {"device", "passphrase"}
    store = decode(said["store"])
    assert store is not None
    (root,) = named("pack1/root-")
    assert encrypted.read_encrypted_root(root, FILES[root], epochs) == (store, "packed")
    kinds, found, values, content = set(), set(), {}, b""
    for name in named("pack1/log/") + named("pack1/base/") + sorted(named("pack1/blob/")):
        pack, parsed = encrypted.read_encrypted_pack(name, FILES[name], store, epochs), parse(name)
        assert parsed is not None and not pack.problems
        kinds.add(parsed.kind)
        if parsed.kind == BLOB:
            assert parsed.owner == encrypted.blob_digest(LARGE, epochs[0])
            content += pack.content
        for id, version in pack.versions.items():
            found.add(id)
            assert version.record is not None
            values |= {change.id: value(version.record, change) for change in version.record.changes.values() if change.blob is None}
    assert kinds == {LOG, BASE, BLOB} and found == set(FROZEN["versions"]) and content == LARGE
    texts = {id.decode() if isinstance(id, bytes) else id: data.hex() for id, data in values.items()}
    assert texts == FROZEN["values"]


@pytest.mark.parametrize("how", ["passphrase", "identity"])
def test_the_library_opens_it(tmp_path: Path, new_store: Callable[[], llvs.Store], how: str) -> None:
    for name, data in FILES.items():
        path = tmp_path / "place" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    store = new_store()
    with llvs.Exchange(store, llvs.Remote((tmp_path / "place").as_uri(), **{how: FROZEN[how]})) as way:
        result = way.retrieve()
        assert not result.problems and [version.id for version in reversed(list(store.history()))] == FROZEN["versions"]
        last = store.at(FROZEN["versions"][-1])
        assert {id: last[id].hex() for id in FROZEN["values"]} == FROZEN["values"]
        assert last[FROZEN["large"]["id"]] == LARGE
        # A new version can be sent.
        made = store.make_version(FROZEN["versions"][-1], insert={"more": b"1"})
        assert [version for version in way.send().sent] == [made.id]
