"""Attacks by a device that may write to an exchange folder: it adds or overwrites files under the ids of versions that others have.

The genuine versions arrive nevertheless, whether they were sent before or are sent next: a later device receives them.
"""

from __future__ import annotations

import json
import os
import struct
from hashlib import sha256
from pathlib import Path
from typing import Sequence

import pytest

import llvs
from test_ids import files_of, folder, forked, ids, problems, publish, retrieve, send

__all__ = ["folder"]


def latest(store: llvs.Store, folder: Path) -> None:
    """Checks that a later device receives everything in the store."""
    with llvs.Store(storage="memory") as late:
        assert not retrieve(late, folder).problems
        assert ids(late) == ids(store)


# ---- twins by case ----


@pytest.mark.parametrize("with_twin", [True, False])
def test_the_twin_of_the_next_merge(folder: Path, with_twin: bool) -> None:
    """A file that claims a computed id in lower case does not block that id. The place distinguishes the two, and no device accepts the
    twin."""
    store, one, _, merge = forked(folder)
    with store, llvs.Exchange(store, folder) as exchange:
        publish(folder, merge, files_of(merge.lower()))
        if with_twin:
            publish(folder, merge.lower(), files_of(merge.lower()))
        exchange.retrieve()
        assert store.merge_heads(one).id == merge  # type: ignore[union-attr]
        later = store.make_version(merge, insert={"c": b"3"}).id
        result = exchange.send()
        assert set(result.versions) == {merge, later} and not result.problems
        with llvs.Store(storage="memory") as late:
            retrieve(late, folder)
            assert ids(late) == ids(store)


def test_twins_that_the_place_holds_apart(folder: Path) -> None:
    """Ids of the caller: the file of one id claims to be the twin. It is rewritten, since the twin has a file of its own."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        store.make_version(insert={"a": b"1"}, id="note")
        exchange.send()
        publish(folder, "note", files_of("NOTE"))
        publish(folder, "NOTE", files_of("NOTE", (), {"evil": b"1"}))
        exchange.verify()
        result = exchange.send()
        assert result.versions == ("note",) and not result.problems
    with llvs.Store(storage="memory") as late:
        assert not retrieve(late, folder).problems
        assert dict(late.at("note")) == {"a": b"1"}


# ---- files overwritten while no exchange is open ----


def test_a_merge_made_while_no_exchange_is_open(tmp_path: Path, folder: Path) -> None:
    """The id of the merge was occupied in advance. The next exchange finds that, though no retrieve checks files of local versions."""
    store, one, _, merge = forked(folder)
    with store:
        publish(folder, merge, files_of(merge, (), {"evil": b"1"}))
        assert store.merge_heads(one).id == merge  # type: ignore[union-attr]
        store.make_version(merge, insert={"c": b"3"})
        assert merge in send(store, folder).versions
        latest(store, folder)
        assert not send(store, folder).versions


def forgeries(id: str, folder: Path) -> dict[str, tuple[bytes, bytes]]:
    """Well-formed files, none of which are the version's."""
    version, changes = (folder / "versions" / id).read_bytes(), (folder / "changes" / id).read_bytes()
    said = json.loads(version)
    wrong = {"version": {**said["version"], "digest": "0" * 64}}
    return {
        "other files": files_of(id, (), {"evil": b"1"}),
        "other changes": (version, files_of(id, (), {"evil": b"1"})[1]),
        "another version file": (files_of(id, (), {})[0], changes),
        "a wrong digest": (json.dumps(wrong).encode(), changes),
        "another name": (files_of("other")[0], changes),
        "large": (version, files_of(id, (), {"evil": b"1" * 100_000})[1]),
    }


@pytest.mark.parametrize("kind", ["other files", "other changes", "another version file", "a wrong digest", "another name", "large"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_sent_file_is_overwritten(folder: Path, kind: str, is_open: bool) -> None:
    """Valid JSON replaces the file. The next send of the same exchange, or of another one, rewrites the version."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        first = store.make_version(insert={"a": b"1"}).id
        store.make_version(first, update={"a": b"2"})
        exchange.send()
        exchange.send()
        publish(folder, first, forgeries(first, folder)[kind])
        result = exchange.send() if is_open else send(store, folder)
        assert result.versions == (first,) and not result.problems
        latest(store, folder)
        assert not exchange.send().versions and not send(store, folder).versions


def test_what_another_wrote_is_left_alone(folder: Path) -> None:
    """A file with the same version in another spelling stays. Two versions under one id of the caller stay, too: no device knows the right
    one."""
    with llvs.Store(storage="memory") as store:
        id = store.make_version(insert={"a": b"1"}).id
        store.make_version(insert={"b": b"1"}, id="note", root=True)
        send(store, folder)
        said = json.loads((folder / "versions" / id).read_bytes())
        del said["version"]["digest"]
        publish(
            folder,
            id,
            (json.dumps(said, indent=1).encode(), json.dumps(json.loads((folder / "changes" / id).read_bytes()), indent=1).encode()),
        )
        publish(folder, "note", files_of("note", (), {"b": b"2"}))
        assert not send(store, folder).versions
        with llvs.Exchange(store, folder) as exchange:
            assert problems(exchange.verify()) == [("note", llvs.ErrorCode.VERSION_MISMATCH)]


# ---- ids of merges as they were made before ----


def old_merge_id(after: Sequence[str]) -> str:
    """The id of a merge by the old formula, which leaves the timestamp out."""
    hashed = b"llvs merge 1\0" + bytes([2]) + b"".join(struct.pack("<H", len(p)) + p.encode() for p in after) + struct.pack("<II", 0, 0)
    digest = bytearray(sha256(hashed).digest()[:16])
    digest[6], digest[8] = digest[6] & 15 | 0x80, digest[8] & 63 | 0x80
    text = digest.hex().upper()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def test_an_old_merge_with_another_timestamp(tmp_path: Path) -> None:
    """A merge with another timestamp is published under the id of the genuine one. No device accepts it, so it is rewritten."""
    one, two = tmp_path / "one", tmp_path / "two"
    for id, after, timestamp in (("p", (), 7e8), ("q", (), 7e8)):
        publish(one, id, files_of(id, after, {id: b"1"}, timestamp))
    merge = old_merge_id(("p", "q"))
    publish(one, merge, files_of(merge, ("p", "q"), {}, 7e8 + 1e-6))
    with llvs.Store(storage="memory") as store:
        assert not retrieve(store, one).problems
        publish(two, merge, files_of(merge, ("p", "q"), {}, 7e8 + 100))
        assert merge in send(store, two).versions
        latest(store, two)


# ---- times that are restored ----


@pytest.mark.parametrize("kind", ["changes", "versions"])
def test_in_place_with_its_times_restored(folder: Path, kind: str) -> None:
    """The file has the same size and modification time as before. The open exchange rewrites the version nevertheless."""
    with llvs.Store(storage="memory") as store, llvs.Exchange(store, folder) as exchange:
        first = store.make_version(insert={"a": b"1" * 50}).id
        exchange.send()
        exchange.send()
        file = folder / kind / first
        was, data = file.stat(), file.read_bytes()
        probe = folder / "probe"
        probe.touch()
        while probe.stat().st_ctime_ns <= was.st_ctime_ns:  # file systems have coarse clocks
            probe.touch()
        probe.unlink()
        other = data.replace(b"MTEx", b"MTEy", 1) if kind == "changes" else data.replace(b'"digest":"', b'"digest":"x', 1)
        with open(file, "r+b") as opened:
            opened.write(other[: len(data)])
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
        now = file.stat()
        assert (was.st_ino, was.st_size, was.st_mtime_ns) == (now.st_ino, now.st_size, now.st_mtime_ns)
        store.make_version(first, update={"a": b"2"})
        assert first in exchange.send().versions
        latest(store, folder)
        # No file is read twice, or written.
        assert not exchange.send().versions
