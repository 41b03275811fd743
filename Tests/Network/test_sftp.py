"""Exchanges through OpenSSH's server."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import llvs
import llvs.testing
import pytest
import sftp_server
import strict_reader
from conftest import ids
from deep import usually
from patience import PATIENCE, eventually
from sftp_server import PASSPHRASE, SFTPServer


@pytest.fixture(scope="module")
def real() -> Iterator[SFTPServer]:
    yield from sftp_server.started()


@pytest.fixture
def name(request: Any) -> str:
    return f"p{abs(hash(request.node.name)):x}"


def place(server: SFTPServer, name: str, layout: str = "interchange", **options: Any) -> llvs.Remote:
    return llvs.Remote(server.url(name), layout=layout, **(server.secrets | options))


def exchange(store: llvs.Store, where: llvs.Remote) -> llvs.exchange.ExchangeResult:
    with llvs.Exchange(store, where) as way:
        received, sent = way.retrieve(), way.send()
    assert not received.problems and not sent.problems
    return llvs.exchange.ExchangeResult(received.retrieved, sent.sent, ())


#: Needs 10,000 requests.
MANY = "many files are listed and fetched"
CHECKS = [check for check in llvs.testing.transport_checks() if check != MANY]
#: Single files by what the server itself does; all else of the layout is in test_conformance.py, and of files in test_files.py.
USUAL = ["a new place is empty", "all version ids can be names", "unusual bytes are sent unchanged", "large files are complete",
         "two transports that send at once lose nothing", "cancelling leaves only complete files",
         "snapshot files are kept, replaced and deleted", "files that are sent again are replaced"]  # fmt: skip


@pytest.mark.parametrize("check", usually(CHECKS, *USUAL))
def test_transport(real: SFTPServer, check: str) -> None:
    """The suite that every transport passes."""
    plan = llvs.testing.FaultPlan()
    group = f"c{abs(hash(check)):x}-"
    report = llvs.testing.check_transport(lambda number: plan.transport(place(real, f"{group}{number}")), only=check)
    assert report


def test_two_stores(real: SFTPServer, name: str, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    assert len(exchange(store, place(real, name)).sent) == 3
    assert set(exchange(second, place(real, name)).retrieved) == ids(store)
    data = random.Random(1).randbytes(3_000_000)
    theirs = second.make_version(second.most_recent_head, insert={"theirs": data})
    exchange(second, place(real, name))
    exchange(store, place(real, name))
    assert store.at(theirs)["theirs"] == data and ids(store) == ids(second)
    folder = real.shared / name
    strict_reader.read(folder)
    assert len(list((folder / "versions").iterdir())) == 4 and not list((folder / "tmp").iterdir())


def test_below_the_users_own_folder(real: SFTPServer, store: llvs.Store, new_store: Any) -> None:
    own = Path(f"~{sftp_server.USER}").expanduser() / f".llvs-test-{os.getpid()}"
    where = llvs.Remote(f"sftp://127.0.0.1:{real.port}/~/{own.name}/a%20b", layout="packed", **real.secrets)
    try:
        exchange(store, where)
        second = new_store()
        exchange(second, where)
        assert ids(second) == ids(store) and (own / "a b" / "pack1" / "log").is_dir()
    finally:
        subprocess.run(["rm", "-rf", str(own)], check=True)


def test_a_file_that_is_there_is_not_replaced(real: SFTPServer, name: str, store: llvs.Store, new_store: Any) -> None:
    """Two devices publish one version at once. An equal file stays, and no temporary file remains."""
    second, third = new_store(), new_store()
    exchange(store, place(real, name))
    exchange(second, place(real, name))
    version = store.make_version(store.most_recent_head, insert={"n": b"1"})
    with llvs.Exchange(store, place(real, name)) as ours:
        ours.retrieve()
        exchange(store, place(real, name))
        kept = real.shared / name / "changes" / version.id
        before = kept.stat().st_ino
        assert ours.send().sent == (version.id,)
        assert kept.stat().st_ino == before
    exchange(third, place(real, name))
    assert ids(third) == ids(store) and not list((real.shared / name / "tmp").iterdir())


def test_what_is_empty_is_written_anew(real: SFTPServer, name: str, store: llvs.Store, new_store: Any) -> None:
    exchange(store, place(real, name))
    victim = sorted(ids(store))[0]
    (real.shared / name / "versions" / victim).write_bytes(b"")
    assert exchange(store, place(real, name)).sent == (victim,)
    second = new_store()
    exchange(second, place(real, name))
    assert ids(second) == ids(store)


def test_leftovers_are_removed_after_two_days(real: SFTPServer, name: str, store: llvs.Store) -> None:
    exchange(store, place(real, name))
    aside = real.shared / name / "tmp"
    for file, days in (("old", 3), ("older", 400), ("new", 0)):
        (aside / file).write_bytes(b"x")
        os.utime(aside / file, (time.time() - days * 86_400,) * 2)
    store.make_version(store.most_recent_head, insert={"n": b"1"})
    exchange(store, place(real, name))
    assert [file.name for file in aside.iterdir()] == ["new"]


def test_foreign_names(real: SFTPServer, name: str, store: llvs.Store, new_store: Any) -> None:
    exchange(store, place(real, name))
    for file in ("a b", "é", ".hidden", "A (conflicted copy)", "x  y -> z", "\u2028", "B" * 200):
        (real.shared / name / "versions" / file).write_bytes(b"x")
    (real.shared / name / "versions" / "link").symlink_to("nowhere")
    (real.shared / name / "versions" / "FOLDER").mkdir()
    second = new_store()
    with llvs.Exchange(second, place(real, name)) as way:
        way.retrieve()
    assert ids(second) == ids(store)


@pytest.mark.in_turn("layout", "foreign")
@pytest.mark.parametrize("foreign", ["new\nline", "\nfirst", "last\n", ".\nx", "-rw-r--r-- 1\n\n"])
@pytest.mark.parametrize("layout", ["interchange", "packed"])
def test_a_foreign_name_with_a_line_end(
    real: SFTPServer, name: str, store: llvs.Store, new_store: Any, foreign: str, layout: str
) -> None:
    """A foreign file disturbs no exchange: the versions beside it are received and sent."""
    second, where = new_store(), place(real, name, layout)
    exchange(store, where)
    for folder in [real.shared / name, *(real.shared / name).rglob("*")]:
        if folder.is_dir():
            (folder / foreign).write_bytes(b"x")
    with llvs.Exchange(second, where) as way:
        way.retrieve()
        assert ids(second) == ids(store)
        second.make_version(second.most_recent_head, insert={"n": b"1"})
        assert len(way.send().sent) == 1
    with llvs.Exchange(store, where) as way:
        way.retrieve()
    assert ids(second) == ids(store)


def test_keys(real: SFTPServer, name: str, store: llvs.Store, tmp_path: Path) -> None:
    """A key with a passphrase; one with a wrong passphrase, an unknown one, and a file that is no key."""
    exchange(store, place(real, name, key_file=real.folder / "locked", password=PASSPHRASE))
    asked: list[bool] = []

    def ask(address: str, again: bool) -> llvs.exchange.Credentials:
        asked.append(again)
        return llvs.exchange.Credentials(sftp_server.USER, PASSPHRASE if again else "old")

    with llvs.Exchange(store, place(real, name, user="", key_file=real.folder / "locked", credentials=ask)) as way:
        way.retrieve()
    assert asked == [False, True]
    refused: list[dict[str, Any]] = [
        {"key_file": real.folder / "locked", "password": "s3cret"}, {"key_file": real.folder / "stranger"}, {"key_file": tmp_path / "none"},
        {"user": "nobody-of-that-name"}, {"key_file": "", "password": "s3cret"},
    ]
    for options in refused:
        with llvs.Exchange(store, place(real, name, **options)) as way:
            with pytest.raises(llvs.errors.PermissionDeniedError, match="key_file") as raised:
                way.retrieve()
            assert "s3cret" not in str(raised.value)


def test_the_agents_keys(real: SFTPServer, name: str, store: llvs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    socket_path = real.folder / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.DEVNULL) as agent:
        try:
            eventually(socket_path.exists)
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_path))
            with llvs.Exchange(store, place(real, name, key_file="")) as way:
                with pytest.raises(llvs.errors.PermissionDeniedError):
                    way.retrieve()
            subprocess.run(["ssh-add", "-q", str(real.folder / "key")], check=True)
            exchange(store, place(real, name, key_file=""))
        finally:
            agent.terminate()


@pytest.mark.parametrize("key", ["other", "", None])
def test_a_host_that_is_not_known_is_refused(real: SFTPServer, name: str, store: llvs.Store, tmp_path: Path, key: Any) -> None:
    """Another key, no key, and no file at all. Nothing is sent, not even the user's name."""
    known = real.write_known_hosts("changed", key) if key else tmp_path / "known"
    if key == "":
        known.write_text("")
    before = real.log.count("Accepted")
    with llvs.Exchange(store, place(real, name, known_hosts=known)) as way:
        with pytest.raises(llvs.TransportError, match="host key") as raised:
            way.retrieve()
    assert str(known) in str(raised.value)
    assert real.log.count("Accepted") == before


def test_known_hosts_of_the_user(real: SFTPServer, name: str, store: llvs.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with llvs.Exchange(store, place(real, name, known_hosts="")) as way:
        with pytest.raises(llvs.TransportError, match="host key"):
            way.retrieve()
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_bytes(real.known_hosts.read_bytes())
    exchange(store, place(real, name, known_hosts=""))


def test_must_exist(real: SFTPServer, name: str, store: llvs.Store) -> None:
    with llvs.Exchange(store, place(real, name), create=False) as way:
        with pytest.raises(llvs.NotFoundError):
            way.retrieve()
        with pytest.raises(llvs.NotFoundError):
            way.send()
    assert not (real.shared / name).exists()


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user for a folder that may not be written")
def test_a_folder_that_may_not_be_written(real: SFTPServer, store: llvs.Store) -> None:
    where = llvs.Remote(f"sftp://127.0.0.1:{real.port}/proc/llvs/", **real.secrets)
    with llvs.Exchange(store, where) as way:
        with pytest.raises(llvs.Error, match="/proc/llvs"):
            way.send()


@pytest.mark.parametrize(
    "url, options, why",
    [
        ("sftp://ann@localhost/x", {"user": "ann"}, "user"),
        ("sftp://localhost/x?y=1", {"user": "ann"}, "question mark"),
        ("sftp://localhost/%00", {"user": "ann"}, "path"),
        ("sftp://localhost/a%0Arm%20b", {"user": "ann"}, "path"),
        ("sftp:///x", {"user": "ann"}, "host"),
        ("sftp://localhost/x", {}, "user"),
        ("sftp://localhost/x", {"user": "ann", "token": "t"}, "token"),
        ("https+webdav://localhost/x", {"key_file": "/k"}, "key_file"),
    ],
)
def test_what_is_refused_at_once(store: llvs.Store, url: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError, match=why):
        llvs.Exchange(store, llvs.Remote(url, **options))


class Relay:
    """Passes bytes on, until a test makes it silent or makes it disconnect."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.left: int = 1 << 60
        self.is_silent = False
        #: The bytes that were received, the number of cut connections, and the bytes after which each is cut.
        self.down = self.cuts = 0
        self._each = 1 << 60
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def cut_every(self, count: int) -> None:
        """Cuts each connection after it has received this number of bytes."""
        self.down = self.cuts = 0
        self._each = count

    def _pass(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        own = 0
        try:
            while piece := source.recv(1 << 14):
                while self.is_silent:
                    time.sleep(0.01)
                if up:
                    with self._lock:
                        self.left -= len(piece)
                        if self.left < 0:
                            break
                else:
                    own += len(piece)
                    self.down += len(piece)
                    if own > self._each:
                        self.cuts += 1
                        break
                target.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, target):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            source.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def relay(real: SFTPServer) -> Iterator[Relay]:
    relay = Relay(real.port)
    known = real.known_hosts.read_text()
    real.known_hosts.write_text(known + known.replace(f":{real.port} ", f":{relay.port} "))
    yield relay
    relay.close()
    real.known_hosts.write_text(known)


def through(relay: Relay, real: SFTPServer, name: str, **options: Any) -> llvs.Remote:
    return llvs.Remote(real.url(name).replace(f":{real.port}/", f":{relay.port}/"), **(real.secrets | options))


def test_a_line_that_breaks_anywhere_while_sending(real: SFTPServer, relay: Relay, name: str, new_store: Any) -> None:
    """Files that were sent completely stay, incomplete ones are not mistaken for whole, and the next exchange continues."""
    for layout in ("packed", "interchange"):
        store, where = new_store(), f"{name}{layout[0]}"
        store.make_version(insert={"large": random.Random(2).randbytes(300_000)})
        for allowed in (0, 3_000, 9_000, 60_000, 330_000):
            store.make_version(store.most_recent_head, insert={f"n{allowed}": random.Random(allowed).randbytes(50_000)})
            relay.left = allowed
            with llvs.Exchange(store, through(relay, real, where, layout=layout)) as way:
                with pytest.raises(llvs.TransportError):
                    way.retrieve()
                    way.send()
            reader = new_store()
            relay.left = 1 << 60
            with llvs.Exchange(reader, through(relay, real, where, layout=layout)) as way:
                # In a folder of single files a changes file may exist before its version file. The reader waits for that one.
                received, sent = way.retrieve(), way.send()
            waiting = {llvs.ErrorCode.MISSING_VERSION} if layout == "interchange" else set()
            assert {problem.code for problem in received.problems} <= waiting and not sent.problems
            assert ids(reader) <= ids(store)
        exchange(store, through(relay, real, where, layout=layout))
        last = new_store()
        exchange(last, through(relay, real, where, layout=layout))
        assert ids(last) == ids(store)


def test_a_large_file_goes_on_where_it_was_cut(real: SFTPServer, relay: Relay, name: str, new_store: Any) -> None:
    """However often the connection breaks, bytes of a pack that arrived are not requested again."""
    store, size = new_store(), 7 << 20
    for n in range(7):
        store.make_version(store.most_recent_head, insert={f"n{n}": random.Random(n).randbytes(size // 7)})
    exchange(store, through(relay, real, name, layout="packed"))
    relay.cut_every(1 << 20)
    reader = new_store()
    with llvs.Exchange(reader, through(relay, real, name, layout="packed")) as way:
        assert not way.retrieve().problems
    assert ids(reader) == ids(store) and relay.cuts >= 5
    assert size <= relay.down < size * 3 // 2


#: Sends through a connection that breaks, in a process of its own.
BREAKS = """
import sys
import llvs
with llvs.Store(sys.argv[1]) as store, llvs.Exchange(store, llvs.Remote(sys.argv[2], layout="packed", **eval(sys.argv[3]))) as way:
    try:
        way.retrieve(); way.send()
    except llvs.TransportError:
        sys.exit(7)
"""


def test_another_process_goes_on_with_a_large_value(real: SFTPServer, relay: Relay, name: str, tmp_path: Path, new_store: Any) -> None:
    """Parts that were sent stay, and are not sent again."""
    path, data = str(tmp_path / "large.llvs"), random.Random(5).randbytes(20 << 20)
    with llvs.Store(path) as store:
        version = store.make_version(insert={"large": data}).id
    relay.left = 12 << 20
    where = real.url(name).replace(f":{real.port}/", f":{relay.port}/")
    secrets = repr({key: str(value) for key, value in real.secrets.items()})
    run = subprocess.run([sys.executable, "-c", BREAKS, path, where, secrets], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 7, run.stderr
    blobs = real.shared / name / "pack1" / "blob"
    before = {entry.name for entry in blobs.iterdir()}
    assert len(before) == 1
    relay.left = limit = 1 << 60
    with llvs.Store(path) as store:
        exchange(store, through(relay, real, name, layout="packed"))
    after = {entry.name for entry in blobs.iterdir()}
    assert before < after and len(after) == 3 and limit - relay.left < 14 << 20
    reader = new_store()
    exchange(reader, place(real, name, "packed"))
    assert reader.at(version)["large"] == data


def test_a_server_that_says_nothing(real: SFTPServer, relay: Relay, name: str, store: llvs.Store) -> None:
    relay.is_silent = True
    with llvs.Exchange(store, through(relay, real, name, timeout=1)) as way:
        with pytest.raises(llvs.TransportError):
            way.retrieve()
    relay.is_silent = False


def test_cancelling(real: SFTPServer, relay: Relay, name: str, store: llvs.Store) -> None:
    relay.is_silent = True
    with llvs.Exchange(store, through(relay, real, name)) as way:
        token = llvs.CancelToken()
        threading.Timer(0.3, token.cancel).start()
        with pytest.raises(llvs.CancelledError):
            way.retrieve(cancel=token)
    relay.is_silent = False


def test_nothing_listens(store: llvs.Store, real: SFTPServer) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"sftp://127.0.0.1:{held.getsockname()[1]}/x/"
        with llvs.Exchange(store, llvs.Remote(url, **real.secrets)) as way:
            with pytest.raises(llvs.TransportError, match="Check the address"):
                way.retrieve()


def test_what_is_no_ssh_server(store: llvs.Store, real: SFTPServer, server: Any) -> None:
    url = f"sftp://127.0.0.1:{server.server_port}/x/"
    with llvs.Exchange(store, llvs.Remote(url, timeout=2, **real.secrets)) as way:
        with pytest.raises(llvs.TransportError):
            way.retrieve()


def test_snapshots(real: SFTPServer, name: str, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    with llvs.Exchange(store, place(real, name)) as way:
        way.put_snapshot()
        way.put_snapshot()
    with llvs.Exchange(second, place(real, name)) as way:
        assert way.restore_snapshot() is not None
    assert ids(second) == ids(store)


def test_the_command(real: SFTPServer, name: str, tmp_path: Path) -> None:
    """`llvs remote add`, push, and a clone on another device."""

    def run(*words: str) -> str:
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "LLVS_USER": ""}
        found = subprocess.run([sys.executable, "-m", "llvs.tools", *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
        return found.stdout

    access = ["--user", sftp_server.USER, "--key-file", str(real.folder / "key"), "--known-hosts", str(real.known_hosts)]
    for store in ("a.llvs", "b.llvs"):
        run("init", store)
        run("-s", store, "remote", "add", "ssh", real.url(name), *access)
    run("-s", "a.llvs", "set", "x=1")
    run("-s", "a.llvs", "push", "ssh")
    run("-s", "b.llvs", "pull", "ssh")
    assert run("-s", "b.llvs", "get", "x").strip() == "1"
