"""Makes the vectors of the packed layout with the Python reader and writer in Tests/Python/packs.

    generate.py            writes the files beside this one
    generate.py --check    checks that this program makes them
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "Python"))

import format_reader as engine  # noqa: E402
from packs import names, reader, reading, records, writer  # noqa: E402

STORE, SALT, WRITER, OTHER = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 40)), bytes(range(40, 48))
ROOT_ID, CHILD, NAMED = "0C90A79B-B798-4F2B-B9AC-7665646A26C4", "1C90A79B-B798-4F2B-B9AC-7665646A26C4", "a_version-1"
ERRORS = {
    reader.NotThere: "not_there", reader.Damaged: "damaged", reader.Newer: "newer_format", reader.TooLarge: "too_large",
    reader.OtherStore: "other_store",
}
FIRST = records.simple(ROOT_ID, (), b"hello")
SECOND = records.simple(CHILD, (ROOT_ID,), b"hello again")
THIRD = records.simple(NAMED, (CHILD,))
LOG = writer.pack(STORE, SALT, WRITER, 1, 1, [FIRST], deflate=False)


def renamed(name: str, data: bytes) -> writer.File:
    """Returns the same path, with the pack id of these bytes."""
    parsed = names.parse(name)
    assert parsed is not None
    return str(parsed._replace(id=hashlib.sha256(data).digest()[:16])), data


def signed(name: str, data: bytes) -> writer.File:
    """Returns the bytes with a correct digest of header, index and trailer."""
    at, size = struct.unpack_from("<QI", data, len(data) - 160)
    digest = hashlib.sha256(data[:64] + data[at : at + size] + data[-160:-88]).digest()
    return renamed(name, data[:-88] + digest + data[-56:])


def changed(file: writer.File, at: int, new: bytes) -> writer.File:
    """Returns the file with other bytes at an offset (below zero: from the end), and with a correct digest and name."""
    at %= len(file[1])
    return signed(file[0], file[1][:at] + new + file[1][at + len(new) :])


def described(name: str, data: bytes) -> dict[str, Any]:
    """Returns what a reader finds in a file."""
    pack = reader.read_pack(name, data, [STORE])
    index = pack.index
    result: dict[str, Any] = {
        "kind": index.name.kind, "writer": index.header[48:56].hex(), "first": index.name.first, "last": index.name.last,
        "link": index.link.hex(), "blocks": [[block.offset, block.stored, block.raw] for block in index.blocks],
        "versions": [
            {"id": id, "block": place.block, "offset": place.offset, "length": place.length, "identity": place.digest.hex(),
             "predecessors": list(version.record.predecessors) if version.record else None,
             "blobs": [{"digest": blob.digest.hex(), "size": blob.size, "parts": [part.hex() for part in blob.parts]}
                       for blob in (version.blobs or ([version.outside] if version.outside else []))]}
            for id, place in index.versions.items() if id in pack.versions for version in [pack.versions[id]]
        ],
        "seen": [[owner.hex(), number, id.hex()] for owner, (number, id) in sorted(pack.seen.items())],
        "replaces": list(pack.replaces), "covers": [[owner.hex(), first, last] for owner, first, last in pack.covers],
        "notices": [[kind, data.hex()] for kind, data in pack.notices],
    }
    if pack.problems:
        result["problems"] = {
            id: ERRORS.get(type(error), "damaged") for id, error in pack.problems.items()
        }
    if pack.content:
        result["content"] = hashlib.sha256(pack.content).hexdigest()
    return result


def good() -> list[dict[str, Any]]:
    """Files of every kind."""
    link = bytes.fromhex("aa" * 16)
    value = bytes(range(256)) * 4200  # above 1 MiB
    digest = hashlib.sha256(value).digest()[:16]
    part = writer.blob_part(STORE, SALT, WRITER, digest, 0, value)
    blob = records.reference(value, [hashlib.sha256(part[1]).digest()[:16]])
    large = records.made(records.record(ROOT_ID, (), 1.5, blobs={b"large": blob}), [blob])
    inside = hashlib.sha256(FIRST.payload).digest()[:16]
    outside = writer.blob_part(STORE, SALT, WRITER, inside, 0, FIRST.payload)
    second = writer.pack(STORE, SALT[::-1], WRITER, 2, 2, [SECOND, THIRD], link=link, seen={OTHER: (7, link)})
    files = {
        "one version": LOG,
        "no version": writer.pack(STORE, SALT, WRITER, 3, 3, [], link=link),
        "two versions, and what was seen": second,
        "retired": writer.pack(STORE, SALT, WRITER, 4, 4, [], notices=[(2, WRITER)]),
        "many versions in deflated blocks": writer.pack(
            STORE, SALT, WRITER, 5, 5, [records.simple(f"v{n:05}", (), b"the same text " * 200) for n in range(150)]),
        "the largest number": writer.pack(STORE, SALT, WRITER, 0xFFFFFFFF, 0xFFFFFFFF, [FIRST]),
        "folded": writer.pack(STORE, SALT, WRITER, 1, 2, [FIRST, SECOND, THIRD], base=True, replaces=[LOG[0], second[0]],
                              seen={OTHER: (7, link)}),
        "adopted": writer.pack(STORE, SALT, OTHER, 9, 9, [FIRST, SECOND, THIRD], base=True, replaces=[LOG[0], second[0]],
                               covers=[(WRITER, 1, 2)]),
        "a version whose value is a blob": writer.pack(STORE, SALT, WRITER, 6, 6, [large]),
        "a version of form 1": writer.pack(STORE, SALT, WRITER, 7, 7, [records.outside(FIRST, [hashlib.sha256(outside[1]).digest()[:16]])]),
        "a part of a blob": part, "the blob of form 1": outside,
        "a root": writer.root(STORE, SALT, WRITER), "the root of a bridged remote": writer.root(STORE, SALT, WRITER, "bridged"),
    }
    newer = bytearray(FIRST.payload)
    newer[2] = 2  # The record's format, with a recomputed checksum.
    header = struct.unpack_from("<I", newer, 6)[0]
    newer[26:30] = struct.pack("<I", engine.checksum(bytes(newer[2:26]), bytes(newer[30 : 30 + header])))
    torn = bytearray(THIRD.payload)
    torn[-4] ^= 1
    mixed = [replace(FIRST, payload=bytes(newer)), SECOND, replace(THIRD, payload=bytes(torn))]
    small = {
        "of three versions one is newer, one is damaged": writer.pack(STORE, SALT, WRITER, 1, 1, mixed, deflate=False),
        "a version whose identity is another": writer.pack(STORE, SALT, WRITER, 1, 1, [replace(FIRST, identity8=bytes(8))], deflate=False),
        "a form that is not known": writer.pack(STORE, SALT, WRITER, 1, 1, [replace(FIRST, payload=b"\x09")], deflate=False),
        "an ignorable flag is passed over": changed(LOG, -144, struct.pack("<I", 1 << 16)),
        "an ignorable service record is passed over": service(200, b"anything"),
        "an unknown notice is passed over": writer.pack(STORE, SALT, WRITER, 1, 1, [FIRST], notices=[(99, b"x")], deflate=False),
    }
    return [
        {"name": name, "file": path, "data": data.hex(),
        "expect": described(path, data)} for name, (path, data) in {**files, **small}.items()
    ]


def service(type: int, payload: bytes, kind: int = names.LOG) -> writer.File:
    """Returns a pack without versions, with one service record."""
    record = records.varint(len(payload) + 1) + bytes([type]) + payload
    seen = hashlib.sha256(payload).digest()[:16] if type == reader.SEEN else bytes(16)
    return writer.file(kind, STORE, SALT, WRITER, 1, 1, [record], services=[(type, 0, 0, len(record))], seen=seen, deflate=False)


def at_index(data: bytes) -> int:
    """Returns the offset of the index, from the end."""
    return -160 - int(struct.unpack_from("<I", data, len(data) - 152)[0])


def bad() -> list[dict[str, Any]]:
    """Returns files that a reader refuses, each for one reason."""
    name, data = LOG
    base = names.BASE
    name_of_log = b"\1" + WRITER + struct.pack("<I", 1) + bytes(16)
    raw = reader.MAGIC + b"record that is not one"
    index = at_index(data)
    twice = writer.file(names.LOG, STORE, SALT, WRITER, 1, 1, [b"\x03\x80ab"], services=[(128, 0, 0, 4), (128, 0, 2, 2)], deflate=False)
    files: dict[str, writer.File] = {
        "cut short": (name, data[:-1]), "nothing": (name, b""), "a byte more": (name, data + b"\0"), "a byte of the salt": (
            name, data[:32] + bytes([data[32] ^ 1]) + data[33:]),
        "two files swapped": (name, writer.pack(STORE, SALT[::-1], WRITER, 1, 1, [FIRST])[1]),
        "only a header": renamed(name, data[:64]), "another magic": changed(LOG, 0, b"X"), "another end": renamed(name, data[:-1] + b"X"),
        "format 2": changed(LOG, 8, b"\2"), "format 0": changed(LOG, 8, b"\0"), "kind of a base pack": changed(LOG, 9, b"\2"),
        "not zero in the header": changed(LOG, 10, b"\1"), "another store": changed(LOG, 16, b"\xff"),
        "another salt in the trailer": renamed(name, data[:-24] + b"\xff" + data[-23:]),
        "another writer": changed(LOG, 48, b"\xff"), "another number": changed(LOG, 56, b"\2"), "another first": changed(LOG, 60, b"\2"),
        "an index elsewhere": changed(LOG, -160, b"\xff"), "an index that is too long": changed(LOG, -152, struct.pack("<I", 9 << 20)),
        "another count": changed(LOG, -148, b"\2"), "a critical flag": changed(LOG, -144, b"\1"),
        "not zero in the trailer": changed(LOG, -140, b"\1"),
        "another raw sum": changed(LOG, -136, b"\1"), "too many raw bytes": changed(LOG, -136, struct.pack("<Q", 1 << 41)),
        "a wrong digest": renamed(name, data[:-88] + b"\0" + data[-87:]),
        "a tag in a plain pack": renamed(name, data[:-56] + b"\1" + data[-55:]),
        "a digest of what was not seen": changed(LOG, -104, b"\1"),
        "a block of another size": changed(LOG, 65, b"\1"), "an unknown codec": changed(LOG, 64, b"\7"),
        "a codec that does not inflate": changed(LOG, 64, b"\1"),
        "a byte of a block": changed(LOG, 80, bytes([data[80] ^ 1])),
        "a byte of a block's digest": changed(LOG, index + 4, bytes([data[index + 4] ^ 1])),
        "a gap before the first block": changed(LOG, index + 1, b"\x41"),
        "a block count that does not fit": changed(LOG, index, b"\x7f"),
        "an unknown critical record": service(7, b"x"), "a member": service(4, b"x"),
        "a version among the service records": service(1, b"x"),
        "replaces in a log pack": service(3, b"\1" + name_of_log),
        "covers in a log pack": service(6, b"\1" + WRITER + struct.pack("<II", 1, 2)),
        "replaces that is cut short": service(3, b"\2" + name_of_log, base),
        "replaces with bytes left over": service(3, b"\1" + name_of_log + b"x", base),
        "replaces a blob": service(3, b"\1\3" + name_of_log[1:], base),
        "replaces the same twice": service(3, b"\2" + name_of_log * 2, base),
        "replaces too many": service(3, records.varint(4097) + name_of_log * 4097, base),
        "replaces number 0": service(3, b"\1\1" + WRITER + bytes(20), base),
        "covers an empty range": service(6, b"\1" + WRITER + struct.pack("<II", 3, 2), base),
        "covers that touch": service(6, b"\2" + WRITER + struct.pack("<II", 1, 2) + WRITER + struct.pack("<II", 3, 4), base),
        "seen out of order": service(2, b"\2" + OTHER + bytes(20) + WRITER + bytes(20)),
        "a varint that is not the shortest": service(2, b"\x80\0"),
        "records that overlap": twice,
        "a large block without a record": writer.file(names.LOG, STORE, SALT, WRITER, 1, 1, [bytes(300_000)]),
        "a block that is too large": writer.file(names.LOG, STORE, SALT, WRITER, 1, 1, [bytes(5 << 20)]),
        "a blob under another digest": (lambda file: renamed(file[0].replace("aaaaaaaaaaaaaaaaaaaaaaaaaa", "a" * 24 + "ba"), file[1]))(
            writer.blob_part(STORE, SALT, WRITER, bytes(16), 0, b"value")),
        "an empty part": writer.blob_part(STORE, SALT, WRITER, bytes(16), 0, b""),
        "a record that is none": writer.file(
            names.LOG, STORE, SALT, WRITER, 1, 1, [raw], versions=[(FIRST, 0, 0, len(raw))], deflate=False),
        "another length of a record": changed(LOG, 73, b"\x5c"),
    }
    result = []
    for title, (path, bytes_) in files.items():
        try:
            reader.read_pack(path, bytes_, [STORE])
        except tuple(ERRORS) as error:
            result.append({"name": title, "file": path, "data": bytes_.hex(), "error": ERRORS[type(error)]})
        else:
            raise AssertionError(f"{title} is taken")
    return result


def all_names() -> dict[str, Any]:
    """Returns names, and texts that are not names."""
    log, writer_field = LOG[0], names.encode(WRITER)
    base = str(names.Name(names.BASE, WRITER, 1, 8, bytes(16)))
    blob = str(names.Name(names.BLOB, bytes(16), 65535, 65535, SALT))
    root = str(names.Name(names.ROOT, b"", 0, 0, SALT))
    good = [log, base, blob, root, str(names.Name(names.LOG, b"\xff" * 8, 0xFFFFFFFF, 0xFFFFFFFF, b"\xff" * 16))]
    bad = [
        log.upper(), log + "=", log + " (2)", log[:-1], log + "a", log[:-1] + "b", log.replace("pack1/", "pack2/"), log.replace("log/",
        "base/"),
        base.replace("base/", "log/"), log.replace(writer_field, "a" * 13), log.replace("-",
        "_"), log.replace(writer_field, writer_field[:-1] + "1"),
        str(names.Name(names.LOG, WRITER, 0, 0, SALT)), str(names.Name(names.BASE, WRITER, 2, 1, SALT)), "pack1/log/",
        "pack1/root-", log + "\n",
        "pack1/log/." + log[10:], log.replace("pack1/log/", "pack1/log//"), log.replace("pack1/log/", ""), "tmp/" + log,
    ]
    parsed = []
    for text in good:
        name = names.parse(text)
        assert name is not None and str(name) == text
        parsed.append({"text": text, "kind": name.kind, "owner": name.owner.hex(), "first": name.first, "last": name.last,
        "id": name.id.hex()})
    assert not [text for text in bad if names.parse(text)]
    return {"format": 1, "names": parsed, "none": bad}


def reads() -> list[dict[str, Any]]:
    """Returns the conclusions from listings and from the packs that were read."""

    def log(number: int, owner: bytes = WRITER, salt: bytes = SALT) -> writer.File:
        return writer.pack(STORE, salt, owner, number, number, [], deflate=False)

    def base(first: int, last: int, inputs: list[writer.File], owner: bytes = WRITER, covers: Any = ()) -> writer.File:
        replaces = [name for name, _ in inputs]
        return writer.pack(STORE, SALT, owner, first, last, [], base=True, replaces=replaces, covers=covers, deflate=False)

    one, two, three, nine = log(1), log(2), log(3), log(9)
    twin = log(2, salt=SALT[::-1])
    folded = base(1, 8, [log(number) for number in range(1, 9)])
    adopted = base(2, 2, [one, two], OTHER, [(WRITER, 1, 2)])
    far = log(0xFFFFFFFF)
    everything = base(1, 1, [], OTHER, [(WRITER, 1, 0xFFFFFFFF)])
    cases: dict[str, tuple[list[writer.File], list[str], list[str]]] = {
        "nothing": ([], [], []),
        "a first pack": ([], [one[0]], []),
        "nothing new": ([one, two], [one[0], two[0]], []),
        "two packs of one number": ([one, two], [one[0], two[0], twin[0]], []),
        "a number is missing": ([one], [one[0], three[0]], []),
        "a number is missing, which was read before": ([one, two], [three[0]], []),
        "a later number was read, an earlier one not": ([one, three], [three[0]], []),
        "folded before it was read": ([], [nine[0]], [folded[0]]),
        "the fold was read": ([folded], [nine[0]], [folded[0]]),
        "what the fold replaces is listed still": ([folded], [one[0], two[0], nine[0]], [folded[0]]),
        "a clone's pack of a number that the fold has": ([folded], [twin[0], nine[0]], [folded[0]]),
        "adopted by another": ([adopted, log(1, OTHER), log(3, OTHER)], [log(3, OTHER)[0], three[0]], [adopted[0]]),
        "foreign names": ([one], [one[0], one[0] + " (2)", "pack1/log/.nothing"], ["pack1/base/desktop.ini"]),
        "the largest number": ([], [far[0]], []),
        "all numbers are said to be covered": ([everything], [far[0], three[0]], [everything[0]]),
    }
    result = []
    for title, (packs, logs, bases) in cases.items():
        read = [reader.read_pack(name, data, [STORE]) for name, data in packs]
        until = reading.done(reading.covered(read))
        result.append({
            "name": title, "read": [{"file": name, "data": data.hex()} for name, data in packs], "log": logs, "base": bases,
            "done": {owner.hex(): number for owner, number in sorted(until.items())}, "gap": reading.gap(logs, until),
            "unread": reading.unread(logs, bases, read),
        })
    return result


def files() -> dict[str, Any]:
    """Returns the contents of the files, by name."""
    about = {"format": 1, "store": STORE.hex()}
    return {
        "names.json": all_names(), "files.json": {**about, "vectors": good()}, "refused.json": {**about, "vectors": bad()},
        "reading.json": {**about, "vectors": reads()},
    }


def check() -> None:
    """Checks the files. Packs are read again, and not compared by bytes: other builds of zlib compress differently."""
    for name, made in files().items():
        there = json.loads((HERE / name).read_text())
        if name in ("names.json", "reading.json"):
            assert there == made, name
            continue
        assert [vector["name"] for vector in there["vectors"]] == [vector["name"] for vector in made["vectors"]], name
        for vector in there["vectors"]:
            data = bytes.fromhex(vector["data"])
            if "expect" in vector:
                assert described(vector["file"], data) == vector["expect"], vector["name"]
                continue
            try:
                reader.read_pack(vector["file"], data, [STORE])
            except tuple(ERRORS) as error:
                assert ERRORS[type(error)] == vector["error"], vector["name"]
            else:
                raise AssertionError(vector["name"])


def main() -> None:
    """Writes or checks."""
    if "--check" in sys.argv:
        check()
        return
    for name, content in files().items():
        (HERE / name).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
