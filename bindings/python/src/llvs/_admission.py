"""Decides which connections a listener reads before it knows who the other side is: the rules of docs/live-protocol.md, section 6."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import NamedTuple, Optional, Sequence


class Source(NamedTuple):
    """Where a connection comes from."""

    #: What is counted together: an address, or the first 64 bits of one of IPv6; empty for a Unix socket.
    key: str
    #: Whether a device got in from this address before.
    is_known: bool


class HalfOpen(NamedTuple):
    """A connection of which it is not known yet who the other side is."""

    source: Source
    #: When it was accepted.
    since: float
    #: Whether it has not sent its beginning.
    is_silent: bool


class Refused(Exception):
    """The connection is not read."""


class Admission:
    """The caller gives the time, in seconds of a steady clock, and holds the listener's lock."""

    #: Connections of strangers that are half-open, those of addresses from which somebody got in before, and those of one source.
    HALF_OPEN, HALF_OPEN_KNOWN, FROM_ONE = 32, 16, 16
    #: Connections of one source in a minute that did not get in; of so many sources that is remembered.
    STRANGERS, SOURCES = 5, 4_096
    #: Addresses from which somebody got in that are remembered.
    KNOWN = 256
    #: Seconds after which a connection that has sent its beginning may be ended for another one, and after which one that gives way counts
    #: as one that did not get in.
    LEAST = 1.0

    def __init__(self) -> None:
        #: When somebody from a source did not get in; the last is the source that was added to last.
        self.refused: dict[str, list[float]] = {}
        #: Addresses from which somebody got in, the last one at the end.
        self._known: dict[str, None] = {}

    def source(self, host: str) -> Source:
        """Returns where a connection comes from. host: the numeric address; empty for a Unix socket."""
        is_known = host in self._known
        # A stranger of the same network has no part in what a known address has left.
        return Source(host if is_known else group(host), is_known)

    def got_in(self, host: str) -> None:
        """Notes that somebody got in."""
        if host:
            self._known.pop(host, None)
            self._known[host] = None
            while len(self._known) > self.KNOWN:
                del self._known[next(iter(self._known))]

    def refuse(self, key: str, now: float) -> None:
        """Notes that somebody did not get in; who reaches a Unix socket is no stranger."""
        if key:
            self.refused[key] = self.refused.pop(key, [])[-self.STRANGERS + 1 :] + [now]
            while len(self.refused) > self.SOURCES:
                del self.refused[next(iter(self.refused))]

    def refusals(self, key: str, now: float) -> int:
        """Returns how many connections of a source did not get in within a minute."""
        return sum(at > now - 60 for at in self.refused.get(key, ()))

    def decide(self, source: Source, half_open: Sequence[HalfOpen], now: float) -> Optional[int]:
        """Decides on a connection that was accepted.

        If there is no room, another connection gives way: one that is silent, of the source that has most, and of these the oldest. If none
        is silent, the oldest of at least a second. Connections of known addresses have room of their own, and give way to each other alone.
        Returns the number of the one that gives way, None if none does. Raises Refused.
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
    """Returns what is counted together with an address: who has one address of IPv6 mostly has all that begin with the same 64 bits. On a
    link without a router all addresses begin so: each is counted alone."""
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return host if address.is_link_local else f"{ipaddress.IPv6Network((int(address) >> 64 << 64, 64))}"
