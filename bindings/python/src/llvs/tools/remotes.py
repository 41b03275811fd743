"""Places to exchange with, stored by name beside the store: addresses and options, never a password.

A store may come from another user, with a list of remotes in it. Therefore digests of the remotes that were added here are stored outside
of all stores (`Trusted`), and nothing is exchanged with other remotes.

Passwords and tokens come from the environment (LLVS_USER, LLVS_PASSWORD, LLVS_TOKEN), from the system's key store, or from a prompt; so
does the passphrase of an encrypted place (`encrypted.py`).
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional, Union
from urllib.parse import parse_qsl, urlsplit

import llvs
from llvs import browser, oauth

from . import encrypted, key_store, output
from .failures import MISUSED, NETWORK, STORE, Failure

_scheme = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

#: The options of a remote that are stored.
OPTIONS = ("user", "ca_file", "proxy", "timeout", "token_file", "key_file", "known_hosts")


class Remotes:
    """The remotes of a store."""

    def __init__(self, path: Path, storage: str) -> None:
        self._file = path / "remotes.json" if storage == "file" else path.with_name(f"{path.name}-remotes.json")
        self.places: dict[str, dict[str, Any]] = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self._file.read_bytes())
            places = found["remotes"]
            if all(isinstance(place, dict) and isinstance(place.get("url"), str) for place in places.values()):
                return dict(places)
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError, TypeError, AttributeError, KeyError):
            pass
        raise Failure(f"{self._file} is no list of remotes: mend it, or delete it and add them again", STORE)

    def write(self) -> None:
        """Writes `places` to the file: all of it or nothing."""
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}.part")
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump({"remotes": self.places}, file, indent=2, sort_keys=True)
                file.write("\n")
            partial.replace(self._file)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise

    def is_trusted(self, name: str) -> bool:
        """Returns whether a remote is exactly as it was added on this machine."""
        return _Trusted().has(self._digest(name))

    def trust(self, name: str) -> None:
        """Allows exchanges with a remote."""
        _Trusted().add(self._digest(name), _sha256(self.places[name]["url"]))

    def remove(self, name: str) -> bool:
        """Removes a remote, and the record that it was added here. Returns whether its secrets are to be deleted as well: if it was added
        here, and no other remote of this user, in any store, has its address."""
        digest, place, trusted = self._digest(name), self.places.pop(name), _Trusted()
        self.write()
        return trusted.remove(digest) and not trusted.has_place(_sha256(place["url"]))

    def _digest(self, name: str) -> str:
        """Returns the digest of a remote: its name and options, for this store at this path."""
        return _sha256(json.dumps([os.path.realpath(self._file), name, self.places[name]], sort_keys=True))

    def own_token_file(self, name: str, url: str) -> Path:
        """Returns where the tokens of a remote are stored by default: in the user's folder, and not in the store, which may be given
        away."""
        text = json.dumps([os.path.realpath(self._file), name, url])
        return _state() / "tokens" / f"{name}-{_sha256(text)[:16]}.json"

    def checked(self, name: str) -> dict[str, Any]:
        """Returns the place with a name, for an exchange. Raises Failure if it was not added here."""
        place = self.find(name)
        if not self.is_trusted(name):
            told = ", ".join(f"{key} {value}" for key, value in sorted(place.items()))
            raise Failure(
                f'the remote "{name}" ({told}) was not added here, but came with the store, or the store was moved: '
                f'if you know it, run "llvs remote trust {name}"; else "llvs remote remove {name}"',
                MISUSED,
            )
        return place

    def find(self, name: str) -> dict[str, Any]:
        """Returns the place with a name. Raises Failure."""
        if name not in self.places:
            known = ", ".join(self.places) or "none yet"
            raise Failure(f'there is no remote "{name}" (known: {known}): add it with "llvs remote add NAME URL"', MISUSED)
        return self.places[name]

    def wanted(self, given: Optional[str]) -> dict[str, dict[str, Any]]:
        """Returns the places that a command is to use: a URL or path, a remote by name, or all remotes. Raises Failure."""
        if given is None:
            if not self.places:
                raise Failure(
                    'there is nobody to exchange with: give a URL or a folder, or add one with "llvs remote add NAME URL"', MISUSED
                )
            return {name: self.checked(name) for name in self.places}
        if given in self.places:
            return {given: self.checked(given)}
        if not _scheme.match(given) and os.sep not in given and not Path(given).is_dir():
            return {given: self.find(given)}
        return {given: {"url": address_of(given)}}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _state() -> Path:
    """Returns the folder of the state of this user on this machine."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state) / "llvs"


def keeps_tokens(path: str) -> bool:
    """Returns whether a token file exists and is one of those that are stored at the default location."""
    return os.path.realpath(os.path.dirname(path)) == os.path.realpath(_state() / "tokens") and os.path.isfile(path)


def forget_tokens(path: str) -> None:
    """Deletes a token file, and the lock beside it."""
    for each in (path, f"{path}.lock"):
        Path(each).unlink(missing_ok=True)


class _Trusted:
    """The remotes that this user added on this machine, in a file of the user: a line for each, with its digest and the digest of its
    address.
    A line that begins with "-" removes an earlier one, since several processes append to the file."""

    def __init__(self) -> None:
        self._file = _state() / "remotes"

    def _known(self) -> dict[str, str]:
        found: dict[str, str] = {}
        with contextlib.suppress(OSError, UnicodeError):
            for line in self._file.read_text("ascii").splitlines():
                digest, _, place = line.partition(" ")
                if digest.startswith("-"):
                    found.pop(digest[1:], None)
                else:
                    found[digest] = place
        return found

    def has(self, digest: str) -> bool:
        return digest in self._known()

    def has_place(self, place: str) -> bool:
        """Returns whether one of them has that address, or may have it: lines of earlier versions of this program have no address."""
        return any(known in ("", place) for known in self._known().values())

    def add(self, digest: str, place: str) -> None:
        if self._known().get(digest) != place:
            self._write(f"{digest} {place}")

    def remove(self, digest: str) -> bool:
        """Removes a remote; returns whether it was there."""
        is_known = self.has(digest)
        if is_known:
            self._write(f"-{digest}")
        return is_known

    def _write(self, line: str) -> None:
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(f"{line}\n")
        except OSError as problem:
            raise Failure(
                f"which remotes are known cannot be remembered in {self._file}: {problem.strerror}; name a folder that "
                "can be written in XDG_STATE_HOME", STORE
            ) from None


def check_name(name: str) -> None:
    """Raises Failure for a text that cannot be the name of a remote."""
    if not _name.fullmatch(name):
        raise Failure(f'"{name}" cannot name a remote: use letters, digits, ".", "_" and "-"', MISUSED)


def address_of(given: str) -> str:
    """Returns a URL unchanged, and a path as an absolute one. Raises Failure for a URL with a password."""
    if not _scheme.match(given):
        return str(Path(given).absolute())
    try:
        parts = urlsplit(given)
        has_secret = bool(parts.username or parts.password)
    except ValueError:
        # The message does not quote it: a URL that cannot be parsed may contain a password.
        raise Failure("what was given is no URL: its host cannot be read", MISUSED) from None
    if has_secret:
        raise Failure(
            "a URL holds no user and no password here: give --user NAME, and the password when asked, or in LLVS_PASSWORD", MISUSED
        )
    return given


def check_place(store: llvs.Store, place: dict[str, Any]) -> None:
    """Raises for an address that cannot be a place, and for options with a password. Connects to nothing."""
    if "@" in place.get("proxy", ""):
        raise Failure(
            "the URL of a proxy is kept, so it holds no user and no password: with them it is given in https_proxy, in the environment",
            MISUSED,
        )
    if place.get("ca_file") is not None and not Path(place["ca_file"]).is_file():
        raise Failure(f"there is no file of certificates at {place['ca_file']}", MISUSED)
    if not _is_folder(place["url"]):
        tokens = place.get("token_file")
        given = {"token_file": tokens} if tokens and Path(tokens).is_file() else {"credentials": lambda *_: None}
        with llvs.Exchange(store, llvs.Remote(place["url"], **given), create=False):
            pass


def _is_folder(url: str) -> bool:
    return not _scheme.match(url) or url.startswith(("file:", "memory:"))


@contextlib.contextmanager
def reaching(places: Iterable[dict[str, Any]]) -> Iterator[None]:
    """Makes an error of a server within this block end the command with the exit code of the network, not of the store.

    An error of the local machine has a path or a system code; an error of a server has neither.
    """
    try:
        yield
    except (llvs.StorageError, llvs.errors.TooLargeError) as problem:
        if problem.path or problem.system_code or all(_is_folder(place["url"]) for place in places):
            raise
        # The library's message names options; the command has other names for them.
        sources = " Here they come from LLVS_USER and LLVS_PASSWORD, from LLVS_TOKEN, or from a prompt."
        where = sources if "answers 401" in str(problem) else ""
        raise Failure(f"{problem}{where}", NETWORK) from problem


def place_of(place: dict[str, Any]) -> Union[str, llvs.Remote]:
    """Returns the place in the form that `llvs.Exchange` accepts."""
    url, keys = place["url"], encrypted.options_of(place)
    if _is_folder(url):
        return llvs.Remote(url if _scheme.match(url) else Path(url).as_uri(), **keys) if keys else str(url)
    options = {name: place[name] for name in OPTIONS if name != "user" and place.get(name) is not None}
    if urlsplit(url).scheme == "sftp":
        return _sftp_place(url, place.get("user"), options, keys)
    if "token_file" not in options:
        options["credentials"] = _Asking(url, place.get("user") or "")
    return llvs.Remote(url, **options, **keys)


def _sftp_place(url: str, user: Optional[str], options: dict[str, Any], keys: dict[str, Any]) -> llvs.Remote:
    """As ssh does: uses the named key, a password, or the keys of the agent; without any of them the user is asked."""
    user = os.environ.get("LLVS_USER") or user or getpass.getuser()
    password = os.environ.get("LLVS_PASSWORD") or key_store.get(url, user) or ""
    if not password and "key_file" not in options and not os.environ.get("SSH_AUTH_SOCK"):
        return llvs.Remote(url, credentials=_Asking(url, user), **options, **keys)
    return llvs.Remote(url, user=user, password=password, **options, **keys)


def sign_in(url: str, token_file: Path, client_id: str, ca_file: Optional[str], port: int) -> None:
    """Asks the user to consent in the browser, and stores the tokens in a file. Raises Failure."""
    parts = urlsplit(url)
    service, gateway = _drive(url), dict(parse_qsl(parts.query)).get("endpoint")
    secret = os.environ.get("LLVS_CLIENT_SECRET")
    if secret is None and sys.stdin.isatty() and sys.stderr.isatty():
        secret = output.ask("Secret of the app (empty: it has none)", default="")

    def show(address: str) -> None:
        output.say(f"sign in with the browser that opens, or at {address}")
        browser.open_address(address)

    token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    oauth.sign_in(
        service.behind(gateway) if gateway else service, token_file,
        client_id=client_id, client_secret=secret or "", show=show, ca_file=ca_file or "", port=port,
    )


def check_drive(url: str, *, signs_in: bool) -> None:
    """Raises Failure for a place that is not a cloud drive. CloudKit has no sign-in by OAuth, but accepts a token file, too."""
    if signs_in or urlsplit(url).scheme != "cloudkit":
        _drive(url)


def _drive(url: str) -> oauth.Service:
    service = oauth.SERVICES.get(urlsplit(url).scheme)
    if service is None:
        raise Failure(f'"{url}" is no cloud drive, where one signs in (known: {", ".join(oauth.SERVICES)})', MISUSED)
    return service


class _Asking:
    """Returns credentials from the environment, the key store, or the user; asks each once."""

    def __init__(self, url: str, user: str) -> None:
        self._url, self._user = url, user
        self._left = [self._of_environment, self._of_key_store, self._of_prompt]

    def __call__(self, address: str, was_refused: bool) -> Optional[llvs.exchange.Credentials]:
        while self._left:
            found = self._left.pop(0)()
            if found is not None:
                return found
        return None

    def _of_environment(self) -> Optional[llvs.exchange.Credentials]:
        token, password = os.environ.get("LLVS_TOKEN"), os.environ.get("LLVS_PASSWORD")
        if token:
            return llvs.exchange.Credentials(token=token)
        return llvs.exchange.Credentials(os.environ.get("LLVS_USER") or self._user, password) if password else None

    def _of_key_store(self) -> Optional[llvs.exchange.Credentials]:
        password = key_store.get(self._url, self._user)
        return llvs.exchange.Credentials(self._user, password) if password else None

    def _of_prompt(self) -> Optional[llvs.exchange.Credentials]:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            return None
        user = self._user or output.ask(f"User at {self._url}", is_hidden=False, default="")
        return llvs.exchange.Credentials(user, output.ask(f"Password at {self._url}", default=""))
