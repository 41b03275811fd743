"""Signing in with a browser, and the alternatives."""

from __future__ import annotations

import fcntl
import html
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import parse_qs, urlsplit

import llvs
import llvs.oauth
import pytest
from patience import PATIENCE, eventually
from box import Box
from clouds import Cloud, exchange
from deep import usually
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud
from service import Answer

KINDS: dict[str, Any] = {
    "gdrive": (GoogleDrive, "o/oauth2/v2/auth", "token"),
    "onedrive": (OneDrive, "common/oauth2/v2.0/authorize", "common/oauth2/v2.0/token"),
    "box": (Box, "api/oauth2/authorize", "oauth2/token"),
    "pcloud": (PCloud, "oauth2/authorize", "oauth2_token"),
}


@pytest.fixture(params=KINDS)
def cloud(request: Any, tmp_path: Path) -> Iterator[Cloud]:
    cloud = Cloud(KINDS[request.param][0](), request.param, tmp_path)
    cloud.tokens.unlink()
    yield cloud
    cloud.close()


def service(cloud: Cloud) -> llvs.oauth.Service:
    real, (_, authorize, token) = llvs.oauth.SERVICES[cloud.scheme], KINDS[cloud.scheme]
    return llvs.oauth.Service(f"{cloud.server.url}/{authorize}", f"{cloud.server.url}/{token}", real.scopes, real.parameters)


def browser(address: str) -> None:
    """Opens the address, as a user who consents immediately."""
    threading.Thread(target=lambda: urllib.request.urlopen(address, timeout=PATIENCE).read()).start()


def sign_in(cloud: Cloud, **options: Any) -> None:
    options = {"client_id": "tests", "client_secret": "s3cret-client", "show": browser, "timeout": PATIENCE, **options}
    llvs.oauth.sign_in(service(cloud), cloud.tokens, **options)


def test_signing_in(cloud: Cloud, store: llvs.Store) -> None:
    """The library exchanges with the tokens that signing in writes, and renews them."""
    sign_in(cloud)
    assert stat.S_IMODE(cloud.tokens.stat().st_mode) == 0o600
    exchange(store, cloud.place())
    # pCloud's tokens are valid until they are revoked, and cannot be renewed.
    renews = cloud.scheme != "pcloud"
    if renews:
        cloud.service.expire_tokens()
        exchange(store, cloud.place())
    assert cloud.service.accounts.refreshes == renews  # type: ignore[attr-defined]
    found = json.loads(cloud.tokens.read_text())
    assert found["client_id"] == "tests" and found["token_uri"] == service(cloud).token
    sign_in(cloud)
    name = "refresh_token" if renews else "access_token"
    assert json.loads(cloud.tokens.read_text())[name] != found[name]
    assert [path.name for path in cloud.tokens.parent.glob("*.part")] == []


def test_what_the_page_is_asked(cloud: Cloud) -> None:
    seen: list[str] = []

    def show(address: str) -> None:
        seen.append(address)
        browser(address)

    sign_in(cloud, show=show, scopes=["a", "b c"])
    sign_in(cloud, show=show)
    first, second = ({name: values[0] for name, values in parse_qs(urlsplit(each).query).items()} for each in seen)
    assert first["scope"] == "a b c" and first["code_challenge_method"] == "S256" and "s3cret" not in "".join(seen)
    assert all(first[name] != second[name] for name in ("state", "code_challenge"))
    assert first["redirect_uri"].startswith("http://127.0.0.1:")


def test_others_that_come_to_the_port(cloud: Cloud) -> None:
    """A page that guesses the port does not know the state. It is refused, and signing in continues to wait for the user."""
    told: list[int] = []

    def show(address: str) -> None:
        target = parse_qs(urlsplit(address).query)["redirect_uri"][0]

        def run() -> None:
            for query in ("", "?code=stolen", "?code=stolen&state=", "?code=stolen&state=guess", "?error=access_denied&state=x"):
                try:
                    urllib.request.urlopen(target + query, timeout=PATIENCE)
                except urllib.error.HTTPError as error:
                    told.append(error.code)
            browser(address)

        threading.Thread(target=run).start()

    sign_in(cloud, show=show)
    assert told == [400] * 5 and cloud.tokens.exists()


def test_the_user_refuses(cloud: Cloud) -> None:
    def show(address: str) -> None:
        query = parse_qs(urlsplit(address).query)
        browser(f"{query['redirect_uri'][0]}?error=access_denied&error_description=s3cret&state={query['state'][0]}")

    with pytest.raises(llvs.errors.PermissionDeniedError, match="access_denied") as raised:
        sign_in(cloud, show=show)
    assert "s3cret" not in str(raised.value) and not cloud.tokens.exists()


def test_no_peer_connects(cloud: Cloud) -> None:
    with pytest.raises(llvs.CancelledError):
        sign_in(cloud, show=lambda address: None, timeout=0.3)


def test_connections_that_say_nothing(cloud: Cloud) -> None:
    """Browsers open some connections in advance. These delay neither the user nor the timeout."""
    idle: list[socket.socket] = []

    def is_taken(port: int) -> bool:
        """Whether no connection waits at the port to be accepted."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state, queues = line.split()[:5]
            if state == "0A" and int(local.split(":")[1], 16) == port:
                return int(queues.split(":")[1], 16) == 0
        return False

    def show(address: str) -> None:
        target = urlsplit(parse_qs(urlsplit(address).query)["redirect_uri"][0])
        assert target.hostname is not None
        idle.extend(socket.create_connection((target.hostname, target.port or 0)) for _ in range(3))
        eventually(lambda: is_taken(target.port or 0))

    def show_and_go(address: str) -> None:
        show(address)
        browser(address)

    # Both calls return while these connections are open.
    sign_in(cloud, show=show_and_go, timeout=PATIENCE)
    with pytest.raises(llvs.CancelledError):
        sign_in(cloud, show=show, timeout=0.3)
    for each in idle:
        each.close()


def test_the_redirect_that_is_registered(cloud: Cloud) -> None:
    """The redirect is as in docs/cloud-drives.md except for its port."""
    page = (Path(__file__).parents[2] / "docs" / "cloud-drives.md").read_text()
    registered = re.findall(r"`(http://[^`]*)`", page[page.index("## Signing in") : page.index("## Pitfalls")])
    assert len(registered) == 2
    cloud.service.accounts.registered = registered[0]  # type: ignore[attr-defined]
    sign_in(cloud)
    assert cloud.tokens.exists()


def test_a_redirect_that_is_registered_with_its_port(cloud: Cloud) -> None:
    """If the service compares the port as well, another one is refused."""
    with socket.create_server(("127.0.0.1", 0)) as another:
        port = another.getsockname()[1]
        with pytest.raises(llvs.BusyError, match=f"has the port {port}"):
            sign_in(cloud, port=port)
    cloud.service.accounts.compares_ports = True  # type: ignore[attr-defined]
    cloud.service.accounts.registered = f"http://127.0.0.1:{port}/"  # type: ignore[attr-defined]
    # Twice, since the port can be used again immediately.
    for _ in range(2):
        sign_in(cloud, port=port)
        assert cloud.tokens.exists()

    def look(address: str) -> None:
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(address, timeout=PATIENCE)

    with pytest.raises(llvs.CancelledError):
        sign_in(cloud, show=look, timeout=0.1)
    for wrong in (-1, 65_536):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="is no port"):
            sign_in(cloud, port=wrong)


@pytest.mark.parametrize("cloud", ["gdrive", "onedrive", "box"], indirect=True)
def test_signing_in_during_a_renewal(cloud: Cloud, store: llvs.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing in waits for a renewal in progress, which would otherwise overwrite the new tokens."""
    cloud.sign_in()
    cloud.service.expire_tokens()
    begun, go_on = threading.Event(), threading.Event()

    def reading(path: str, count: int) -> None:
        # The renewal requests a token first.
        if path.split("?")[0].endswith("/" + KINDS[cloud.scheme][2].split("/")[-1]) and not begun.is_set():
            begun.set()
            go_on.wait(PATIENCE)

    cloud.service.reading = reading
    renewal = threading.Thread(target=lambda: exchange(store, cloud.place()))
    renewal.start()
    assert begun.wait(PATIENCE)
    signing = threading.Thread(target=lambda: sign_in(cloud, client_id="another app"))
    flock, asked = fcntl.flock, []
    monkeypatch.setattr(fcntl, "flock", lambda *given: (asked.append(given), flock(*given))[1])
    signing.start()
    # Signing in tries the lock again and again.
    eventually(lambda: len(asked) >= 3)
    assert signing.is_alive() and json.loads(cloud.tokens.read_text())["client_id"] == "tests"
    go_on.set()
    signing.join()
    renewal.join()
    found = json.loads(cloud.tokens.read_text())
    assert found["client_id"] == "another app"
    assert found["access_token"] in cloud.service.accounts.access  # type: ignore[attr-defined]
    exchange(store, cloud.place())


def test_a_lock_that_hangs(cloud: Cloud, monkeypatch: Any) -> None:
    monkeypatch.setattr(llvs.oauth, "_patience", 0.3)
    sign_in(cloud)
    before = cloud.tokens.read_bytes()
    with open(f"{cloud.tokens}.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(llvs.BusyError, match="lock"):
            sign_in(cloud)
    assert cloud.tokens.read_bytes() == before
    sign_in(cloud)
    assert stat.S_IMODE(os.stat(f"{cloud.tokens}.lock").st_mode) == 0o600


@pytest.mark.parametrize(
    "answer, error",
    [
        (Answer.of({"error": "invalid_grant", "error_description": "s3cret-client"}, 400), llvs.errors.PermissionDeniedError),
        (Answer.of({}, 503), llvs.TransportError),
        (Answer(200, b"<html>"), llvs.TransportError),
        (Answer.of([]), llvs.TransportError),
        (Answer.of({"token_type": "bearer"}), llvs.TransportError),
    ],
)
def test_the_service_refuses(cloud: Cloud, answer: Answer, error: type[Exception]) -> None:
    cloud.service.accounts.token = lambda form: answer  # type: ignore[attr-defined]
    before = b"{}"
    cloud.tokens.write_bytes(before)
    with pytest.raises(error) as raised:
        sign_in(cloud)
    assert "s3cret" not in str(raised.value) and cloud.tokens.read_bytes() == before


def test_arguments(cloud: Cloud) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError):
        sign_in(cloud, client_id="")
    with pytest.raises(llvs.errors.InvalidArgumentError, match="dropbox"):
        llvs.oauth.sign_in("dropbox", cloud.tokens, client_id="x")
    for address in ("http://example.org/", "ftp://127.0.0.1/"):
        with pytest.raises(llvs.errors.InvalidArgumentError, match="encrypted"):
            llvs.oauth.sign_in(llvs.oauth.Service(address, address, (), {}), cloud.tokens, client_id="x")


#: A browser that follows the file's redirection, as if the user consented immediately. It logs its arguments, which every user can read.
BROWSER = """
import html, os, re, sys, urllib.request
from pathlib import Path
with open(Path(__file__).with_name("arguments"), "a") as file:
    file.write("\\n".join(sys.argv[1:]) + "\\n")
page = urllib.request.urlopen(sys.argv[1], timeout=300).read().decode()
if found := re.search('refresh" content="0; url=([^"]+)"', page):
    urllib.request.urlopen(html.unescape(found[1]), timeout=300).read()
"""


def llvs_command(tmp_path: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)
    return subprocess.run(
        [sys.executable, "-m", "llvs.tools", *words],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "BROWSER": f"{sys.executable} {browser} %s",
             "LLVS_CLIENT_SECRET": "s3cret-client", "PYTHONPATH": str(Path(llvs.__file__).parents[1]), **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


#: The tests of the module cover the differences between services. The command is the same for all.
@pytest.mark.parametrize("cloud", usually([*KINDS], "onedrive"), indirect=True)
def test_the_command_signs_in(cloud: Cloud, tmp_path: Path) -> None:
    store = str(tmp_path / "notes.llvs")
    with llvs.Store(store) as made:
        made.make_version(insert={"a": b"1"})
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "cloud", cloud.url(), "--client-id", "tests")
    assert done.returncode == 0, done.stderr
    assert "sign in with the browser" in done.stderr and "s3cret" not in done.stdout + done.stderr
    # The address is not in the arguments: a program that reads them could answer with an account of its own.
    (argument,) = (tmp_path / "arguments").read_text().splitlines()
    assert argument.startswith("file://") and "state" not in argument.rpartition("/")[2] and "challenge" not in argument
    assert not Path(urlsplit(argument).path).exists()
    (tokens,) = (tmp_path / "state/llvs/tokens").glob("*.json")
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600 and stat.S_IMODE(tokens.parent.stat().st_mode) == 0o700
    done = llvs_command(tmp_path, "-s", store, "push", "cloud")
    assert done.returncode == 0, done.stderr
    done = llvs_command(tmp_path, "-s", store, "remote", "check", "cloud")
    assert done.returncode == 0 and "answers" in done.stdout
    done = llvs_command(tmp_path, "-s", store, "remote", "remove", "cloud")
    assert done.returncode == 0 and not tokens.exists()
    # An existing token file is used unchanged. A missing one, and a place that is no cloud drive, are reported.
    cloud.sign_in()
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "again", cloud.url(), "--token-file", str(cloud.tokens))
    assert done.returncode == 0, done.stderr
    done = llvs_command(tmp_path, "-s", store, "remote", "check", "again")
    assert done.returncode == 0, done.stdout + done.stderr
    llvs_command(tmp_path, "-s", store, "remote", "remove", "again")
    assert cloud.tokens.exists()
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "none", cloud.url(), "--token-file", str(tmp_path / "none.json"))
    assert done.returncode == 2 and "--client-id" in done.stderr
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "none", str(tmp_path), "--client-id", "tests")
    assert done.returncode == 2 and "no cloud drive" in done.stderr


@pytest.mark.parametrize("cloud", ["box"], indirect=True)
def test_the_command_signs_in_by_a_port(cloud: Cloud, tmp_path: Path) -> None:
    store = str(tmp_path / "notes.llvs")
    with llvs.Store(store) as made:
        made.make_version(insert={"a": b"1"})
    with socket.create_server(("127.0.0.1", 0)) as another:
        port = str(another.getsockname()[1])
    cloud.service.accounts.compares_ports = True  # type: ignore[attr-defined]
    cloud.service.accounts.registered = f"http://127.0.0.1:{port}/"  # type: ignore[attr-defined]
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "cloud", cloud.url(), "--port", port)
    assert done.returncode == 2 and "--client-id" in done.stderr
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "cloud", cloud.url(), "--client-id", "tests", "--port", port)
    assert done.returncode == 0, done.stderr
    done = llvs_command(tmp_path, "-s", store, "remote", "check", "cloud")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("cloud", ["box"], indirect=True)
def test_tokens_of_remotes_that_are_gone(cloud: Cloud, tmp_path: Path) -> None:
    """The tokens are removed with the remote, also if its store was moved since. Tokens that another remote names stay."""
    kept = tmp_path / "state/llvs/tokens"
    first, moved, again = (str(tmp_path / f"{name}.llvs") for name in "abc")
    with llvs.Store(first) as made:
        made.make_version(insert={"a": b"1"})

    def remote(store: str, *words: str, code: int = 0) -> str:
        done = llvs_command(tmp_path, "-s", store, "remote", *words)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    remote(first, "add", "cloud", cloud.url(), "--client-id", "tests")
    (tokens,) = kept.glob("*.json")
    os.rename(first, moved)
    remote(moved, "trust", "cloud")
    remote(moved, "add", "same", cloud.url(), "--token-file", str(tokens))
    remote(moved, "remove", "cloud")
    assert tokens.exists()
    remote(moved, "remove", "same")
    assert list(kept.iterdir()) == []
    # A list of remotes from another user removes no tokens.
    remote(moved, "add", "cloud", cloud.url(), "--client-id", "tests")
    (tokens,) = kept.glob("*.json")
    os.rename(moved, again)
    assert str(tokens) in remote(again, "remove", "cloud") and tokens.exists()


@pytest.mark.parametrize("cloud", ["box"], indirect=True)
def test_remotes_that_are_not_added_keep_no_tokens(cloud: Cloud, tmp_path: Path) -> None:
    store, kept = str(tmp_path / "a.llvs"), tmp_path / "state/llvs/tokens"
    with llvs.Store(store) as made:
        made.make_version(insert={"a": b"1"})
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "cloud", cloud.url(), "--client-id", "tests", "--recipient", "age1x")
    assert done.returncode == 2 and "sign in" not in done.stderr and not kept.exists()
    # The remote's configuration cannot be written.
    (tmp_path / "state/llvs/remotes").mkdir(parents=True)
    done = llvs_command(tmp_path, "-s", store, "remote", "add", "cloud", cloud.url(), "--client-id", "tests")
    assert done.returncode != 0 and "sign in" in done.stderr and list(kept.iterdir()) == []


def test_the_browser_gets_a_file_and_no_address(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of `sign_in`: the address, with `state` and the challenge, is in a file that only this user can read."""
    told: list[str] = []
    went: list[str] = []
    modes: list[int] = []

    def open_there(address: str) -> bool:
        told.append(address)
        page = Path(urlsplit(address).path)
        modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (page, page.parent) if path.exists())
        found = re.search('refresh" content="0; url=([^"]+)"', page.read_text()) if page.exists() else None
        went.append(html.unescape(found[1]) if found else address)
        browser(went[-1])
        return True

    monkeypatch.setattr(webbrowser, "open", open_there)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    old = os.umask(0)
    try:
        llvs.oauth.sign_in(service(cloud), cloud.tokens, client_id="tests", client_secret="s3cret-client", timeout=PATIENCE)
    finally:
        os.umask(old)
    assert "access_token" in json.loads(cloud.tokens.read_text())
    (asked,) = (parse_qs(urlsplit(address).query) for address in went)
    assert modes == [0o600, 0o700]
    assert told[0].startswith(f"file://{tmp_path}/llvs-open-")
    assert not any(asked[name][0] in told[0] for name in ("state", "code_challenge"))
