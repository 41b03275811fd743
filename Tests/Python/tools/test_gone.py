"""What the command shows of values whose bytes are gone."""

from __future__ import annotations

from pathlib import Path

import llvs
from format_author import make_hollow

from .conftest import Run


def test_it_says_so_and_shows_the_rest(llvs_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path) as notes:
        first = notes.save(insert={"a": b'{"x":1}', "secret": b'{"y":2}'})
        second = notes.save(update={"a": b'{"x":2}', "secret": b'{"y":3}'})
        third = notes.save(update={"secret": b'{"y":4}'})
    assert make_hollow(path, lambda version, id: id == b"secret" and version != third.id) == 2

    def llvs_(*given: str, code: int = 0) -> str:
        done = llvs_run("-s", str(path), *given, code=code)
        return done.out + done.err

    assert "~ secret (updated, bytes gone)" in llvs_("show") and "~ secret (updated, bytes gone)" in llvs_("show", second.id)
    told = llvs_("diff", first.id, second.id)
    assert "/x: 1 → 2" in told and "~ secret (updated, bytes gone)" in told
    assert "secret  bytes gone" in llvs_("diff", "--stat", first.id, second.id)
    shapes = llvs_run("-s", str(path), "diff", "--json", first.id, second.id).json_lines
    assert shapes[1] == {"id": "secret", "change": "update", "gone": True, "old_size": None, "new_size": None}
    assert llvs_("blame", "secret").split()[-2:] == ["/y", "4"]
    assert "gone" in llvs_("ls", "-l", "--at", second.id) and "gone" not in llvs_("ls", "-l")
    assert "2 values whose bytes are gone" in llvs_("verify") and "all is whole" in llvs_("verify")
    assert llvs_run("-s", str(path), "verify", "--json").json["forgotten"] == 2
    assert "2  values whose bytes are gone" in llvs_("size")
    assert llvs_("get", "secret") == '{"y":4}'
    # A command whose output would be incomplete without the bytes fails, and names the value.
    for given in (("get", "secret"), ("export",)):
        assert "secret" in llvs_(*given, "--at", second.id, code=3)
