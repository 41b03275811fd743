"""Runs the command within the test, and as a separate program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Sequence

import pytest

from llvs.tools import command


class Done(NamedTuple):
    """The result of a run of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Returns the JSON document that it printed."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        """Returns the JSON texts that it printed, one in each line."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]

#: An environment that is the same everywhere.
SURROUNDINGS = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "LLVS_DEVICE": "tests"}


@pytest.fixture
def llvs_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """llvs_run("log", "-n", "1"): runs the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LLVS_STORE", raising=False)
    for name, value in SURROUNDINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state of the user"))

    def run(*arguments: str, code: Optional[int] = 0) -> Done:
        capsys.readouterr()
        found = command.run(arguments)
        done = Done(found, *capsys.readouterr())
        assert code is None or found == code, done
        # Errors are one sentence, never a traceback.
        assert "Traceback" not in done.err, done.err
        return done

    return run


def program(*arguments: str, around: Sequence[str] = (), **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """Runs the command as a program; around: another program that runs it."""
    surroundings = {**os.environ, **SURROUNDINGS, **options.pop("env", {})}
    command = [*around, sys.executable, "-m", "llvs.tools", *arguments]
    return subprocess.run(command, env=surroundings, timeout=300, check=False, **options)
