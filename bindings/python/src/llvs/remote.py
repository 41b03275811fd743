"""Places on servers: an address, and what it takes to be let in."""

from __future__ import annotations

import ctypes
import os
import threading
import unicodedata
from typing import Any, Callable, Iterable, Literal, NamedTuple, Optional, Union

from . import _abi, _callbacks, _constants as c, _structs, errors
from ._carrier import Carrier
from ._memory import BytesArray, address, as_bytes, encode
from .storage import _data
from .words import Layout

lib = _abi.lib


_LAYOUTS = {"": c.LAYOUT_AUTOMATIC, "interchange": c.LAYOUT_INTERCHANGE, "packed": c.LAYOUT_PACKED, "bridged": c.LAYOUT_BRIDGED}


class Credentials(NamedTuple):
    """A user and a password, or a token."""

    #: Who asks.
    user: str = ""
    #: Their password.
    password: str = ""
    #: In the place of both.
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(...)"


#: Asked for credentials: the address, and whether what it gave before was refused. None: there are none.
AskForCredentials = Callable[[str, bool], Optional[Credentials]]


class Tokens:
    """Keeps the tokens of an account at a cloud drive, or of CloudKit, in a key store of the program, in the place of a `token_file`.

    The library renews them, and uses nothing new before it is kept. To be subclassed:

        class Keys(llvs.Tokens):
            def read(self):
                return keyring.get_password("notes", "google")
            def keep(self, tokens):
                keyring.set_password("notes", "google", tokens)

    One object for an account serves all threads. Where several processes have the same tokens, `lock` and `unlock` have to be
    overridden as well: two that renew tokens which serve once are signed out. Its methods are called on the thread of the exchange.
    """

    def read(self) -> Optional[str]:
        """The tokens: JSON, with the members that a `token_file` has (docs/cloud-drives.md). None: there are none."""
        raise NotImplementedError

    def keep(self, tokens: str) -> None:
        """Keeps others in their place, for good before it returns."""
        raise NotImplementedError

    def lock(self) -> bool:
        """Begins a renewal without waiting; false while another is within one, and then it is asked again soon."""
        return self._renewing.acquire(blocking=False)

    def unlock(self) -> None:
        """Ends it, on the same thread."""
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

    A URL alone is enough where no credentials are needed. One that is encrypted, so that whoever holds the files can read nothing:

        place = llvs.Remote("file:///media/stick/notes", passphrase=words)

    The same of a place of one's own, `RemoteFiles`:

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
        """Describes a place; nothing is asked of the server yet.

        url: "https+webdav://host[:port]/path/" ("http+webdav:" on this machine), "sftp://host[:port]/path/", "s3://bucket/prefix", or a
        cloud drive. No user and no password in it. "?layout=packed" at its end (or "interchange", "bridged") says how versions lie there;
        else a folder ("file:") has single files, and a server what is there, or packs if nothing is. Or `RemoteFiles`, for which the layout
        and the keys below count.
        user, password: sent to that host alone. token: sent as "Authorization: Bearer", in their place.
        token_file: for a cloud drive ("gdrive:///path"), the path of a file with OAuth tokens, which are renewed there when they are
        refused: docs/cloud-drives.md. For CloudKit ("cloudkit://container/production/private?store=id") a file with a key or tokens.
        tokens: in the place of `token_file`, what keeps the same in a key store of the program.
        credentials: in the place of these, a function that is asked before the first request, and once more when what it gave was refused:
        so credentials can stay in a key store. It gets the address and whether it was refused, and gives `Credentials` or None.
        ca_file: the path of a file with certificates (PEM) of the authorities that are trusted, in the place of the system's.
        key_file: for SFTP, the path of the file with the user's private key, which `password` opens if need be. Without a key
        and a password those of the ssh-agent are offered.
        known_hosts: for SFTP, the path of the file with the keys of hosts that are trusted, in the place of ~/.ssh/known_hosts.
        proxy: its URL; else as the environment says (https_proxy, http_proxy, no_proxy), and none for this machine.
        timeout: seconds without a byte after which a transfer is given up, in whole seconds; None: 30.
        layout: "packed", "interchange" or "bridged" (both beside each other), in the place of the same in the URL.
        passphrase, identity: what is there is encrypted (docs/encryption.md), and this opens it: a passphrase, or a secret key of age
        (`AGE-SECRET-KEY-1...`); one of the two is enough. An empty place is made so by the first send, for both where both are given,
        which waits 10 seconds. A place in clear is refused, and so is an encrypted one without these.
        recipients: who else is to open a place that is made with these: public keys of age (`age1...`), as that of a recovery key.
        device_name: what this device is called, for people who look at who writes to a place in packs (`RemoteWriter.name`): up to 128
        bytes of UTF-8 without control characters and marks of direction, which whoever can read the place can read.

        Raises TypeError, ValueError. What is wrong with a key shows when an exchange is opened, and whether it fits with its first call:
        EncryptionError.
        """
        if layout not in _LAYOUTS:
            raise errors.InvalidArgumentError(f"{layout!r} is no layout: use packed, interchange or bridged")
        if not isinstance(url, (str, Carrier)):
            raise TypeError(f"the place of a Remote is a URL or llvs.RemoteFiles, not {type(url).__name__}")
        if isinstance(recipients, str):
            raise TypeError("recipients is an iterable of texts, not one: [recipient]")
        if passphrase == "":
            raise errors.InvalidArgumentError("the passphrase is empty; leave it out for a place that is not encrypted")
        if credentials is not None and not callable(credentials):
            raise TypeError(f"credentials must be a function of an address and a bool, not {type(credentials).__name__}")
        if tokens is not None and not isinstance(tokens, Tokens):
            raise TypeError(f"tokens must be an llvs.Tokens, not {type(tokens).__name__}")
        if timeout is not None and not 0 < timeout <= 86_400:
            raise errors.InvalidArgumentError(f"a timeout of {timeout!r} seconds is none: give more than 0, and at most 86,400")
        #: What it is of one's own, in the place of a URL.
        self.files: Optional[Carrier] = None if isinstance(url, str) else url
        #: Where it is; of files of one's own their name.
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
        """Into an `llvs_exchange_options`, which borrows what is kept here: to be called last before the options are used."""
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
