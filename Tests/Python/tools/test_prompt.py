"""Completion, the prompt, and manual pages."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

import llvs
from llvs.tools import command, shell_command

from .conftest import SURROUNDINGS, Run, program


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A store with ids, a branch, and names that must not be completed."""
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path) as store:
        store.save(insert={"note/one": b"1", "note/two": b"2", "contact/ann": b"3", "evil\x1b[31m": b"4"})
        store.save(insert={"x": b"1"}, branch="draft")
    return path


#: Names that bash would insert unchanged, and then read as more than one word, or as a command.
HOSTILE = [
    "a;reboot", "$(reboot)", "`reboot`", "a b", "*", "a&reboot", "a|reboot", "a>reboot", "a'", 'a"', "a\\b", "!reboot", "{a,b}", "a\nb",
]


def completed(store: Path, *words: str) -> list[str]:
    """Returns the completions for bash."""
    line = ["llvs", "-s", str(store), *words]
    env = {"_LLVS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
    done = program(env=env, stdout=subprocess.PIPE)
    assert done.returncode == 0
    return [row.partition(",")[2] for row in done.stdout.decode().splitlines() if row]


def test_completion(notes: Path) -> None:
    assert completed(notes, "sta") == ["status"]
    assert "--graph" in completed(notes, "log", "--")
    assert completed(notes, "get", "note/") == ["note/one", "note/two"]
    assert completed(notes, "get", "n") == ["note/one", "note/two"]
    assert completed(notes, "get", "evil") == []
    assert completed(notes, "get", "x") == [], "the ids at @, not those of a head that happens to be the newest"
    assert completed(notes, "get", "--at", "draft", "x") == ["x"]
    assert completed(notes, "get", "--at", "nowhere", "n") == ["note/one", "note/two"]
    assert completed(notes, "diff", "@", "draft", "x") == ["x"]
    assert completed(notes, "show", "dr") == ["draft"]
    with llvs.Store(notes, read_only=True) as store:
        head = store.heads()[0].id
    assert completed(notes, "show", head[:5].lower()) == [head[:8]]
    assert completed(notes.parent / "nowhere", "get", "n") == []


def test_names_of_others_are_no_commands(notes: Path) -> None:
    with llvs.Coordinator(notes) as store:
        store.save(insert={**{f"note/{name}": b"5" for name in HOSTILE}, "-n": b"6", **{f"{name}/x": b"7" for name in HOSTILE}})
        store.save(insert={"y": b"1"}, branch="draft;reboot")
    assert completed(notes, "get", "note/") == ["note/one", "note/two"]
    assert completed(notes, "get", "") == ["contact/", "note/"]
    assert completed(notes, "show", "dr") == ["draft"]


def test_names_of_remotes(notes: Path) -> None:
    (notes / "remotes.json").write_text(json.dumps({"remotes": {"home": {"url": "/x"}, "ho;reboot": {"url": "/y"}}}))
    assert completed(notes, "push", "ho") == completed(notes, "remote", "check", "") == completed(notes, "sync", "") == ["home"]
    # If no remote has the name, the shell offers folders.
    assert completed(notes, "push", "./sha") == ["./sha"]
    assert [value for value, _ in shell_command.offered(["--store", str(notes)], "push ")] == ["home"]
    (notes / "remotes.json").write_text("[")
    assert completed(notes, "remote", "remove", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_shells(llvs_run: Run, shell: str, tmp_path: Path) -> None:
    script = llvs_run("completion", shell).out
    assert "_LLVS_COMPLETE" in script and "%(" not in script
    if shell == "bash":
        (tmp_path / "script").write_text(script)
        subprocess.run(["bash", "-n", str(tmp_path / "script")], check=True)


def test_the_prompt_without_a_terminal(notes: Path) -> None:
    given = b"set a=1\nget a\n\nllvs ls note/\nget 'nope\nget nope\nshell\n# nothing\nexit\nls\n"
    done = program("-s", str(notes), "shell", input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout.splitlines()[1:] == [b"1note/one", b"note/two"]
    assert [row.partition(b":")[2][:25] for row in done.stderr.splitlines()] == [
        b" No closing quotation: clo", b' there is no value "nope" ', b" this is a shell already"
    ] or done.stderr.count(b"\n") == 3
    assert done.returncode == 1
    assert program("-s", str(notes), "shell", input=b"ls\n", stdout=subprocess.PIPE).returncode == 0
    assert program("-s", "nowhere", "shell", input=b"ls\n", stderr=subprocess.PIPE).returncode == 3


def test_the_prompt_on_a_terminal(notes: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "llvs.tools", "-s", str(notes), "shell"], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, **SURROUNDINGS, "TERM": "xterm", "PAGER": "cat", "PROMPT_TOOLKIT_NO_CPR": "1"},
    )
    os.close(theirs)
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        while text not in shown:
            assert select.select([ours], [], [], 300)[0], shown
            shown += os.read(ours, 65536)

    until(b"notes.llvs>")
    os.write(ours, b"ls note/\r")
    until(b"note/one\r\nnote/two")
    os.write(ours, b"exit\r")
    try:
        while os.read(ours, 65536):
            pass
    except OSError:
        pass
    assert running.wait(300) == 0
    os.close(ours)


def test_what_is_offered_at_the_prompt(notes: Path) -> None:
    before = ["--store", str(notes)]
    assert [value for value, _ in shell_command.offered(before, "get no")] == ["note/one", "note/two"]
    assert [value for value, _ in shell_command.offered(before, "bl")] == ["blame"]
    assert "log" in [value for value, _ in shell_command.offered(before, "")]
    assert list(shell_command.offered(before, "get 'no")) == []


def test_manual_pages(llvs_run: Run, tmp_path: Path) -> None:
    llvs_run("man-pages", "pages")
    names = {path.name for path in (tmp_path / "pages").iterdir()}
    assert names >= {"llvs.1", "llvs-remote-add.1", *(f"llvs-{name}.1" for name in command.COMMANDS)}
    text = (tmp_path / "pages" / "llvs-log.1").read_text()
    # An argument has no description beside its place in the synopsis.
    assert "A..B" not in text.partition(".SH OPTIONS")[2]
    assert text.startswith('.TH "LLVS-LOG" "1"') and ".SH SYNOPSIS" in text and ".B \\-\\-graph" in text
    assert not [row for row in text.splitlines() if row.startswith(".") and row.split()[0] not in (".TH", ".SH", ".B", ".PP", ".TP")]
