"""Services at their own addresses, over TLS and through a proxy, as outside of tests."""

from __future__ import annotations

import json
import shutil
import ssl
import threading
import urllib.request
from pathlib import Path
from typing import Any

import llvs
import llvs.oauth
import pytest
from box import Box
from clouds import Cloud, exchange, ids
from drive import GoogleDrive
from onedrive import OneDrive
from patience import PATIENCE
from pcloud import PCloud
from proxy import ConnectProxy, make_authority
from service import ServiceServer

KINDS: dict[str, Any] = {"gdrive": GoogleDrive, "onedrive": OneDrive, "box": Box, "pcloud": PCloud}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
@pytest.mark.parametrize("kind", KINDS)
def test_by_their_own_addresses(kind: str, tmp_path: Path, store: llvs.Store, new_store: Any) -> None:
    """The real addresses of uploads, of downloads on other hosts, which receive no token, and of tokens."""
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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
@pytest.mark.parametrize("api", ["api.pcloud.com", "eapi.pcloud.com"])
def test_regions_of_pcloud(api: str, tmp_path: Path, store: llvs.Store, new_store: Any, monkeypatch: Any) -> None:
    """The page reports the region of the account at sign-in, and the exchange uses it unless the URL names one."""
    service = PCloud()
    service.api = api
    authority, certificate, key = make_authority(tmp_path, service.hosts)
    server = ServiceServer(service, certificate=(str(certificate), str(key)))
    proxy = ConnectProxy(server.server_port)
    monkeypatch.setenv("https_proxy", proxy.url)
    trusting, tokens = ssl.create_default_context(cafile=str(authority)), tmp_path / "pcloud.json"

    def browser(address: str) -> None:
        threading.Thread(target=lambda: urllib.request.urlopen(address, timeout=PATIENCE, context=trusting).read()).start()

    def place(query: str = "") -> llvs.Remote:
        return llvs.Remote(f"pcloud:///notes?layout=interchange{query}", token_file=tokens, ca_file=str(authority), proxy=proxy.url)

    try:
        with llvs.Exchange(store, place()) as way:
            with pytest.raises(llvs.NotFoundError):
                way.retrieve()
            llvs.oauth.sign_in(
                "pcloud", tokens, client_id="tests", client_secret="s", show=browser, timeout=PATIENCE, ca_file=str(authority))
            # This holds also for an exchange that was opened before the user signed in. The session of a large file belongs to the account,
            # too.
            store.make_version(store.most_recent_head, insert={"large": bytes(6_000_000)})
            way.retrieve()
            assert len(way.send().sent) == 4 and "GET /upload_save" in service.requests
        assert json.loads(tokens.read_text())["token_uri"] == f"https://{api}/oauth2_token"
        second = new_store()
        exchange(second, place())
        assert ids(second) == ids(store)
        exchange(new_store(), place("&region=" + ("eu" if api == "eapi.pcloud.com" else "us")))
        with llvs.Exchange(second, place("&region=" + ("us" if api == "eapi.pcloud.com" else "eu"))) as way:
            with pytest.raises(llvs.errors.PermissionDeniedError, match="need region=eu"):
                way.retrieve()
        # A host that is not pCloud's receives no token.
        found = json.loads(tokens.read_text())
        tokens.write_text(json.dumps({**found, "token_uri": "https://p-def1.pcloud.com/oauth2_token"}))
        before = len(service.requests)
        with llvs.Exchange(second, place()) as way:
            if api == "api.pcloud.com":
                way.retrieve()
            else:
                with pytest.raises(llvs.errors.PermissionDeniedError):
                    way.retrieve()
        assert len(service.requests) > before
    finally:
        proxy.close()
        server.close()
