"""The handshake compared with the published vectors of its pattern, message by message, from both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import noise
import pytest


def vectors() -> Iterator[dict[str, bytes]]:
    for block in (Path(__file__).parent / "noise_vectors.txt").read_text().split("\n\n")[1:]:
        lines = dict(line.split("=", 1) for line in block.split())
        assert lines.pop("handshake").encode() == noise.NAME
        yield {name: bytes.fromhex(value) for name, value in lines.items()}


def sides(vector: dict[str, bytes]) -> tuple[noise.Handshake, noise.Handshake]:
    prologue, psk = vector.get("prologue", b""), vector["preshared_key"]
    return (
        noise.Handshake(True, psk, prologue, vector["init_static"], vector["gen_init_ephemeral"]),
        noise.Handshake(False, psk, prologue, vector["resp_static"], vector["gen_resp_ephemeral"]),
    )


@pytest.mark.parametrize("vector", list(vectors()))
def test_published_vectors(vector: dict[str, bytes]) -> None:
    initiator, responder = pair = sides(vector)
    for number in range(3):
        writer, reader = pair if number % 2 == 0 else pair[::-1]
        message = writer.write(vector[f"msg_{number}_payload"])
        assert message == vector[f"msg_{number}_ciphertext"]
        assert reader.read(message) == vector[f"msg_{number}_payload"]
    assert initiator.hash == responder.hash and initiator.is_done and responder.is_done
    assert initiator.their_static == noise.public(vector["resp_static"])
    (sends, receives), (answers, hears) = initiator.split(), responder.split()
    # After the handshake: a message of the initiator, and one of the responder.
    for number, (cipher, other) in ((3, (sends, hears)), (4, (answers, receives))):
        sealed = cipher.seal(vector[f"msg_{number}_payload"])
        assert sealed == vector[f"msg_{number}_ciphertext"] and other.open(sealed) == vector[f"msg_{number}_payload"]


def test_every_changed_bit_of_the_handshake_is_refused() -> None:
    vector = next(vectors())
    first = sides(vector)[0].write()
    for bit in range(8 * len(first)):
        changed = bytearray(first)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(noise.Refused):
            sides(vector)[1].read(bytes(changed))


@pytest.mark.parametrize("other", [{"preshared_key": bytes(32)}, {"prologue": b"another"}])
def test_another_secret_or_store_is_refused(other: dict[str, bytes]) -> None:
    vector = next(vectors())
    with pytest.raises(noise.Refused):
        sides({**vector, **other})[1].read(sides(vector)[0].write())


def test_renewed_keys_open() -> None:
    sends, hears = noise.Cipher(b"k" * 32), noise.Cipher(b"k" * 32)
    before = sends.seal(b"x")
    assert hears.open(before) == b"x"
    sends.renew()
    sealed = sends.seal(b"y")
    with pytest.raises(noise.Refused):
        hears.open(sealed)
    hears.renew()
    assert hears.open(sealed) == b"y"
