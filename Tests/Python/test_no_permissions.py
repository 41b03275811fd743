"""File systems without permissions, on which `chmod` fails (FAT, exFAT, some network mounts)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Refuses to change permissions, with the error of the environment.
REFUSING = r"""
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static int refuse(void) { errno = atoi(getenv("REFUSED_WITH")); return -1; }
int fchmod(int file, mode_t mode) { (void)file; (void)mode; return refuse(); }
int fchmodat(int folder, const char *path, mode_t mode, int flags) { (void)folder; (void)path; (void)mode; (void)flags; return refuse(); }
int chmod(const char *path, mode_t mode) { (void)path; (void)mode; return refuse(); }
"""

PROGRAM = """
import os, sys
import llvs

try:
    os.chmod(sys.argv[1], 0o700)
    sys.exit("it was not refused")
except OSError:
    pass
for number in range(2):
    with llvs.Store(f"{sys.argv[1]}/store", storage=sys.argv[2]) as store:
        store.make_version(store.most_recent_head, insert={f"a{number}": b"1"})
with llvs.Coordinator(f"{sys.argv[1]}/notes", storage=sys.argv[2], exchange=f"{sys.argv[1]}/shared") as notes:
    notes.save(insert={"x": b"1"})
    assert not notes.sync().problems
print("done")
"""


@pytest.mark.parametrize("storage", ["file", "sqlite"])
@pytest.mark.parametrize("refusal", ["EPERM", "ENOTSUP", "ENOSYS"])
def test_a_store_where_permissions_cannot_be_changed(tmp_path: Path, storage: str, refusal: str) -> None:
    source, shim = tmp_path / "refusing.c", tmp_path / "refusing.so"
    source.write_text(REFUSING)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    place = tmp_path / "place"
    place.mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "REFUSED_WITH": str(getattr(errno, refusal)),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(place), storage], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
