"""rclone's own back ends check the stand-ins. rclone is not modified: it reaches them like the real services, through a proxy."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
from box import Box
from drive import GoogleDrive
from onedrive import OneDrive
from patience import PATIENCE
from pcloud import PCloud
from proxy import ConnectProxy, make_authority
from service import Service, ServiceServer

KINDS: dict[str, type[Any]] = {"drive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}
#: Larger than one upload request of the service can be.
LARGE = {"drive": 9_000_001, "onedrive": 21_000_001, "box": 52_500_001, "pcloud": 9_000_001}


class Judge:
    """rclone, set up for one stand-in."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.service: Service = KINDS[kind]()
        self.kind, self.folder = kind, folder
        self._authority, certificate, key = make_authority(folder, self.service.hosts)
        self._server = ServiceServer(self.service, certificate=(str(certificate), str(key)))
        self._proxy = ConnectProxy(self._server.server_port)
        access, refresh = self.service.accounts.sign_in()
        token = {"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expiry": "2100-01-01T00:00:00Z"}
        lines = [f"type = {kind}", "client_id = tests", "client_secret = none", f"token = {json.dumps(token)}"]
        lines += {"drive": ["scope = drive"], "onedrive": ["drive_id = b!stand-in", "drive_type = personal"]}.get(kind, [])
        self.configuration = folder / "rclone.conf"
        self.configuration.write_text("\n".join(["[there]", *lines, ""]))

    def run(self, *arguments: str, fails: bool = False) -> str:
        program = shutil.which("rclone")
        assert program, "rclone is not installed (scripts/suites/56-services does that)"
        environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        environment |= {"HTTPS_PROXY": self._proxy.url}
        options = ["--config", str(self.configuration), "--ca-cert", str(self._authority), "--retries", "1", "--low-level-retries", "4"]
        done = subprocess.run([program, *options, *arguments], env=environment, capture_output=True, timeout=PATIENCE)
        out, said = done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode()
        assert (done.returncode != 0) == fails, f"{arguments}: {out[:2000]}\n{said}"
        return out

    def close(self) -> None:
        self._proxy.close()
        self._server.close()


@pytest.fixture(params=KINDS)
def judge(request: Any, tmp_path: Path) -> Iterator[Judge]:
    judge = Judge(request.param, tmp_path)
    yield judge
    judge.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "a folder" / "below").mkdir(parents=True)
    (folder / "it's é.txt").write_text("short")
    (folder / "empty").write_bytes(b"")
    (folder / "a folder" / "one").write_bytes(random.Random(1).randbytes(70_000))
    (folder / "a folder" / "below" / "two").write_bytes(b"2")
    return folder


def names(text: str) -> set[str]:
    return set(text.splitlines())


def test_copy_list_check_and_delete(judge: Judge, source: Path) -> None:
    judge.run("copy", str(source), "there:notes")
    assert names(judge.run("lsf", "-R", "--files-only", "there:notes")) == {"it's é.txt", "empty", "a folder/one", "a folder/below/two"}
    judge.run("check", str(source), "there:notes")
    judge.run("check", "--download", str(source), "there:notes")
    (source / "empty").write_bytes(b"not any more")
    judge.run("check", str(source), "there:notes", fails=True)
    judge.run("sync", str(source), "there:notes")
    judge.run("check", "--download", str(source), "there:notes")
    judge.run("deletefile", "there:notes/a folder/one")
    assert "a folder/one" not in names(judge.run("lsf", "-R", "there:notes"))
    judge.run("purge", "there:notes")
    assert judge.run("lsf", "there:") in ("", "Apps/\n")


def test_move_and_rename(judge: Judge, source: Path) -> None:
    judge.run("copy", str(source), "there:notes")
    judge.run("moveto", "there:notes/a folder/one", "there:notes/other place/uno")
    judge.run("moveto", "there:notes/a folder", "there:notes/a place")
    assert names(judge.run("lsf", "-R", "--files-only", "there:notes")) == {"it's é.txt", "empty", "other place/uno", "a place/below/two"}
    assert judge.run("cat", "there:notes/a place/below/two") == "2"


def test_a_large_file(judge: Judge, tmp_path: Path) -> None:
    data = random.Random(2).randbytes(LARGE[judge.kind])
    (tmp_path / "large").write_bytes(data)
    arguments = ["--box-upload-cutoff", "50Mi"] if judge.kind == "box" else []
    judge.run("copyto", *arguments, str(tmp_path / "large"), "there:notes/large")
    judge.run("copyto", "there:notes/large", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    cut = judge.run("cat", "--offset", "4000000", "--count", "10", "there:notes/large")
    assert cut.encode("utf-8", "surrogateescape") == data[4_000_000:4_000_010]


def test_many_files(judge: Judge, source: Path) -> None:
    """More than one page of a list."""
    for number in range(1_050):
        folder = judge.service.tree.root  # type: ignore[attr-defined]
        judge.service.tree.add(folder, f"file {number}", b"x")  # type: ignore[attr-defined]
        if judge.kind == "drive":
            judge.service.kinds[judge.service.tree.changes[-1]] = "text/plain"  # type: ignore[attr-defined]
    assert len(names(judge.run("lsf", "--files-only", "there:"))) == 1_050


def test_many_uploads_at_once(judge: Judge, tmp_path: Path) -> None:
    """Uploads begin while others end. None gets the id of another upload in progress."""
    (tmp_path / "many").mkdir()
    for number in range(60):
        (tmp_path / "many" / str(number)).write_bytes(b"x" * number)
    judge.run("copy", "--transfers", "16", str(tmp_path / "many"), "there:many")
    judge.run("check", "--download", str(tmp_path / "many"), "there:many")


@pytest.mark.in_turn("fault", "judge")
@pytest.mark.parametrize("fault", ["rate limit", "server error"])
def test_faults_that_rclone_knows(judge: Judge, source: Path, fault: str) -> None:
    """rclone waits and retries, and all files arrive."""
    judge.run("copy", str(source), "there:notes")
    judge.service.inject(fault, count=1, when=lambda request: "authorization" in request.headers)
    judge.run("copy", str(source), "there:again")
    assert not any(each.count for each in judge.service.faults)
    judge.run("check", "--download", str(source), "there:again")


def test_quota(judge: Judge, source: Path) -> None:
    judge.service.quota = 1_000
    judge.run("copy", str(source), "there:notes", fails=True)
    assert "one" not in judge.run("lsf", "-R", "--files-only", "there:notes")


def test_a_token_that_expired(judge: Judge, source: Path) -> None:
    """The token is refreshed. (pCloud's tokens do not expire.)"""
    if judge.kind == "pcloud":
        return
    text = judge.configuration.read_text()
    judge.configuration.write_text(text.replace("2100-01-01", "2000-01-01"))
    judge.service.expire_tokens()
    judge.run("copy", str(source), "there:notes")
    judge.run("check", str(source), "there:notes")
    assert judge.service.accounts.refreshes >= 1  # type: ignore[attr-defined]
