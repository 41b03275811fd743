"""Finding devices on a local network: two namespaces, each with its own Avahi daemon and bus."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

import pytest
from namespaces import LISTENER, Device, Network
from patience import PATIENCE, eventually

import llvs

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/>
<allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_type="signal"/></policy></busconfig>
"""
AVAHI = """[server]
host-name={host}
use-ipv6=no
allow-interfaces=wire
enable-dbus=yes
[publish]
publish-workstation=no
publish-hinfo=no
"""


class Host:
    """A namespace with a bus and a daemon, through which devices find each other."""

    def __init__(self, network: Network, namespace: str, folder: Path) -> None:
        self.network, self.namespace, self.folder = network, namespace, folder
        folder.mkdir()
        (folder / "bus.conf").write_text(BUS.format(path=folder / "bus"))
        (folder / "avahi.conf").write_text(AVAHI.format(host=folder.name))
        self.environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder}/bus"}
        self.bus = self._run("dbus-daemon", "--nofork", "--nopidfile", f"--config-file={folder}/bus.conf")
        eventually((folder / "bus").exists)
        self.daemon = self.start()

    def _run(self, *command: str) -> subprocess.Popen[str]:
        # Bus and daemon keep files in /run. Each host has its own.
        script = 'mount -t tmpfs tmpfs /run && mkdir -p /run/avahi-daemon /run/dbus && exec "$@"'
        with (self.folder / f"{command[0]}.log").open("a") as log:
            process = subprocess.Popen(
                ["ip", "netns", "exec", self.namespace, "unshare", "-m", "sh", "-c", script, "sh", *command],
                env=self.environment, text=True, stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip
        self.network.others.append(process)
        return process

    def start(self) -> subprocess.Popen[str]:
        return self._run("avahi-daemon", "--no-drop-root", "--no-chroot", "--no-rlimits", "-f", str(self.folder / "avahi.conf"))

    def device(self, path: Path, identity: int) -> Device:
        before = dict(os.environ)
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = self.environment["DBUS_SYSTEM_BUS_ADDRESS"]
        try:
            return self.network.device(self.namespace, path, identity)
        finally:
            os.environ.clear()
            os.environ.update(before)


@pytest.fixture
def hosts(network: Network, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    for command in ("avahi-daemon", "dbus-daemon", "unshare"):
        if shutil.which(command) is None:
            pytest.skip(f"needs {command}")
    yield Host(network, network.a, tmp_path / "one"), Host(network, network.b, tmp_path / "two")


#: A library for LD_PRELOAD that logs which process sends over a Unix socket, such as the one to the bus. With FOOLED, a child gets the
#: process id of its parent, so that no code notices the fork.
SENDS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static int me(void) { return (int)syscall(SYS_getpid); }
pid_t getpid(void) {
    static pid_t first;
    if (!first || !getenv("FOOLED")) first = me();
    return first;
}
/* As beside a sanitizer the library opens others without deep binding, by which they would pass by what is below. */
void __sanitizer_report_error_summary(void) {}
static void note(int fd) {
    struct sockaddr_storage place;
    socklen_t size = sizeof place;
    const char *path = getenv("SENDS");
    if (!path || getsockname(fd, (struct sockaddr *)&place, &size) != 0 || place.ss_family != AF_UNIX) return;
    char line[32];
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600), length = snprintf(line, sizeof line, "%d\\n", me());
    if (log >= 0 && write(log, line, (size_t)length) >= 0) close(log);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    note(fd);
    return ((ssize_t (*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg"))(fd, message, flags);
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    note(fd);
    return ((ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send"))(fd, data, size, flags);
}
"""


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def nearby(device: Device, name: str) -> None:
    """Starts `nearby` as soon as the daemon runs."""

    def begins() -> bool:
        device.begin("nearby", name)
        return "error" not in device.answer()

    eventually(begins)


def test_devices_find_each_other(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """One device announces a listener. The other finds it, connects, and learns when it disappears. Names in use get a number."""
    one, two = hosts[0].device(tmp_path / "a", 1), hosts[1].device(tmp_path / "b", 2)
    port = one.ask("listen", LISTENER)
    nearby(two, "phone")
    nearby(one, "laptop")
    eventually(lambda: bool(two.ask("found").get("laptop")))
    assert two.ask("found")["laptop"] == [[LISTENER, port]] and "laptop" not in one.ask("found")
    one.ask("save", 3, 100)
    two.ask("connect", *two.ask("found")["laptop"][0])
    assert two.ask("wait") and two.ask("ids") == one.ask("ids")

    third = hosts[1].device(tmp_path / "c", 3)
    third.ask("listen", "10.77.0.2")
    nearby(third, "laptop")
    eventually(lambda: third.ask("found")["me"] == "laptop #2" and bool(one.ask("found").get("laptop #2")))
    assert two.ask("found")["laptop"] == [[LISTENER, port]]
    one.ask("alone")
    eventually(lambda: two.ask("found")["laptop"] == [])


def test_a_daemon_that_is_started_anew(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    one, two = hosts[0].device(tmp_path / "a", 1), hosts[1].device(tmp_path / "b", 2)
    one.ask("listen", LISTENER)
    nearby(two, "phone")
    nearby(one, "laptop")
    eventually(lambda: bool(two.ask("found").get("laptop")))
    hosts[0].daemon.terminate()
    hosts[0].daemon.wait()
    eventually(lambda: two.ask("found")["laptop"] == [])
    hosts[0].start()
    eventually(lambda: bool(two.ask("found")["laptop"]))
    hosts[1].daemon.terminate()
    hosts[1].daemon.wait()
    eventually(lambda: two.ask("found")["laptop"] == [])
    hosts[1].start()
    eventually(lambda: bool(two.ask("found")["laptop"]))


class Forking:
    """A device that forks a child for each device that it finds. It records which process was called, and which sent to the daemon."""

    def __init__(self, hosts: tuple[Host, Host], folder: Path, changed: pytest.MonkeyPatch) -> None:
        self.folder = folder
        others = [hosts[1].device(folder / name, 2 + number) for number, name in enumerate("bcd")]
        for number, other in enumerate(others):
            other.ask("listen", "10.77.0.2")
            nearby(other, f"desk{number}")
        (folder / "sends.c").write_text(SENDS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "sends.so", folder / "sends.c", "-ldl"], check=True)
        changed.setenv("LD_PRELOAD", str(folder / "sends.so"))
        changed.setenv("SENDS", str(folder / "sends"))
        self.device = hosts[0].device(folder / "a", 1)
        changed.delenv("LD_PRELOAD")
        self.me = str(self.device.process.pid)

        def begins() -> bool:
            self.device.begin("forking", "laptop", str(folder / "calls"))
            return "error" not in self.device.answer()

        eventually(begins)

    def _words(self, name: str) -> list[str]:
        return (self.folder / name).read_text().split() if (self.folder / name).exists() else []

    @property
    def children(self) -> list[str]:
        return self._words("forked")

    @property
    def speakers(self) -> set[str]:
        return set(self._words("sends"))

    @property
    def calls(self) -> list[tuple[str, str]]:
        words = self._words("calls")
        return list(zip(words[::2], words[1::2]))


@needs_cc
def test_a_callback_that_forks(hosts: tuple[Host, Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child is not called, and sends nothing over the parent's connection to the daemon. The parent finds all devices, one after
    another."""
    met = Forking(hosts, tmp_path, monkeypatch)
    eventually(lambda: all(met.device.ask("found").get(f"desk{number}") for number in range(3)))
    met.device.ask("alone")
    assert {name for _, name in met.calls} >= {"desk0", "desk1", "desk2"}
    assert len(met.children) >= 3 and met.me not in met.children
    assert {process for process, _ in met.calls} == {met.me}, "children were called"
    # Until the children have ended.
    eventually(lambda: not any(os.path.exists(f"/proc/{child}") and "zombie" not in status(child) for child in met.children))
    assert met.speakers == {met.me}, "children spoke to the daemon"


@needs_cc
def test_a_child_that_takes_itself_for_its_parent(hosts: tuple[Host, Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a fork is not noticed, the check of the test above detects it: such a child speaks to the daemon."""
    monkeypatch.setenv("FOOLED", "1")
    met = Forking(hosts, tmp_path, monkeypatch)
    eventually(lambda: bool(met.speakers & set(met.children)))
    # The connection to the daemon is unusable now.
    end_with_children(int(met.me))
    met.device.process.kill()
    met.device.process.wait()


def end_with_children(process: int) -> None:
    """Kills a process and all that it has forked, which hold its pipes open. It is stopped first, so that no child is missed."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        eventually(lambda: status(str(process)).split()[1:2] in ([], ["T"], ["Z"]))
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                # The name of the program is in parentheses, and may contain others.
                if stat.read_text().rpartition(")")[2].split()[1] == str(process):
                    end_with_children(int(stat.parent.name))
        os.kill(process, signal.SIGKILL)


def status(process: str) -> str:
    try:
        return next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("State:"))
    except OSError:
        return "zombie"


def test_no_daemon(network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the problem, and a remedy."""
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    device = network.device(network.a, tmp_path / "a", 1)
    assert "give addresses" in device.fails("nearby", "x")


def test_arguments() -> None:
    def nothing(device: llvs.live.Device) -> None: ...

    for options in ({"name": "x" * 64}, {"announced": 0}, {"announced": 70_000}):
        with pytest.raises(llvs.errors.InvalidArgumentError):
            llvs.live.Nearby(nothing, **options)  # type: ignore[arg-type]


def test_no_avahi(network: Network) -> None:
    """Avahi is not installed."""
    library = ctypes.util.find_library("avahi-client")
    assert library is not None
    path = next(Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("/libc.so.6")).parent
    script = 'mount --bind /dev/null "$1" && exec "$2" -c "import llvs; llvs.live.Nearby()"'
    tried = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(path / library), sys.executable], capture_output=True, text=True, timeout=PATIENCE)
    assert "needs Avahi" in tried.stderr and "UnsupportedError" in tried.stderr


#: The beginning of both scripts below. The clock of the library moves by a tenth of a second at each turn of the daemon, and only then.
BEGINS = """
import ctypes, os, sys
import llvs
from moved_clock import MovedClock
from patience import eventually
clock = MovedClock()
daemon = ctypes.CDLL("libavahi-client.so.3")
clock.freeze()
clock.hurry()
daemon.pass_time_by(ctypes.cast(clock._clock.clock_advance, ctypes.c_void_p))
"""
FINDS = BEGINS + """
with llvs.Store(storage="memory") as desk, llvs.Store(storage="memory") as mine:
    desk.make_version(insert={"a": b"1"})
    pairing = llvs.live.make_pairing()
    with llvs.live.listen({pairing: desk}, ("::1", 0)) as theirs, llvs.live.Listener(("127.0.0.1", 0)) as own:
        os.environ["PORT"] = str(theirs.address[1])
        found = []
        with llvs.live.Nearby(found.append, own, name="phone"):
            eventually(lambda: found)
            daemon.pass_time_by(None)
            clock.close()
            print(found[0].name, *(daemon.turn_of_question(number) for number in range(4)))
            with llvs.live.connect(mine, found[0].addresses[0], pairing) as link:
                print(link.wait(300))
        print(open(os.environ["ANNOUNCED"]).read() == f"phone {own.address[1]}")
    with llvs.live.Listener(os.environ["ANNOUNCED"] + ".socket") as path:
        try:
            llvs.live.Nearby(None, path)
        except llvs.errors.InvalidArgumentError:
            print("no path")
"""


def beside_a_daemon(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script with avahi.c in place of Avahi's client library."""
    source = Path(__file__).resolve().parent / "avahi.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libavahi-client.so.3", source], check=True)
    given = {
        "LD_LIBRARY_PATH": str(folder), "ANNOUNCED": str(folder / "announced"), "PORT": "1", "PYTHONPATH": os.pathsep.join(sys.path),
        **environment}  # fmt: skip
    return subprocess.run([sys.executable, "-c", script], env={**os.environ, **given}, capture_output=True, text=True, timeout=600)


@needs_cc
@pytest.mark.parametrize("misses, pauses", [(0, []), (1, [20]), (2, [20, 40])])
def test_an_address_that_cannot_be_had_at_once(tmp_path: Path, misses: int, pauses: list[int]) -> None:
    """An address is requested again after 2 seconds and then after 4, whether the daemon refused the request or did not answer. The
    listener is announced, and `connect` accepts the addresses that are found."""
    done = beside_a_daemon(FINDS, tmp_path, MISSES=str(misses))
    lines = done.stdout.splitlines()
    assert lines[1:] == ["True", "True", "no path"], done.stderr
    name, *turns = lines[0].split()
    asked = [int(turn) for turn in turns if int(turn)]
    # An answer arrives in the turn after the request, and pauses are checked once a turn.
    between = [later - earlier for earlier, later in zip(asked, asked[1:])]
    assert name == "desk" and all(pause <= turns <= pause + 2 for pause, turns in zip(pauses, between, strict=True)), asked


MEETS = BEGINS + """
calls, wanted = [], int(os.environ["CALLS"])
try:
    with llvs.live.Nearby(calls.append, 4040, name="phone"):
        eventually(lambda: len(calls) >= wanted)
        # Further news would come in the next turns.
        before = daemon.turns_made()
        eventually(lambda: daemon.turns_made() > before + 30)
    print(len(calls), len({device.name for device in calls}), "desk" in {device.name for device in calls})
except llvs.Error as error:
    print(type(error).__name__, error)
"""


@needs_cc
@pytest.mark.parametrize(
    "bad, calls, met",
    [
        ("nothing", 1, "1 1 True"), ("no memory", 1, "OutOfMemoryError"),
        ("no client", 1, "UnsupportedError .* Check avahi-daemon's log"), ("no group", 1, "1 1 True"), ("no browser", 1, "1 1 True"),
        # Found, gone, and found again.
        ("a browser that fails", 3, "3 1 True"), ("a connection that fails", 1, "1 1 True"), ("names that are taken", 1, "1 1 True"),
        ("no other name", 1, "1 1 True"), ("a name that another has", 1, "1 1 True"), ("no names", 1, "1 1 True"),
        ("no kinds", 2, "2 2 True"), ("no address", 1, "1 1 True"), ("our own", 1, "1 1 True"), ("what was never there", 1, "1 1 True"),
        ("the same again", 1, "1 1 True"), ("a crowd", 1_000, "1000 1000 "),
    ],
)
def test_a_daemon_that_answers_badly(tmp_path: Path, bad: str, calls: int, met: str) -> None:
    """For every bad answer the device is found, or an error is reported, in time and after a bounded number of calls."""
    done = beside_a_daemon(MEETS, tmp_path, MISSES="0", BAD=bad, CALLS=str(calls))
    assert re.match(met, done.stdout), (done.returncode, done.stdout, done.stderr)
