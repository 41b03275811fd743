"""The negotiation over random histories: its result is exact for each, it takes one or two rounds, and it is short. The usual run tests the
first of them, LLVS_DEEP all. With LLVS_FIGURES=1 the figures are printed."""

from __future__ import annotations

import os
import random
import statistics
from typing import Optional

import negotiation
import pytest
from deep import IS_DEEP
from negotiation import Have, History, Listed


def replicas(random_: random.Random, versions: int, devices: int, exchanging: float) -> list[History]:
    """Histories of devices that save, merge and exchange at random."""
    stores, made = [History() for _ in range(devices)], 0
    order: list[list[bytes]] = [[] for _ in stores]
    seen: dict[tuple[int, int], int] = {}
    while made < versions:
        here = random_.randrange(devices)
        store = stores[here]
        if random_.random() < exchanging:
            there = random_.choice([i for i in range(devices) if i != here])
            for version in order[there][seen.get((here, there), 0) :]:
                if version not in store.predecessors:
                    store.add(version, *stores[there].predecessors[version])
                    order[here].append(version)
            seen[here, there] = len(order[there])
            continue
        heads = store.heads
        name = b"%d-%d" % (made, random_.getrandbits(32))
        if len(heads) > 1 and random_.random() < 0.7:
            store.add(name, *random_.sample(heads, 2))
        elif heads and random_.random() < 0.97:
            store.add(name, random_.choice(heads))
        else:
            store.add(name)
        order[here].append(name)
        made += 1
    return stores


def exchange(a: History, b: History, key: bytes) -> tuple[int, list[Have], list[Listed]]:
    """Lets two histories find out what the other one lacks, and checks the result. Returns the number of rounds."""
    haves = [negotiation.have(a), negotiation.have(b)]
    theirs = [set(b.predecessors) - set(a.predecessors), set(a.predecessors) - set(b.predecessors)]
    if negotiation.same(*haves):
        assert not theirs[0] and not theirs[1]
        return 1, haves, []
    lists = [negotiation.list_for(a, haves[1], key), negotiation.list_for(b, haves[0], key)]
    by_ranges = compare_ranges(a, b, haves, lists, key) if negotiation.by_ranges(*lists) else None
    for history, mine, other in ((a, 0, 1), (b, 1, 0)):
        sent = by_ranges[mine].lacking if by_ranges else negotiation.missing(
            history, haves[mine], lists[mine], haves[other], lists[other], key)
        assert set(sent) == theirs[other] and len(sent) == len(theirs[other])
        store = (a, b)[other]
        known = set(store.predecessors)
        for version in sent:
            assert all(p in known for p in history.predecessors[version]), "predecessors first"
            known.add(version)
    return (1 if all(listed.has_all for listed in lists) else 2), haves, lists


#: The number of frames and their size in the last comparison.
turns = size = 0


def compare_ranges(a: History, b: History, haves: list[Have], lists: list[Listed], key: bytes) -> tuple[negotiation.Ranges, ...]:
    """Lets two histories compare ranges, and counts frames and their bytes."""
    global turns, size
    sides = (negotiation.Ranges(a, haves[0], haves[1], lists[1], key), negotiation.Ranges(b, haves[1], haves[0], lists[0], key))
    said: Optional[list[negotiation.Range]] = sides[0].begin()
    turns = size = 0
    while said is not None:
        turns += 1
        size += sum(1 + (36 if kind == negotiation.SUM else 2 + 8 * len(what) if what is not None else 0) + 21 for kind, what, _ in said)
        assert len(said) <= negotiation.RANGES and turns <= 2 * negotiation.FRAMES
        said = sides[turns % 2].take(said)
    assert sides[0].is_done and sides[1].is_done
    return sides


def test_random_histories_by_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are compared by ranges, because every list counts as too long."""
    monkeypatch.setattr(negotiation, "HASHES", 0)
    monkeypatch.setattr(negotiation, "LISTED", 4)
    compared = 0
    count = 200 if IS_DEEP else 60
    for seed in range(count):
        random_ = random.Random(seed)
        stores = replicas(random_, random_.randint(20, 2_000), random_.randint(2, 8), random_.choice((0.005, 0.02, 0.1, 0.3)))
        try:
            _, _, lists = exchange(*random_.sample(stores, 2), random_.randbytes(32))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        compared += bool(lists) and negotiation.by_ranges(*lists)
    assert compared > count // 4


def test_many_branches_that_differ_a_little() -> None:
    """HAVE covers few of the branches, so that a list would be too long."""
    base = History()
    for number in range(85_000):
        base.add(b"%d" % number, *([b"%d" % (number - 6_000)] if number >= 6_000 else []))
    a, b = base.copy(), base.copy()
    for number in range(50):
        a.add(b"a%d" % number, b"%d" % (79_000 + number * 7))
        b.add(b"b%d" % number, b"%d" % (79_000 + number * 11))
    _, _, lists = exchange(a, b, bytes(32))
    assert negotiation.by_ranges(*lists) and turns <= 6 and size < 1 << 18
    if os.environ.get("LLVS_FIGURES"):
        print(f"\n85,050 versions each with 6,000 heads, 100 of them different: {turns} frames of RANGES, {size} bytes")


def test_ranges_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranges are given up in the last frame of a side. Too much is sent then, and nothing is left out."""
    monkeypatch.setattr(negotiation, "HASHES", 0)
    monkeypatch.setattr(negotiation, "FRAMES", 1)
    a, b = chain(500, b"x"), chain(500, b"y")
    c = chain(300, b"x")
    for first, second in ((a, b), (a, c), (c, b)):
        haves = [negotiation.have(first), negotiation.have(second)]
        lists = [negotiation.list_for(first, haves[1], bytes(32)), negotiation.list_for(second, haves[0], bytes(32))]
        sides = compare_ranges(first, second, haves, lists, bytes(32))
        assert set(sides[0].lacking) >= set(first.predecessors) - set(second.predecessors)
        assert set(sides[1].lacking) >= set(second.predecessors) - set(first.predecessors)


def test_random_histories() -> None:
    rounds, ratios, ids = [], [], []
    for seed in range(400 if IS_DEEP else 100):
        random_ = random.Random(seed)
        stores = replicas(random_, random_.randint(20, 3_000), random_.randint(2, 8), random_.choice((0.005, 0.02, 0.1, 0.3)))
        a, b = random_.sample(stores, 2)
        try:
            took, haves, lists = exchange(a, b, random_.randbytes(32))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        rounds.append(took)
        ids += [len(have.ids) for have in haves]
        difference = len(set(a.predecessors) ^ set(b.predecessors))
        listed = sum(len(one.hashes) for one in lists)
        assert listed <= 8 * difference + 64, f"seed {seed}: {listed} hashes for {difference} versions"
        if difference and lists:
            ratios.append(listed / difference)
        assert all(len(have.ids) <= 768 for have in haves)
    assert set(rounds) <= {1, 2}
    ratios.sort()
    if os.environ.get("LLVS_FIGURES"):
        print(f"\n{len(rounds)} pairs: {rounds.count(1)} in one round; LIST / difference: median {statistics.median(ratios):.2f}, "
              f"95th percentile {ratios[len(ratios) * 95 // 100]:.2f}, worst {ratios[-1]:.2f}; "
              f"HAVE: median {statistics.median(ids)} ids, at most {max(ids)}")


def chain(count: int, name: bytes, base: History | None = None) -> History:
    history = base.copy() if base else History()
    last = history.heads[:1]
    for i in range(count):
        version = name + b"%d" % i
        history.add(version, *last)
        last = [version]
    return history


def test_large_stores_that_differ_a_little() -> None:
    base = chain(20_000, b"base")
    a, b = chain(50, b"a", base), chain(50, b"b", base)
    took, haves, lists = exchange(a, b, bytes(32))
    size = sum(40 + 17 * len(have.ids) for have in haves) + sum(8 * len(one.hashes) + len(one.bits) // 8 + 8 for one in lists)
    assert took == 2 and size < 65_536
    if os.environ.get("LLVS_FIGURES"):
        print(f"\n20,050 versions each, 100 of them different: {took} rounds, {size} bytes")


def test_a_thousand_heads() -> None:
    base, key = chain(10, b"base"), bytes(32)
    a, b = base.copy(), base.copy()
    for i in range(1_000):
        a.add(b"head%d" % i, b"base9")
        if i % 2:
            b.add(b"head%d" % i, b"base9")
    b.add(b"own", b"head1")
    exchange(a, b, key)
    exchange(b, a, key)


def test_nothing_and_much() -> None:
    took, _, lists = exchange(History(), chain(1_000, b"v"), bytes(32))
    assert sum(len(one.hashes) for one in lists) == 0
    exchange(chain(500, b"x"), chain(500, b"y"), bytes(32))
