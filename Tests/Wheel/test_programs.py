"""The programs of the wheel: the command and the inspector, and their messages if packages are missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import llvs
import llvs.inspector
import pytest

COMMAND = Path(sys.prefix, "bin", "llvs")


def run(*arguments: str, folder: Path) -> str:
    return subprocess.run([COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_command(tmp_path: Path) -> None:
    assert run("--version", folder=tmp_path).startswith(f"llvs {llvs.__version__}, library {llvs.__version__}")
    run("init", "notes.llvs", folder=tmp_path)
    run("set", "a=1", folder=tmp_path)
    assert run("get", "a", folder=tmp_path).strip() == "1" and "values   1" in run("--store", "notes.llvs", "status", folder=tmp_path)


def test_the_inspector(tmp_path: Path) -> None:
    """The inspector serves its page, and every file of it."""
    with llvs.Store(tmp_path / "notes.llvs") as store:
        store.make_version(insert={"a": b"1"})
    command = [sys.executable, "-m", "llvs.inspector", str(tmp_path / "notes.llvs"), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"(http://127\.0\.0\.1:\d+)/#key=(\S+)", process.stdout.readline())
            assert found
            address, key = found.groups()
            entering = Request(f"{address}/enter", method="POST", headers={"origin": address, "x-llvs-key": key})
            with urlopen(entering, timeout=600) as answer:
                token = answer.read().decode()

            def get(path: str) -> bytes:
                asked = Request(f"{address}/{path}", headers={"x-llvs-token": token})
                with urlopen(asked, timeout=600) as answer:
                    data: bytes = answer.read()
                return data

            assert b"<!doctype html>" in get("").lower() and b'"total":1' in get("api/history").replace(b" ", b"")
            assert llvs.inspector.__file__ is not None
            inspector = Path(llvs.inspector.__file__).parent
            files = [inspector / "look.css", *(path for path in (inspector / "page").iterdir() if path.suffix in (".js", ".css"))]
            assert len(files) > 15
            for path in files:
                assert get(path.name) == path.read_bytes()
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("click", "from llvs.tools.__main__ import main; sys.argv = ['llvs', 'status']; main()"),
        ("uvicorn", "from llvs.tools.__main__ import main; sys.argv = ['llvs', 'inspect', 'notes.llvs']; main()"),
        ("keyring", "from llvs.tools.key_store import keep; keep('https://example.org', 'ann', 'word')"),
    ],
    ids=["click", "uvicorn", "keyring"],
)
def test_a_package_that_is_missing_is_named(tmp_path: Path, missing: str, code: str) -> None:
    """The message says how to install it from a checkout and from a wheel file."""
    llvs.Store(tmp_path / "notes.llvs").close()
    script = f"import sys; sys.modules[{missing!r}] = None; {code}"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    told = done.stderr.strip().splitlines()[-1]
    assert f"the package {missing}" in told and 'pip install "./bindings/python[tools]"' in told and 'pip install "FILE.whl[tools]"' in told
