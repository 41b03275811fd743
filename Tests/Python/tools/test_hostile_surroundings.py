"""Failures of the command's environment: each gives one sentence, and the exit code of its kind."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import llvs
from llvs.tools import escape
from sampling import sample

from .conftest import SURROUNDINGS, Run, program

EVIL = "evil/\x1b]0;title\x07\x1b[31m\n\u202eid\x9b"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A store with names and values that would do things to a terminal."""
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path, durability="normal", device="tests") as notes:
        for number in range(200):
            notes.save(update={f"note/{number}": b"milk " * 50})
        about = {"author": "ann\x1b[2J", "__llvs_description": "line\x1b[31m\nother \x07", "key\x1b[0m\n": "\x1b", "raw": b"\x1b\xff"}
        notes.save(update={EVIL: b"text \x1b[31m red", "json": b'{"\\u001b[31m": "\\u009b\\u202e"}', "uml": "für\u2028\u200f".encode()},
                   metadata=about)
        notes.save(update={"side": b"1"}, branch="dr\x1b[31maft")
    yield path


@pytest.mark.parametrize(
    "arguments",
    [
        "log", "log --graph", "log --oneline", "log --stat", "log --json", "show", "show --json", "ls", "ls -l", "ls --json", "status",
        "status --json", "branch", "branch --json", "diff", "diff --json", "diff --stat", "diff --names",
        "get json --json", "get uml --hex",
        "history json", "history json --json", "get nope\x1b", "show nope\x1b", "log --since \x1b",
    ],
)
def test_nothing_reaches_a_terminal_raw(store: Path, llvs_run: Run, arguments: str) -> None:
    done = llvs_run("-s", str(store), *arguments.split(" "), code=None)
    for text in (done.out, done.err):
        assert escape.lines(text) == text, re.findall(r".{0,20}[\x1b\x9b\x07].{0,20}", text)
    assert done.out or done.err


def test_values_on_a_terminal_are_not_raw(store: Path) -> None:
    for id in (EVIL, "json", "uml"):
        shown = in_terminal(store, "get", id, env={"NO_COLOR": "1"})
        assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u2028]", shown), shown
    # A pipe receives the unchanged bytes.
    assert program("-s", str(store), "get", EVIL, stdout=subprocess.PIPE).stdout == b"text \x1b[31m red"


def in_terminal(store: Path, *arguments: str, columns: int = 80, env: dict[str, str] = {}) -> str:
    """Returns the output of the command on a terminal with a number of columns."""
    import pty
    import struct
    import termios
    from fcntl import ioctl

    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    surroundings = {**os.environ, **SURROUNDINGS, "TERM": "xterm-256color", "PAGER": "cat", **env}
    surroundings.pop("COLUMNS", None)
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "-s", str(store), *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=surroundings
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert running.wait(300) in (0, 1)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("arguments", ["log --oneline -n 5", "log --graph --oneline -n 5", "ls -l", "branch", "status"])
def test_a_terminal_of_forty_columns(store: Path, arguments: str) -> None:
    shown = in_terminal(store, *arguments.split(), columns=40, env={"NO_COLOR": "1"})
    assert "\x1b" not in shown and shown.splitlines()
    if arguments == "status":
        # A path and an id are printed completely, however long they are.
        assert "notes.llvs" in shown
    else:
        assert [row for row in shown.splitlines() if len(row) > 40 and "evil" not in row] == []
    if arguments == "ls -l":
        assert [row.split()[-1] for row in shown.splitlines() if "note/" in row] == sorted(f"note/{number}" for number in range(200))


def test_colours_on_a_terminal(store: Path) -> None:
    coloured = in_terminal(store, "log", "--oneline", "-n", "3")
    assert "\x1b[33m" in coloured and not re.search("\x1b(?!\\[[0-9;]*m)", coloured)


def test_words_are_marked_where_a_line_stayed_by_half(store: Path) -> None:
    with llvs.Coordinator(store) as notes:
        notes.save(update={"list": b"black bread and butter\nmilk\n"})
        notes.save(update={"list": b"white bread and butter\nnothing more\n"})
    shown = in_terminal(store, "diff", "@~", "@", "list")
    removed, added = "\x1b[31m\x1b[9m", "\x1b[34m"
    assert f"  - {removed}black\x1b[0m bread and butter\n  - {removed}milk\x1b[0m\n" in shown, shown
    assert f"  + {added}white\x1b[0m bread and butter\n  + {added}nothing more\x1b[0m\n" in shown, shown


def test_a_locale_without_letters_beyond_ascii(store: Path) -> None:
    done = program("-s", str(store), "log", "--graph", "--oneline", "-n", "5", env={"LC_ALL": "C"}, stdout=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout.isascii() and b"*" in done.stdout
    assert in_terminal(store, "get", "uml", env={"LC_ALL": "C", "NO_COLOR": "1"}) == "f\\xfcr\\u2028\\u200f\n"


@pytest.mark.parametrize("lines", [0, 1, 5])
def test_output_that_is_closed_early(store: Path, lines: int) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "-s", str(store), "log", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout and running.stderr
    for _ in range(lines):
        running.stdout.readline()
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(300) == 0


@pytest.mark.parametrize("arguments", ["log", "ls --json", "get json", "status", "--help"])
def test_a_full_disk(store: Path, arguments: str) -> None:
    with open("/dev/full", "wb") as full:
        done = program("-s", str(store), *arguments.split(), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert re.fullmatch(rb"llvs: writing failed: No space left on device; make room and run it again\n", done.stderr), done.stderr


@pytest.mark.parametrize(("closed", "arguments", "code"), [
    (0, "get json", 0), (0, "set x @-", 0), (1, "log", 0), (1, "set x=1", 0), (1, "nope", 2), (2, "log", 0), (2, "set x=1", 0),
    (2, "nope", 2),
])
def test_standard_streams_that_are_closed(store: Path, closed: int, arguments: str, code: int) -> None:
    done = program("-s", str(store), *arguments.split(), preexec_fn=lambda: os.close(closed), capture_output=True)
    assert done.returncode == code and b"Traceback" not in done.stderr, done.stderr
    with llvs.Store(store, create=False) as opened:
        report = opened.verify()
        assert not report.damages and not report.unfinished


def test_without_an_output_the_exit_code_still_reports_it(store: Path) -> None:
    with open("/dev/full", "wb") as full:
        assert program("-s", str(store), "nope", stderr=full).returncode == 2


def test_a_file_that_cannot_be_written_whole(store: Path, tmp_path: Path) -> None:
    with llvs.Coordinator(store) as notes:
        notes.save(update={"big": bytes(1 << 20)})

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    place = tmp_path / "out"
    place.mkdir()
    done = program("-s", str(store), "get", "big", "-o", str(place / "big.bin"), preexec_fn=limit, stderr=subprocess.PIPE)
    assert done.returncode == 3 and b"File too large; make room" in done.stderr, done.stderr
    assert list(place.iterdir()) == []
    assert b"No such file" in program("-s", str(store), "get", "big", "-o", "/nope/x", stderr=subprocess.PIPE).stderr


def test_interrupted(store: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "-s", str(store), "set", "waits", f"@{fifo}"], stderr=subprocess.PIPE
    )
    # Opens once the command has opened the other end. The command then waits for input that never arrives.
    with fifo.open("wb"):
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=300)
    assert running.returncode == 130 and said.strip() == b"llvs: stopped; what was done whole is kept"
    with llvs.Coordinator(store, read_only=True) as notes:
        assert "waits" not in notes


@pytest.mark.parametrize("kind", ["absent", "empty", "file", "newer", "sqlite of others"])
def test_what_is_no_store(llvs_run: Run, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "empty":
        path.mkdir()
    elif kind == "file":
        path.write_text("hello")
    elif kind == "newer":
        path.mkdir()
        (path / "llvs-store").write_text("LLVS store\nformat 9\n")
    elif kind == "sqlite of others":
        import sqlite3

        with sqlite3.connect(path) as database:
            database.execute("create table t(a)")
    for command in ("log", "status", "ls", "get x", "set x=1", "rm x", "diff", "show", "branch"):
        done = llvs_run("-s", str(path), *command.split(), code=3)
        assert done.out == "" and done.err.startswith("llvs: ") and done.err.count("\n") == 1


def test_a_damaged_store(store: Path, llvs_run: Run) -> None:
    for segment in (store / "segments").iterdir():
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data) // 2 + 4000):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))
    for command in ("log --oneline", "status", "ls", "status --json"):
        done = llvs_run("-s", str(store), *command.split(), code=None)
        assert done.code in (0, 3) and (done.out or done.err.count("\n") == 1), done


def test_damage_is_reported_to_each_reader(store: Path) -> None:
    assert "damaged" not in in_terminal(store, "log", "-n", "1")
    for segment in (store / "segments").iterdir():
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data) // 2 + 4000):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))
    for command in (["log", "-n", "1"], ["ls"]):
        shown = in_terminal(store, *command)
        assert shown.count("llvs: the store is damaged (") == 1 and '"llvs verify" tells where' in shown, shown


def test_a_store_without_versions(llvs_run: Run) -> None:
    llvs_run("init", "new.llvs")
    assert "no version yet" in llvs_run("log").err and "none yet" in llvs_run("status").out
    # Commands that need "@" name a remedy; commands that list have nothing to list.
    for command, code in {
        "ls": 0, "log --json": 0, "ls --json": 0, "branch": 0, "conflicts": 0, "verify": 0, "compact": 0, "get x": 1, "history x": 1,
        "undo": 1, "redo": 1, "show": 2, "diff": 2, "explain": 2, "blame x": 2, "export": 2, "revert @": 2, "merge abcd": 2,
        "snapshot write copy": 2,
    }.items():
        done = llvs_run(*command.split(), code=code)
        assert done.err.count("\n") <= 1 and (code == 0 or done.err.startswith("llvs: ")), (command, done)
    assert llvs_run("get", "x", code=1).err == 'llvs: there is no value "x" in an empty store\n'


def test_a_store_that_another_program_has(store: Path, llvs_run: Run) -> None:
    with llvs.Coordinator(store) as notes:
        llvs_run("-s", str(store), "log", "-n", "1")
        assert llvs_run("-s", str(store), "show", "@", "--json").json["id"] == notes.current_version.id
        assert "--coordinator NAME" in llvs_run("-s", str(store), "set", "x=1", code=3).err
        llvs_run("-s", str(store), "--coordinator", "mine", "set", "x=1")


#: Commands that only read, and commands that write.
LOOKING = (
    "log -n 1", "log --graph --oneline", "status", "show", "ls -l", "get json", "history json", "blame json", "diff", "branch", "conflicts",
    "explain", "verify", "export", "merge 'branch:dr\x1b[31maft' --dry-run", "remote list",
)
WRITING = ("set x=1", "rm json", "undo", "revert @", "remote add there /tmp/there")


def without_capabilities() -> None:
    """Drops root's capabilities to ignore permissions (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH), for the programs that are run next."""
    import ctypes

    if os.geteuid() == 0:
        for capability in (1, 2):
            assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0


@pytest.mark.parametrize("kind", ["of others", "read-only disk"])
def test_a_store_that_may_only_be_read(store: Path, tmp_path: Path, kind: str) -> None:
    def run(command: str) -> "subprocess.CompletedProcess[bytes]":
        arguments = ["-s", str(store), *shlex.split(command)]
        streams: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        streams["env"] = {"XDG_STATE_HOME": str(tmp_path / "state")}
        if kind == "of others":
            return program(*arguments, preexec_fn=without_capabilities, **streams)
        mounting = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
        around = ["unshare", "-U", "-r", "-m", "sh", "-c", mounting, str(store)]
        return program(*arguments, around=around, **streams)

    if kind == "of others":
        for folder, _, names in os.walk(store):
            for name in names:
                os.chmod(os.path.join(folder, name), 0o400)
            os.chmod(folder, 0o500)
    elif subprocess.run(["unshare", "-U", "-r", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("this system lets nobody make a name space of mounts")
    # Errors of a disk are reported like those of another user's folders: a few commands show it.
    every = sample(2 if kind == "of others" else 8, 1)
    try:
        for command in LOOKING[::every]:
            done = run(command)
            assert done.returncode in (0, 1) and b"Traceback" not in done.stderr, (command, done)
            assert done.stdout or done.returncode == 1 or b"no remotes" in done.stderr, (command, done)
        for command in WRITING[::every]:
            done = run(command)
            assert done.returncode == 3 and done.stdout == b"" and done.stderr.count(b"\n") == 1, (command, done)
            assert re.search(rb"ermission|read-only|Read-only|not let", done.stderr), (command, done.stderr)
    finally:
        for folder, _, _ in os.walk(store):
            os.chmod(folder, 0o700)


def test_the_start_imports_little(store: Path) -> None:
    """`llvs log -n 1` begins to print soon because it imports little: what is imported is counted, since times are noisy."""
    done = program("-s", str(store), "log", "-n", "1", env={"PYTHONPROFILEIMPORTTIME": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    names = [line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if line.startswith("import time:")]
    bare = subprocess.run([sys.executable, "-X", "importtime", "-c", "pass"], stderr=subprocess.PIPE, check=True).stderr.decode()
    ours = set(names) - {line.rpartition("|")[2].strip() for line in bare.splitlines()}
    assert not {name.split(".")[0] for name in ours} & {"rich", "asyncio", "sqlite3", "http", "email", "pygments", "ssl", "markdown_it"}
    assert len(ours) < 170, sorted(ours)
    assert len([name for name in ours if name.startswith("llvs.tools")]) <= 12
    assert json.loads(program("-s", str(store), "log", "-n", "1", "--json", stdout=subprocess.PIPE).stdout)["id"]
