"""The command with versions after one that was saved by a clock ten years ahead."""

import time
from pathlib import Path

import llvs

from .conftest import Run

YEARS = 10 * 365 * 86_400.0


def test_times_of_the_log(tmp_path: Path, llvs_run: Run) -> None:
    place = str(tmp_path / "place")
    with llvs.Coordinator(tmp_path / "ann", exchange=place) as ann:
        ann.save(update={"x": b"before"})
        ann.sync()
        with llvs.Coordinator(tmp_path / "bob", exchange=place) as bob:
            bob.sync()
            bob.save(update={"x": b"ahead"}, timestamp=time.time() + YEARS)
            bob.sync()
        ann.sync()
        ann.save(update={"x": b"after"})
    assert len(llvs_run("-s", "ann", "log", "--oneline", "--since", "yesterday").out.splitlines()) == 3
    assert "no version is as you asked" in llvs_run("-s", "ann", "log", "--since", "2030-01-01").err
    shapes = llvs_run("-s", "ann", "log", "--json").json_lines
    assert all(not shape["time"].startswith("203") for shape in shapes) and shapes[0]["timestamp"] > time.time() + YEARS - 3600
    assert llvs_run("-s", "ann", "get", "x", "--at", "@{now}").out.strip() == "after"
