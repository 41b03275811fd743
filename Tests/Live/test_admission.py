"""Which connections a listener reads (`llvs._admission`): the rules of docs/live-protocol.md, section 6. `AdmissionTests` test the same for
the library's own listener."""

from __future__ import annotations

from typing import Optional

import pytest

from llvs._admission import Admission, HalfOpen, Refused, Source, group


def stranger(key: str) -> Source:
    return Source(key, False)


@pytest.mark.parametrize("host, counted", [
    ("", ""), ("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
    ("2001:db8:1:3::9", "2001:db8:1:3::/64"), ("fe80::1%eth0", "fe80::1%eth0"), ("fe80::2%eth0", "fe80::2%eth0"),
    ("::ffff:192.0.2.7", "192.0.2.7"), ("no address", "no address"),
])  # fmt: skip
def test_what_is_counted_together(host: str, counted: str) -> None:
    assert group(host) == counted


def test_who_gives_way() -> None:
    admission, new = Admission(), stranger("new")
    # Two of one address, and then one each.
    half_open = [HalfOpen(stranger("a"), 3.0, True), HalfOpen(stranger("a"), 2.0, True)]
    half_open += [HalfOpen(stranger(f"{n}"), float(n % 2), True) for n in range(29)]
    assert admission.decide(new, half_open, 5.0) is None
    half_open.append(HalfOpen(stranger("last"), 4.0, True))
    assert admission.decide(new, half_open, 5.0) == 1, "the oldest of the address that has most"
    half_open[1] = half_open[1]._replace(is_silent=False)
    assert admission.decide(new, half_open, 5.0) == 0
    half_open[0] = half_open[0]._replace(source=stranger("b"))
    assert admission.decide(new, half_open, 5.0) == 2, "the oldest"
    # None is silent: the oldest of a second.
    spoken = [one._replace(is_silent=False) for one in half_open]
    assert admission.decide(new, spoken, 0.5 + Admission.LEAST) == 2
    with pytest.raises(Refused):
        admission.decide(new, [one._replace(since=4.5) for one in spoken], 5.0)


def test_one_address_has_16_places() -> None:
    admission, half_open = Admission(), [HalfOpen(stranger("a"), 0.0, True)] * 16
    with pytest.raises(Refused):
        admission.decide(stranger("a"), half_open, 1.0)
    assert admission.decide(stranger("b"), half_open, 1.0) is None
    # Nobody knows whence who reaches a Unix socket comes.
    assert admission.decide(stranger(""), [HalfOpen(stranger(""), 0.0, True)] * 31, 1.0) is None


def test_addresses_that_got_in_have_room_of_their_own() -> None:
    admission = Admission()
    admission.got_in("2001:db8::7")
    admission.got_in("")
    source = admission.source("2001:db8::7")
    assert source == Source("2001:db8::7", True) and admission.source("2001:db8::8") == Source("2001:db8::/64", False)
    assert not admission.source("").is_known
    for _ in range(5):
        admission.refuse("2001:db8::/64", 0.0)
    strangers = [HalfOpen(stranger(f"{n}"), 0.0, False) for n in range(32)]
    assert admission.decide(source, strangers, 0.0) is None, "strangers of its network have no part in it"
    known = [HalfOpen(Source(f"{n}", True), float(n), True) for n in range(16)]
    assert admission.decide(source, strangers + known, 20.0) == 32, "the oldest of those that got in"
    assert admission.decide(stranger("new"), known, 20.0) is None
    for n in range(Admission.KNOWN):
        admission.got_in(f"192.0.2.{n}")
    assert not admission.source("2001:db8::7").is_known and admission.source("192.0.2.0").is_known


def test_strangers_are_not_looked_at_for_a_minute() -> None:
    admission = Admission()

    def decide(key: str, now: float) -> Optional[int]:
        return admission.decide(stranger(key), [], now)

    for at in range(5):
        assert decide("a", float(at)) is None
        admission.refuse("a", float(at))
    with pytest.raises(Refused):
        decide("a", 59.9)
    assert decide("b", 59.9) is None and decide("a", 60.0) is None
    for _ in range(9):
        admission.refuse("", 60.0)
    assert decide("", 60.0) is None
    for n in range(Admission.SOURCES):
        admission.refuse(f"{n}", 60.0)
    assert len(admission.refused) == Admission.SOURCES and "a" not in admission.refused
