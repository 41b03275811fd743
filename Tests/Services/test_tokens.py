"""Token files: one process refreshes them, once, and they are on disk before they are used. Numbers are those of the pitfalls of
docs/cloud-drives.md."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Iterator

import llvs
import pytest
from moved_clock import MovedClock
from patience import PATIENCE
from clouds import Cloud, exchange, ids, save
from deep import IS_DEEP
from drive import GoogleDrive
from service import Answer, Request


@pytest.fixture(params=["keeps", "changes", "once"])
def drive(request: Any, tmp_path: Path) -> Iterator[Cloud]:
    """A drive whose refresh tokens stay, change, or are valid once."""
    service = GoogleDrive()
    service.accounts.refreshing = request.param
    cloud = Cloud(service, "gdrive", tmp_path)
    yield cloud
    cloud.close()


def only(refreshing: str) -> Any:
    return pytest.mark.parametrize("drive", [refreshing], indirect=True)


def kept(drive: Cloud) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(drive.tokens.read_text())
    return found


def test_a_token_that_expired(drive: Cloud, store: llvs.Store) -> None:
    """The token is renewed. The new one is in the file beside all other contents, which only the owner can read."""
    drive.sign_in(expiry="1970-01-01T00:00:00Z", account={"é\"": [1, -2.5e3, None, True, "x\n"]})
    before = kept(drive)
    exchange(store, drive.place())
    assert drive.service.accounts.refreshes == 0, "no clock is read: a token is good until it is refused"
    drive.service.expire_tokens()
    drive.tokens.chmod(0o644)
    exchange(store, drive.place())
    after = kept(drive)
    assert drive.service.accounts.refreshes == 1 and after["access_token"] != before["access_token"]
    assert (after["refresh_token"] == before["refresh_token"]) == (drive.service.accounts.refreshing == "keeps")
    assert {name: value for name, value in after.items() if name not in ("access_token", "refresh_token")} == {
        name: value for name, value in before.items() if name not in ("access_token", "refresh_token")
    }
    assert stat.S_IMODE(drive.tokens.stat().st_mode) == 0o600
    assert sorted(path.name for path in drive.tokens.parent.glob("gdrive*")) == ["gdrive.json", "gdrive.json.lock"]


def test_no_access_token_yet(drive: Cloud, store: llvs.Store) -> None:
    drive.sign_in(access_token=None)
    assert len(exchange(store, drive.place()).sent) == 3
    assert drive.service.accounts.refreshes == 1


def test_many_threads_renew_once(drive: Cloud, new_store: Any) -> None:
    """25, within a process."""
    stores = [new_store() for _ in range(6)]
    for number, each in enumerate(stores):
        save(each, f"of {number}")
    exchange(stores[0], drive.place())
    for round in range(3):
        drive.service.expire_tokens()
        failures: list[BaseException] = []

        def run(store: llvs.Store) -> None:
            try:
                exchange(store, drive.place())
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(each,)) for each in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and drive.service.accounts.refreshes == round + 1


#: Retrieves once for each line that it reads, and prints the result.
PROCESS = """
import sys
import llvs
url, tokens, path = sys.argv[1:]
with llvs.Store(path) as store, llvs.Exchange(store, llvs.Remote(url, token_file=tokens)) as way:
    for line in sys.stdin:
        try:
            way.retrieve()
            print("ok", flush=True)
        except llvs.Error as error:
            print(repr(error), flush=True)
"""


def processes(drive: Cloud, tmp_path: Path, count: int) -> list[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, drive.url(), str(drive.tokens), str(tmp_path / f"process{number}")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        for number in range(count)
    ]


def ask(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("rounds", [int(os.environ.get("LLVS_TOKEN_ROUNDS", "100" if IS_DEEP else "25"))])
def test_two_processes_renew_once(drive: Cloud, tmp_path: Path, rounds: int) -> None:
    """25: in each round the token is refreshed exactly once, and no process is ever signed out."""
    running = processes(drive, tmp_path, 2)
    try:
        for round in range(rounds):
            drive.service.expire_tokens()
            for process in running:
                ask(process)
            assert [answer(process) for process in running] == ["ok", "ok"]
            assert drive.service.accounts.refreshes == round + 1
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_a_process_that_dies_with_the_lock_leaves_it(drive: Cloud, tmp_path: Path, store: llvs.Store) -> None:
    held = threading.Event()
    drive.service.expire_tokens()
    inner = drive.service.accounts.token

    def token(form: dict[str, str]) -> Answer:
        # The process is killed during its request, and the answer is lost.
        if not held.is_set():
            held.set()
            running[0].kill()
            running[0].wait()
            return Answer.of({"error": "temporarily_unavailable"}, 503)
        return inner(form)

    drive.service.accounts.token = token
    running = processes(drive, tmp_path, 1)
    ask(running[0])
    assert held.wait(PATIENCE)
    running[0].communicate()
    assert len(exchange(store, drive.place()).sent) == 3


@only("once")
def test_rotated_elsewhere(drive: Cloud, store: llvs.Store) -> None:
    """25: a process reads the file again, and uses the tokens that another one wrote."""
    with llvs.Exchange(store, drive.place()) as way:
        way.retrieve()
        # A program without locks renews both tokens, and writes the file.
        drive.service.expire_tokens()
        drive.sign_in()
        way.retrieve()
        assert drive.service.accounts.refreshes == 0
        # The other program renews after the library has read the file: the library's refresh token is invalid, and the file is read again.
        drive.service.expire_tokens()
        inner, told = drive.service.accounts.token, []

        def token(form: dict[str, str]) -> Answer:
            if not told:
                told.append(form)
                drive.sign_in()
                return Answer.of({"error": "invalid_grant"}, 400)
            return inner(form)

        drive.service.accounts.token = token
        way.retrieve()
        assert told


def test_consent_taken_back(drive: Cloud, store: llvs.Store) -> None:
    """The error names a remedy, and the file stays unchanged."""
    exchange(store, drive.place())
    drive.service.accounts.revoke()
    before = drive.tokens.read_bytes()
    with llvs.Exchange(store, drive.place()) as way:
        for _ in range(2):
            with pytest.raises(llvs.errors.PermissionDeniedError, match="Sign in again"):
                way.retrieve()
    assert drive.tokens.read_bytes() == before
    drive.sign_in()
    exchange(store, drive.place())


def test_without_a_refresh_token(drive: Cloud, store: llvs.Store) -> None:
    drive.sign_in(refresh_token=None)
    exchange(store, drive.place())
    drive.service.expire_tokens()
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.errors.PermissionDeniedError, match="no refresh_token"):
        way.retrieve()


@only("once")
def test_a_token_that_cannot_be_kept_is_not_used(drive: Cloud, store: llvs.Store, monkeypatch: Any) -> None:
    """The token would be lost with the process, and the old one is invalid."""
    exchange(store, drive.place())
    drive.service.expire_tokens()
    seen: list[str] = []
    inner = drive.service.answer

    def answer(request: Request) -> Answer:
        seen.append(request.headers.get("authorization", ""))
        found = inner(request)
        if request.path == "/token":
            # The disk is full at that moment: in the test a folder has the name of the file.
            drive.tokens.unlink()
            drive.tokens.mkdir()
            (drive.tokens / "x").write_text("")
        return found

    monkeypatch.setattr(drive.service, "answer", answer)
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.Error, match="Storing the new token"):
        way.retrieve()
    new = [token for token in drive.service.accounts.access if drive.service.accounts.access[token]]
    assert seen and not [each for each in seen if any(token in each for token in new)]
    assert [path.name for path in drive.tokens.parent.glob("*.part")] == []


@pytest.mark.parametrize("kind", ["lost answer", "server error", "cut answer"])
@only("keeps")
def test_renewing_is_asked_for_again(drive: Cloud, store: llvs.Store, kind: str) -> None:
    exchange(store, drive.place())
    drive.service.expire_tokens()
    drive.service.inject(kind, 2, lambda request: request.path == "/token")
    exchange(store, drive.place())


@only("keeps")
def test_another_address(drive: Cloud, store: llvs.Store) -> None:
    """`token_uri` of the file is used. It must be encrypted, or on this machine."""
    other = Cloud(GoogleDrive(), "gdrive", drive.tokens.parent / "..")
    try:
        drive.sign_in(access_token="x", token_uri=f"{other.server.url}/token")
        with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.errors.PermissionDeniedError):
            way.retrieve()
        assert other.service.requests == ["POST /token"]
    finally:
        other.close()
    for address in ("http://example.org/token", "ftp://127.0.0.1/", "nothing"):
        drive.sign_in(token_uri=address)
        with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.errors.InvalidArgumentError, match="token_uri"):
            way.retrieve()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"access_token": 5}', '{"access_token": "a\\nb"}', '{"access_token": "\\ud800"}', "x" * 70_000]
)
@only("keeps")
def test_files_that_hold_none(drive: Cloud, store: llvs.Store, text: str) -> None:
    drive.tokens.write_text(text)
    with llvs.Exchange(store, drive.place()) as way, pytest.raises(llvs.Error, match="tokens|gdrive.json"):
        way.retrieve()
    assert not drive.service.requests


@only("keeps")
def test_a_file_that_is_not_there(drive: Cloud, store: llvs.Store) -> None:
    drive.tokens.unlink()
    with llvs.Exchange(store, drive.place()) as way:
        with pytest.raises(llvs.NotFoundError, match="Sign in"):
            way.retrieve()
        drive.sign_in()
        way.retrieve()


@pytest.mark.parametrize("kind", ["token", "callback"])
@only("keeps")
def test_tokens_that_the_host_gives(drive: Cloud, store: llvs.Store, kind: str) -> None:
    access = kept(drive)["access_token"]
    if kind == "token":
        with llvs.Exchange(store, llvs.Remote(drive.url(), token=access)) as way:
            assert len(way.send().sent) == 3
            drive.service.expire_tokens()
            with pytest.raises(llvs.errors.PermissionDeniedError, match="refuses the token"):
                way.retrieve()
        return
    asked: list[bool] = []

    def ask(address: str, again: bool) -> llvs.exchange.Credentials:
        asked.append(again)
        return llvs.exchange.Credentials(token=drive.service.accounts.sign_in()[0] if again else access)

    with llvs.Exchange(store, llvs.Remote(drive.url(), credentials=ask)) as way:
        assert len(way.send().sent) == 3
        drive.service.expire_tokens()
        way.retrieve()
    assert asked == [False, True]


def test_nothing_reveals_a_secret(drive: Cloud, store: llvs.Store) -> None:
    told: list[str] = []
    secrets = set(kept(drive).values()) - {"tests"}
    observer = llvs.log.observe_log(lambda level, message: told.append(message), llvs.log.LogLevel.DEBUG)
    try:
        place = drive.place()
        told.append(repr(place))
        with llvs.Exchange(store, place) as way:
            way.send()
            drive.service.expire_tokens()
            way.retrieve()
            secrets |= set(kept(drive).values()) - {"tests"}
            for error in ("invalid_grant", "invalid_client", "s3cret-client"):
                inner = drive.service.accounts.token
                drive.service.expire_tokens()
                drive.service.accounts.token = lambda form, error=error: Answer.of({"error": error, "error_description": str(form)}, 400)
                with pytest.raises(llvs.Error) as raised:
                    way.retrieve()
                told.append(str(raised.value))
                drive.service.accounts.token = inner
            told.append(str(way.restoration_state) + repr(way))
    finally:
        observer.close()
    assert len(told) >= 5 and len(secrets) >= 3
    assert not [message for message in told if any(secret in message for secret in secrets)]


def test_cancelling_while_another_holds_the_lock(drive: Cloud, store: llvs.Store) -> None:
    import fcntl

    exchange(store, drive.place())
    drive.service.expire_tokens()
    with open(f"{drive.tokens}.lock", "w") as lock, llvs.Exchange(store, drive.place()) as way:
        fcntl.flock(lock, fcntl.LOCK_EX)
        token = llvs.CancelToken()
        threading.Timer(0.5, token.cancel).start()
        with pytest.raises(llvs.CancelledError):
            way.retrieve(cancel=token)
        assert drive.service.accounts.refreshes == 0
    exchange(store, drive.place())


@only("keeps")
def test_requests_are_paced(drive: Cloud, store: llvs.Store, clock: MovedClock) -> None:
    """Pacing is by account, for all of its places and exchanges. With a rate of 5, 5 requests are sent immediately, and the others as the
    bucket fills."""
    clock.freeze()
    with llvs.Exchange(store, drive.place(rate="5")) as way, llvs.Exchange(store, drive.place("others", rate="5")) as other:
        begun = clock.now()
        for _ in range(3):
            way.retrieve()
            other.retrieve()
        asked = len(drive.service.requests)
        assert asked >= 6 and asked <= 5 + 5 * (clock.now() - begun) + 1
