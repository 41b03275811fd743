"""A stand-in of OneDrive by Microsoft Graph 1.0, after https://learn.microsoft.com/graph/api/resources/driveitem."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Optional
from urllib.parse import quote

from accounts import Accounts
from digests import digest, quick_xor_hash
from drive import parse_time, timestamp
from service import Answer, Request, Service, byte_range, content_range
from tree import Node, Tree

RESERVED = set('/\\*<>?:|"')
STEP = 320 * 1024


class OneDrive(Service):
    """Names are unique in their folder, without regard to case. `stale` hides the newest changes from listings of children, but not from
    the feed."""

    hosts = ("graph.microsoft.com", "login.microsoftonline.com", "my.microsoftpersonalcontent.com")
    PAGE = 200

    def __init__(self) -> None:
        super().__init__()
        self.accounts = Accounts("changes")
        self.drive = "b!stand-in"
        self.tree = Tree("01ROOT", lambda number: f"01ITEM{number:028}")
        self.app = self.tree.add(self.tree.add(self.tree.root, "Apps", None).id, "Notes", None)
        self.sessions: dict[str, dict[str, Any]] = {}
        self.tickets: dict[str, str] = {}
        #: Marks of the feed before this one get the answer 410.
        self.oldest_mark = 0
        self.stale = 0
        #: Whether addresses of uploads and downloads refuse an Authorization header. (rclone 1.60 sends one, so the service accepts it.)
        self.strict = False

    def expire_tokens(self) -> None:
        self.accounts.expire()

    def refusal(self, status: int, code: str, message: str) -> Answer:
        return Answer.of({"error": {"code": code, "message": message, "innerError": {"request-id": "0"}}}, status)

    def rate_limited(self) -> Answer:
        answer = self.refusal(429, "activityLimitReached", "The request has been throttled.")
        answer.headers["Retry-After"] = "1"
        return answer

    def template(self, request: Request) -> str:
        parts = request.path.split("/")
        return "/".join("ID" if part.startswith("01ITEM") else part for part in parts)

    def answer(self, request: Request) -> Answer:
        parts = request.parts
        if parts[:1] == ["common"] and parts[1:] == ["oauth2", "v2.0", "token"]:
            return self.accounts.token(request.form())
        if parts[:1] == ["common"] and parts[1:] == ["oauth2", "v2.0", "authorize"]:
            return self.accounts.authorize(request.query)
        if parts[:1] == ["sessions"]:
            return self._session(request, self.sessions.get(parts[1]))
        if parts[:1] == ["tickets"]:
            return self._download(request, parts[1])
        if not self.accounts.knows(request.headers.get("authorization", "")):
            raise self.refuse(401, "InvalidAuthenticationToken", "Access token has expired or is not yet valid.")
        if parts[:1] != ["v1.0"]:
            raise self.refuse(400, "invalidRequest", "No such version.")
        match parts[1:]:
            case ["me", "drive"] | ["me", "drives"]:
                return Answer.of(self._drive() if parts[-1] == "drive" else {"value": [self._drive()]})
            case ["me", "drive", *rest]:
                return self._item(request, rest)
            case ["drives", self.drive, *rest] if rest:
                return self._item(request, rest)
            case ["drives", self.drive]:
                return Answer.of(self._drive())
        raise self.refuse(404, "itemNotFound", "Item not found")

    def _drive(self) -> dict[str, Any]:
        used = self.tree.bytes
        quota = {"total": self.quota, "used": used, "remaining": max(0, self.quota - used), "deleted": 0, "state": "normal"}
        return {"id": self.drive, "driveType": "personal", "name": "OneDrive", "quota": quota}

    # Addresses: root, items/ID and special/approot, each perhaps followed by `:/a path:`, and then by the name of an operation.

    def _item(self, request: Request, parts: list[str]) -> Answer:
        """Splits the address as text, since a colon ends a path."""
        text = "/".join(parts)
        before, colon, rest = text.partition(":")
        head = before.strip("/").split("/")
        match head:
            case ["root", *what]:
                node = self.tree.nodes[self.tree.root]
            case ["special", "approot", *what]:
                node = self.app
            case ["items", id, *what]:
                node = self._node(id)
            case _:
                raise self.refuse(400, "invalidRequest", "No such resource.")
        if not colon:
            return self._act(request, node, None, what)
        path, _, after = rest.partition(":")
        names = [name for name in path.split("/") if name]
        for name in names[:-1]:
            found = self.tree.find(node.id, name, fold=True)
            if found is None and request.method == "PUT" and after.startswith("/content"):
                found = self.tree.add(node.id, name, None)
            if found is None:
                raise self.refuse(404, "itemNotFound", "Item not found")
            node = found
        what = [part for part in after.split("/") if part]
        if not names:
            return self._act(request, node, None, what)
        found = self.tree.find(node.id, names[-1], fold=True)
        if found is None and what in (["content"], ["createUploadSession"]) and request.method in ("PUT", "POST"):
            return self._act(request, node, names[-1], what)
        if found is None:
            raise self.refuse(404, "itemNotFound", "Item not found")
        return self._act(request, found, None, what)

    def _node(self, id: str) -> Node:
        node = self.tree.nodes.get(self.tree.root if id == "root" else id)
        if node is None:
            raise self.refuse(404, "itemNotFound", "Item not found")
        return node

    def _act(self, request: Request, node: Node, name: Optional[str], what: list[str]) -> Answer:
        match request.method, what:
            case "GET", []:
                return Answer.of(self._resource(request, node))
            case "PATCH", []:
                return self._change(request, node)
            case "DELETE", []:
                self.tree.delete(node)
                return Answer(204)
            case "GET", ["children"]:
                return self._children(request, node)
            case "POST", ["children"]:
                return self._make_folder(request, node)
            case "GET", ["content"]:
                if node.data is None:
                    raise self.refuse(400, "notSupported", "A folder has no content.")
                return Answer(302, b"", {"Location": self._ticket(request, node)})
            case "PUT", ["content"]:
                if len(request.body) > 250_000_000:
                    raise self.refuse(413, "invalidRequest", "Larger files are uploaded in sessions.")
                conflict = request.query.get("@microsoft.graph.conflictBehavior", "replace")
                return self._put(request, node, name, request.body, conflict, {})
            case "POST", ["createUploadSession"]:
                given = request.json().get("item", {})
                conflict = given.get("@microsoft.graph.conflictBehavior", "replace")
                if name is None and conflict == "fail":
                    raise self.refuse(409, "nameAlreadyExists", "An item with the same name already exists under the parent.")
                id = f"s{next(self.serials)}"
                self.sessions[id] = {"node": node, "name": name, "data": b"", "conflict": conflict, "given": given, "total": None}
                return Answer.of({"uploadUrl": f"{request.origin}/sessions/{id}", "expirationDateTime": timestamp(self.tree.time),
                                  "nextExpectedRanges": ["0-"]})  # fmt: skip
            case "GET", ["delta"]:
                return self._delta(request, node)
        if request.method == "GET" and len(what) == 1 and what[0].startswith("delta("):
            return self._delta(request, node)
        raise self.refuse(400, "invalidRequest", "No such action.")

    def _checked(self, name: str) -> str:
        if not name or RESERVED & set(name) or name.endswith((".", " ")) or name.startswith(" "):
            raise self.refuse(400, "invalidRequest", "The provided name cannot contain reserved characters.")
        return name

    def _make_folder(self, request: Request, parent: Node) -> Answer:
        given = request.json()
        name = self._checked(str(given.get("name", "")))
        old = self.tree.find(parent.id, name, fold=True)
        if old is not None and given.get("@microsoft.graph.conflictBehavior", "fail") != "replace":
            raise self.refuse(409, "nameAlreadyExists", "Name already exists")
        return Answer.of(self._resource(request, old or self.tree.add(parent.id, name, None)), 200 if old else 201)

    def _change(self, request: Request, node: Node) -> Answer:
        given = request.json()
        parent = self._node(given["parentReference"]["id"]).id if "id" in given.get("parentReference", {}) else node.parent
        name = self._checked(given["name"]) if "name" in given else node.name
        other = self.tree.find(parent, name, fold=True) if parent else None
        if other is not None and other is not node:
            if given.get("@microsoft.graph.conflictBehavior", "fail") != "replace":
                raise self.refuse(409, "nameAlreadyExists", "Name already exists")
            self.tree.delete(other)
        node.parent, node.name = parent, name
        node.modified = parse_time(given.get("fileSystemInfo", {}).get("lastModifiedDateTime")) or node.modified
        self.tree.touch(node)
        return Answer.of(self._resource(request, node))

    def _put(self, request: Request, node: Node, name: Optional[str], data: bytes, conflict: str, given: dict[str, Any]) -> Answer:
        if self.tree.bytes + len(data) > self.quota:
            raise self.refuse(507, "quotaLimitReached", "The user has reached their quota limit.")
        modified: Optional[datetime] = parse_time(given.get("fileSystemInfo", {}).get("lastModifiedDateTime"))
        if name is not None:
            # Between the check and the write, another client may have made it.
            other = self.tree.find(node.id, name, fold=True)
            if other is None:
                return Answer.of(self._resource(request, self.tree.add(node.id, self._checked(name), data, modified)), 201)
            node = other
        if node.is_folder or conflict == "fail":
            raise self.refuse(409, "nameAlreadyExists", "An item with the same name already exists under the parent.")
        self.tree.write(node, data, modified)
        return Answer.of(self._resource(request, node), 200)

    # Sessions and downloads, whose addresses are secrets.

    def _session(self, request: Request, session: Optional[dict[str, Any]]) -> Answer:
        if session is None:
            raise self.refuse(404, "itemNotFound", "The upload session was not found")
        if self.strict and "authorization" in request.headers:
            raise self.refuse(401, "unauthenticated", "An upload address takes no Authorization header.")
        if request.method == "DELETE":
            del self.sessions[request.parts[1]]
            return Answer(204)
        have = len(session["data"])
        if request.method == "GET":
            return Answer.of({"expirationDateTime": timestamp(self.tree.time), "nextExpectedRanges": [f"{have}-"]})
        first, size, total = content_range(request)
        if request.method != "PUT" or first is None or total is None or size != len(request.body) or size > 60 << 20:
            raise self.refuse(400, "invalidRequest", "Bad Content-Range.")
        if first != have:
            raise self.refuse(416, "invalidRange", "The fragment is not the one that is due.")
        if size % STEP and first + size != total:
            raise self.refuse(400, "invalidRequest", "Fragments are multiples of 320 KiB.")
        session["data"] += request.body
        if have + size < total:
            return Answer.of({"expirationDateTime": timestamp(self.tree.time), "nextExpectedRanges": [f"{have + size}-"]}, 202)
        del self.sessions[request.parts[1]]
        return self._put(request, session["node"], session["name"], session["data"], session["conflict"], session["given"])

    def _ticket(self, request: Request, node: Node) -> str:
        """Returns an address at which the bytes of a file are available for some time, without a token."""
        ticket = f"t{next(self.serials)}"
        self.tickets[ticket] = node.id
        host = "https://my.microsoftpersonalcontent.com" if request.origin.startswith("https") else request.origin
        return f"{host}/tickets/{ticket}"

    def _download(self, request: Request, ticket: str) -> Answer:
        node = self.tree.nodes.get(self.tickets.get(ticket, ""))
        if node is None or node.data is None:
            raise self.refuse(404, "itemNotFound", "Item not found")
        if self.strict and "authorization" in request.headers:
            raise self.refuse(401, "unauthenticated", "A download address takes no Authorization header.")
        return byte_range(request, node.data)

    # Lists

    def _resource(self, request: Request, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": node.id, "name": node.name or "root", "createdDateTime": timestamp(node.made),
            "lastModifiedDateTime": timestamp(node.changed), "eTag": f'"{{{node.id}}},{node.version}"', "size": 0,
            "webUrl": f"https://onedrive.live.com{quote(self.tree.path(node))}",
            "fileSystemInfo": {"createdDateTime": timestamp(node.made), "lastModifiedDateTime": timestamp(node.modified)},
        }  # fmt: skip
        if node.parent is None:
            found["root"] = {}
        else:
            above = self.tree.path(self.tree.nodes[node.parent])
            path = f"/drive/root:{'' if above == '/' else above}"
            found["parentReference"] = {"driveId": self.drive, "driveType": "personal", "id": node.parent, "path": path}
        if node.data is None:
            found["folder"] = {"childCount": len(self.tree.children(node.id))}
            found["size"] = sum(len(each.data or b"") for each in self.tree.below(node.id))
        else:
            hashes = {"sha1Hash": digest("sha1", node.data).hex().upper(), "quickXorHash": quick_xor_hash(node.data)}
            found |= {"size": len(node.data), "file": {"mimeType": "application/octet-stream", "hashes": hashes}}
            found["@microsoft.graph.downloadUrl"] = self._ticket(request, node)
        return found

    def _children(self, request: Request, node: Node) -> Answer:
        hidden = set(self.tree.changes[-self.stale :]) if self.stale else set()
        nodes = [each for each in self.tree.children(node.id) if each.id not in hidden]
        begin, size = int(request.query.get("$skiptoken", "0")), min(1_000, int(request.query.get("$top", str(self.PAGE))))
        value = [self._resource(request, each) for each in nodes[begin : begin + size]]
        if "@microsoft.graph.downloadUrl" not in request.query.get("$select", "@microsoft.graph.downloadUrl"):
            for each in value:
                each.pop("@microsoft.graph.downloadUrl", None)
        found: dict[str, Any] = {"value": value}
        if nodes[begin + size :]:
            path = quote(request.path, safe="/:!")
            found["@odata.nextLink"] = f"{request.origin}{path}?$top={size}&$skiptoken={begin + size}"
        return Answer.of(found)

    def _delta(self, request: Request, node: Node) -> Answer:
        """Without a mark, returns all items, then the changes. The folder itself and items that changed twice appear twice."""
        mark, here = request.query.get("token", ""), f"{request.origin}{quote(request.path.split('(')[0], safe='/:!')}"
        end = len(self.tree.changes)
        if mark == "latest":
            return Answer.of({"value": [], "@odata.deltaLink": f"{here}?token={end}"})
        if mark and (not mark.isdigit() or int(mark) < self.oldest_mark):
            answer = self.refusal(410, "resyncRequired", "Resync required.")
            answer.headers["Location"] = here
            return answer
        if not mark:
            value = [self._resource(request, each) for each in [node, *self.tree.below(node.id)]]
            return Answer.of({"value": value, "@odata.deltaLink": f"{here}?token={end}"})
        begin, size = int(mark), self.PAGE
        value = []
        inside = {each.id for each in self.tree.below(node.id)}
        for id in self.tree.changes[begin : begin + size]:
            found = self.tree.nodes.get(id)
            if found is None:
                value.append({"id": id, "deleted": {"state": "deleted"}})
            elif id in inside:
                value.append(self._resource(request, found))
        done = begin + size >= end
        link = {"@odata.deltaLink": f"{here}?token={end}"} if done else {"@odata.nextLink": f"{here}?token={begin + size}"}
        return Answer.of({"value": value, **link})
