"""Packs that the program carries: `Store.pack` and `Store.unpack`, and streams as docs/pack-format.md describes them."""

from __future__ import annotations

import hashlib
import io
import struct
import subprocess
from pathlib import Path
from random import Random
from typing import Any, Iterator

import pytest

import llvs
from packs import names, reader, records, stream, writer
from sampling import sample

MIB = 1 << 20
STORE, SALT, WRITER = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 40))


@pytest.fixture(params=["file", "sqlite", "memory"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(kind: str, path: Path) -> llvs.Store:
    return llvs.Store(None if kind == "memory" else path, storage=kind, durability="normal")


def noise(size: int, seed: int = 1) -> bytes:
    return Random(seed).randbytes(size)


def history(store: llvs.Store) -> dict[str, dict[str, bytes]]:
    """A little of everything; the state at each version."""
    one = store.make_version(insert={"a": b"1", "b": b"text " * 500, "empty": b""}, metadata={"author": "ann"})
    two = store.make_version(one, update={"a": b"2"}, remove=["empty"], branch="draft")
    three = store.make_version(one, insert={"large": noise(3 * MIB), "edge": noise(MIB)})
    merged = store.merge(two, three, arbiter=llvs.MostRecentChange())
    store.make_version(merged, insert={f"many/{n}": b"x" * 30 for n in range(1000)}, id="named")
    return states(store)


def states(store: llvs.Store) -> dict[str, dict[str, bytes]]:
    return {version.id: dict(store.at(version).items()) for version in store.history()}


def test_what_is_lacking_goes_over(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path / "one") as one, opened(kind, tmp_path / "two") as two:
        expected = history(one)
        data = one.pack()
        assert isinstance(data, bytes) and set(data.result.sent) == set(expected) and not data.result.problems
        result = two.unpack(data)
        assert result.retrieved == data.result.sent and not result.problems and not two.unpack(data).retrieved
        assert states(two) == expected
        assert not two.verify().damages and list(two.history()) == list(one.history())
        # Received versions count as known.
        assert one.pack(have=two.heads()).result.sent == ()
        version = two.make_version("named", update={"a": b"3"})
        back = two.pack(have=[*one.heads(), "unknown"])
        assert back.result.sent == (version.id,) and len(back) < 1000
        assert one.unpack(back).retrieved == (version.id,) and states(one) == states(two)


def test_between_kinds_of_storage(tmp_path: Path) -> None:
    """Large values lie in files of their own in one, and in the records of the other."""
    with opened("file", tmp_path / "one") as one, opened("sqlite", tmp_path / "two") as two, opened("file", tmp_path / "three") as three:
        expected = history(one)
        two.unpack(one.pack())
        three.unpack(two.pack())
        assert states(two) == states(three) == expected
        assert two.pack().result.sent == one.pack().result.sent


def test_files_and_pieces(tmp_path: Path) -> None:
    with opened("memory", tmp_path) as one:
        history(one)
        path = tmp_path / "history.pack"
        result = one.pack(to=path)
        assert result.sent and not result.retrieved and [file.name for file in tmp_path.iterdir()] == [path.name]
        memory = io.BytesIO()
        assert one.pack(to=memory).sent == result.sent and abs(len(memory.getvalue()) - path.stat().st_size) < 100
        data = path.read_bytes()

        def pieces() -> Iterator[bytes]:
            for at in range(0, len(data), 70_001):
                yield data[at : at + 70_001]

        for source in (path, str(path), data, memoryview(data), pieces(), io.BytesIO(data + b"more")):
            with opened("memory", tmp_path) as two:
                assert two.unpack(source).retrieved == result.sent
            if isinstance(source, io.BytesIO):
                assert source.read() == b"more"


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with opened("memory", tmp_path) as one:
        history(one)
        path = tmp_path / "history.pack"
        path.write_bytes(b"before")
        with pytest.raises(llvs.CancelledError):
            one.pack(to=path, progress=lambda progress: progress.completed < 3)
        assert path.read_bytes() == b"before" and [file.name for file in tmp_path.iterdir()] == [path.name]

        class Full:
            def write(self, data: bytes) -> None:
                raise OSError(28, "full")

        with pytest.raises(OSError, match="full"):
            one.pack(to=Full())

        def broken() -> Iterator[bytes]:
            yield one.pack()[:50]
            raise KeyError("gone")

        with pytest.raises(KeyError, match="gone"):
            one.unpack(broken())


def read_by_python(data: bytes) -> dict[str, dict[bytes, bytes]]:
    """Returns what each version of a stream stored, by the reader made from the page."""
    result: dict[str, dict[bytes, bytes]] = {}
    for pack, parts in stream.packs(data):
        assert not pack.problems
        for id, version in pack.versions.items():
            blobs = version.blobs
            record = version.record
            if record is None:
                assert version.outside is not None
                inside = reader.read_form0(id, version.identity8, stream.content(version.outside, parts))
                record, blobs = inside.record, inside.blobs
            assert record is not None
            large = {blob.digest: stream.content(blob, parts) for blob in blobs}
            result[id] = {
                key: large[change.blob] if change.blob is not None else reader.value(record, change)
                for key, change in record.changes.items()
                if change.kind in (1, 2)
            }
    return result


def stored(store: llvs.Store) -> dict[str, dict[bytes, bytes]]:
    return {
        version.id: {
            change.id.encode(): change.data
            for change in store.changes(version)
            if change.kind in ("insert", "update") and change.data is not None
        }
        for version in store.history()
    }


def test_the_reader_from_the_page_reads_what_the_library_writes(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path / "one") as one:
        history(one)
        assert read_by_python(one.pack()) == stored(one)


#: The number of values, and their size. One kind of storage with blobs and one without are sufficient.
TOO_LARGE = [(90, 90_000, "sqlite"), (1_100, 4_500, "file")]
ALL_TOO_LARGE = [(count, size, kind) for count, size in ((90, 90_000), (60_000, 60)) for kind in ("file", "sqlite", "memory")]


@pytest.mark.parametrize("count, size, kind", sample(TOO_LARGE, ALL_TOO_LARGE))
def test_versions_that_are_too_large_for_a_pack(count: int, size: int, kind: str, tmp_path: Path) -> None:
    """The largest values become blobs; of small ones there are too many, and the version lies in a blob itself."""
    values = {f"{n:06}": noise(size, n) for n in range(count)}
    with opened(kind, tmp_path / "one") as one, opened(kind, tmp_path / "two") as two:
        base = one.make_version(insert=values)
        one.make_version(base, update={"last": b"1"}, insert={"twin": noise(2 * MIB), "twin of it": noise(2 * MIB)})
        data = one.pack()
        outside = [version.outside for pack, _ in stream.packs(data) for version in pack.versions.values() if version.outside is not None]
        assert len(outside) == (size < 10_000)
        assert read_by_python(data) == stored(one)
        assert len(two.unpack(data).retrieved) == 2 and states(two) == states(one) and not two.verify().damages


def test_a_value_of_several_parts(tmp_path: Path) -> None:
    with opened("file", tmp_path / "one") as one, opened("file", tmp_path / "two") as two:
        base = one.make_version(insert={"film": noise(8 * MIB) + noise(5 * MIB, 2), "exact": noise(8 * MIB)})
        # Another version has the same bytes, in a file of its own.
        one.make_version(base, insert={"copy": noise(8 * MIB)})
        data = one.pack()
        assert read_by_python(data) == stored(one)
        two.unpack(data)
        assert states(two) == states(one) and not two.verify().damages
        blobs = [path for path in (tmp_path / "two").rglob("*") if path.is_file() and path.stat().st_size > MIB]
        assert len(blobs) == 3


def simple_stream(*files: writer.File) -> bytes:
    return stream.write(STORE, files)


def test_the_library_reads_what_python_writes(tmp_path: Path) -> None:
    value = noise(2 * MIB)
    digest = hashlib.sha256(value).digest()[:16]
    part = writer.blob_part(STORE, SALT, WRITER, digest, 0, value)
    blob = records.reference(value, [hashlib.sha256(part[1]).digest()[:16]])
    first = records.simple("A", (), b"hello")
    large = records.made(records.record("B", ("A",), 2.5, blobs={b"large": blob}), [blob])
    inside = writer.blob_part(STORE, SALT[::-1], WRITER, hashlib.sha256(first.payload).digest()[:16], 0, first.payload)
    outside = records.outside(first, [hashlib.sha256(inside[1]).digest()[:16]])
    one = writer.pack(STORE, SALT, WRITER, 1, 1, [outside])
    one_id, two_id = (hashlib.sha256(file[1]).digest()[:16] for file in (one, part))
    two = writer.pack(STORE, SALT, WRITER, 2, 2, [large], link=one_id)
    with opened("file", tmp_path / "store") as store:
        result = store.unpack(simple_stream(inside, one, part, two))
        assert result.retrieved == ("A", "B") and not result.problems
        assert store.at("B")["large"] == value and store.at("B")["key"] == b"hello" and not store.verify().damages


def test_what_is_wrong_with_a_version_costs_that_version(tmp_path: Path) -> None:
    a, b, c = records.simple("A", (), b"a"), records.simple("B", ("A",), b"b"), records.simple("C", ("B",), b"c")
    lonely, root = records.simple("D", ("nowhere",)), records.simple("E", (), b"e")
    torn = b.payload[:-1] + bytes([b.payload[-1] ^ 1])
    file = writer.pack(STORE, SALT, WRITER, 1, 1, [a, type(b)(b.id, b.predecessors, b.identity8, torn), c, lonely, root])
    with opened("memory", tmp_path) as store:
        result = store.unpack(simple_stream(file))
        assert result.retrieved == ("A", "E")
        assert {problem.name: problem.code for problem in result.problems} == {
            "B": llvs.ErrorCode.DAMAGED, "C": llvs.ErrorCode.MISSING_PREDECESSOR, "D": llvs.ErrorCode.MISSING_PREDECESSOR,
        }
        assert all(len(problem.reason) > 20 for problem in result.problems)
        # Damaged versions arrive whole, and the rest with them.
        assert store.unpack(simple_stream(writer.pack(STORE, SALT, WRITER, 1, 1, [a, b, c]))).retrieved == ("B", "C")


def test_an_index_that_names_another_version(tmp_path: Path) -> None:
    """Each record is correct, but the index names another version."""
    a = records.simple("A", (), b"a")
    file = writer.pack(STORE, SALT, WRITER, 1, 1, [type(a)(a.id, a.predecessors, bytes(8), a.payload), records.simple("B")])
    with opened("memory", tmp_path) as store:
        result = store.unpack(simple_stream(file))
        assert result.retrieved == ("B",) and [(problem.name, problem.code) for problem in result.problems] == [
            ("A", llvs.ErrorCode.DAMAGED)
        ]


def test_what_is_damaged_here_is_made_whole(tmp_path: Path) -> None:
    value = noise(2 * MIB)
    with opened("file", tmp_path / "one") as one, opened("file", tmp_path / "two") as two:
        one.make_version(insert={"large": value, "small": b"x" * 1000})
        data = one.pack()
        two.unpack(data)
    blob = next(path for path in (tmp_path / "two").rglob("*") if path.is_file() and path.stat().st_size > MIB)
    bytes_ = bytearray(blob.read_bytes())
    bytes_[-10] ^= 1
    blob.chmod(0o600)
    blob.write_bytes(bytes_)
    with opened("file", tmp_path / "two") as two:
        assert two.verify().damages
        result = two.unpack(data)
        assert len(result.repaired) == 1 and not result.retrieved
        assert two.at(two.heads()[0])["large"] == value and not two.verify().damages


def test_a_damaged_version_holds_back_what_builds_on_it(tmp_path: Path) -> None:
    with opened("file", tmp_path / "one") as one:
        base = one.make_version(insert={"large": noise(2 * MIB)})
        child = one.make_version(base, insert={"x": b"1"})
        other = one.make_version(insert={"y": b"2"}, root=True)
    blob = next(path for path in (tmp_path / "one").rglob("*") if path.is_file() and path.stat().st_size > MIB)
    blob.chmod(0o600)
    blob.write_bytes(blob.read_bytes()[:-10] + bytes(10))
    with opened("file", tmp_path / "one") as one, opened("memory", tmp_path) as two:
        data = one.pack()
        assert data.result.sent == (other.id,)
        assert {problem.name for problem in data.result.problems} == {base.id, child.id}
        assert two.unpack(data).retrieved == (other.id,)


def test_nothing_is_left_behind_by_what_is_refused(tmp_path: Path) -> None:
    """Large values that no accepted version names are removed."""
    with opened("file", tmp_path / "one") as one:
        one.make_version(insert={"large": noise(9 * MIB)})
        data = one.pack()
    with opened("file", tmp_path / "two") as two:
        for size in (MIB, 9 * MIB, len(data) - 30):
            with pytest.raises(llvs.Error) as raised:
                two.unpack(data[:size])
            assert raised.value.code == llvs.ErrorCode.CUT_SHORT
        assert not [path for path in (tmp_path / "two").rglob("*") if path.is_file() and path.stat().st_size > MIB // 2]


def test_an_empty_store_and_one_that_is_only_read(tmp_path: Path) -> None:
    with opened("file", tmp_path / "one") as one, opened("memory", tmp_path) as two:
        assert two.pack().result.sent == () and one.unpack(two.pack()).retrieved == ()
        history(one)
    with llvs.Store(tmp_path / "one", read_only=True) as one:
        data = one.pack()
        with pytest.raises(llvs.errors.PermissionDeniedError):
            one.unpack(data)


def test_coordinators_share_the_empty_root(tmp_path: Path) -> None:
    with llvs.Coordinator(tmp_path / "one") as one, llvs.Coordinator(tmp_path / "two") as two:
        one.save(insert={"x": b"1"})
        two.save(insert={"y": b"2"})
        assert len(two.store.unpack(one.store.pack(have=two.store.heads())).retrieved) == 1
        two.merge()
        one.store.unpack(two.store.pack(have=one.store.heads()))
        one.merge()
        assert dict(one.store.at(one.current_version).items()) == {"x": b"1", "y": b"2"}


def reframed(data: bytes, change: Any) -> bytes:
    """A stream whose files were changed, with frames that fit."""
    files = [(str(name), file) for name, file in stream.read(data)]
    return stream.write(data[16:32], change(files))


def test_files_that_are_missing_or_in_another_order(tmp_path: Path) -> None:
    made = [records.simple("A", (), b"a"), records.simple("B", ("A",), b"b")]
    one = writer.pack(STORE, SALT, WRITER, 1, 1, made[:1])
    id = names.parse(one[0])
    assert id is not None
    two = writer.pack(STORE, SALT, WRITER, 2, 2, made[1:], link=id.id)
    whole = simple_stream(one, two)
    with opened("memory", tmp_path) as store:
        assert store.unpack(whole).retrieved == ("A", "B")
    for files in ([two], [two, one], [one, one], [one, two, two]):
        with opened("memory", tmp_path) as store, pytest.raises(llvs.Error) as raised:
            store.unpack(simple_stream(*files))
        assert raised.value.code == llvs.ErrorCode.DAMAGED
    # The end has another number of files.
    for data in (whole[:-21] + struct.pack("<BI", 0, 1) + whole[-16:], whole[:-1] + bytes([whole[-1] ^ 1])):
        with opened("memory", tmp_path) as store, pytest.raises(llvs.Error) as raised:
            store.unpack(data)
        assert raised.value.code == llvs.ErrorCode.DAMAGED


IDENTITY = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
RECIPIENT = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
OTHER = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ8H00W3"


def test_encrypted_for_recipients(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path / "one") as one, opened(kind, tmp_path / "two") as two:
        expected = history(one)
        data = one.pack(recipients=[RECIPIENT])
        assert data.startswith(b"age-encryption.org/v1\n-> X25519 ") and b"named" not in data
        assert one.pack(recipients=[RECIPIENT]) != data
        assert two.unpack(data, identities=iter([IDENTITY])).retrieved == data.result.sent and states(two) == expected
        file = tmp_path / "pack.age"
        one.pack(to=file, recipients=(RECIPIENT,))
        assert two.unpack(file, identities=[IDENTITY]).retrieved == ()


def test_the_tool_opens_it_and_the_reverse(tmp_path: Path) -> None:
    """The library encrypts, `age` opens it, and the reader in Python reads it; and `age` encrypts, and the library opens it."""
    key, plain = tmp_path / "key", tmp_path / "plain"
    key.write_text(IDENTITY + "\n")
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        history(one)
        one.pack(to=tmp_path / "ours", recipients=[RECIPIENT])
        opened_by_age = subprocess.run(["age", "--decrypt", "-i", key, tmp_path / "ours"], stdout=subprocess.PIPE, check=True).stdout
        assert opened_by_age.startswith(b"LLVSPKS\n") and two.unpack(opened_by_age).retrieved
        plain.write_bytes(one.pack())
        theirs = subprocess.run(["age", "-r", RECIPIENT, plain], stdout=subprocess.PIPE, check=True).stdout
        with llvs.Store(storage="memory") as three:
            three.unpack(theirs, identities=[IDENTITY])
            assert states(three) == states(one) == states(two)


def test_wrong_keys_are_reported_and_receive_nothing(tmp_path: Path) -> None:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        one.make_version(insert={"a": b"1"})
        for data, right, wrong in [
            (one.pack(recipients=[RECIPIENT]), {"identities": [IDENTITY]}, [{"identities": [OTHER]}, {"passphrase": "x"}, {}]),
            (one.pack(passphrase="Räuber"), {"passphrase": "Ra\u0308uber"}, [{"identities": [IDENTITY]}, {"passphrase": "Rauber"}, {}]),
        ]:
            for keys in wrong:
                with pytest.raises(llvs.errors.EncryptionError) as caught:
                    two.unpack(data, **keys)  # type: ignore[arg-type]
                assert caught.value.code == llvs.ErrorCode.WRONG_KEY and not list(two.history())
            with llvs.Store(storage="memory") as three:
                assert three.unpack(data, **right).retrieved  # type: ignore[arg-type]
        # A stream that is not encrypted, although the reader requires it.
        with pytest.raises(llvs.errors.ExchangeDataError) as foreign:
            two.unpack(one.pack(), identities=[IDENTITY])
        assert foreign.value.code == llvs.ErrorCode.FOREIGN_FILE and not list(two.history())
        for arguments in [{"recipients": [IDENTITY]}, {"recipients": ["age1x"]}, {"passphrase": ""}, {"passphrase": "x" * 1025},
                          {"recipients": [RECIPIENT], "passphrase": "x"}]:
            with pytest.raises(llvs.errors.InvalidArgumentError) as invalid:
                one.pack(**arguments)  # type: ignore[arg-type]
            assert IDENTITY[20:] not in str(invalid.value)
        with pytest.raises(llvs.errors.InvalidArgumentError) as invalid:
            two.unpack(b"", identities=[IDENTITY[:-1] + "Q"])
        assert IDENTITY[20:-1] not in str(invalid.value)
        with pytest.raises(TypeError):
            one.pack(recipients=RECIPIENT)


def test_an_encrypted_pack_that_was_changed(tmp_path: Path) -> None:
    with llvs.Store(storage="memory") as one:
        one.make_version(insert={"a": noise(70_000)})
        good = bytes(one.pack(recipients=[RECIPIENT]))
        random = Random(5)
        for at in [*range(0, 200, 3), *(random.randrange(200, len(good)) for _ in range(40))]:
            for bad in (good[:at] + bytes([good[at] ^ 8]) + good[at + 1 :], good[:at]):
                with llvs.Store(storage="memory") as two, pytest.raises(llvs.Error):
                    two.unpack(bad, identities=[IDENTITY])
        with llvs.Store(storage="memory") as two, pytest.raises(llvs.Error):
            two.unpack(good + b"x", identities=[IDENTITY])
