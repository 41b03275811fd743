"""Merging, explaining, undoing and blaming, on the example store."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import llvs
from llvs.tools import demo

from .conftest import Run, program


@pytest.fixture
def book(llvs_run: Run, tmp_path: Path) -> Run:
    """The command in a folder with the demo store."""
    demo.make_demo_store(tmp_path / "book.llvs")
    return llvs_run


def phones_head(book: Run) -> str:
    """Returns the last save of the phone while it was offline."""
    found = book("log", "--json", "--since", "2026-10-31 10:50").json_lines
    return str(next(version["id"] for version in found if version["metadata"].get("device") == "phone"))


def test_merge_explain_and_conflicts(book: Run) -> None:
    assert book("conflicts").out == "no conflicts\n"
    head = phones_head(book)
    before = book("show", "--json").json["id"]
    dry = book("merge", head[:8], "--dry-run", code=1).out
    assert dry == book("conflicts", head[:8], code=1).out
    assert "3. note/plan (overlap, rule \"note/\")\n" in dry and "result: \"Meet at nine.\\n\"" in dry
    assert book("show", "--json").json["id"] == before
    merged = book("merge", head[:8], "--json").json
    assert [record["kind"] for record in merged["conflicts"]] == ["pick", "pick", "overlap"]
    assert list(merged["conflicts"][0]) == ["id", "path", "kind", "rule", "version", "base", "newer", "older", "result"]
    assert book("show", "--json").json["id"] == merged["id"] and merged["predecessors"] == [before, head]
    assert "nothing to merge" in book("merge", head[:8]).out
    explained = book("explain", "--json").json
    assert list(explained) == ["version", "bases", "recorded", "conflicts"]
    assert explained["recorded"] and explained["conflicts"] == merged["conflicts"] and len(explained["bases"]) == 1
    assert book("explain", "@~1").out == "this version is no merge\n"
    still = book("conflicts", "--json", code=1).json_lines
    assert [record["version"] for record in still] == [merged["id"]] * 3
    town = json.loads(book("get", "contact/greta").out)["town"]
    book("conflicts", "--choose", "2", "older")
    assert json.loads(book("get", "contact/greta").out)["town"] != town
    assert len(book("conflicts", "--json", code=1).json_lines) == 2
    assert "there is no conflict 9" in book("conflicts", "--choose", "9", "newer", code=1).err
    assert "conflicts  2 open" in book("status").out


def test_a_dry_run_by_other_arbiters_predicts_the_merge(book: Run) -> None:
    ours, head = book("show", "--json").json["id"], phones_head(book)
    told = {}
    for arbiter in ("most-recent-change", "most-recent-branch", "theirs", "ours"):
        for a, b in ((head, ours), (ours, head)):
            found = book("merge", a, b, "--arbiter", arbiter, "--dry-run", "--json", code=1).json["conflicts"]
            assert {record["id"] for record in found} > {"contact/greta", "note/plan"}
            assert all(record["path"] == [] and record["result"] in (record["newer"], record["older"]) for record in found)
            merged = book("merge", a, b, "--arbiter", arbiter, "--json", "--meta", f"by={arbiter}").json["id"]
            for record in found:
                value = book("get", record["id"], "--at", merged, "--json").json
                is_json = value["kind"] == "json"
                assert record["result"] == value["json"] if is_json else record["result"]["size"] == value["size"]
            told[arbiter, a == ours] = [record["result"] for record in found]
    assert told["ours", True] == told["theirs", False] != told["ours", False] == told["theirs", True]
    assert book("show", "--json").json["id"] != ours
    assert book("merge", "@~1", "--arbiter", "ours", "--dry-run").out == "nothing to decide\n"


def test_merges_by_other_arbiters(book: Run) -> None:
    ours, head = book("show", "--json").json["id"], phones_head(book)
    for arbiter in ("most-recent-change", "most-recent-branch", "theirs", "ours"):
        merged = book("merge", head, ours, "--arbiter", arbiter, "--meta", f"by={arbiter}", "--json").json
        assert merged["predecessors"] == [ours, head] and merged["metadata"]["by"] == arbiter
    assert "is not one of" in book("merge", head, "--arbiter", "nobody", code=2).err


def test_undo_redo_and_revert(book: Run) -> None:
    assert 'no save of "tests" is left to undo' in book("undo", code=1).err
    book("set", "a=1", "-m", "first a")
    book("set", "a=2", "-m", "second a")
    assert "took back: second a\n  a\n" in book("undo").out
    assert book("get", "a").out == "1"
    undone = book("show", "--json").json["id"]
    assert "undo: second a" in book("log", "--oneline", "-n", "1").out
    redone = book("redo", "--json").json
    assert list(redone) == ["version", "undone", "superseded", "versions", "description"] and redone["undone"] == ["a"]
    assert book("get", "a").out == "2"
    assert 'no undo of "tests"' in book("redo", code=1).err
    # Saves of other devices are not undone.
    assert 'no save of "other"' in book("--device", "other", "undo", code=1).err
    saved = book("set", "b=1", "c=1", "--json").json["id"]
    book("set", "c=2")
    assert book("revert", saved).out.splitlines()[1:] == ["  b", "  c was changed since: that stays"]
    assert "nothing is left" in book("revert", saved, code=1).err
    assert book("get", "c").out == "2" and "there is no value" in book("get", "b", code=1).err


def test_undo_goes_on_behind_what_cannot_be_undone(book: Run) -> None:
    """Each command is a program of its own."""

    def run(*arguments: str, device: str = "tests") -> "subprocess.CompletedProcess[bytes]":
        return program("--device", device, *arguments, capture_output=True)

    for text in ("b=1", "a=1"):
        assert run("set", text, "-m", f"set {text}").returncode == 0
    assert run("set", "a=7", device="other").returncode == 0
    told = run("undo")
    assert told.returncode == 1 and told.stdout == b""
    assert told.stderr.decode() == (
        "  a was changed since: that stays\n"
        'llvs: nothing of "set a=1" is left to take back; "llvs undo" again goes on with what was before it\n'
    )
    assert run("undo").stdout.decode().splitlines()[1:] == ["took back: set b=1", "  b"]
    assert book("get", "a").out == "7" and b'no save of "tests" is left' in run("undo").stderr
    assert run("undo", "--json").stdout == b"null\n"


def test_blame(book: Run) -> None:
    found = book("blame", "contact/ada", "--json").json_lines
    assert [part["at"] for part in found] == ["/name", "/phone", "/street", "/tags", "/town", "/visits"]
    assert all(list(part) == ["at", "text", "version"] for part in found)
    town = next(part for part in found if part["at"] == "/town")
    assert town["text"] == '"Bern"' and town["version"]["id"] == book("show", "--json").json["id"]
    # Each was set by the version named, and was another before.
    with llvs.Coordinator("book.llvs", read_only=True) as coordinator:
        store = coordinator.store
        for part in found:
            version = store[part["version"]["id"]]
            member, text = part["at"][1:], json.loads(part["text"])
            assert json.loads(store.at(version)["contact/ada"])[member] == text
            for before in version.predecessors:
                data = store.at(before).get("contact/ada")
                assert data is None or json.loads(data).get(member) != text
    lines = book("blame", "note/huts").out.splitlines()
    assert [line.rpartition("  ")[2] for line in lines] == book("get", "note/huts").out.splitlines()
    assert "(PNG image, 64 x 48, 9.3 kB)" in book("blame", "picture/hills-1.png").out
    assert "there is no value" in book("blame", "nope", code=1).err
