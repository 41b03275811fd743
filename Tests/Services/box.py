"""A stand-in of Box, API 2.0, after https://developer.box.com/reference."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from typing import Any, Optional

from accounts import Accounts
from digests import digest
from drive import parse_time
from service import Answer, Refused, Request, Service, byte_range, content_range, multipart
from tree import Node, Tree


def local_time(time: datetime) -> str:
    """Returns a time as Box writes it, with an offset, in seconds."""
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S+00:00")


class Box(Service):
    """Names are unique in their folder, without regard to case. They must not contain slashes or end in a space. Every event comes twice.

    `stale` hides the newest changes from lists.
    """

    hosts = ("api.box.com", "upload.box.com", "app.box.com", "account.box.com", "dl.boxcloud.com")
    PART = 8 << 20

    def __init__(self) -> None:
        super().__init__()
        self.accounts = Accounts("once")
        self.tree = Tree("0", lambda number: str(900_000_000 + number))
        self.sessions: dict[str, dict[str, Any]] = {}
        self.tickets: dict[str, str] = {}
        self.preparing: set[str] = set()
        self.stale = 0

    def expire_tokens(self) -> None:
        self.accounts.expire()

    def refusal(self, status: int, code: str, message: str, **context: Any) -> Answer:
        error = {"type": "error", "status": status, "code": code, "message": message, "request_id": "0", "help_url": ""}
        return Answer.of(error | ({"context_info": context} if context else {}), status)

    def rate_limited(self) -> Answer:
        answer = self.refusal(429, "rate_limit_exceeded", "Request rate limit exceeded, please try again later")
        answer.headers["Retry-After"] = "1"
        return answer

    def template(self, request: Request) -> str:
        return "/" + "/".join("ID" if part.isdigit() else part for part in request.parts)

    def answer(self, request: Request) -> Answer:
        parts = [part for part in request.parts if part]
        if parts in (["oauth2", "token"], ["api", "oauth2", "token"]):
            return self.accounts.token(request.form())
        if parts == ["api", "oauth2", "authorize"]:
            return self.accounts.authorize(request.query)
        if parts[:1] == ["tickets"]:
            node = self.tree.nodes.get(self.tickets.get(parts[1], ""))
            if node is None or node.data is None:
                raise self.refuse(404, "not_found", "Not Found")
            return byte_range(request, node.data)
        if not self.accounts.knows(request.headers.get("authorization", "")):
            return Answer(401, b"", {"WWW-Authenticate": 'Bearer realm="Service", error="invalid_token"'})
        uploads = parts[:2] == ["api", "2.0"]
        if not uploads and parts[:1] != ["2.0"]:
            raise self.refuse(404, "not_found", "Not Found")
        rest = parts[2:] if uploads else parts[1:]
        match request.method, rest:
            case "GET", ["users", "me"]:
                space = {"space_amount": self.quota, "space_used": self.tree.bytes, "max_upload_size": 5 << 30}
                return Answer.of({"type": "user", "id": "1", "name": "Ann", "login": "ann@example.org", **space})
            case "POST", ["folders"]:
                return self._make_folder(request.json())
            case "GET", ["folders", id, "items"]:
                return self._items(request, self._node(id, folder=True))
            case method, ["folders", id]:
                return self._entry(request, method, self._node(id, folder=True))
            case "OPTIONS", ["files", "content"]:
                given = request.json()
                self._admit(str(given.get("name", "")), self._parent(given), int(given.get("size") or 0))
                return Answer.of({"upload_url": f"{request.origin}/api/2.0/files/content", "upload_token": ""})
            case "POST", ["files", "content"] if uploads:
                return self._upload(request, None)
            case "POST", ["files", id, "content"] if uploads:
                return self._upload(request, self._node(id, folder=False))
            case "GET", ["files", id, "content"]:
                return self._content(request, self._node(id, folder=False))
            case "POST", ["files", "upload_sessions"] if uploads:
                return self._open(request, None)
            case "POST", ["files", id, "upload_sessions"] if uploads:
                return self._open(request, self._node(id, folder=False))
            case method, ["files", "upload_sessions", id, *what] if uploads:
                return self._session(request, method, id, what)
            case method, ["files", id]:
                return self._entry(request, method, self._node(id, folder=False))
            case "GET", ["events"]:
                return self._events(request)
        raise self.refuse(405, "method_not_allowed", "Method Not Allowed")

    def _node(self, id: str, folder: bool) -> Node:
        node = self.tree.nodes.get(id)
        if node is None or node.is_folder != folder:
            raise self.refuse(404, "not_found", "Not Found")
        return node

    def _parent(self, given: dict[str, Any]) -> Node:
        return self._node(str(given.get("parent", {}).get("id", "")), folder=True)

    def _admit(self, name: str, parent: Node, size: int, besides: Optional[Node] = None) -> None:
        """Raises Refused unless a file may be made here."""
        if not name or "/" in name or "\\" in name or name in (".", "..") or name != name.strip() or len(name) > 255:
            raise self.refuse(400, "item_name_invalid", "Item name invalid")
        other = self.tree.find(parent.id, name, fold=True)
        if other is not None and other is not besides:
            conflicts: Any = self._short(other)
            error = self.refusal(409, "item_name_in_use", "Item with the same name already exists",
                                 conflicts=[conflicts] if other.is_folder else conflicts)  # fmt: skip
            raise Refused(error)
        if self.tree.bytes + size > self.quota:
            raise self.refuse(403, "storage_limit_exceeded", "Account storage limit reached")

    def _make_folder(self, given: dict[str, Any]) -> Answer:
        parent, name = self._parent(given), str(given.get("name", ""))
        self._admit(name, parent, 0)
        return Answer.of(self._resource(self.tree.add(parent.id, name, None)), 201)

    def _entry(self, request: Request, method: str, node: Node) -> Answer:
        if method == "GET":
            return Answer.of(self._chosen(request, self._resource(node)))
        if method == "DELETE":
            if node.is_folder and self.tree.children(node.id) and request.query.get("recursive") != "true":
                raise self.refuse(400, "folder_not_empty", "Cannot delete - folder not empty")
            self.tree.delete(node)
            return Answer(204)
        if method != "PUT":
            raise self.refuse(405, "method_not_allowed", "Method Not Allowed")
        given = request.json()
        parent = self._parent(given) if "parent" in given else self.tree.nodes[node.parent or "0"]
        name = str(given.get("name", node.name))
        self._admit(name, parent, 0, besides=node)
        node.parent, node.name = parent.id, name
        node.modified = parse_time(given.get("content_modified_at")) or node.modified
        self.tree.touch(node)
        return Answer.of(self._chosen(request, self._resource(node)))

    # Content

    def _content(self, request: Request, node: Node) -> Answer:
        if node.id in self.preparing:
            self.preparing.discard(node.id)
            return Answer(202, b"", {"Retry-After": "1"})
        ticket = f"t{next(self.serials)}"
        self.tickets[ticket] = node.id
        host = "https://dl.boxcloud.com" if request.origin.startswith("https") else request.origin
        return Answer(302, b"", {"Location": f"{host}/tickets/{ticket}"})

    def _upload(self, request: Request, old: Optional[Node]) -> Answer:
        parts = multipart(request)
        named = [part.get("content-disposition", "") for part, _ in parts]
        if len(parts) != 2 or 'name="attributes"' not in named[0]:
            raise self.refuse(400, "bad_request", "The attributes part comes before the file part.")
        data = parts[1][1]
        told = request.headers.get("content-md5")
        if told and told.lower() != digest("sha1", data).hex():
            raise self.refuse(412, "bad_digest", "The specified content-md5 did not match what we received")
        return self._store(json.loads(parts[0][1]), old, data, request)

    def _store(self, given: dict[str, Any], old: Optional[Node], data: bytes, request: Request) -> Answer:
        modified = parse_time(given.get("content_modified_at"))
        if old is not None:
            wanted = request.headers.get("if-match")
            if wanted and wanted != str(old.version):
                raise self.refuse(412, "precondition_failed", "The resource has been modified.")
            self._admit(str(given.get("name", old.name)), self.tree.nodes[old.parent or "0"], len(data) - len(old.data or b""), old)
            old.name = str(given.get("name", old.name))
            self.tree.write(old, data, modified)
            node = old
        else:
            parent, name = self._parent(given), str(given.get("name", ""))
            self._admit(name, parent, len(data))
            node = self.tree.add(parent.id, name, data, modified)
        return Answer.of({"total_count": 1, "entries": [self._resource(node)]}, 201)

    # Sessions

    def _open(self, request: Request, old: Optional[Node]) -> Answer:
        given = request.json()
        size = int(given.get("file_size", 0))
        if size < 20_000_000:
            raise self.refuse(400, "file_size_too_small", "Sessions are for files of 20,000,000 bytes and more.")
        name = str(given.get("file_name", old.name if old else ""))
        folder = {"parent": {"id": given.get("folder_id") or (old.parent if old else "")}}
        self._admit(name, self._parent(folder), size, besides=old)
        id = f"F{next(self.serials):030X}"
        self.sessions[id] = {"given": {"name": name, **folder}, "old": old, "size": size, "parts": {}}
        return Answer.of(self._session_resource(request, id), 201)

    def _session_resource(self, request: Request, id: str) -> dict[str, Any]:
        session, base = self.sessions[id], f"{request.origin}/api/2.0/files/upload_sessions/{id}"
        total = -(-session["size"] // self.PART)
        return {"type": "upload_session", "id": id, "part_size": self.PART, "total_parts": total,
                "num_parts_processed": len(session["parts"]), "session_expires_at": local_time(self.tree.time),
                "session_endpoints": {"upload_part": base, "commit": f"{base}/commit", "abort": base, "list_parts": f"{base}/parts",
                                      "status": base, "log_event": f"{base}/log"}}  # fmt: skip

    def _session(self, request: Request, method: str, id: str, what: list[str]) -> Answer:
        session = self.sessions.get(id)
        if session is None:
            raise self.refuse(404, "not_found", "Not Found")
        told = request.headers.get("digest", "")
        fits = told == "sha=" + base64.b64encode(digest("sha1", request.body)).decode()
        match method, what:
            case "GET", []:
                return Answer.of(self._session_resource(request, id))
            case "DELETE", []:
                del self.sessions[id]
                return Answer(204)
            case "GET", ["parts"]:
                entries = [session["parts"][offset][0] for offset in sorted(session["parts"])]
                return Answer.of({"entries": entries, "offset": 0, "limit": 1_000, "total_count": len(entries)})
            case "PUT", []:
                first, size, total = content_range(request)
                if first is None or first % self.PART or size != len(request.body) or total != session["size"]:
                    raise self.refuse(416, "range_not_satisfiable", "Bad Content-Range.")
                if not fits:
                    raise self.refuse(412, "bad_digest", "The digest of the part does not fit.")
                part = {"part_id": f"{first:08X}", "offset": first, "size": size, "sha1": digest("sha1", request.body).hex()}
                session["parts"][first] = (part, request.body)
                return Answer.of({"part": part})
            case "POST", ["commit"]:
                data = b"".join(session["parts"][offset][1] for offset in sorted(session["parts"]))
                given = request.json()
                named = [part["part_id"] for part in given.get("parts", [])]
                known = [session["parts"][offset][0]["part_id"] for offset in sorted(session["parts"])]
                if len(data) != session["size"] or named != known:
                    raise self.refuse(400, "parts_mismatch", "The parts are not all there.")
                if told != "sha=" + base64.b64encode(digest("sha1", data)).decode():
                    raise self.refuse(412, "bad_digest", "The digest of the file does not fit.")
                del self.sessions[id]
                return self._store(session["given"] | given.get("attributes", {}), session["old"], data, request)
        raise self.refuse(405, "method_not_allowed", "Method Not Allowed")

    # Lists

    def _short(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "folder" if node.is_folder else "file", "id": node.id, "name": node.name,
                                 "etag": str(node.version - 1), "sequence_id": str(node.version - 1)}  # fmt: skip
        return found | ({} if node.data is None else {"sha1": digest("sha1", node.data).hex()})

    def _resource(self, node: Node) -> dict[str, Any]:
        parent = self.tree.nodes.get(node.parent or "")
        return {**self._short(node), "size": len(node.data or b""), "created_at": local_time(node.made),
                "modified_at": local_time(node.changed), "content_created_at": local_time(node.modified),
                "content_modified_at": local_time(node.modified), "item_status": "active",
                "parent": self._short(parent) if parent else None}  # fmt: skip

    def _chosen(self, request: Request, found: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields that `fields` names, in addition to those that are always returned."""
        if "fields" not in request.query:
            return found
        wanted = {"type", "id", "etag", *request.query["fields"].split(",")}
        return {name: value for name, value in found.items() if name in wanted}

    def _items(self, request: Request, folder: Node) -> Answer:
        hidden = set(self.tree.changes[-self.stale :]) if self.stale else set()
        nodes = [node for node in self.tree.children(folder.id) if node.id not in hidden]
        marked = request.query.get("usemarker") == "true"
        begin = int(request.query.get("marker" if marked else "offset") or 0)
        size = min(1_000, int(request.query.get("limit", "100")))
        entries = [self._chosen(request, self._resource(node)) for node in nodes[begin : begin + size]]
        found: dict[str, Any] = {"entries": entries, "limit": size}
        if marked:
            found |= {"next_marker": str(begin + size)} if nodes[begin + size :] else {}
        else:
            found |= {"total_count": len(nodes), "offset": begin}
        return Answer.of(found)

    def _events(self, request: Request) -> Answer:
        position, end = request.query.get("stream_position", "0"), len(self.tree.changes)
        if position == "now":
            return Answer.of({"chunk_size": 0, "next_stream_position": end, "entries": []})
        begin, size = int(position), min(500, int(request.query.get("limit", "100")))
        entries = []
        for number, id in enumerate(self.tree.changes[begin : begin + size], begin):
            node = self.tree.nodes.get(id)
            source = self._resource(node) if node else {"type": "file", "id": id}
            event = {"type": "event", "event_id": f"e{number}", "event_type": "ITEM_UPLOAD" if node else "ITEM_TRASH", "source": source}
            entries += [event, event]
        return Answer.of({"chunk_size": len(entries), "next_stream_position": min(end, begin + size), "entries": entries})
