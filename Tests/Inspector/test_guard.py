"""Who may talk to the inspector, and what its answers allow."""

from __future__ import annotations

from typing import Callable

import pytest
from conftest import ADDRESS, PORT, TOKEN, Client

COOKIE = f"llvs-{PORT}={TOKEN}"
PLACES = ["/", "/main.js", "/api/summary", "/api/history", "/api/data?id=a&at=@", "/api/news", "/no/such/place"]


def ask(client: Client, path: str, method: str = "GET", **headers: str) -> object:
    """A request with these headers alone, whose names have _ for -."""
    client.http.cookies.clear()
    return client.http.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("path", PLACES)
def test_without_a_token_there_is_nothing(inspect: Callable[..., Client], path: str) -> None:
    client = inspect()
    for cookie in ("", "llvs-4711=", f"llvs-1={TOKEN}", "llvs-4711=the-tokem", f"llvs-4711={TOKEN}x", 'llvs-4711="', f"{TOKEN}"):
        answer = ask(client, path, cookie=cookie)
        assert answer.status_code == 401, (cookie, answer.text)
        assert "contact" not in answer.text


HOSTS = ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.1.evil.example:{PORT}", f"[::1]:{PORT}", ""]


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_was_rebound_gets_nothing(inspect: Callable[..., Client], host: str) -> None:
    client = inspect()
    for path in (*PLACES, f"/?token={TOKEN}"):
        answer = ask(client, path, host=host, cookie=COOKIE)
        assert answer.status_code == 421, path
        assert "set-cookie" not in answer.headers


def test_another_origin_gets_nothing(inspect: Callable[..., Client]) -> None:
    client = inspect(write=True)
    for origin in ("https://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1", f"http://localhost:{PORT}"):
        assert ask(client, "/api/summary", cookie=COOKIE, origin=origin).status_code == 403
        assert ask(client, "/api/change/edit", "POST", cookie=COOKIE, origin=origin).status_code == 403
    for site in ("cross-site", "same-site"):
        assert ask(client, "/api/summary", cookie=COOKIE, sec_fetch_site=site).status_code == 403
    assert ask(client, "/api/change/edit", "POST", cookie=COOKIE).status_code == 403
    assert ask(client, "/api/summary", "OPTIONS", cookie=COOKIE, origin=ADDRESS).status_code == 405
    answer = ask(client, "/api/summary", cookie=COOKIE, origin=ADDRESS, sec_fetch_site="same-origin")
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_token_becomes_a_cookie(inspect: Callable[..., Client]) -> None:
    client = inspect()
    answer = ask(client, f"/?token={TOKEN}", sec_fetch_site="cross-site")
    assert answer.status_code == 303 and answer.headers["location"] == "/"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie
    assert ask(client, "/", cookie=cookie.split(";")[0]).status_code == 200
    for wrong in ("/?token=", "/?token=x", f"/?token={TOKEN}&token=x", "/?token=%ff"):
        refused = ask(client, wrong)
        assert refused.status_code == 401 and "set-cookie" not in refused.headers
    assert ask(client, f"/api/summary?token={TOKEN}").status_code == 401


@pytest.mark.parametrize("path", [*PLACES, "/look.css", "/?token=wrong", f"/?token={TOKEN}"])
def test_every_answer_says_what_it_is(inspect: Callable[..., Client], path: str) -> None:
    client = inspect()
    if path == "/api/news":
        client.inspected.news.close()  # its stream never ends else
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
