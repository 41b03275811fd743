"""The faults that can be injected into the stand-ins, and the rules of their accounts."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Iterator
from urllib.parse import quote, urlencode

import pytest
from box import Box
from digests import quick_xor_hash
from drive import GoogleDrive
from onedrive import OneDrive
from patience import PATIENCE
from pcloud import PCloud
from service import ServiceServer


class Client:
    def __init__(self, service: Any) -> None:
        self.service = service
        self.server = ServiceServer(service)
        self.token, self.refresh = service.accounts.sign_in()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server.url + path, data, {"Authorization": f"Bearer {self.token}", **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                found = answer.read()
                return answer.status, dict(answer.headers), json.loads(found) if found[:1] in (b"{", b"[") else found
        except urllib.error.HTTPError as error:
            found = error.read()
            return error.code, dict(error.headers), json.loads(found) if found[:1] == b"{" else found

    def put(self, name: str, data: bytes) -> tuple[int, Any]:
        """Makes a file in the top folder."""
        match self.service:
            case GoogleDrive():
                given = json.dumps({"name": name}).encode()
                body = b"--x\r\nContent-Type: application/json\r\n\r\n" + given + b"\r\n--x\r\n\r\n" + data + b"\r\n--x--\r\n"
                headers = {"Content-Type": "multipart/related; boundary=x"}
                found = self.ask("POST", "/upload/drive/v3/files?uploadType=multipart", body, **headers)
            case OneDrive():
                found = self.ask("PUT", f"/v1.0/me/drive/root:/{quote(name)}:/content?@microsoft.graph.conflictBehavior=fail", data)
            case Box():
                given = json.dumps({"name": name, "parent": {"id": "0"}}).encode()
                body = b'--x\r\nContent-Disposition: form-data; name="attributes"\r\n\r\n' + given
                body += b'\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + data + b"\r\n--x--\r\n"
                found = self.ask("POST", "/api/2.0/files/content", body, **{"Content-Type": "multipart/form-data; boundary=x"})
            case _:
                found = self.ask("PUT", f"/uploadfile?folderid=0&filename={quote(name)}", data)
        return found[0], found[2]

    def list(self) -> list[str]:
        match self.service:
            case GoogleDrive():
                query = urlencode({"q": "'root' in parents and trashed=false"})
                files = self.ask("GET", f"/drive/v3/files?{query}")[2]["files"]
            case OneDrive():
                files = self.ask("GET", "/v1.0/me/drive/root/children")[2]["value"]
            case Box():
                files = self.ask("GET", "/2.0/folders/0/items?usemarker=true")[2]["entries"]
            case _:
                files = self.ask("GET", "/listfolder?folderid=0")[2]["metadata"]["contents"]
        return [file["name"] for file in files if file["name"] != "Apps"]


@pytest.fixture(params=[GoogleDrive, OneDrive, Box, PCloud])
def client(request: Any) -> Iterator[Client]:
    client = Client(request.param())
    yield client
    client.server.close()


def only(kind: type[Any]) -> Any:
    return pytest.mark.parametrize("client", [kind], indirect=True)


def test_an_answer_that_is_lost(client: Client) -> None:
    """The file exists nevertheless."""
    client.service.inject("lost answer")
    with pytest.raises((urllib.error.URLError, http.client.HTTPException, ConnectionError)):
        client.put("a", b"1")
    assert client.list() == ["a"]


def test_an_answer_that_is_cut(client: Client) -> None:
    client.put("a", b"1")
    client.service.inject("cut answer")
    with pytest.raises(http.client.IncompleteRead):
        client.list()
    assert client.list() == ["a"]


def test_a_list_that_is_stale(client: Client) -> None:
    client.put("a", b"1")
    client.put("b", b"1")
    client.service.stale = 1
    assert client.list() == ["a"]


def test_a_token_that_expired(client: Client) -> None:
    client.put("a", b"1")
    client.service.inject("token expired")
    status, found = client.put("b", b"1")
    assert status == 401 or found["result"] == 2000
    client.token, _ = client.service.accounts.sign_in()
    assert client.list() == ["a"]


def test_quota(client: Client) -> None:
    client.service.quota = 10
    status, found = client.put("a", b"1" * 11)
    assert status in (403, 507) or found["result"] == 2008
    assert client.list() == []


def test_names_that_are_taken(client: Client) -> None:
    """A second file of the same name: another file on Google Drive, a conflict with Box and OneDrive, which ignore case, and new content
    with pCloud."""
    client.put("name", b"1")
    status, found = client.put("NAME" if isinstance(client.service, (Box, OneDrive)) else "name", b"2")
    if isinstance(client.service, (Box, OneDrive)):
        assert status == 409 and client.list() == ["name"]
    else:
        assert status == 200 and client.list() == ["name"] * (2 if isinstance(client.service, GoogleDrive) else 1)


@only(GoogleDrive)
def test_drive_makes_twins(client: Client) -> None:
    client.service.twins = True
    client.put("a", b"1")
    assert client.list() == ["a", "a"]


@only(GoogleDrive)
def test_drive_changes(client: Client) -> None:
    start = client.ask("GET", "/drive/v3/changes/startPageToken")[2]["startPageToken"]
    id = client.put("a", b"1")[1]["id"]
    client.ask("PATCH", f"/drive/v3/files/{id}", {"trashed": True})
    found = client.ask("GET", f"/drive/v3/changes?pageToken={start}")[2]
    assert [(each["fileId"], each["file"]["trashed"]) for each in found["changes"]] == [(id, True)]
    assert client.ask("GET", f"/drive/v3/changes?pageToken={found['newStartPageToken']}")[2]["changes"] == []


@only(GoogleDrive)
def test_drive_takes_an_id_once(client: Client) -> None:
    id = client.ask("GET", "/drive/v3/files/generateIds?count=1")[2]["ids"][0]
    given = {"id": id, "name": "folder", "mimeType": "application/vnd.google-apps.folder"}
    assert [client.ask("POST", "/drive/v3/files", given)[0] for _ in range(2)] == [200, 409]


@only(OneDrive)
def test_graph_delta(client: Client) -> None:
    everything = client.ask("GET", "/v1.0/me/drive/root/delta")[2]
    client.put("a", b"1")
    link = everything["@odata.deltaLink"].removeprefix(client.server.url)
    assert [each["name"] for each in client.ask("GET", link)[2]["value"]] == ["a"]
    client.service.oldest_mark = 1_000
    status, headers, _ = client.ask("GET", link)
    assert status == 410 and headers["Location"].endswith("/delta")


@only(Box)
def test_box_events_come_twice(client: Client) -> None:
    position = client.ask("GET", "/2.0/events?stream_type=changes&stream_position=now")[2]["next_stream_position"]
    client.put("a", b"1")
    found = client.ask("GET", f"/2.0/events?stream_type=changes&stream_position={position}")[2]
    assert [each["source"]["name"] for each in found["entries"]] == ["a", "a"]


@only(PCloud)
def test_pcloud_forgets(client: Client) -> None:
    client.put("a", b"1")
    assert client.ask("GET", "/diff?diffid=0")[2]["entries"][0]["event"] == "createfile"
    client.service.forgotten = 1
    assert [each["event"] for each in client.ask("GET", "/diff?diffid=0")[2]["entries"]] == ["reset"]


def refreshed(client: Client, token: str) -> tuple[int, Any]:
    path = {GoogleDrive: "/token", OneDrive: "/common/oauth2/v2.0/token", Box: "/oauth2/token"}[type(client.service)]
    status, _, found = client.ask("POST", path, urlencode({"grant_type": "refresh_token", "refresh_token": token}).encode())
    return status, found


@pytest.mark.parametrize("client", [GoogleDrive, OneDrive, Box], indirect=True)
def test_refreshing(client: Client) -> None:
    """Google's refresh token stays, Microsoft issues another one, and Box's is valid once: using it again revokes the tokens that it led
    to."""
    status, found = refreshed(client, client.refresh)
    assert status == 200 and ("refresh_token" in found) == (not isinstance(client.service, GoogleDrive))
    status, again = refreshed(client, client.refresh)
    if isinstance(client.service, Box):
        assert status == 400 and again["error"] == "invalid_grant"
        assert refreshed(client, found["refresh_token"])[0] == 400
    else:
        assert status == 200
    client.service.accounts.revoke()
    assert refreshed(client, client.refresh)[0] == 400


@only(GoogleDrive)
def test_a_code_needs_its_verifier(client: Client) -> None:
    verifier = "v" * 50
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    target = "http://127.0.0.1:1/back"
    query = urlencode(
        {"response_type": "code", "redirect_uri": target, "code_challenge": challenge, "code_challenge_method": "S256", "state": "s"}
    )

    def code() -> str:
        connection = http.client.HTTPConnection("127.0.0.1", client.server.server_port)
        connection.request("GET", f"/o/oauth2/v2/auth?{query}")
        place = connection.getresponse().headers["Location"]
        connection.close()
        assert place.endswith("&state=s")
        return str(place.split("code=")[1].split("&")[0])

    def token(verifier: str) -> int:
        form = {"grant_type": "authorization_code", "code": code(), "redirect_uri": target, "code_verifier": verifier}
        return client.ask("POST", "/token", urlencode(form).encode())[0]

    assert token(verifier) == 200
    assert token("another") == 400


def plainly(data: bytes) -> bytes:
    """Returns the hash of OneDrive, computed byte by byte, as Microsoft describes it."""
    found = 0
    for number, byte in enumerate(data):
        moved = byte << number * 11 % 160
        found ^= (moved | moved >> 160) & ((1 << 160) - 1)
    return (found ^ len(data) << 96).to_bytes(20, "little")


@pytest.mark.parametrize("data, hash", [(b"\x4a", "SgAAAAAAAAAAAAAAAQAAAAAAAAA="), (b"\xb5\xb4", "taAFAAAAAAAAAAAAAgAAAAAAAAA=")])
def test_quick_xor_hash(data: bytes, hash: str) -> None:
    """Known hashes from other programs' tests. For more than 160 bytes, which wrap around, a plain implementation is the reference."""
    assert quick_xor_hash(data) == hash == base64.b64encode(plainly(data)).decode()
    for size in (0, 159, 160, 161, 320, 5_000):
        longer = data * (size // len(data)) + bytes(range(size % 256))
        assert quick_xor_hash(longer) == base64.b64encode(plainly(longer)).decode()
