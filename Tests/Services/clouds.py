"""Stand-ins as places of exchanges, with an account whose user has signed in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
from service import Service, ServiceServer


class Cloud:
    """One stand-in on loopback, and a token file for it."""

    def __init__(self, service: Service, scheme: str, folder: Path) -> None:
        self.service, self.scheme = service, scheme
        self.server = ServiceServer(service)
        self.tokens = folder / f"{scheme}.json"
        self.sign_in()

    def sign_in(self, **change: Any) -> dict[str, Any]:
        """Rewrites the token file."""
        access, refresh = self.service.accounts.sign_in()  # type: ignore[attr-defined]
        found = {"access_token": access, "refresh_token": refresh, "client_id": "tests", "client_secret": "s3cret-client", **change}
        self.tokens.write_text(json.dumps({name: value for name, value in found.items() if value is not None}))
        self.tokens.chmod(0o600)
        return found

    def url(self, path: str = "notes", layout: Optional[str] = "interchange", **query: str) -> str:
        parts = {"endpoint": self.server.url, "rate": "10000", **({"layout": layout} if layout else {}), **query}
        return f"{self.scheme}:///{path}?" + "&".join(f"{name}={value}" for name, value in parts.items())

    def place(self, path: str = "notes", layout: Optional[str] = "interchange", **query: str) -> llvs.Remote:
        return llvs.Remote(self.url(path, layout, **query), token_file=self.tokens)

    def count(self, work: Callable[[], Any]) -> list[str]:
        """Counts requests until the block ends."""
        before = len(self.service.requests)
        work()
        return self.service.requests[before:]

    def close(self) -> None:
        self.server.close()


def exchange(store: llvs.Store, place: llvs.Remote) -> llvs.exchange.ExchangeResult:
    """Retrieves and sends."""
    with llvs.Exchange(store, place) as way:
        received, sent = way.retrieve(), way.send()
    assert not received.problems and not sent.problems, (received.problems, sent.problems)
    return llvs.exchange.ExchangeResult(received.retrieved, sent.sent, ())


def save(store: llvs.Store, name: str, data: bytes = b"1") -> llvs.Version:
    return store.make_version(store.most_recent_head, insert={name: data})


def ids(store: llvs.Store) -> set[str]:
    return {version.id for version in store}


def folders(cloud: Cloud, name: str) -> list[Any]:
    tree = cloud.service.tree  # type: ignore[attr-defined]
    return [node for node in tree.nodes.values() if node.name == name and node.is_folder]


def files(cloud: Cloud, folder: str) -> list[Any]:
    inside = {node.id for node in folders(cloud, folder)}
    tree = cloud.service.tree  # type: ignore[attr-defined]
    return [node for node in tree.nodes.values() if node.parent in inside and not node.is_folder]


def file_in(cloud: Cloud, parent: str, name: str) -> None:
    """Makes a file in a folder, as another program would."""
    node = cloud.service.tree.add(parent, name, b"?")  # type: ignore[attr-defined]
    if hasattr(cloud.service, "kinds"):
        cloud.service.kinds[node.id] = "text/plain"


def send(store: llvs.Store, place: llvs.Remote) -> None:
    """Uploads an unrelated file."""
    with llvs.Exchange(store, place) as way:
        way.send()
