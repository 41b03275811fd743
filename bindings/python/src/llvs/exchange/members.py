"""Members: holders of the keys of an encrypted place."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from .. import _abi, errors
from .._abi.memory import copy, decode
from .._generated import constants as c, structs as _structs
from ..store import _pages
from ..words import MemberKind

lib = _abi.lib

_KINDS = {c.MEMBER_PASSPHRASE: "passphrase", c.MEMBER_RECOVERY: "recovery", c.MEMBER_DEVICE: "device", c.MEMBER_HOST: "host"}


class Member(NamedTuple):
    """A member: a holder of the keys of an encrypted place."""

    #: The public half of its identity: `age1...`.
    recipient: str
    #: "passphrase", "recovery", "device" or "host".
    kind: str
    #: For people.
    name: str
    #: When it was added, for people: "2026-11-22T20:00:00Z".
    added: str


class KeyPair(NamedTuple):
    """An identity of age, for a device to store, or as a recovery key to write on paper."""

    #: The secret half, `AGE-SECRET-KEY-1...`: it opens everything that is encrypted to its recipient.
    secret: str
    #: The public half, `age1...`.
    recipient: str

    def __repr__(self) -> str:
        return f"KeyPair(..., recipient={self.recipient!r})"


def make_identity() -> KeyPair:
    """Makes a random identity of age, as `age-keygen` does. Raises UnsupportedError (there is no libcrypto)."""
    secret, recipient = _structs.llvs_buffer(), _structs.llvs_buffer()
    lib.llvs_identity_create(ctypes.byref(secret), ctypes.byref(recipient))
    texts = [_pages.take_buffer(one) or b"" for one in (secret, recipient)]
    return KeyPair(texts[0].decode(), texts[1].decode())


def member_kind(kind: MemberKind) -> int:
    """The constant for a kind."""
    for number, name in _KINDS.items():
        if name == kind:
            return number
    raise errors.InvalidArgumentError(f"{kind!r} is no kind of member: use device, host or recovery")


def take_members(address: int) -> tuple[Member, ...]:
    """Returns the members in an `llvs_member_list`."""
    found = _structs.llvs_member_list.from_address(address)
    return tuple(_member(_structs.llvs_member.from_address(one)) for one in _pages.addresses(found.items, found.count))


def _member(found: _structs.llvs_member) -> Member:
    texts = [decode(copy(one.data, one.size)) if one.size else "" for one in (found.recipient, found.name, found.added)]
    return Member(texts[0], _KINDS.get(found.kind, "device"), texts[1], texts[2])
