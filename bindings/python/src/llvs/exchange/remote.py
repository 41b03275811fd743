"""Places on servers: an address, and credentials."""

from __future__ import annotations

import ctypes
import os
import threading
import unicodedata
from typing import Any, Callable, Iterable, Literal, NamedTuple, Optional, Union

from .. import _abi, errors
from .._abi import callbacks as _callbacks
from .._abi.memory import BytesArray, address, as_bytes, encode
from .._generated import constants as c, structs as _structs
from ..storage import _data
from ..words import Layout
from ._carrier import Carrier

lib = _abi.lib


_LAYOUTS = {"": c.LAYOUT_AUTOMATIC, "interchange": c.LAYOUT_INTERCHANGE, "packed": c.LAYOUT_PACKED, "bridged": c.LAYOUT_BRIDGED}


class Credentials(NamedTuple):
    """A user and a password, or a token."""

    #: Who asks.
    user: str = ""
    #: Their password.
    password: str = ""
    #: Instead of both.
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(...)"


#: Returns credentials for an address; the second argument says whether the server refused the previous ones. None: there are none.
AskForCredentials = Callable[[str, bool], Optional[Credentials]]


class Tokens:
    """Stores the tokens of an account at a cloud drive, or of CloudKit, in a key store of the program, instead of a `token_file`.

    The library renews the tokens, and uses new ones only after they are stored. Make a subclass:

        class Keys(llvs.exchange.Tokens):
            def read(self):
                return keyring.get_password("notes", "google")
            def keep(self, tokens):
                keyring.set_password("notes", "google", tokens)

    One object for an account serves all threads. If several processes have the same tokens, override `lock` and `unlock` as well: if two
    processes renew single-use tokens at once, they are signed out. Its methods are called on the thread of the exchange.
    """

    def read(self) -> Optional[str]:
        """Returns the tokens: JSON, with the members of a `token_file` (docs/cloud-drives.md). None: there are none."""
        raise NotImplementedError

    def keep(self, tokens: str) -> None:
        """Replaces the stored tokens, durably before it returns."""
        raise NotImplementedError

    def lock(self) -> bool:
        """Locks the tokens for a renewal, without waiting; returns False while another process renews them, and then the library calls
        again soon."""
        return self._renewing.acquire(blocking=False)

    def unlock(self) -> None:
        """Ends the renewal, on the same thread."""
        self._renewing.release()

    @property
    def _renewing(self) -> threading.Lock:
        held: threading.Lock = self.__dict__.setdefault("_llvs_renewing", threading.Lock())
        return held


class Remote:
    """A place on a server, for `Exchange` and `Coordinator`.

        place = llvs.Remote("https+webdav://cloud.example.org/remote.php/dav/files/ann/notes/", user="ann", password=secret)
        with llvs.Coordinator("notes.llvs", exchange=place) as notes:
            notes.sync()

    If no credentials are needed, a URL is enough. With encryption, the owner of the server or folder cannot read anything:

        place = llvs.Remote("file:///media/stick/notes", passphrase=words)

    The same for a place of your own, `RemoteFiles`:

        place = llvs.Remote(MyServer(), passphrase=words)
    """

    def __init__(
        self,
        url: Union[str, Carrier],
        *,
        user: str = "",
        password: str = "",
        token: str = "",
        token_file: Union[str, "os.PathLike[str]"] = "",
        tokens: Optional[Tokens] = None,
        credentials: Optional[AskForCredentials] = None,
        ca_file: str = "",
        key_file: Union[str, "os.PathLike[str]"] = "",
        known_hosts: Union[str, "os.PathLike[str]"] = "",
        proxy: str = "",
        timeout: Optional[float] = None,
        layout: Union[Layout, Literal[""]] = "",
        passphrase: Optional[str] = None,
        identity: str = "",
        recipients: Iterable[str] = (),
        device_name: str = "",
    ) -> None:
        """Describes a place, without sending requests yet.

        url: "https+webdav://host[:port]/path/" ("http+webdav:" on this machine), "sftp://host[:port]/path/", "s3://bucket/prefix", or a
        cloud drive. No user and no password in it. "?layout=packed" at its end (or "interchange", "bridged") says how versions are stored
        there; by default a folder ("file:") has single files, and a server has the layout of its contents, or packs if it is empty. Or
        `RemoteFiles`, to which the layout and the keys below apply.
        user, password: sent to that host only. token: sent as "Authorization: Bearer", instead of these.
        token_file: for a cloud drive ("gdrive:///path"), the path of a file with OAuth tokens, which are renewed there when they are
        refused: docs/cloud-drives.md. For CloudKit ("cloudkit://container/production/private?store=id") a file with a key or tokens.
        tokens: instead of `token_file`, an object that stores the same in a key store of the program.
        credentials: instead of these, a function that is called before the first request, and once more if the server refused its
        credentials: so credentials can stay in a key store. It gets the address and whether they were refused, and returns `Credentials` or
        None.
        ca_file: the path of a file with certificates (PEM) of the authorities that are trusted, instead of the system's.
        key_file: for SFTP, the path of the file with the user's private key, which `password` opens if need be. Without a key and a
        password, the keys of the ssh-agent are offered.
        known_hosts: for SFTP, the path of the file with the keys of hosts that are trusted, instead of ~/.ssh/known_hosts.
        proxy: its URL; by default from the environment (https_proxy, http_proxy, no_proxy), and none for this machine.
        timeout: seconds without a byte after which a transfer fails, in whole seconds; None: 30.
        layout: "packed", "interchange" or "bridged" (both), instead of the same in the URL.
        passphrase, identity: the place is encrypted (docs/encryption.md), and this opens it: a passphrase, or a secret key of age
        (`AGE-SECRET-KEY-1...`); one of the two is enough. The first send encrypts an empty place, to both if both are given; it waits 10
        seconds first. With these, an unencrypted place is refused; without them, an encrypted one is.
        recipients: further members of a place that is made with these: public keys of age (`age1...`), such as that of a recovery key.
        device_name: the name of this device, for people who list the writers of a place in the packed layout (`RemoteWriter.name`): up to
        128 bytes of UTF-8 without control characters and direction marks. Every device that can read the place can read it.

        Raises TypeError, ValueError. Opening an exchange reports a malformed key, and its first call a key that does not fit:
        EncryptionError.
        """
        if layout not in _LAYOUTS:
            raise errors.InvalidArgumentError(f"{layout!r} is no layout: use packed, interchange or bridged")
        if not isinstance(url, (str, Carrier)):
            raise TypeError(f"the place of a Remote is a URL or llvs.exchange.RemoteFiles, not {type(url).__name__}")
        if isinstance(recipients, str):
            raise TypeError("recipients is an iterable of texts, not one: [recipient]")
        if passphrase == "":
            raise errors.InvalidArgumentError("the passphrase is empty; leave it out for a place that is not encrypted")
        if credentials is not None and not callable(credentials):
            raise TypeError(f"credentials must be a function of an address and a bool, not {type(credentials).__name__}")
        if tokens is not None and not isinstance(tokens, Tokens):
            raise TypeError(f"tokens must be an llvs.exchange.Tokens, not {type(tokens).__name__}")
        if timeout is not None and not 0 < timeout <= 86_400:
            raise errors.InvalidArgumentError(f"a timeout of {timeout!r} seconds is none: give more than 0, and at most 86,400")
        #: The files of the program, instead of a URL.
        self.files: Optional[Carrier] = None if isinstance(url, str) else url
        #: The URL of the place; for files of the program, their name.
        self.url: str = url if isinstance(url, str) else url.name
        self._texts = {
            "user": encode(user),
            "password": encode(password),
            "token": encode(token),
            "token_file": encode(os.fspath(token_file)),
            "ca_file": encode(ca_file),
            "key_file": encode(os.fspath(key_file)),
            "known_hosts": encode(os.fspath(known_hosts)),
            "proxy": encode(proxy),
            "device_name": encode(device_name),
            "passphrase": encode(unicodedata.normalize("NFC", passphrase or "")),
        }
        self._identities = BytesArray([encode(identity)] if identity else [])
        self._recipients = BytesArray(map(encode, recipients))
        self._layout = _LAYOUTS[layout]
        self._credentials, self._tokens = credentials, tokens
        self._timeout = 0 if timeout is None else max(1, round(timeout * 1000))

    def __repr__(self) -> str:
        return "llvs.Remote(...)"

    def _put(self, options: Any) -> None:
        """Writes itself into an `llvs_exchange_options`, which borrows bytes of this object: call it last before the options are used."""
        for name, text in self._texts.items():
            if text:
                setattr(options, name, _structs.llvs_bytes(address(text), len(text)))
        options.timeout = self._timeout
        options.layout = self._layout
        options.identities, options.identity_count = self._identities.address, self._identities.count
        options.recipients, options.recipient_count = self._recipients.address, self._recipients.count
        if self._credentials is not None:
            options.credentials = _address
            options.credentials_payload = _callbacks.register(self._credentials)
            options.credentials_free = ctypes.cast(_callbacks.payload_free, ctypes.c_void_p).value
        if self._tokens is not None:
            options.tokens = _tokens_address
            options.tokens_payload = _callbacks.register(self._tokens)
            options.tokens_free = ctypes.cast(_callbacks.payload_free, ctypes.c_void_p).value


def _ask(ask: AskForCredentials, place: int, again: int, reply: int) -> None:
    found = ask(_data(place).decode(), again != 0)
    if found is None:
        return
    for index, text in enumerate(found):
        if text:
            lib.llvs_reply_set(reply, index, as_bytes(encode(text)))


_thunk = _callbacks.solicited([ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p], _ask)
_address = ctypes.cast(_thunk, ctypes.c_void_p).value


def _keep(tokens: Tokens, step: int, given: Optional[int], reply: int) -> Optional[int]:
    if step == c.TOKENS_READ:
        found = tokens.read()
        if found is not None:
            lib.llvs_reply_set(reply, 0, as_bytes(encode(found)))
    elif step == c.TOKENS_KEEP:
        tokens.keep(_data(given or 0).decode())
    elif step == c.TOKENS_LOCK:
        return c.OK if tokens.lock() else c.PASS
    else:
        tokens.unlock()
    return None


_tokens_thunk = _callbacks.solicited([ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p], _keep)
_tokens_address = ctypes.cast(_tokens_thunk, ctypes.c_void_p).value
