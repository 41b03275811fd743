"""The endpoints of the page, over an ordinary store."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
import stores
from conftest import Client
from format_author import make_hollow
from llvs.inspector.index import HistoryIndex
from llvs.tools.remotes import Remotes

Inspect = Callable[..., Client]


def test_the_history_comes_in_pages_and_every_line_arrives(inspect: Inspect) -> None:
    client = inspect(lambda store: stores.long(store, 700, 30))
    rows: list[dict[str, Any]] = []
    while True:
        page = client.get("history", first=len(rows), count=90)
        if not page["rows"]:
            break
        assert page["total"] == 700
        rows += page["rows"]
    assert [row["row"] for row in rows] == list(range(700))
    assert [row["id"] for row in rows] == [version.id for version in client.inspected.store.history()]
    assert sum(row["head"] for row in rows) == len(client.inspected.store.heads())
    # The lines that leave one row pass or arrive at the next, lane by lane.
    below: set[int] = set()
    for row in rows:
        above = set(row["passing"]) | ({row["lane"]} if row["arrives"] else set())
        assert {lane for lane in above if lane < 20} == {lane for lane in below if lane < 20}
        below = set(row["passing"]) | set(row["leaving"])
        assert row["lane"] <= 20 and len(row["passing"]) <= 20
    assert below == set()
    assert client.get("history", first=10**9)["rows"] == []


def test_the_width_counts_every_lane(inspect: Inspect) -> None:
    """A head whose predecessor follows directly in another lane needs a lane nevertheless."""
    page = inspect(stores.hostile).get("history")
    assert page["lanes"] == 1 + max(row["lane"] for row in page["rows"]) == 2


def test_a_value_whose_bytes_are_gone(inspect: Inspect, tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Store(path) as store:
        first = store.make_version(insert={"note": b"one", "secret": b"secret"})
        last = store.make_version(first, update={"note": b"two", "secret": b"another"})
    assert make_hollow(path, lambda version, id: version == first.id and id == b"secret") == 1
    client = inspect()
    assert client.get("value", at=first.id, id="secret") == {
        "id": "secret", "at": first.id, "size": 6, "storedBy": first.id, "kind": "gone",
    }
    assert client.get("value", at=first.id, id="note")["text"] == "one" and client.get("value", at="@", id="secret")["text"] == "another"
    inside = client.get("compare/value", a=first.id, b=last.id, id="secret")
    assert inside["by"] == "bytes" and inside["a"]["kind"] == "gone" and inside["b"]["kind"] == "text"
    assert {row["name"]: row["values"] for row in client.get("size")["kinds"]}["hollow"] == 1
    assert [entry["size"] for entry in client.get("state", at=first.id)["entries"]] == [3, 6]


def test_what_takes_space(inspect: Inspect) -> None:
    client = inspect()
    report = client.inspected.store.size(limit=200)
    found = client.get("size")
    assert (found["bytes"], found["current"], found["past"]) == (report.bytes, report.current_bytes, report.past_bytes)
    assert [row["name"] for row in found["prefixes"]] == [row.name for row in report.by_prefix] and found["past"] > 0
    assert sum(row["bytes"] for row in found["kinds"]) == found["bytes"] and len(found["versions"]) == 8
    assert {row["name"] for row in found["months"]} == {row.name for row in report.by_month}
    contacts = client.get("size", prefix="contact/", each="id")
    assert {row["name"] for row in contacts["prefixes"]} == {"contact/ann", "contact/bob", "contact/cleo"}
    assert sum(row["bytes"] for row in contacts["prefixes"]) == contacts["bytes"] == sum(row["bytes"] for row in contacts["months"])


def test_lanes_of_a_merge(inspect: Inspect) -> None:
    client = inspect()
    rows = {row["what"]: row for row in client.get("history")["rows"]}
    merge = next(row for row in client.get("history")["rows"] if len(row["predecessors"]) == 2)
    assert len(set(merge["leaving"])) == 2 and merge["arrives"]
    assert rows["Cleo's birthday"]["head"] and rows["Cleo's birthday"]["current"]
    assert rows["Try another theme"]["branch"] == "redesign" and rows["Try another theme"]["head"]
    assert rows["New number, on the way"]["who"] == "phone"


def test_versions_by_name_and_their_place(inspect: Inspect) -> None:
    client = inspect()
    head = client.get("summary")["head"]
    for name in ("@", head, head[:8].lower(), head[:4]):
        assert client.get("version", version=name)["id"] == head
    assert client.get("version", version="redesign")["what"] == "Try another theme"
    assert client.get("version", version="@~1")["predecessors"]
    assert client.get("row", version="redesign")["row"] == next(
        row["row"] for row in client.get("history")["rows"] if row["branch"] == "redesign"
    )
    status, sentence = client.refused("version", version="nothing-of-that-name")
    assert status == 404 and "no version" in sentence
    version = client.get("version", version="@")
    assert version["entries"] == [{"id": "contact/cleo", "kind": "update"}]
    assert version["metadata"]["author"] == "laptop" and version["clock"] == 0 and version["values"] == 7


def test_the_tree_goes_by_slashes(inspect: Inspect) -> None:
    client = inspect()
    top = client.get("state", at="@")
    assert [entry["name"] for entry in top["entries"]] == ["__llvs_schema", "contact/", "photo/", "plan/", "raw/", "settings/"]
    assert [entry.get("count") for entry in top["entries"]] == [None, 2, 1, 1, 1, 1] and top["count"] == 7
    below = client.get("state", at="@", prefix="contact/")
    assert [entry["id"] for entry in below["entries"]] == ["contact/ann", "contact/cleo"]
    assert all(entry["size"] > 10 for entry in below["entries"])
    assert [entry["id"] for entry in client.get("state", at="@", filter="PNG")["entries"]] == ["photo/ann.png"]


def test_a_tree_of_many_ids_comes_in_pages(inspect: Inspect) -> None:
    ids = {f"big/{number:05}": b"" for number in range(3000)} | {f"g{number:03}/x": b"1" for number in range(120)}
    ids |= {"a/": b"", "a//": b"", "a": b"2"}
    client = inspect(lambda store: store.make_version(insert=ids))
    found: list[dict[str, Any]] = []
    after = ""
    while after is not None:
        page = client.get("state", at="@", after=after, count=50)
        found += page["entries"]
        after = page["next"]
    names = [entry["name"] for entry in found]
    assert names == ["a", "a/", "a/", "big/", *(f"g{number:03}/" for number in range(120))]
    assert next(entry for entry in found if entry["name"] == "big/")["count"] == 3000
    seen: list[str] = []
    after = ""
    while after is not None:
        page = client.get("state", at="@", prefix="big/", after=after, count=700)
        seen += [entry["id"] for entry in page["entries"]]
        after = page["next"]
    assert seen == [f"big/{number:05}" for number in range(3000)]


@pytest.mark.parametrize("id, kind", [
    ("contact/ann", "json"), ("plan/moving", "text"), ("photo/ann.png", "image"), ("raw/checksum", "binary"), ("settings/theme", "json")])
def test_a_value_is_shown_as_what_it_is(inspect: Inspect, id: str, kind: str) -> None:
    client = inspect()
    found = client.get("value", at="@", id=id)
    data = client.inspected.store.at(found["at"])[id]
    assert found["kind"] == kind and found["size"] == len(data)
    assert found.get("text") == (data.decode() if kind in ("json", "text") else None)
    given = client.http.get("/api/data", params={"at": "@", "id": id})
    assert given.content == data and given.headers["content-type"] == "application/octet-stream"
    part = client.http.get("/api/data", params={"at": "@", "id": id, "offset": 3, "length": 5})
    assert part.content == data[3:8]
    assert client.refused("value", at="@", id="no such")[0] == 404
    assert client.refused("value", at="@", id="")[0] == 400


def test_the_versions_of_one_value_in_time(inspect: Inspect) -> None:
    client = inspect()
    steps = client.get("steps", at="@", id="contact/ann")["steps"]
    assert [step["kind"] for step in steps][:3] == ["insert", "update", "update"]
    assert len(steps) == 6
    assert client.get("steps", at="@", id="contact/bob")["steps"][-1]["kind"] in ("remove", "preserve_removal")
    cut = client.get("steps", at="@", id="contact/ann", count=2)
    assert cut["cut"] and len(cut["steps"]) == 2 and cut["steps"][-1]["id"] == steps[-1]["id"]


def test_two_versions_compared(inspect: Inspect) -> None:
    client = inspect()
    oldest = client.get("history")["rows"][-1]["id"]
    found = client.get("compare", a=oldest, b="@")
    assert found["counts"] == {"insert": 1, "update": 4, "remove": 1}
    assert {entry["id"]: entry["kind"] for entry in found["entries"]}["contact/bob"] == "remove"
    page = client.get("compare", a=oldest, b="@", count=2)
    rest = client.get("compare", a=oldest, b="@", after=page["next"])
    assert page["entries"] + rest["entries"] == found["entries"]
    inside = client.get("compare/value", a=oldest, b="@", id="contact/ann")
    assert inside["by"] == "member"
    told = {tuple(row["path"]): row for row in inside["members"]}
    assert told[("town",)]["was"] == '"Ulm"' and told[("town",)]["now"] == '"Bonn"' and told[("visits",)]["now"] == "4"
    text = client.get("compare/value", a=oldest, b="@", id="plan/moving")
    changed = [row for row in text["rows"] if row["kind"] == "changed"]
    assert text["by"] == "line" and len(changed) == 1 and ["-", "Monday"] in changed[0]["words"]
    assert client.get("compare/value", a=oldest, b="@", id="photo/ann.png")["by"] == "bytes"
    assert client.get("compare/value", a=oldest, b="@", id="contact/bob")["b"] is None


def test_a_merge_is_explained(inspect: Inspect) -> None:
    client = inspect()
    found = client.get("merge", version="@~1")
    assert found["recorded"] and len(found["bases"]) == 1 and found["bases"][0]["what"] == "A visit, and a photo"
    assert found["first"]["who"] == "tablet" and found["second"]["who"] == "phone"
    told = {(record["id"], *record["path"]): record for record in found["conflicts"]}
    phone = told[("contact/ann", "phone")]
    assert phone["newer"]["text"] == '"+49 228 1000"' and phone["older"]["text"] == '"+49 228 9999"'
    assert phone["newerIs"] == "first" and phone["stands"] == "newer" and phone["why"]
    raw = told[("raw/checksum",)]
    assert raw["newer"]["size"] == 200 and raw["newer"]["text"] is None
    assert any(id == "plan/moving" for id, *_ in told)
    assert client.refused("merge", version="@")[0] == 404
    again = client.get("merge/foreseen", a=found["first"]["id"], b=found["second"]["id"])
    assert again["count"] == found["count"]
    open_ = client.get("conflicts")
    assert open_["count"] >= 2 and open_["merges"][0]["id"] == found["version"]["id"]
    assert open_["merges"][0]["of"][0] == {"id": "contact/ann", "path": ["phone"]} and open_["merges"][0]["count"] == open_["count"]


def test_search(inspect: Inspect) -> None:
    client = inspect()
    head = client.get("summary")["head"]

    def search(text: str) -> list[tuple[str, str]]:
        return [(row["what"], row["why"]) for row in client.get("search", q=text)["found"]]

    assert search(head[:6].lower())[0] == ("Cleo's birthday", "id")
    assert ("Ann has moved", "in its metadata") in search("MOVED")
    assert ("Cleo's birthday", "changed this value") in search("contact/cleo")
    assert search("redesign")[0] == ("Try another theme", "branch")
    assert search("2026-11-03")[0][1] == "stood at that time"
    assert search("\0 nothing") == []


def test_exchanges_and_problems(inspect: Inspect) -> None:
    client = inspect()
    found = client.get("exchanges")
    assert {device["name"]: device["versions"] for device in found["devices"]} == {"laptop": 4, "phone": 2, "tablet": 1}
    assert found["problems"] == []
    assert client.get("verify")["damages"] == []


@pytest.mark.parametrize("name, query", [
    ("history", {"first": "-1"}), ("history", {"count": "0"}), ("history", {"count": "501"}), ("history", {"first": "9" * 40}),
    ("history", {"first": "\u0663"}), ("version", {}), ("value", {"at": "@"}), ("state", {"at": "@", "count": "1e3"}), ("search", {})])
def test_parameters_that_cannot_be(inspect: Inspect, name: str, query: dict[str, str]) -> None:
    assert inspect().refused(name, **query)[0] == 400


def test_an_empty_store(inspect: Inspect) -> None:
    client = inspect(lambda store: None)
    assert client.get("summary")["versions"] == 0
    assert client.get("history") | {"generation": 0} == {"generation": 0, "total": 0, "known": 0, "lanes": 0, "rows": []}
    assert client.get("heads") == {"heads": [], "count": 0}
    status, sentence = client.refused("state", at="@")
    assert status == 404 and "no version" in sentence
    assert client.get("search", q="anything")["found"] == []


def test_answers_are_json_of_ascii(inspect: Inspect) -> None:
    client = inspect(stores.hostile)
    asked = (("history", {}), ("state", {"at": "@"}), ("search", {"q": "author"}), ("exchanges", {}), ("version", {"version": "@"}))
    for name, query in asked:
        answer = client.http.get(f"/api/{name}", params=query)
        assert answer.content.isascii() and answer.headers["content-type"] == "application/json"
        json.loads(answer.content)


@pytest.mark.parametrize("id", stores.IDS)
def test_hostile_ids_are_ids(inspect: Inspect, id: str) -> None:
    client = inspect(stores.hostile)
    found = client.get("value", at="@", id=id)
    assert found["id"] == id and found["kind"] == "text" and found["text"] == stores.HTML.decode()
    assert client.http.get("/api/data", params={"at": "@", "id": id}).content == stores.HTML
    assert client.get("steps", at="@", id=id)["steps"][0]["kind"] == "insert"
    assert client.get("compare/value", a="@~1", b="@", id=id)["by"] == "line"


@pytest.mark.parametrize("id, kind", [
    ("evil.html", "text"), ("evil.svg", "text"), ("bad.txt", "binary"), ("empty", "text"), ("polyglot.png", "image"), ("bom", "text"),
    ("deep.json", "text"), ("surrogate.json", "json"), ("half", "binary")])
def test_hostile_values_are_text_or_bytes(inspect: Inspect, id: str, kind: str) -> None:
    client = inspect(stores.hostile)
    found = client.get("value", at="@", id=id)
    assert found["kind"] == kind
    assert found.get("type") in (None, "image/png")
    client.get("compare/value", a="@~1", b="@", id=id)


def test_a_large_value_is_never_read_as_a_whole(inspect: Inspect) -> None:
    line = b"0123456789abcdef" * 4 + b"\n"
    size = 100 * 1024 * 1024 // len(line) * len(line)

    def fill(store: llvs.Store) -> None:
        store.make_version(insert={"large": (line * 16384 for _ in range(size // len(line) // 16384))})

    client = inspect(fill)
    found = client.get("value", at="@", id="large")
    assert found["kind"] == "text" and len(found["text"]) == 256 * 1024 and not found["isWhole"]
    offset = len(line) * 1_000_000
    assert client.http.get("/api/data", params={"at": "@", "id": "large", "offset": offset, "length": len(line)}).content == line
    assert client.refused("data", at="@", id="large", length=100_000_000)[0] == 400
    assert client.get("compare/value", a="@", b="@", id="large")["by"] == "bytes"


def test_exchanging_with_a_remote_reports_problems_by_name(inspect: Inspect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    client = inspect(write=True)
    assert client.get("exchanges")["remotes"] == []
    places = {"home": {"url": str(tmp_path / "shared")}, "away": {"url": "https://example.invalid/dav"}}
    (Path(client.inspected.path) / "remotes.json").write_text(json.dumps({"remotes": places}))
    # The remotes came with a store from elsewhere.
    assert not any(remote["canExchange"] for remote in client.get("exchanges")["remotes"])
    assert client.change("exchange", remote="home")[0] == 404 and not (tmp_path / "shared").exists()
    Remotes(Path(client.inspected.path), client.inspected.storage).trust("home")
    remotes = client.get("exchanges")["remotes"]
    assert [(remote["name"], remote["canExchange"]) for remote in remotes] == [("away", False), ("home", True)]
    assert client.change("exchange", remote="home") == (200, {"version": None, "message": "0 versions came, 8 were sent."})
    (tmp_path / "shared" / "versions" / "BAD").write_text("{")
    client.change("exchange", remote="home")
    home = client.get("exchanges")["remotes"][1]
    assert [problem["name"] for problem in home["problems"]] == ["BAD"] and home["last"] > 0
    assert client.change("exchange", remote="away")[0] == 404 and client.change("exchange", remote="none")[0] == 404
    (Path(client.inspected.path) / "remotes.json").write_text("{")
    assert client.get("exchanges")["problems"][0]["name"] == "Remotes that cannot be read"


def test_a_clock_that_disagrees_with_the_ancestors(inspect: Inspect, tmp_path: Path) -> None:
    """Made here no version is older than its predecessor; another implementation may have sent one."""
    def fill(store: llvs.Store) -> None:
        root = store.make_version(insert={"a": b"1"}, timestamp=stores.BEGIN)
        with llvs.Exchange(store, tmp_path / "shared") as there:
            there.send()
            version = {"identifier": "odd", "predecessors": {"idOfFirst": root.id}, "timestamp": stores.BEGIN - 978307200 - 3600.0,
                       "valueDataSize": 1, "metadata": []}
            (tmp_path / "shared" / "changes" / "odd").write_text('[{"update": {"id": "a", "data": "Mg=="}}]')
            (tmp_path / "shared" / "versions" / "odd").write_text(json.dumps({"version": version}))
            assert len(there.retrieve().retrieved) == 1
        store.make_version("odd", update={"a": b"3"}, timestamp=stores.BEGIN + 60)

    client = inspect(fill)
    assert [(row["id"] == "odd", row["clock"]) for row in client.get("history")["rows"]] == [(False, 0), (True, 3600), (False, 0)]
    assert client.get("version", version="odd")["clock"] == 3600


def test_a_merge_before_makes_no_side_newer(inspect: Inspect) -> None:
    """A side that is an automatic merge counts as new as the versions that it merged, not as its own time."""
    def fill(store: llvs.Store) -> None:
        begin = {"__llvs_schema": stores.RULES, "contact/x": stores.card(name="A", town="", born="")}
        root = store.make_version(insert=begin, timestamp=100.0)
        town = store.make_version(root, update={"contact/x": stores.card(name="B", town="Ulm", born="")}, timestamp=200.0)
        born = store.make_version(root, update={"contact/x": stores.card(name="A", town="", born="1990")}, timestamp=300.0)
        late = store.make_version(born, update={"note": b"1"}, timestamp=900.0)
        merged = store.merge(town, late)
        other = store.make_version(root, update={"contact/x": stores.card(name="C", town="", born="")}, timestamp=400.0)
        store.merge(merged, other)

    client = inspect(fill)
    head = client.inspected.store.most_recent_head
    assert head is not None
    told = client.get("merge", version=head.id)
    (name,) = told["conflicts"]
    sides = {"first": told["first"]["id"], "second": told["second"]["id"]}
    newer = sides[name["newerIs"]]
    assert json.loads(client.inspected.store.at(newer)["contact/x"])["name"] == json.loads(name["newer"]["text"]) == "C"


def test_a_number_that_became_a_text_is_reported(inspect: Inspect) -> None:
    def fill(store: llvs.Store) -> None:
        root = store.make_version(insert={"a": b'{"n": 12, "m": [1]}'})
        store.make_version(root, update={"a": b'{"n": "12", "m": ["1"]}'})

    found = inspect(fill).get("compare/value", id="a", a="@~1", b="@")
    assert [(one["path"], one["was"], one["now"]) for one in found["members"]] == [(["n"], "12", '"12"'), (["m", 0], "1", '"1"')]


def _bytes(value: Any, seen: set[int]) -> int:
    """Bytes that a value has in memory, with all that it holds."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    held = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return sys.getsizeof(value) + sum(_bytes(one, seen) for one in held)


def test_the_rows_of_many_heads_take_memory_by_the_version() -> None:
    """Lanes are open from each head to the end. A list of them for some rows would need quadratic memory."""
    sizes = {}
    for heads in (500, 2000):
        with llvs.Store(storage="memory") as store:
            root = store.make_version(insert={"a": b"1"}, timestamp=1.0)
            for number in range(heads):
                below = store.make_version(root, update={"a": b"2"}, timestamp=1000.0 + number)
                store.make_version(below, update={"a": b"1"}, timestamp=1e9 + number)
            index = HistoryIndex(store, 1)
            assert len(list(index.ids())) == 2 * heads + 1
            held = [value for value in vars(index).values() if isinstance(value, (list, dict))] + list(vars(index._lanes).values())
            sizes[heads] = _bytes(held, set())
            assert [row["row"] for row in index.rows(heads, 90)] == list(range(heads, heads + 90)) and index.rows(9 * heads, 9) == []
    assert sizes[2000] <= 4.2 * sizes[500], sizes
    assert sizes[2000] <= 4001 * 1000
