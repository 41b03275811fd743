"""Direct connections between stores (docs/live-protocol.md): pairings, and one end of a connection, whose bytes the program carries."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

from .. import _abi, errors
from .._abi import callbacks as _callbacks
from .._abi.enums import NamedNumber
from .._abi.handle import Handle
from .._abi.memory import BytesArray, BytesLike, Column, as_bytes, copy, decode, encode
from .._generated import constants as c, structs as _structs
from ..exchange.exchange import Exchange
from ..store import _pages
from ..store.snapshot import Problem, take_problems
from ..store.store import Store

lib = _abi.lib
byref = ctypes.byref

#: How two devices recognise each other: the bytes of a pairing; or an exchange with an encrypted place, from whose newest keys that it has
#: read the pairing of all members is derived.
Secret = Union[BytesLike, Exchange]


def make_pairing() -> bytes:
    """Makes a random pairing, the secret that all devices of a store share: 48 bytes; give them to the others in secret. Raises
    StorageError."""
    found = _structs.llvs_buffer()
    lib.llvs_pairing_create(byref(found))
    return _pages.take_buffer(found) or b""


def make_invitation() -> str:
    """Makes the random code of an invitation: 26 digits and letters, which people pass to a device that has no pairing yet, as text, a link
    or a QR code. It is valid for one connection: see `Listener.invite` and `connect`. Raises StorageError."""
    found = _structs.llvs_buffer()
    lib.llvs_invitation_create(byref(found))
    return (_pages.take_buffer(found) or b"").decode()


def device_key(identity: BytesLike) -> bytes:
    """Returns the public half of a device key, whose secret half is 32 random bytes (`os.urandom(32)`). Raises InvalidArgumentError."""
    found = _structs.llvs_buffer()
    lib.llvs_device_key(as_bytes(identity, "a device key"), byref(found))
    return _pages.take_buffer(found) or b""


class PeerPhase(NamedNumber):
    """The phase of a direct connection."""

    #: The other side is not yet identified.
    CONNECTING = c.PEER_CONNECTING
    #: The sides find out what each lacks.
    NEGOTIATING = c.PEER_NEGOTIATING
    #: Versions are being transferred.
    EXCHANGING = c.PEER_EXCHANGING
    #: Each side has all versions of the other.
    IN_STEP = c.PEER_IN_STEP
    #: The connection has ended.
    ENDED = c.PEER_ENDED


class PeerState(NamedTuple):
    """The state of a direct connection."""

    #: Its phase.
    phase: PeerPhase
    #: The name that the other side gave itself.
    device: str
    #: The public half of its device key; empty before it is known.
    key: bytes
    #: How many versions were sent.
    sent: int
    #: How many versions were received and added.
    received: int
    #: Versions that could not be sent or received since the last call for the state.
    problems: tuple[Problem, ...]
    #: The pairing that was received through an invitation, or by comparing digits; store it as a secret for all further connections. Empty
    #: before it has arrived.
    pairing: bytes = b""
    #: With `compare`: six digits for people to compare; empty before they are known.
    digits: str = ""

    def __repr__(self) -> str:
        # The pairing is a secret, and this text may be logged.
        fields = ((name, "..." if name == "pairing" and value else value) for name, value in zip(self._fields, self))
        return f"PeerState({', '.join(name + '=' + (value if value == '...' else repr(value)) for name, value in fields)})"


class PeerOptions:
    """The options of a peer in the library's form, with everything that they point to."""

    def __init__(
        self,
        pairing: Optional[Secret],
        initiator: bool,
        identity: Optional[BytesLike],
        device: str,
        accepted: Iterable[BytesLike],
        invitation: Optional[str],
        compare: bool,
        quota: Optional[Callable[[int], None]],
        place: str = "",
        outer: BytesLike = b"",
    ) -> None:
        self._members = pairing if isinstance(pairing, Exchange) else None
        self._secrets = secrets = Column([
            b"" if pairing is None or isinstance(pairing, Exchange) else as_bytes(pairing, "a pairing"),
            b"" if identity is None else as_bytes(identity, "a device key"), encode(device),
            b"" if invitation is None else encode(invitation), encode(place), as_bytes(outer, "what an exporter gives"),
        ])
        self._keys = keys = BytesArray(as_bytes(key, "a device key") for key in accepted)
        self.raw = options = _structs.llvs_peer_options(
            struct_size=ctypes.sizeof(_structs.llvs_peer_options), initiator=bool(initiator))
        fields = (options.pairing, options.identity, options.device, options.invitation, options.place, options.outer)
        for field, start, size in zip(fields, secrets.addresses, secrets.sizes):
            field.data, field.size = start if size else None, size
        options.accepted, options.accepted_count = keys.address, keys.count
        options.compares_digits = bool(compare)
        if quota is not None:
            options.quota, options.quota_payload = _quota, _callbacks.register(quota)
            options.quota_free = ctypes.cast(_callbacks.payload_free, ctypes.c_void_p).value

    @contextmanager
    def given(self) -> Iterator[Any]:
        """For the call that takes them."""
        if self._members is None:
            yield byref(self.raw)
            return
        with self._members._call as pointer:
            self.raw.exchange = pointer
            yield byref(self.raw)


class Peer(Handle):
    """One end of a direct connection; the program carries the bytes.

        peer.receive(data)              # what came
        data = peer.send()              # what is to be sent next; b"" when there is nothing

    After `receive`, `store_changed`, `tick` and `goodbye` there may be something to send. Any thread may use it. `connect` and
    `listen` do all this over TCP and Unix sockets, and `Link` over a socket of the program.
    """

    _release = "llvs_peer_free"
    _warns = False

    def __init__(
        self,
        store: Store,
        pairing: Optional[Secret] = None,
        *,
        initiator: bool,
        identity: Optional[BytesLike] = None,
        device: str = "",
        accepted: Iterable[BytesLike] = (),
        invitation: Optional[str] = None,
        compare: bool = False,
        quota: Optional[Callable[[int], None]] = None,
        place: str = "",
        outer: BytesLike = b"",
    ) -> None:
        """Opens it; it keeps the store open.

        pairing: the result of `make_pairing`, the same on both sides; None: this side gets it through the invitation. Or an exchange with
        an encrypted place, whose members need no pairing: it is derived from the newest keys that the exchange has read. When the exchange
        reads newer keys, the connection ends (EncryptionError), since the other device may have been removed.
        invitation: the code of an invitation, used for this connection. The side that has a pairing sends it to the other, which has none.
        initiator: whether this side made the connection.
        identity: the secret half of this device's key, 32 bytes that stay the same; None: a new key for this connection only.
        device: the name of this device, which is sent to the other side.
        accepted: public halves of the device keys that are accepted; none: all devices that have the pairing. A device that gets the
        pairing on this connection, through an invitation or by comparing digits, is accepted with any key.
        compare: people compare `PeerState.digits` on both sides, and each side confirms with `confirm`, instead of an invitation.
        quota: called with a number of bytes before that many more are stored; if it raises, the connection ends. It must not use the peer
        or its store.
        place: the address of the other side, for a program that accepts all devices with the pairing. It limits how much of the store one
        address may have compared, whatever device keys it uses.
        outer: for a program that carries the bytes within TLS: the channel binding of that TLS connection ("EXPORTER-Channel-Binding", RFC
        9266). The other side must give the same. Otherwise an attacker between the two holds two TLS connections, and this connection ends
        (EncryptionError).
        Raises EncryptionError (the exchange read no keys yet), InvalidArgumentError, PermissionDeniedError (the store was opened for
        reading only), UnsupportedError (no libcrypto).
        """
        options = PeerOptions(pairing, initiator, identity, device, accepted, invitation, compare, quota, place, outer)
        pointer = ctypes.c_void_p()
        with store._call as owner, options.given() as given:
            lib.llvs_peer_open(owner, given, byref(pointer))
        super().__init__(pointer.value or 0)
        self._calls_back = store._calls_back

    def _what(self) -> str:
        return "the end of a direct connection"

    def receive(self, data: BytesLike) -> None:
        """Passes received bytes to the peer, which stores the versions that are complete.

        Raises why the connection ended, if it did: EncryptionError (the other side is not paired), StorageError and TooLargeError (it broke
        a rule). The bytes that `send` returns then tell the other side.
        """
        with self._call as pointer:
            lib.llvs_peer_receive(pointer, as_bytes(data, "what came"))

    def receive_end(self) -> None:
        """Tells the peer that the connection delivers no more bytes. Raises EncryptionError if the other side closed the connection before
        it identified itself, as it does for unknown devices, and ExchangeDataError if it had not said goodbye."""
        with self._call as pointer:
            lib.llvs_peer_receive_end(pointer)

    def send(self, limit: int = 65_536) -> bytes:
        """Returns the next bytes to send, at most `limit`; b"" if there are none, until bytes are received or versions saved."""
        buffer, size = ctypes.create_string_buffer(max(1, limit)), ctypes.c_size_t()
        with self._call as pointer:
            lib.llvs_peer_send(pointer, buffer, len(buffer), byref(size))
        return buffer.raw[: size.value]

    def store_changed(self) -> None:
        """Checks the store for new versions to send."""
        with self._call as pointer:
            lib.llvs_peer_store_changed(pointer)

    def tick(self, seconds: float) -> None:
        """Tells the peer the time; call it every few seconds. Raises ExchangeDataError if the other side has been silent for too long."""
        with self._call as pointer:
            lib.llvs_peer_tick(pointer, seconds)

    def confirm(self) -> None:
        """Confirms that the person on this side sees the same digits on both. Raises InvalidArgumentError if there are none (yet)."""
        with self._call as pointer:
            lib.llvs_peer_confirm(pointer)

    @classmethod
    def _of(cls, pointer: int, calls_back: bool) -> Peer:
        peer = cls.__new__(cls)
        Handle.__init__(peer, pointer)
        peer._calls_back = calls_back
        return peer

    def set_background(self, is_in_background: bool) -> None:
        """Sets whether the program is in the background. In the background the peer says goodbye, at a `tick`, if no version was
        transferred for 20 minutes."""
        with self._call as pointer:
            lib.llvs_peer_set_background(pointer, bool(is_in_background))

    def goodbye(self) -> None:
        """Says goodbye after everything has been sent and stored."""
        with self._call as pointer:
            lib.llvs_peer_close(pointer)

    @property
    def state(self) -> PeerState:
        """Returns the state."""
        made = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_peer_get_state(pointer, byref(made))
        try:
            found = _structs.llvs_peer_state.from_address(made.value or 0)
            return PeerState(
                PeerPhase(found.phase),
                decode(copy(found.device.data, found.device.size)) if found.device.size else "",
                copy(found.key.data, found.key.size) if found.key.size else b"",
                found.sent,
                found.received,
                take_problems(found.problems, found.problem_count),
                copy(found.pairing.data, found.pairing.size) if found.pairing.size else b"",
                decode(copy(found.digits.data, found.digits.size)) if _has(found, "digits") and found.digits.size else "",
            )
        finally:
            lib.llvs_peer_state_free(made.value)


def _has(found: Any, field: str) -> bool:
    """Returns whether a struct of the library has at least that size: it grows by fields at its end."""
    place = getattr(type(found), field)
    return bool(found.struct_size >= place.offset + place.size)


def _ask_for_room(quota: Callable[[int], None], count: int) -> None:
    quota(count)


_quota_thunk = _callbacks.solicited([ctypes.c_uint64], _ask_for_room)
_quota = ctypes.cast(_quota_thunk, ctypes.c_void_p).value


def is_to_compare(beginning: bytes) -> bool:
    """Returns whether people compare digits, from the first `PEER_BEGINNING` bytes of a connection: the device that made it has no pairing
    yet."""
    fits = ctypes.c_uint32()
    lib.llvs_pairing_matches(b"", beginning, byref(fits))
    return bool(fits.value)


def invited(codes: Iterable[str], beginning: bytes) -> Optional[str]:
    """Returns which of several invitations a connection uses; None: none of them."""
    fits = ctypes.c_uint32()
    for code in codes:
        lib.llvs_pairing_matches(encode(code), beginning, byref(fits))
        if fits.value:
            return code
    return None


def place_of(address: Any) -> str:
    """Returns the host of a socket's address; "" if it has none."""
    return str(address[0]) if isinstance(address, tuple) and address else ""


def whom_it_is_for(stores: Mapping[Union[bytes, Exchange], Store], beginning: bytes) -> tuple[Union[bytes, Exchange], Store]:
    """Returns which of several stores a connection is for, and its pairing, from the first `PEER_BEGINNING` bytes. Raises ConnectionError
    if it is for none."""
    fits = ctypes.c_uint32()
    for secret, store in stores.items():
        try:
            pairing = secret.pairing(read_anew=False) if isinstance(secret, Exchange) else secret
        except errors.Error:  # it was closed, and offers nothing any more
            continue
        lib.llvs_pairing_matches(pairing, beginning, byref(fits))
        if fits.value:
            return secret, store
    raise ConnectionError("The connection is of nobody who is paired with a store here.")
