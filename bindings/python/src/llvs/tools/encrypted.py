"""Encrypted places: the keys that open them. Keys are never stored beside the store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Optional

import llvs

from . import key_store, output
from .failures import MISUSED, STORE, Failure

_BEGINNING = "AGE-SECRET-KEY-1"
_MOST = 64 << 10


def is_encrypted(place: dict[str, Any]) -> bool:
    """Returns whether a place was added as an encrypted one."""
    return bool(place.get("encrypted")) or place.get("identity_file") is not None


def options_of(place: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys that open a place, as options of `llvs.Remote`; none if it is not encrypted. Raises Failure."""
    if not is_encrypted(place):
        return {}
    options: dict[str, Any] = {"recipients": tuple(place.get("recipients") or ())}
    if place.get("identity_file") is not None:
        options["identity"] = _identity_in(Path(place["identity_file"]))
    if place.get("encrypted"):
        options["passphrase"] = _passphrase(place["url"])
    return options


def keep_passphrase(url: str) -> None:
    """Asks for the passphrase of a place, twice, and stores it in the system's key store. Raises Failure."""
    key_store.keep(_name(url), "", _asked(url))


def forget_passphrase(url: str) -> None:
    """Removes the passphrase from the system's key store."""
    key_store.forget(_name(url), "")


def has_passphrase(url: str) -> bool:
    """Returns whether the system's key store has the passphrase."""
    return bool(key_store.get(_name(url), ""))


def new_passphrase(url: str) -> str:
    """Returns LLVS_NEW_PASSPHRASE, or asks for it, twice. Raises Failure."""
    found = os.environ.get("LLVS_NEW_PASSPHRASE")
    if found:
        return found
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise Failure(f"the new passphrase of {url} is not here: give it in LLVS_NEW_PASSPHRASE", MISUSED)
    return _asked(url, "New passphrase")


def replace_passphrase(url: str, new: str) -> None:
    """Replaces the passphrase in the system's key store, if it has one."""
    if has_passphrase(url):
        key_store.keep(_name(url), "", new)


def make_identity(path: Path) -> str:
    """Makes a file with a new identity, as `age-keygen` does, which only its owner can read, and returns the recipient. Raises Failure."""
    made = llvs.exchange.make_identity()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Failure(f"{path} is there already, and perhaps a key: give another name", MISUSED) from None
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"# public key: {made.recipient}\n{made.secret}\n")
        file.flush()
        os.fsync(file.fileno())
    return made.recipient


def _name(url: str) -> str:
    return f"passphrase of {url}"


def _passphrase(url: str) -> str:
    found = os.environ.get("LLVS_PASSPHRASE") or key_store.get(_name(url), "")
    if found:
        return found
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise Failure(
            f"{url} is encrypted, and its passphrase is not here: give it in LLVS_PASSPHRASE, or add the remote with "
            "--keep-passphrase",
            MISUSED,
        )
    return _asked(url)


def _asked(url: str, what: str = "Passphrase") -> str:
    """Asks twice: a place that was made with a mistyped passphrase cannot be opened again."""
    return output.ask(f"{what} of {url}", again="Once more")


def _identity_in(path: Path) -> str:
    where = str(path)
    found: Optional[str] = None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(_MOST).splitlines()
    except OSError as problem:
        raise Failure(f"the identity in {where} cannot be read: {problem.strerror}", STORE) from None
    for line in lines:
        if line.strip().startswith(_BEGINNING):
            found = line.strip()
            break
    if found is None:
        raise Failure(f"there is no identity ({_BEGINNING}...) in {where}: make one with \"llvs remote new-identity FILE\"", MISUSED)
    return found
