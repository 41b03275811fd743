"""Exchanges with CloudKit, through its stand-in: as a person and as a server, in both layouts, and failures."""

from __future__ import annotations

import base64
import io
import json
import random
import threading
import zipfile
from pathlib import Path
from typing import Any, Iterator, Optional

import llvs
import llvs.testing
import pytest
from cloudkit import DEFAULT_ZONE, Record, Zone
from clouds import exchange, ids, save
from containers import Container
from moved_clock import MovedClock
from service import Answer, Request

VECTORS = Path(__file__).resolve().parents[1] / "Vectors" / "interchange"
LAYOUTS = ["interchange", "packed"]
DATABASES = ["private", "public"]


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    container = Container(tmp_path)
    yield container
    container.server.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("replacing", [False, True])
def test_two_stores(container: Container, store: llvs.Store, new_store: Any, layout: str, database: str, replacing: bool) -> None:
    container.service.replacing = replacing
    place, second = container.place(database, layout), new_store()
    assert len(exchange(store, place).sent) == 3
    assert set(exchange(second, place).retrieved) == ids(store)
    save(second, "theirs")
    save(store, "ours")
    for each in (second, store, second):
        exchange(each, place)
    assert ids(store) == ids(second) and len(ids(store)) == 5
    if database == "private":
        found = json.loads(container.tokens.read_text())
        assert found["note"] == [1, "x"] and container.service.users == {found["web_auth_token"]}


def test_records_are_those_of_other_apps(container: Container, store: llvs.Store, tmp_path: Path) -> None:
    """The records have the fields of docs/cloud-drives.md, with the bytes that a folder would hold."""
    exchange(store, container.place())
    folder = tmp_path / "folder"
    with llvs.Exchange(store, folder) as way:
        way.send()
    for name, record in container.records().items():
        fields = {key: each["value"] for key, each in record.fields.items()}
        assert fields["storeIdentifier"] == "notes" and fields.keys() == {"storeIdentifier", "version", "valueChanges"}
        (version,) = json.loads(base64.b64decode(fields["version"]))
        assert {"version": version} == json.loads(next(folder.glob(f"versions/**/{name}*")).read_bytes())
        assert base64.b64decode(fields["valueChanges"]) == next(folder.glob(f"changes/**/{name}*")).read_bytes()


def test_records_that_another_app_made(container: Container, store: llvs.Store, new_store: Any) -> None:
    """Records of other stores and of other types are ignored. Changes may be in an asset, however small they are."""
    exchange(store, container.place())
    for zone in container.service.zones.values():
        for record in list(zone.records.values()):
            data = base64.b64decode(record.fields.pop("valueChanges")["value"])
            container.service.assets["r" + record.name] = data
            record.fields["valueChangesAsset"] = {"value": {"receipt": "r" + record.name, "size": len(data)}, "type": "ASSETID"}
            for name, type, of in (("x", "LLVS_Version", "others"), ("y", "Note", "notes"), ("notes_q_z", "LLVS_Pack", "notes")):
                other = Record(name + record.name, type, {"storeIdentifier": {"value": of, "type": "STRING"}}, "1", 0, 0)
                zone.records[other.name] = other
                zone.changes.append(other.name)
    second = new_store()
    assert set(exchange(second, container.place()).retrieved) == ids(store)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_at_once(container: Container, new_store: Any, layout: str) -> None:
    """Tokens that are valid for one request are read from one file, by one exchange after another."""
    container.service.replacing = True
    stores = [new_store(), new_store()]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(5):
                save(stores[number], f"{number}.{step}")
                # Records that the other exchange is about to send may be missing for a moment.
                with llvs.Exchange(stores[number], container.place(layout=layout)) as way:
                    way.retrieve()
                    way.send()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for each in stores * 2:
        exchange(each, container.place(layout=layout))
    assert ids(stores[0]) == ids(stores[1]) and len(ids(stores[0])) == 10


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_coordinator(container: Container, tmp_path: Path, layout: str) -> None:
    place = container.place(layout=layout)
    with llvs.Coordinator(tmp_path / "a", exchange=place) as a, llvs.Coordinator(tmp_path / "b", exchange=place) as b:
        a.save(insert={"x": b"1"})
        a.sync()
        b.sync()
        b.save(insert={"y": b"2"})
        b.sync()
        a.sync()
        assert a["y"] == b"2" and b["x"] == b"1"


#: Records that are not those of versions: names with a leading _, files of any bytes or size, files that are cut short, and snapshots of
#: any name; and cases that take 10,000 requests.
OTHERS = {"all version ids can be names", "unusual bytes are sent unchanged", "large files are complete",
          "complete files are not reported as unusable", "snapshot files are kept, replaced and deleted",
          "snapshot files are not listed as versions", "many files are listed and fetched"}  # fmt: skip


@pytest.mark.in_turn("database", "check")
@pytest.mark.parametrize("check", [check for check in llvs.testing.transport_checks() if check not in OTHERS])
@pytest.mark.parametrize("database", DATABASES)
def test_transport(container: Container, check: str, database: str) -> None:
    plan = llvs.testing.FaultPlan()
    assert llvs.testing.check_transport(lambda number: plan.transport(container.place(database, store=f"place{number}")), only=check)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_stale_lists(container: Container, store: llvs.Store, new_store: Any, layout: str) -> None:
    place, second = container.place(layout=layout), new_store()
    for stale in (0, 4, 1, 3, 0):
        container.service.stale = stale
        save(store, f"new{stale}")
        for each in (store, second, store):
            with llvs.Exchange(each, place) as way:
                way.retrieve()
                way.send()
    exchange(second, place)
    assert ids(second) == ids(store) and len(ids(store)) == 8


@pytest.mark.parametrize("layout", ["interchange", None])
def test_a_list_that_shows_nothing_yet(container: Container, store: llvs.Store, layout: Optional[str]) -> None:
    """The place is recognised, since records can be looked up by name. An emptied place is refused."""
    exchange(store, container.place())
    exchange(store, container.place(layout=layout))
    container.service.stale = 100
    new = save(store, "new")
    with llvs.Exchange(store, container.place(layout=layout)) as way:
        assert not way.retrieve().retrieved
        assert new.id in way.send().sent
        assert not way.retrieve().problems and not way.send().problems
        container.service.stale = 0
        assert not way.retrieve().problems and not way.send().sent
        assert set(container.records()) == ids(store)
        container.service.zones.clear()
        with pytest.raises(llvs.NotFoundError, match="is empty"):
            way.retrieve()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_values(container: Container, new_store: Any, layout: str) -> None:
    first, second = new_store(), new_store()
    data = random.Random(1).randbytes(9_000_000)
    version = save(first, "large", data)
    small = save(first, "middle", data[:600_000])
    exchange(first, container.place(layout=layout))
    assert container.service.assets
    exchange(second, container.place(layout=layout))
    assert second.at(version)["large"] == data and second.at(small)["middle"] == data[:600_000]


def test_many_large_values_packed(container: Container, new_store: Any) -> None:
    """More bytes than an asset can hold are sent in several packs."""
    first, second = new_store(), new_store()
    generator = random.Random(1)
    values = {f"v{number}": generator.randbytes(900_000) for number in range(40)}
    version = first.make_version(insert=values)
    for number in range(30):
        save(first, f"w{number}", generator.randbytes(700_000))
    exchange(first, container.place(layout="packed"))
    exchange(second, container.place(layout="packed"))
    assert ids(second) == ids(first)
    assert all(second.at(version)[name] == value for name, value in values.items())
    assert max(map(len, container.service.assets.values())) <= 12 << 20


def test_a_version_too_large_for_a_record(container: Container, store: llvs.Store, new_store: Any) -> None:
    """The version is a problem by its name, its descendants wait, and other versions are sent."""
    old = store.most_recent_head
    store.make_version(old, insert={"large": random.Random(1).randbytes(16 << 20)})
    store.make_version(old, insert={"small": b"1"})
    with llvs.Exchange(store, container.place()) as way:
        way.retrieve()
        sent = way.send()
    assert len(sent.sent) == 4 and len(sent.problems) == 1
    assert len(exchange(new_store(), container.place()).retrieved) == 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_requests(container: Container, store: llvs.Store, new_store: Any, layout: str) -> None:
    place = container.place(layout=layout)
    exchange(store, place)
    with llvs.Exchange(store, place) as way:

        def both() -> None:
            way.retrieve()
            way.send()

        both()
        asked = container.count(both)
        assert len(asked) == 1, asked
        for number in range(10):
            save(store, f"k{number}")
        asked = container.count(both)
        # Single files: an exchange that has just been opened looks for keys once, so that it does not send in clear to an encrypted place.
        assert len(asked) == (2 if layout == "packed" else 3), asked
    asked = container.count(lambda: exchange(new_store(), place))
    assert len(asked) <= 12, asked


@pytest.mark.parametrize("database", DATABASES)
def test_snapshots(container: Container, store: llvs.Store, new_store: Any, database: str) -> None:
    with llvs.Exchange(store, container.place(database)) as way:
        assert way.snapshot() is None
        for _ in range(2):
            way.put_snapshot()
            save(store, "more", random.Random(1).randbytes(7_000_000))
    assert len(container.records("LLVS_Pack")) >= 3 and not container.records("LLVS_SnapshotManifest")
    second = new_store()
    with llvs.Exchange(second, container.place(database)) as way:
        assert way.restore_snapshot() is not None
    assert len(ids(second)) == 4


def test_a_snapshot_that_another_app_put(container: Container, new_store: Any) -> None:
    """A snapshot in the records of docs/cloud-drives.md. It stays beside the library's own."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted((VECTORS / "store").rglob("*")):
            made.write(path, path.relative_to(VECTORS / "store").as_posix())
    chunks = [archive.getvalue()[at : at + 5_000] for at in range(0, len(archive.getvalue()), 5_000)]
    expected = json.loads((VECTORS / "expected.json").read_text())
    size = len(archive.getvalue())
    manifest = {"snapshotId": "2F0C6B8C-7C3F-4A3B-9E0C-0F6E7B1D2A34", "format": "zip-v1", "createdAt": 7e8,
                "latestVersionId": expected["mostRecentHead"], "versionCount": len(expected["versions"]),
                "chunkCount": len(chunks), "totalSize": size}  # fmt: skip
    zone = container.service.zones.setdefault(("production", "private", "notes"), Zone())
    field = {"value": base64.b64encode(json.dumps(manifest).encode()).decode(), "type": "BYTES"}
    name = "notes_snapshot_manifest"
    zone.records[name] = Record(name, "LLVS_SnapshotManifest", {"snapshotManifest": field}, "1", 0, 0)
    for index, chunk in enumerate(chunks):
        container.service.assets[f"chunk{index}"] = chunk
        fields = {"snapshotChunkIndex": {"value": index, "type": "INT64"},
                  "snapshotChunkData": {"value": {"receipt": f"chunk{index}", "size": len(chunk)}, "type": "ASSETID"}}  # fmt: skip
        zone.records[f"notes_snapshot_chunk_{index}"] = Record(f"notes_snapshot_chunk_{index}", "LLVS_SnapshotChunk", fields, "1", 0, 0)
    second = new_store()
    with llvs.Exchange(second, container.place()) as way:
        assert way.restore_snapshot() is not None
        assert ids(second) == set(expected["versions"])
        way.put_snapshot()
    assert len(container.records("LLVS_SnapshotChunk")) == len(chunks) and container.records("LLVS_SnapshotManifest")


def test_stores_in_one_zone(container: Container, store: llvs.Store, new_store: Any) -> None:
    for layout in LAYOUTS:
        exchange(store, container.place(layout=layout, store="one"))
        assert not exchange(new_store(), container.place(layout=layout, store="two")).retrieved


def test_a_place_that_must_exist(container: Container, store: llvs.Store) -> None:
    with llvs.Exchange(store, container.place(), create=False) as way:
        for work in (way.retrieve, way.send):
            with pytest.raises(llvs.NotFoundError, match="CloudKit"):
                work()
    assert not any(name == "notes" for _, _, name in container.service.zones)
    exchange(store, container.place())
    with llvs.Exchange(store, container.place(), create=False) as way:
        way.retrieve()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sync_tokens_that_are_void(container: Container, store: llvs.Store, new_store: Any, layout: str) -> None:
    place, second = container.place(layout=layout), new_store()
    exchange(store, place)
    with llvs.Exchange(second, place) as way:
        way.retrieve()
        container.service.void = 10_000
        save(store, "more")
        exchange(store, place)
        way.retrieve()
    assert ids(second) == ids(store)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_zone_that_goes_away(container: Container, store: llvs.Store, new_store: Any, layout: str) -> None:
    place = container.place(layout=layout)
    with llvs.Exchange(store, place) as way:
        way.send()
        for key in list(container.service.zones):
            if key[2] != DEFAULT_ZONE:
                del container.service.zones[key]
        save(store, "after")
        if layout == "packed":
            with pytest.raises(llvs.NotFoundError, match="emptied"):
                way.retrieve()
            return
        for _ in range(2):
            way.retrieve()
            way.send()
    assert set(exchange(new_store(), place).retrieved) == ids(store)


@pytest.mark.in_turn("layout", "kind", "when")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["rate limit", "server error", "cut answer", "lost answer"])
@pytest.mark.parametrize(("when", "replacing"), [("modify", False), ("lookup", False), ("zone", False), ("upload", False), ("", True)])
def test_faults(container: Container, store: llvs.Store, new_store: Any, layout: str, kind: str, when: str, replacing: bool) -> None:
    """Each fault is temporary. If a token is valid once and the answer with the new one is lost, the user has to sign in again."""
    container.service.replacing = replacing
    save(store, "large", random.Random(1).randbytes(1_000_000))
    place, second = container.place(layout=layout), new_store()
    container.service.inject(kind, 2, lambda request: when in request.path)
    for each in (store, second):
        for _ in range(4):
            try:
                exchange(each, place)
                break
            except llvs.errors.PermissionDeniedError:
                assert replacing and kind in ("lost answer", "cut answer")
                container.sign_in()
    assert ids(second) == ids(store) and len(ids(store)) == 4


@pytest.mark.parametrize("kind", ["rate limit", "server error"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_refusal_brings_a_token(container: Container, store: llvs.Store, new_store: Any, layout: str, kind: str) -> None:
    """The newest token is the valid one, also if it came with a refusal after which the request is repeated."""
    container.service.replacing = True
    place, inner, told = container.place(layout=layout), container.service.answer, []

    def answer(request: Request) -> Answer:
        # Every second request is refused, after the token of the one before was accepted.
        if request.parts[:1] == ["database"] and len(told) < 5 and len(container.service.requests) % 2:
            token = container.service._admit(request, request.parts[4])
            refused = container.service.rate_limited() if kind == "rate limit" else container.service.refusal(503, "TRY_AGAIN_LATER", "")
            refused.body = json.dumps({**json.loads(refused.body), "retryAfter": 0.1}).encode()
            assert token is not None
            refused.headers["X-Apple-CloudKit-Web-Auth-Token"] = token
            told.append(token)
            return refused
        return inner(request)

    container.service.answer = answer  # type: ignore[method-assign]
    exchange(store, place)
    assert told and json.loads(container.tokens.read_text())["web_auth_token"] in container.service.users
    assert set(exchange(new_store(), place).retrieved) == ids(store)


@pytest.mark.parametrize("kind", ["rate limit", "server error"])
def test_the_body_says_how_long_to_wait(container: Container, store: llvs.Store, kind: str, clock: MovedClock) -> None:
    """`retryAfter` in the body of an answer is observed like Retry-After: within a call, and by all exchanges of the account."""
    exchange(store, container.place())
    service, inner, wait = container.service, container.service.refusal, [2]
    service.refusal = lambda *given, **more: inner(*given, **{**more, "retryAfter": wait[0]})  # type: ignore[method-assign]
    with llvs.Exchange(store, container.place()) as way, llvs.Exchange(store, container.place()) as other:
        way.retrieve()
        usual = len(container.count(way.retrieve))
        service.inject(kind, 1)
        begun = clock.now()
        assert len(container.count(way.retrieve)) == usual + 1 and clock.now() - begun >= 2
        service.inject(kind, 1_000)
        wait[0], asked = 600, []
        for each in (way, other, way):
            before = len(service.requests)
            with pytest.raises(llvs.BusyError, match="no requests for (59[0-9]|600) more seconds"):
                each.retrieve()
            asked.append(len(service.requests) - before)
        assert asked == [1, 0, 0]


@pytest.mark.parametrize("damaged", ["", "version", "valueChanges"])
def test_what_another_app_wrote_stays(container: Container, store: llvs.Store, new_store: Any, tmp_path: Path, damaged: str) -> None:
    """Another app has stored the version meanwhile, in its own form and with a field of its own. That record stays, unless it is
    damaged."""
    exchange(store, container.place())
    version = save(store, "new")
    (tmp_path / "other").mkdir()
    other = Container(tmp_path / "other")
    exchange(store, other.place())
    fields = {key: dict(each) for key, each in other.records()[version.id].fields.items()}
    other.close()
    for key in ("version", "valueChanges"):
        fields[key]["value"] = base64.b64encode(json.dumps(json.loads(base64.b64decode(fields[key]["value"])), indent=1).encode()).decode()
    fields["appField"] = {"value": "of the other app", "type": "STRING"}
    zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
    if damaged:
        fields[damaged]["value"] = base64.b64encode(b"[1, {").decode()
    zone.records[version.id] = Record(version.id, "LLVS_Version", fields, "77", 1, 1)
    zone.changes.append(version.id)
    container.service.stale = 1
    with llvs.Exchange(store, container.place()) as way:
        assert way.send().sent == (version.id,)
    container.service.stale = 0
    now = zone.records[version.id]
    assert (now.tag == "77") == (damaged == "")
    assert damaged or now.fields == fields
    assert now.fields["appField"] == fields["appField"]
    assert set(exchange(new_store(), container.place()).retrieved) == ids(store)


def test_who_asks(container: Container, store: llvs.Store) -> None:
    container.service.expire_tokens()
    with llvs.Exchange(store, container.place()) as way, pytest.raises(llvs.errors.PermissionDeniedError, match="Sign in again"):
        way.retrieve()
    container.sign_in()
    exchange(store, container.place())
    for members, error in (({}, "neither"), ({"key_id": "key-1"}, "private_key"), ({"api_token": "x", "web_auth_token": 1}, "neither"),
                           (json.loads(container.key.read_text()), "public database")):  # fmt: skip
        container.write(container.tokens, members)
        with llvs.Exchange(store, container.place()) as way, pytest.raises(llvs.Error, match=error):
            way.retrieve()
    for key in ("", "none", "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"):
        container.write(container.key, {"key_id": "key-1", "private_key": key})
        with llvs.Exchange(store, container.place("public")) as way, pytest.raises(llvs.Error, match="private_key") as told:
            way.retrieve()
        assert "AAAA" not in str(told.value)


def test_secrets_are_not_shown(container: Container, store: llvs.Store) -> None:
    container.service.inject("nothing but HTML", 100)
    with llvs.Exchange(store, container.place()) as way, pytest.raises(llvs.TransportError, match="is not CloudKit") as told:
        way.retrieve()
    assert "ann" not in str(told.value) and "API" not in str(told.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_quota(container: Container, store: llvs.Store, new_store: Any, layout: str) -> None:
    place, second = container.place(layout=layout), new_store()
    exchange(store, place)
    container.service.quota = 100
    save(store, "more", random.Random(1).randbytes(1_000_000))
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        with pytest.raises(llvs.StorageError, match="full"):
            way.send()
    assert len(exchange(second, place).retrieved) == 3
    container.service.quota = 1 << 50
    exchange(store, place)
    exchange(second, place)
    assert ids(second) == ids(store)


BAD = ["cloudkit:", "cloudkit://", "cloudkit://c/production", "cloudkit://c/production/private", "cloudkit://c/prod/private?store=a",
       "cloudkit://c/production/mine?store=a", "cloudkit://c/production/private?store=_a", "cloudkit://c/production/private?store=a/b",
       "cloudkit://c/production/public?store=a&zone=b", "cloudkit://c/production/private?store=a&zone=_b",
       "cloudkit://c/production/private?store=a&key=b", "cloudkit://c/production/private?store=a&rate=0",
       "cloudkit://c/production/private?store=a&endpoint=http://example.org", "cloudkit://../production/private?store=a"]  # fmt: skip


@pytest.mark.parametrize("url", BAD)
def test_addresses_that_are_none(container: Container, store: llvs.Store, url: str) -> None:
    with pytest.raises(ValueError):
        llvs.Exchange(store, llvs.Remote(url, token_file=container.tokens))


def test_it_needs_a_file_of_tokens(container: Container, store: llvs.Store) -> None:
    with pytest.raises(ValueError, match="token"):
        llvs.Exchange(store, llvs.Remote(container.url()))


HOSTILE: list[Any] = [
    b"[]", b"{}", b'{"records":1}', b'{"zones":[]}', b'{"zones":[{"records":[{}],"moreComing":true,"syncToken":"1"}]}',
    b'{"zones":[{"records":[{"recordName":"../../x","recordType":"LLVS_Version","fields":{"storeIdentifier":'
    b'{"value":"notes"}}}],"syncToken":"1"}]}',
    b'{"zones":[{"records":[{"recordName":"notes_l_../x","recordType":"LLVS_Pack","fields":{"size":{"value":-1}}}],"syncToken":"1"}]}',
    b'{"records":[{"recordName":"x","fields":{"version":{"value":"!!"}}}]}', b'{"serverErrorCode":"' + b"x" * 10_000 + b'"}',
    b'{"records":[{"recordName":"notes_r_x","fields":{"asset":{"value":{"downloadURL":"file:///etc/passwd"}}}}]}',
    b'{"retryAfter":1e300,"serverErrorCode":"THROTTLED"}', b'{"tokens":[{"url":"file:///etc/passwd"}]}', b"\xff" * 100,
]  # fmt: skip


@pytest.mark.in_turn("layout", "answer", "when")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("answer", HOSTILE)
@pytest.mark.parametrize("when", ["changes", "lookup", "modify", "upload"])
def test_hostile_answers(
    container: Container, store: llvs.Store, new_store: Any, layout: str, answer: bytes, when: str, monkeypatch: Any
) -> None:
    save(store, "large", random.Random(1).randbytes(1_000_000))
    place = container.place(layout=layout)
    if when != "modify":
        exchange(new_store() if when == "upload" else store, place)
    inner = container.service.answer

    def odd(request: Request) -> Answer:
        return Answer(200, answer, {"Content-Type": "application/json"}) if when in request.path else inner(request)

    monkeypatch.setattr(container.service, "answer", odd)
    for each in (new_store(), store):
        with llvs.Exchange(each, place) as way:
            for work in (way.retrieve, way.send):
                try:
                    work()
                except llvs.Error as error:
                    assert "ann/" not in str(error)
    monkeypatch.setattr(container.service, "answer", inner)
    if b"retryAfter" in answer:
        # All exchanges of the account in this process pause, for a day at most.
        with pytest.raises(llvs.BusyError, match="no requests for 8[0-9]{4} more"):
            exchange(store, place)
        return
    second = new_store()
    for each in (store, second):
        exchange(each, place)
    assert ids(second) == ids(store)


def test_a_zone_shared_by_another_user(container: Container, store: llvs.Store, new_store: Any) -> None:
    """A zone of another user, given by the owner's record name. The library never creates it."""
    second, shared = new_store(), container.place("shared", owner="_0a1b")
    exchange(store, container.place())
    stranger = new_store()
    save(stranger, "x")
    with llvs.Exchange(stranger, shared) as way:
        assert not way.retrieve().retrieved
        with pytest.raises(llvs.NotFoundError):
            way.send()
    container.service.shares.add(("_0a1b", "notes"))
    assert set(exchange(second, shared).retrieved) == ids(store)
    save(second, "theirs")
    assert len(exchange(second, shared).sent) == 1
    exchange(store, container.place())
    assert ids(store) == ids(second) and len(ids(store)) == 4
    with llvs.Exchange(new_store(), container.place("shared", owner="_other")) as way:
        assert not way.retrieve().retrieved
    for url in (container.url("shared"), container.url("private", owner="_0a1b"), container.url("shared", owner="_0a1b", zone="")):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            llvs.Exchange(second, llvs.Remote(url, token_file=container.tokens))


#: The errors of a single record.
REFUSALS = [("ACCESS_DENIED", "PERMISSION"), ("INTERNAL_ERROR", "TRANSPORT"), ("BAD_REQUEST", "TRANSPORT")]


def refuse_lookup(container: Container, patch: Any, bad: str, code: str) -> None:
    inner = container.service._do_records_lookup

    def lookup(*given: Any) -> dict[str, Any]:
        found = inner(*given)["records"]
        told = {"recordName": bad, "serverErrorCode": code, "reason": "x"}
        return {"records": [told if each["recordName"] == bad else each for each in found]}

    patch.setattr(container.service, "_do_records_lookup", lookup)


def refuse_modify(container: Container, patch: Any, is_bad: Any, code: str) -> None:
    inner = container.service._operate

    def operate(zone: Zone, operation: Any, request: Request) -> dict[str, Any]:
        name = operation["record"]["recordName"]
        return {"recordName": name, "serverErrorCode": code, "reason": "x"} if is_bad(name) else inner(zone, operation, request)

    patch.setattr(container.service, "_operate", operate)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("said, code", REFUSALS)
def test_one_record_is_not_given(container: Container, new_store: Any, layout: str, said: str, code: str, monkeypatch: Any) -> None:
    """The record is a problem by its name, and the others are received."""
    place, store, made = container.place(layout=layout), new_store(), set()
    for number in range(4):
        made.add(store.make_version(insert={"k": b"%d" % number}, root=True).id)
        exchange(store, place)
    bad = [name for name in container.records("LLVS_Version" if layout == "interchange" else "LLVS_Pack") if "_r_" not in name][1]
    second, told = new_store(), bad.replace("notes_l_", "pack1/log/")
    with llvs.Exchange(second, place) as way:
        with monkeypatch.context() as patch:
            refuse_lookup(container, patch, bad, said)
            for count in (3, 0):
                got = way.retrieve()
                assert len(got.retrieved) == count and [each.name for each in got.problems] == [told]
                assert got.problems[0].code == llvs.ErrorCode[code] and bad in got.problems[0].reason
        assert len(way.retrieve().retrieved) == 1 and ids(second) == made


@pytest.mark.parametrize("said, code", REFUSALS)
def test_one_record_is_not_taken(container: Container, new_store: Any, said: str, code: str, monkeypatch: Any) -> None:
    """The record is a problem by its name. The others of the same request, and those of later requests, are sent."""
    store, place, seen = new_store(), container.place(), []
    made = {store.make_version(insert={"k": b"%d" % number}, root=True).id for number in range(450)}

    def is_first(name: str) -> bool:
        seen.append(name)
        return name == seen[0]

    with llvs.Exchange(store, place) as way:
        with monkeypatch.context() as patch:
            refuse_modify(container, patch, is_first, said)
            way.retrieve()
            sent = way.send()
            assert [each.name for each in sent.problems] == [seen[0]] and set(sent.sent) == made - {seen[0]}
            assert sent.problems[0].code == llvs.ErrorCode[code] and seen[0] in sent.problems[0].reason
            assert set(container.records()) == made - {seen[0]}
        assert way.send().sent == (seen[0],)
    assert set(exchange(new_store(), place).retrieved) == made


def test_what_builds_on_a_record_that_is_not_taken(container: Container, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    exchange(store, container.place())
    first = save(store, "first")
    second = save(store, "second")
    other = store.make_version(insert={"z": b"1"}, root=True)
    refuse_modify(container, monkeypatch, lambda name: name == first.id, "ACCESS_DENIED")
    with llvs.Exchange(store, container.place()) as way:
        way.retrieve()
        sent = way.send()
    assert {each.name for each in sent.problems} == {first.id, second.id} and sent.sent == (other.id,)


def test_nothing_may_be_written(container: Container, new_store: Any, monkeypatch: Any) -> None:
    """A missing permission to make records is reported once."""
    store = new_store()
    for number in range(10):
        store.make_version(insert={"k": b"%d" % number}, root=True)
    refuse_modify(container, monkeypatch, lambda name: True, "ACCESS_DENIED")
    with llvs.Exchange(store, container.place()) as way:
        way.retrieve()
        with pytest.raises(llvs.errors.PermissionDeniedError, match="Check the roles"):
            way.send()


STOPS = [
    ("THROTTLED", llvs.BusyError),
    ("AUTHENTICATION_REQUIRED", llvs.errors.PermissionDeniedError),
    ("QUOTA_EXCEEDED", llvs.StorageError),
    ("TRY_AGAIN_LATER", llvs.TransportError),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("said, error", [*STOPS, ("ZONE_NOT_FOUND", llvs.Error)])
def test_what_is_said_of_one_record_and_is_of_all(
    container: Container, new_store: Any, layout: str, said: str, error: type[Exception], monkeypatch: Any
) -> None:
    store, place = new_store(), container.place(layout=layout)
    for number in range(4):
        store.make_version(insert={"k": b"%d" % number}, root=True)
        exchange(store, place)
    if said != "ZONE_NOT_FOUND":
        bad = [name for name in container.records("LLVS_Version" if layout == "interchange" else "LLVS_Pack") if "_r_" not in name][1]
        with monkeypatch.context() as patch, llvs.Exchange(new_store(), place) as way:
            refuse_lookup(container, patch, bad, said)
            with pytest.raises(error):
                way.retrieve()
    save(store, "new")
    with llvs.Exchange(store, place) as way:
        way.retrieve()
        refuse_modify(container, monkeypatch, lambda name: True, said)
        with pytest.raises(error):
            way.send()


def test_what_cannot_be_looked_at_is_not_written_over(container: Container, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """If a name is in use and its record cannot be read now, the record is not overwritten: it may be whole."""
    exchange(store, container.place())
    version = save(store, "new")
    fields = {"storeIdentifier": {"value": "notes", "type": "STRING"}, "appField": {"value": "of another app", "type": "STRING"}}
    zone = next(zone for key, zone in container.service.zones.items() if key[2] == "notes")
    zone.records[version.id] = Record(version.id, "LLVS_Version", fields, "77", 1, 1)
    refuse_lookup(container, monkeypatch, version.id, "INTERNAL_ERROR")
    with llvs.Exchange(store, container.place()) as way:
        sent = way.send()
    assert not sent.sent and [each.name for each in sent.problems] == [version.id]
    assert zone.records[version.id].tag == "77"
