"""The requests of Apple's CloudKit Web Services Reference that exchanges use: the stand-in answers each as documented."""

from __future__ import annotations

import base64
import hashlib
import json
import urllib.error
import urllib.request
from datetime import datetime, timezone
from typing import Any, Iterator
from urllib.parse import quote

import pytest
from cloudkit import CloudKit
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from service import ServiceServer

ZONE = {"zoneName": "notes"}


class Client:
    def __init__(self) -> None:
        self.service = CloudKit()
        self.server = ServiceServer(self.service)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.service.keys["key 1"] = self.key.public_key()
        self.service.users.add("ann/+=")
        self.token = "ann/+="

    def post(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        request = urllib.request.Request(url, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request) as answer:
                self.token = answer.headers.get("X-Apple-CloudKit-Web-Auth-Token") or self.token
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            text = error.read()
            return error.code, json.loads(text) if text else None

    def ask(self, what: str, body: dict[str, Any], database: str = "private") -> tuple[int, Any]:
        """Sends a request as a user."""
        path = f"/database/1/{self.service.container}/production/{database}/{what}"
        tokens = f"?ckAPIToken={quote(self.service.api_token)}&ckWebAuthToken={quote(self.token, safe='')}"
        return self.post(self.server.url + path + tokens, json.dumps(body).encode(), {})

    def ask_signed(self, what: str, body: dict[str, Any], database: str = "public", date: str = "", spoil: bool = False) -> tuple[int, Any]:
        """Sends a request as a server."""
        path = f"/database/1/{self.service.container}/production/{database}/{what}"
        data = json.dumps(body).encode()
        date = date or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        message = f"{date}:{base64.b64encode(hashlib.sha256(data).digest()).decode()}:{path}"
        signature = base64.b64encode(self.key.sign(message.encode(), ec.ECDSA(hashes.SHA256()))).decode()
        headers = {"X-Apple-CloudKit-Request-KeyID": "key 1", "X-Apple-CloudKit-Request-ISO8601Date": date}
        return self.post(self.server.url + path, data + b" " * spoil, headers | {"X-Apple-CloudKit-Request-SignatureV1": signature})

    def make(self, *names: str, zone: Any = ZONE, kind: str = "create", **fields: Any) -> list[dict[str, Any]]:
        record = {"recordType": "LLVS_Version", "fields": {key: {"value": value} for key, value in fields.items()}}
        operations = [{"operationType": kind, "record": {"recordName": name, **record}} for name in names]
        status, found = self.ask("records/modify", {"zoneID": zone, "operations": operations})
        assert status == 200
        return list(found["records"])


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    client.ask("zones/modify", {"operations": [{"operationType": "create", "zone": {"zoneID": ZONE}}]})
    yield client
    client.server.close()


def test_server_to_server_keys(client: Client) -> None:
    operation = {"operationType": "create", "record": {"recordName": "a", "recordType": "LLVS_Version", "fields": {}}}
    assert client.ask_signed("records/modify", {"operations": [operation]})[0] == 200
    assert client.ask_signed("records/lookup", {"records": [{"recordName": "a"}]})[1]["records"][0]["recordType"] == "LLVS_Version"
    for wrong in ({"spoil": True}, {"date": "2020-01-01T00:00:00Z"}, {"date": "2026-11-23T00:00:00.5Z"}, {"database": "private"}):
        status, found = client.ask_signed("records/lookup", {"records": []}, **wrong)
        assert (status, found["serverErrorCode"]) == (401, "AUTHENTICATION_FAILED")


def test_web_auth_tokens(client: Client) -> None:
    client.service.replacing = True
    old = client.token
    assert client.ask("zones/list", {})[0] == 200
    assert client.token != old and client.ask("zones/list", {})[0] == 200
    client.token = old
    status, found = client.ask("zones/list", {})
    assert status == 421 and found["serverErrorCode"] == "AUTHENTICATION_REQUIRED" and "redirectURL" in found


def test_zones(client: Client) -> None:
    assert {zone["zoneID"]["zoneName"] for zone in client.ask("zones/list", {})[1]["zones"]} == {"_defaultZone", "notes"}
    found = client.ask("zones/lookup", {"zones": [ZONE, {"zoneName": "other"}]})[1]["zones"]
    assert "serverErrorCode" not in found[0] and found[1]["serverErrorCode"] == "ZONE_NOT_FOUND"
    assert client.ask("records/query", {"zoneID": {"zoneName": "other"}, "query": {"recordType": "x"}})[0] == 404
    client.ask("zones/modify", {"operations": [{"operationType": "delete", "zone": {"zoneID": ZONE}}]})
    assert client.ask("records/lookup", {"zoneID": ZONE, "records": []})[0] == 404


def test_records_modify(client: Client) -> None:
    tag = client.make("a", storeIdentifier="s")[0]["recordChangeTag"]
    assert client.make("a")[0]["serverErrorCode"] == "EXISTS"
    assert client.make("a", kind="update")[0]["serverErrorCode"] == "CONFLICT"
    assert client.make("b", kind="update")[0]["serverErrorCode"] == "NOT_FOUND"
    update = {"operationType": "update", "record": {"recordName": "a", "recordChangeTag": tag, "fields": {"n": {"value": 1}}}}
    found = client.ask("records/modify", {"zoneID": ZONE, "operations": [update]})[1]["records"][0]
    assert found["fields"]["n"] == {"value": 1, "type": "INT64"} and found["fields"]["storeIdentifier"]["value"] == "s"
    assert client.make("a", kind="forceReplace", m="x")[0]["fields"].keys() == {"m"}
    assert client.make("a", kind="forceDelete")[0]["deleted"]


def test_errors_come_for_each_record(client: Client) -> None:
    client.make("a")
    one = {"recordType": "x", "fields": {}}
    operations = [{"operationType": "create", "record": {"recordName": name, **one}} for name in ("a", "b")]
    found = client.ask("records/modify", {"zoneID": ZONE, "operations": operations, "atomic": True})[1]["records"]
    assert [each.get("serverErrorCode") for each in found] == ["EXISTS", "ATOMIC_ERROR"]
    found = client.ask("records/modify", {"zoneID": ZONE, "operations": operations, "atomic": False})[1]["records"]
    assert [each.get("serverErrorCode") for each in found] == ["EXISTS", None]


def test_limits(client: Client) -> None:
    operations = [{"operationType": "create", "record": {"recordName": f"r{n}", "recordType": "x", "fields": {}}} for n in range(201)]
    assert client.ask("records/modify", {"zoneID": ZONE, "operations": operations})[0] == 413
    assert client.make("large", text="x" * 1_500_000)[0]["serverErrorCode"] == "LIMIT_EXCEEDED"
    assert client.make("odd", data={"receipt": "none"})[0]["serverErrorCode"] == "BAD_REQUEST"
    bad = {"operationType": "create", "record": {"recordName": "x", "fields": {"n": {"value": "1", "type": "INT64"}}}}
    found = client.ask("records/modify", {"zoneID": ZONE, "operations": [bad]})[1]["records"][0]
    assert found["serverErrorCode"] == "BAD_REQUEST"


def test_records_query(client: Client) -> None:
    client.make(*(f"r{n}" for n in range(150)), storeIdentifier="s")
    client.make("other", storeIdentifier="t")
    equal = {"fieldName": "storeIdentifier", "comparator": "EQUALS", "fieldValue": {"value": "s"}}
    query = {"zoneID": ZONE, "query": {"recordType": "LLVS_Version", "filterBy": [equal]}, "resultsLimit": 100}
    first = client.ask("records/query", query)[1]
    second = client.ask("records/query", query | {"continuationMarker": first["continuationMarker"]})[1]
    names = [record["recordName"] for page in (first, second) for record in page["records"]]
    assert names == [f"r{n}" for n in range(150)] and "continuationMarker" not in second


def test_changes_zone(client: Client) -> None:
    client.make("a", "b")
    zone: dict[str, Any] = {"zoneID": ZONE, "resultsLimit": 1}
    first = client.ask("changes/zone", {"zones": [zone]})[1]["zones"][0]
    assert first["moreComing"] and [record["recordName"] for record in first["records"]] == ["a"]
    second = client.ask("changes/zone", {"zones": [zone | {"syncToken": first["syncToken"]}]})[1]["zones"][0]
    assert not second["moreComing"] and [record["recordName"] for record in second["records"]] == ["b"]
    client.make("a", kind="forceDelete")
    third = client.ask("changes/zone", {"zones": [zone | {"syncToken": second["syncToken"]}]})[1]["zones"][0]
    assert third["records"][0]["deleted"]
    client.service.void = 3
    assert "serverErrorCode" in client.ask("changes/zone", {"zones": [zone | {"syncToken": "2"}]})[1]["zones"][0]
    assert client.ask("changes/zone", {"zones": [zone]}, database="public")[0] == 400


def test_assets(client: Client) -> None:
    token = {"recordName": "a", "recordType": "LLVS_Version", "fieldName": "valueChangesAsset"}
    url = client.ask("assets/upload", {"zoneID": ZONE, "tokens": [token]})[1]["tokens"][0]["url"]
    data = b"changes" * 10_000
    receipt = client.post(url, data, {})[1]["singleFile"]
    assert client.post(url, data, {})[0] == 404
    value = client.make("a", valueChangesAsset=receipt)[0]["fields"]["valueChangesAsset"]["value"]
    with urllib.request.urlopen(value["downloadURL"].replace("${f}", "a")) as answer:
        assert answer.read() == data


@pytest.mark.parametrize(("fault", "status"), [("rate limit", 429), ("server error", 503), ("token expired", 421)])
def test_faults(client: Client, fault: str, status: int) -> None:
    client.service.inject(fault)
    found = client.ask("zones/list", {})
    assert found[0] == status and ("retryAfter" in found[1]) == (status != 421)
