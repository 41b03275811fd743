"""Services by their own addresses, over TLS and through a proxy, as they are reached outside of tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import llvs
import pytest
from box import Box
from clouds import Cloud, exchange, ids
from drive import GoogleDrive
from onedrive import OneDrive
from pcloud import PCloud
from proxy import ConnectProxy, make_authority
from service import ServiceServer

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
@pytest.mark.parametrize("kind", KINDS)
def test_by_their_own_addresses(kind: str, tmp_path: Path, store: llvs.Store, new_store: Any) -> None:
    """Those of uploads, of downloads on other hosts, which get no token, and of tokens."""
    service = KINDS[kind]()
    if isinstance(service, OneDrive):
        service.strict = True
    authority, certificate, key = make_authority(tmp_path, service.hosts)
    server = ServiceServer(service, certificate=(str(certificate), str(key)))
    proxy = ConnectProxy(server.server_port)
    cloud = Cloud(service, kind, tmp_path)
    try:
        place = llvs.Remote(f"{kind}:///notes?layout=interchange", token_file=cloud.tokens, ca_file=str(authority), proxy=proxy.url)
        store.make_version(store.most_recent_head, insert={"large": bytes(21_000_000 if kind == "box" else 6_000_000)})
        if kind != "pcloud":
            service.expire_tokens()
        exchange(store, place)
        second = new_store()
        exchange(second, place)
        assert ids(second) == ids(store) and service.accounts.refreshes == (kind != "pcloud")
    finally:
        cloud.close()
        proxy.close()
        server.close()
