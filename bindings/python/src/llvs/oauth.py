"""Signing in to cloud drives: OAuth 2.0 by the code flow with PKCE (RFC 7636) and a redirect to this machine (RFC 8252).

    import llvs.oauth

    llvs.oauth.sign_in("gdrive", "google.json", client_id="….apps.googleusercontent.com", client_secret="…")
    with llvs.Exchange(store, llvs.Remote("gdrive:///notes", token_file="google.json")) as way:
        way.retrieve()

The client id, and the secret if there is one, are those of an app that you registered with the service. A browser opens, the user consents,
and the tokens are written to the file, which only this user can read. The library renews them there.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import ssl
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from . import browser, errors

__all__ = ["Service", "SERVICES", "sign_in"]


@dataclass(frozen=True)
class Service:
    """The addresses for signing in to a service."""

    #: The page on which the user consents.
    authorize: str
    #: The address that exchanges codes for tokens.
    token: str
    #: The default scopes.
    scopes: Sequence[str]
    #: Further parameters of the page, so that there is a refresh token.
    parameters: Mapping[str, str]
    #: The host that replaces the one of the token address, if the page says that the account is there.
    other_hosts: Sequence[str] = ()

    def behind(self, gateway: str) -> Service:
        """Returns the same service at a gateway, which the `endpoint` of a URL names: the pages keep their paths there."""
        authorize, token = (urljoin(gateway, urlsplit(address).path) for address in (self.authorize, self.token))
        return Service(authorize, token, self.scopes, self.parameters)


#: The services of the library, by the schemes of their URLs.
SERVICES = {
    "gdrive": Service(
        "https://accounts.google.com/o/oauth2/v2/auth",
        "https://oauth2.googleapis.com/token",
        ("https://www.googleapis.com/auth/drive.file",),
        {"access_type": "offline", "prompt": "consent"},
    ),
    "onedrive": Service(
        "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
        "https://login.microsoftonline.com/common/oauth2/v2.0/token",
        ("Files.ReadWrite", "offline_access"),
        {},
    ),
    "box": Service("https://account.box.com/api/oauth2/authorize", "https://api.box.com/oauth2/token", ("root_readwrite",), {}),
    "pcloud": Service("https://my.pcloud.com/oauth2/authorize", "https://api.pcloud.com/oauth2_token", (), {}, ("eapi.pcloud.com",)),
}


def sign_in(
    service: Union[str, Service],
    token_file: Union[str, "os.PathLike[str]"],
    *,
    client_id: str,
    client_secret: str = "",
    scopes: Optional[Sequence[str]] = None,
    show: Optional[Callable[[str], Any]] = None,
    timeout: float = 300.0,
    ca_file: str = "",
    port: int = 0,
) -> None:
    """Asks the user to consent, and writes the tokens to a file.

    service: the scheme of a cloud drive ("gdrive", "onedrive", "box", "pcloud"), or a `Service`.
    token_file: is rewritten as a whole, with mode 0600; its former contents are lost.
    client_id, client_secret: of the app; both are stored in the file, since renewing needs them. Apps on phones and desktops may have no
    secret.
    scopes: the scopes of the token, instead of the service's default.
    show: gets the address of the page on which the user consents; by default a browser opens (`llvs.browser.open_address`). The address
    contains secrets. Do not pass it to another process as an argument, since other users of the machine can read arguments: another user
    could sign in there with an account of his own, and receive what is synced.
    timeout: seconds to wait for the user.
    ca_file: certificates (PEM) of the authorities that are trusted, instead of the system's.
    port: of this machine, to which the service sends the browser back: http://127.0.0.1:PORT/, for an app that is registered with such an
    address. 0: a free port, another each time.

    Raises PermissionDeniedError if the user or the service refuses, TransportError if the service cannot be reached or its response is
    unexpected, CancelledError if the user takes too long, BusyError if another program has the port, or another process hangs while
    renewing the tokens in the file, OSError if the file cannot be written, or this user may not use the port.
    """
    place = _service(service)
    if not client_id:
        raise errors.InvalidArgumentError("a client_id is needed: that of an app which is registered with the service")
    if not 0 <= port <= 65_535:
        raise errors.InvalidArgumentError(f"{port} is no port: give one from 1 to 65535, or 0 for one that is free")
    verifier, state = secrets.token_urlsafe(64), secrets.token_urlsafe(24)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    with _Listener(state, port) as listener:
        query = {
            "response_type": "code", "client_id": client_id, "redirect_uri": listener.address, "state": state,
            "scope": " ".join(place.scopes if scopes is None else scopes), "code_challenge": challenge, "code_challenge_method": "S256",
            **place.parameters,
        }  # fmt: skip
        mark = "&" if urlsplit(place.authorize).query else "?"
        (show or browser.open_address)(f"{place.authorize}{mark}{urlencode(query)}")
        code, host = listener.wait(timeout)
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": listener.address, "client_id": client_id}
    if client_secret:
        form["client_secret"] = client_secret
    token = place.token
    if host in place.other_hosts:
        token = urlunsplit(urlsplit(token)._replace(netloc=host))
    found = _ask(token, {**form, "code_verifier": verifier}, ca_file)
    tokens = {name: found[name] for name in ("access_token", "refresh_token") if isinstance(found.get(name), str)}
    if "access_token" not in tokens:
        raise errors.TransportError(f"signing in failed: {token} answers without a token")
    tokens |= {"client_id": client_id, "token_uri": token} | ({"client_secret": client_secret} if client_secret else {})
    _write(os.fspath(token_file), tokens)


def _service(service: Union[str, Service]) -> Service:
    found = SERVICES.get(service) if isinstance(service, str) else service
    if found is None:
        raise errors.InvalidArgumentError(f"there is no service {service!r} (known: {', '.join(SERVICES)})")
    for address in (found.authorize, found.token):
        parts = urlsplit(address)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
            raise errors.InvalidArgumentError(f"{address} is not encrypted: give an address with https")
    return found


class _Listener:
    """Waits on a port of the loopback interface for the browser to return with a code."""

    def __init__(self, state: str, port: int) -> None:
        self._state = state
        self._answer: Optional[dict[str, str]] = None
        self._came = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                told = outer._take(self.path)
                page = f"<!DOCTYPE html><meta charset=utf-8><title>Sign in</title><p>{told}</p>".encode()
                self.send_response(200 if outer._answer is not None else 400)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    self.wfile.write(page)
                finally:
                    # Wake the waiting thread last: it may end the process, and the browser must have its page by then.
                    if outer._answer is not None:
                        outer._came.set()

            def log_message(self, *_: Any) -> None:
                """The address contains the code: never log it."""

        class Server(ThreadingHTTPServer):
            # Browsers open connections in advance and send nothing on them: do not wait for these.
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_: Any) -> None:
                """A client that disconnects in the middle."""

        try:
            self._server = Server(("127.0.0.1", port), Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise errors.BusyError(
                f"another program has the port {port} of this machine: end it, or register the app with another port and give that"
            ) from None
        self.address = f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> _Listener:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="llvs sign-in", daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, path: str) -> str:
        found = dict(parse_qsl(urlsplit(path).query, keep_blank_values=True))
        # Any page in the browser may send a request here: only the redirected one knows the state.
        if not hmac.compare_digest(found.get("state", "").encode(), self._state.encode()) or not found.keys() & {"code", "error"}:
            return "This is not the answer that is waited for."
        if self._answer is None:
            self._answer = found
        return "You can close this page."

    def wait(self, timeout: float) -> tuple[str, str]:
        """Returns the code, and the host of the account if the page names it."""
        if not self._came.wait(timeout) or self._answer is None:
            raise errors.CancelledError(f"nobody has signed in for {timeout:g} seconds")
        if code := self._answer.get("code"):
            return code, self._answer.get("hostname", "")
        reason = self._answer.get("error", "")
        known = ("access_denied", "invalid_scope", "unauthorized_client", "server_error")
        raise errors.PermissionDeniedError(f"the service lets nobody in: {reason if reason in known else 'it gives no known reason'}")


def _ask(address: str, form: Mapping[str, str], ca_file: str) -> dict[str, Any]:
    """Exchanges a code for tokens. No message contains what was sent."""
    headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    request = urllib.request.Request(address, urlencode(form).encode(), headers, method="POST")
    context = ssl.create_default_context(cafile=ca_file or None) if address.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            text = answer.read(1 << 20)
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
        if status in (400, 401, 403):
            raise errors.PermissionDeniedError(f"signing in failed: {address} refuses the code, or the app ({status})") from None
        raise errors.TransportError(f"signing in failed: {address} answers {status}") from None
    except OSError as error:
        raise errors.TransportError(f"signing in failed: {address} cannot be reached ({getattr(error, 'reason', error)})") from None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise errors.TransportError(f"signing in failed: {address} answers no JSON object")
    # pCloud refuses with the status 200.
    if isinstance(found.get("result"), int) and 1000 <= found["result"] < 4000:
        raise errors.PermissionDeniedError(f"signing in failed: {address} refuses the code, or the app ({found['result']})")
    return found


#: Seconds that a renewal of the existing tokens may take.
_patience = 300.0


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    """Locks out all renewals of the tokens in a file, as the library does.

    A running renewal would overwrite the new tokens with the former ones.
    """
    end = time.monotonic() + _patience
    while True:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # While this process waited, another one may have removed the lock file; then the lock is on a file that no other process
                # opens.
                is_held = os.path.samestat(os.fstat(descriptor), os.lstat(f"{path}.lock"))
            except (BlockingIOError, FileNotFoundError):
                is_held = False
            except OSError:
                # A file system without locks excludes no process.
                is_held = True
            if is_held:
                yield
                return
        finally:
            os.close(descriptor)
        if time.monotonic() >= end:
            raise errors.BusyError(f"another process has held the lock {path}.lock for {_patience:g} seconds: end it, and try again")
        time.sleep(0.02)


def _write(path: str, tokens: Mapping[str, str]) -> None:
    """Writes all of it or nothing, readable for this user only."""
    path = os.path.realpath(path)
    with _locked(path):
        _replace(path, tokens)


def _replace(path: str, tokens: Mapping[str, str]) -> None:
    part = f"{path}.{secrets.token_hex(8)}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            json.dump(dict(tokens), file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except FileNotFoundError:
            pass
        raise
