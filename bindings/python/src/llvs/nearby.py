"""Devices on the local network that offer stores by `listen`: found by DNS-SD (RFC 6763), through the daemon of Avahi."""

from __future__ import annotations

import ctypes
import socket
import threading
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _abi, _callbacks, _constants as c, _structs, errors
from ._memory import copy, encode
from .listening import Listener
from .live import PeerListener
from .observer import Observer, observe


class Device(NamedTuple):
    """What is known of a device on the network, now."""

    #: What it calls itself there.
    name: str
    #: Where it listens, to be tried in this order; none: it has gone.
    addresses: tuple[tuple[str, int], ...]


class Nearby:
    """Finds devices on the local network that offer stores, and announces a listener to them, on a thread of its own.

        def found(device):
            for address in device.addresses: ...          # llvs.connect(notes, address, pairing), or llvs.Peer.connect
        with llvs.listen({pairing: notes}, ("0.0.0.0", 0)) as listener, llvs.Nearby(found, listener, name="Ann's laptop"):
            ...

    Whoever is found may be anybody: the pairing says who is let in, and links are encrypted. Everybody on the network sees the names, and
    no more: not which stores there are. Where no daemon of Avahi runs, a program finds devices by what it has, and gives their
    addresses to `connect`. When the daemon is started anew, all is announced and looked for again.
    """

    def __init__(
        self,
        found: Optional[Callable[[Device], Any]] = None,
        announced: Union[None, Listener, PeerListener, int] = None,
        *,
        name: str = "",
    ) -> None:
        """Begins at once.

        found: called for each device that comes, changes or goes, on the thread of this object, which waits for it. Not for what this
        object announces itself.
        announced: a listener of TCP, or its port; None: nothing is announced.
        name: what this device is called there, at most 63 bytes of UTF-8; the host's name unless it is given. Where another has it, a
        number is added.
        Raises UnsupportedError (no Avahi, or its daemon does not run), InvalidArgumentError.
        """
        if isinstance(announced, (Listener, PeerListener)):
            address = announced.address
            # A Unix socket of either.
            if isinstance(announced, Listener) and isinstance(address, str) or isinstance(address, str) and address.startswith("unix:"):
                raise errors.InvalidArgumentError("a listener at a path is not on the network; announce one of TCP")
            announced = int(address.rpartition(":")[2]) if isinstance(address, str) else address[1]
        if announced is not None and not 1 <= announced <= 65_535:
            raise errors.InvalidArgumentError("a port is 1 to 65,535")
        self._found = found
        self._lock = threading.Lock()
        self._label = name or socket.gethostname()
        self._known: dict[str, set[tuple[str, int]]] = {}
        self._observers: set[Observer] = set()
        self._observer = observe(
            _abi.lib.llvs_nearby_observe, (encode(self._label), announced or 0), _thunk, self._told, self._observers)

    @property
    def name(self) -> str:
        """What this device is called on the network, with a number where another has the name."""
        with self._lock:
            return self._label

    def _told(self, event: int, name: str, address: tuple[str, int]) -> None:
        """On the thread of the library, one call at a time."""
        if event == c.NEARBY_NAMED:
            with self._lock:
                self._label = name
            return
        addresses = self._known.setdefault(name, set())
        if event == c.NEARBY_FOUND:
            addresses.add(address)
        else:
            addresses.discard(address)
        if not addresses:
            del self._known[name]
        if self._found is not None:
            self._found(Device(name, tuple(sorted(addresses, key=lambda one: (one[0].startswith("fe80:"), one)))))

    def close(self) -> None:
        """Announces and finds no more; no callback runs any more behind it, but where a callback calls it."""
        self._observer.close()

    def __enter__(self) -> Nearby:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(pointer: int) -> str:
    found = _structs.llvs_bytes.from_address(pointer)
    return copy(found.data, found.size).decode(errors="replace") if found.size else ""


def _tell(told: Optional[Callable[[int, str, tuple[str, int]], None]], event: int, name: int, address: int, port: int) -> None:
    if told is not None:
        told(event, _text(name), (_text(address), port))


_thunk = _callbacks.unsolicited(
    [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32], _tell, "a callback for devices nearby")
