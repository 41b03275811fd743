"""What a device's program answers, and whom."""

from __future__ import annotations

import contextlib
import http.client
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LOCO, Running
from running import enter

sys.path.insert(0, str(LOCO))

import book  # noqa: E402
import told  # noqa: E402

PATHS = ["/", "/main.js", "/api/book", "/api/news", "/photo/portrait-ada-ruiz", "/no/such/place"]
#: Those of the page itself, which hold nothing of the book.
FILES = ["/", "/main.js"]


def status(running: Running, method: str, path: str, **headers: str) -> int:
    """What comes of a request with these headers alone."""
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
    files = list((LOCO / "page").iterdir())
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
        assert first["path"] == second["path"] and [one["value"] for one in second["sides"]] == ["an ape\n", "a cow\n"]
        laptop.choose(id, second["version"], second["mark"], "older")
        assert laptop.people[id].notes == "a bee\nand\na cow\n"
        (left,) = told.contact(laptop, id)["conflicts"]
        assert left == first
        with pytest.raises(book.Refused, match="decided already"):
            laptop.choose(id, second["version"], second["mark"], "newer")
