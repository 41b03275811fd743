"""Opens files of an encrypted remote, from docs/encryption.md and the age specification alone: files of age, rings, packs."""

from __future__ import annotations

import base64
import hmac
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Collection, NamedTuple

from .basics import TRAILER, Damaged
from .names import parse
from .reader import Pack, read_pack, read_root

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Vectors" / "age"))

import model as age  # noqa: E402


class Epoch(NamedTuple):
    number: int
    secret: bytes

    @property
    def mac_key(self) -> bytes:
        return age.hkdf(self.secret, b"", b"llvs mac 1")

    @property
    def name_key(self) -> bytes:
        return age.hkdf(self.secret, b"", b"llvs name 1")


def _b64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _unseal(key: bytes, nonce: bytes, sealed: bytes) -> bytes:
    plain = age.chacha20(key, nonce, sealed[:-16], 1)
    if age.seal(key, nonce, plain) != sealed:
        raise Damaged("it does not open")
    return plain


def secret_of(text: str) -> bytes:
    """Returns the 32 bytes of an AGE-SECRET-KEY-1..."""
    digits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    number = 0
    for digit in text.lower().rpartition("1")[2][:-6]:
        number = number << 5 | digits.index(digit)
    secret = (number >> 52 * 5 - 256).to_bytes(32, "big")
    assert age.bech32("age-secret-key-", secret).upper() == text
    return secret


def recipient_of(secret: bytes) -> str:
    return age.bech32("age", age.x25519(secret))


def open_age(data: bytes, secrets: Collection[bytes] = (), passphrase: bytes = b"") -> bytes:
    """Returns the plaintext of a file of age."""
    end = data.index(b"\n---") + 4
    mac_end = data.index(b"\n", end)
    lines = data[:end].decode("ascii").split("\n")
    assert lines[0] == "age-encryption.org/v1" and lines[-1] == "---"
    stanzas: list[tuple[list[str], bytes]] = []
    for line in lines[1:-1]:
        if line.startswith("-> "):
            stanzas.append((line[3:].split(" "), b""))
        else:
            stanzas[-1] = (stanzas[-1][0], stanzas[-1][1] + line.encode())
    for (kind, *words), wrapped in stanzas:
        keys = []
        if kind == "X25519":
            share = _b64(words[0])
            keys = [age.hkdf(age.x25519(one, share), share + age.x25519(one), b"age-encryption.org/v1/X25519") for one in secrets]
        elif kind == "scrypt" and passphrase:
            keys = [age.scrypt_key(passphrase, _b64(words[0]), int(words[1]))]
        for key in keys:
            try:
                file_key = _unseal(key, bytes(12), _b64(wrapped.decode()))
            except Damaged:
                continue
            if hmac.digest(age.hkdf(file_key, b"", b"header"), data[:end], "sha256") != _b64(data[end + 1 : mac_end].decode()):
                raise Damaged("the header is not what was written")
            return _segments(age.hkdf(file_key, data[mac_end + 1 : mac_end + 17], b"payload"), data[mac_end + 17 :])
    raise Damaged("nothing here opens it")


def _segments(key: bytes, data: bytes) -> bytes:
    size, plain, count = age.SEGMENT + 16, b"", max(1, -(-len(data) // (age.SEGMENT + 16)))
    for number in range(count):
        nonce = number.to_bytes(11, "big") + bytes([number == count - 1])
        plain += _unseal(key, nonce, data[number * size : (number + 1) * size])
    return plain


def open_ring(data: bytes, secrets: Collection[bytes]) -> tuple[dict[str, object], list[Epoch]]:
    """Returns the contents of a ring, and its epochs, after their tags are checked."""
    first, *tags = open_age(data, secrets).rstrip(b"\n").split(b"\n")
    said = json.loads(first)
    epochs = [Epoch(one["number"], secret_of(one["identity"])) for one in said["epochs"]]
    expected = {f"{recipient_of(one.secret)} {hmac.digest(one.mac_key, first, 'sha256').hex()}".encode() for one in epochs}
    if set(tags) != expected:
        raise Damaged("a tag of the ring")
    return said, epochs


def _plain(name: str, data: bytes, epochs: Collection[Epoch]) -> tuple[str, bytes]:
    """Returns a pack without its tag, after that is checked, and the name that the pack would have unencrypted."""
    parsed = parse(name)
    assert parsed is not None and sha256(data).digest()[:16] == parsed.id, "not the bytes of the name"
    for epoch in epochs:
        try:
            plain = open_age(data, [epoch.secret])
        except Damaged:
            continue
        trailer = plain[-TRAILER:]
        if hmac.digest(epoch.mac_key, trailer[72:104], "sha256") != trailer[104:136]:
            raise Damaged("the tag is wrong")
        plain = plain[:-TRAILER] + trailer[:104] + bytes(32) + trailer[136:]
        return str(parsed._replace(id=sha256(plain).digest()[:16])), plain
    raise Damaged("no epoch opens it")


def read_encrypted_pack(name: str, data: bytes, store: bytes, epochs: Collection[Epoch]) -> Pack:
    return read_pack(*_plain(name, data, epochs), [store])


def read_encrypted_root(name: str, data: bytes, epochs: Collection[Epoch]) -> tuple[bytes, str]:
    return read_root(*_plain(name, data, epochs))


def blob_digest(value: bytes, epoch: Epoch) -> bytes:
    """Returns the name for the parts of a large value."""
    return hmac.digest(epoch.name_key, sha256(value).digest(), "sha256")[:16]
