"""Commands that read and save, and the members of their JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import llvs

from .conftest import Run

ANN = b'{"name":"Ann","tags":["a","b"],"phone":"1"}'


@pytest.fixture
def notes(llvs_run: Run, tmp_path: Path) -> Run:
    """The command in a folder with a store that has three versions and a branch."""
    with llvs.Coordinator(tmp_path / "notes.llvs", device="tests") as store:
        store.save(insert={"note/1": b"milk\nbread", "contact/ann": ANN}, timestamp=1_700_000_000, description="First things")
        store.save(update={"note/1": b"milk\nblack bread"}, timestamp=1_700_003_600, metadata={"author": "ann"})
        store.save(insert={"note/2": b"tea"}, timestamp=1_700_007_200, branch="draft")
        store.save(remove=["contact/ann"], timestamp=1_700_010_800, metadata={"author": "bob", "n": 1})
    return llvs_run


def test_init_and_status(llvs_run: Run, tmp_path: Path) -> None:
    assert "made an empty store at new.llvs" in llvs_run("init", "new.llvs").out
    assert "is a store already" in llvs_run("init", "new.llvs", code=3).err
    assert "none yet" in llvs_run("status").out
    llvs_run("init", "new.db", "--storage", "sqlite")
    llvs_run("-s", "new.db", "set", "a=1")
    found = llvs_run("-s", "new.db", "status", "--json").json
    assert found["storage"] == "sqlite" and found["values"] == 1 and found["open_conflicts"] == 0
    assert set(found) == {
        "path", "storage", "versions", "bytes", "current", "values", "heads", "open_conflicts", "pending", "damaged"
    }
    assert "there are 2 stores here (new.db, new.llvs)" in llvs_run("status", code=2).err


def test_where_the_store_is(notes: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    id = notes("log", "-n", "1", "--json").json["id"]
    assert notes("-s", str(tmp_path / "notes.llvs"), "log", "-n", "1", "--json").json["id"] == id
    monkeypatch.chdir(tmp_path / "notes.llvs")
    assert notes("log", "-n", "1", "--json").json["id"] == id
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "there is no store here" in notes("log", code=3).err
    monkeypatch.setenv("LLVS_STORE", str(tmp_path / "notes.llvs"))
    assert notes("log", "-n", "1", "--json").json["id"] == id


def test_log(notes: Run) -> None:
    lines = notes("log", "--oneline").out.splitlines()
    assert [re.sub("^[0-9A-F]{8}", "ID", line) for line in lines] == [
        "ID 2023-11-15 01:13 bob - contact/ann (@, head)",
        "ID 2023-11-15 00:13 tests + note/2 (head, branch draft)",
        "ID 2023-11-14 23:13 ann ~ note/1",
        "ID 2023-11-14 22:13 tests First things",
        "ID 2001-01-01 00:00 empty root",
    ]
    graph = notes("log", "--oneline", "--graph").out.splitlines()
    assert [re.sub("[0-9A-F]{8}.*", "ID", line) for line in graph] == ["@  ID", "│ ○  ID", "├─╯", "○  ID", "○  ID", "○  ID"]
    assert len(notes("log", "--json", "--since", "2023-11-15 00:00").json_lines) == 2
    assert [found["change"] for found in notes("log", "--json", "--value", "note/1").json_lines] == ["update", "insert"]
    assert [found["branch"] for found in notes("log", "--json", "--branch", "draft").json_lines] == ["draft"]
    assert len(notes("log", "--json", "@..draft").json_lines) == 1
    assert len(notes("log", "--json", "draft").json_lines) == 4
    assert notes("log", "-n", "1").out.splitlines()[2:] == ["    - contact/ann"]
    assert "    ~ note/1" in notes("log", "--stat", "-n", "3").out.splitlines()
    assert notes("log", "-n", "0").out == ""
    assert "leave out --value" in notes("log", "--graph", "--value", "x", code=2).err
    assert "is no time: write" in notes("log", "--since", "soon", code=2).err
    notes("set", *(f"many/{i}=x" for i in range(5)))
    assert notes("log", "--oneline", "-n", "1").out.endswith(" + many/0, + many/1, + many/2 and 2 more (@, head)\n")
    assert notes("log", "-n", "1", "--stat").out.count("many/") == 5


def test_the_shape_of_a_version(notes: Run) -> None:
    found = notes("show", "@", "--json").json
    assert list(found) == [
        "id", "predecessors", "time", "timestamp", "branch", "size", "metadata", "successors", "changes",
    ]
    assert found["time"] == "2023-11-15T01:13:20.000000Z" and found["timestamp"] == 1_700_010_800.0
    assert found["metadata"] == {"__llvs_device": "tests", "author": "bob", "n": 1}
    assert found["changes"] == [{"id": "contact/ann", "change": "remove", "old_size": len(ANN), "new_size": None}]
    out = notes("show", "@~1").out
    assert re.search(r"^successor +[0-9A-F]{8} 2023-11-15 01:13 bob$", out, re.M)
    assert "~ note/1 (updated, text)\n  line 2\n  - bread\n  + black bread\n" in out


def test_values(notes: Run) -> None:
    assert notes("ls").out == "note/1\n"
    assert notes("ls", "--at", "@~1").out == "contact/ann\nnote/1\n"
    assert notes("ls", "contact/", "--at", "@~1").out == "contact/ann\n"
    found = notes("ls", "--json", "--at", "@~1", "contact/").json_lines
    assert found == [{"id": "contact/ann", "size": len(ANN), "stored_version": notes("show", "@~2", "--json").json["id"]}]
    long = notes("ls", "-l", "--at", "@~1").out
    assert re.fullmatch(r"43 B  JSON  [0-9A-F]{8}  2023-11-14 22:13  contact/ann\n16 B  text .*note/1\n", long)
    shape = notes("get", "contact/ann", "--at", "@~1", "--json").json
    assert list(shape) == ["id", "stored_version", "kind", "size", "json"] and shape["json"]["name"] == "Ann"
    assert "there is no value \"contact/ann\" at" in notes("get", "contact/ann", code=1).err
    assert "llvs history contact/ann" in notes("get", "contact/ann", code=1).err
    assert notes("get", "note/1", "-o", "nowhere/out.txt", code=3).err == "llvs: nowhere/out.txt: No such file or directory\n"
    assert notes("export", "-o", "nowhere/x.sqlite", code=3).err == "llvs: nowhere/x.sqlite: No such file or directory\n"
    notes("get", "note/1", "-o", "out.txt")
    assert Path("out.txt").read_bytes() == b"milk\nblack bread" and not list(Path().glob(".out*"))
    assert notes("get", "note/1", "--hex").out.startswith("00000000  6d 69 6c 6b 0a 62 6c 61  63 6b 20 62 72 65 61 64  milk.black bread")


def test_history_and_branches(notes: Run) -> None:
    rows = notes("history", "contact/ann").out.splitlines()
    assert [row[9:] for row in rows] == ["2023-11-15 01:13 remove  bob", "2023-11-14 22:13 insert (43 B)  tests  First things"]
    found = notes("history", "contact/ann", "--json").json_lines
    assert [(one["change"], one["value_size"]) for one in found] == [("remove", None), ("insert", 43)]
    assert "no version ever held" in notes("history", "nope", code=1).err
    assert re.fullmatch(r"draft  [0-9A-F]{8} 2023-11-15 00:13 tests\n", notes("branch").out)
    assert [(one["branch"], one["heads"]) for one in notes("branch", "--json").json_lines] == [("draft", 1)]


def test_differences(notes: Run) -> None:
    notes("set", 'contact/ann={"name":"Anna","tags":["a","c","b"],"phone":"1"}')
    out = notes("diff", "@~3", "@", "contact/").out
    assert out == '~ contact/ann (updated, JSON)\n  /name: "Ann" → "Anna"\n  /tags/1: + "c"\n'
    assert notes("diff", "@~3", "--names").out == "contact/ann\nnote/1\n"
    assert notes("diff", "@~3", "--stat").out.endswith("2 updated\n")
    assert notes("diff", "@", "@", "--stat").out == "no differences\n"
    notes("set", "note/1=wine\nblack bread, two\nsalt", "--branch", "list")
    shown = notes("diff", "@", "list", "note/").out
    assert shown.endswith("  line 1\n  - milk\n  - black bread\n  + wine\n  + black bread, two\n  + salt\n")
    found = notes("diff", "@~3", "--json").json_lines
    assert found[0]["members"] == [{"path": "/name", "old": "Ann", "new": "Anna"}, {"path": "/tags/1", "new": "c"}]
    assert found[1]["lines"] == [{"line": 2, "old": ["bread"], "new": ["black bread"]}]
    assert notes("diff", "@~3", "--json", "--names").json_lines[0] == {"id": "contact/ann", "change": "update"}


def test_saving(notes: Run, tmp_path: Path) -> None:
    (tmp_path / "a=b.bin").write_bytes(bytes(range(256)))
    saved = notes("set", "x=1=2", "y", "@a=b.bin", "-m", "Two values", "--meta", "n=[1]", "--meta", "t=text", "--json").json
    assert saved["metadata"] == {"__llvs_description": "Two values", "__llvs_device": "tests", "n": [1], "t": "text"}
    with llvs.Coordinator(tmp_path / "notes.llvs", read_only=True) as store:
        assert store["x"] == b"1=2" and store["y"] == bytes(range(256)) and store.current_version.id == saved["id"]
    assert "(data, 256 B; --hex shows it)" in notes("diff").out
    notes("rm", "x", "y")
    assert notes("ls").out == "note/1\n"
    assert 'there is no value "x" to remove' in notes("rm", "note/1", "x", code=1).err
    assert notes("ls").out == "note/1\n"
    assert "has no value: write x=VALUE" in notes("set", "x", code=2).err
    assert "is given twice" in notes("set", "x=1", "x=2", code=2).err
    assert "is no metadata" in notes("set", "x=1", "--meta", "n", code=2).err
    assert "nope.bin: No such file" in notes("set", "x", "@nope.bin", code=3).err
    assert '"@" names no file' in notes("set", "x", "@", code=2).err
    assert '"@-" is given twice' in notes("set", "x", "@-", "y", "@-", code=2).err
    assert '"__llvs_undo" is of the library' in notes("set", "x=1", "--meta", "__llvs_undo=1", code=2).err
    # A number that metadata cannot represent is stored as text.
    assert notes("set", "n=1", "--meta", "a=NaN", "--meta", "b=-1e999", "--json").json["metadata"] == {
        "__llvs_device": "tests", "a": "NaN", "b": "-1e999"
    }
    notes("set", "z=1", "--branch", "new one")
    assert "z" in notes("ls", "--at", "new one").out and "z" not in notes("ls").out


def test_wrong_uses(notes: Run) -> None:
    for group in ((), ("remote",), ("snapshot",)):
        # The beginning of a command is answered with its help, which is no error message.
        assert notes(*group, code=2).err.startswith("Usage: llvs")
    # Very long input is not repeated in full, but the end of the sentence, which says what to do, is.
    said = notes("show", "A" * 100_000, code=2).err
    assert len(said) < 2000 and said.endswith('"llvs log" shows ids, and "llvs branch" the branches\n')
    for filter in (["--value", "nope"], ["--branch", "nope"], ["--prefix", "nope"], ["@.."]):
        assert notes("log", *filter).err == "no version is as you asked\n"
    assert notes("log", "-n", "0").err == ""
    assert notes("shwo", code=2).err == 'llvs: there is no command "shwo": did you mean "llvs show"?\n'
    assert notes("ls", "nope/").err.endswith('has an id that begins with "nope/"\n')
    assert 'there is no command "lgo": did you mean "llvs log"' in notes("lgo", code=2).err
    assert '"llvs --help" lists them' in notes("\x1b[31mx", code=2).err
    assert "\x1b" not in notes("\x1b[31mx", code=2).err
    assert "No such option" in notes("log", "--nope", code=2).err
    assert "there is no version" in notes("show", "nope", code=2).err
    assert notes("--help").out.startswith("Usage: llvs")
    assert notes("--version").out.startswith("llvs 0.")
    for name in re.findall(r"^  ([a-z-]+)  ", notes("--help").out.partition("Commands:")[2], re.M):
        assert notes(name, "--help").out.startswith(f"Usage: llvs {name}")
