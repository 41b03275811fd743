"""Direct connections between stores (docs/live-protocol.md)."""

from __future__ import annotations

import ctypes
import enum
import os
import selectors
import socket
import threading
import time
from typing import Any, Iterable, Mapping, NamedTuple, Optional, Union

from . import _abi, _constants as c, _pages, _structs, errors
from ._handle import Handle
from ._memory import BytesArray, BytesLike, Column, as_bytes, copy, decode, encode
from .snapshot import Problem, take_problems
from .store import Store

lib = _abi.lib
byref = ctypes.byref

#: Where a store is found: ("host", port), or the path of a Unix socket.
Address = Union[str, tuple[str, int]]


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


class PeerPhase(enum.IntEnum):
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
    #: The pairing that an invitation brought, to be kept in secret for all further connections; empty before it came.
    pairing: bytes = b""


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
        pairing: Optional[BytesLike] = None,
        *,
        initiator: bool,
        identity: Optional[BytesLike] = None,
        device: str = "",
        accepted: Iterable[BytesLike] = (),
        invitation: Optional[str] = None,
    ) -> None:
        """Opens it; it keeps the store.

        pairing: what `make_pairing` drew, the same on both sides; None: this side gets it by the invitation.
        invitation: the code of one, by which this connection is made. The side that has a pairing gives it to the other, which has none.
        initiator: whether this side made the connection.
        identity: the secret half of this device's key, 32 bytes that stay the same; None: one for this connection alone.
        device: what the other side is told that this device is called.
        accepted: public halves of the device keys that are accepted; none: all that have the pairing.
        Raises InvalidArgumentError, PermissionDeniedError (the store was opened for reading only), UnsupportedError (no libcrypto).
        """
        secrets = Column([
            b"" if pairing is None else as_bytes(pairing, "a pairing"), b"" if identity is None else as_bytes(identity, "a device key"),
            encode(device), b"" if invitation is None else encode(invitation),
        ])
        keys = BytesArray(as_bytes(key, "a device key") for key in accepted)
        options = _structs.llvs_peer_options(struct_size=ctypes.sizeof(_structs.llvs_peer_options), initiator=bool(initiator))
        fields = (options.pairing, options.identity, options.device, options.invitation)
        for field, start, size in zip(fields, secrets.addresses, secrets.sizes):
            field.data, field.size = start if size else None, size
        options.accepted, options.accepted_count = keys.address, keys.count
        pointer = ctypes.c_void_p()
        with store._call as owner:
            lib.llvs_peer_open(owner, byref(options), byref(pointer))
        super().__init__(pointer.value or 0)
        self._store = store
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
        """Nothing comes any more. Raises ExchangeDataError when the other side had not said goodbye."""
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
            )
        finally:
            lib.llvs_peer_state_free(made.value)


class Link:
    """A direct connection over a socket, on a thread of its own, made by `connect` or `listen`. It lasts until it is closed, is cut, or the
    store is closed; what is saved on either side goes to the other at once."""

    def __init__(self, store: Store, connection: socket.socket, peer: Peer, beginning: bytes = b"") -> None:
        """Begins at once: use `connect` and `listen`.

        beginning: what has come of the connection already.
        """
        self._peer, self._socket = peer, connection
        self._changed = threading.Condition()
        self._state, self._error, self._problems = peer.state, None, []  # type: PeerState, Optional[BaseException], list[Problem]
        self._closing = False
        #: How often `wait` asked for a look at the store, and which of these the thread has done.
        self._asked = self._looked = 0
        self._wake, self._woken = socket.socketpair()
        for one in (connection, self._wake, self._woken):
            one.setblocking(False)
        if connection.family != getattr(socket, "AF_UNIX", None):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._observer = store.observe(self._signal)
        self._thread = threading.Thread(target=self._run, args=(beginning,), name="llvs link", daemon=True)
        self._thread.start()

    def _signal(self) -> None:
        try:
            self._wake.send(b"x")
        except OSError:  # It is full, or the link has ended.
            pass

    def _run(self, beginning: bytes) -> None:
        try:
            if beginning:
                self._peer.receive(beginning)
            self._carry()
        except BaseException as error:
            self._error = error
            try:
                while data := self._peer.send():
                    self._socket.sendall(data)
            except (OSError, errors.Error):
                pass
        finally:
            self._note()
            with self._changed:
                self._state = self._state._replace(phase=PeerPhase.ENDED)
                self._changed.notify_all()
            self._observer.close()
            for one in (self._socket, self._wake, self._woken):
                one.close()
            self._peer.close()

    def _carry(self) -> None:
        outgoing = memoryview(b"")
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._socket, selectors.EVENT_READ)
            while True:
                if not outgoing:
                    outgoing = memoryview(self._peer.send())
                if self._note().phase == PeerPhase.ENDED and not outgoing:
                    return
                selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if outgoing else 0))
                events = {key.fileobj: mask for key, mask in selector.select(timeout=5.0)}
                self._peer.tick(time.monotonic())
                if self._woken in events:
                    self._woken.recv(4096)
                    asked = self._asked
                    if self._closing:
                        self._peer.goodbye()
                    else:
                        self._peer.store_changed()
                    self._note()
                    with self._changed:
                        self._looked = asked
                        self._changed.notify_all()
                mask = events.get(self._socket, 0)
                if mask & selectors.EVENT_READ:
                    data = self._socket.recv(1 << 18)
                    if data:
                        self._peer.receive(data)
                    else:
                        self._peer.receive_end()
                        return
                if mask & selectors.EVENT_WRITE and outgoing:
                    outgoing = outgoing[self._socket.send(outgoing) :]

    def _note(self) -> PeerState:
        state = self._peer.state
        with self._changed:
            self._problems += state.problems
            self._state = state
            self._changed.notify_all()
        return state

    @property
    def state(self) -> PeerState:
        """What happened until now, with all problems met."""
        with self._changed:
            return self._state._replace(problems=tuple(self._problems))

    @property
    def error(self) -> Optional[BaseException]:
        """Why it ended, unless both sides said goodbye; None while it lasts."""
        return self._error

    @property
    def pairing(self) -> bytes:
        """The pairing that an invitation brought, to be kept in secret for all further connections; empty before it came."""
        return self.state.pairing

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until both stores are in step, with all that is in this one now, or it has ended; whether they are. Raises why it ended."""
        with self._changed:
            self._asked += 1
            asked = self._asked
        self._signal()

        def settled() -> bool:
            return self._state.phase == PeerPhase.ENDED or (self._looked >= asked and self._state.phase >= PeerPhase.IN_STEP)

        with self._changed:
            is_settled = self._changed.wait_for(settled, timeout)
            phase = self._state.phase
        if phase == PeerPhase.ENDED:
            self._thread.join()
            if self._error is not None:
                raise self._error
        return is_settled and phase == PeerPhase.IN_STEP

    def close(self, timeout: float = 10.0) -> None:
        """Sends what is to be sent, says goodbye, and waits for the other side to do so; then, or after so many seconds, it ends."""
        self._closing = True
        self._signal()
        self._thread.join(timeout)
        if self._thread.is_alive():
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self._thread.join()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    store: Store,
    address: Address,
    pairing: Optional[BytesLike] = None,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
    invitation: Optional[str] = None,
    timeout: float = 10.0,
) -> Link:
    """Connects a store to the one that `listen` offers at an address, and keeps them in step.

        with llvs.connect(notes, ("10.0.0.7", 4040), pairing) as link:
            link.wait()                 # both have everything

    invitation: in the place of a pairing, a code that `Listener.invite` gave on the other side; `Link.pairing` then is what it brought.
    timeout: seconds for the connection itself. For the rest see `Peer`. Raises OSError, and what `Peer` raises.
    """
    peer = Peer(store, pairing, initiator=True, identity=identity, device=device, accepted=accepted, invitation=invitation)
    try:
        if isinstance(address, str):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(timeout)
            try:
                connection.connect(address)
            except BaseException:
                connection.close()
                raise
        else:
            connection = socket.create_connection(address, timeout)
    except BaseException:
        peer.close()
        raise
    return Link(store, connection, peer)


def whom_it_is_for(stores: Mapping[bytes, Store], beginning: bytes) -> tuple[bytes, Store]:
    """Which of several stores a connection is for, with its pairing, by the `PEER_BEGINNING` bytes that it began with. Raises
    ConnectionError when it is for none."""
    fits = ctypes.c_uint32()
    for pairing, store in stores.items():
        lib.llvs_pairing_matches(pairing, beginning, byref(fits))
        if fits.value:
            return pairing, store
    raise ConnectionError("The connection is of nobody who is paired with a store here.")


class Listener:
    """Offers stores to those that connect, by their pairings, on a thread of its own; made by `listen`."""

    #: Connections of which it is not known yet whose they are: so many, of one address so many, each for so many seconds.
    _HALF_OPEN, _FROM_ONE, _PATIENCE = 32, 16, 10.0
    #: Connections from one address in a minute that did not get in; of so many addresses that is remembered.
    _STRANGERS, _PLACES = 5, 4_096
    #: Seconds until a listener that the system gives no connection, for lack of files, tries again.
    _PAUSE = 0.1

    def __init__(self, server: socket.socket, stores: Mapping[bytes, Store], options: dict[str, Any]) -> None:
        """Use `listen`."""
        self._server, self._stores, self._options = server, dict(stores), options
        #: Where it listens: with the port that the system chose, where 0 was given.
        self.address: Address = server.getsockname()[:2] if server.family != getattr(socket, "AF_UNIX", None) else server.getsockname()
        #: The file of a Unix socket as it was made, and by which process: another's in its place stays.
        self._file = self._look()
        self._process = os.getpid()
        self._lock = threading.Lock()
        #: With the addresses that they come from; none is known of a Unix socket.
        self._links: list[tuple[Link, str]] = []
        #: Those that connected and have not said yet for which store.
        self._greetings: dict[threading.Thread, tuple[socket.socket, str]] = {}
        self._refused: dict[str, list[float]] = {}
        self._closing = False
        #: By their codes: whose they are, and until when they are good.
        self._invitations: dict[str, tuple[bytes, float]] = {}
        self._thread = threading.Thread(target=self._run, name="llvs listener", daemon=True)
        self._thread.start()

    def _look(self) -> Optional[tuple[int, int]]:
        """Which file is at the path of a Unix socket."""
        try:
            status = os.lstat(self.address) if isinstance(self.address, str) else None
        except (OSError, ValueError):  # it is gone, or has no file
            return None
        return status and (status.st_dev, status.st_ino)

    @property
    def links(self) -> tuple[Link, ...]:
        """The connections that last."""
        with self._lock:
            self._forget_ended()
            return tuple(link for link, _ in self._links)

    def _forget_ended(self) -> None:
        """Lets go of links that have ended. Who never said who it is was a stranger: a first message can be replayed."""
        ended = [(link, place) for link, place in self._links if not link._thread.is_alive()]
        self._links = [(link, place) for link, place in self._links if link._thread.is_alive()]
        for link, place in ended:
            if not link._state.key:
                self._refuse(place)

    def _refuse(self, place: str) -> None:
        """Remembers that somebody from there did not get in."""
        tries = self._refused.pop(place, [])
        # The last is the one that was added to last.
        self._refused[place] = tries[-self._STRANGERS :] + [time.monotonic()]
        while len(self._refused) > self._PLACES:
            del self._refused[next(iter(self._refused))]

    def _takes(self, place: str) -> bool:
        """Whether a connection from there is looked at."""
        self._forget_ended()
        since = time.monotonic() - 60
        half_open = [of for _, of in self._greetings.values()] + [of for link, of in self._links if not link._state.key]
        return (
            len(half_open) < self._HALF_OPEN
            and (not place or half_open.count(place) < self._FROM_ONE)
            and sum(at > since for at in self._refused.get(place, [])) < self._STRANGERS
        )

    def _run(self) -> None:
        while True:
            try:
                connection, address = self._server.accept()
            except OSError:
                if self._closing or self._server.fileno() < 0:
                    return
                time.sleep(self._PAUSE)
                continue
            place = str(address[0]) if address else ""
            greeting = threading.Thread(target=self._greet, args=(connection, place), name="llvs greeting", daemon=True)
            with self._lock:
                takes = self._takes(place)
                if takes:
                    self._greetings[greeting] = connection, place
            try:
                if takes:
                    greeting.start()
            except RuntimeError:  # The system has no more threads.
                takes = False
                with self._lock:
                    del self._greetings[greeting]
            if not takes:
                connection.close()

    def _greet(self, connection: socket.socket, place: str) -> None:
        peer = None
        try:
            beginning, until = b"", time.monotonic() + self._PATIENCE
            while len(beginning) < c.PEER_BEGINNING:
                connection.settimeout(max(0.001, until - time.monotonic()))
                data = connection.recv(c.PEER_BEGINNING - len(beginning))
                if not data:
                    raise ConnectionError("it ended")
                beginning += data
            code = self._invited(beginning)
            pairing, store = whom_it_is_for(self._stores, beginning) if code is None else (code[1], self._stores[code[1]])
            peer = Peer(store, pairing, initiator=False, invitation=code and code[0], **self._options)
            link = Link(store, connection, peer, beginning)
            with self._lock:
                self._links.append((link, place))
        except (OSError, RuntimeError, errors.Error):
            with self._lock:
                self._refuse(place)
            connection.close()
            if peer is not None:
                peer.close()
        finally:
            with self._lock:
                del self._greetings[threading.current_thread()]

    def invite(self, pairing: BytesLike, seconds: float = 600.0) -> str:
        """The code of an invitation to a store: whoever connects with it (`connect(..., invitation=code)`) gets the store's pairing.

        pairing: of the store, one of those that are offered here.
        seconds: for how long it is good; it is good once. Raises KeyError, StorageError.
        """
        pairing = as_bytes(pairing, "a pairing")
        self._stores[pairing]
        code = make_invitation()
        with self._lock:
            now = time.monotonic()
            self._invitations = {one: held for one, held in self._invitations.items() if held[1] > now}
            self._invitations[code] = pairing, now + seconds
        return code

    def _invited(self, beginning: bytes) -> Optional[tuple[str, bytes]]:
        """The invitation by which a connection begins, and the pairing of its store. It is used up."""
        fits, now = ctypes.c_uint32(), time.monotonic()
        with self._lock:
            for code, (pairing, until) in self._invitations.items():
                lib.llvs_pairing_matches(encode(code), beginning, byref(fits))
                if fits.value and until > now:
                    del self._invitations[code]
                    return code, pairing
        return None

    def close(self) -> None:
        """Listens no more, and ends the connections as `Link.close` does."""
        self._closing = True
        try:
            self._server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._server.close()
        self._thread.join()
        with self._lock:
            greetings = dict(self._greetings)
        for greeting, (connection, _) in greetings.items():
            try:
                connection.shutdown(socket.SHUT_RD)
            except OSError:
                pass
            greeting.join()
        if isinstance(self.address, str) and self._file is not None and self._file == self._look() and self._process == os.getpid():
            try:
                os.unlink(self.address)
            except OSError:
                pass
        for link in self.links:
            link.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(
    stores: Mapping[bytes, Store],
    address: Address,
    *,
    identity: Optional[BytesLike] = None,
    device: str = "",
    accepted: Iterable[BytesLike] = (),
) -> Listener:
    """Offers stores at an address, each to those that have its pairing, and keeps them in step with whoever connects.

        with llvs.listen({pairing: notes}, ("0.0.0.0", 4040)):
            ...

    stores: by the pairings that `make_pairing` drew. For the rest see `Peer`. Who is not paired gets no answer. A Unix socket is made for
    its owner alone (0600). Raises OSError.
    """
    if isinstance(address, str):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.bind(address)
            if not address.startswith("\0"):
                os.chmod(address, 0o600)  # before anybody can connect
            server.listen(64)
        except BaseException:
            server.close()
            raise
    else:
        server = socket.create_server(address, backlog=64)
    return Listener(
        server, {as_bytes(pairing): store for pairing, store in stores.items()},
        {"identity": identity, "device": device, "accepted": tuple(accepted)},
    )
