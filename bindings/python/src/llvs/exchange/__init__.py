"""Exchanges of versions with folders, servers, and places of the program's own.

    Place        the place of an exchange: the path of a folder, a URL, a `Remote` (a URL with credentials and more), a `Transport`,
                 or `RemoteFiles`
    AskForCredentials  credentials of a `Remote`: a function of (address, whether they were refused) that returns `Credentials`, or None
    FileContent  the content of a file in a `Transport` or `RemoteFiles`: bytes, or for a large one a binary file or an iterable of bytes
"""

from __future__ import annotations

# Type checkers treat this name as true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.snapshot import Problem as Problem
    from .exchange import Exchange as Exchange
    from .members import KeyPair as KeyPair, Member as Member, make_identity as make_identity
    from .remote import AskForCredentials as AskForCredentials, Credentials as Credentials, Remote as Remote, Tokens as Tokens
    from .remote_files import RemoteFile as RemoteFile, RemoteFiles as RemoteFiles
    from .remote_status import RemoteStatus as RemoteStatus, RemoteWriter as RemoteWriter
    from .results import ExchangeResult as ExchangeResult, Exchanged as Exchanged, Pack as Pack
    from .transport import (
        FileContent as FileContent,
        OutgoingFile as OutgoingFile,
        Place as Place,
        Transport as Transport,
        VersionFiles as VersionFiles,
    )
else:
    from .._names import attach

    __getattr__, __dir__, __all__ = attach(
        __name__,
        {
            "exchange.exchange": "Exchange",
            "exchange.members": "KeyPair Member make_identity",
            "exchange.remote": "AskForCredentials Credentials Remote Tokens",
            "exchange.remote_files": "RemoteFile RemoteFiles",
            "exchange.remote_status": "RemoteStatus RemoteWriter",
            "exchange.results": "ExchangeResult Exchanged Pack",
            "exchange.transport": "FileContent OutgoingFile Place Transport VersionFiles",
            "store.snapshot": "Problem",
        },
    )
