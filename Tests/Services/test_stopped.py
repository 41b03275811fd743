"""Processes that are stopped or killed while they upload, as phones do with applications in the background: number 36 of the pitfalls of
docs/cloud-drives.md."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator

import llvs
import pytest
from moved_clock import HURRIES
from patience import PATIENCE
from clouds import Cloud, exchange, files, ids
from test_clouds import KINDS

#: The largest file that is sent in one request: docs/pack-format.md.
UNIT = 16 << 20
SIZES = [3_000_000, 900_000, 9_000_000, 700_000]

DEVICE = HURRIES + """
import sys
import llvs
url, tokens, folder = sys.argv[1:]
with llvs.Store(folder) as store:
    with llvs.Exchange(store, llvs.Remote(url, token_file=tokens)) as way:
        way.retrieve()
        print(len(way.send().sent), flush=True)
"""


@pytest.fixture(params=KINDS)
def cloud(request: Any, tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(KINDS[request.param](), request.param, tmp_path)
    yield cloud
    cloud.close()


def start(cloud: Cloud, folder: Path, layout: str = "packed") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", DEVICE, cloud.url(layout=layout), str(cloud.tokens), str(folder)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def are_whole(cloud: Cloud) -> bool:
    """Whether each file has the bytes of its name."""
    nodes = [node for node in cloud.service.tree.nodes.values() if node.data is not None]  # type: ignore[attr-defined]
    for node in nodes:
        digest = base64.b32encode(hashlib.sha256(node.data).digest()[:16]).decode().lower().rstrip("=")
        if not node.name.endswith(digest) or len(node.data) > UNIT:
            return False
    return True


class Watch:
    """Waits until this number of bytes of files has arrived, and holds later ones back."""

    def __init__(self, cloud: Cloud, after: int) -> None:
        self.cloud, self.after, self.came = cloud, after, 0
        self.is_there, self.goes_on, self.is_cut = threading.Event(), threading.Event(), threading.Event()
        cut_short = cloud.service.cut_short
        cloud.service.cut_short = lambda request: (cut_short(request), self.is_cut.set())[0]  # type: ignore[method-assign]
        self.cuts = False
        self.last: dict[int, int] = {}
        cloud.service.reading = self.reading

    def reading(self, path: str, count: int) -> None:
        thread = threading.get_ident()
        before = self.last.get(thread, 0)
        self.last[thread] = count
        self.came += count - before if count > before else count
        if self.came >= self.after and not self.is_there.is_set():
            self.is_there.set()
            self.goes_on.wait(PATIENCE)
            if self.cuts:
                raise ConnectionAbortedError


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_in_the_middle_of_an_upload(cloud: Cloud, tmp_path: Path, new_store: Any, how: str) -> None:
    """Whole files stay, no incomplete ones remain, and the upload continues: in the same process if that continues, otherwise in the
    next."""
    with llvs.Store(tmp_path / "device") as store:
        for number, size in enumerate(SIZES):
            store.make_version(store.most_recent_head, insert={f"v{number}": random.Random(number).randbytes(size)})
        wanted = ids(store)
    rounds = 0
    came = 0
    for after in (1_000_000, 5_000_000, 4_000_000):
        watch = Watch(cloud, after)
        process = start(cloud, tmp_path / "device")
        assert watch.is_there.wait(PATIENCE)
        assert are_whole(cloud)
        watch.cuts = True
        os.kill(process.pid, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
        watch.goes_on.set()
        rounds += 1
        came += watch.came
        if how == "stopped":
            # The service has closed the connection when the process continues.
            assert watch.is_cut.wait(PATIENCE)
            assert are_whole(cloud)
            os.kill(process.pid, signal.SIGCONT)
            told, error = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0 and int(told) == len(SIZES), error
            break
        process.communicate(timeout=PATIENCE)
    rest = Watch(cloud, 1 << 40)
    if how == "killed":
        assert rounds == 3
        process = start(cloud, tmp_path / "device")
        told, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, error
        if cloud.scheme in ("gdrive", "pcloud"):
            # The processes continue the large upload one after another. Only the first million, which was sent in one request, and a chunk
            # for each cut are sent twice. At pCloud the first two cuts are in files that are sent in one request each, which were also sent
            # twice if their folder was missing; only the third cut is in a session.
            twice = 1_000_000 + 3 * (1 << 18) + 300_000 if cloud.scheme == "gdrive" else 8_300_000
            assert came + rest.came < sum(SIZES) + twice
    assert are_whole(cloud)
    second = new_store()
    exchange(second, cloud.place(layout="packed"))
    assert ids(second) == wanted


@pytest.mark.in_turn("scheme", "what")
@pytest.mark.parametrize("scheme", ["gdrive", "pcloud"])
@pytest.mark.parametrize("what", ["kept", "damaged", "forgotten", "another's"])
def test_a_session_goes_on_in_another_process(tmp_path: Path, new_store: Any, what: str, scheme: str) -> None:
    """The record of a session is a hint. If it is damaged, or the service no longer knows the session, the file is sent again, and nothing
    else."""
    cloud = Cloud(KINDS[scheme](), scheme, tmp_path)
    with llvs.Store(tmp_path / "device") as store:
        store.make_version(insert={"large": random.Random(1).randbytes(8 << 20)})
        wanted = ids(store)
    watch = Watch(cloud, 6_000_000)
    process = start(cloud, tmp_path / "device")
    assert watch.is_there.wait(PATIENCE)
    watch.cuts = True
    process.kill()
    process.communicate(timeout=PATIENCE)
    watch.goes_on.set()
    kept = {path.name.rsplit("-", 1)[1].split(".")[0]: path for path in (tmp_path / "device").rglob("packs-*-*") if path.is_file()}
    assert {"upload", "session"} <= set(kept) and all(path.stat().st_mode & 0o077 == 0 for path in kept.values())
    if what == "damaged":
        data = bytearray(kept["upload"].read_bytes())
        data[len(data) // 2] ^= 1
        kept["upload"].write_bytes(data)
    elif what == "forgotten":
        cloud.service.uploads.clear()  # type: ignore[attr-defined]
    elif what == "another's":
        kept["session"].write_bytes(b"!" * 100)
    watch = Watch(cloud, 1 << 40)
    process = start(cloud, tmp_path / "device")
    told, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and int(told) <= 1, error
    assert (watch.came < 3_500_000) == (what == "kept"), watch.came
    assert are_whole(cloud)
    left = [path for path in (tmp_path / "device").rglob("packs-*-*") if "-upload" in path.name or "-session" in path.name]
    assert not left
    second = new_store()
    exchange(second, cloud.place(layout="packed"))
    assert ids(second) == wanted
    cloud.close()


#: By service: the size of a value, the bytes of its file that arrive before the process is killed, and the bytes that may arrive twice. The
#: last are those in flight, in parts of 256 KiB, of 10 MiB, and of four times 2 MiB, and those that the service has not acknowledged.
SINGLE = {
    "gdrive": (8 << 20, 6_000_000, 600_000), "onedrive": (24 << 20, 25_000_000, 11_000_000),
    "box": (16 << 20, 14_000_000, 9_500_000), "pcloud": (8 << 20, 6_000_000, 600_000),
}  # fmt: skip


@pytest.mark.parametrize("what", [
    "kept", *(pytest.param(what, marks=pytest.mark.in_turn("what", "cloud")) for what in ("forgotten", "of other bytes"))])
def test_a_large_single_file_goes_on_in_another_process(cloud: Cloud, tmp_path: Path, new_store: Any, what: str) -> None:
    """Only the owner can read the record of a session, which is bound to its bytes."""
    size, before, twice = SINGLE[cloud.scheme]
    if cloud.scheme == "box":
        cloud.service.PART = 2 << 20  # type: ignore[attr-defined]
    device, other = tmp_path / "device", tmp_path / "other"
    for number, folder in enumerate((device, other)):
        with llvs.Store(folder, options=llvs.StoreOptions(file_mode=0o660)) as store:
            store.make_version(insert={"large": random.Random(number).randbytes(size)}, id="same")
    watch = Watch(cloud, before)
    process = start(cloud, device, "interchange")
    assert watch.is_there.wait(PATIENCE)
    watch.cuts = True
    process.kill()
    process.communicate(timeout=PATIENCE)
    watch.goes_on.set()
    (kept,) = device.rglob("packs-*-session*")
    assert kept.stat().st_mode & 0o777 == 0o600
    if what == "forgotten":
        getattr(cloud.service, "sessions" if cloud.scheme in ("box", "onedrive") else "uploads").clear()
    elif what == "of other bytes":
        # The record is used for another file of the same name and size.
        (other / kept.relative_to(device)).parent.mkdir(exist_ok=True)
        shutil.copy(kept, other / kept.relative_to(device))
        device = other
    rest = Watch(cloud, 1 << 40)
    process = start(cloud, device, "interchange")
    told, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and int(told) == 1, error
    whole = len(files(cloud, "changes")[0].data)
    assert (rest.came < whole - before + twice) == (what == "kept"), (rest.came, whole)
    assert not list(device.rglob("packs-*-session*"))
    second = new_store()
    exchange(second, cloud.place())
    with llvs.Store(device) as store:
        assert second.at("same")["large"] == store.at("same")["large"]


def killed(cloud: Cloud, device: Path) -> int:
    """Kills a process while it sends a large single file; returns the number of bytes that arrived."""
    size, before, _ = SINGLE[cloud.scheme]
    if cloud.scheme == "box":
        cloud.service.PART = 2 << 20  # type: ignore[attr-defined]
    with llvs.Store(device, options=llvs.StoreOptions(file_mode=0o660)) as store:
        store.make_version(insert={"large": random.Random(1).randbytes(size)}, id="same")
    watch = Watch(cloud, before)
    process = start(cloud, device, "interchange")
    assert watch.is_there.wait(PATIENCE)
    watch.cuts = True
    process.kill()
    process.communicate(timeout=PATIENCE)
    watch.goes_on.set()
    assert len(list(device.rglob("packs-*-session*"))) == 1
    cloud.service.reading = lambda path, count: None
    return before


def test_the_place_was_moved_away_meanwhile(cloud: Cloud, tmp_path: Path, new_store: Any) -> None:
    """A session that ends in another folder, or in another account, does not belong to this place: the file is sent again."""
    device, second = tmp_path / "device", new_store()
    killed(cloud, device)
    tree = cloud.service.tree  # type: ignore[attr-defined]
    (old,) = (node for node in tree.nodes.values() if node.name == "notes" and node.is_folder)
    old.name = "moved away"
    tree.touch(old)
    process = start(cloud, device, "interchange")
    told, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and int(told) == 1, error
    assert not list(device.rglob("packs-*-session*"))
    exchange(second, cloud.place())
    with llvs.Store(device) as store:
        assert second.at("same")["large"] == store.at("same")["large"]


@pytest.mark.in_turn("how", "cloud")
@pytest.mark.parametrize("how", ["there is nothing to send", "new"])
def test_what_is_kept_of_a_session_that_is_over(cloud: Cloud, tmp_path: Path, how: str) -> None:
    """The session's address is a secret. It is deleted if no process continues the session."""
    device = tmp_path / "device"
    killed(cloud, device)
    with llvs.Store(device) as store:
        other = tmp_path / "other"
        with llvs.Store(other, options=llvs.StoreOptions(file_mode=0o660)) as copy:
            copy.make_version(insert={"large": store.at("same")["large"]}, id="same")
            exchange(copy, cloud.place())
        with llvs.Exchange(store, cloud.place(), restoration_state=b"new" if how == "new" else b"") as way:
            assert not way.retrieve().problems
            told = way.send()
            assert not told.problems and not told.sent
    assert not list(device.rglob("packs-*-session*"))


def test_a_session_that_is_refused_to_the_next_process(tmp_path: Path, new_store: Any, monkeypatch: Any) -> None:
    """The service always gives an unknown answer. The same call then sends the file again."""
    cloud, device, second, refused = Cloud(KINDS["pcloud"](), "pcloud", tmp_path), tmp_path / "device", new_store(), []
    killed(cloud, device)
    inner = cloud.service._do_upload_info  # type: ignore[attr-defined]

    def refuse(request: Any, given: dict[str, str]) -> dict[str, Any]:
        refused[:] = refused or [given["uploadid"]]
        return {"result": 2001, "error": "No."} if given["uploadid"] == refused[0] else inner(request, given)

    monkeypatch.setattr(cloud.service, "_do_upload_info", refuse)
    process = start(cloud, device, "interchange")
    told, error = process.communicate(timeout=PATIENCE)
    assert refused and process.returncode == 0 and int(told) == 1, error
    exchange(second, cloud.place())
    with llvs.Store(device) as store:
        assert second.at("same")["large"] == store.at("same")["large"]
    cloud.close()
