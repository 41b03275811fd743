"""Direct connections that the library carries over TCP and Unix sockets, on threads of its own."""

from __future__ import annotations

import ctypes
import socket
import threading
import time
from typing import Callable, Iterable, Iterator, Mapping, Optional, Union

from .. import _abi, errors
from .._abi.handle import Handle
from .._abi.memory import BytesLike, as_bytes, encode
from .._generated import structs as _structs
from ..exchange.exchange import Exchange
from ..store import _pages
from ..store.snapshot import Problem
from ..store.store import Store
from .peer import Peer, PeerOptions, PeerPhase, PeerState, Secret

lib = _abi.lib
byref = ctypes.byref

#: The address of a store: ("host", port), or the path of a Unix socket.
Address = Union[str, tuple[str, int]]

#: Seconds after which a wait lets the interpreter check for signals, so that Ctrl-C ends it.
_SLICE = 0.1
#: Seconds between two looks at a state for which the library cannot wait.
_PAUSE = 0.01
#: Seconds within which a link has ended once its session has: it tells the other side why before.
_FAREWELL = 10.0


class Link:
    """A direct connection that the library carries on a thread of its own: made by `connect`, by a `Listener`, or over a socket of the
    program. Each save on either side is sent to the other at once. The connection lasts until it is closed or cut, the store is closed, or
    the program drops the link that it made."""

    def __init__(self, peer: Peer, connection: Union[socket.socket, int]) -> None:
        """Lets the library carry an end over a connected socket of the program.

        peer: a new one, no bytes of which were carried yet. The link closes it.
        connection: a stream socket, or its descriptor. It belongs to the library from then on, which closes it, also if this call fails.
        Raises InvalidArgumentError (the peer is carried already), StorageError, ClosedError.
        """
        with peer._call as pointer:
            lib.llvs_peer_carry(pointer, connection if isinstance(connection, int) else connection.detach())
        self._set_up(peer)

    @classmethod
    def _of(cls, pointer: int, calls_back: bool) -> Link:
        """Returns the link of a peer that the library carries already."""
        link = cls.__new__(cls)
        link._set_up(Peer._of(pointer, calls_back))
        return link

    def _set_up(self, peer: Peer) -> None:
        self._peer = peer
        # Reentrant, since a handler of a signal may ask for the state, too.
        self._lock = threading.RLock()
        self._problems: list[Problem] = []
        self._state = PeerState(PeerPhase.CONNECTING, "", b"", 0, 0, ())
        self._error: Optional[Exception] = None
        #: Whether `Listener.accept` has not returned it yet.
        self._is_new = True

    @property
    def state(self) -> PeerState:
        """Returns the state, with all problems so far. After the link was closed: the last one."""
        with self._lock:
            try:
                state = self._peer.state
            except errors.ClosedError:
                state = self._state._replace(phase=PeerPhase.ENDED, problems=())
            self._problems += state.problems
            self._state = state._replace(problems=tuple(self._problems))
            return self._state

    @property
    def pairing(self) -> bytes:
        """The pairing that was received through an invitation or by comparing digits; store it as a secret for all further connections.
        Empty before it has arrived."""
        return self.state.pairing

    @property
    def error(self) -> Optional[Exception]:
        """The error that ended it; None while it is open, if both sides said goodbye, and if this side closed it."""
        if self._error is None and self._has_ended():
            try:
                self._await(_FAREWELL)
            except Exception as error:
                return error
        return self._error

    def _has_ended(self) -> bool:
        return self.state.phase == PeerPhase.ENDED

    def _await(self, seconds: float) -> bool:
        """Waits until both stores are in sync, or it has ended; returns whether they are in sync. Raises why it ended."""
        in_step = ctypes.c_uint32()
        try:
            with self._peer._call as pointer:
                lib.llvs_peer_wait(pointer, seconds, byref(in_step))
        except Exception as error:
            if self._peer.closed:
                return False
            if self._has_ended():
                self._error = error
            raise
        return bool(in_step.value)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until both stores are in sync, including all that this one has now, or the link has ended; returns whether they are in
        sync. timeout: seconds; None: without a limit.

        Raises why it ended: EncryptionError if the other side does not know the pairing or the invitation, or does not accept this device;
        TransportError and ExchangeDataError if the connection failed or was cut; what `quota` raised; see `Peer.receive`.
        """
        for seconds in _slices(timeout):
            if self._await(seconds):
                return True
            if self._has_ended():
                if (error := self.error) is not None:
                    raise error
                return False
        return False

    def digits(self, timeout: Optional[float] = None) -> str:
        """Returns six digits for people to compare on both sides, when they are known; see `confirm`. Raises TimeoutError, and why it
        ended."""
        until = None if timeout is None else time.monotonic() + timeout
        while not (state := self.state).digits:
            if state.phase == PeerPhase.ENDED:
                raise self.error or ConnectionError("The connection has ended: there are no digits to compare.")
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("The digits are not known yet.")
            time.sleep(_PAUSE)
        if state.phase == PeerPhase.ENDED and (error := self.error) is not None:
            raise error
        return state.digits

    def confirm(self) -> None:
        """Confirms that the person here sees the same digits on both sides. If they differ, close the link. Raises InvalidArgumentError if
        there are no digits (yet)."""
        self._peer.confirm()

    def set_background(self, is_in_background: bool) -> None:
        """Sets whether the program is in the background: see `Peer.set_background`."""
        self._peer.set_background(is_in_background)

    def close(self, timeout: float = 10.0) -> None:
        """Sends everything that waits, says goodbye, and waits for the other side to do so; then, or after that many seconds, it ends."""
        if self._peer.closed:
            return
        try:
            self._peer.goodbye()
            until = time.monotonic() + timeout
            while not self._has_ended() and time.monotonic() < until:
                time.sleep(_PAUSE)
            if self._has_ended() and self.error is None:
                # After each wait the library's thread has run its loop once more, so it has sent what was left to send.
                for _ in range(2):
                    self._await(_FAREWELL)
        except errors.Error:
            pass  # it has ended for another reason, which `error` tells
        finally:
            self._peer.close()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Listener(Handle):
    """Offers stores to direct connections, on threads of the library. Closing it ends all connections as `Link.close` does.

        with llvs.live.Listener(("0.0.0.0", 4040)) as listener:      # or llvs.live.listen({pairing: notes}, ...)
            listener.offer(notes, pairing)

    A device without the pairing of one of the stores gets no response. At most 32 connections at once may be unidentified, each for 10
    seconds. Connections from an address that failed five times within a minute are ignored.
    """

    _release = "llvs_listener_free"
    _warns = False
    # Close the listener before its links, so that they say goodbye.
    _exit_order = 2

    def __init__(
        self,
        address: Address,
        *,
        identity: Optional[BytesLike] = None,
        device: str = "",
        accepted: Iterable[BytesLike] = (),
        quota: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Listens at an address.

        address: of TCP ("host", port), by IPv4 or IPv6 (("::", 0): both), or the path of a Unix socket. Port 0 lets the system choose one.
        A Unix socket is accessible to its owner only (0600); one that a killed process left is replaced.
        accepted: see `Peer`; a device that gets a pairing here, by `invite` or `compare`, is accepted as long as this listens.
        For the rest see `Peer`. Raises TransportError (the address is in use, or not one of this machine), InvalidArgumentError.
        """
        options = PeerOptions(None, False, identity, device, accepted, None, False, quota)
        opened, found = ctypes.c_void_p(), _structs.llvs_buffer()
        lib.llvs_listener_open(_encoded(address), byref(options.raw), byref(opened))
        super().__init__(opened.value or 0)
        self._lock = threading.RLock()
        #: Links that the library returned: dropping one would end its connection. When there are `_most`, ended ones are dropped.
        self._links: list[Link] = []
        self._most = 16
        #: Whether a call of `compare` waits.
        self._compares = False
        with self._call as pointer:
            lib.llvs_listener_address(pointer, byref(found))
        #: The address at which it listens, for `connect`: with the port that the system chose, if 0 was given.
        self.address: Address = _decoded((_pages.take_buffer(found) or b"").decode())

    def _what(self) -> str:
        return "a listener for direct connections"

    def _detail(self) -> str:
        return repr(self.address)

    def offer(self, store: Store, pairing: Secret) -> None:
        """Offers a store, also in addition to others, to the devices that have its pairing. If an exchange with an encrypted place is
        passed instead of a pairing: to the members with the newest keys that the exchange has read. Raises EncryptionError (it has read
        none yet), PermissionDeniedError (the store was opened for reading only)."""
        with self._call as pointer, store._call as owner:
            if isinstance(pairing, Exchange):
                with pairing._call as members:
                    lib.llvs_listener_offer_members(pointer, owner, members)
            else:
                lib.llvs_listener_offer(pointer, owner, as_bytes(pairing, "a pairing"))
        self._calls_back = self._calls_back or store._calls_back

    def invite(self, pairing: BytesLike, seconds: float = 600.0) -> str:
        """Makes the code of an invitation to a store: a device that connects with it (`connect(..., invitation=code)`) receives the store's
        pairing.

        pairing: of a store that is offered here.
        seconds: how long it is valid. It is valid for one device: if that was cut before it was accepted, it may try again, with the same
        `identity`. Raises NotFoundError (no store is offered with that pairing), StorageError.
        """
        found = _structs.llvs_buffer()
        with self._call as pointer:
            lib.llvs_listener_invite(pointer, as_bytes(pairing, "a pairing"), seconds, byref(found))
        return (_pages.take_buffer(found) or b"").decode()

    def compare(self, pairing: BytesLike, seconds: float = 600.0) -> Link:
        """Waits for a device that connects to a store with `connect(..., compare=True)`, and returns its link when the digits are known.

            link = listener.compare(pairing)
            if same(link.digits()):     # asks the person here; the other one is asked there
                link.confirm()          # once both have, the device gets the pairing
            else:
                link.close()

        One device is admitted in a call. Raises NotFoundError (no store is offered with that pairing), BusyError (another call waits),
        TimeoutError, ConnectionError (the device was gone before the digits were known). An interrupted call admits a device until its time
        is over.
        """
        known = set(self.links)
        pairing = as_bytes(pairing, "a pairing")
        with self._lock:
            if self._compares:
                raise errors.BusyError("another call waits for a device already")
            self._arm(pairing, seconds)
            self._compares = True
        try:
            return self._compared(known, pairing, time.monotonic() + seconds)
        finally:
            self._compares = False

    def _arm(self, pairing: bytes, seconds: float) -> None:
        with self._call as pointer:
            lib.llvs_listener_compare(pointer, pairing, seconds)

    def _is_armed(self, pairing: bytes) -> bool:
        """Returns whether the library still waits for a device. If it does not, it now waits for no time."""
        try:
            self._arm(pairing, 0)
        except errors.BusyError:
            return True
        return False

    def _compared(self, known: set[Link], pairing: bytes, until: float) -> Link:
        """Returns the link of the device whose digits are compared. known: links that were made before."""
        has_come = False
        candidates: list[Link] = []
        while True:
            # After the device has connected, the library returns its link within moments.
            rest = 1.0 if has_come and not candidates else _SLICE if has_come else min(_SLICE, max(0.0, until - time.monotonic()))
            self._receive(rest)
            recent = [link for link in tuple(self._links) if link not in known]
            candidates = [link for link in recent if link.state.phase <= PeerPhase.NEGOTIATING]
            for link in candidates:
                if link._state.digits:
                    link._is_new = False
                    return link
            if has_come and not candidates:
                raise ConnectionError("The device that connected was gone before the digits were known. Compare again.")
            if not has_come:
                is_late = time.monotonic() >= until
                has_come = not self._is_armed(pairing)
                if is_late and not candidates:
                    raise TimeoutError("No device connected within the time. Compare again.")

    def _receive(self, seconds: float) -> bool:
        """Waits for a connection that the library did not return yet, and adds its link. Returns whether there was one."""
        made = ctypes.c_void_p()
        with self._call as pointer:
            lib.llvs_listener_accept(pointer, seconds, byref(made))
        if made.value is None:
            return False
        with self._lock:
            self._links.append(Link._of(made.value, self._calls_back))
            if len(self._links) >= self._most:
                self._forget_ended()
                self._most = max(16, 2 * len(self._links))
        return True

    def _forget_ended(self) -> None:
        self._links = [link for link in self._links if not link._has_ended()]

    @property
    def links(self) -> tuple[Link, ...]:
        """The connections that last; none after it was closed."""
        try:
            while self._receive(0):
                pass
        except errors.ClosedError:
            return ()
        with self._lock:
            self._forget_ended()
            return tuple(self._links)

    def accept(self, timeout: Optional[float] = None) -> Optional[Link]:
        """Returns the next connection that it did not return yet; None if there was none within that many seconds. Connections work whether
        or not the program calls this."""
        for seconds in _slices(timeout):
            if (link := self._next()) is None and self._receive(seconds):
                link = self._next()
            if link is not None:
                return link
        return None

    def _next(self) -> Optional[Link]:
        with self._lock:
            for link in self._links:
                if link._is_new:
                    link._is_new = False
                    if not link._has_ended():
                        return link
        return None

    def close(self) -> None:
        """Stops listening, says goodbye on all connections, and waits at most 10 seconds for the other sides to do so. In a forked child
        nothing of this is done: the parent continues."""
        super().close()
        self._links = []


def _slices(timeout: Optional[float]) -> Iterator[float]:
    """Splits a number of seconds into parts, after each of which the interpreter checks for signals: so Ctrl-C ends a wait."""
    if timeout is None:
        while True:
            yield _SLICE
    until = time.monotonic() + timeout
    yield timeout if not timeout > _SLICE else _SLICE
    while (rest := until - time.monotonic()) > 0:
        yield min(rest, _SLICE)


def _encoded(address: Address) -> bytes:
    """Returns an address in the library's form."""
    if isinstance(address, str):
        return encode(f"unix:{address}")
    host, port = address[:2]
    return encode(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _decoded(text: str) -> Address:
    """Returns an address that the library gave."""
    if text.startswith("unix:"):
        return text[len("unix:"):]
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def connect(
    store: Store,
    address: Address,
    pairing: Optional[Secret] = None,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
    invitation: Optional[str] = None,
    compare: bool = False,
    quota: Optional[Callable[[int], None]] = None,
    timeout: float = 10.0,
) -> Link:
    """Connects a store to the one that a listener offers at an address, and keeps them in sync.

        with llvs.live.connect(notes, ("10.0.0.7", 4040), pairing) as link:
            link.wait()                 # both have everything

    address: of `Listener.address`, of a device that `Nearby` found, or any other ("host", port); or the path of a Unix socket.
    pairing: or an exchange with an encrypted place whose members the two are: see `Peer`.
    invitation: instead of a pairing, a code of `Listener.invite` on the other side; `Link.pairing` then is the received pairing.
    compare: instead of both, people compare `Link.digits` on both sides, while the other side waits in `Listener.compare`.
    timeout: seconds for the connection itself. For the rest see `Peer`. Raises TransportError (no listener at the address), and what `Peer`
    raises.
    """
    options = PeerOptions(pairing, True, identity, device, accepted, invitation, compare, quota)
    pointer = ctypes.c_void_p()
    with store._call as owner, options.given() as given:
        lib.llvs_peer_connect(owner, given, _encoded(address), timeout, byref(pointer))
    return Link._of(pointer.value or 0, store._calls_back)


def listen(
    stores: Mapping[Union[bytes, Exchange], Store],
    address: Address,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
    quota: Optional[Callable[[int], None]] = None,
) -> Listener:
    """Offers stores at an address, each to the devices that have its pairing, and keeps them in sync with devices that connect.

        with llvs.live.listen({pairing: notes}, ("0.0.0.0", 4040)):
            ...

    stores: by the pairings of `make_pairing`; or by exchanges with encrypted places: then a store is offered to the members with the newest
    keys that the exchange has read. There are no invitations to such a store.
    For the rest see `Listener`. Raises TransportError, and what `Listener.offer` raises.
    """
    listener = Listener(address, identity=identity, device=device, accepted=accepted, quota=quota)
    try:
        for pairing, store in stores.items():
            listener.offer(store, pairing)
    except BaseException:
        listener.close()
        raise
    return listener
