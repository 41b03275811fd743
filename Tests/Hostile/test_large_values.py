"""Files of large values that cannot be checked, or whose times are useless: an older state is never mistaken for the newest."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import llvs
import pytest

LARGE = 1_200_000


@pytest.mark.parametrize("ahead", [-3_600, 3_600, 3 * 365 * 86_400])
def test_the_time_of_a_damaged_file(tmp_path: Path, ahead: int) -> None:
    """A damaged file with a time in the future, for example after a wrong clock. Its value is lost; the descendants of its version
    remain."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        first = store.make_version(None, insert={"large": os.urandom(LARGE)})
        newest = store.make_version(first, insert={"b": b"2"})
    file = next((path / "blobs").iterdir())
    os.truncate(file, 1 << 20)
    os.utime(file, (time.time() + ahead, time.time() + ahead))
    with llvs.Store(path) as store:
        assert [head.id for head in store.heads()] == [newest.id] and store.at(newest)["b"] == b"2"
        assert [damage.lost for damage in store.verify().damages] == ["value"]


def test_a_damaged_file_that_may_be_on_its_way(tmp_path: Path) -> None:
    """A file whose time is only a little in the future may still be written, by a server with another clock: its version waits."""
    path = tmp_path / "store"
    with llvs.Store(path) as store:
        store.make_version(None, insert={"large": os.urandom(LARGE)})
    file = next((path / "blobs").iterdir())
    os.truncate(file, 1 << 20)
    os.utime(file, (time.time() + 50, time.time() + 50))
    with llvs.Store(path) as store:
        assert not store.heads() and store.statistics().pending == 1


UNREADABLE = """
import os, sys, llvs
from pathlib import Path
path = Path(sys.argv[1])
def written(path):
    with llvs.Coordinator(path) as coordinator:
        coordinator.save(insert={"a": b"1"})
        coordinator.save(insert={"large": os.urandom(1_200_000)})
        coordinator.save(insert={"b": b"2"})
        return coordinator.current_version.id
written(path / "other")
if os.geteuid() == 0:
    # Everything that the library loads was loaded above.
    os.setgid(65534)
    os.setuid(65534)
newest = written(path / "mine" / "store")
blobs = path / "mine" / "store" / "blobs"
file = next(blobs.iterdir())
def refused():
    try:
        llvs.Coordinator(path / "mine" / "store").close()
    except llvs.Error as error:
        assert error.code == llvs.ErrorCode.PERMISSION, error
    else:
        raise AssertionError("an older state was taken for the newest")
for times in (None, (1e9, 1e9)):
    os.utime(file, times)
    os.chmod(blobs, 0)
    refused()
    os.chmod(blobs, 0o700)
os.utime(file, None)
os.chmod(file, 0)
refused()
os.chmod(file, 0o600)
with llvs.Coordinator(path / "mine" / "store") as coordinator:
    assert coordinator.current_version.id == newest and len(coordinator.store.heads()) == 1
"""


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    """If the segments cannot be read, opening fails, and no save is based on an older state."""
    folder = tmp_path / "mine"
    folder.mkdir()
    if os.geteuid() == 0:
        # The other user needs access to all parent folders.
        for parent in [folder, *folder.parents]:
            if parent.owner() == "root" and parent.stat().st_mode & 0o011 != 0o011 and parent.is_relative_to("/tmp"):
                os.chmod(parent, 0o755)
        os.chown(folder, 65534, 65534)
    done = subprocess.run([sys.executable, "-c", UNREADABLE, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
