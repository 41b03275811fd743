"""Decides which connections a listener reads before it knows the other side: the rules of docs/live-protocol.md, section 6."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import NamedTuple, Optional, Sequence


class Source(NamedTuple):
    """Where a connection comes from."""

    #: The unit for which connections are counted: an address, or the first 64 bits of an IPv6 address; empty for a Unix socket.
    key: str
    #: Whether a device at this address was admitted before.
    is_known: bool


class HalfOpen(NamedTuple):
    """A connection whose other side is not known yet."""

    source: Source
    #: When it was accepted.
    since: float
    #: Whether it has not sent its first bytes yet.
    is_silent: bool


class Refused(Exception):
    """Raised if a connection is to be closed without being read."""


class Admission:
    """Decides on connections. The caller passes the time, in seconds of a monotonic clock, and holds the listener's lock."""

    #: Limits on half-open connections: from unknown addresses, from known addresses, and from one source.
    HALF_OPEN, HALF_OPEN_KNOWN, FROM_ONE = 32, 16, 16
    #: Limits: failed connections of one source within a minute, and the number of sources for which they are counted.
    STRANGERS, SOURCES = 5, 4_096
    #: Limit on known addresses, those at which a device was admitted before.
    KNOWN = 256
    #: Seconds after which a connection that has sent its first bytes may be closed to make room for another one, and seconds after which a
    #: connection that is closed for that counts as failed.
    LEAST = 1.0

    def __init__(self) -> None:
        #: When connections of each source failed. The source that was added last is the last one.
        self.refused: dict[str, list[float]] = {}
        #: Known addresses, the newest at the end.
        self._known: dict[str, None] = {}

    def source(self, host: str) -> Source:
        """Returns where a connection comes from. host: the numeric address; empty for a Unix socket."""
        is_known = host in self._known
        # Connections from unknown addresses of the same network do not use up what a known address may still open.
        return Source(host if is_known else group(host), is_known)

    def got_in(self, host: str) -> None:
        """Records that a device at this address was admitted."""
        if host:
            self._known.pop(host, None)
            self._known[host] = None
            while len(self._known) > self.KNOWN:
                del self._known[next(iter(self._known))]

    def refuse(self, key: str, now: float) -> None:
        """Records a failed connection. A Unix socket has no unknown sources, so its failures are not counted."""
        if key:
            self.refused[key] = self.refused.pop(key, [])[-self.STRANGERS + 1 :] + [now]
            while len(self.refused) > self.SOURCES:
                del self.refused[next(iter(self.refused))]

    def refusals(self, key: str, now: float) -> int:
        """Returns how many connections of a source failed within the last minute."""
        return sum(at > now - 60 for at in self.refused.get(key, ()))

    def decide(self, source: Source, half_open: Sequence[HalfOpen], now: float) -> Optional[int]:
        """Decides on a connection that was accepted.

        If there is no room, an older connection is closed for it. That is the oldest silent connection of the source with most connections.
        If none is silent, it is the oldest one that is open for at least a second. Known addresses have limits of their own: their
        connections are closed only for one another.
        Returns the number of the connection to close, None if there is room. Raises Refused.
        """
        counts = Counter(one.source.key for one in half_open)
        if self.refusals(source.key, now) >= self.STRANGERS or (source.key and counts[source.key] >= self.FROM_ONE):
            raise Refused
        others = [number for number, one in enumerate(half_open) if one.source.is_known == source.is_known]
        if len(others) < (self.HALF_OPEN_KNOWN if source.is_known else self.HALF_OPEN):
            return None
        ranks = [
            (not one.is_silent, -counts[one.source.key], one.since, number)
            for number, one in ((number, half_open[number]) for number in others)
            if one.is_silent or now - one.since >= self.LEAST]
        if not ranks:
            raise Refused
        return min(ranks)[-1]


def group(host: str) -> str:
    """Returns the unit for which connections of an address are counted.

    A device with one IPv6 address usually controls all addresses with the same first 64 bits, so these are counted together. Link-local
    addresses all begin with the same bits: each is counted by itself.
    """
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return host if address.is_link_local else f"{ipaddress.IPv6Network((int(address) >> 64 << 64, 64))}"
