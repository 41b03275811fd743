"""Orders that stewards sign: how many must, what does not count, and how others take their place."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
from deep import IS_DEEP
from llvs.store import ErasureReason, ErasureState
from test_erase_exchange import SECRETS, WAYS, assert_sound, carry, reads
from test_erase_orders import GONE, PREFIX, id_of, nowhere, opened, states, storage

__all__ = ["opened", "storage"]
SEEDS = [hashlib.sha256(b"steward %d" % number).digest() for number in range(5)]

# Ed25519 as RFC 8032 has it, without the library.
P, D = 2**255 - 19, -121665 * pow(121666, -1, 2**255 - 19)
ORDER = 2**252 + 27742317777372353535851937790883648493
Point = tuple[int, int]


def added(one: Point, other: Point) -> Point:
    (x, y), (u, v) = one, other
    both = D * x * y * u * v
    return (x * v + y * u) * pow(1 + both, -1, P) % P, (y * v + x * u) * pow(1 - both, -1, P) % P


def times(number: int, point: Point) -> Point:
    sum: Point = (0, 1)
    while number:
        if number & 1:
            sum = added(sum, point)
        point, number = added(point, point), number >> 1
    return sum


def recovered(y: int) -> Point:
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x & 1 else x), y


BASE = recovered(4 * pow(5, -1, P) % P)


def encoded(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER


def expanded(seed: bytes) -> tuple[int, bytes]:
    digest = hashlib.sha512(seed).digest()
    return int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254, digest[32:]


def public(seed: bytes) -> bytes:
    return encoded(times(expanded(seed)[0], BASE))


def signature(seed: bytes, data: bytes) -> bytes:
    secret, prefix = expanded(seed)
    once = number(prefix, data)
    commitment = encoded(times(once, BASE))
    return commitment + ((once + number(commitment, public(seed), data) * secret) % ORDER).to_bytes(32, "little")


KEYS = [public(seed).hex() for seed in SEEDS]


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def policy(*keys: int, need: int = 2, **members: Any) -> dict[str, Any]:
    return {"erase": {"mode": "stewards", "keys": [KEYS[key] for key in keys], "need": need, **members}}


TWO_OF_THREE = policy(0, 1, 2)


def signed(plain: dict[str, Any], *by: tuple[str, bytes]) -> bytes:
    return canonical({**plain, "by": [{"key": key, "signature": made.hex()} for key, made in by]})


def entry(seed: int, plain: dict[str, Any]) -> tuple[str, bytes]:
    return KEYS[seed], signature(SEEDS[seed], b"llvs erase 1\0" + hashlib.sha256(canonical(plain)).digest())


def test_the_reference_signs_as_rfc_8032() -> None:
    """The first three vectors of section 7.1: the reference of these tests, and the keys that the library derives."""
    vectors = [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", b"",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", b"\x72",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", b"\xaf\x82",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ]
    for seed, message, key, expected in vectors:
        assert public(bytes.fromhex(seed)).hex() == key and llvs.Store.steward_key(bytes.fromhex(seed)).hex() == key
        assert signature(bytes.fromhex(seed), message).hex() == expected
    with pytest.raises(llvs.errors.InvalidArgumentError):
        llvs.Store.steward_key(b"short")


def test_the_policy(opened: Callable[..., llvs.Store]) -> None:
    with opened("a", None) as store:
        store.set_forgetting(TWO_OF_THREE)
        assert store.forgetting() == TWO_OF_THREE
        for wrong in (
            policy(),
            policy(0, 0),
            policy(0, need=2),
            policy(0, need=0),
            {"erase": {"mode": "stewards", "keys": ["00"], "need": 1}},
            {"erase": {"mode": "stewards", "keys": [KEYS[0][:-1] + "g"], "need": 1}},
            {"erase": {"mode": "stewards", "keys": [f"{number:064x}" for number in range(17)], "need": 1}},
            {"erase": {"mode": "stewards"}},
            {"erase": {"mode": "members", "keys": [KEYS[0]]}},
            {"erase": {"mode": "anyone", "need": 1}},
        ):
            with pytest.raises(llvs.errors.InvalidArgumentError):
                store.set_forgetting(wrong)
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.set_forgetting(TWO_OF_THREE, secrets=[b"a secret that nobody uses"])
    with opened("a", None) as store:
        assert store.forgetting() == TWO_OF_THREE
        store.make_version(insert={"x": b"1"})
        for seed in (SEEDS[3], b"short", SEEDS[0] + b"x"):
            with pytest.raises(llvs.errors.InvalidArgumentError):
                store.erase("x", signer=seed)
        assert store.erasures() == []
        with pytest.raises(FileNotFoundError):
            store.sign_erasure(PREFIX + "a" * 26, SEEDS[0])
        store.set_forgetting({"erase": {"mode": "nobody"}})
        with pytest.raises(llvs.errors.InvalidArgumentError):
            store.erase("x", signer=SEEDS[0])


@pytest.mark.parametrize("way", [way for way in WAYS if way != "snapshot"])
def test_two_of_three(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """One signature has no effect elsewhere, two have: on all devices, wherever the second steward signs."""
    place = tmp_path / "place"
    with opened("a", TWO_OF_THREE, ()) as a, opened("b", TWO_OF_THREE, ()) as b, opened("c", TWO_OF_THREE, ()) as c:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry(way, a, b, place)
        carry(way, a, c, place)
        report = a.erase(*SECRETS, why="a leak", signer=SEEDS[0])
        carry(way, a, b, place)
        carry(way, a, c, place)
        for store in (b, c):
            (found,) = store.erasures()
            assert (found.state, found.id, found.signatures, found.needed) == (ErasureState.UNSIGNED, report.orders[0], 1, 2)
            assert reads(store, first) == {**SECRETS, "note": b"1"} and found.places == ()
        # The same steward again is one.
        assert b.sign_erasure(report.orders[0], SEEDS[0]) == report.orders[0] and states(b) == ["unsigned"]
        last = b.sign_erasure(report.orders[0], SEEDS[1])
        assert last != report.orders[0] and b.sign_erasure(last, SEEDS[1]) == last
        (found,) = b.erasures()
        assert (found.state, found.id, found.why, found.signatures) == (ErasureState.FOLLOWED, last, "a leak", 2)
        assert reads(b, first) == {**GONE, "note": b"1"}
        carry(way, b, c, place)
        carry(way, b, a, place)
        assert reads(c, first) == {**GONE, "note": b"1"} and states(c) == ["followed"]
        assert {order.id for order in a.erasures() if order.signatures == 2} == {last}
        merged = b.heads()[0]
        for store in (a, b, c):
            carry(way, store, a, place)
            assert_sound(store)
        assert all(id not in b.at(merged) for id in SECRETS)
    nowhere(*(tmp_path / name for name in "abc"))


def test_signatures_at_once(opened: Callable[..., llvs.Store]) -> None:
    """Two stewards sign on two devices before these meet. The next signature has those of all."""
    with opened("a", policy(0, 1, 2, need=3), ()) as a, opened("b", policy(0, 1, 2, need=3), ()) as b:
        first = a.make_version(insert={"x": b"secret of x", "note": b"1"})
        order = a.erase("x", signer=SEEDS[0]).orders[0]
        b.unpack(a.pack())
        a.sign_erasure(order, SEEDS[1])
        third = b.sign_erasure(order, SEEDS[2])
        b.unpack(a.pack())
        while len(heads := b.heads()) > 1:
            b.merge(*heads[:2])
        assert {one.state for one in b.erasures()} == {ErasureState.UNSIGNED}
        b.sign_erasure(third, SEEDS[2])
        assert ErasureState.FOLLOWED in {one.state for one in b.erasures()} and reads(b, first) == {"x": "ErasedError", "note": b"1"}


def test_forged_signatures(opened: Callable[..., llvs.Store]) -> None:
    """No bit of a signature, of what is signed or of a key may be another one."""
    dice = random.Random(7)
    with opened("a", TWO_OF_THREE, ()) as store:
        first = store.make_version(insert={"x": b"secret of x", "note": b"1"})
        plain = {"format": 1, "made": "2026-11-28T06:00:00Z", "what": [{"changes": [0, 1], "version": first.id}], "why": ""}
        one, two = entry(0, plain), entry(1, plain)
        forged = [
            signed(plain),
            signed(plain, one),
            signed(plain, one, one),
            signed(plain, one, (KEYS[1], one[1])),
            signed(plain, one, entry(3, plain)),
            signed(plain, one, (KEYS[1], b"")),
            signed(plain, one, (KEYS[1], two[1] + b"\0")),
            signed(plain, one, (KEYS[1][:-2], two[1])),
            signed(plain, one, (KEYS[1], bytes(64))),
            signed({**plain, "why": "another"}, one, two),
            signed(plain, (KEYS[1], bytes(64)), two, one),
        ]
        # S and S + L are the same to whoever does not check the range.
        large = int.from_bytes(two[1][32:], "little") + ORDER
        forged.append(signed(plain, one, (KEYS[1], two[1][:32] + large.to_bytes(32, "little"))))
        for bit in range(512) if IS_DEEP else dice.sample(range(512), 40):
            changed = bytearray(two[1])
            changed[bit // 8] ^= 1 << bit % 8
            forged.append(signed(plain, one, (KEYS[1], bytes(changed))))
        head = first
        for data in forged:
            head = store.make_version(head, insert={id_of(data): data})
        assert {order.state for order in store.erasures()} <= {ErasureState.UNSIGNED, ErasureState.NOT_VALID}
        assert reads(store, first) == {"x": b"secret of x", "note": b"1"}
        data = signed(plain, one, two)
        store.make_version(head, insert={id_of(data): data})
        store.reload()
        assert [order.id for order in store.erasures() if order.followed] == [id_of(data)]
        assert reads(store, first) == {"x": "ErasedError", "note": "ErasedError"}


def test_other_stewards(opened: Callable[..., llvs.Store]) -> None:
    """Stewards are replaced by an order that enough of them signed: one step after another, on a device that was away as well."""
    with opened("a", {"erase": {**TWO_OF_THREE["erase"], "delay": 0}}, ()) as a, opened("b", TWO_OF_THREE, ()) as b:
        first = a.make_version(insert={"x": b"secret of x", "y": b"secret of y", "note": b"1"})
        b.unpack(a.pack())
        order = a.change_stewards(policy(2, 3, need=1), SEEDS[0])
        (found,) = a.erasures()
        assert (found.state, found.values, found.signatures, found.needed) == (ErasureState.UNSIGNED, 0, 1, 2)
        assert a.forgetting() == TWO_OF_THREE
        a.sign_erasure(order, SEEDS[1])
        assert a.forgetting() == policy(2, 3, need=1, step=1)
        with pytest.raises(llvs.errors.InvalidArgumentError):
            a.erase("x", signer=SEEDS[0])
        a.change_stewards(policy(4, need=1), SEEDS[3])
        assert a.forgetting() == policy(4, need=1, step=2)
        a.erase("x", signer=SEEDS[4])
        b.unpack(a.pack())
        assert b.forgetting() == policy(4, need=1, step=2)
        assert reads(b, first) == {"x": "ErasedError", "y": b"secret of y", "note": b"1"}
        # What former stewards sign has no effect, and what they signed before is no news.
        plain = {"format": 1, "made": "2026-11-28T06:00:00Z", "what": [{"changes": [1], "version": first.id}], "why": ""}
        back = {**plain, "stewards": {"keys": [KEYS[0]], "need": 1, "step": 3}, "what": []}
        for made in (plain, back):
            for data in (signed(made, entry(0, made), entry(1, made)), signed(made, entry(3, made))):
                b.make_version(b.heads()[0], insert={id_of(data): data})
        b.reload()
        assert b.forgetting() == policy(4, need=1, step=2) and reads(b, first)["y"] == b"secret of y"
        a.unpack(b.pack())
        assert a.forgetting() == b.forgetting() and reads(a, first)["y"] == b"secret of y"
    with opened("a", None) as a:
        assert a.forgetting() == policy(4, need=1, step=2)


def test_steps_are_taken_once(opened: Callable[..., llvs.Store]) -> None:
    """A step that was taken before, a step too far ahead, and one that no steward of now signed, change nothing."""
    with opened("a", policy(0, 1, need=1), ()) as store:
        head = store.make_version(insert={"x": b"1"})

        def proposed(step: int, keys: list[int], by: int) -> None:
            nonlocal head
            stewards = {"keys": [KEYS[key] for key in keys], "need": 1, "step": step}
            made = {"format": 1, "made": "2026-11-28T06:00:00Z", "stewards": stewards, "what": [], "why": f"{keys}"}
            data = signed(made, entry(by, made))
            head = store.make_version(head, insert={id_of(data): data})
            store.reload()

        proposed(1, [0, 2], 0)
        assert store.forgetting() == policy(0, 2, need=1, step=1)
        for step, keys, by in ((1, [0, 3], 0), (0, [0, 3], 0), (3, [0, 3], 0), (2, [0, 3], 1), (2, [0, 0], 0)):
            proposed(step, keys, by)
            assert store.forgetting() == policy(0, 2, need=1, step=1), (step, keys, by)
        proposed(2, [3], 2)
        assert store.forgetting() == policy(3, need=1, step=2)


def test_orders_count_after_the_stewards_were_replaced(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """What was followed before is still kept from places."""
    from test_erase_places import exchanged, nothing_in

    place = tmp_path / "place"
    with opened("a", policy(0, need=1), ()) as a, opened("b", policy(0, need=1), ()) as b, opened("stranger", None) as stranger:
        a.make_version(insert={**SECRETS, "note": b"1"})
        stranger.unpack(a.pack())
        b.unpack(a.pack())
        a.erase(*SECRETS, signer=SEEDS[0])
        a.change_stewards(policy(1, need=1), SEEDS[0])
        b.unpack(a.pack())
        assert b.forgetting() == policy(1, need=1, step=1)
        exchanged(stranger, place, "interchange")
        assert not nothing_in(place)
        exchanged(b, place, "interchange")
        assert nothing_in(place)


def test_a_device_that_does_not_sign(opened: Callable[..., llvs.Store]) -> None:
    """Its orders count there alone."""
    with opened("a", TWO_OF_THREE, ()) as a, opened("b", TWO_OF_THREE, ()) as b:
        first = a.make_version(insert={"x": b"secret of x", "note": b"1"})
        b.unpack(a.pack())
        a.erase("x")
        b.unpack(a.pack())
        assert states(a) == ["followed"] and states(b) == ["not valid"] and reads(b, first)["x"] == b"secret of x"
        assert all(row.reason in (ErasureReason.BACKUP, ErasureReason.STREAM, ErasureReason.MEDIUM) for row in a.erasures()[0].places)


WITHOUT_LIBCRYPTO = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
    void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return real(name && strstr(name, "libcrypto") ? "there-is-no-libcrypto.so" : name, flags);
}
"""
SCRIPT = """
import sys, llvs
kind, folder, data = sys.argv[1:]
with llvs.Store(folder + "/new", storage=kind) as store:
    try:
        store.set_forgetting({"erase": {"mode": "stewards", "keys": [%r], "need": 1}})
        sys.exit("it was set")
    except llvs.errors.UnsupportedError as error:
        assert "libcrypto" in str(error), error
    assert store.forgetting() == {"erase": {"mode": "nobody"}}
with llvs.Store(folder + "/store", storage=kind) as store:
    assert not store.unpack(open(data, "rb").read()).problems
    assert [order.state.value for order in store.erasures()] == ["not valid"]
"""


def test_without_libcrypto(opened: Callable[..., llvs.Store], storage: str, tmp_path: Path) -> None:
    """The mode is not supported then. Orders that come meanwhile wait until there is one."""
    source, preloaded = tmp_path / "preloaded.c", tmp_path / "preloaded.so"
    source.write_text(WITHOUT_LIBCRYPTO)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", preloaded, source, "-ldl"], check=True)
    with opened("a", policy(0, need=1), ()) as a, opened("b", policy(0, need=1), ()) as b:
        first = a.make_version(insert={"x": b"secret of x", "note": b"1"})
        b.unpack(a.pack())
        a.erase("x", signer=SEEDS[0])
        (tmp_path / "data").write_bytes(a.pack())
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", SCRIPT % KEYS[0], storage, str(tmp_path / "b"), str(tmp_path / "data")]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths, "LD_PRELOAD": str(preloaded)}, check=True)
    with opened("b", None) as b:
        assert states(b) == ["followed"] and reads(b, first) == {"x": "ErasedError", "note": b"1"}
