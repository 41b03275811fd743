"""Tests values of packs that are differences. A reader that is written only from docs/pack-format.md reads the packs of the library. If a
version breaks a rule of the page, both the reader and the library refuse that version alone."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any, Callable, Iterator, Literal, Optional

import pytest
import value_differences as d
from packs import reader, records, stream, writer
from packs.names import BASE, LOG, parse
from packs.records import Difference, Made

import llvs
from llvs import ErrorCode
from llvs.errors import UnsupportedError

STORE, SALT, WRITER = bytes(range(16)), bytes(range(16, 32)), b"\7" * 8
DRAW = random.Random(3)
TEXT = DRAW.randbytes(3_000).hex().encode()


def edits(store: llvs.Store, count: int, text: bytes = TEXT) -> Iterator[tuple[str, bytes]]:
    draw, head = random.Random(5), None
    for number in range(count):
        at = draw.randrange(len(text))
        text = text[:at] + b"an edit, number %d" % number + text[at:]
        changes = {"note": text}
        head = store.make_version(head, insert=changes) if head is None else store.make_version(head, update=changes)
        yield head.id, text


def note(store: llvs.Store, id: str) -> bytes:
    value = store.value("note", at=id)
    assert value is not None
    return value.data


def packs_of(place: Path) -> list[tuple[int, reader.Pack]]:
    """Returns all packs. Each is read by itself."""
    roots = [reader.read_root(f"pack1/{file.name}", file.read_bytes())[0] for file in (place / "pack1").glob("root-*")]
    found = []
    for kind in ("log", "base"):
        for file in sorted((place / "pack1" / kind).glob("*")):
            name = f"pack1/{kind}/{file.name}"
            pack = reader.read_pack(name, file.read_bytes(), roots)
            assert not pack.problems
            parsed = parse(name)
            assert parsed is not None
            found.append((parsed.kind, pack))
    return found


def differences_in(pack: reader.Pack) -> dict[str, bytes]:
    """Returns the stored bytes of the values that are differences, by version."""
    found = {}
    for id, version in pack.versions.items():
        assert version.record is not None
        for change in version.record.changes.values():
            if change.is_difference:
                found[id] = version.record.bodies[change.offset + 8 : change.offset + 8 + change.stored_size]
    return found


@pytest.mark.parametrize("differences", ["on", "off"])
def test_each_pack_of_a_place_is_read_by_itself(tmp_path: Path, differences: Literal["on", "off"]) -> None:
    place, saved = tmp_path / "place", {}
    with llvs.Store(tmp_path / "one", options=llvs.StoreOptions(differences=differences)) as store:
        with llvs.Exchange(store, llvs.Remote(place.as_uri(), layout="packed")) as exchange:
            for number, (id, text) in enumerate(edits(store, 50)):
                saved[id] = text
                if number % 5 == 4:
                    exchange.send()
    packs = packs_of(place)
    assert [kind for kind, _ in packs] == [LOG] * 10 + [BASE]
    for kind, pack in packs:
        for id, version in pack.versions.items():
            record = version.record
            assert record is not None and reader.value(record, record.changes[b"note"]) == saved[id]
        # The first value of the pack is whole. So is a value whose chain of bases would have too many stored bytes.
        made = differences_in(pack)
        assert len(pack.versions) - len(made) <= 2 if kind == BASE else len(made) == 4
        size = sum(map(len, made.values()))
        assert size < 150 * len(made)
        for id, stored in made.items():
            difference = d.parse(stored, len(saved[id]))
            assert stored[0] == 0 and difference.base_body == 0 and difference.base in pack.versions
    assert len(packs[-1][1].versions) == 40
    options: list[Literal["on", "off"]] = ["on", "off"]
    for option in options:
        with llvs.Store(tmp_path / f"two {option}", options=llvs.StoreOptions(differences=option)) as two:
            with llvs.Exchange(two, llvs.Remote(place.as_uri(), layout="packed")) as exchange:
                assert not exchange.retrieve().problems
                assert not exchange.verify().problems
            assert {id: note(two, id) for id in saved} == saved
            assert not two.verify().damages


def test_a_root_without_the_member_stays_as_it_is(tmp_path: Path) -> None:
    for number, (more, expected) in enumerate([({}, 0), ({"differences": 1}, 9), ({"differences": 2}, 0)]):
        place = tmp_path / f"place {number}"
        name, data = writer.root(STORE, SALT, WRITER, more=more)
        (place / name).parent.mkdir(parents=True)
        (place / name).write_bytes(data)
        with llvs.Store(tmp_path / f"store {number}") as store:
            assert len(list(edits(store, 10))) == 10
            with llvs.Exchange(store, llvs.Remote(place.as_uri(), layout="packed")) as exchange:
                exchange.retrieve()
                exchange.send()
        (_, pack), = packs_of(place)
        assert len(differences_in(pack)) == expected


@pytest.mark.parametrize("encrypted", [False, True])
def test_differences_are_turned_on_in_an_old_place(tmp_path: Path, encrypted: bool) -> None:
    """Another root with the same store id allows them to all devices. The first root and the packs stay as they are."""
    place, remote = tmp_path / "place", llvs.Remote((tmp_path / "place").as_uri(), layout="packed")
    if encrypted:
        remote = llvs.Remote(place.as_uri(), layout="packed", identity=llvs.exchange.make_identity().secret)
        with llvs.Store(tmp_path / "other") as other, llvs.Exchange(other, remote) as exchange:
            exchange.send()
    else:
        name, data = writer.root(STORE, SALT, WRITER)
        (place / name).parent.mkdir(parents=True)
        (place / name).write_bytes(data)
    with llvs.Store(tmp_path / "one") as one, llvs.Store(tmp_path / "two") as two:
        made = edits(one, 30)
        with llvs.Exchange(one, remote) as mine, llvs.Exchange(two, remote) as theirs:
            saved = dict(next(made) for _ in range(10))
            if not encrypted:
                mine.retrieve()
                mine.send()
                assert not differences_in(packs_of(place)[0][1])
                theirs.retrieve()
            before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
            saved.update([next(made)])
            assert len(mine.enable_differences().sent) == (11 if encrypted else 1)
            assert not mine.enable_differences().sent
            roots = list((place / "pack1").glob("root-*"))
            if encrypted:
                # A new place has them from the start.
                assert len(roots) == 1
            else:
                assert len(roots) == 2 and all(file.read_bytes() == data for file, data in before.items())
                stores = [reader.read_root(f"pack1/{file.name}", file.read_bytes())[0] for file in roots]
                assert stores == [STORE, STORE]
            saved.update(made)
            mine.send()
            if not encrypted:
                last = packs_of(place)[-1][1]
                assert len(last.versions) == 19 and len(differences_in(last)) >= 17
            # A device that knew the place before, and one that did not.
            assert not theirs.retrieve().problems
            with llvs.Store(tmp_path / "three") as three, llvs.Exchange(three, remote) as others:
                assert not others.retrieve().problems
                for store in (two, three):
                    assert {id: note(store, id) for id in saved} == saved
                # A device that found the new root when it listed all writes differences, too.
                head = three.make_version(list(saved)[-1], update={"note": TEXT + b"?"})
                three.make_version(head, update={"note": TEXT + b"??"})
                others.send()
            if not encrypted:
                assert any(len(pack.versions) == 2 and len(differences_in(pack)) == 1 for _, pack in packs_of(place))
    with llvs.Store(tmp_path / "four") as store, llvs.Exchange(store, (tmp_path / "plain").as_uri()) as exchange:
        with pytest.raises(UnsupportedError, match="no packs"):
            exchange.enable_differences()


def test_no_difference_is_made_on_a_version_with_an_id_of_the_caller(tmp_path: Path) -> None:
    """Another device may have recorded another value under the id."""
    place = tmp_path / "place"
    with llvs.Store(tmp_path / "one") as one, llvs.Store(tmp_path / "two") as two:
        one.make_version(insert={"note": TEXT}, id="named")
        two.make_version(insert={"note": b"another" + TEXT}, id="named")
        made = one.make_version("named", update={"note": TEXT + b"!"})
        last = one.make_version(made, update={"note": TEXT + b"!!"})
        for store in (one, two):
            with llvs.Exchange(store, llvs.Remote(place.as_uri(), layout="packed")) as exchange:
                exchange.retrieve()
                exchange.send()
        assert [note(two, id) for id in (made.id, last.id)] == [TEXT + b"!", TEXT + b"!!"]
    assert [id for _, pack in packs_of(place) for id in differences_in(pack)] == [last.id]


def test_an_encrypted_place(tmp_path: Path) -> None:
    place, me = tmp_path / "place", llvs.exchange.make_identity()
    remote = llvs.Remote(place.as_uri(), layout="packed", identity=me.secret)
    with llvs.Store(tmp_path / "one") as one, llvs.Store(tmp_path / "two") as two:
        saved = dict(edits(one, 50))
        with llvs.Exchange(one, remote) as exchange:
            exchange.send()
        # A value consists of hexadecimal digits, so compression halves a whole value.
        size = sum(file.stat().st_size for file in (place / "pack1" / "log").iterdir())
        assert size < 5 * len(TEXT)
        with llvs.Exchange(two, remote) as exchange:
            assert not exchange.retrieve().problems
        assert {id: note(two, id) for id in saved} == saved


# Packs of another writer.


def version(id: str, before: Optional[str], value: bytes, made: Optional[Difference] = None) -> Made:
    data = records.record(
        id, [before] if before else [], float(ord(id[0])), {} if made else {b"note": value}, differences={b"note": made} if made else {}
    )
    # The identity digest is computed from the values, not from the stored bytes.
    whole = records.made(records.record(id, [before] if before else [], float(ord(id[0])), {b"note": value}))
    return records.made(data, identity8=whole.identity8)


def difference(base: bytes, value: bytes, on: str, digest: bool = True, **more: Any) -> Difference:
    stored = d.encode(base, value, d.find_operations(base, value), on, **more)
    return Difference(len(value), stored, hashlib.sha256(value).digest() if digest else None)


VALUES = [TEXT + b"!" * number for number in range(4)]


def in_stream(*versions: Made) -> bytes:
    return stream.write(STORE, [writer.pack(STORE, SALT, WRITER, 1, 1, versions)])


def chain() -> list[Made]:
    found = [version("A", None, VALUES[0])]
    for number, (id, before) in enumerate([("B", "A"), ("C", "B"), ("D", "C")], 1):
        found.append(version(id, before, VALUES[number], difference(VALUES[number - 1], VALUES[number], before, place=number)))
    return found


def test_what_another_one_wrote_is_read(memory: llvs.Store) -> None:
    data = in_stream(*chain())
    (pack, _), = stream.packs(data)
    assert not pack.problems
    result = memory.unpack(data)
    assert result.retrieved == ("A", "B", "C", "D") and not result.problems
    assert [note(memory, id) for id in "ABCD"] == VALUES


def changed(made: Difference, change: Callable[[bytes], bytes]) -> Difference:
    return made._replace(stored=change(made.stored))


def refused() -> dict[str, tuple[Difference, ErrorCode]]:
    """Returns forms of version C that are refused. The pack holds A, B, C and D. The store holds A and X."""
    a, b, c = VALUES[:3]
    good, damaged = difference(b, c, "B", place=2), ErrorCode.DAMAGED
    return {
        "a base that is not in the pack": (difference(b"x" + TEXT, c, "X"), damaged),
        "a base behind it": (difference(VALUES[3], c, "D"), damaged),
        "itself": (difference(c, c, "C"), damaged),
        "another base": (difference(a, c, "B"), damaged),
        "deflated streams": (difference(b, c, "B", deflates=True), damaged),
        "no digest": (difference(b, c, "B", digest=False, place=2), damaged),
        "another digest": (good._replace(digest=bytes(32)), damaged),
        "another kind": (changed(good, lambda stored: b"\2" + stored[1:]), ErrorCode.NEWER_FORMAT),
        "bytes that are missing": (changed(good, lambda stored: stored[:-1]), damaged),
        "a value that is another": (changed(good, lambda stored: stored[:-1] + b"?"), damaged),
        "place 0": (changed(good, lambda stored: stored[:1] + b"\0" + stored[2:]), damaged),
        "64 MiB and a byte": (good._replace(size=(64 << 20) + 1), damaged),
        "too much of a version": (good._replace(size=64 << 20), damaged),
    }


@pytest.mark.parametrize("what", refused())
def test_a_version_that_breaks_a_rule_is_refused_alone(memory: llvs.Store, what: str) -> None:
    wrong, code = refused()[what]
    memory.unpack(in_stream(version("A", None, VALUES[0]), version("X", None, b"x" + TEXT)))
    a, b, _, d_ = chain()
    other = version("E", "B", VALUES[1] + b"E", difference(VALUES[1], VALUES[1] + b"E", "B", place=2))
    data = in_stream(a, b, version("C", "B", VALUES[2], wrong), other, version("D", "A", VALUES[3]))
    (pack, _), = stream.packs(data)
    assert set(pack.problems) == {"C"}
    result = memory.unpack(data)
    assert result.retrieved == ("B", "E", "D")
    (problem,) = result.problems
    assert problem.name == "C" and problem.code == code, problem
    assert note(memory, "E") == VALUES[1] + b"E" and "C" not in memory


def test_the_differences_of_a_version_make_at_most_64_mib(memory: llvs.Store) -> None:
    claims = {b"note%d" % number: Difference(32 << 20, b"\0" * 40) for number in range(3)}
    many = records.made(records.record("M", ["A"], 2.0, differences=claims), identity8=b"identity")
    data = in_stream(version("A", None, VALUES[0]), many)
    (pack, _), = stream.packs(data)
    assert isinstance(pack.problems["M"], reader.TooLarge)
    result = memory.unpack(data)
    assert result.retrieved == ("A",) and [problem.code for problem in result.problems] == [ErrorCode.TOO_LARGE]


def test_the_differences_of_a_pack_make_at_most_4_gib(memory: llvs.Store) -> None:
    """The library counts the bytes that the differences would make before it makes any value."""
    claims = [
        records.made(
            records.record(f"M{number:02}", ["A"], 2.0, differences={b"note": Difference(64 << 20, b"\0" * 40)}), identity8=b"identity"
        )
        for number in range(66)
    ]
    result = memory.unpack(in_stream(version("A", None, VALUES[0]), *claims))
    codes = {problem.name: problem.code for problem in result.problems}
    assert codes == {f"M{number:02}": ErrorCode.DAMAGED if number < 64 else ErrorCode.TOO_LARGE for number in range(66)}


@pytest.mark.parametrize("between", [0, 1_000])
def test_a_version_waits_with_its_base(memory: llvs.Store, between: int) -> None:
    """B waits for A. The value of C is based on that of B. If many versions are between B and C, the value of B is no longer in memory."""
    a, _, c, _ = chain()
    b = version("B", "A", VALUES[1])
    others = [records.simple(f"Z{number:04}") for number in range(between)]
    result = memory.unpack(in_stream(b, *others, c))
    assert len(result.retrieved) == between
    assert {problem.name: problem.code for problem in result.problems} == dict.fromkeys("BC", ErrorCode.MISSING_PREDECESSOR)
    memory.unpack(in_stream(a))
    assert memory.unpack(in_stream(b, *others, c)).retrieved == ("B", "C") and note(memory, "C") == VALUES[2]


def test_a_base_that_is_damaged_here_is_repaired(tmp_path: Path) -> None:
    a, b, *_ = chain()
    with llvs.Store(tmp_path / "store") as store:
        store.unpack(in_stream(a))
    (segment,) = (tmp_path / "store" / "segments").glob("*.seg")
    with llvs.Store(tmp_path / "store") as store:
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        first = store.unpack(in_stream(a, b))
        assert not first.retrieved and [(problem.name, problem.code) for problem in first.problems] == [("B", ErrorCode.DAMAGED)]
        second = store.unpack(in_stream(a, b))
        assert second.retrieved == ("B",) and second.repaired == ("A",)
        assert [note(store, id) for id in "AB"] == VALUES[:2]
