"""Rules and documents that are made to be expensive. Merging inside values costs in proportion to the data sent, not to its square."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import llvs
import pytest

GIB = 1 << 30


def text(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def diverge(store: llvs.Store, schema: object, documents: list[bytes], name: str = "d") -> tuple[llvs.Version, llvs.Version]:
    base = store.make_version(insert={"__llvs_schema": text({"merge": 1, "ids": schema}), name: documents[0]})
    return store.make_version(base, update={name: documents[1]}), store.make_version(base, update={name: documents[2]})


def test_the_paths_of_conflicts_are_bounded() -> None:
    """A name of n bytes would occur in the paths of n conflicts. They are reported as one conflict."""
    count = 3_000
    documents = [text({"n" * count: {f"a{i}": v for i in range(count)}}) for v in (1, 2, 3)]
    with llvs.Store(storage="memory") as store:
        older, newer = diverge(store, {"d": "auto"}, documents)
        merged = store.merge(older, newer)
        assert json.loads(store.at(merged)["d"]) == json.loads(documents[2])
        explained = store.explain(merged)
        records = [record for records in explained.values() for record in records]
        assert [record.kind for record in records] == [llvs.merge.ConflictKind.LIMIT] and not records[0].path
        # The conflict can be decided like any other.
        assert len(store.open_conflicts(merged)["d"]) == 1


PEAK = """
import resource, sys, json
resource.setrlimit(resource.RLIMIT_AS, ({gib} << 30, {gib} << 30))
import llvs
text = lambda value: json.dumps(value, separators=(",", ":")).encode()
{body}
"""


def within(gib: int, body: str) -> None:
    """Runs a program with a limit of `gib` GiB of address space, and expects its success."""
    done = subprocess.run([sys.executable, "-c", PEAK.format(gib=gib, body=body)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_long_paths_do_not_end_the_process() -> None:
    within(2, """
n = 30_000
documents = [text({"n" * n: {f"a{i}": v for i in range(n)}}) for v in (1, 2, 3)]
merged = llvs.merge.merge_values(*documents)
assert len(merged.records) == 1 and json.loads(merged.data) == json.loads(documents[1])
""")


def test_patterns_that_share_a_place_do_not_end_the_process() -> None:
    within(2, """
n = 8_000
rules = {**{f"/m{i}": "auto" for i in range(n)}, **{f"/*/n{i}": "auto" for i in range(n)}}
documents = [text({f"m{i}": {"x": v} for i in range(n)}) for v in (1, 2, 3)]
assert len(llvs.merge.merge_values(*documents, rules=rules).records) == n
""")


def test_what_is_absent_is_short() -> None:
    rules = {"merge": 1, "ids": {"d": {"/*/x": {"absent": "A" * 1_024}}}}
    llvs.merge.check_schema(rules)
    rules["ids"]["d"]["/*/x"]["absent"] += "A"  # type: ignore[index]
    with pytest.raises(llvs.errors.InvalidArgumentError, match="1024 bytes"):
        llvs.merge.check_schema(rules)


def test_a_merge_writes_no_more_than_it_was_given() -> None:
    """An absent value is written into each element from which one side removed it and which the other side edited."""
    count = 20_000
    rules = {"/*/x": {"absent": "A" * 1_000}}
    base = text({f"m{i}": {"x": "1", "y": 1} for i in range(count)})
    newer, older = text({"q": 1, **{f"m{i}": {"y": 1} for i in range(count)}}), text({f"m{i}": {"x": "2", "y": 2} for i in range(count)})
    merged = llvs.merge.merge_values(base, newer, older, rules=rules)
    assert merged.data == newer and [record.kind for record in merged.records] == [llvs.merge.ConflictKind.LIMIT]
    few = llvs.merge.merge_values(b'{"m":{"x":"1","y":1}}', b'{"m":{"y":1}}', b'{"m":{"x":"2","y":2}}', rules=rules)
    assert few.data is not None and json.loads(few.data) == {"m": {"x": "A" * 1_000, "y": 2}}


def test_many_prefixes_and_ids(tmp_path: Path) -> None:
    """The longest prefix of each id is found without comparing all prefixes."""
    count, shared = 4_000, "z" * 400
    schema = {f"{shared}a{i:07}": "auto" for i in range(count)} | {"z": {"/n": "counter"}, shared: {"/n": {"as": "counter"}}}
    ids = [f"{shared}b{i:07}" for i in range(count)]
    with llvs.Store(tmp_path / "store", durability="normal") as store:
        base = store.make_version(insert={"__llvs_schema": text({"merge": 1, "ids": schema}), **dict.fromkeys(ids, b'{"n":1}')})
        sides = [store.make_version(base, update=dict.fromkeys(ids, b'{"n":%d}' % n)) for n in (2, 3)]
        merged = store.merge(*sides)
        assert all(store.at(merged)[each] == b'{"n":4}' for each in ids[::400])


@pytest.mark.parametrize("shape", ["object", "list"])
def test_open_conflicts_of_a_document_that_was_edited(shape: str) -> None:
    """The document is read once for each edit, not once for each conflict: 2,000 conflicts, 10 edits."""
    count, edits = 2_000, 10

    def document(value: int) -> bytes:
        return text({f"m{i}": value for i in range(count)} if shape == "object" else [{"id": i, "v": value} for i in range(count)])

    with llvs.Store(storage="memory") as store:
        older, newer = diverge(store, {"d": "auto"}, [document(1), document(2), document(3)])
        at = store.merge(older, newer)
        for i in range(edits):
            at = store.make_version(at, update={"d": document(3) + b" " * (i + 1)})
        assert len(store.open_conflicts(at)["d"]) == count
        at = store.make_version(at, update={"d": document(3).replace(b"3", b"4", 1)})
        assert len(store.open_conflicts(at)["d"]) == count - 1


def test_unknown_rules_prevent_no_merge(tmp_path: Path) -> None:
    """One version has rules with an unknown number. It remains a head and is reported; the other devices' versions are merged."""
    folder = (tmp_path / "folder").as_uri()
    with llvs.Coordinator(storage="memory", exchange=folder) as mine, llvs.Coordinator(storage="memory", exchange=folder) as yours:
        mine.save(insert={"mine": b"1"})
        yours.save(insert={"yours": b"2"})
        with llvs.Store(storage="memory") as peer, llvs.Exchange(peer, folder) as exchange:
            peer.make_version(insert={"__llvs_schema": b'{"merge":7}'}, timestamp=4e9)
            exchange.send()
        for _ in range(2):
            for each in (mine, yours):
                with pytest.raises(llvs.errors.UnsupportedError, match="rules of number 7"):
                    each.sync()
        assert dict(mine.items()) == dict(yours.items()) == {"mine": b"1", "yours": b"2"}
        # A later device gets the same result as the others.
        with llvs.Coordinator(storage="memory", exchange=folder) as new:
            with pytest.raises(llvs.errors.UnsupportedError):
                new.sync()
            assert dict(new.items()) == {"mine": b"1", "yours": b"2"}


@pytest.mark.parametrize("unknown", [b'{"merge":7}', b'{"merge":1,"ids":{"a/":"sat"}}', b"no rules"])
def test_a_new_device_with_rules_of_its_own_opens_where_there_are_such(tmp_path: Path, unknown: bytes) -> None:
    """The only head has rules that this library cannot follow. Newer rules stay and are reported; invalid ones are replaced."""
    folder, mine = (tmp_path / "folder").as_uri(), {"merge": 1, "ids": {"n": "counter"}}
    is_newer = b"7" in unknown
    with llvs.Store(storage="memory") as peer, llvs.Exchange(peer, folder) as exchange:
        theirs = peer.make_version(insert={"__llvs_schema": unknown, "n": b"1"})
        exchange.send()

    def sync(device: llvs.Coordinator) -> None:
        if is_newer:
            with pytest.raises(llvs.errors.UnsupportedError, match="rules of number 7|newer version"):
                device.sync()
        else:
            device.sync()

    # The rules were registered before the content arrived. They are registered again at the next opening.
    with llvs.Coordinator(tmp_path / "device", exchange=folder, schema=mine) as device:
        sync(device)
        assert device["n"] == b"1"
        device.save(update={"n": b"2"})
        sync(device)
        assert device["n"] == b"2"
    with llvs.Coordinator(tmp_path / "device", exchange=folder, schema=mine) as device:
        found = device.schema()
        assert (found.problem is not None) == is_newer
        assert (device["__llvs_schema"] == unknown) == is_newer
        sync(device)
        device.save(update={"n": b"3"})
        again = device.register_schema(mine)
        assert again.version is None and (again.problem is not None) == is_newer
        with pytest.raises(llvs.errors.InvalidArgumentError):
            device.register_schema(b"[1]")
        # Once readable rules prevail, the registered ones are added to them.
        if is_newer:
            device.save(update={"__llvs_schema": b'{"ids":{"m":"counter"},"merge":1}'})
            device.sync()
            assert json.loads(device["__llvs_schema"])["ids"] == {"m": "counter", "n": "counter"}
            assert device.schema().problem is None
    # A coordinator whose store has everything already.
    with llvs.Store(tmp_path / "other") as other:
        with llvs.Exchange(other, folder) as exchange:
            exchange.retrieve()
        assert other.version(theirs.id)
    with llvs.Coordinator(tmp_path / "other", schema=mine) as device:
        device.save(update={"n": b"4"})
        assert device["n"] == b"4"


def test_invalid_rules_behind_one_another_are_looked_at_once() -> None:
    count = 300
    with llvs.Store(storage="memory") as store:
        at = store.make_version(insert={"__llvs_schema": b'{"merge":1,"ids":{"n":"counter"}}', "n": b"0"})
        for i in range(count):
            at = store.make_version(at, update={"__llvs_schema": b"bad%d" % i})
        heads = [store.make_version(at, update={"n": b"%d" % i}) for i in range(1, 30)]
        merged = store.merge_heads(heads[0], llvs.Rules())
        assert merged is not None and store.at(merged)["n"] == b"%d" % sum(range(1, 30))


def test_words_of_any_length() -> None:
    """16,000 different words of ten characters each, on three sides."""
    texts = [" ".join(f"{side}{i:09}" for i in range(16_000)).encode() for side in "abc"]
    assert llvs.merge.merge_values(*texts, rules="text").data is not None
