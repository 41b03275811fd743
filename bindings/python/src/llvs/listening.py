"""Offers stores to direct connections."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import struct
import threading
import time
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Union

from . import _abi, _constants as c, errors
from ._admission import Admission, HalfOpen, Refused, Source
from ._memory import BytesLike, as_bytes, encode
from .exchange import Exchange
from .links import Address, Link
from .live import Peer, invited, is_to_compare, make_invitation, offered, place_of, whom_it_is_for
from .store import Store

lib = _abi.lib
byref = ctypes.byref


class _Invitation:
    """Of a listener."""

    def __init__(self, pairing: bytes, until: float) -> None:
        #: The pairing that it gives, and until when it is valid.
        self.pairing, self.until = pairing, until
        #: Connections with it: one at a time while the device is unknown; afterwards it belongs to that device.
        self.links: list[Link] = []
        self.is_tried = self.is_used = False
        self.key = b""

    def look(self) -> None:
        """Checks its connections. It is used up when it is certain that its device has the pairing; a device that was cut before may try
        again."""
        # Live connections are checked again; the others do not change any more.
        living = [link for link in self.links if link._thread.is_alive()]
        for link in self.links:
            self.key = self.key or link._state.key
            self.is_used = self.is_used or (link._got_in and link._state.key == self.key)
        self.links = living

    @property
    def is_taken(self) -> bool:
        """Returns whether a connection with it has begun whose device is still unknown."""
        return self.is_tried or (not self.key and bool(self.links))


class _Greeting:
    """A connection that has not yet said which store it is for."""

    def __init__(self, connection: socket.socket, host: str, source: Source) -> None:
        self.connection, self.host, self.source, self.since = connection, host, source, time.monotonic()
        #: Whether it is being read; whether its first bytes have arrived; whether it ends to make room for another one.
        self.is_heard = self.has_begun = self.gives_way = False


class _Connected(NamedTuple):
    """A link, and its source address."""

    link: Link
    host: str
    source: Source
    since: float


class _Taken(Exception):
    """A connection with an invitation that another connection is using."""


class Listener:
    """Offers stores to direct connections, by their pairings, on a thread of its own; made by `listen`."""

    #: Seconds within which a connection must be identified. From one source, only as many are read as it may still have failures; the
    #: others wait.
    _PATIENCE = 10.0
    #: Seconds until a listener tries again, if the system has no more files for a connection.
    _PAUSE = 0.1

    def __init__(self, server: socket.socket, stores: Mapping[Union[bytes, Exchange], Store], options: dict[str, Any]) -> None:
        """Use `listen`."""
        self._server, self._stores, self._options = server, dict(stores), options
        #: The address at which it listens: with the port that the system chose, if 0 was given.
        self.address: Address = server.getsockname()[:2] if server.family != getattr(socket, "AF_UNIX", None) else server.getsockname()
        #: The file of a Unix socket as it was made, and by which process: a different file at that path is not removed.
        self._file = self._look()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._links: list[_Connected] = []
        self._greetings: dict[threading.Thread, _Greeting] = {}
        self._admission = Admission()
        self._closing = False
        #: By their codes.
        self._invitations: dict[str, _Invitation] = {}
        #: Links that give a pairing after comparing digits, and the device keys that got one.
        self._giving: list[Link] = []
        self._admitted: set[bytes] = set()
        #: The pending comparison of digits: the pairing of the store, until a device connects, and then the link.
        self._compared: Union[None, bytes, Link] = None
        self._arrived = threading.Condition(self._lock)
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
            return tuple(one.link for one in self._links)

    def _forget_ended(self) -> None:
        """Releases links that have ended. One that was never identified counts as a failure: a first message can be replayed."""
        links, self._links = self._links, []
        for one in links:
            # Read this first: a link that ends meanwhile has its key by then.
            is_alive = one.link._thread.is_alive()
            if one.link._state.key:
                self._admission.got_in(one.host)
            if is_alive:
                self._links.append(one)
            elif not one.link._state.key:
                self._refuse(one.source)

    def _refuse(self, source: Source) -> None:
        """Records a failed connection from that source."""
        self._admission.refuse(source.key, time.monotonic())

    def _make_room(self, host: str) -> Source:
        """Returns the source of a connection that was accepted; another one may end for it. Raises Refused."""
        self._forget_ended()
        now, source = time.monotonic(), self._admission.source(host)
        greetings = [one for one in self._greetings.values() if not one.gives_way]
        links = [one for one in self._links if not one.link._state.key]
        half_open = [HalfOpen(one.source, one.since, not one.has_begun) for one in greetings]
        half_open += [HalfOpen(one.source, one.since, False) for one in links]
        number = self._admission.decide(source, half_open, now)
        if number is not None:
            if number < len(greetings):
                greetings[number].gives_way = True
                if greetings[number].is_heard and now - greetings[number].since >= Admission.LEAST:
                    self._refuse(greetings[number].source)
            # Its thread closes it. The link then counts as a failure.
            end = greetings[number].connection if number < len(greetings) else links[number - len(greetings)].link._socket
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        return source

    def _hears(self, greeting: _Greeting) -> Optional[bool]:
        """Returns whether a connection may be read now; None: that source is ignored for a minute."""
        with self._lock:
            self._forget_ended()
            source, refused = greeting.source, self._admission.refusals(greeting.source.key, time.monotonic())
            strange = sum(one.is_heard and one.source == source for one in self._greetings.values())
            strange += sum(one.source == source and not one.link._state.key for one in self._links)
            if source.key and refused + strange >= Admission.STRANGERS:
                return None if refused >= Admission.STRANGERS else False
            greeting.is_heard = True
            return True

    def _run(self) -> None:
        while True:
            try:
                connection, address = self._server.accept()
            except OSError:
                if self._closing or self._server.fileno() < 0:
                    return
                time.sleep(self._PAUSE)
                continue
            host = place_of(address)
            try:
                with self._lock:
                    greeting = _Greeting(connection, host, self._make_room(host))
                    thread = threading.Thread(target=self._greet, args=(greeting,), name="llvs greeting", daemon=True)
                    self._greetings[thread] = greeting
                thread.start()
            except Refused:
                _drop(connection)
            except RuntimeError:  # The system has no more threads.
                with self._lock:
                    del self._greetings[thread]
                _drop(connection)

    def _greet(self, greeting: _Greeting) -> None:
        connection = greeting.connection
        # Only for a device that is not known to be paired; a failure of this side does not count.
        peer, is_strange, invitation = None, True, None
        try:
            beginning, until = b"", greeting.since + self._PATIENCE
            while not (heard := self._hears(greeting)):
                if heard is None or time.monotonic() >= until or self._closing or greeting.gives_way:
                    # A connection that waited for others of its address had no time to identify itself.
                    _drop(connection)
                    return
                time.sleep(0.02)
            while len(beginning) < c.PEER_BEGINNING:
                connection.settimeout(max(0.001, until - time.monotonic()))
                # The last byte is left unread until it is certain that the other side need not be told that it was cut: see `_drop`.
                most = c.PEER_BEGINNING - 1 - len(beginning)
                data = connection.recv(most) if most else connection.recv(1, socket.MSG_PEEK)
                if not data:
                    raise ConnectionError("it ended")
                beginning += data
            greeting.has_begun = True
            code, invitation = self._invited(beginning)
            connection.recv(1)
            compared = self._whose_digits(beginning) if code is None else None
            given = invitation.pairing if invitation is not None else compared
            secret: Union[bytes, Exchange]
            secret, store = whom_it_is_for(self._stores, beginning) if given is None else (given, self._stores[given])
            is_strange = False
            peer = Peer(
                store, secret, initiator=False, invitation=code, compare=compared is not None, place=greeting.source.key,
                **{**self._options, "accepted": self._accepted()})
            link = Link(store, connection, peer, beginning, until, b"" if invitation is None else invitation.key)
            with self._lock:
                self._links.append(_Connected(link, greeting.host, greeting.source, greeting.since))
                if invitation is not None:
                    invitation.links.append(link)
                if compared is not None:
                    self._giving.append(link)
                    self._compared = link
                    self._arrived.notify_all()
        except _Taken:
            _drop(connection)
        except (OSError, RuntimeError, errors.Error):
            if is_strange and not greeting.gives_way:
                with self._lock:
                    self._refuse(greeting.source)
            if greeting.gives_way:
                _drop(connection)
            else:
                connection.close()
            if peer is not None:
                peer.close()
        finally:
            with self._lock:
                if invitation is not None:
                    invitation.is_tried = False
                del self._greetings[threading.current_thread()]

    def _accepted(self) -> tuple[bytes, ...]:
        """Returns the accepted device keys, including those that got a pairing here. None: all."""
        with self._lock:
            self._look_at_invitations()
            living = [link for link in self._giving if link._thread.is_alive()]
            for link in [link for link in self._giving if link._got_in]:
                self._giving.remove(link)
                self._admitted.add(link._state.key)
            self._giving = [link for link in self._giving if link in living]
            accepted: tuple[bytes, ...] = self._options.get("accepted", ())
            return accepted and (*accepted, *self._admitted)

    def _look_at_invitations(self) -> None:
        """Removes expired ones, and accepts the devices that used one: such a device may have the pairing even if it was cut then."""
        now = time.monotonic()
        for code, invitation in list(self._invitations.items()):
            invitation.look()
            self._admitted |= {invitation.key} - {b""}
            if invitation.until <= now and not invitation.links and not invitation.is_tried:
                del self._invitations[code]

    def invite(self, pairing: BytesLike, seconds: float = 600.0) -> str:
        """Makes the code of an invitation to a store: a device that connects with it (`connect(..., invitation=code)`) receives the store's
        pairing.

        pairing: of a store that is offered here.
        seconds: how long it is valid. It is valid for one device: if that was cut before it was accepted, it may try again, with the same
        `identity`. Raises KeyError, StorageError.
        """
        pairing = as_bytes(pairing, "a pairing")
        self._stores[pairing]
        code = make_invitation()
        with self._lock:
            self._look_at_invitations()
            self._invitations[code] = _Invitation(pairing, time.monotonic() + seconds)
        return code

    def _invited(self, beginning: bytes) -> tuple[Optional[str], Optional[_Invitation]]:
        """Returns the invitation that a connection uses. Raises _Taken."""
        now = time.monotonic()
        with self._lock:
            self._look_at_invitations()
            code = invited((code for code, held in self._invitations.items() if held.until > now and not held.is_used), beginning)
            if code is None:
                return None, None
            invitation = self._invitations[code]
            if invitation.is_taken:
                raise _Taken
            invitation.is_tried = True
            return code, invitation

    def compare(self, pairing: BytesLike, seconds: float = 600.0) -> Link:
        """Waits for a device that connects to a store with `connect(..., compare=True)`, one at a time, and returns its link.

            link = listener.compare(pairing)
            if same(link.digits()):     # asks the person here; the other one is asked there
                link.confirm()          # once both have, the device gets the pairing
            else:
                link.close()

        Raises KeyError, BusyError (another call waits), TimeoutError.
        """
        pairing = as_bytes(pairing, "a pairing")
        self._stores[pairing]
        with self._arrived:
            if self._compared is not None:
                raise errors.BusyError("another call waits for a device already")
            self._compared = pairing
            try:
                self._arrived.wait_for(lambda: isinstance(self._compared, Link), seconds)
                if isinstance(self._compared, Link):
                    return self._compared
            finally:
                self._compared = None
        raise TimeoutError(f"No device connected within {seconds:g} seconds.")

    def _whose_digits(self, beginning: bytes) -> Optional[bytes]:
        """Returns the pairing that is given by comparing digits, if a connection begins like that. Only one device is admitted like
        that."""
        is_compared = is_to_compare(beginning)
        with self._lock:
            if not is_compared or not isinstance(self._compared, bytes):
                return None
            pairing, self._compared = self._compared, b""
            return pairing or None

    def close(self) -> None:
        """Stops listening, and ends the connections as `Link.close` does. In a forked child it only closes its own descriptor: the parent
        continues."""
        self._closing = True
        if self._process != os.getpid():
            self._server.close()  # a shutdown affects all processes, and the threads belong to the parent
            return
        try:
            self._server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._server.close()
        self._thread.join()
        with self._lock:
            greetings = dict(self._greetings)
        for thread, greeting in greetings.items():
            try:
                greeting.connection.shutdown(socket.SHUT_RD)
            except OSError:
                pass
            thread.join()
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


def _is_left(path: str) -> bool:
    """Returns whether a Unix socket has no listener any more, because its process was killed."""
    if path.startswith("\0") or not stat.S_ISSOCK(os.lstat(path).st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.setblocking(False)
        return one.connect_ex(path) == errno.ECONNREFUSED


def _drop(connection: socket.socket) -> None:
    """Closes a connection that cannot be handled now: the other side sees that it was cut, not that it is refused. A Unix socket reports
    that if some bytes were not read."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    connection.close()


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

        with llvs.listen({pairing: notes}, ("0.0.0.0", 4040)):
            ...

    stores: by the pairings of `make_pairing`; or by exchanges with encrypted places: then a store is offered to the members with the newest
    keys that the exchange has read. There are no invitations to such a store. A device without the pairing gets no response. A Unix socket
    is accessible to its owner only (0600); one that a killed process left is replaced.
    address: of TCP ("host", port), by IPv4 or IPv6 (("::", 0): both), or the path of a Unix socket.
    accepted: see `Peer`; a device that gets a pairing here, by `invite` or `compare`, is accepted as long as this listens.
    For the rest see `Peer`. Raises OSError, EncryptionError (an exchange has read no keys yet).
    """
    by_secret = offered(stores)
    if isinstance(address, str):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            try:
                server.bind(address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not _is_left(address):
                    raise
                os.unlink(address)
                server.bind(address)
            if not address.startswith("\0"):
                os.chmod(address, 0o600)  # before a device can connect
            server.listen(64)
        except BaseException:
            server.close()
            raise
    else:
        is_ipv6 = ":" in address[0]
        server = socket.create_server(
            address, family=socket.AF_INET6 if is_ipv6 else socket.AF_INET, backlog=64,
            dualstack_ipv6=is_ipv6 and address[0] == "::" and socket.has_dualstack_ipv6())
    return Listener(
        server, by_secret,
        {"identity": identity, "device": device, "accepted": tuple(as_bytes(key) for key in accepted), "quota": quota},
    )
