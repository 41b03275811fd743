"""Ctrl-C at any moment: the command prints one sentence or none, never a traceback, and the store stays whole."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

import llvs
from llvs.tools import exchange_commands, failures
from deep import usually
from sampling import sample
from waiting import GUARD

from .conftest import SURROUNDINGS, Run, program

#: Starts the command as its script does, and reports by a byte when the command handles Ctrl-C: before that, Python does.
#: If requested, it then waits for Ctrl-C.
START = """
import os, signal, sys
from llvs.tools.__main__ import main

look_after = signal.signal

def begun(*given):
    signal.signal = look_after
    look_after(*given)
    os.write({}, b"x")
    while {}:
        signal.pause()

signal.signal = begun
sys.argv[0] = "llvs"
main()
"""
STOPPED = b"llvs: stopped; what was done whole is kept"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store that takes a while to look through."""
    path = tmp_path_factory.mktemp("interrupted") / "notes.llvs"
    with llvs.Store(path, durability="normal") as notes:
        version = notes.make_version(insert={f"note/{number}": b"milk " * 40 for number in range(4000)})
        side = notes.make_version(version, update={"side": b"1"})
        for number in range(600):
            version = notes.make_version(version, update={"n": b"%d" % number})
        notes.merge(version, side)
    yield path


def interrupted(arguments: list[str], seconds: float, cwd: Path) -> tuple[int, bytes]:
    """Returns the exit code and the message of a command that gets Ctrl-C after a time; with 0, before it continues."""
    read, write = os.pipe()
    running = subprocess.Popen(
        [sys.executable, "-c", START.format(write, not seconds), *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, **SURROUNDINGS, "XDG_STATE_HOME": str(cwd)}, pass_fds=[write], cwd=cwd,
    )
    os.close(write)
    assert os.read(read, 1) == b"x"
    os.close(read)
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=GUARD)[1]
    return running.returncode, said


#: A command that prints much, one that writes a file, one that reads everything, one that saves, and one that does most of this.
USUAL = ["log --graph", "export -o x.tar --force", "verify", "set a=1", "sync ./there"]


@pytest.mark.parametrize("arguments", usually([*USUAL, "log -n 1", "push ./there", "status", "--help"], *USUAL))
def test_at_any_time(store: Path, tmp_path: Path, arguments: str) -> None:
    codes = set()
    begun = time.monotonic()
    whole = program("-s", str(store), *arguments.split(), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    took = time.monotonic() - begun
    assert whole.returncode == 0
    # Interrupt the command at its start, and then early and late in turn.
    for step in sample([0, 8 if len(arguments) % 2 else 3], range(12)):
        code, said = interrupted(["-s", str(store), *arguments.split()], took * step / 11, tmp_path)
        codes.add(code)
        # Before the imports and after the work the system ends the process, like other programs. A shell reports 130 for that, too.
        assert code in (0, 130, -signal.SIGINT), (step, code, said)
        # A line end precedes the sentence, because a terminal shows ^C before it. An export may have reported its end before.
        lines = [line for line in said.splitlines() if line]
        assert b"Traceback" not in said and len(lines) - any(b" written to x.tar" in line for line in lines) <= 1, (step, code, said)
        assert code != 130 or said.strip().endswith(STOPPED), (step, code, said)
    assert codes & {130, -signal.SIGINT}, "the first comes while it runs"
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")]
    with llvs.Store(store, read_only=True) as looked:
        assert looked.verify().damages == ()


def test_what_came_before_is_reported(llvs_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while versions are added in batches. The reported number of added versions is correct."""
    with llvs.Store("large.llvs", durability="normal") as store:
        version = store.make_version(insert={"a": b""})
        for number in range(100):
            version = store.make_version(version, update={"a": bytes([number]) * 300_000})
    llvs_run("-s", "large.llvs", "push", "./there")
    heard, last = 0, 0

    @contextlib.contextmanager
    def shown() -> Iterator[Any]:
        def hear(_: llvs.control.Progress) -> None:
            nonlocal heard
            heard += 1
            if heard == last:
                raise KeyboardInterrupt

        yield hear

    monkeypatch.setattr(exchange_commands.progress, "shown", shown)
    llvs_run("init", "all.llvs")
    assert "there: 101 versions received, 0 sent" in llvs_run("-s", "all.llvs", "pull", "./there").out
    counts, whole = set(), heard
    for part in sample([1, 5, 9], range(1, 10)):
        heard, last = 0, max(1, whole * part // 10)
        llvs_run("init", f"{part}.llvs")
        done = llvs_run("-s", f"{part}.llvs", "pull", "./there", code=130)
        with llvs.Store(f"{part}.llvs", read_only=True) as looked:
            count = looked.statistics().versions
        assert "stopped" in done.err and done.out.strip() == (f"./there: {count} versions received before that" if count else "")
        counts.add(count)
    assert [count for count in counts if 0 < count < 101], counts


def test_another_exception_in_its_place(llvs_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a class is made: Python up to 3.11 raises a RuntimeError instead. A handler of the host's may hide it as well."""

    class Interrupting:
        def __set_name__(self, owner: type, name: str) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    def make_class(*_: Any) -> Any:
        try:
            return type("Made", (), {"attribute": Interrupting()})
        except KeyboardInterrupt:
            raise RuntimeError("something else") from None

    before = signal.signal(signal.SIGINT, failures.interrupt)
    try:
        llvs_run("init", "made.llvs")
        with monkeypatch.context() as changed:
            changed.setattr(llvs.Store, "statistics", make_class)
            assert llvs_run("-s", "made.llvs", "pull", "./there", code=130).err == STOPPED.decode() + "\n"
    finally:
        signal.signal(signal.SIGINT, before)
    assert llvs_run("-s", "made.llvs", "pull", "./there").out == "./there: 0 versions received, 0 sent\n"


def test_what_was_interrupted_goes_on(store: Path, tmp_path: Path) -> None:
    """Ctrl-C while versions are received. Complete versions are kept, and a second run receives the others."""
    assert program("-s", str(store), "push", str(tmp_path / "there"), stdout=subprocess.DEVNULL).returncode == 0
    assert program("init", str(tmp_path / "mine.llvs"), stdout=subprocess.DEVNULL).returncode == 0
    command = ["-s", str(tmp_path / "mine.llvs"), "pull", str(tmp_path / "there")]
    for step in sample([0, 2, 4], range(6)):
        code, said = interrupted(command, 0.05 * step, tmp_path)
        assert code in (0, 130, -signal.SIGINT), (step, code, said)
    assert program(*command, stdout=subprocess.DEVNULL).returncode == 0
    with llvs.Store(store, read_only=True) as theirs, llvs.Store(tmp_path / "mine.llvs", read_only=True) as ours:
        assert {version.id for version in ours.history()} == {version.id for version in theirs.history()}
        assert ours.verify().damages == ()
