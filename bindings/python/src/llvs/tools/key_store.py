"""Passwords and passphrases in the system's key store."""

from __future__ import annotations

from typing import Optional

from . import HOW_TO_INSTALL
from .failures import STORE, Failure

_SERVICE = "llvs"


def get(url: str, user: str) -> Optional[str]:
    """Returns the password in the system's key store; None if there is none."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    try:
        return keyring.get_password(_SERVICE, f"{user}@{url}")
    except keyring.errors.KeyringError:
        return None


def keep(url: str, user: str, password: str) -> None:
    """Stores a password in the system's key store. Raises Failure if the system has none."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise Failure(f"there is no key store without the package keyring: {HOW_TO_INSTALL}", STORE) from None
    try:
        keyring.set_password(_SERVICE, f"{user}@{url}", password)
    except keyring.errors.KeyringError as problem:
        raise Failure(f"the system's key store did not take the password ({problem}): use LLVS_PASSWORD", STORE) from None


def forget(url: str, user: str) -> None:
    """Removes a password from the system's key store, if it is there."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return
    try:
        keyring.delete_password(_SERVICE, f"{user}@{url}")
    except keyring.errors.KeyringError:
        pass
