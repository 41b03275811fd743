"""Changes that the page makes; without `--write` it can make none."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any, Callable

import llvs
import pytest
import stores
from conftest import ADDRESS, Client

from llvs.inspector.inspected import Inspected

Inspect = Callable[..., Client]


def head(client: Client) -> str:
    return str(client.get("summary")["head"])


def ann(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.get("value", at=head(client), id="contact/ann")["text"])
    return found


@pytest.mark.parametrize("what", ["choose", "edit", "remove", "revert", "undo", "redo"])
def test_nothing_is_changed_unless_it_is_allowed(inspect: Inspect, what: str) -> None:
    client = inspect()
    before = head(client)
    status, answer = client.change(what, at=before, id="contact/ann", text="x", version=before, choice="older", mark="0")
    assert status == 403 and "--write" in answer["error"]
    assert head(client) == before
    with pytest.raises(llvs.Error):
        client.inspected.store.make_version(before, update={"a": b"1"})


def test_a_decision_of_a_merge_is_made_otherwise(inspect: Inspect) -> None:
    client = inspect(write=True)
    merge = client.get("merge", version="@~1")["version"]["id"]
    assert ann(client)["phone"] == "+49 228 1000"
    before = client.get("conflicts", at=head(client))["count"]
    (mark,) = [record["mark"] for record in client.get("merge", version=merge)["conflicts"] if record["path"] == ["phone"]]
    status, answer = client.change("choose", at=head(client), version=merge, id="contact/ann", mark=mark, choice="older")
    assert status == 200, answer
    assert ann(client)["phone"] == "+49 228 9999" and ann(client)["visits"] == 4
    assert client.get("version", version=answer["version"]["id"])["metadata"]["device"] == "llvs inspect"
    assert client.get("conflicts", at=head(client))["count"] < before
    status, answer = client.change("choose", at=head(client), version=merge, id="contact/ann", mark=mark, choice="newer")
    assert status == 409 and "edit the value instead" in answer["error"]
    assert client.change("choose", at=head(client), version=merge, id="contact/ann", mark="0", choice="newer")[0] == 404


def test_one_of_several_decisions_in_a_text_is_made_otherwise(inspect: Inspect) -> None:
    """Both decisions have the same path."""
    client = inspect(write=True)
    store = client.inspected.store
    rules = b'{"merge":1,"ids":{"two/":{"/t":"text","/n":{"as":"counter","max":1}}}}'
    base = store.make_version(head(client), update={"__llvs_schema": rules, "two/1": b'{"n":0,"t":"a cat\\nand\\na dog\\n"}'})
    older = store.make_version(base, update={"two/1": b'{"n":1,"t":"a fox\\nand\\na cow\\n"}'})
    newer = store.make_version(base, update={"two/1": b'{"n":1,"t":"a bee\\nand\\nan ape\\n"}'})
    merge = store.merge(older, newer)
    client.inspected.changed()
    number, first, second = client.get("merge", version=merge.id)["conflicts"]
    assert (number["kind"], number["hasSides"], first["hasSides"]) == ("bound", False, True)
    assert first["path"] == second["path"] == ["t"] and second["older"]["text"] == "a cow"
    assert len({record["mark"] for record in (number, first, second)}) == 3
    status, answer = client.change("choose", at=merge.id, version=merge.id, id="two/1", mark=second["mark"], choice="older")
    assert status == 200, answer
    assert store.at(answer["version"]["id"])["two/1"] == b'{"n":2,"t":"a bee\\nand\\na cow\\n"}'


@pytest.mark.parametrize("rule, has_sides", [("counter", False), ({"as": "counter", "delete": "delete"}, False), ("register", True)])
def test_no_side_of_a_counter_that_was_removed_is_offered(inspect: Inspect, rule: Any, has_sides: bool) -> None:
    client = inspect(write=True)
    store = client.inspected.store
    rules = json.dumps({"merge": 1, "ids": {"one/": {"/n": rule}}}).encode()
    base = store.make_version(head(client), update={"__llvs_schema": rules, "one/1": b'{"n":1}'})
    merge = store.merge(store.make_version(base, update={"one/1": b"{}"}), store.make_version(base, update={"one/1": b'{"n":3}'}))
    client.inspected.changed()
    (record,) = client.get("merge", version=merge.id)["conflicts"]
    assert (record["kind"], record["hasSides"]) == ("delete-edit", has_sides)
    side = "older" if record["stands"] == "newer" else "newer"
    status, answer = client.change("choose", at=merge.id, version=merge.id, id="one/1", mark=record["mark"], choice=side)
    assert (status == 200) == has_sides, answer


def test_editing_removing_undoing_and_redoing(inspect: Inspect) -> None:
    client = inspect(write=True)
    store = client.inspected.store
    assert client.change("edit", at=head(client), id="note/new", text="hällo")[0] == 200
    assert client.change("edit", at=head(client), id="raw/checksum", base64=base64.b64encode(b"\0\xff").decode())[0] == 200
    assert client.change("remove", at=head(client), id="contact/cleo")[0] == 200
    state = store.at(head(client))
    assert state["note/new"] == "hällo".encode() and state["raw/checksum"] == b"\0\xff" and "contact/cleo" not in state
    assert client.get("summary")["canUndo"] and not client.get("summary")["canRedo"]
    assert client.change("undo", at=head(client))[0] == 200
    assert "contact/cleo" in store.at(head(client)) and client.get("summary")["canRedo"]
    assert client.change("redo", at=head(client))[0] == 200
    assert "contact/cleo" not in store.at(head(client))
    for _ in range(3):
        assert client.change("undo", at=head(client))[0] == 200
    assert client.change("undo", at=head(client))[0] == 409
    assert "note/new" not in store.at(head(client))


def test_reverting(inspect: Inspect) -> None:
    client = inspect(write=True)
    moved = next(row["id"] for row in client.get("history")["rows"] if row["what"] == "Ann has moved")
    status, answer = client.change("revert", at=head(client), version=moved)
    assert status == 200 and "in 1 value." in answer["message"]
    assert ann(client)["town"] == "Ulm" and ann(client)["visits"] == 4
    status, answer = client.change("revert", at=head(client), version=moved)
    assert status == 200 and answer["version"] is None


def test_a_change_is_made_on_a_head_only(inspect: Inspect) -> None:
    client = inspect(write=True)
    old = client.get("history")["rows"][-1]["id"]
    for what in ("edit", "remove", "revert", "choose"):
        status, answer = client.change(what, at=old, id="contact/ann", text="x", version=old, choice="older", mark="0")
        assert status == 409 and "newest" in answer["error"]
    assert len(list(client.inspected.store.history())) == 8


@pytest.mark.parametrize("body", [b"", b"[]", b"nothing", b'{"at": 1}', b'{"at": "@"}', b'{"at": "@", "id": ""}', b'{"at":"@","id":"a"}',
                                  b'{"at":"@","id":"a","text":"\\ud800"}', b'{"at":"@","id":"a","base64":"?"}', b"[" * 100_000, b"\xff",
                                  b'{"at":"@","id":"' + b"x" * 5000 + b'","text":""}'])
def test_changes_that_cannot_be_read(inspect: Inspect, body: bytes) -> None:
    client = inspect(write=True)
    before = head(client)
    answer = client.http.post("/api/change/edit", content=body, headers={"origin": ADDRESS, "content-type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]
    assert head(client) == before


def test_a_form_of_another_page_is_no_change(inspect: Inspect) -> None:
    client = inspect(stores.story, write=True)
    content = json.dumps({"at": "@", "id": "a", "text": "b"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert client.http.post("/api/change/edit", content=content, headers={"origin": ADDRESS, "content-type": kind}).status_code == 415
    assert client.http.get("/api/change/edit").status_code == 405
    large = client.http.post("/api/change/edit", content=b" " * (17 << 20), headers={"origin": ADDRESS, "content-type": "application/json"})
    assert large.status_code == 413
    status, _ = client.change("no-such-change", at="@")
    assert status == 404


def test_changes_go_on_from_one_another(tmp_path: Path) -> None:
    """The application is closed, so no process moves its current version. It receives all changes when it is opened again."""
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path, device="laptop") as application:
        begun = application.save(update={"a": b"1"}).id
    with contextlib.closing(Inspected(path, write=True)) as inspected:
        client = Client(inspected)
        assert client.get("summary")["work"] == begun == client.get("summary")["current"]
        for number in (2, 3, 4):
            status, answer = client.change("edit", at=client.get("summary")["work"], id="a", text=str(number))
            assert status == 200, answer
            assert answer["version"]["predecessors"] == [begun]
            begun = answer["version"]["id"]
            assert client.get("summary")["work"] == begun == client.get("version", version="@")["id"]
        assert client.change("undo", at=client.get("summary")["work"])[0] == 200
        assert client.get("summary")["madeHere"] == 4 and client.get("summary")["current"] != client.get("summary")["work"]
    with contextlib.closing(Inspected(path, write=True)) as inspected:
        client, work = Client(inspected), Client(inspected).get("summary")["work"]
        assert client.get("value", at="@", id="a")["text"] == "3", "an inspector that is started again goes on there"
        assert client.change("edit", at=work, id="b", text="5")[0] == 200
        rows = client.get("history")["rows"]
        assert [row["id"] for row in rows if row["work"]] == [client.get("summary")["work"]] == [rows[0]["id"]]
    with llvs.Coordinator(path, device="laptop") as application:
        application.merge()
        assert (application["a"], application["b"]) == (b"3", b"5")


def test_the_application_and_the_inspector_see_each_other(tmp_path: Path) -> None:
    path = tmp_path / "notes.llvs"
    with llvs.Coordinator(path, device="laptop") as application:
        application.save(update={"a": b"1"})
        with contextlib.closing(Inspected(path, write=True)) as inspected:
            client = Client(inspected)
            assert client.change("edit", at="@", id="b", text="of the inspector")[0] == 200
            application.save(update={"c": b"of the application"})
            assert client.change("edit", at="@", id="d", text="more")[0] == 200, "the application went on elsewhere"
            application.merge()
            assert (application["b"], application["d"]) == (b"of the inspector", b"more")
            inspected.store.reload()
            inspected.changed()
            assert client.get("summary")["work"] == application.current_version.id, "and the inspector goes on from the merge"
            assert client.get("value", at="@", id="c")["text"] == "of the application"


def test_going_on_from_a_head_that_is_chosen(inspect: Inspect) -> None:
    client = inspect(write=True)
    other = next(one["id"] for one in client.get("heads")["heads"] if one["branch"] == "redesign")
    assert client.get("summary")["work"] != other
    assert client.change("work", at=client.get("history")["rows"][-1]["id"])[0] == 409, "no head"
    assert client.change("work", at=other)[0] == 200
    assert client.get("summary")["work"] == other == client.get("version", version="@")["id"]
    status, answer = client.change("edit", at=other, id="settings/theme", text='"green"')
    assert status == 200 and answer["version"]["predecessors"] == [other]
    assert inspect().change("work", at=other)[0] == 403


def test_json_stays_json_unless_it_is_confirmed(inspect: Inspect) -> None:
    client = inspect(write=True)
    before = head(client)
    for text in ('{"name": "Ann",}', '{"a": 1, "a": 2}', "NaN", "", "[" * 100_000 + "]" * 100_000):
        status, answer = client.change("edit", at="@", id="contact/ann", text=text)
        assert status == 409 and "was JSON before" in answer["error"] and answer["confirm"] == "no-json", text
    assert "line 1, column" in client.change("edit", at="@", id="contact/ann", text='{"name": "Ann",}')[1]["error"]
    assert head(client) == before
    assert client.change("edit", at="@", id="contact/ann", text="[1, 2.50]")[0] == 200
    assert client.change("edit", at="@", id="contact/ann", text="{", confirmed="no-json")[0] == 200
    assert client.change("edit", at="@", id="contact/ann", text="<", confirmed=None)[0] == 200, "it is no JSON any more"
    assert client.change("edit", at="@", id="plan/moving", text="[")[0] == 200
