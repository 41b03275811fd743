"""Which clients may use the inspector, and what its answers allow."""

from __future__ import annotations

from typing import Callable

import pytest
from conftest import ADDRESS, PORT, Client

#: Files of the page, which hold nothing of the store.
FILES = ["/", "/main.js"]
PLACES = ["/api/summary", "/api/history", "/api/data?id=a&at=@", "/api/news", "/no/such/place"]


def ask(client: Client, path: str, method: str = "GET", **headers: str) -> object:
    """A request with these headers alone, whose names have _ for -."""
    client.http.headers.pop("x-llvs-token", None)
    return client.http.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("path", PLACES)
def test_without_a_token_there_is_nothing(inspect: Callable[..., Client], path: str) -> None:
    client = inspect()
    client.inspected.news.close()  # an admitted stream ends immediately, and the test fails
    token = client.token
    wrong = [{"x_llvs_token": given} for given in ("", token[:-1], f"{token}x", f"{token}, {token}")]
    cookies = [("cookie", f"{name}={token}") for name in (f"llvs-{PORT}", "llvs-token", "x-llvs-token")]
    places = [*cookies, ("authorization", f"Bearer {token}"), ("x_llvs_key", token)]
    for headers in [{}, *wrong, *({name: given} for name, given in places)]:
        answer = ask(client, path, **headers)
        assert answer.status_code == 401, (headers, answer.text)
        assert "contact" not in answer.text
    assert ask(client, f"{path}{'&' if '?' in path else '?'}token={token}").status_code == 401


@pytest.mark.parametrize("path", FILES)
def test_files_of_the_page_need_no_token_and_hold_none(inspect: Callable[..., Client], path: str) -> None:
    client = inspect()
    answer = ask(client, path)
    assert answer.status_code == 200 and "set-cookie" not in answer.headers
    assert "contact" not in answer.text and "notes.llvs" not in answer.text and client.token not in answer.text
    assert ask(client, path, "POST", origin=ADDRESS).status_code == 401


HOSTS = ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.1.evil.example:{PORT}", f"[::1]:{PORT}", ""]


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_was_rebound_gets_nothing(inspect: Callable[..., Client], host: str) -> None:
    client = inspect()
    for path in (*PLACES, *FILES):
        assert ask(client, path, host=host, x_llvs_token=client.token).status_code == 421, path
    address = client.guard.new_address()
    assert client.enter(address, host=host).status_code == 421 and client.enter(address).status_code == 200


def test_another_origin_gets_nothing(inspect: Callable[..., Client]) -> None:
    client = inspect(write=True)
    for origin in ("https://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1", f"http://localhost:{PORT}"):
        assert ask(client, "/api/summary", x_llvs_token=client.token, origin=origin).status_code == 403
        assert ask(client, "/api/change/edit", "POST", x_llvs_token=client.token, origin=origin).status_code == 403
    for site in ("cross-site", "same-site"):
        assert ask(client, "/api/summary", x_llvs_token=client.token, sec_fetch_site=site).status_code == 403
        assert ask(client, "/main.js", sec_fetch_site=site).status_code == 403
        assert ask(client, "/", sec_fetch_site=site).status_code == 200, "a file of the user's leads there"
    assert ask(client, "/api/change/edit", "POST", x_llvs_token=client.token).status_code == 403
    assert ask(client, "/api/summary", "OPTIONS", x_llvs_token=client.token, origin=ADDRESS).status_code == 405
    answer = ask(client, "/api/summary", x_llvs_token=client.token, origin=ADDRESS, sec_fetch_site="same-origin")
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_an_address_lets_one_window_in(inspect: Callable[..., Client]) -> None:
    client = inspect()
    used: list[str] = []
    address, other = client.guard.new_address(lambda: used.append("first")), client.guard.new_address()
    assert client.token not in address and address.startswith(f"{ADDRESS}/#key=")
    for site in ("cross-site", "same-site"):
        assert client.enter(address, sec_fetch_site=site).status_code == 403
    assert client.enter(address, origin="https://evil.example").status_code == 403
    assert ask(client, "/enter", "POST", x_llvs_key=address.partition("=")[2]).status_code == 403, "no page: it has no origin"
    assert ask(client, "/enter", x_llvs_key=address.partition("=")[2]).status_code == 401
    assert used == []
    answer = client.enter(address)
    assert (answer.status_code, answer.text) == (200, client.token) and "set-cookie" not in answer.headers and used == ["first"]
    for wrong in (address, "", "#key=", "#key=x", f"{other}x", other[:-1], f"#key={client.token}"):
        refused = client.enter(wrong)
        assert refused.status_code == 401 and client.token not in refused.text, wrong
    assert client.enter(other).text == client.token and used == ["first"]


@pytest.mark.parametrize("path", [*PLACES, *FILES, "/look.css", "/enter"])
def test_every_answer_says_what_it_is(inspect: Callable[..., Client], path: str) -> None:
    client = inspect()
    if path == "/api/news":
        client.inspected.news.close()  # otherwise its stream never ends
    answer = client.http.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "app.py", "%2e%2e", "main.js%00", "look.css%2f..", "a" * 5000 + ".js"])
def test_only_files_of_the_page_are_given(inspect: Callable[..., Client], name: str) -> None:
    answer = inspect().http.get(f"/{name}")
    assert answer.status_code == 404 and "def " not in answer.text


def test_files_of_the_page_load_nothing_from_elsewhere(inspect: Callable[..., Client]) -> None:
    from llvs.inspector.app import PAGE
    from llvs.inspector.shared import FILES

    files = [*FILES.values(), *PAGE.iterdir()]
    assert len(files) > 10
    for path in files:
        text = path.read_text()
        assert len(text.splitlines()) <= 400, path
        assert max(map(len, text.splitlines())) <= 140, path
        assert "https://" not in text and "innerHTML" not in text and "eval(" not in text and "document.write" not in text, path
        assert text.count("http://") == text.count("http://www.w3.org/2000/svg"), path
        assert "style=" not in text or path.suffix != ".html", path
