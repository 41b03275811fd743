"""`llvs erase` and `llvs erasures`."""

from __future__ import annotations

from pathlib import Path

import llvs

from .conftest import Run


def test_erasing(llvs_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path) as notes:
        first = notes.save(insert={"a": b"one", "secret": b"xyzzy 1"})
        notes.save(update={"secret": b"xyzzy 2"})

    def llvs_(*given: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *given, code=code)
        return done.out + done.err

    assert "give the ids of values" in llvs_("erase", code=2)
    assert "no orders" in llvs_("erasures")
    assert "would erase 2 values of 2 versions" in llvs_("erase", "secret", "--dry-run")
    assert llvs_("get", "secret") == "xyzzy 2"
    told = llvs_("erase", "secret", "--why", "a test")
    assert "erased 2 values of 2 versions" in told and "backups keep" in told
    # The current version of the command is the one that removes the value.
    assert "secret" not in llvs_("ls") and "a" in llvs_("ls")
    assert "erased" in llvs_("get", "secret", "--at", first.id, code=3)
    assert "followed  a test" in llvs_("erasures")
    assert llvs_run("-s", str(path), "erasures", "--json").json[0]["values"] == 2
    needle = tmp_path / "needle"
    needle.write_bytes(b"one")
    shape = llvs_run("-s", str(path), "erase", "--containing", str(needle), "--replacement", str(needle), "--json").json
    assert shape["values"] == 1 and shape["waiting"] == [] and llvs_("get", "a") == "one"
    assert "nothing to erase" in llvs_("erase", "no such value")
