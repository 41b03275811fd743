"""Output and questions on a terminal: progress, and a password."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Iterator

import pytest

import llvs
from llvs.tools import demo_pictures

from .conftest import SURROUNDINGS, program


class Terminal:
    """Runs the command with a terminal as its standard input and error. Its output is a pipe unless `is_output` is set."""

    def __init__(self, *arguments: str, is_output: bool = False, **surroundings: str) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = b""
        self.running = subprocess.Popen(
            [sys.executable, "-m", "llvs.tools", *arguments], stdin=theirs, stdout=theirs if is_output else subprocess.PIPE, stderr=theirs,
            env={**os.environ, **SURROUNDINGS, "TERM": "xterm", "COLUMNS": "100", **surroundings},
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)

    def until(self, text: bytes) -> None:
        """Waits for a text."""
        while text not in self.shown:
            assert select.select([self._ours], [], [], 300)[0], self.shown
            self.shown += os.read(self._ours, 65536)

    def type(self, text: bytes) -> None:
        """Presses keys."""
        os.write(self._ours, text)

    def end(self) -> tuple[int, bytes]:
        """The exit code and the output, once it has ended."""
        try:
            while select.select([self._ours], [], [], 300)[0] and (data := os.read(self._ours, 65536)):
                self.shown += data
        except OSError:
            pass  # the error with which Linux reports that no program has the terminal any more
        out = b""
        if self.running.stdout is not None:
            with self.running.stdout as output:
                out = output.read()
        os.close(self._ours)
        return self.running.wait(300), out


def test_progress_is_shown_on_a_terminal_and_goes(tmp_path: Path) -> None:
    store = tmp_path / "notes.llvs"
    with llvs.Store(store) as opened:
        version = opened.make_version(insert={f"note/{number}": b"x" * 100 for number in range(3000)})
        for number in range(200):
            version = opened.make_version(version, update={"n": str(number).encode()})
    terminal = Terminal("-s", str(store), "verify")
    code, out = terminal.end()
    assert code == 0 and b"all is whole" in out and b"\x1b" not in out
    assert b"verifying" in terminal.shown and terminal.shown.endswith(b"\x1b[2K"), "and taken away at the end"
    assert b"all is whole" not in terminal.shown
    # One stage counts versions and then bytes. The bytes are not mistaken for versions, and the earlier count does not affect their rate.
    last = terminal.shown.rsplit(b"verifying", 1)[1]
    assert b" 0/" not in last and b"-:--:--" not in last
    # No total is invented: rich assumes 100 if none is given.
    assert not re.search(rb"/100\b", terminal.shown), terminal.shown
    # Without a terminal there is no display of progress.
    done = program("-s", str(store), "verify", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stderr == b""


PNG = demo_pictures.hills(1)
GIF = b"GIF89a\x01\x00\x01\x00" + b"\x1b[31m" * 20


@pytest.mark.parametrize(("surroundings", "id", "begin"), [
    ({"TERM": "xterm-kitty"}, "png", b"\x1b_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"),
    ({"TERM_PROGRAM": "WezTerm"}, "png", b"\x1b]1337;File=inline=1;size=%d;preserveAspectRatio=1:iVBORw0KGgo" % len(PNG)),
    ({"TERM_PROGRAM": "iTerm.app"}, "gif", b"\x1b]1337;File=inline=1;size=%d;preserveAspectRatio=1:R0lGODlh" % len(GIF)),
    ({"TERM": "xterm-kitty"}, "gif", b"(GIF image"),
    ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, "png", b"(PNG image"),
    ({"TERM": "xterm"}, "png", b"(PNG image"),
])
def test_pictures_where_the_terminal_can(tmp_path: Path, surroundings: dict[str, str], id: str, begin: bytes) -> None:
    with llvs.Coordinator(tmp_path / "notes.llvs") as notes:
        notes.save(insert={"png": PNG, "gif": GIF})
    plain = {"KITTY_WINDOW_ID": "", "TERM_PROGRAM": "", "TMUX": "", "STY": "", "PAGER": "cat", **surroundings}
    terminal = Terminal("-s", str(tmp_path / "notes.llvs"), "get", id, is_output=True, **plain)
    code, _ = terminal.end()
    shown = terminal.shown
    assert code == 0 and shown.startswith(begin) and b"image, " in shown and b"\x1b[31m" not in shown
    if begin.startswith(b"\x1b"):
        # The whole file, and nothing else.
        if begin[1:2] == b"_":
            sent = b"".join(part.partition(b";")[2] for part in shown.split(b"\x1b\\") if part.startswith(b"\x1b_G"))
        else:
            sent = shown.partition(b":")[2].partition(b"\x07")[0]
        assert base64.b64decode(sent) == (PNG if id == "png" else GIF)
    # Into a pipe: the bytes.
    done = program("-s", str(tmp_path / "notes.llvs"), "get", id, stdout=subprocess.PIPE, env=surroundings)
    assert done.stdout == (PNG if id == "png" else GIF)


@pytest.fixture
def server() -> Iterator[tuple[str, list[str], threading.Event]]:
    """A server that asks for a password, and records it; the user that it knows has no permission."""
    given: list[str] = []
    was_given = threading.Event()

    class Asking(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            header = self.headers.get("authorization")
            if header is not None:
                given.append(base64.b64decode(header.removeprefix("Basic ")).decode())
            status = 403 if given and given[-1] == "ada:s3cret word" else 401
            if status == 403:
                was_given.set()
            self.send_response(status)
            if status == 401:
                self.send_header("www-authenticate", 'Basic realm="x"')
            self.send_header("content-length", "0")
            self.end_headers()

        do_GET = do_PUT = do_PROPFIND = do_MKCOL = do_HEAD = do_OPTIONS = do_DELETE = do_POST = do_MOVE = answer

        def log_message(self, *_: object) -> None:
            pass

    running = HTTPServer(("127.0.0.1", 0), Asking)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http+webdav://127.0.0.1:{running.server_port}/x/", given, was_given
    finally:
        running.shutdown()
        running.server_close()


def test_a_password_is_asked_for_and_not_shown(tmp_path: Path, server: tuple[str, list[str], threading.Event]) -> None:
    place, given, was_given = server
    assert program("init", str(tmp_path / "a.llvs"), stdout=subprocess.DEVNULL).returncode == 0
    terminal = Terminal("-s", str(tmp_path / "a.llvs"), "pull", place, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    terminal.until(b"User at ")
    terminal.type(b"ada\r")
    terminal.until(b"Password at ")
    terminal.type(b"s3cret word\r")
    assert was_given.wait(300)
    terminal.type(b"\x03")
    terminal.end()
    assert "ada:s3cret word" in given
    assert b"s3cret" not in terminal.shown and b"ada" in terminal.shown and b"Traceback" not in terminal.shown


def test_a_password_that_is_refused_is_asked_for_once(tmp_path: Path, server: tuple[str, list[str], threading.Event]) -> None:
    place, given, _ = server
    assert program("init", str(tmp_path / "a.llvs"), stdout=subprocess.DEVNULL).returncode == 0
    terminal = Terminal("-s", str(tmp_path / "a.llvs"), "pull", place, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    terminal.until(b"User at ")
    terminal.type(b"ada\r")
    terminal.until(b"Password at ")
    terminal.type(b"wrong\r")
    code, _ = terminal.end()
    assert code == 4 and set(given) == {"ada:wrong"} and terminal.shown.count(b"Password at ") == 1
    assert b"wrong" not in terminal.shown.replace(b"wrongly", b"")
    # Without a user at a terminal the command does not ask.
    done = program("-s", str(tmp_path / "a.llvs"), "pull", place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 4 and b"Password at" not in done.stderr
    # The other side refuses, not the store. The same holds for each command with a request to it.
    for command in (["push", place], ["sync", place], ["exchange", place]):
        done = program("-s", str(tmp_path / "a.llvs"), *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = done.stderr
        assert done.returncode == 4 and b"401" in said and b"LLVS_PASSWORD" in said and said.count(b"\n") == 1, (command, done)
    surroundings = {"XDG_STATE_HOME": str(tmp_path / "state")}
    remote = ["-s", str(tmp_path / "a.llvs"), "remote"]
    assert program(*remote, "add", "cloud", place, env=surroundings, stdout=subprocess.DEVNULL).returncode == 0
    checked = program(*remote, "check", env=surroundings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert checked.returncode == 4 and b"401" in checked.stdout and b"LLVS_PASSWORD" in checked.stdout
