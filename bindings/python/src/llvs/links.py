"""Direct connections over sockets, each on a thread of its own: made by `connect`, or accepted by `listen`."""

from __future__ import annotations

import selectors
import socket
import threading
import time
import weakref
from typing import Callable, Iterable, Optional, Union

from . import errors
from ._memory import BytesLike
from .live import Peer, PeerPhase, PeerState, Secret
from .snapshot import Problem
from .observer import Observer
from .store import Store

#: The address of a store: ("host", port), or the path of a Unix socket.
Address = Union[str, tuple[str, int]]


class _News:
    """Notifies all links of a store of new versions, with one observer: each observer costs a thread of the library."""

    _lock = threading.Lock()
    _of: weakref.WeakKeyDictionary[Store, _News] = weakref.WeakKeyDictionary()

    def __init__(self) -> None:
        self._links: set[Link] = set()
        self._observer: Optional[Observer] = None

    @classmethod
    def join(cls, link: Link) -> None:
        with cls._lock:
            news = cls._of.get(link._store) or _News()
            if news._observer is None:
                news._observer = link._store.observe(news._tell)
                cls._of[link._store] = news
            news._links.add(link)

    @classmethod
    def leave(cls, link: Link) -> None:
        with cls._lock:
            news = cls._of.get(link._store)
            if news is None:
                return
            news._links.discard(link)
            observer = None if news._links else news._observer
            if observer is not None:
                news._observer = None
        if observer is not None:
            observer.close()  # it waits for a call that runs

    def _tell(self) -> None:
        with self._lock:
            links = tuple(self._links)
        for link in links:
            link._signal()


class Link:
    """A direct connection over a socket, on a thread of its own, made by `connect` or `listen`. It lasts until it is closed or cut, or the
    store is closed; each save on either side is sent to the other at once."""

    #: Bytes that are passed to the socket at once.
    _AT_ONCE = 1 << 18
    #: Seconds for the other side to read the remaining bytes when a connection ends.
    _FAREWELL = 5.0

    def __init__(
        self, store: Store, connection: socket.socket, peer: Peer, beginning: bytes = b"", known_by: Optional[float] = None,
        only: bytes = b"",
    ) -> None:
        """Begins at once: use `connect` and `listen`.

        beginning: the bytes of the connection received so far.
        known_by: until when, by `time.monotonic`, the other side must identify itself; None: as for `Peer.tick`.
        only: the device key of the device that the pairing is for; empty: any device with the invitation. Other devices are sent nothing.
        """
        self._known_by, self._only = known_by, only
        self._store, self._peer, self._socket = store, peer, connection
        self._changed = threading.Condition()
        self._state, self._error, self._problems = peer.state, None, []  # type: PeerState, Optional[BaseException], list[Problem]
        self._closing = False
        #: Whether it reached the phase in which versions are exchanged.
        self._got_in = False
        #: Bytes from the peer that were not passed to the socket yet; used by the thread only.
        self._outgoing = memoryview(b"")
        #: How often `wait` requested a check of the store, and how many of these the thread has done.
        self._asked = self._looked = 0
        self._wake, self._woken = socket.socketpair()
        for one in (connection, self._wake, self._woken):
            one.setblocking(False)
        if connection.family != getattr(socket, "AF_UNIX", None):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _News.join(self)
        self._thread = threading.Thread(target=self._run, args=(beginning,), name="llvs link", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            _News.leave(self)
            raise

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
                if not self._is_another():
                    self._tell_why()
            except (OSError, errors.Error):
                pass
        finally:
            self._note()
            with self._changed:
                self._state = self._state._replace(phase=PeerPhase.ENDED)
                self._changed.notify_all()
            _News.leave(self)
            for one in (self._socket, self._wake, self._woken):
                one.close()
            self._peer.close()

    def _is_another(self) -> bool:
        """Returns whether the other side is identified, and is not the device that the pairing is for."""
        return bool(self._only) and self._note().key not in (b"", self._only)

    def _hear(self) -> bytes:
        """Returns received bytes. Bytes that arrive together are stored together; but nothing after the handshake is read before
        `_is_another` is decided."""
        return self._socket.recv(1 if self._only and not self._state.key else 4 * self._AT_ONCE)

    def _tell_why(self) -> None:
        """Sends the reason for its end, after what was begun, as far as the other side reads it."""
        self._socket.settimeout(self._FAREWELL)
        self._socket.sendall(self._outgoing)
        while data := self._peer.send():
            self._socket.sendall(data)
        # If it were closed with unread bytes, the last bytes sent would be lost.
        self._socket.shutdown(socket.SHUT_WR)
        until = time.monotonic() + 1.0
        while (rest := until - time.monotonic()) > 0:
            self._socket.settimeout(rest)
            if not self._socket.recv(4 * self._AT_ONCE):
                break

    def _ended(self, cut: OSError) -> None:
        """Handles the end of the connection. Raises an error for it, unless the other side had said goodbye, or another error came
        before."""
        try:
            while not self._is_another() and (data := self._hear()):
                self._peer.receive(data)
        except OSError:
            pass
        if not self._state.key and not self._note().key:
            raise ConnectionError(
                f"The other side let nobody in ({cut.strerror}): it was ending, or has had too many tries from here that failed. Nothing "
                "was exchanged. Connect again in a minute; if that does not help, pair the two anew.") from cut
        self._peer.receive_end()

    def _carry(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            selector.register(self._socket, selectors.EVENT_READ)
            while True:
                if self._is_another():
                    raise ConnectionError("The invitation is another device's by now, which was cut when it used it.")
                if not self._outgoing:
                    self._outgoing = memoryview(self._peer.send(self._AT_ONCE))
                if self._note().phase == PeerPhase.ENDED and not self._outgoing:
                    return
                selector.modify(self._socket, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0))
                # A link that waits for versions requested by another link checks again each second.
                rest = 1.0 if self._state.phase == PeerPhase.EXCHANGING else 5.0
                if self._known_by is not None and not self._state.key:
                    rest = min(rest, self._known_by - time.monotonic())
                    if rest <= 0:
                        # Also a side that sends all the time, byte by byte.
                        raise ConnectionError("The other side did not say within 10 seconds who it is.")
                events = {key.fileobj: mask for key, mask in selector.select(timeout=rest)}
                self._peer.tick(time.monotonic())
                if self._woken in events:
                    self._woken.recv(4096)
                    asked = self._asked
                    # Saves made before the close are sent, too.
                    self._peer.store_changed()
                    if self._closing:
                        self._peer.goodbye()
                    self._note()
                    with self._changed:
                        self._looked = asked
                        self._changed.notify_all()
                mask = events.get(self._socket, 0)
                if mask & selectors.EVENT_READ:
                    try:
                        data = self._hear()
                    except OSError as cut:
                        return self._ended(cut)
                    if data:
                        self._peer.receive(data)
                    else:
                        self._peer.receive_end()
                        return
                if mask & selectors.EVENT_WRITE and self._outgoing:
                    try:
                        self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
                    except OSError as cut:
                        return self._ended(cut)

    def _note(self) -> PeerState:
        state = self._peer.state
        with self._changed:
            self._problems += state.problems
            self._state = state
            self._got_in = self._got_in or PeerPhase.EXCHANGING <= state.phase < PeerPhase.ENDED
            self._changed.notify_all()
        return state

    @property
    def state(self) -> PeerState:
        """Returns the state, with all problems so far."""
        with self._changed:
            return self._state._replace(problems=tuple(self._problems))

    @property
    def error(self) -> Optional[BaseException]:
        """The error that ended it, unless both sides said goodbye; None while it is open."""
        return self._error

    @property
    def pairing(self) -> bytes:
        """The pairing that was received through an invitation; store it as a secret for all further connections. Empty before it has
        arrived."""
        return self.state.pairing

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until both stores are in sync, including all that this one has now, or the link has ended; returns whether they are in
        sync. Raises why it ended."""
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

    def digits(self, timeout: Optional[float] = None) -> str:
        """Returns six digits for people to compare on both sides, when they are known; see `confirm`. Raises TimeoutError, and why it
        ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._state.digits or self._state.phase == PeerPhase.ENDED, timeout)
            state = self._state
        if state.phase == PeerPhase.ENDED and self._error is not None:
            raise self._error
        if not state.digits:
            raise TimeoutError("The digits are not known yet.")
        return state.digits

    def confirm(self) -> None:
        """Confirms that the person here sees the same digits on both sides. If they differ, close the link."""
        self._peer.confirm()
        self._signal()

    def set_background(self, is_in_background: bool) -> None:
        """Sets whether the program is in the background: see `Peer.set_background`."""
        self._peer.set_background(is_in_background)

    def close(self, timeout: float = 10.0) -> None:
        """Sends everything that waits, says goodbye, and waits for the other side to do so; then, or after that many seconds, it ends."""
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
    """Connects a store to the one that `listen` offers at an address, and keeps them in sync.

        with llvs.connect(notes, ("10.0.0.7", 4040), pairing) as link:
            link.wait()                 # both have everything

    pairing: or an exchange with an encrypted place whose members the two are: see `Peer`.
    invitation: instead of a pairing, a code of `Listener.invite` on the other side; `Link.pairing` then is the received pairing.
    compare: instead of both, people compare `Link.digits` on both sides, while the other side waits in `Listener.compare`.
    timeout: seconds for the connection itself. For the rest see `Peer`. Raises OSError, and what `Peer` raises.
    """
    peer = Peer(
        store, pairing, initiator=True, identity=identity, device=device, accepted=accepted, invitation=invitation, compare=compare,
        quota=quota)
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
