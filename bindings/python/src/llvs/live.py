"""Direct connections between stores (docs/live-protocol.md): pairings, and one end of a connection, whose bytes somebody else carries."""

from __future__ import annotations

import ctypes
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Optional, Union

from . import _abi, _callbacks, _constants as c, _pages, _structs, errors
from ._enums import NamedNumber
from ._handle import Handle
from ._memory import BytesArray, BytesLike, Column, as_bytes, copy, decode, encode
from .exchange import Exchange
from .snapshot import Problem, take_problems
from .store import Store

lib = _abi.lib
byref = ctypes.byref

#: By what two devices know each other: the bytes of a pairing; or an exchange with an encrypted place, from whose newest keys, as it read
#: them last, the pairing of all members follows.
Secret = Union[BytesLike, Exchange]


def make_pairing() -> bytes:
    """Draws what all devices that exchange a store share: 48 bytes, to be given to the others in secret. Raises StorageError."""
    found = _structs.llvs_buffer()
    lib.llvs_pairing_make(byref(found))
    return _pages.take_buffer(found) or b""


def make_invitation() -> str:
    """Draws the code of an invitation: 26 digits and letters that people carry to a device which has no pairing yet, as text, as a link or
    as a QR code. It is good for one connection: see `Listener.invite` and `connect`. Raises StorageError."""
    found = _structs.llvs_buffer()
    lib.llvs_invitation_make(byref(found))
    return (_pages.take_buffer(found) or b"").decode()


def device_key(identity: BytesLike) -> bytes:
    """The public half of a device key, whose secret half is 32 random bytes (`os.urandom(32)`). Raises InvalidArgumentError."""
    found = _structs.llvs_buffer()
    lib.llvs_device_key(as_bytes(identity, "a device key"), byref(found))
    return _pages.take_buffer(found) or b""


class PeerPhase(NamedNumber):
    """How far a direct connection is."""

    #: It is not known yet who the other side is.
    CONNECTING = c.PEER_CONNECTING
    #: They find out what each lacks.
    NEGOTIATING = c.PEER_NEGOTIATING
    #: Versions are on their way.
    EXCHANGING = c.PEER_EXCHANGING
    #: Each has all that the other has.
    IN_STEP = c.PEER_IN_STEP
    #: Nothing comes any more.
    ENDED = c.PEER_ENDED


class PeerState(NamedTuple):
    """What happened on a direct connection until now."""

    #: How far it is.
    phase: PeerPhase
    #: What the other side says that it is called.
    device: str
    #: The public half of its device key; empty before it is known.
    key: bytes
    #: How many versions were sent.
    sent: int
    #: How many came, and were added.
    received: int
    #: What could not be sent or taken since the state was asked for before.
    problems: tuple[Problem, ...]
    #: The pairing that an invitation, or comparing digits, brought, to be kept in secret for all further connections; empty before it came.
    pairing: bytes = b""
    #: Six digits to be compared by people, where that was asked for; empty before they are known.
    digits: str = ""

    def __repr__(self) -> str:
        # The pairing is a secret, and this ends up in logs.
        fields = ((name, "..." if name == "pairing" and value else value) for name, value in zip(self._fields, self))
        return f"PeerState({', '.join(name + '=' + (value if value == '...' else repr(value)) for name, value in fields)})"


class _Options:
    """Options as the library takes them, with what they point to."""

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
    """One end of a direct connection, without the connection: whoever has one carries the bytes.

        peer.receive(data)              # what came
        data = peer.send()              # what is to be sent next; b"" when there is nothing

    After `receive`, `store_changed`, `tick` and `goodbye` there may be something to send. Any thread may use it. `connect` and
    `listen` do all this over sockets.
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
        """Opens it; it keeps the store.

        pairing: what `make_pairing` drew, the same on both sides; None: this side gets it by the invitation. Or an exchange with an
        encrypted place, whose members need no pairing: it follows from the newest keys that the exchange read, and when it reads newer
        ones, the connection ends (EncryptionError), since whoever is at its other end may have been removed.
        invitation: the code of one, by which this connection is made. The side that has a pairing gives it to the other, which has none.
        initiator: whether this side made the connection.
        identity: the secret half of this device's key, 32 bytes that stay the same; None: one for this connection alone.
        device: what the other side is told that this device is called.
        accepted: public halves of the device keys that are accepted; none: all that have the pairing. Whoever is given the pairing on this
        connection, by an invitation or by comparing digits, is let in whatever its key.
        compare: people compare `PeerState.digits` on both sides, and each says so by `confirm`, in the place of an invitation.
        quota: called with a number of bytes before so many more are stored; what it raises ends the connection. It must not use the peer
        or its store.
        place: the address of the other side, for a program that lets in whoever has the pairing: what one address may have looked through
        is bounded then, whatever device keys are used there.
        outer: for a program that carries the bytes within TLS: what its exporter gives ("EXPORTER-Channel-Binding", RFC 9266). The other
        side has to give the same, else somebody in between holds two connections, and this one ends (EncryptionError).
        Raises EncryptionError (the exchange read no keys yet), InvalidArgumentError, PermissionDeniedError (the store was opened for
        reading only), UnsupportedError (no libcrypto).
        """
        options = _Options(pairing, initiator, identity, device, accepted, invitation, compare, quota, place, outer)
        pointer = ctypes.c_void_p()
        with store._call as owner, options.given() as given:
            lib.llvs_peer_open(owner, given, byref(pointer))
        super().__init__(pointer.value or 0)
        self._calls_back = store._calls_back

    def _what(self) -> str:
        return "the end of a direct connection"

    def receive(self, data: BytesLike) -> None:
        """Takes what came, and stores what is whole of it.

        Raises why the connection ended, if it did: EncryptionError (the other side is not paired), StorageError and TooLargeError (it broke
        a rule). `send` then gives what tells it.
        """
        with self._call as pointer:
            lib.llvs_peer_receive(pointer, as_bytes(data, "what came"))

    def receive_end(self) -> None:
        """Nothing comes any more. Raises EncryptionError when the other side ended it before it said who it is, as it does for those whom
        it does not know, and ExchangeDataError when it had not said goodbye."""
        with self._call as pointer:
            lib.llvs_peer_receive_end(pointer)

    def send(self, limit: int = 65_536) -> bytes:
        """What is to be sent next, at most so many bytes; b"" when there is nothing, until something came or was saved."""
        buffer, size = ctypes.create_string_buffer(max(1, limit)), ctypes.c_size_t()
        with self._call as pointer:
            lib.llvs_peer_send(pointer, buffer, len(buffer), byref(size))
        return buffer.raw[: size.value]

    def store_changed(self) -> None:
        """Looks for versions that came into the store, to be sent."""
        with self._call as pointer:
            lib.llvs_peer_store_changed(pointer)

    def tick(self, seconds: float) -> None:
        """Says what time it is, every few seconds. Raises ExchangeDataError when the other side has been silent for too long."""
        with self._call as pointer:
            lib.llvs_peer_tick(pointer, seconds)

    def confirm(self) -> None:
        """Says that the person on this side sees the same digits on both. Raises InvalidArgumentError when there are none (yet)."""
        with self._call as pointer:
            lib.llvs_peer_confirm(pointer)

    @classmethod
    def connect(
        cls,
        store: Store,
        address: Union[str, tuple[str, int]],
        pairing: Optional[Secret] = None,
        *,
        identity: Optional[BytesLike] = None,
        device: str = "",
        accepted: Iterable[BytesLike] = (),
        invitation: Optional[str] = None,
        compare: bool = False,
        quota: Optional[Callable[[int], None]] = None,
        timeout: float = 10.0,
    ) -> Peer:
        """Connects a store to the one that is offered at "host:port", "[host]:port" or "unix:/path", or at a (host, port) that `Nearby`
        found. The library carries the bytes, on a thread of its own; only `state`, `wait`, `confirm`, `set_background`, `store_changed`,
        `goodbye` and `close` are for such a peer. Raises TransportError (nothing listens there), and what `Peer` raises."""
        options = _Options(pairing, True, identity, device, accepted, invitation, compare, quota)
        pointer = ctypes.c_void_p()
        if not isinstance(address, str):
            host, port = address
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        with store._call as owner, options.given() as given:
            lib.llvs_peer_connect(owner, given, encode(address), timeout, byref(pointer))
        return cls._of(pointer.value or 0, store._calls_back)

    @classmethod
    def _of(cls, pointer: int, calls_back: bool) -> Peer:
        peer = cls.__new__(cls)
        Handle.__init__(peer, pointer)
        peer._calls_back = calls_back
        return peer

    def carry(self, descriptor: int) -> None:
        """Has the library carry the bytes over a connected socket, which it takes over (`socket.detach()`), and closes."""
        with self._call as pointer:
            lib.llvs_peer_carry(pointer, descriptor)

    def wait(self, timeout: float) -> bool:
        """Waits until both stores are in step, or the connection has ended; whether they are. For what the library carries. Raises why it
        ended: EncryptionError when the other side does not know the pairing or the invitation, or does not accept this device."""
        in_step = ctypes.c_uint32()
        for seconds in _slices(timeout):
            began = time.monotonic()
            with self._call as pointer:
                lib.llvs_peer_wait(pointer, seconds, byref(in_step))
            # It has ended, where that was not waited for.
            if in_step.value or time.monotonic() - began < seconds - 0.02:
                break
        return bool(in_step.value)

    def set_background(self, is_in_background: bool) -> None:
        """Says whether the program is in the background from now on: then it says goodbye, at a `tick`, when no version went either way for
        20 minutes."""
        with self._call as pointer:
            lib.llvs_peer_set_background(pointer, bool(is_in_background))

    def goodbye(self) -> None:
        """Says goodbye once all has been sent and stored."""
        with self._call as pointer:
            lib.llvs_peer_close(pointer)

    @property
    def state(self) -> PeerState:
        """What happened until now."""
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


class PeerListener(Handle):
    """Offers stores to those that connect directly, on threads of the library's: what `listen` does on Python's, without asking the
    interpreter for a turn. Its end says goodbye to who is connected.

        with llvs.PeerListener("0.0.0.0:4040") as listener:
            listener.offer(notes, pairing)
    """

    _release = "llvs_listener_free"
    _warns = False

    def __init__(
        self,
        address: str,
        *,
        identity: Optional[BytesLike] = None,
        device: str = "",
        accepted: Iterable[BytesLike] = (),
        quota: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Listens at "host:port", "[host]:port" or "unix:/path".

        accepted: see `Peer`; whoever is given a pairing here, by `invite` or `compare`, is accepted as long as this listens.
        For the rest see `Peer`. Raises TransportError, InvalidArgumentError."""
        options = _Options(None, False, identity, device, accepted, None, False, quota)
        pointer = ctypes.c_void_p()
        lib.llvs_listener_open(encode(address), byref(options.raw), byref(pointer))
        super().__init__(pointer.value or 0)

    def _what(self) -> str:
        return "a listener for direct connections"

    def offer(self, store: Store, pairing: Secret) -> None:
        """Offers a store, one of several, to those that have its pairing; or, where that is an exchange with an encrypted place, to those
        that have the newest keys of it which the exchange has read. Raises EncryptionError (it read none yet)."""
        with self._call as pointer, store._call as owner:
            if isinstance(pairing, Exchange):
                with pairing._call as members:
                    lib.llvs_listener_offer_members(pointer, owner, members)
            else:
                lib.llvs_listener_offer(pointer, owner, as_bytes(pairing, "a pairing"))
        self._calls_back = self._calls_back or store._calls_back

    @property
    def address(self) -> str:
        """Where it listens, with the port that the system chose: for `Peer.connect`."""
        found = _structs.llvs_buffer()
        with self._call as pointer:
            lib.llvs_listener_address(pointer, byref(found))
        return (_pages.take_buffer(found) or b"").decode()

    def invite(self, pairing: BytesLike, seconds: float = 600.0) -> str:
        """The code of an invitation to a store that is offered: see `Listener.invite`. Raises NotFoundError."""
        found = _structs.llvs_buffer()
        with self._call as pointer:
            lib.llvs_listener_invite(pointer, as_bytes(pairing, "a pairing"), seconds, byref(found))
        return (_pages.take_buffer(found) or b"").decode()

    def compare(self, pairing: BytesLike, seconds: float = 600.0) -> None:
        """Lets one device in whose digits people compare: `accept` gives it. Raises NotFoundError, BusyError."""
        with self._call as pointer:
            lib.llvs_listener_compare(pointer, as_bytes(pairing, "a pairing"), seconds)

    def accept(self, timeout: float) -> Optional[Peer]:
        """The next connection that was not given yet, which goes on whether or not somebody asks for it; None when none came. Closing it
        ends the connection."""
        made = ctypes.c_void_p()
        for seconds in _slices(timeout):
            with self._call as pointer:
                lib.llvs_listener_accept(pointer, seconds, byref(made))
            if made.value:
                break
        return Peer._of(made.value, self._calls_back) if made.value else None


def _slices(timeout: float) -> Iterator[float]:
    """So many seconds in parts, after each of which the interpreter looks at signals: Ctrl-C ends a wait."""
    until = time.monotonic() + timeout
    yield timeout if not timeout > _SLICE else _SLICE
    while (rest := until - time.monotonic()) > 0:
        yield min(rest, _SLICE)


_SLICE = 0.1


def _has(found: Any, field: str) -> bool:
    """Whether a struct that the library made is as large as that: it grows by fields at its end."""
    place = getattr(type(found), field)
    return bool(found.struct_size >= place.offset + place.size)


def _ask_for_room(quota: Callable[[int], None], count: int) -> None:
    quota(count)


_quota_thunk = _callbacks.solicited([ctypes.c_uint64], _ask_for_room)
_quota = ctypes.cast(_quota_thunk, ctypes.c_void_p).value


def is_to_compare(beginning: bytes) -> bool:
    """Whether people are to compare digits, by the `PEER_BEGINNING` bytes that a connection began with: who made it has no pairing yet."""
    fits = ctypes.c_uint32()
    lib.llvs_pairing_matches(b"", beginning, byref(fits))
    return bool(fits.value)


def invited(codes: Iterable[str], beginning: bytes) -> Optional[str]:
    """The one of several invitations by which a connection begins; None: it begins by none of them."""
    fits = ctypes.c_uint32()
    for code in codes:
        lib.llvs_pairing_matches(encode(code), beginning, byref(fits))
        if fits.value:
            return code
    return None


def place_of(address: Any) -> str:
    """The host of an address that a socket gives; "" for one that has none."""
    return str(address[0]) if isinstance(address, tuple) and address else ""


def offered(stores: Mapping[Union[bytes, Exchange], Store]) -> dict[Union[bytes, Exchange], Store]:
    """Stores by what they are offered by. Raises EncryptionError for an exchange that has read no keys yet."""
    made: dict[Union[bytes, Exchange], Store] = {}
    for secret, store in stores.items():
        if isinstance(secret, Exchange):
            secret.pairing(read_anew=False)
            made[secret] = store
        else:
            made[as_bytes(secret, "a pairing")] = store
    return made


def whom_it_is_for(stores: Mapping[Union[bytes, Exchange], Store], beginning: bytes) -> tuple[Union[bytes, Exchange], Store]:
    """Which of several stores a connection is for, with what it is offered by, by the `PEER_BEGINNING` bytes that it began with. Raises
    ConnectionError when it is for none."""
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
