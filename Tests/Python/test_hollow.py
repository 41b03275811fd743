"""Values whose bytes are gone by intent, in stores that a writer of docs/format.md made from it alone."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path

import format_reader as reader
import llvs
import pytest
from format_author import make_hollow
from waiting import GUARD

GONE = {"empty": b"", "large": b"large " * 20_000, "small": b"small", "vast": random.Random(1).randbytes((1 << 20) + 5)}


def at(place: Path, layout: str) -> llvs.Remote:
    place.mkdir(exist_ok=True)
    return llvs.Remote(place.as_uri(), layout=layout)  # type: ignore[arg-type]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, llvs.Version, llvs.Version]:
    """A store of two versions. The values of GONE that the first one stored are gone."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        first = store.make_version(insert={**GONE, **{f"other {number:02}": b"%d" % number for number in range(70)}})
        last = store.make_version(first, update={"other 01": b"new"})
    assert make_hollow(path, lambda version, id: version == first.id and id.decode() in GONE) == len(GONE)
    return path, first, last


def test_the_vectors_are_what_the_page_says() -> None:
    subprocess.run([sys.executable, str(Path(__file__).parents[1] / "Vectors/hollow.py"), "--check"], check=True)


def test_the_vector_of_the_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/format.md").read_text()
    entry = bytes.fromhex(page.split("<!-- vector: hollow -->", 1)[1].split("\n\n")[1])
    with llvs.Store(tmp_path / "store") as store:
        version = store.make_version(insert={"x": b"hello", "y": b"1"})
    whole = next(record for path in (tmp_path / "store/segments").glob("*.seg") for record, _ in segment(path))
    make_hollow(tmp_path / "store", lambda _, id: id == b"x")
    record = next(record for path in (tmp_path / "store/segments").glob("*.seg") for record, _ in segment(path))
    assert record[1] == whole[1] | 1 and record.count(entry) == 1 and whole.count(entry) == 0
    assert b"hello" in whole and b"hello" not in record and len(record) == len(whole) + 32 - 8 - len(b"hello")
    with llvs.Store(tmp_path / "store") as store:
        assert store.value("y", at=version).data == b"1"  # type: ignore[union-attr]
        with pytest.raises(llvs.errors.ForgottenError):
            store.value("x", at=version)


def segment(path: Path) -> list[tuple[bytes, bool]]:
    """The records of a segment that is whole."""
    found = reader.read_segment(path)
    assert found is not None
    return found.records


def test_the_page_and_the_engine_agree(made: tuple[Path, llvs.Version, llvs.Version]) -> None:
    path, first, last = made
    found = reader.read_store(path)
    assert not found.problems and set(found.versions) == {first.id, last.id}
    assert found.versions[first.id].hollow == {id.encode() for id in GONE}
    with llvs.Store(path) as store:
        assert set(store.history()) == {first, last}
        report = store.verify()
        assert (report.damages, report.unfinished, report.pending) == ((), (), 0)
        assert (report.versions, report.values, report.forgotten, report.vouched) == (2, 71, len(GONE), 2)


def test_reading(made: tuple[Path, llvs.Version, llvs.Version]) -> None:
    path, first, last = made
    with llvs.Store(path) as store:
        for id, data in GONE.items():
            with pytest.raises(llvs.errors.ForgottenError) as caught:
                store.value(id, at=last)
            error = caught.value
            assert error.code == llvs.ErrorCode.FORGOTTEN == -84 and (error.value_id, error.version_id) == (id, first.id)
            assert isinstance(error, llvs.errors.GoneError) and not isinstance(error, llvs.StorageError)
            assert store.reference(id, at=last) == (id, first.id) and store.value_size(id, at=last) == len(data)
            with store.open_value(id, at=last) as file:
                if data:
                    with pytest.raises(llvs.errors.ForgottenError):
                        file.read(1)
        assert store.value("other 01", at=last).data == b"new"  # type: ignore[union-attr]


def test_reading_many(made: tuple[Path, llvs.Version, llvs.Version]) -> None:
    path, first, last = made
    with llvs.Store(path) as store:
        values = store.values(["other 02", "small", "nothing", "vast", "other 03"], at=last)
        assert [value and value.id for value in values] == ["other 02", "small", None, "vast", "other 03"]
        for value in values:
            if value is None or value.id.startswith("other"):
                assert value is None or type(value) is llvs.Value and value.data == b"%d" % int(value.id[6:])
                continue
            assert isinstance(value, llvs.store.ForgottenValue) and isinstance(value, llvs.Value) and value.stored_version == first.id
            assert value.reference == (value.id, first.id) and pickle.loads(pickle.dumps(value)) == value
            with pytest.raises(llvs.errors.ForgottenError) as caught:
                value.data
            assert (caught.value.value_id, caught.value.version_id) == (value.id, first.id)
        found = store.value_by_reference(llvs.store.Reference("small", first.id))
        assert isinstance(found, llvs.store.ForgottenValue)
        # All ids are listed, and what has bytes can be read.
        state = store.at(last)
        assert len(state) == 74 and [id for id in state if not id.startswith("other")] == sorted(GONE)
        assert len(list(state.references())) == 74
        with pytest.raises(llvs.errors.ForgottenError) as caught:
            list(state.items())
        assert caught.value.value_id == "empty" and caught.value.version_id == first.id
        assert len(list(state.prefix("other").items())) == 70
        changes = {change.id: change for change in store.changes(first)}
        assert changes["small"].data is None and changes["small"].reference == ("small", first.id) and changes["other 03"].data == b"3"


def test_sizes_and_salvage(made: tuple[Path, llvs.Version, llvs.Version], tmp_path: Path) -> None:
    path, first, last = made
    with llvs.Store(path) as store:
        report = store.size()
        kinds = {row.name: row for row in report.by_kind}
        hollow = kinds["hollow"]
        assert (hollow.values, hollow.value_bytes, hollow.bytes) == (len(GONE), sum(map(len, GONE.values())), 0)
        assert report.values == kinds["value"].values == 71 and kinds["blob"].bytes == 0
        assert sum(row.bytes for row in report.by_kind) == report.bytes
    salvaged = llvs.Store.salvage(path, tmp_path / "salvaged")
    assert not salvaged.damages and salvaged.versions == 2
    with llvs.Store(tmp_path / "salvaged") as store:
        assert set(store.history()) == {first, last} and store.verify().forgotten == len(GONE)
    with llvs.Store(path) as store:
        store.compact()
        store.make_version(last, update={"small": b"a new value"})
    with llvs.Store(path) as store:
        assert store.value("small", at=store.heads()[0]).data == b"a new value"  # type: ignore[union-attr]
        assert store.verify().forgotten == len(GONE)


@pytest.mark.parametrize("layout", ("packed", "interchange"))
def test_others_get_it_without_the_bytes(made: tuple[Path, llvs.Version, llvs.Version], tmp_path: Path, layout: str) -> None:
    path, first, last = made
    with llvs.Store(path) as store, llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "third") as third:
        with llvs.Exchange(store, at(tmp_path / "place", layout)) as exchange:
            sent = exchange.send()
        assert set(sent.versions) == {first.id, last.id} and not sent.problems
        with llvs.Exchange(other, at(tmp_path / "place", layout)) as exchange:
            received = exchange.retrieve()
        assert set(received.versions) == {first.id, last.id} and not received.problems
        with llvs.Exchange(store, at(tmp_path / "snapshot", "interchange")) as exchange:
            exchange.put_snapshot()
        with llvs.Exchange(third, at(tmp_path / "snapshot", "interchange")) as exchange:
            exchange.restore_snapshot()
        for copy in (other, third):
            report, own = copy.verify(), store.verify()
            assert (report.forgotten, report.vouched, report.damages) == (own.forgotten, own.vouched, ()) == (len(GONE), 2, ())
            assert copy.value("other 01", at=last).data == b"new"  # type: ignore[union-attr]
            for id, data in GONE.items():
                assert copy.value_size(id, at=last) == len(data)
                with pytest.raises(llvs.errors.ForgottenError):
                    copy.value(id, at=last)


@pytest.mark.parametrize("layout", ("packed", "interchange"))
def test_what_others_have_already_is_built_on(tmp_path: Path, layout: str) -> None:
    """After a value became hollow on one device, devices that have the version exchange as before, both ways."""
    path, place = tmp_path / "store", tmp_path / "place"
    with llvs.Store(path) as store, llvs.Store(tmp_path / "other") as other:
        first = store.make_version(insert={"secret": b"secret", "note": b"1"})
        with llvs.Exchange(store, at(place, layout)) as exchange:
            exchange.send()
        with llvs.Exchange(other, at(place, layout)) as exchange:
            assert list(exchange.retrieve().versions) == [first.id]
    assert make_hollow(path, lambda version, id: id == b"secret") == 1
    with llvs.Store(path) as store, llvs.Store(tmp_path / "other") as other:
        mine = store.make_version(first, update={"note": b"2"})
        with llvs.Exchange(store, at(place, layout)) as exchange:
            sent = exchange.send()
        assert list(sent.versions) == [mine.id] and not sent.problems
        with llvs.Exchange(other, at(place, layout)) as exchange:
            assert list(exchange.retrieve().versions) == [mine.id]
            theirs = other.make_version(mine, update={"note": b"3"})
            exchange.send()
        with llvs.Exchange(store, at(place, layout)) as exchange:
            result = exchange.verify()
        assert list(result.versions) == [theirs.id] and not result.problems and not result.repaired
        assert store.value("note", at=theirs).data == b"3"  # type: ignore[union-attr]
        with pytest.raises(llvs.errors.ForgottenError):
            store.value("secret", at=theirs)
        assert other.value("secret", at=theirs).data == b"secret"  # type: ignore[union-attr]


def edited(text: bytes, number: int) -> bytes:
    at = 100 * number
    return text[:at] + b"edit %d" % number + text[at + 10 :]


def texts(path: Path, steps: int) -> tuple[list[llvs.Version], list[bytes]]:
    """Makes a store with versions of one long text."""
    text = b" ".join(b"%d" % (number * 7919 % 1000) for number in range(3000))
    versions: list[llvs.Version] = []
    written = []
    with llvs.Store(path) as store:
        for number in range(steps):
            text = edited(text, number)
            written.append(text)
            versions.append(store.make_version(*versions[-1:], update={"text": text}))
    return versions, written


def test_a_pack_with_a_difference_from_it(tmp_path: Path) -> None:
    """The base of a difference is hollow here, and whole in the pack that came."""
    versions, written = texts(tmp_path / "other", 3)
    with llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "store") as store:
        assert len(store.unpack(other.pack()).versions) == 3
    assert make_hollow(tmp_path / "store", lambda *_: True) == 3
    with llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "store") as store:
        text = written[-1]
        # The base is far before it in the pack.
        for number in range(1_100):
            versions.append(other.make_version(versions[-1], update={"other": b"%d" % number}))
        for number in range(3, 6):
            text = edited(text, number)
            versions.append(other.make_version(versions[-1], update={"text": text}))
        with llvs.Exchange(other, at(tmp_path / "place", "packed")) as exchange:
            assert len(exchange.send().versions) == 1_106
        with llvs.Exchange(store, at(tmp_path / "place", "packed")) as exchange:
            received = exchange.retrieve()
        assert not received.problems and set(received.versions) == {version.id for version in versions[3:]}
        assert store.value("text", at=versions[-1]).data == text  # type: ignore[union-attr]
        assert (store.verify().forgotten, store.verify().values) == (3, 1_103)


def test_a_link_with_a_difference_from_it(tmp_path: Path) -> None:
    """The first connection finds that the base has no bytes on this side; the next one brings whole values."""
    versions, written = texts(tmp_path / "other", 3)
    pairing = llvs.live.make_pairing()
    with llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "store") as store:
        assert len(store.unpack(other.pack()).versions) == 3
    assert make_hollow(tmp_path / "store", lambda *_: True) == 3
    with llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "store") as store:
        text = edited(written[-1], 3)
        last = other.make_version(versions[-1], update={"text": text})
        with llvs.live.Listener(("127.0.0.1", 0)) as listener:
            listener.offer(other, pairing)
            for _ in range(2):
                with llvs.live.connect(store, listener.address, pairing) as peer:
                    assert peer.wait(GUARD)
            assert store.value("text", at=last).data == text  # type: ignore[union-attr]


def test_streams_and_links(made: tuple[Path, llvs.Version, llvs.Version], tmp_path: Path) -> None:
    path, first, last = made
    pairing = llvs.live.make_pairing()
    with llvs.Store(path) as store, llvs.Store(tmp_path / "other") as other, llvs.Store(tmp_path / "third") as third:
        packed = store.pack()
        assert not packed.result.problems and set(other.unpack(packed).versions) == {first.id, last.id}
        with llvs.live.Listener(("127.0.0.1", 0)) as listener:
            listener.offer(other, pairing)
            with llvs.live.connect(third, listener.address, pairing) as peer:
                assert peer.wait(GUARD)
        for copy in (other, third):
            assert set(copy.history()) == {first, last} and copy.verify().forgotten == len(GONE)
            with pytest.raises(llvs.errors.ForgottenError):
                copy.value("vast", at=last)
