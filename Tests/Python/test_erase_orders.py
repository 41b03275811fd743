"""Orders of other devices: which count, what they do, and that those without a right do nothing."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b32encode
from pathlib import Path
from typing import Any, Callable, Optional

import every_byte
import llvs
import pytest
from deep import IS_DEEP
from llvs.store import ErasureState
from test_erase_exchange import PLACES, SECRETS, WAYS, assert_sound, carry, reads, secret

SHARED = b"what the devices of one person share"
MEMBERS = {"erase": {"mode": "members"}}
PREFIX = "__llvs_forget/order/"
GONE = dict.fromkeys(SECRETS, "ErasedError")


@pytest.fixture(params=("file", "sqlite"))
def storage(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(tmp_path: Path, storage: str) -> Callable[..., llvs.Store]:
    """Opens the store of a device, in a folder of its own. Its policy is set unless it is None."""

    def open(name: str, policy: Optional[dict[str, Any]] = MEMBERS, secrets: tuple[bytes, ...] = (SHARED,)) -> llvs.Store:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        store = llvs.Store(folder / "store", storage=storage)  # type: ignore[arg-type]
        if policy is not None and store.forgetting() != policy:
            store.set_forgetting(policy, secrets=secrets)
        return store

    return open


def nowhere(*folders: Path) -> None:
    for folder in folders:
        for value in SECRETS.values():
            assert every_byte.find(folder, value[:64]) == {}


def states(store: llvs.Store) -> list[str]:
    return [order.state.value for order in store.erasures()]


def derived(shared: bytes) -> bytes:
    """HKDF-SHA-256 without a salt, one block: as docs/format.md says, and with nothing of the library."""
    pseudorandom = hmac.digest(bytes(32), shared, "sha256")
    return hmac.digest(pseudorandom, b"llvs forget 1\x01", "sha256")


def order(what: list[dict[str, Any]], shared: Optional[bytes] = None, **members: Any) -> bytes:
    """An order in canonical JSON, signed if a secret is given."""
    plain = {"format": 1, "made": "2026-11-28T06:00:00Z", "what": what, "why": "", **members}

    def canonical(value: Any) -> bytes:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    if shared is None:
        return canonical(plain)
    key = derived(shared)
    signature = hmac.digest(key, b"llvs erase 1\0" + hashlib.sha256(canonical(plain)).digest(), "sha256").hex()
    return canonical({**plain, "by": [{"key": hashlib.sha256(key).hexdigest()[:16], "signature": signature}]})


def id_of(data: bytes) -> str:
    return PREFIX + b32encode(hashlib.sha256(data).digest()[:16]).decode().lower().rstrip("=")


def index_of(store: llvs.Store, version: Any, id: str) -> int:
    """The index of a change in its version."""
    return sorted(change.id.encode() for change in store.changes(version)).index(id.encode())


def test_the_policy(opened: Callable[..., llvs.Store]) -> None:
    with opened("a", None) as store:
        assert store.forgetting() == {"erase": {"mode": "nobody"}}
        store.set_forgetting({"erase": {"mode": "members", "delay": 5}}, secrets=[SHARED, b"an older secret!"])
        assert store.forgetting() == {"erase": {"mode": "members", "delay": 5}}
    with opened("a", None) as store:
        assert store.forgetting() == {"erase": {"mode": "members", "delay": 5}}
        refused: list[tuple[type[Exception], Any, tuple[bytes, ...]]] = [
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "members"}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "members"}}, (b"short",)),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "members"}}, (bytes(5_000),)),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "members"}}, (SHARED,) * 17),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "anyone"}}, (SHARED,)),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "everybody"}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {}}, ()),
            (llvs.errors.InvalidArgumentError, {}, ()),
            (llvs.errors.InvalidArgumentError, [], ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "anyone", "delay": -1}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "anyone", "delay": 2**40}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "anyone", "more": 1}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "anyone"}, "more": 1}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "stewards", "need": 1, "keys": []}}, ()),
            (llvs.errors.InvalidArgumentError, {"erase": {"mode": "stewards"}}, ()),
            (llvs.errors.UnsupportedError, {"erase": {"mode": "anyone"}, "cut": {"days": 30}}, ()),
            (llvs.errors.TooLargeError, {"erase": {"mode": "x" * 70_000}}, ()),
        ]
        for error, policy, secrets in refused:
            with pytest.raises(error):
                store.set_forgetting(policy, secrets=secrets)
        assert store.forgetting() == {"erase": {"mode": "members", "delay": 5}}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "snapshot"])
def test_members_follow(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A device erases, the other one learns of the order and erases as well, and keeps what it has not sent yet."""
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry(way, a, b, tmp_path / "place")
        edit = b.make_version(first, update={"note": b"2"}, insert={"own": b"of b"})
        report = a.erase(*SECRETS, why="a leak")
        carry(way, a, b, tmp_path / "place")
        (found,) = b.erasures()
        assert (found.state, found.of_other, found.why, found.values) == (ErasureState.FOLLOWED, True, "a leak", 3)
        assert found.id == report.orders[0]
        assert reads(b, first) == {**GONE, "note": b"1"}
        assert reads(b, edit) == {**GONE, "note": b"2", "own": b"of b"}
        carry(way, b, a, tmp_path / "place")
        assert reads(a, edit) == reads(b, edit)
        merged = b.merge(edit, report.made[0])
        assert reads(b, merged) == {"note": b"2", "own": b"of b"} and report.orders[0] in b.at(merged)
        assert_sound(a)
        assert_sound(b)
    nowhere(tmp_path / "a", tmp_path / "b")
    with opened("b") as b:
        assert states(b) == ["followed"] and reads(b, edit) == {**GONE, "note": b"2", "own": b"of b"}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "snapshot"])
def test_a_new_device_does_not_store_them(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A device that never had the bytes gets them together with the order, from a device that does not follow it."""
    with opened("a") as a, opened("b", None) as b, opened("c") as c:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry(way, a, b, tmp_path / "place")
        a.erase(*SECRETS)
        carry(way, a, b, tmp_path / "place")
        assert reads(b, first) == {**SECRETS, "note": b"1"} and states(b) == ["not valid"]
        carry(way, b, c, tmp_path / "second place")
        assert reads(c, first) == {**GONE, "note": b"1"} and states(c) == ["followed"]
        assert_sound(c)
    nowhere(tmp_path / "c")


def test_a_snapshot_with_an_order(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    with opened("a") as a, opened("b", None) as b, opened("c") as c:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, b, tmp_path)
        a.erase(*SECRETS)
        carry("stream", a, b, tmp_path)
        b.write_snapshot(tmp_path / "place")
        c.restore_snapshot(tmp_path / "place")
        assert reads(c, first) == {**GONE, "note": b"1"} and states(c) == ["followed"]
    nowhere(tmp_path / "c")


@pytest.mark.parametrize("policy", [None, {"erase": {"mode": "members"}}])
def test_without_a_right(policy: Optional[dict[str, Any]], opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Orders of a device without the secret, or with another one, have no effect where it counts, and are carried on."""
    with opened("a") as a, opened("hostile", policy, (b"not that secret, but another",)) as hostile, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, hostile, tmp_path)
        made = hostile.erase(*SECRETS)
        carry("stream", hostile, a, tmp_path)
        assert reads(a, first) == {**SECRETS, "note": b"1"} and states(a) == ["not valid"]
        with pytest.raises(llvs.errors.NotFoundError):
            a.decide_erasure(made.orders[0], keep=True)
        carry("stream", a, b, tmp_path)
        assert reads(b, first) == {**SECRETS, "note": b"1"} and states(b) == ["not valid"]
        assert made.orders[0] in b.at(made.made[0])
        assert_sound(a)


def test_signatures(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Orders made by the book count; those that differ in anything do not."""
    with opened("a", MEMBERS, (SHARED, b"the secret before")) as a, opened("other", None) as other:
        first = a.make_version(insert={f"v/{number}": b"value %d" % number for number in range(9)})
        carry("stream", a, other, tmp_path)
        what = [{"changes": [0], "version": first.id}]
        good = order(what, SHARED)
        old = order([{"changes": [1], "version": first.id}], b"the secret before", also=[], why="with what a reader does not know")
        changed = order([{"changes": [2], "version": first.id}], SHARED).replace(b"[2]", b"[3]")
        spaced = order([{"changes": [4], "version": first.id}], SHARED).replace(b'"why":', b'\n"why":')
        moved = order([{"changes": [5], "version": first.id}], SHARED)
        two = order([{"changes": [6], "version": first.id}], SHARED)
        two = b'{"by":[],' + two[1:]
        newer = order([{"changes": [7], "version": first.id}], SHARED, format=2)
        values = {id_of(data): data for data in (good, old, changed, spaced, two, newer)} | {id_of(b"elsewhere"): moved}
        other.make_version(first, insert=values)
        carry("stream", other, a, tmp_path)
        gone = {id for id, value in reads(a, first).items() if value == "ErasedError"}
        assert gone == {"v/0", "v/1"}
        assert sorted(states(a)) == ["followed"] * 2 + ["not valid"] * 5
        assert_sound(a)


def test_what_orders_may_name(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Orders that name what is not there, other orders, or the same again do no harm."""
    with opened("a", {"erase": {"mode": "anyone"}}, ()) as a, opened("other", None) as other:
        first = a.make_version(insert={"x": b"x" * 50, "y": b"y" * 50})
        carry("stream", a, other, tmp_path)
        orders = [
            order([{"changes": [2**63, 2**64 - 1, 7, 0, 0], "version": first.id}]),
            order([{"changes": [0], "version": "00000000-0000-8000-8000-000000000000"}]),
            order([{"changes": [0], "version": "no id/of a version"}]),
            order([]),
            order([{"version": first.id}]),
        ]
        second = other.make_version(first, insert={id_of(data): data for data in orders})
        at_orders = order([{"changes": list(range(9)), "version": second.id}])
        third = other.make_version(second, insert={id_of(at_orders): at_orders})
        carry("stream", other, a, tmp_path)
        assert reads(a, first) == {"x": "ErasedError", "y": b"y" * 50}
        assert states(a) == ["followed"] * 6
        for data in orders:
            value = a.value(id_of(data), at=third)
            assert value is not None and value.data == data
        assert_sound(a)


def test_an_order_that_was_removed(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """It counts in any version, whatever came after. A save puts it back, and merges keep it."""
    with opened("a") as a, opened("hostile", None) as hostile, opened("b") as b:
        first = a.make_version(insert={"k": secret(), "note": b"1"})
        report = a.erase("k")
        made, (name,) = report.made[0], report.orders
        carry("stream", a, hostile, tmp_path)
        without = hostile.make_version(made, remove=[name], update={"note": b"2"})
        assert name not in hostile.at(without)
        carry("stream", hostile, b, tmp_path)
        assert states(b) == ["followed"]
        # A save on the state without it.
        saved = b.make_version(without, update={"note": b"3"})
        assert name in b.at(saved) and name not in b.at(without)
        # A removal here has no effect.
        kept = b.make_version(saved, remove=[name], update={"note": b"4"})
        assert name in b.at(kept) and [change.id for change in b.changes(kept)] == ["note"]
        with pytest.raises(llvs.errors.InvalidArgumentError):
            b.make_version(kept, update={name: b"something else"})
        # Merges: the removal on either side.
        beside = b.make_version(made, insert={"other": b"5"})
        for merged in (b.merge(beside, without), b.merge(without, b.make_version(made, insert={"z": b"6"}))):
            assert name in b.at(merged)
        assert reads(b, first)["k"] == "ErasedError"


def test_the_policy_comes_later(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Orders that are in the store are followed once the policy lets them count, also if they do not prevail any more."""
    with opened("a") as a, opened("b", None) as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, b, tmp_path)
        report = a.erase(*SECRETS)
        carry("stream", a, b, tmp_path)
        b.make_version(report.made[0], remove=list(report.orders))
        assert states(b) == [] and reads(b, first) == {**SECRETS, "note": b"1"}
        b.set_forgetting(MEMBERS, secrets=[SHARED])
        assert states(b) == ["followed"] and reads(b, first) == {**GONE, "note": b"1"}
    nowhere(tmp_path / "b")
    with opened("b", None) as b:
        # What counted still counts.
        b.set_forgetting({"erase": {"mode": "nobody"}})
        assert states(b) == ["followed"] and reads(b, first) == {**GONE, "note": b"1"}


def test_an_order_from_before_the_policy(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """It is not signed. Erasing again orders the same for the others."""
    with opened("a", None) as a, opened("b") as b:
        first = a.make_version(insert={"k": secret(), "note": b"1"})
        carry("stream", a, b, tmp_path)
        a.erase("k")
        a.set_forgetting(MEMBERS, secrets=[SHARED])
        carry("stream", a, b, tmp_path)
        assert reads(b, first)["k"] == secret()
        assert a.erase("k").values == 0
        assert a.erase("k").orders == ()
        carry("stream", a, b, tmp_path)
        assert reads(b, first)["k"] == "ErasedError"
        assert sorted(states(b)) == ["followed", "not valid"] and states(a) == ["followed"] * 2


@pytest.mark.parametrize("way", PLACES + ("stream", "link"))
def test_a_veto(way: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """A device with a delay keeps the bytes of an order, and sends them to nobody."""
    slow = {"erase": {"mode": "members", "delay": 1_000_000}}
    with opened("a") as a, opened("b", slow) as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, b, tmp_path)
        a.erase(*SECRETS)
        carry("stream", a, b, tmp_path)
        (found,) = b.erasures()
        assert found.state is ErasureState.ANNOUNCED and found.due > 1_000_000
        b.decide_erasure(found.id, keep=True)
        assert states(b) == ["kept"] and reads(b, first) == {**SECRETS, "note": b"1"}
    with opened("b", slow) as b, opened("c", None) as c, opened("a") as a:
        assert states(b) == ["kept"]
        last = b.make_version(first, update={"small": b"another value", "note": b"2"})
        for _ in range(2):
            carry(way, b, c, tmp_path / "place")
            carry(way, b, a, tmp_path / "place")
        assert reads(c, first) == {**dict.fromkeys(SECRETS, "ForgottenError"), "note": b"1"}
        assert reads(c, last) == {**dict.fromkeys(SECRETS, "ForgottenError"), "small": b"another value", "note": b"2"}
        assert reads(a, first) == {**GONE, "note": b"1"}
        b.write_snapshot(tmp_path / "snapshots")
        assert reads(b, first) == {**SECRETS, "note": b"1"}
        nowhere(tmp_path / "c", tmp_path / "a", tmp_path / "snapshots")
        if way in PLACES:
            nowhere(tmp_path / "place")
            with llvs.Exchange(b, every_byte_remote(tmp_path / "place", way)) as exchange:
                exchange.retrieve()
                assert list(exchange.send().versions) == []
        b.decide_erasure(found.id, keep=False)
        assert states(b) == ["followed"] and reads(b, first) == {**GONE, "note": b"1"}
        with pytest.raises(llvs.errors.InvalidArgumentError):
            b.decide_erasure(found.id, keep=True)
    nowhere(tmp_path / "b")


def every_byte_remote(place: Path, way: str) -> llvs.Remote:
    from test_erase_exchange import remote

    return remote(place, way)


def test_a_delay(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """What is announced is followed when the delay is over: here since the policy has a shorter one."""
    with opened("a") as a, opened("b", {"erase": {"mode": "members", "delay": 1_000_000}}) as b:
        first = a.make_version(insert={"k": secret(), "note": b"1"})
        carry("stream", a, b, tmp_path)
        a.erase("k")
        carry("stream", a, b, tmp_path)
        b.reload()
        assert states(b) == ["announced"] and reads(b, first)["k"] == secret()
    with opened("b", None) as b:
        assert states(b) == ["announced"] and reads(b, first)["k"] == secret()
        b.set_forgetting(MEMBERS, secrets=[SHARED])
        assert states(b) == ["followed"] and reads(b, first)["k"] == "ErasedError"
    assert every_byte.find(tmp_path / "b", secret()) == {}


@pytest.mark.parametrize("what", ["values", "bytes", "of one day"])
def test_the_brake(what: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """An order that names much waits for a decision, also if it names as much together with others of the day."""
    with opened("a") as a, opened("b") as b:
        values = {f"n/{number}": b"value %d" % number for number in range(1_001)}
        if what == "bytes":
            values = {"n/0": bytes(17_000_000) + secret()}
        first = a.make_version(insert={**values, "note": b"1"})
        carry("stream", a, b, tmp_path)
        if what == "of one day":
            a.erase(*list(values)[:1_000])
            carry("stream", a, b, tmp_path)
            assert states(b) == ["followed"]
            a.erase("n/1000")
        else:
            a.erase(*values)
        carry("stream", a, b, tmp_path)
        held = b.erasures()[-1]
        assert held.state is ErasureState.HELD and reads(b, first)[list(values)[-1]] == values[list(values)[-1]]
    with opened("b") as b:
        assert states(b)[-1] == "held"
        b.decide_erasure(held.id, keep=False)
        assert set(states(b)) == {"followed"} and reads(b, first) == {**dict.fromkeys(values, "ErasedError"), "note": b"1"}
        # What was decided does not count for the next one.
        if what != "of one day":
            more = a_value(b)
            with opened("a") as a:
                carry("stream", b, a, tmp_path)
                a.erase("more")
                carry("stream", a, b, tmp_path)
            assert states(b)[-1] == "followed" and reads(b, more)["more"] == "ErasedError"


def a_value(store: llvs.Store) -> llvs.Version:
    return store.make_version(store.heads()[0], insert={"more": b"one more"})


def test_two_handles(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Another handle of the store sees what this one erased because of the order of another device."""
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, b, tmp_path)
        with opened("b", None) as beside:
            assert reads(beside, first) == {**SECRETS, "note": b"1"}
            a.erase(*SECRETS)
            carry("stream", a, b, tmp_path)
            beside.reload()
            assert reads(beside, first) == {**GONE, "note": b"1"}
            saved = beside.make_version(b.heads()[0], update={"note": b"2"})
            b.reload()
            assert reads(b, saved) == {"note": b"2"}
    nowhere(tmp_path / "b")


def test_versions_that_come_with_files(storage: str, opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """Segments of another device come into the folder of a store: the next opening finds the order in them."""
    if storage != "file":
        pytest.skip("a database is one file")
    with opened("a") as a, opened("b") as b:
        first = a.make_version(insert={**SECRETS, "note": b"1"})
        carry("stream", a, b, tmp_path)
        a.erase(*SECRETS)
    for path in (tmp_path / "a/store/segments").iterdir():
        (tmp_path / "b/store/segments" / path.name).write_bytes(path.read_bytes())
    with opened("b", None) as b:
        assert states(b) == ["followed"] and reads(b, first) == {**GONE, "note": b"1"}
        assert_sound(b)
    nowhere(tmp_path / "b")


@pytest.mark.skipif(not IS_DEEP, reason="tens of thousands of orders")
def test_many_orders(opened: Callable[..., llvs.Store], tmp_path: Path) -> None:
    """At most 65,536 count; the store works on."""
    with opened("a", {"erase": {"mode": "anyone"}}, ()) as a, opened("other", None) as other:
        first = a.make_version(insert={"x": b"x"})
        carry("stream", a, other, tmp_path)
        orders = [order([{"changes": [9], "version": first.id}], why=str(number)) for number in range(65_600)]
        other.make_version(first, insert={id_of(data): data for data in orders})
        carry("stream", other, a, tmp_path)
        assert len(a.erasures()) == 65_536 and set(states(a)) == {"followed", "held"} | set(states(a)) and a.value("x", at=first)
        saved = a.make_version(a.heads()[0], update={"x": b"y"})
        assert len(a.changes(saved)) == 1
