"""Tokens that the host stores (`llvs.exchange.Tokens`): one caller renews them, once, and they are stored before use. Numbers are those of
the pitfalls of docs/cloud-drives.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Iterator, Optional

import llvs
import pytest
from clouds import Cloud, exchange, ids, save
from containers import Container
from drive import GoogleDrive
from service import Request


class Kept(llvs.exchange.Tokens):
    """A key store, as far as tests need one."""

    def __init__(self, text: Optional[str]) -> None:
        self.text, self.calls = text, [""]
        self.fails: Optional[BaseException] = None

    def read(self) -> Optional[str]:
        self.calls.append("read")
        return self.text

    def keep(self, tokens: str) -> None:
        self.calls.append("keep")
        if self.fails is not None:
            raise self.fails
        self.text = tokens

    @property
    def members(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text or "")
        return found


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Cloud]:
    service = GoogleDrive()
    service.accounts.refreshing = "once"
    cloud = Cloud(service, "gdrive", tmp_path)
    yield cloud
    cloud.close()


def kept(drive: Cloud, **change: Any) -> Kept:
    return Kept(json.dumps(drive.sign_in(**change)))


def test_they_are_renewed_and_kept(drive: Cloud, store: llvs.Store) -> None:
    tokens = kept(drive, account={"é": [1, None]})
    before = tokens.members
    place = llvs.Remote(drive.url(), tokens=tokens)
    exchange(store, place)
    assert "keep" not in tokens.calls and drive.service.accounts.refreshes == 0  # type: ignore[attr-defined]
    drive.service.expire_tokens()
    exchange(store, place)
    after = tokens.members
    assert tokens.calls.count("keep") == 1 and after["access_token"] != before["access_token"]
    assert after["refresh_token"] != before["refresh_token"] and after["account"] == {"é": [1, None]}


def test_many_threads_renew_once(drive: Cloud, new_store: Any) -> None:
    """25, within a process: one object for each account."""
    tokens, stores = kept(drive), [new_store() for _ in range(6)]
    place = llvs.Remote(drive.url(), tokens=tokens)
    for number, each in enumerate(stores):
        save(each, f"of {number}")
    exchange(stores[0], place)
    for round in range(3):
        drive.service.expire_tokens()
        failures: list[BaseException] = []

        def run(store: llvs.Store) -> None:
            try:
                exchange(store, place)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(each,)) for each in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and drive.service.accounts.refreshes == round + 1  # type: ignore[attr-defined]


#: Keeps tokens in a file of its own, with a lock for all processes. Retrieves once for each line that it reads.
PROCESS = """
import fcntl, sys
import llvs
url, path, folder = sys.argv[1:]

class Shared(llvs.exchange.Tokens):
    def read(self):
        with open(path) as file:
            return file.read()
    def keep(self, tokens):
        with open(path + ".new", "w") as file:
            file.write(tokens)
        import os
        os.replace(path + ".new", path)
    def lock(self):
        self.held = open(path + ".held", "w")
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held.close()
            return False
        return True
    def unlock(self):
        self.held.close()

with llvs.Store(folder) as store, llvs.Exchange(store, llvs.Remote(url, tokens=Shared())) as way:
    for line in sys.stdin:
        try:
            way.retrieve()
            print("ok", flush=True)
        except llvs.Error as error:
            print(repr(error), flush=True)
"""


def test_two_processes_renew_once(drive: Cloud, tmp_path: Path) -> None:
    """25: in each round the token is refreshed exactly once, and no process is ever signed out."""
    shared = tmp_path / "shared.json"
    shared.write_text(json.dumps(drive.sign_in()))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS, drive.url(), str(shared), str(tmp_path / f"p{number}")],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for number in range(2)
    ]  # fmt: skip
    try:
        for round in range(50):
            drive.service.expire_tokens()
            for process in running:
                assert process.stdin is not None
                process.stdin.write("\n")
                process.stdin.flush()
            assert [process.stdout.readline().strip() for process in running if process.stdout is not None] == ["ok", "ok"]
            assert drive.service.accounts.refreshes == round + 1  # type: ignore[attr-defined]
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_what_cannot_be_kept_is_not_used(drive: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    """A token that could not be stored would be lost with the process. The lock is released, and the call raises the exception of the
    host."""
    tokens = kept(drive)
    place = llvs.Remote(drive.url(), tokens=tokens)
    exchange(store, place)
    drive.service.expire_tokens()
    seen: list[str] = []
    inner = drive.service.answer

    def answer(request: Request) -> Any:
        seen.append(request.headers.get("authorization", ""))
        return inner(request)

    monkeypatch.setattr(drive.service, "answer", answer)
    tokens.fails = RuntimeError("the key store is locked")
    with llvs.Exchange(store, place) as way, pytest.raises(RuntimeError, match="key store"):
        way.retrieve()
    live = [token for token, until in drive.service.accounts.access.items() if until]  # type: ignore[attr-defined]
    assert seen and not [each for each in seen if any(token in each for token in live)]
    assert tokens.lock()
    tokens.unlock()


def test_cancelling_while_another_renews(drive: Cloud, store: llvs.Store) -> None:
    tokens = kept(drive)
    place = llvs.Remote(drive.url(), tokens=tokens)
    exchange(store, place)
    drive.service.expire_tokens()
    assert tokens.lock()
    token = llvs.CancelToken()
    threading.Timer(0.3, token.cancel).start()
    with llvs.Exchange(store, place) as way, pytest.raises(llvs.CancelledError):
        way.retrieve(cancel=token)
    tokens.unlock()
    assert drive.service.accounts.refreshes == 0  # type: ignore[attr-defined]
    exchange(store, place)


@pytest.mark.parametrize("text", [None, "", "[]", "{}", "no JSON", '{"access_token": 5}', "x" * 70_000])
def test_what_are_no_tokens(drive: Cloud, store: llvs.Store, text: Optional[str]) -> None:
    with llvs.Exchange(store, llvs.Remote(drive.url(), tokens=Kept(text))) as way:
        with pytest.raises(llvs.Error, match="callback for tokens"):
            way.retrieve()
    assert not drive.service.requests


def test_consent_taken_back(drive: Cloud, store: llvs.Store) -> None:
    tokens = kept(drive)
    drive.service.accounts.revoke()  # type: ignore[attr-defined]
    with llvs.Exchange(store, llvs.Remote(drive.url(), tokens=tokens)) as way:
        with pytest.raises(llvs.errors.PermissionDeniedError, match="Sign in again") as told:
            way.retrieve()
    assert tokens.members["refresh_token"] not in str(told.value) and "keep" not in tokens.calls


def test_arguments(drive: Cloud, store: llvs.Store) -> None:
    with pytest.raises(TypeError):
        llvs.Remote(drive.url(), tokens="a path")  # type: ignore[arg-type]
    tokens = kept(drive)
    for options in ({"token_file": "/none"}, {"token": "t"}, {"credentials": lambda place, again: None}):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="one of them"):
            llvs.Exchange(store, llvs.Remote(drive.url(), tokens=tokens, **options))
    with pytest.raises(llvs.errors.InvalidArgumentError, match="cloud drives"):
        llvs.Exchange(store, llvs.Remote("https+webdav://example.org/", tokens=tokens))
    assert tokens.calls == [""]


@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_a_person_at_cloudkit(store: llvs.Store, new_store: Any, tmp_path: Path, layout: str) -> None:
    """A web auth token is valid once: the newest is stored, and requests wait for one another."""
    container = Container(tmp_path)
    try:
        container.service.replacing = True
        tokens = Kept(container.tokens.read_text())
        place, second = llvs.Remote(container.url(layout=layout), tokens=tokens), new_store()
        exchange(store, place)
        exchange(second, place)
        assert ids(second) == ids(store)
        assert container.service.users == {tokens.members["web_auth_token"]} and tokens.members["note"] == [1, "x"]
        key = llvs.Remote(container.url("public", layout), tokens=Kept(container.key.read_text()))
        exchange(store, key)
    finally:
        container.close()
