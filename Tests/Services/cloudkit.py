"""A stand-in of CloudKit Web Services, after https://developer.apple.com/documentation/cloudkitjs and the CloudKit Web Services Reference.

No other program can check it. The package cryptography verifies signatures, and test_cloudkit.py makes the requests of the reference.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from service import Answer, Refused, Request, Service, byte_range
from tree import BEGINNING

DEFAULT_ZONE = "_defaultZone"
TYPES: dict[str, Any] = {
    "STRING": str, "INT64": int, "DOUBLE": (int, float), "TIMESTAMP": int, "BYTES": str, "ASSETID": dict, "REFERENCE": dict,
    "STRING_LIST": list,
}  # fmt: skip


@dataclass
class Record:
    name: str
    type: str
    fields: dict[str, Any]
    tag: str
    created: int
    modified: int
    deleted: bool = False


@dataclass
class Zone:
    records: dict[str, Record] = field(default_factory=dict)
    #: The names of changed records, in the order of the changes.
    changes: list[str] = field(default_factory=list)

    def newest(self, count: int) -> set[str]:
        return set(self.changes[-count:]) if count else set()


class CloudKit(Service):
    """One container. `keys` are the public keys of servers by id; `users` are the valid web auth tokens.

    With `replacing` each answer gives a new web auth token, and the old one becomes invalid. Sync tokens below `void` are invalid.
    `stale` is the number of the newest changes of a zone that neither queries nor the feed show yet.
    """

    hosts = ("api.apple-cloudkit.com", "cvws.icloud-content.com")
    OPERATIONS, RECORD, ASSET = 200, 1_000_000, 15 << 20

    def __init__(self, container: str = "iCloud.org.example.notes") -> None:
        super().__init__()
        self.container = container
        self.keys: dict[str, ec.EllipticCurvePublicKey] = {}
        self.api_token = "an API token"
        self.users: set[str] = set()
        self.replacing = False
        self.zones: dict[tuple[str, str, str], Zone] = {}
        #: Zones of the private database that are shared with others, by the record name of the owner.
        self.shares: set[tuple[str, str]] = set()
        self.now = BEGINNING
        self.counted = 0
        self.assets: dict[str, bytes] = {}
        self.slots: set[str] = set()
        self.markers: dict[str, list[str]] = {}
        self.void = 0
        self.stale = 0

    def expire_tokens(self) -> None:
        self.users.clear()

    def refusal(self, status: int, code: str, message: str, **more: Any) -> Answer:
        code = {"serviceUnavailable": "TRY_AGAIN_LATER"}.get(code, code)
        retry = {"retryAfter": 1} if code in ("THROTTLED", "TRY_AGAIN_LATER") else {}
        return Answer.of({"uuid": "0", "serverErrorCode": code, "reason": message, **retry, **more}, status)

    def rate_limited(self) -> Answer:
        return self.refusal(429, "THROTTLED", "The request was throttled.")

    def template(self, request: Request) -> str:
        parts = request.parts
        return "/" + "/".join(parts[4:] if parts[:1] == ["database"] else parts[:1])

    def answer(self, request: Request) -> Answer:
        if request.parts[:1] == ["slots"]:
            return self._receive(request)
        if request.parts[:1] == ["assets"]:
            data = self.assets.get(request.parts[1])
            return Answer(404) if data is None else byte_range(request, data)
        if request.method != "POST":
            raise self.refuse(405, "BAD_REQUEST", "Only POST is answered here.")
        match request.parts:
            case ["database", "1", self.container, ("development" | "production") as environment, database, *what]:
                pass
            case _:
                raise self.refuse(404, "NOT_FOUND", "No such container or environment.")
        if database not in ("public", "private", "shared"):
            raise self.refuse(404, "NOT_FOUND", "No such database.")
        new_token = self._admit(request, database)
        try:
            answer = self._act(environment, database, what, request)
        except Refused as refused:
            answer = refused.answer
        if new_token is not None:
            answer.headers["X-Apple-CloudKit-Web-Auth-Token"] = new_token
        return answer

    def _act(self, environment: str, database: str, what: list[str], request: Request) -> Answer:
        act = getattr(self, "_do_" + "_".join(what), None)
        if act is None:
            raise self.refuse(404, "NOT_FOUND", "No such request.")
        try:
            return Answer.of(act(environment, database, request.json(), request))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.refuse(400, "BAD_REQUEST", f"BadRequestException: {error!r}") from None

    # Authentication

    def _admit(self, request: Request, database: str) -> Optional[str]:
        key = request.headers.get("x-apple-cloudkit-request-keyid")
        if key is not None:
            if database != "public":
                raise self.refuse(401, "AUTHENTICATION_FAILED", "Keys of servers are for the public database.")
            self._verify(request, key)
            return None
        if request.query.get("ckAPIToken") != self.api_token:
            raise self.refuse(401, "AUTHENTICATION_FAILED", "no auth method found")
        token = request.query.get("ckWebAuthToken")
        if token not in self.users:
            if database == "public" and token is None and request.parts[5:] in (["records", "query"], ["records", "lookup"]):
                return None
            raise Refused(self.refusal(421, "AUTHENTICATION_REQUIRED", "request needs authorization",
                                       redirectURL="https://www.icloud.com/sign-in?x=1"))  # fmt: skip
        if not self.replacing:
            return token
        self.users.discard(token)
        new = f"{token.split('~')[0]}~{self._count()}/+="
        self.users.add(new)
        return new

    def _verify(self, request: Request, id: str) -> None:
        """Verifies the signature of the date, the body's digest and the path."""
        date, key = request.headers.get("x-apple-cloudkit-request-iso8601date", ""), self.keys.get(id)
        try:
            time = datetime.strptime(date, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
            signature = base64.b64decode(request.headers.get("x-apple-cloudkit-request-signaturev1", ""), validate=True)
            body = base64.b64encode(hashlib.sha256(request.body).digest()).decode()
            if key is None or abs(time - datetime.now(timezone.utc)) > timedelta(minutes=10):
                raise ValueError("key or date")
            key.verify(signature, f"{date}:{body}:{request.path}".encode(), ec.ECDSA(hashes.SHA256()))
        except (ValueError, InvalidSignature):
            raise self.refuse(401, "AUTHENTICATION_FAILED", "Authentication failed") from None

    # Zones

    def _zone(self, environment: str, database: str, given: dict[str, Any]) -> Zone:
        name = str(given.get("zoneID", {}).get("zoneName", DEFAULT_ZONE))
        place = (environment, database, name)
        if database == "shared":
            if (str(given["zoneID"].get("ownerRecordName")), name) not in self.shares:
                raise self.refuse(404, "ZONE_NOT_FOUND", f"Zone '{name}' does not exist")
            place = (environment, "private", name)
        elif name == DEFAULT_ZONE:
            return self.zones.setdefault(place, Zone())
        if place not in self.zones:
            raise self.refuse(404, "ZONE_NOT_FOUND", f"Zone '{name}' does not exist")
        return self.zones[place]

    def _do_zones_list(self, environment: str, database: str, given: dict[str, Any], _: Request) -> dict[str, Any]:
        names = {DEFAULT_ZONE, *(zone for e, d, zone in self.zones if (e, d) == (environment, database))}
        return {"zones": [{"zoneID": {"zoneName": name}, "atomic": name != DEFAULT_ZONE} for name in sorted(names)]}

    def _do_zones_lookup(self, environment: str, database: str, given: dict[str, Any], _: Request) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        for each in given["zones"]:
            there = each["zoneName"] == DEFAULT_ZONE or (environment, database, each["zoneName"]) in self.zones
            found.append({"zoneID": each} | ({} if there else {"serverErrorCode": "ZONE_NOT_FOUND", "reason": "Zone does not exist"}))
        return {"zones": found}

    def _do_zones_modify(self, environment: str, database: str, given: dict[str, Any], _: Request) -> dict[str, Any]:
        if database == "public":
            raise self.refuse(400, "BAD_REQUEST", "The public database has one zone.")
        found = []
        for operation in given["operations"]:
            name = operation["zone"]["zoneID"]["zoneName"]
            if operation["operationType"] == "create":
                self.zones.setdefault((environment, database, name), Zone())
            elif operation["operationType"] == "delete":
                self.zones.pop((environment, database, name), None)
            else:
                raise ValueError("operationType")
            found.append({"zoneID": {"zoneName": name}, "syncToken": "0", "atomic": True})
        return {"zones": found}

    # Records

    def _do_records_modify(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        operations = given["operations"]
        if len(operations) > self.OPERATIONS:
            raise self.refuse(413, "LIMIT_EXCEEDED", f"limit is {self.OPERATIONS} operations")
        zone = self._zone(environment, database, given)
        atomic = bool(given.get("atomic", zone is not self.zones.get((environment, database, DEFAULT_ZONE))))
        kept = {name: Record(**vars(record)) for name, record in zone.records.items()} if atomic else {}
        before = len(zone.changes)
        found = [self._operate(zone, operation, request) for operation in operations]
        if atomic and any("serverErrorCode" in each for each in found):
            zone.records, zone.changes = kept, zone.changes[:before]
            found = [each if "serverErrorCode" in each
                     else {"recordName": each["recordName"], "serverErrorCode": "ATOMIC_ERROR", "reason": "Atomic failure"}
                     for each in found]  # fmt: skip
        return {"records": found}

    def _operate(self, zone: Zone, operation: dict[str, Any], request: Request) -> dict[str, Any]:
        kind, given = operation["operationType"], operation["record"]
        name = str(given.get("recordName") or f"_record{self._count()}")
        old = zone.records.get(name)

        def error(code: str, reason: str) -> dict[str, Any]:
            return {"recordName": name, "serverErrorCode": code, "reason": reason}

        if kind not in ("create", "update", "forceUpdate", "replace", "forceReplace", "delete", "forceDelete"):
            raise ValueError("operationType")
        if len(name) > 255 or name.startswith("_") and "recordName" in given:
            return error("BAD_REQUEST", "Invalid value for recordName")
        there = old is not None and not old.deleted
        if kind == "create" and there:
            return error("EXISTS", "record to insert already exists")
        if kind in ("update", "replace", "delete") and not there:
            return error("NOT_FOUND", "Record not found")
        if kind in ("update", "replace", "delete") and old is not None and given.get("recordChangeTag") != old.tag:
            return error("CONFLICT", "client oplock error updating record")
        now, tag = self._time(), format(self._count(), "x")
        if kind in ("delete", "forceDelete"):
            if old is not None:
                old.deleted, old.fields, old.tag, old.modified = True, {}, tag, now
                zone.changes.append(name)
            return {"recordName": name, "deleted": True}
        fields = self._fields(given.get("fields", {}))
        if isinstance(fields, str):
            return error("BAD_REQUEST", fields)
        merged = {**(old.fields if old and there and "pdate" in kind else {}), **fields}
        merged = {key: value for key, value in merged.items() if value.get("value") is not None}
        if len(json.dumps({k: v for k, v in merged.items() if v["type"] != "ASSETID"})) > self.RECORD * 4 // 3:
            return error("LIMIT_EXCEEDED", "record too large")
        if self._used() + sum(v["value"].get("size", 0) for v in merged.values() if v["type"] == "ASSETID") > self.quota:
            return error("QUOTA_EXCEEDED", "Quota exceeded")
        created = old.created if old is not None and there else now
        record = zone.records[name] = Record(name, given.get("recordType") or (old.type if old else ""), merged, tag, created, now)
        zone.changes.append(name)
        return self._shown(record, None, request)

    def _fields(self, given: dict[str, Any]) -> Any:
        """Returns the fields if they are valid, or the error."""
        found: dict[str, Any] = {}
        for key, each in given.items():
            value = each["value"]
            kind = each.get("type") or ("STRING" if isinstance(value, str) else "ASSETID" if isinstance(value, dict) else "INT64")
            if value is not None and not isinstance(value, TYPES.get(kind, ())):
                return f"Invalid value, expected type {kind} for field {key}"
            if kind == "BYTES" and value is not None:
                base64.b64decode(value, validate=True)
            if kind == "ASSETID" and value is not None and value.get("receipt") not in self.assets:
                return f"Invalid asset receipt for field {key}"
            found[key] = {"value": value, "type": kind}
        return found

    def _do_records_lookup(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        zone, names = self._zone(environment, database, given), [each["recordName"] for each in given["records"]]
        if len(names) > self.OPERATIONS:
            raise self.refuse(413, "LIMIT_EXCEEDED", f"limit is {self.OPERATIONS} records")
        found = []
        for name in names:
            record = zone.records.get(name)
            if record is None or record.deleted:
                found.append({"recordName": name, "serverErrorCode": "NOT_FOUND", "reason": "Record not found"})
            else:
                found.append(self._shown(record, given.get("desiredKeys"), request))
        return {"records": found}

    def _do_records_query(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        zone, marker = self._zone(environment, database, given), given.get("continuationMarker")
        if marker is not None:
            names = self.markers[marker]
        else:
            wanted, filters = given["query"]["recordType"], given["query"].get("filterBy", [])
            filters = filters if isinstance(filters, list) else [filters]
            there = [r for name, r in zone.records.items() if not r.deleted and name not in zone.newest(self.stale)]
            names = [r.name for r in there if r.type == wanted and all(_fits(r, f) for f in filters)]
        size = max(1, min(self.OPERATIONS, int(given.get("resultsLimit", self.OPERATIONS))))
        found: dict[str, Any] = {"records": [self._shown(zone.records[n], given.get("desiredKeys"), request) for n in names[:size]]}
        if names[size:]:
            found["continuationMarker"] = f"m{self._count()}"
            self.markers[found["continuationMarker"]] = names[size:]
        return found

    def _do_changes_zone(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        if database == "public":
            raise self.refuse(400, "BAD_REQUEST", "Zones of the public database tell no changes.")
        return {"zones": [self._zone_changes(environment, database, each, request) for each in given["zones"]]}

    def _zone_changes(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        if given["zoneID"]["zoneName"] == DEFAULT_ZONE:
            return {"zoneID": given["zoneID"], "serverErrorCode": "BAD_REQUEST", "reason": "The default zone tells no changes"}
        try:
            zone = self._zone(environment, database, given)
        except Refused:
            return {"zoneID": given["zoneID"], "serverErrorCode": "ZONE_NOT_FOUND", "reason": "Zone does not exist"}
        begin = int(given.get("syncToken") or 0)
        if given.get("syncToken") and begin < self.void:
            return {"zoneID": given["zoneID"], "serverErrorCode": "BAD_REQUEST", "reason": "Unknown sync continuation type"}
        size = max(1, min(self.OPERATIONS, int(given.get("resultsLimit", self.OPERATIONS))))
        changes = zone.changes[: max(begin, len(zone.changes) - self.stale)]
        page = list(dict.fromkeys(changes[begin : begin + size]))
        kinds = given.get("desiredRecordTypes")
        records = []
        for name in page:
            record = zone.records[name]
            if record.deleted:
                records.append({"recordName": name, "deleted": True, "recordChangeTag": record.tag})
            elif kinds is None or record.type in kinds:
                records.append(self._shown(record, given.get("desiredKeys"), request))
        end = min(len(changes), begin + size)
        return {"zoneID": given["zoneID"], "records": records, "moreComing": end < len(changes), "syncToken": str(end)}

    # Assets

    def _do_assets_upload(self, environment: str, database: str, given: dict[str, Any], request: Request) -> dict[str, Any]:
        host = "https://cvws.icloud-content.com" if request.origin.startswith("https") else request.origin
        found = []
        for token in given["tokens"]:
            slot = f"slot{self._count()}"
            self.slots.add(slot)
            found.append({"recordName": token.get("recordName"), "fieldName": token["fieldName"], "url": f"{host}/slots/{slot}"})
        return {"tokens": found}

    def _receive(self, request: Request) -> Answer:
        if request.parts[1] not in self.slots or request.method != "POST":
            return Answer(404)
        if len(request.body) > self.ASSET:
            return Answer(413)
        self.slots.discard(request.parts[1])
        receipt = f"receipt{self._count()}"
        self.assets[receipt] = request.body
        checksum = base64.b64encode(hashlib.sha1(request.body).digest()).decode()
        single = {"wrappingKey": "d3JhcA==", "fileChecksum": checksum, "receipt": receipt, "referenceChecksum": checksum}
        return Answer.of({"singleFile": {**single, "size": len(request.body)}})

    # Records in answers

    def _shown(self, record: Record, keys: Optional[list[str]], request: Request) -> dict[str, Any]:
        fields = {}
        for key, each in record.fields.items():
            if keys is not None and key not in keys:
                continue
            if each["type"] != "ASSETID":
                fields[key] = each
                continue
            host = "https://cvws.icloud-content.com" if request.origin.startswith("https") else request.origin
            value = {"fileChecksum": each["value"].get("fileChecksum"), "size": len(self.assets[each["value"]["receipt"]]),
                     "downloadURL": f"{host}/assets/{each['value']['receipt']}/${{f}}?o=x"}  # fmt: skip
            fields[key] = {"value": value, "type": "ASSETID"}
        who = {"userRecordName": "_ann", "deviceID": "1"}
        return {"recordName": record.name, "recordType": record.type, "fields": fields, "recordChangeTag": record.tag, "deleted": False,
                "created": {"timestamp": record.created, **who}, "modified": {"timestamp": record.modified, **who}}  # fmt: skip

    def _used(self) -> int:
        return sum(map(len, self.assets.values()))

    def _count(self) -> int:
        self.counted += 1
        return self.counted

    def _time(self) -> int:
        self.now += timedelta(seconds=1)
        return int(self.now.timestamp() * 1_000)


def _fits(record: Record, filter: dict[str, Any]) -> bool:
    found, wanted = record.fields.get(filter["fieldName"], {}).get("value"), filter["fieldValue"]["value"]
    match filter["comparator"]:
        case "EQUALS":
            return bool(found == wanted)
        case "NOT_EQUALS":
            return bool(found != wanted)
        case "IN":
            return found in wanted
        case "BEGINS_WITH":
            return isinstance(found, str) and found.startswith(wanted)
        case "GREATER_THAN":
            return found is not None and found > wanted
        case "LESS_THAN":
            return found is not None and found < wanted
    raise ValueError("comparator")
