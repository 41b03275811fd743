"""The stand-in of CloudKit as a place of exchanges, for a person and for a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
from cloudkit import CloudKit, Record
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from service import ServiceServer


class Container:
    """One stand-in on loopback, and files with tokens and keys for it."""

    scheme = "cloudkit"

    def __init__(self, folder: Path) -> None:
        self.service = CloudKit()
        self.server = ServiceServer(self.service)
        self.folder = folder
        self.tokens, self.key = folder / "person.json", folder / "server.json"
        self.sign_in()
        key = ec.generate_private_key(ec.SECP256R1())
        self.service.keys["key-1"] = key.public_key()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
        self.write(self.key, {"key_id": "key-1", "private_key": pem.decode()})

    def write(self, path: Path, members: dict[str, Any]) -> None:
        path.write_text(json.dumps(members))
        path.chmod(0o600)

    def sign_in(self) -> None:
        self.service.users.add("ann/+=")
        self.write(self.tokens, {"api_token": self.service.api_token.replace(" ", "-"), "web_auth_token": "ann/+=", "note": [1, "x"]})
        self.service.api_token = self.service.api_token.replace(" ", "-")

    def url(self, database: str = "private", layout: Optional[str] = "interchange", store: str = "notes", **query: str) -> str:
        zone = {} if database == "public" else {"zone": "notes"}
        parts = {"store": store, **zone, "endpoint": self.server.url, "rate": "10000", **({"layout": layout} if layout else {}), **query}
        options = "&".join(f"{name}={value}" for name, value in parts.items() if value)
        return f"cloudkit://{self.service.container}/production/{database}?{options}"

    def place(self, database: str = "private", layout: Optional[str] = "interchange", store: str = "notes", **query: str) -> llvs.Remote:
        return llvs.Remote(self.url(database, layout, store, **query), token_file=self.key if database == "public" else self.tokens)

    def records(self, type: str = "LLVS_Version") -> dict[str, Record]:
        found = [record for zone in self.service.zones.values() for record in zone.records.values()]
        return {record.name: record for record in found if record.type == type and not record.deleted}

    def count(self, work: Callable[[], Any]) -> list[str]:
        before = len(self.service.requests)
        work()
        return self.service.requests[before:]

    def close(self) -> None:
        self.server.close()
