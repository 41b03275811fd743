"""`llvs erase` and `llvs erasures`."""

from __future__ import annotations

from pathlib import Path

import llvs

from .conftest import Run


def test_erasing(llvs_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path) as notes:
        first = notes.save(insert={"a": b"one", "secret": b"xyzzy 1"})
        notes.save(update={"secret": b"xyzzy 2"})

    def llvs_(*given: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *given, code=code)
        return done.out + done.err

    assert "give the ids of values" in llvs_("erase", code=2)
    assert "no orders" in llvs_("erasures")
    assert "would erase 2 values of 2 versions" in llvs_("erase", "secret", "--dry-run")
    assert llvs_("get", "secret") == "xyzzy 2"
    told = llvs_("erase", "secret", "--why", "a test")
    assert "erased 2 values of 2 versions" in told and "out of reach: backups" in told
    # The current version of the command is the one that removes the value.
    assert "secret" not in llvs_("ls") and "a" in llvs_("ls")
    assert "erased" in llvs_("get", "secret", "--at", first.id, code=3)
    assert "followed  a test" in llvs_("erasures")
    assert llvs_run("-s", str(path), "erasures", "--json").json[0]["values"] == 2
    needle = tmp_path / "needle"
    needle.write_bytes(b"one")
    shape = llvs_run("-s", str(path), "erase", "--containing", str(needle), "--replacement", str(needle), "--json").json
    assert shape["values"] == 1 and shape["waiting"] == [] and llvs_("get", "a") == "one"
    assert "nothing to erase" in llvs_("erase", "no such value")


def test_whose_orders_count(llvs_run: Run, tmp_path: Path) -> None:
    path, other = tmp_path / "notes.llvs", tmp_path / "other.llvs"
    secret = tmp_path / "secret"
    secret.write_bytes(b"what the devices share")

    def llvs_(*given: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *given, code=code)
        return done.out + done.err

    with llvs.Coordinator(path) as notes, llvs.Store(other) as laptop:
        first = notes.save(insert={"a": b"one", "b": b"two"})
        laptop.unpack(notes.store.pack())
        laptop.set_forgetting({"erase": {"mode": "members"}}, secrets=[secret.read_bytes()])
        laptop.erase("a")
    assert "orders of other devices: nobody" in llvs_("forgetting")
    assert "give the mode" in llvs_("forgetting", "--delay", "5", code=2)
    assert "members, after 86,400 seconds" in llvs_("forgetting", "members", "--secret", str(secret), "--delay", "86400")
    assert llvs_run("-s", str(path), "forgetting", "--json").json == {"erase": {"delay": 86400, "mode": "members"}}
    with llvs.Coordinator(path) as notes, llvs.Store(other) as laptop:
        notes.store.unpack(laptop.pack())
    assert "announced" in llvs_("erasures", code=1)
    (found,) = llvs_run("-s", str(path), "erasures", "--json", code=1).json
    order = found["id"].rsplit("/", 1)[1]
    assert "give the order" in llvs_("erasures", "keep", code=2)
    assert "kept" in llvs_("erasures", "keep", order) and llvs_("get", "a", "--at", first.id) == "one"
    assert "followed" in llvs_("erasures", "approve", order)
    assert "erased" in llvs_("get", "a", "--at", first.id, code=3)


def test_forgetting_by_a_policy(llvs_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with llvs.Store(path) as store:
        first = store.make_version(insert={"a": b"old"})
        store.make_version(first, update={"a": b"new"})

    def llvs_(*words: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *words, code=code)
        return done.out + done.err

    assert "does not say what to keep" in llvs_("forget", code=2)
    assert "--dry-run" in llvs_("forget", "--keep", '{"days":0}', code=2)
    assert "is no JSON" in llvs_("forgetting", "--keep", "days", code=2)
    told = llvs_("forget", "--dry-run", "--keep", '{"days":0}')
    assert "would forget 1 value of 1 version (3 B)" in told and "only heads keeps 1 value (3 B)" in told
    assert "nothing to forget" in llvs_("forget", "--dry-run", "--keep", '{"days":0,"count":2}')
    assert 'keeps: {"days": 0}' in llvs_("forgetting", "--keep", '{"days":0}')
    assert 'keeps: {"days": 0}' in llvs_("forgetting", "anyone")
    shape = llvs_run("-s", str(path), "forget", "--json").json
    # Closing has done it: the command that set the policy ended.
    assert shape["values"] == 0 and {row["rule"] for row in shape["rows"]} >= {"heads", "days", "unsent"}
    llvs_("get", "a", "--at", first.id, code=3)
    assert "keeps: everything" in llvs_("forgetting", "--keep", "all")


def test_stewards(llvs_run: Run, tmp_path: Path) -> None:
    """Two of two stewards sign, each with a file; the report says where else the bytes may be."""
    path, seeds = tmp_path / "notes.llvs", [tmp_path / "one", tmp_path / "two"]
    for number, seed in enumerate(seeds):
        seed.write_bytes(bytes([number]) * 32)
    keys = [llvs.Store.steward_key(seed.read_bytes()).hex() for seed in seeds]
    with llvs.Coordinator(path, exchange=tmp_path / "place") as notes:
        notes.save(insert={"a": b"one", "secret": b"xyzzy 1"})
        notes.exchange()

    def llvs_(*given: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *given, code=code)
        return done.out + done.err

    given = [word for key in keys for word in ("--key", key)]
    assert "give the mode" in llvs_("forgetting", *given, code=2)
    assert "stewards" in llvs_("forgetting", "stewards", *given, "--need", "2")
    assert llvs_run("-s", str(path), "forgetting", "--json").json["erase"]["keys"] == keys
    assert "pending: " in llvs_("erase", "secret", "--signer", str(seeds[0]), "--dry-run")
    order = llvs_run("-s", str(path), "erase", "secret", "--signer", str(seeds[0]), "--json").json["orders"][0].rpartition("/")[2]
    assert "--signer" in llvs_("erasures", "sign", order, code=2)
    assert "--signer" in llvs_("erasures", "keep", order, "--signer", str(seeds[1]), code=2)
    assert "followed" in llvs_("erasures", "sign", order, "--signer", str(seeds[1]))
    shown = llvs_run("-s", str(path), "erasures", "--json").json
    assert [one["signatures"] for one in shown] == [1, 2] and shown[1]["needed"] == 2
    assert "until this device exchanges with it" in llvs_("erasures", "--places")
