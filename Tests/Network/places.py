"""Places of every kind for which there is a server, each with a server of its own, and the requests to it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, Sized

import llvs
import servers
from dav_server import DavServer
from rados_server import RadosGateway
from s3_server import KEY, SECRET, S3Server
from sftp_server import SFTPServer


class Place:
    """A remote, and the requests to it."""

    def __init__(self, url: str, requests: Sized, publishing: int, challenges: int = 0, **options: Any) -> None:
        self.url, self.requests, self.publishing, self._options = url, requests, publishing, options
        #: Requests that are refused first in each exchange, if the server requires Digest authentication.
        self.challenges = challenges

    def __call__(self, layout: str = "packed", **keys: Any) -> llvs.Remote:
        mark = "&" if "?" in self.url else "?"
        return llvs.Remote(f"{self.url}{mark}layout={layout}" if layout else self.url, **self._options, **keys)

    def beside(self, name: str) -> Place:
        """Returns another place of the same server."""
        url = self.url.replace("/p", f"/{name}", 1) if "s3:" in self.url else f"{self.url[:-1]}{name}/"
        return Place(url, self.requests, self.publishing, self.challenges, **self._options)


KINDS = ["memory", "bucket", "radosgw", "openssh", *servers.NAMES]


#: Makes places below one server.
Service = Callable[[str], Place]


def started(kind: str) -> Iterator[Service]:
    """Starts a server for a fixture. A server that does not start is an error."""
    if kind == "memory":
        with DavServer() as server:
            yield lambda name: Place(f"{server.url}{name}/", server.requests, 2)
    elif kind == "bucket":
        bucket = S3Server()
        yield lambda name: Place(bucket.url(name), bucket.requests, 1, user=KEY, password=SECRET)
        bucket.close()
    elif kind == "radosgw":
        gateway = RadosGateway()
        yield lambda name: Place(gateway.url(name), gateway.methods, 1, user=KEY, password=SECRET)
        gateway.close()
    elif kind == "openssh":
        with tempfile.TemporaryDirectory(prefix="llvs-") as folder:
            ssh = servers.started_in(Path(folder), SFTPServer)
            yield lambda name: Place(ssh.url(name), ssh, 2, **ssh.secrets)
            ssh.close()
    else:
        for real in servers.started(kind):
            secrets = {"user": servers.USER, "password": servers.PASSWORD}
            yield lambda name: Place(
                real.url.replace("/notes/", f"/{name}/"), real.proxy.requests, 2, int("digest" in kind), **secrets
            )
