"""HTTP/2 with a real server: it is used if the server supports it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import llvs
import pytest
from servers import PASSWORD, USER, Server, started_in


class SecureServer(Server):
    """nginx with TLS. It logs the protocol of each request."""

    def __init__(self, folder: Path, certificate: tuple[Path, Path], speaks: str) -> None:
        self.listening = f" ssl {speaks}; ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]}"
        self.logging = f"log_format asked '$server_protocol $request_method'; access_log {folder}/asked asked;"
        super().__init__("nginx", folder)

    @property
    def url(self) -> str:
        return f"https+webdav://127.0.0.1:{self.proxy.port}/dav/notes/"

    @property
    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()


@pytest.mark.parametrize(("speaks", "protocol"), [("http2", "HTTP/2.0"), ("", "HTTP/1.1")])
def test_http2_is_used_where_the_server_speaks_it(
    certificate: tuple[Path, Path], store: llvs.Store, new_store: Any, speaks: str, protocol: str
) -> None:
    # A folder that other users may enter, since nginx runs as another user.
    with tempfile.TemporaryDirectory(prefix="llvs-") as folder:
        server = started_in(Path(folder), lambda own: SecureServer(own, certificate, speaks))
        try:
            place = llvs.Remote(server.url, user=USER, password=PASSWORD, ca_file=str(certificate[0]))
            large = store.make_version(store.most_recent_head, insert={"large": bytes(range(256)) * 20_000})
            for one in (store, new_store()):
                with llvs.Exchange(one, place) as way:
                    assert not way.retrieve().problems and not way.send().problems
            assert one.at(large.id)["large"] == bytes(range(256)) * 20_000
            assert {line.split()[0] for line in server.asked} == {protocol}
            assert {line.split()[1] for line in server.asked} >= {"PROPFIND", "GET", "PUT", "MOVE"}
            if speaks:
                assert server.proxy.connections <= 8, "requests share connections"
        finally:
            server.close()
