"""The answers of a device's process, and which clients get them."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import LOCO, Running
from running import enter

sys.path.insert(0, str(LOCO))

import book  # noqa: E402
import llvs  # noqa: E402
import told  # noqa: E402

PATHS = ["/", "/main.js", "/api/book", "/api/news", "/photo/portrait-ada-ruiz", "/no/such/place"]
#: The files of the page itself, which hold nothing of the book.
FILES = ["/", "/main.js"]


def status(running: Running, method: str, path: str, **headers: str) -> int:
    """Returns the status of a request with only these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", running.place("Laptop")[1], timeout=300)
    try:
        connection.putrequest(method, path, skip_host="host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_who_is_answered(running: Running) -> None:
    (address, port), token = running.place("Laptop"), running.tokens["Laptop"]
    for path in PATHS:
        assert status(running, "GET", path) == (200 if path in FILES else 401)
        assert status(running, "GET", path, x_llvs_token=token + "x") == (200 if path in FILES else 401)
        assert status(running, "GET", path, x_llvs_token=running.tokens["Phone"]) == (200 if path in FILES else 401)
        assert status(running, "GET", path, cookie=f"llvs-{port}={token}") == (200 if path in FILES else 401)
        assert status(running, "GET", path, x_llvs_token=token, host=f"rebound.example:{port}") == 421
        assert status(running, "GET", path, x_llvs_token=token, origin="https://evil.example") == 403
        for site in ("cross-site", "same-site"):  # the other device's page is of the same site
            assert status(running, "GET", path, x_llvs_token=token, sec_fetch_site=site) == (200 if path == "/" else 403)
    assert status(running, "POST", "/api/undo", x_llvs_token=token) == 403
    assert status(running, "POST", "/api/undo", x_llvs_token=token, origin="null") == 403
    assert status(running, "POST", "/api/undo", origin=address) == 401
    assert status(running, "GET", f"/api/book?token={token}") == 401
    assert status(running, "GET", "/api/book", x_llvs_token=token, origin=address) == 200
    assert status(running, "POST", "/api/save", x_llvs_token=token, origin=address, content_length="99999999999") == 413
    assert token not in "".join(path.read_text() for path in running.folder.iterdir() if path.is_file())


def test_an_address_lets_one_window_in(running: Running) -> None:
    (_, port), key = running.place("Laptop"), running.addresses["Laptop"].partition("#key=")[2]
    assert enter(running.place("Phone")[1], key)[0] == 401, "that of the other device"
    assert enter(port, key) == (200, running.tokens["Laptop"])
    code, said = enter(port, key)
    assert code == 401 and "used already" in said


def test_what_the_page_never_asks(running: Running) -> None:
    for path, given in (
        ("/api/save", b"["), ("/api/save", b"\xff"), ("/api/save", []), ("/api/save", {}), ("/api/save", {"card": 5}),
        ("/api/save", {"card": {"name": "x", "phones": [5]}}), ("/api/delete", {}), ("/api/restore", {"id": "a", "version": "nope"}),
        ("/api/choose", {"id": "a", "version": "b", "choice": "newer"}), ("/api/member", {"group": "a", "id": "b"}),
        ("/api/nope", {}), ("/api/save", b"[" * 100_000),
    ):
        code, said = running.ask("Laptop", path, given)
        assert code == 404 and "Traceback" not in str(said), (path, given, said)
    for given in ({"card": {"name": "  "}}, {"id": "nobody", "card": {"name": "x"}}, {"card": {"name": "x"}, "picture": "!"},
                  {"card": {"name": "x"}, "picture": "aGFsbG8="}):
        assert running.ask("Laptop", "/api/save", given)[0] == 409
    assert running.ask("Laptop", "/api/undo", {})[0] == 409
    assert running.ask("Laptop", "/api/undo", b"{}", **{"content-type": "text/plain"})[0] == 415
    for path in ("/../server.py", "/server.py", "/%2e%2e/book.py", "/photo/../x", "/api/contact"):
        assert running.ask("Laptop", path)[0] == 404
    assert running.ask("Laptop", "/api/book")[1]["count"] == 0


def test_the_order_and_tags(running: Running) -> None:
    for name, tags in (("Zoe", ["choir"]), ("\u00e9mile", ["choir", "work"]), ("Eva", []), ("frank", ["work"])):
        assert running.ask("Laptop", "/api/save", {"card": {"name": name, "tags": tags}})[0] == 200
    shown = running.ask("Laptop", "/api/book")[1]
    assert [one["name"] for one in shown["contacts"]] == ["\u00e9mile", "Eva", "frank", "Zoe"], "neither case nor accents count"
    assert shown["tags"] == [{"name": "choir", "count": 2}, {"name": "work", "count": 2}]
    found = running.ask("Laptop", "/api/book?tag=work")[1]
    assert [one["name"] for one in found["contacts"]] == ["\u00e9mile", "frank"] and found["count"] == 4
    assert running.ask("Laptop", "/api/book?tag=wor")[1]["contacts"] == []


def test_restarts_and_problems(running: Running, tmp_path: Path) -> None:
    token = running.tokens["Laptop"]
    running.ask("Laptop", "/api/save", {"card": {"name": "Ann"}})
    assert running.ask("Laptop", "/api/online", {"isOnline": False})[0] == 200
    assert running.ask("Laptop", "/api/book")[1]["light"]["isOnline"] is False
    busy = subprocess.run([sys.executable, str(LOCO), str(running.folder), "--device", "Laptop", "--no-open"],
                          capture_output=True, text=True, timeout=300)
    assert busy.returncode == 3 and busy.stderr.startswith("Laptop cannot start: ") and "Traceback" not in busy.stderr
    other = subprocess.Popen([sys.executable, str(LOCO), str(running.folder), "--device", "Tablet", "--no-open"],
                             stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline().startswith("Tablet: http://127.0.0.1:")
    other.send_signal(signal.SIGINT)
    assert other.wait(300) == 0
    other.stdout.close()
    assert running.end() == 0
    again = Running(running.folder)
    running.process = again.process
    assert status(again, "GET", "/api/book", x_llvs_token=token) == 401, "another program may have had the port"
    assert again.ask("Laptop", "/api/book")[1]["count"] == 1


@pytest.mark.parametrize("place", ["/dev/null/x", "ftp://nowhere"])
def test_a_shared_place_that_cannot_be(tmp_path: Path, place: str) -> None:
    command = [sys.executable, str(LOCO), str(tmp_path / "loco"), "--shared", place, "--no-open", "--device", "Laptop"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and done.stderr.startswith("Laptop cannot start: "), done.stderr


def test_files_of_the_page() -> None:
    files = [*(LOCO / "page").iterdir(), *(LOCO / "desk").iterdir()]
    assert len(files) > 8
    for path in files:
        text = path.read_text()
        assert len(text.splitlines()) <= 400 and max(map(len, text.splitlines())) <= 140, path
        assert "http" not in text and "innerHTML" not in text and "eval(" not in text and "document.write" not in text, path
        assert "style=" not in text or path.suffix != ".html", path


def test_two_conflicts_in_the_notes_of_one_contact(tmp_path: Path) -> None:
    """The page names the one that is decided, not only where it is."""
    with contextlib.closing(book.Book(str(tmp_path / "store"), str(tmp_path / "shared"), "Laptop", lambda: None)) as laptop:
        laptop.set_online(False)
        id, notes = laptop.save(None, book.Contact(name="Ann", notes="a cat\nand\na dog\n"), None), laptop.notes
        key, base = f"contact/{id}", notes.current_version.id
        for cat, dog in (("a fox", "a cow"), ("a bee", "an ape")):
            data = notes[key].replace(b"a cat", cat.encode()).replace(b"a dog", dog.encode())
            notes.store.make_version(base, update={key: data})
        notes.merge()
        assert laptop.people[id].notes == "a bee\nand\nan ape\n"
        first, second = told.contact(laptop, id)["conflicts"]
        assert first["path"] == second["path"] and [one["value"] for one in second["sides"]] == ["an ape", "a cow"]
        laptop.choose(id, second["version"], second["marks"], "older")
        assert laptop.people[id].notes == "a bee\nand\na cow\n"
        (left,) = told.contact(laptop, id)["conflicts"]
        assert left == first
        with pytest.raises(book.Refused, match="decided already"):
            laptop.choose(id, second["version"], second["marks"], "newer")


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[book.Book]:
    """A book that is offline."""
    with contextlib.closing(book.Book(str(tmp_path / "store"), str(tmp_path / "shared"), "Laptop", lambda: None)) as made:
        made.set_online(False)
        yield made


def fork(laptop: book.Book, id: str, *edits: Any) -> None:
    """Lets two devices change a contact apart, and merges. An edit of None removes it."""
    key, base = f"contact/{id}", laptop.notes.current_version.id
    for number, edit in enumerate(edits):
        data = json.dumps({**json.loads(laptop.notes[key]), **edit}).encode() if edit is not None else None
        laptop.notes.store.make_version(base, update=None if data is None else {key: data}, remove=[key] if data is None else None)
    laptop.notes.merge()


def test_an_undone_decision_is_open_again(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", town="Ulm"), None)
    fork(laptop, id, {"town": "Bonn"}, {"town": "Bern"})
    (first,) = told.contact(laptop, id)["conflicts"]
    for choice, town in (("older", "Bonn"), ("result", "Bern")):
        laptop.choose(id, first["version"], first["marks"], choice)
        assert laptop.people[id].town == town and told.contact(laptop, id)["conflicts"] == []
        assert laptop.notes.undo_description == "Decide the town of Ann" == told.history(laptop, id)[0]["what"]
        assert laptop.undo() == "Taken back: Decide the town of Ann."
        assert laptop.people[id].town == "Bern" and told.contact(laptop, id)["conflicts"] == [first]
        assert told.book(laptop, "", "", "")["conflicts"] == 1 == len(told.conflicts(laptop))
        laptop.undo(again=True)
        assert laptop.people[id].town == town and told.conflicts(laptop) == []
        laptop.undo()
    # A later change leaves nothing to decide.
    laptop.save(id, book.Contact(name="Ann", town="Genf"), None)
    assert told.conflicts(laptop) == []


def test_a_phone_is_one_question(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", phones=[book.Phone("p", "home", "1")]), None)
    fork(laptop, id, {"phones": [{"id": "p", "label": "work", "number": "2"}]}, {"phones": [{"id": "p", "label": "mobile", "number": "3"}]})
    (one,) = told.contact(laptop, id)["conflicts"]
    assert one["what"] == "phone" and [side["value"] for side in one["sides"]] == ["mobile: 3", "work: 2"]
    assert told.book(laptop, "", "", "")["conflicts"] == 1
    laptop.choose(id, one["version"], one["marks"], "older")
    assert laptop.people[id].phones == [book.Phone("p", "work", "2")] and told.conflicts(laptop) == []
    laptop.undo()
    assert laptop.people[id].phones == [book.Phone("p", "mobile", "3")] and told.contact(laptop, id)["conflicts"] == [one]


def test_a_conflict_shows_the_whole_of_what_it_is_about(laptop: book.Book) -> None:
    notes = "She sings alto. Her studio is open on Saturdays.\nAsk first."
    id = laptop.save(None, book.Contact(name="Ann", notes=notes), None, b"\xff\xd8\xff1")
    photos = [laptop._keep(b"\xff\xd8\xff" + other, "g") for other in (b"2", b"3")]
    fork(laptop, id, {"photo": photos[0], "notes": notes.replace("Saturdays", "Sundays")},
         {"photo": photos[1], "notes": notes.replace("Saturdays", "Mondays. Bring cake")})
    text, picture = sorted(told.contact(laptop, id)["conflicts"], key=lambda one: one["what"])
    assert [side["photo"] for side in picture["sides"]] == photos[::-1] and picture["base"] is None
    newer, older = text["sides"]
    assert older["words"] == [("=", "Her studio is open on "), ("-", "Sundays"), ("=", ".")] or older["value"].startswith("She sings")
    assert "".join(piece for _, piece in newer["words"]) == newer["value"] and "Mondays. Bring cake" in newer["value"]
    assert ("+", "Mondays. Bring cake") in newer["words"] and "Her studio is open on " in newer["value"]


def test_undo_says_what_it_takes_back(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", town="Ulm"), None)
    laptop.save(id, book.Contact(name="Ann", town="Bonn"), None)
    assert laptop.next_undo() == "Change the town of Ann" == told.book(laptop, "", "", "")["undo"]
    key, now = f"contact/{id}", laptop.notes.current_version
    for changed, left in (({"company": "Ann & Co"}, ""), ({"town": "Bern"}, "what is left of: ")):
        now = laptop.notes.store.make_version(now, update={key: json.dumps({**json.loads(laptop.notes[key]), **changed}).encode()})
        laptop.notes.merge()
        assert laptop.next_undo() == left + "Change the town of Ann"
    assert laptop.undo().startswith("There is nothing to undo of this: Change the town of Ann.") and laptop.people[id].town == "Bern"
    assert laptop.next_undo() == "Add Ann" and laptop.next_undo(again=True) is None


def test_the_book_at_another_time(laptop: book.Book) -> None:
    ann = laptop.save(None, book.Contact(name="Ann"), None, b"\xff\xd8\xff1")
    laptop.save_group(None, "Choir")
    then = laptop.notes.current_version.id
    laptop.remove(ann)
    laptop.save(None, book.Contact(name="Ben"), None)
    assert [(one["what"], one["by"]) for one in told.moments(laptop)][-4:] == [
        (what, "Laptop") for what in ("Add Ann", "Add the group Choir", "Delete Ann", "Add Ben")]
    was = told.book(laptop, "", "", "", then)
    assert [one["name"] for one in was["contacts"]] == ["Ann"] and [one["name"] for one in was["groups"]] == ["Choir"]
    assert told.contact(laptop, ann, then)["card"]["name"] == "Ann" and told.contact(laptop, ann)["card"] is None

    def names() -> list[str]:
        return [one["name"] for one in told.book(laptop, "", "", "")["contacts"]]

    laptop.restore_all(then)
    assert names() == ["Ann"] and laptop.notes.undo_description.startswith("Restore the book of ")
    with pytest.raises(book.Refused, match="already as it was"):
        laptop.restore_all(then)
    laptop.undo()
    assert names() == ["Ben"]
    with pytest.raises(llvs.errors.UnknownVersionError):
        laptop.restore_all("nothing")


def test_only_the_window_with_both_shows_devices_in_frames(running: Running) -> None:
    def policy(name: str) -> tuple[str, Any]:
        with urllib.request.urlopen(running.place(name)[0] + "/", timeout=300) as answer:
            return answer.headers["content-security-policy"], answer.headers["x-frame-options"]

    (both, _), (laptop, _), (phone, _) = (running.place(name) for name in ("Both", "Laptop", "Phone"))
    for name in ("Laptop", "Phone"):
        found, option = policy(name)
        assert f"frame-ancestors {both};" in found + ";" and "frame-src" not in found and option is None
    found, option = policy("Both")
    assert "frame-ancestors 'none'" in found and found.endswith(f"frame-src {laptop} {phone}") and option == "DENY"
    for path in ("/api/desk", "/api/enter", "/api/plug"):
        assert running.ask("Laptop", path, {})[0] == 404, "a device is not asked for the other one"
        connection = http.client.HTTPConnection("127.0.0.1", running.place("Both")[1], timeout=300)
        connection.request("POST", path, "{}", {"origin": both, "content-type": "application/json"})
        assert connection.getresponse().status == 401
        connection.close()


def test_the_sentence_around_a_part() -> None:
    text = "One. Her studio is open on Sundays. Two!\nThree"
    assert told.sentence(text, "Sundays") == "Her studio is open on Sundays. "
    assert told.sentence(text, "One") == "One. " and told.sentence(text, "Three") == "Three"
    assert told.sentence(text, "nothing of it") == text and told.sentence(text, "") == text
    long = "x" * 1000
    assert told.sentence(long, "nothing of it") == "nothing of it" and len(told.sentence(long, "x" * 10)) <= 310


def test_what_was_edited_is_shown_where_the_other_side_deleted(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", town="Ulm"), None)
    fork(laptop, id, None, {"notes": "Brings the wine."})
    (one,) = told.contact(laptop, id)["conflicts"]
    edited, deleted = sorted(one["sides"], key=lambda side: side["value"] is None)
    assert one["isDeletion"] and deleted["value"] is None and deleted["changed"] is None and edited["stands"]
    assert edited["changed"]["members"] == ["notes"] and edited["changed"]["card"]["notes"] == "Brings the wine."
    laptop.choose(id, one["version"], one["marks"], deleted["side"])
    assert id not in laptop.people and laptop.notes.undo_description == "Decide whether to delete Ann"
    laptop.undo()
    assert id in laptop.people and len(told.contact(laptop, id)["conflicts"]) == 1


def test_what_was_deleted_is_found_and_comes_back(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", town="Ulm"), None)
    other = laptop.save(None, book.Contact(name="Ben"), None)
    assert told.deleted(laptop) == [] and told.book(laptop, "", "", "")["deleted"] == 0
    at = laptop.notes.current_version.id
    laptop.remove(id)
    laptop.remove(other)
    found = told.deleted(laptop)
    assert [(one["name"], one["about"], one["by"]) for one in found] == [("Ben", "", "Laptop"), ("Ann", "Ulm", "Laptop")]
    assert told.book(laptop, "", "", "")["deleted"] == 2
    with pytest.raises(book.Refused, match="was deleted while this form was open") as refused:
        laptop.save(id, book.Contact(name="Ann", town="Bonn"), at)
    assert id not in laptop.people
    laptop.save(id, book.Contact(name="Ann", town="Bonn"), at, confirmed=refused.value.confirm)
    assert laptop.people[id].town == "Bonn"
    assert laptop.undelete(other) == "Ben" and laptop.people[other].name == "Ben" and told.deleted(laptop) == []
    for never in (other, "nobody"):
        with pytest.raises(book.Refused):
            laptop.undelete(never)


def test_what_cannot_be_read_is_restored_from_its_history(laptop: book.Book) -> None:
    id = laptop.save(None, book.Contact(name="Ann", town="Ulm"), None)
    laptop.notes.save(update={f"contact/{id}": b"["})
    assert told.book(laptop, "", "", "")["unreadable"] == [id] and told.contact(laptop, id)["problem"]
    newest, first = told.history(laptop, id)
    assert (newest["isUnreadable"], newest["card"], first["isUnreadable"]) == (True, None, False)
    laptop.restore(id, first["version"])
    assert laptop.people[id].town == "Ulm"
    laptop.notes.save(update={f"contact/{id}": b"["})
    laptop.remove(id)
    assert told.deleted(laptop)[0]["name"] == "Ann"


def test_neither_case_nor_accents_count_in_a_search(laptop: book.Book) -> None:
    for name in ("Jutta M\u00fcller", "Jose\u0301 Garc\u00eda", "Stra\u00dfer", "Ann"):
        laptop.save(None, book.Contact(name=name), None)
    for wanted, count in (("muller", 1), ("M\u00dcLLER jutta", 1), ("jos\u00e9", 1), ("strasser", 1), ("\u0301", 4), ("zzz", 0)):
        assert len(told.book(laptop, wanted, "", "")["contacts"]) == count, wanted


def test_a_device_is_found_where_it_was(running: Running) -> None:
    running.ask("Laptop", "/api/save", {"card": {"name": "Ann"}})
    places = {device: running.place(device) for device in ("Laptop", "Phone")}
    assert running.end() == 0
    again = Running(running.folder)
    running.process = again.process
    assert {device: again.place(device) for device in places} == places
    # If another program uses the port, or the port is invalid, the command does not wait for it.
    assert running.end() == 0
    with socket.create_server(("127.0.0.1", places["Laptop"][1])):
        (running.folder / "Phone.port").write_text("nothing")
        third = Running(running.folder)
        running.process = third.process
        assert third.place("Laptop") != places["Laptop"] and third.ask("Laptop", "/api/book")[1]["count"] == 1
