"""Noise_XXpsk0_25519_ChaChaPoly_SHA256 in plain Python, written from the framework's specification (revision 34)."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

NAME = b"Noise_XXpsk0_25519_ChaChaPoly_SHA256"
PATTERN = (("psk", "e"), ("e", "ee", "s", "es"), ("s", "se"))
KEY, TAG = 32, 16


class Refused(Exception):
    """A message that cannot be decrypted."""


def mac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def public(secret: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def shared(secret: bytes, peer: bytes) -> bytes:
    try:
        return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(peer))
    except ValueError as error:
        raise Refused("a public key of low order") from error


def derive(chaining_key: bytes, material: bytes, count: int) -> list[bytes]:
    """The framework's HKDF."""
    temporary, outputs, last = mac(chaining_key, material), [], b""
    for number in range(1, count + 1):
        last = mac(temporary, last + bytes([number]))
        outputs.append(last)
    return outputs


class Cipher:
    """The framework's CipherState."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key, self.number = key, 0

    @staticmethod
    def nonce(number: int) -> bytes:
        return bytes(4) + struct.pack("<Q", number)

    def seal(self, data: bytes, also: bytes = b"") -> bytes:
        if self.key is None:
            return data
        sealed = ChaCha20Poly1305(self.key).encrypt(self.nonce(self.number), data, also)
        self.number += 1
        return sealed

    def open(self, data: bytes, also: bytes = b"") -> bytes:
        if self.key is None:
            return data
        try:
            opened = ChaCha20Poly1305(self.key).decrypt(self.nonce(self.number), data, also)
        except (InvalidTag, ValueError) as error:
            raise Refused("a message does not open") from error
        self.number += 1
        return opened

    def renew(self) -> None:
        assert self.key is not None
        self.key = ChaCha20Poly1305(self.key).encrypt(self.nonce(2**64 - 1), bytes(KEY), b"")[:KEY]


class Handshake:
    """The framework's HandshakeState and SymmetricState. `write` and `read` in turn, the initiator first."""

    def __init__(self, initiator: bool, psk: bytes, prologue: bytes, static: bytes, ephemeral: bytes | None = None) -> None:
        self.initiator, self.psk, self.static = initiator, psk, static
        self.ephemeral = ephemeral or os.urandom(KEY)
        self.chaining_key = self.hash = hashlib.sha256(NAME).digest() if len(NAME) > 32 else NAME.ljust(32, b"\0")
        self.cipher, self.step = Cipher(), 0
        self.their_static = self.their_ephemeral = b""
        self._mix_hash(prologue)

    @property
    def is_done(self) -> bool:
        return self.step == len(PATTERN)

    def _mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def _mix_key(self, material: bytes) -> None:
        self.chaining_key, key = derive(self.chaining_key, material, 2)
        self.cipher = Cipher(key)

    def _mix_psk(self) -> None:
        self.chaining_key, also, key = derive(self.chaining_key, self.psk, 3)
        self._mix_hash(also)
        self.cipher = Cipher(key)

    def _mix_shared(self, token: str) -> None:
        mine, theirs = token if self.initiator else token[::-1]
        secret = self.ephemeral if mine == "e" else self.static
        self._mix_key(shared(secret, self.their_ephemeral if theirs == "e" else self.their_static))

    def _seal(self, data: bytes) -> bytes:
        sealed = self.cipher.seal(data, self.hash)
        self._mix_hash(sealed)
        return sealed

    def _open(self, data: bytes) -> bytes:
        opened = self.cipher.open(data, self.hash)
        self._mix_hash(data)
        return opened

    def write(self, payload: bytes = b"") -> bytes:
        message = b""
        for token in PATTERN[self.step]:
            if token == "psk":
                self._mix_psk()
            elif token == "e":
                key = public(self.ephemeral)
                message += key
                self._mix_hash(key)
                self._mix_key(key)
            elif token == "s":
                message += self._seal(public(self.static))
            else:
                self._mix_shared(token)
        self.step += 1
        return message + self._seal(payload)

    def read(self, message: bytes) -> bytes:
        for token in PATTERN[self.step]:
            if token == "psk":
                self._mix_psk()
            elif token in ("e", "s"):
                size = KEY + (TAG if token == "s" and self.cipher.key is not None else 0)
                taken, message = message[:size], message[size:]
                if len(taken) < size:
                    raise Refused("a message is too short")
                if token == "e":
                    self.their_ephemeral = taken
                    self._mix_hash(taken)
                    self._mix_key(taken)
                else:
                    self.their_static = self._open(taken)
            else:
                self._mix_shared(token)
        self.step += 1
        return self._open(message)

    def split(self) -> tuple[Cipher, Cipher]:
        """Returns the cipher for sending, and the cipher for receiving."""
        first, second = (Cipher(key) for key in derive(self.chaining_key, b"", 2))
        return (first, second) if self.initiator else (second, first)
