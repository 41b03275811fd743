"""Devices on the local network that offer stores by `listen`: found by DNS-SD (RFC 6763), through the daemon of Avahi."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple, Optional, Union

from . import errors
from .listening import Listener

#: Of a service that speaks docs/live-protocol.md. Which stores it has is not told.
SERVICE = b"_llvs._tcp"

# From Avahi's headers (avahi-common/defs.h, avahi-client/client.h and publish.h).
_UNSPECIFIED = -1
_CLIENT_RUNNING, _CLIENT_FAILURE = 2, 100
_GROUP_COLLISION = 3
_NEW, _REMOVE = 0, 1
_FOUND = 0
_OUR_OWN = 16
_NO_DAEMON = -26

_p, _i, _s = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_State = ctypes.CFUNCTYPE(None, _p, _i, _p)
_Browsed = ctypes.CFUNCTYPE(None, _p, _i, _i, _i, _s, _s, _s, _i, _p)
_Resolved = ctypes.CFUNCTYPE(None, _p, _i, _i, _i, _s, _s, _s, _s, _p, ctypes.c_uint16, _p, _i, _p)


class Device(NamedTuple):
    """What is known of a device on the network, now."""

    #: What it calls itself there.
    name: str
    #: Where it listens, to be tried in this order; none: it has gone.
    addresses: tuple[tuple[str, int], ...]


def _load() -> Any:
    """Avahi's client. Raises UnsupportedError when it is not installed."""
    try:
        lib, common = ctypes.CDLL("libavahi-client.so.3"), ctypes.CDLL("libavahi-common.so.3")
    except OSError:
        raise errors.UnsupportedError(
            "Finding devices on the local network needs Avahi (Debian: avahi-daemon, libavahi-client3). Install it, or give addresses."
        ) from None
    for where, name, result, parameters in (
        (common, "avahi_simple_poll_new", _p, []),
        (common, "avahi_simple_poll_get", _p, [_p]),
        (common, "avahi_simple_poll_iterate", _i, [_p, _i]),
        (common, "avahi_simple_poll_wakeup", None, [_p]),
        (common, "avahi_simple_poll_free", None, [_p]),
        (common, "avahi_alternative_service_name", _p, [_s]),
        (common, "avahi_free", None, [_p]),
        (common, "avahi_strerror", _s, [_i]),
        (common, "avahi_address_snprint", _s, [_p, ctypes.c_size_t, _p]),
        (lib, "avahi_client_new", _p, [_p, _i, _State, _p, ctypes.POINTER(_i)]),
        (lib, "avahi_client_free", None, [_p]),
        (lib, "avahi_entry_group_new", _p, [_p, _State, _p]),
        (lib, "avahi_entry_group_reset", _i, [_p]),
        (lib, "avahi_entry_group_commit", _i, [_p]),
        (lib, "avahi_entry_group_add_service_strlst", _i, [_p, _i, _i, _i, _s, _s, _s, _s, ctypes.c_uint16, _p]),
        (lib, "avahi_service_browser_new", _p, [_p, _i, _i, _s, _s, _i, _Browsed, _p]),
        (lib, "avahi_service_resolver_new", _p, [_p, _i, _i, _s, _s, _s, _i, _i, _Resolved, _p]),
        (lib, "avahi_service_resolver_free", _i, [_p]),
    ):
        function = getattr(where, name)
        function.restype, function.argtypes = result, parameters
        if where is common:
            setattr(lib, name, function)
    return lib


class Nearby:
    """Finds devices on the local network that offer stores, and announces a listener to them, on a thread of its own.

        def found(device):
            for address in device.addresses: ...          # llvs.connect(notes, address, pairing)
        with llvs.listen({pairing: notes}, ("0.0.0.0", 0)) as listener, llvs.Nearby(found, listener, name="Ann's laptop"):
            ...

    Whoever is found may be anybody: the pairing says who is let in, and links are encrypted. Everybody on the network sees the names, and
    no more: not which stores there are. Where no daemon of Avahi runs, a program finds devices by what it has, and gives their
    addresses to `connect`. When the daemon is started anew, all is announced and looked for again.
    """

    #: Seconds until a daemon that went away is looked for again.
    _PAUSE = 2.0

    def __init__(
        self, found: Optional[Callable[[Device], Any]] = None, announced: Union[None, Listener, int] = None, *, name: str = ""
    ) -> None:
        """Begins at once.

        found: called for each device that comes, changes or goes, on the thread of this object, which waits for it. Not for what this
        object announces itself.
        announced: a listener of TCP, or its port; None: nothing is announced.
        name: what this device is called there, at most 63 bytes of UTF-8; the host's name unless it is given. Where another has it, a
        number is added.
        Raises UnsupportedError (no Avahi, or its daemon does not run), InvalidArgumentError.
        """
        if isinstance(announced, Listener):
            if isinstance(announced.address, str):
                raise errors.InvalidArgumentError("a listener at a path is not on the network; announce one of TCP")
            announced = announced.address[1]
        self._port: Optional[int] = announced
        self._label = (name or socket.gethostname()).encode()
        if not 1 <= len(self._label) <= 63 or (announced is not None and not 1 <= announced <= 65_535):
            raise errors.InvalidArgumentError("a name has 1 to 63 bytes of UTF-8, and a port is 1 to 65,535")
        self._found, self._lib = found, _load()
        self._stopping, self._process = False, os.getpid()
        # What the library calls: kept as long as it may.
        self._callbacks = (_State(self._client_changed), _State(self._group_changed), _Browsed(self._browsed), _Resolved(self._resolved))
        self._poll = self._client = self._group = 0
        self._failed = False
        self._lock = threading.Lock()  # held while what `close` wakes is freed
        #: By names: addresses with the interface and protocol where they were found.
        self._known: dict[bytes, dict[tuple[int, int], tuple[str, int]]] = {}
        self._open()
        self._thread = threading.Thread(target=self._run, name="llvs nearby", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """What this device is called on the network, with a number where another has the name."""
        return self._label.decode(errors="replace")

    # On the thread that makes it, and then on that of this object alone.

    def _open(self) -> None:
        error = _i()
        self._failed = False
        self._poll = self._lib.avahi_simple_poll_new()
        if not self._poll:
            raise MemoryError
        self._client = self._lib.avahi_client_new(
            self._lib.avahi_simple_poll_get(self._poll), 0, self._callbacks[0], None, ctypes.byref(error))
        if not self._client:
            self._lib.avahi_simple_poll_free(self._poll)
            self._poll = 0
            why = (self._lib.avahi_strerror(error) or b"").decode()
            hint = "Start avahi-daemon, or give addresses." if error.value == _NO_DAEMON else "Look at avahi-daemon's log."
            raise errors.UnsupportedError(f"Reaching the daemon of Avahi failed: {why}. {hint}")
        if self._found is not None:
            self._lib.avahi_service_browser_new(
                self._client, _UNSPECIFIED, _UNSPECIFIED, SERVICE, None, 0, self._callbacks[2], None)

    def _shut(self) -> None:
        with self._lock:
            if self._client:
                self._lib.avahi_client_free(self._client)  # with all that was made of it
            if self._poll:
                self._lib.avahi_simple_poll_free(self._poll)
            self._poll = self._client = self._group = 0

    def _run(self) -> None:
        pause = threading.Event()
        while not self._stopping:
            if self._poll and not self._failed:
                if self._lib.avahi_simple_poll_iterate(self._poll, 1_000) != 0:
                    self._failed = True
                continue
            self._shut()
            for label in list(self._known):
                self._known[label] = {}
                self._tell(label)
            pause.wait(self._PAUSE)
            try:
                self._open()
            except errors.UnsupportedError:
                pass  # not yet
        self._shut()

    def _client_changed(self, client: int, state: int, _: Optional[int]) -> None:
        self._client = client
        if state == _CLIENT_RUNNING and self._port is not None:
            if not self._group:
                self._group = self._lib.avahi_entry_group_new(client, self._callbacks[1], None)
            self._announce()
        elif state == _CLIENT_FAILURE:
            self._failed = True

    def _group_changed(self, group: int, state: int, _: Optional[int]) -> None:
        if state != _GROUP_COLLISION:
            return
        self._group = group
        other = self._lib.avahi_alternative_service_name(self._label)
        if other:
            self._label = ctypes.string_at(other)
            self._lib.avahi_free(other)
            self._announce()

    def _announce(self) -> None:
        if not self._group:
            return
        self._lib.avahi_entry_group_reset(self._group)
        added = self._lib.avahi_entry_group_add_service_strlst(
            self._group, _UNSPECIFIED, _UNSPECIFIED, 0, self._label, SERVICE, None, None, self._port, None)
        if added == 0:
            self._lib.avahi_entry_group_commit(self._group)

    def _browsed(
        self, browser: int, interface: int, protocol: int, event: int, name: bytes, kind: bytes, domain: bytes, flags: int, _: Any
    ) -> None:
        if event == _NEW and not flags & _OUR_OWN:
            self._lib.avahi_service_resolver_new(
                self._client, interface, protocol, name, kind, domain, _UNSPECIFIED, 0, self._callbacks[3], None)
        elif event == _REMOVE and (interface, protocol) in self._known.get(name, {}):
            del self._known[name][interface, protocol]
            self._tell(name)

    def _resolved(
        self, resolver: int, interface: int, protocol: int, event: int, name: bytes, kind: bytes, domain: bytes, host: bytes,
        address: int, port: int, texts: int, flags: int, _: Any,
    ) -> None:
        if event == _FOUND and address:
            text = ctypes.create_string_buffer(64)
            self._lib.avahi_address_snprint(text, len(text), address)
            where = text.value.decode()
            if where.startswith("fe80:"):
                where += f"%{interface}"  # good there alone
            known = self._known.setdefault(name, {})
            if known.get((interface, protocol)) != (where, port):
                known[interface, protocol] = where, port
                self._tell(name)
        # It would go on telling of changes: those come from the browser, too.
        self._lib.avahi_service_resolver_free(resolver)

    def _tell(self, label: bytes) -> None:
        addresses = sorted(set(self._known[label].values()), key=lambda one: (one[0].startswith("fe80:"), one))
        if not addresses:
            del self._known[label]
        try:
            if self._found is not None:
                self._found(Device(label.decode(errors="replace"), tuple(addresses)))
        except BaseException as problem:
            sys.unraisablehook(
                SimpleNamespace(exc_type=type(problem), exc_value=problem, exc_traceback=problem.__traceback__,
                                err_msg="Exception ignored in a callback for devices nearby", object=self._found))

    def close(self) -> None:
        """Announces and finds no more; no callback runs any more behind it, but where a callback calls it."""
        self._stopping = True
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        with self._lock:
            if self._poll:
                self._lib.avahi_simple_poll_wakeup(self._poll)
        self._thread.join()

    def __enter__(self) -> Nearby:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
