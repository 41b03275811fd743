"""Finds devices on the local network that offer stores with `listen`, by DNS-SD (RFC 6763), through the Avahi daemon."""

from __future__ import annotations

import ctypes
import socket
import threading
from typing import Any, Callable, NamedTuple, Optional, Union

from .. import _abi, errors
from .._abi import callbacks as _callbacks
from .._abi.memory import copy, encode
from .._generated import constants as c, structs as _structs
from ..control import Observer, observe
from .links import Listener


class Device(NamedTuple):
    """A device on the network, as known now."""

    #: The name that it announces.
    name: str
    #: The addresses at which the device listens, to be tried in this order. None: the device is gone.
    addresses: tuple[tuple[str, int], ...]


class Nearby:
    """Finds devices on the local network that offer stores, and announces a listener to them, on a thread of its own.

        def found(device):
            for address in device.addresses: ...          # llvs.live.connect(notes, address, pairing)
        with llvs.live.listen({pairing: notes}, ("0.0.0.0", 0)) as listener, llvs.live.Nearby(found, listener, name="Ann's laptop"):
            ...

    A found device may be any device: the pairing decides which devices are admitted, and links are encrypted. Every device on the network
    sees the names, but not which stores there are. Without the Avahi daemon, a program has to find devices in another way, and passes their
    addresses to `connect`. After a restart of the daemon, announcing and searching continue.
    """

    def __init__(
        self,
        found: Optional[Callable[[Device], Any]] = None,
        announced: Union[None, Listener, int] = None,
        *,
        name: str = "",
    ) -> None:
        """Begins at once.

        found: called for each device that appears, changes or disappears, on the thread of this object, which waits for it. Not called for
        this object's own announcement.
        announced: a listener of TCP, or its port; None: nothing is announced.
        name: the announced name of this device, at most 63 bytes of UTF-8; by default the host's name. If another device has it, a number
        is added.
        Raises UnsupportedError (no Avahi, or its daemon does not run), InvalidArgumentError.
        """
        if isinstance(announced, Listener):
            if isinstance(announced.address, str):
                raise errors.InvalidArgumentError("a listener at a path is not on the network; announce one of TCP")
            announced = announced.address[1]
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
        """The announced name of this device, with a number if another device has the name."""
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
        """Stops announcing and searching. Afterwards no callback runs any more, except if a callback calls this."""
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
