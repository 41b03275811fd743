"""A stand-in of pCloud's HTTP interface, after https://docs.pcloud.com."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from email.utils import format_datetime
from typing import Any, Optional
from urllib.parse import quote

from accounts import Accounts
from digests import digest
from service import Answer, Refused, Request, Service, byte_range, multipart
from tree import Node, Tree


class PCloud(Service):
    """Every answer has the status 200; `result` is not zero for an error. An upload under an existing name replaces the file.

    `stale` hides the newest changes from lists. `forgotten` is the feed's oldest mark: before it, there is only `reset`.
    `api` is the host of the account's region: the other host knows neither its codes nor its tokens.
    """

    hosts = ("api.pcloud.com", "eapi.pcloud.com", "my.pcloud.com", "p-def1.pcloud.com")

    def __init__(self) -> None:
        super().__init__()
        # Tokens of pCloud are valid until they are revoked.
        self.accounts = Accounts("keeps", lifetime=1 << 40)
        self.tree = Tree("0", lambda number: str(10_000 + number))
        self.tickets: dict[str, str] = {}
        #: The results of uploads in sessions, by id.
        self.uploads: dict[int, bytearray] = {}
        self.forgotten = 0
        self.stale = 0
        self.api = "api.pcloud.com"

    def expire_tokens(self) -> None:
        self.accounts.expire()

    def refusal(self, status: int, code: str, message: str) -> Answer:
        known = {"serviceUnavailable": 5000, "generalException": 5000}
        return Answer.of({"result": known.get(code) or int(code), "error": message})

    def rate_limited(self) -> Answer:
        return self.refusal(200, "4000", "Too many login tries from this IP address.")

    def handle(self, request: Request) -> tuple[Answer, Optional[str]]:
        """Hosts of files answer with HTTP statuses, as web servers do: they send the bytes of files, and never a result."""
        answer, fate = super().handle(request)
        if request.parts[:1] == ["tickets"] and answer.headers.get("Content-Type", "").startswith("application/json"):
            result = json.loads(answer.body)["result"]
            answer = Answer({4: 429, 5: 503}.get(result // 1_000, 404))
        return answer, fate

    def template(self, request: Request) -> str:
        return "/" + ("file" if request.parts[0] == "tickets" else request.parts[0])

    @property
    def location(self) -> int:
        return {"api.pcloud.com": 1, "eapi.pcloud.com": 2}[self.api]

    def _is_elsewhere(self, request: Request) -> bool:
        host = request.origin.split("//")[1]
        return host != self.api and host in ("api.pcloud.com", "eapi.pcloud.com")

    def _refuse(self, code: int, message: str) -> Refused:
        return Refused(self.refusal(200, str(code), message))

    def answer(self, request: Request) -> Answer:
        method, parts = request.method, request.parts
        if parts[:1] == ["tickets"]:
            node = self.tree.nodes.get(self.tickets.get(parts[1], ""))
            return byte_range(request, node.data) if node is not None and node.data is not None else Answer(404)
        # Parameters are in the address or in a form.
        given = dict(request.query)
        if method == "POST" and request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            given |= request.form()
        if parts == ["oauth2_token"]:
            # The service has no PKCE and does not check the redirect address; if a client sends both, they are checked here.
            code = "" if self._is_elsewhere(request) else given.get("code", "")
            answer = self.accounts.token({"grant_type": "authorization_code", **given, "code": code})
            if answer.status != 200:
                raise self._refuse(2012 if answer.status == 400 else 5000, "Invalid 'code' provided.")
            found = json.loads(answer.body) if answer.body[:1] == b"{" else None
            if found is None or "access_token" not in found:
                return answer
            token = {"access_token": found["access_token"], "token_type": "bearer"}
            return Answer.of({"result": 0, **token, "userid": 1, "locationid": self.location})
        if parts == ["oauth2", "authorize"]:
            answer = self.accounts.authorize(given)
            if "Location" in answer.headers:
                answer.headers["Location"] += f"&locationid={self.location}&hostname={self.api}"
            return answer
        known = not self._is_elsewhere(request) and self._is_known(request, given)
        if not known:
            raise self._refuse(2000 if "authorization" in request.headers else 1000, "Log in failed.")
        act = getattr(self, "_do_" + (parts[0] if len(parts) == 1 else ""), None)
        if act is None:
            raise self._refuse(1076, "Please provide a method that exists.")
        done: dict[str, Any] = act(request, given)
        return Answer.of({"result": 0, **done})

    def _is_known(self, request: Request, given: dict[str, str]) -> bool:
        return self.accounts.knows(request.headers.get("authorization", "")) or (
            self.accounts.knows(f"Bearer {given.get('access_token', given.get('auth', ''))}")
        )

    # The methods of the interface.

    def _do_userinfo(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        return {"email": "ann@example.org", "quota": self.quota, "usedquota": self.tree.bytes, "userid": 1}

    def _do_listfolder(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        hidden = set(self.tree.changes[-self.stale :]) if self.stale else set()
        return {"metadata": self._tree(self._folder(given), given.get("recursive") == "1", hidden)}

    def _do_createfolder(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        parent, name = self._folder(given), self._name(given.get("name"))
        if self.tree.find(parent.id, name) is not None:
            raise self._refuse(2004, "File or folder alredy exists.")
        return {"metadata": self._metadata(self.tree.add(parent.id, name, None))}

    def _do_createfolderifnotexists(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        if "path" in given:
            above, _, last = given["path"].rstrip("/").rpartition("/")
            given = {"path": above or "/", "name": last}
        parent, name = self._folder(given), self._name(given.get("name"))
        old = self.tree.find(parent.id, name)
        if old is not None and not old.is_folder:
            raise self._refuse(2004, "File or folder alredy exists.")
        return {"metadata": self._metadata(old or self.tree.add(parent.id, name, None)), "created": old is None}

    def _do_uploadfile(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        if request.method == "PUT":
            if not request.body:
                raise self._refuse(2041, "Connection broken.")
            files = [(self._name(given.get("filename")), request.body)]
        else:
            files = []
            for headers, data in multipart(request):
                words = headers.get("content-disposition", "").split('filename="')
                if len(words) == 2:
                    files.append((self._name(words[1].split('"')[0]), data))
                elif 'name="' in words[0]:
                    given[words[0].split('name="')[1].split('"')[0]] = data.decode()
        parent = self._folder(given)
        modified = datetime.fromtimestamp(int(given["mtime"]), timezone.utc) if "mtime" in given else None
        made = [self._store(parent, name, data, given, modified) for name, data in files]
        sums = [self._sums(each.data or b"") for each in made]
        return {"fileids": [int(each.id) for each in made], "metadata": [self._metadata(each) for each in made], "checksums": sums}

    def _store(self, parent: Node, name: str, data: bytes, given: dict[str, str], modified: Optional[datetime]) -> Node:
        if self.tree.bytes + len(data) > self.quota:
            raise self._refuse(2008, "User is over quota.")
        old = self.tree.find(parent.id, name)
        if old is not None and given.get("renameifexists") == "1":
            (stem, dot, end), number = name.rpartition("."), 1
            while old is not None:
                number += 1
                name = f"{stem} ({number}).{end}" if dot else f"{end} ({number})"
                old = self.tree.find(parent.id, name)
        if old is not None and old.is_folder:
            raise self._refuse(2004, "File or folder alredy exists.")
        if old is None:
            return self.tree.add(parent.id, name, data, modified)
        self.tree.write(old, data, modified)
        return old

    @staticmethod
    def _sums(data: bytes) -> dict[str, str]:
        return {"sha1": digest("sha1", data).hex(), "md5": digest("md5", data).hex()}

    # Uploads in sessions, as pCloud's own programs make them: its C client and its SDKs.

    def _upload(self, given: dict[str, str]) -> bytearray:
        found = self.uploads.get(int(given.get("uploadid") or 0))
        if found is None:
            raise self._refuse(2067, "Upload not found.")
        return found

    def _do_upload_create(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        if self.tree.bytes + int(given.get("filesize") or 0) > self.quota:
            raise self._refuse(2008, "User is over quota.")
        id = 70_000 + int(next(self.serials))
        self.uploads[id] = bytearray()
        return {"uploadid": id}

    def _do_upload_write(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        data, offset = self._upload(given), int(given.get("uploadoffset") or 0)
        if request.method != "PUT" or offset > len(data):
            raise self._refuse(2068, "Could not write to the upload.")
        data[offset : offset + len(request.body)] = request.body
        return {}

    def _do_upload_info(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        data = bytes(self._upload(given))
        return {"size": len(data), **self._sums(data)}

    def _do_upload_save(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        data = bytes(self._upload(given))
        made = self._store(self._folder({"folderid": given.get("folderid", "")}), self._name(given.get("name")), data, given, None)
        del self.uploads[int(given["uploadid"])]
        return {"metadata": self._metadata(made)}

    def _do_upload_delete(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        self._upload(given)
        del self.uploads[int(given["uploadid"])]
        return {}

    def cut_short(self, request: Request) -> None:
        """The bytes of a file that arrived are kept, unless the request has `nopartial`; those of a session are always kept."""
        if request.parts == ["upload_write"] and int(request.query.get("uploadid") or 0) in self.uploads:
            with self.lock:
                self._do_upload_write(request, dict(request.query))
        if request.parts == ["uploadfile"] and request.method == "PUT" and not request.query.get("nopartial"):
            with self.lock:
                self._do_uploadfile(request, dict(request.query))

    def _do_stat(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        return {"metadata": self._metadata(self._file(given))}

    def _do_checksumfile(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        node = self._file(given)
        return {**self._sums(node.data or b""), "metadata": self._metadata(node)}

    def _do_getfilelink(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        ticket = f"t{next(self.serials)}"
        self.tickets[ticket] = self._file(given).id
        host = "p-def1.pcloud.com" if request.origin.startswith("https") else request.origin.split("//")[1]
        return {"path": f"/tickets/{ticket}/{quote('a name')}", "hosts": [host], "expires": format_datetime(self.tree.time)}

    def _do_renamefile(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        return {"metadata": self._rename(self._file(given), given)}

    def _do_renamefolder(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        return {"metadata": self._rename(self._folder(given), given)}

    def _do_copyfile(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        node = self._file(given)
        parent, name = self._folder({"folderid": given.get("tofolderid", node.parent or "0")}), given.get("toname") or node.name
        old = self.tree.find(parent.id, name)
        if old is not None and given.get("noover") == "1":
            raise self._refuse(2004, "File or folder alredy exists.")
        if old is not None:
            self.tree.delete(old)
        return {"metadata": self._metadata(self.tree.add(parent.id, name, node.data, node.modified))}

    def _do_deletefile(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        node = self._file(given)
        found = self._metadata(node) | {"isdeleted": True}
        self.tree.delete(node)
        return {"metadata": found}

    def _do_deletefolder(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        node = self._folder(given)
        if self.tree.children(node.id):
            raise self._refuse(2006, "Folder is not empty.")
        found = self._metadata(node) | {"isdeleted": True}
        self.tree.delete(node)
        return {"metadata": found}

    def _do_deletefolderrecursive(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        node = self._folder(given)
        files = [each for each in self.tree.below(node.id) if not each.is_folder]
        folders = [each for each in self.tree.below(node.id) if each.is_folder]
        self.tree.delete(node)
        return {"deletedfiles": len(files), "deletedfolders": len(folders) + 1}

    def _do_diff(self, request: Request, given: dict[str, str]) -> dict[str, Any]:
        end = len(self.tree.changes)
        if given.get("last") == "0":
            return {"diffid": end, "entries": []}
        begin = int(given.get("diffid") or 0)
        if begin < self.forgotten:
            return {"diffid": end, "entries": [{"event": "reset", "diffid": end, "time": format_datetime(self.tree.time)}]}
        size = int(given.get("limit") or 1_000)
        entries = []
        for number, id in enumerate(self.tree.changes[begin : begin + size], begin + 1):
            node = self.tree.nodes.get(id)
            is_folder = node.is_folder if node else id in self.tree.folders_gone
            kind = "folder" if is_folder else "file"
            event = f"delete{kind}" if node is None else f"create{kind}" if node.version == 1 else f"modify{kind}"
            metadata = self._metadata(node) if node else {f"{kind}id": int(id), "isfolder": is_folder, "isdeleted": True}
            entries.append({"event": event, "diffid": number, "time": format_datetime(self.tree.time), "metadata": metadata})
        return {"diffid": min(end, begin + size), "entries": entries}

    # Files and folders

    def _name(self, name: Optional[str]) -> str:
        if not name or "/" in name or name in (".", ".."):
            raise self._refuse(2001, "Invalid file/folder name.")
        return name

    def _at(self, path: str) -> Optional[Node]:
        node: Optional[Node] = self.tree.nodes[self.tree.root]
        for name in [name for name in path.split("/") if name]:
            node = self.tree.find(node.id, name) if node else None
        return node

    def _folder(self, given: dict[str, str]) -> Node:
        node = self._at(given["path"]) if "path" in given else self.tree.nodes.get(given.get("folderid", ""))
        if node is None or not node.is_folder:
            raise self._refuse(2005, "Directory does not exist.")
        return node

    def _file(self, given: dict[str, str]) -> Node:
        node = self._at(given["path"]) if "path" in given else self.tree.nodes.get(given.get("fileid", ""))
        if node is None or node.is_folder:
            raise self._refuse(2009, "File not found.")
        return node

    def _rename(self, node: Node, given: dict[str, str]) -> dict[str, Any]:
        parent = self._folder({"folderid": given["tofolderid"]}).id if "tofolderid" in given else node.parent or "0"
        name = self._name(given.get("toname") or node.name)
        old = self.tree.find(parent, name)
        if old is not None and old is not node:
            if old.is_folder or node.is_folder:
                raise self._refuse(2004, "File or folder alredy exists.")
            self.tree.delete(old)
        node.parent, node.name = parent, name
        self.tree.touch(node)
        return self._metadata(node)

    def _metadata(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": node.name or "/", "created": format_datetime(node.made), "modified": format_datetime(node.modified),
            "isfolder": node.is_folder, "ismine": True, "isshared": False, "thumb": False, "id": ("d" if node.is_folder else "f") + node.id,
        }  # fmt: skip
        if node.parent is not None:
            found["parentfolderid"] = int(node.parent)
        if node.data is None:
            return found | {"folderid": int(node.id)}
        number = int.from_bytes(digest("sha1", node.data)[:8], "big")
        return found | {"fileid": int(node.id), "size": len(node.data), "hash": number, "contenttype": "application/octet-stream"}

    def _tree(self, node: Node, deep: bool, hidden: set[str]) -> dict[str, Any]:
        children = [each for each in self.tree.children(node.id) if each.id not in hidden]
        inside = [self._tree(each, True, hidden) if each.is_folder and deep else self._metadata(each) for each in children]
        return self._metadata(node) | {"contents": inside}
