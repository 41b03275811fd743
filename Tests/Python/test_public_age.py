"""The vectors of C2SP for files of age (CCTV), through encrypted streams of packs: files that docs/encryption.md supports are opened, and
all others are errors. public_inputs.py says where to find them. The engine's own tests compare the plaintexts (AgeVectorsTests)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Optional
from zlib import decompress

import llvs
import pytest
from llvs import ErrorCode
from public_inputs import FOLDER, needed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Vectors" / "age"))
import model  # noqa: E402

#: The failures of age, and the codes that docs/encryption.md has for them. A stream that fails after its first segment is refused before
#: that: the content of the first one is not a pack.
CODES = {
    "header failure": {ErrorCode.DAMAGED, ErrorCode.CUT_SHORT, ErrorCode.FOREIGN_FILE, ErrorCode.NEWER_FORMAT, ErrorCode.TOO_LARGE},
    "HMAC failure": {ErrorCode.DAMAGED},
    "payload failure": {ErrorCode.DAMAGED, ErrorCode.CUT_SHORT, ErrorCode.FOREIGN_FILE},
    "no match": {ErrorCode.WRONG_KEY},
}


@dataclass(frozen=True)
class Vector:
    name: str
    expect: str
    file_key: bytes
    identities: tuple[str, ...]
    passphrases: tuple[str, ...]
    is_armored: bool
    data: bytes

    @property
    def is_hybrid(self) -> bool:
        """Returns whether it is for identities that are not implemented."""
        return any(identity.startswith("AGE-SECRET-KEY-PQ-") for identity in self.identities)

    @property
    def has_cheap_passphrase(self) -> bool:
        """Returns whether its work factor of scrypt is below those that are accepted."""
        return b"\n-> scrypt " in self.data and b" 10\n" in self.data

    @property
    def header(self) -> bytes:
        end = self.data.index(b"\n--- ") + 1
        return self.data[: self.data.index(b"\n", end) + 1]


def vectors() -> list[Vector]:
    found = []
    for path in sorted((FOLDER / "age-cctv").iterdir()):
        head, _, data = path.read_bytes().partition(b"\n\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\n")]
        said = dict(fields)
        of = {kind: tuple(value for name, value in fields if name == kind) for kind in ("identity", "passphrase")}
        data = decompress(data) if said.get("compressed") == "zlib" else data
        key = bytes.fromhex(said.get("file key", ""))
        found.append(Vector(path.name, said["expect"], key, of["identity"], of["passphrase"], "armored" in said, data))
    assert len(found) >= 143
    return found


def opened(data: bytes, *, identities: tuple[str, ...] = (), passphrase: Optional[str] = None) -> Optional[llvs.Error]:
    """Returns the answer of a new store; it has nothing of refused files."""
    with llvs.Store(storage="memory") as store:
        try:
            if identities:
                store.unpack(data, identities=list(identities))
            else:
                store.unpack(data, passphrase=passphrase or "none was given")
        except llvs.Error as error:
            assert not list(store)
            return error
    return None


def answers(vector: Vector) -> list[llvs.Error]:
    """Returns the answers with its identities, and with each of its passphrases."""
    found = [opened(vector.data, passphrase=passphrase) for passphrase in vector.passphrases]
    if vector.identities or not found:
        found.append(opened(vector.data, identities=vector.identities))
    # No vector holds a pack.
    return [error for error in found if error is not None]


@needed("age-cctv")
def test_what_is_implemented_is_opened_and_all_else_is_refused() -> None:
    counts: dict[str, int] = {}
    for vector in vectors():
        errors = answers(vector)
        assert errors, vector.name
        for error in errors:
            about = f"{vector.name}: {error}"
            if vector.is_hybrid:
                kind = "hybrid"
                assert isinstance(error, llvs.errors.InvalidArgumentError) and "not an identity of age" in str(error), about
            elif vector.is_armored:
                kind = "armour"
                assert error.code == ErrorCode.FOREIGN_FILE and "not a file of age" in str(error), about
            elif vector.has_cheap_passphrase and vector.expect in ("success", "no match"):
                kind = "work factor"
                assert error.code == ErrorCode.TOO_LARGE and "work factor 10" in str(error), about
            elif vector.expect == "success":
                # The file was opened, and its contents are no pack.
                kind = "opened"
                assert error.code in (ErrorCode.FOREIGN_FILE, ErrorCode.CUT_SHORT) and "was not opened" not in str(error), about
            else:
                kind = vector.expect
                assert error.code in CODES[vector.expect], about
                assert "was not opened" in str(error) or kind == "payload failure" and len(vector.data) > model.SEGMENT, about
            counts[kind] = counts.get(kind, 0) + 1
    assert counts["opened"] >= 14 and counts["header failure"] >= 40 and counts["armour"] >= 30 and counts["hybrid"] >= 18


@needed("age-cctv")
def test_packs_behind_their_headers_are_read() -> None:
    """The header of each vector that is opened, and behind it a stream of packs under its key."""
    with llvs.Store(storage="memory") as store:
        version = store.make_version(insert={"a": b"1"})
        stream = store.pack()
    read = 0
    for vector in vectors():
        if vector.expect != "success" or vector.is_armored or not vector.identities or vector.is_hybrid:
            continue
        data = vector.header + model.payload(vector.file_key, bytes(range(16)), model.cut(stream))
        with llvs.Store(storage="memory") as store:
            store.unpack(data, identities=list(vector.identities))
            assert store.at(version.id)["a"] == b"1", vector.name
        # The tag of the last segment is of the key that the header wraps.
        error = opened(data[:-1] + bytes([data[-1] ^ 1]), identities=vector.identities)
        assert error is not None and error.code == ErrorCode.DAMAGED, vector.name
        read += 1
    assert read >= 14


@needed("age-cctv")
def test_recipients_that_are_not_implemented_are_passed_over() -> None:
    """Headers of hybrid recipients, opened with an identity that is."""
    mine = next(vector.identities for vector in vectors() if vector.name == "x25519")
    for vector in vectors():
        if vector.is_hybrid and not vector.is_armored:
            error = opened(vector.data, identities=mine)
            assert error is not None
            # If a part of it has the form of no recipient at all, the file counts as damaged.
            assert error.code in (ErrorCode.WRONG_KEY, ErrorCode.DAMAGED), f"{vector.name}: {error}"
            assert error.code == ErrorCode.WRONG_KEY or vector.expect == "header failure", f"{vector.name}: {error}"
