"""A stand-in of Google Drive, version 3, after https://developers.google.com/drive/api/reference/rest/v3."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Callable, Optional

from accounts import Accounts
from digests import digest
from drive_query import compile_query
from service import Answer, Request, Service, byte_range, content_range, multipart
from tree import Node, Tree

FOLDER = "application/vnd.google-apps.folder"
CHUNK = 256 * 1024


def timestamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def parse_time(text: Optional[str]) -> Optional[datetime]:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


class GoogleDrive(Service):
    """Names are not unique, and no name is refused. Deleted files may go to the trash, and appear in the changes.

    `stale` is the number of the newest changes that lists do not show yet.
    """

    hosts = ("www.googleapis.com", "oauth2.googleapis.com", "accounts.google.com")
    PAGE = 1_000

    def __init__(self) -> None:
        super().__init__()
        self.accounts = Accounts("keeps")
        self.tree = Tree("0AB-root", lambda number: f"1Drive_{number:026}")
        self.tree.add(self.tree.root, "appDataFolder", None, id="1App_root")
        self.tree.nodes["1App_root"].parent = None
        self.tree.changes.clear()
        self.kinds = {self.tree.root: FOLDER, "1App_root": FOLDER}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.pages: dict[str, list[str]] = {}
        self.promised: set[str] = set()
        self.stale = 0
        self.twins = False

    def expire_tokens(self) -> None:
        self.accounts.expire()

    def rate_limited(self) -> Answer:
        return self.refusal(403, "userRateLimitExceeded", "User Rate Limit Exceeded")

    def refusal(self, status: int, code: str, message: str) -> Answer:
        error = {"code": status, "message": message, "errors": [{"domain": "global", "reason": code, "message": message}]}
        return Answer.of({"error": error}, status)

    def template(self, request: Request) -> str:
        parts = request.parts
        if "files" in parts:
            at = parts.index("files") + 1
            parts = [*parts[:at], *("ID" if i == at and p != "generateIds" else p for i, p in enumerate(parts) if i >= at)]
        return "/" + "/".join(parts)

    def answer(self, request: Request) -> Answer:
        if request.path in ("/token", "/o/oauth2/token"):
            return self.accounts.token(request.form())
        if request.path in ("/o/oauth2/v2/auth", "/o/oauth2/auth"):
            return self.accounts.authorize(request.query)
        if not self.accounts.knows(request.headers.get("authorization", "")):
            raise self.refuse(401, "authError", "Invalid Credentials")
        if request.parts[:4] == ["upload", "drive", "v3", "files"]:
            return self._upload(request, request.parts[4:])
        if request.parts[:2] != ["drive", "v3"]:
            raise self.refuse(404, "notFound", "Not Found")
        match request.method, request.parts[2:]:
            case "GET", ["about"]:
                quota = {"limit": str(self.quota), "usage": str(self.tree.bytes), "usageInDrive": str(self.tree.bytes)}
                return self._chosen(request, {"user": {"displayName": "Ann"}, "storageQuota": quota})
            case "GET", ["files"]:
                return self._list(request)
            case "POST", ["files"]:
                return self._chosen(request, self._resource(self._make(request.json(), None, None)))
            case "GET", ["files", "generateIds"]:
                ids = [self.tree.new_id() for _ in range(int(request.query.get("count", "10")))]
                self.promised.update(ids)
                return Answer.of({"kind": "drive#generatedIds", "space": request.query.get("space", "drive"), "ids": ids})
            case "DELETE", ["files", "trash"]:
                for node in [node for node in self.tree.nodes.values() if node.trashed]:
                    self.tree.delete(node)
                return Answer(204)
            case method, ["files", id, *rest]:
                return self._file(request, method, self._node(id), rest)
            case "GET", ["changes", "startPageToken"]:
                return Answer.of({"kind": "drive#startPageToken", "startPageToken": str(len(self.tree.changes))})
            case "GET", ["changes"]:
                return self._changes(request)
        raise self.refuse(404, "notFound", "Not Found")

    # Files

    def _node(self, id: str) -> Node:
        node = self.tree.nodes.get({"root": self.tree.root, "appDataFolder": "1App_root"}.get(id, id))
        if node is None:
            raise self.refuse(404, "notFound", f"File not found: {id}.")
        return node

    def _file(self, request: Request, method: str, node: Node, rest: list[str]) -> Answer:
        if method == "GET" and not rest:
            if request.query.get("alt") != "media":
                return self._chosen(request, self._resource(node))
            if node.data is None:
                raise self.refuse(403, "fileNotDownloadable", "Only files with binary content can be downloaded.")
            return byte_range(request, node.data)
        if method == "DELETE" and not rest:
            self.tree.delete(node)
            return Answer(204)
        if method == "PATCH" and not rest:
            self._change(node, request.json(), request.query)
            return self._chosen(request, self._resource(node))
        if method == "POST" and rest == ["copy"] and node.data is not None:
            with_name = {"name": node.name, "mimeType": self.kinds[node.id], "parents": [node.parent], **request.json()}
            return self._chosen(request, self._resource(self._make(with_name, node.data, None)))
        raise self.refuse(404, "notFound", "Not Found")

    def _make(self, given: dict[str, Any], data: Optional[bytes], kind: Optional[str]) -> Node:
        wanted = given.get("mimeType") or kind or "application/octet-stream"
        parents = given.get("parents") or [self.tree.root]
        if len(parents) != 1:
            raise self.refuse(400, "invalid", "A file has one parent.")
        parent = self._node(parents[0])
        if not parent.is_folder:
            raise self.refuse(403, "forbidden", "The parent is no folder.")
        id = given.get("id")
        if id is not None:
            if id in self.tree.nodes:
                raise self.refuse(409, "fileIdInUse", "A file already exists with the provided ID.")
            if id not in self.promised:
                raise self.refuse(400, "invalid", "The provided file ID is not usable.")
        if wanted != FOLDER and self.tree.bytes + len(data or b"") > self.quota:
            raise self.refuse(403, "storageQuotaExceeded", "The user's Drive storage quota has been exceeded.")
        found: Optional[Node] = None
        for each in (id, None) if self.twins else (id,):
            node = self.tree.add(parent.id, str(given.get("name", "Untitled")), None if wanted == FOLDER else data or b"",
                                 parse_time(given.get("modifiedTime")), each)  # fmt: skip
            self.kinds[node.id] = wanted
            found = found or node
        assert found is not None
        return found

    def _change(self, node: Node, given: dict[str, Any], query: dict[str, str]) -> None:
        node.name = str(given.get("name", node.name))
        node.trashed = bool(given.get("trashed", node.trashed))
        node.modified = parse_time(given.get("modifiedTime")) or node.modified
        self.kinds[node.id] = given.get("mimeType", self.kinds[node.id])
        if "addParents" in query:
            node.parent = self._node(query["addParents"]).id
        self.tree.touch(node)

    def _resource(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {
            "kind": "drive#file", "id": node.id, "name": node.name, "mimeType": self.kinds[node.id], "trashed": self._trashed(node),
            "createdTime": timestamp(node.made), "modifiedTime": timestamp(node.modified), "version": str(node.version),
            "spaces": ["drive"], "parents": [node.parent] if node.parent else [], "ownedByMe": True, "starred": False,
        }  # fmt: skip
        if node.data is not None:
            found |= {
                "size": str(len(node.data)), "md5Checksum": digest("md5", node.data).hex(),
                "sha1Checksum": digest("sha1", node.data).hex(), "sha256Checksum": digest("sha256", node.data).hex(),
                "originalFilename": node.name, "headRevisionId": f"rev{node.version}",
            }  # fmt: skip
        return found

    def _trashed(self, node: Node) -> bool:
        """Returns whether it, or a folder above it, is in the trash."""
        return any(each.trashed for each in self._above(node))

    def _above(self, node: Node) -> list[Node]:
        """Returns it and the folders above it, up to the top, or until a folder is its own ancestor."""
        found = [node]
        while node.parent is not None and self.tree.nodes[node.parent] not in found:
            node = self.tree.nodes[node.parent]
            found.append(node)
        return found

    # Lists

    def _list(self, request: Request) -> Answer:
        token = request.query.get("pageToken")
        if token is None:
            try:
                wanted = compile_query(request.query.get("q", ""), {"root": self.tree.root, "appDataFolder": "1App_root"})
            except ValueError as error:
                raise self.refuse(400, "invalid", f"Invalid Value: q: {error}") from None
            hidden = set(self.tree.changes[-self.stale :]) if self.stale else set()
            space = request.query.get("spaces", "drive")
            nodes = [n for n in self.tree.nodes.values() if n.parent and n.id not in hidden and self._space(n) == space]
            ids = [node.id for node in nodes if wanted(self._resource(node))]
        elif token in self.pages:
            ids = self.pages[token]
        else:
            raise self.refuse(400, "invalid", "Invalid Value: pageToken")
        size = max(1, min(self.PAGE, int(request.query.get("pageSize", "100"))))
        found: dict[str, Any] = {"kind": "drive#fileList", "incompleteSearch": False}
        found["files"] = [self._resource(self.tree.nodes[id]) for id in ids[:size] if id in self.tree.nodes]
        if ids[size:]:
            found["nextPageToken"] = f"~!!~{next(self.serials)}/+="
            self.pages[found["nextPageToken"]] = ids[size:]
        return self._chosen(request, found)

    def _space(self, node: Node) -> str:
        node = self._above(node)[-1]
        return "appDataFolder" if node.id == "1App_root" else "drive"

    def _changes(self, request: Request) -> Answer:
        token = request.query.get("pageToken", "")
        if not token.isdigit() or int(token) > len(self.tree.changes):
            raise self.refuse(400, "invalid", "Invalid Value: pageToken")
        begin, size = int(token), max(1, min(self.PAGE, int(request.query.get("pageSize", "100"))))
        # A file appears once for each page, with its last state.
        page = list(dict.fromkeys(reversed(self.tree.changes[begin : begin + size])))
        changes = []
        for id in reversed(page):
            node = self.tree.nodes.get(id)
            change = {"kind": "drive#change", "changeType": "file", "fileId": id, "removed": node is None}
            changes.append(change | ({"file": self._resource(node)} if node else {}))
        end = begin + size
        last = end >= len(self.tree.changes)
        mark = {"newStartPageToken": str(len(self.tree.changes))} if last else {"nextPageToken": str(end)}
        return self._chosen(request, {"kind": "drive#changeList", "changes": changes, **mark})

    # Uploads

    def _upload(self, request: Request, rest: list[str]) -> Answer:
        kind = request.query.get("uploadType")
        old = self._node(rest[0]) if rest else None
        if kind == "multipart" and request.method in ("POST", "PATCH"):
            parts = multipart(request)
            if len(parts) != 2 or len(request.body) > (5 << 20) + 65_536:
                raise self.refuse(400, "badContent", "A multipart upload has two parts and at most 5 MB.")
            given, (headers, data) = json.loads(parts[0][1] or b"{}"), parts[1]
            return self._chosen(request, self._resource(self._store(old, given, data, headers.get("content-type"), request.query)))
        if kind == "media" and request.method in ("POST", "PATCH"):
            return self._chosen(request, self._resource(self._store(old, {}, request.body, request.headers.get("content-type"), {})))
        if kind != "resumable":
            raise self.refuse(400, "invalid", "uploadType")
        if "upload_id" not in request.query:
            id = f"ABPtcP-{next(self.serials)}"
            length = request.headers.get("x-upload-content-length")
            self.uploads[id] = {"old": old, "given": request.json(), "data": b"", "length": int(length) if length else None,
                                "kind": request.headers.get("x-upload-content-type"), "query": request.query, "done": None}  # fmt: skip
            return Answer(200, b"", {"Location": f"{request.origin}{request.path}?uploadType=resumable&upload_id={id}"})
        return self._resume(request, self.uploads.get(request.query["upload_id"]))

    def cut_short(self, request: Request) -> None:
        """A session keeps the bytes that arrived, in whole chunks."""
        upload = self.uploads.get(request.query.get("upload_id", ""))
        first, size, _ = content_range(request)
        if upload is not None and upload["done"] is None and first is not None and first <= len(upload["data"]):
            with self.lock:
                upload["data"] = upload["data"][:first] + request.body[: len(request.body) // CHUNK * CHUNK]

    def _resume(self, request: Request, upload: Optional[dict[str, Any]]) -> Answer:
        if upload is None:
            raise self.refuse(404, "notFound", "The upload session is not known any more.")
        if request.method == "DELETE":
            del self.uploads[request.query["upload_id"]]
            return Answer(499)
        if upload["done"] is not None:
            return Answer.of(self._resource(upload["done"]))
        first, size, total = content_range(request)
        if "content-range" not in request.headers:
            first, size, total = 0, len(request.body), len(request.body)
        have = len(upload["data"])
        if first is not None:
            ends = total is not None and first + size == total
            if first > have or size != len(request.body) or (size % CHUNK and not ends):
                raise self.refuse(400, "badRequest", "Chunks follow one another and are multiples of 256 KiB.")
            upload["data"] = upload["data"][:first] + request.body
            have = len(upload["data"])
        if total is not None and have >= total:
            node = self._store(upload["old"], upload["given"], upload["data"], upload["kind"], upload["query"])
            upload["done"] = node
            return Answer.of(self._resource(node))
        # For clients that cannot distinguish this status from a redirection.
        status = 200 if request.headers.get("x-guploader-no-308") == "yes" else 308
        headers = {"Range": f"bytes=0-{have - 1}"} if have else {}
        return Answer(status, b"", {**headers, **({"X-Http-Status-Code-Override": "308"} if status == 200 else {})})

    def _store(self, old: Optional[Node], given: dict[str, Any], data: bytes, kind: Optional[str], query: dict[str, str]) -> Node:
        if old is None:
            return self._make(given, data, kind)
        if old.data is None or self.tree.bytes - len(old.data) + len(data) > self.quota:
            raise self.refuse(403, "storageQuotaExceeded", "The user's Drive storage quota has been exceeded.")
        self.tree.write(old, data, parse_time(given.get("modifiedTime")))
        self._change(old, given, query)
        return old

    # Partial answers

    def _chosen(self, request: Request, value: dict[str, Any]) -> Answer:
        """Returns only the fields that `fields` names; by default the few that the service returns."""
        fields = request.query.get("fields")
        if not fields:
            kind = value.get("kind")
            fields = "kind,id,name,mimeType" if kind == "drive#file" else "*"
        try:
            select, rest = _fields(fields)
            if rest:
                raise ValueError(rest)
        except ValueError:
            raise self.refuse(400, "invalidParameter", f"Invalid field selection {fields}") from None
        return Answer.of(select(value))


def _fields(text: str) -> tuple[Callable[[Any], Any], str]:
    """Returns a selection, `a,b/c,d(e,f)` or `*`, and the text after it."""
    chosen: dict[str, Callable[[Any], Any]] = {}
    while True:
        length = next((i for i, c in enumerate(text) if c in ",/()"), len(text))
        name, text = text[:length].strip(), text[length:]
        if not name:
            raise ValueError(text)
        inner: Callable[[Any], Any] = lambda value: value  # noqa: E731
        if text.startswith("/"):
            length = next((i for i, c in enumerate(text) if c in ",)"), len(text))
            inner, _ = _fields(text[1:length])
            text = text[length:]
        elif text.startswith("("):
            inner, text = _fields(text[1:])
            if not text.startswith(")"):
                raise ValueError(text)
            text = text[1:]
        chosen[name] = inner
        if not text.startswith(","):
            break
        text = text[1:]

    def select(value: Any) -> Any:
        if isinstance(value, list):
            return [select(each) for each in value]
        if not isinstance(value, dict) or "*" in chosen:
            return value
        return {name: chosen[name](each) for name, each in value.items() if name in chosen}

    return select, text


