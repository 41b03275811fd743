"""Signatures of requests to a bucket, and the spelling of names, compared with botocore: it signs the same requests, and spells the same
names.

The names in this file are always tested; the naughty strings if public inputs are available (Tests/Python/public_inputs.py)."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Any, Iterator, Optional
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import botocore.session
import llvs
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
from buckets import moto
from public_inputs import naughty, needed
from s3_server import BUCKET, KEY, REGION, SECRET, S3Server
from sampling import sample

__all__ = ["moto"]

#: Prefixes of keys with characters that encodings treat differently.
NAMES = ["a b", "a+b", "100%", "%41", "é", "e\u0301", "日本", "\U0001f600", "~-_.", "a&b=c", "a?b#c", "a;b", "a:b@c", "'\"", "(a)", "a*!",
         "[a]", "a\\b", "a|b", "{a}", "a^`", "<a>", "a/b/c", "$a,b", "\u202e", "\ufeff", "\x7f"]  # fmt: skip


class Recorder:
    """Answers as an empty bucket that accepts every object, and records the requests."""

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.requests: list[dict[str, Any]] = []
        server.fault = self

    def __call__(self, environ: dict[str, Any]) -> tuple[str, bytes]:
        self.requests.append(environ)
        if environ["REQUEST_METHOD"] == "GET" and "list-type" in environ["QUERY_STRING"]:
            return "200 OK", b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
        return ("404 Not Found", b"") if environ["REQUEST_METHOD"] in ("GET", "HEAD") else ("200 OK", b"")


@pytest.fixture
def recorder(moto: S3Server) -> Iterator[Recorder]:
    yield Recorder(moto)
    moto.fault = None


@pytest.fixture
def one(new_store: Any) -> llvs.Store:
    """A store with one version."""
    store = new_store()
    store.make_version(insert={"a": b"1"})
    return store


def botocore_signature(request: dict[str, Any], secret: str = SECRET, token: Optional[str] = None) -> str:
    """The signature that botocore makes for a request with the headers of this one that were signed."""
    headers = {name[5:].replace("_", "-").lower(): value for name, value in request.items() if name.startswith("HTTP_")}
    assert headers["x-amz-content-sha256"] == hashlib.sha256(request["wsgi.input"].getvalue()).hexdigest()
    headers["content-type"] = request.get("CONTENT_TYPE", "")
    headers["content-length"] = request.get("CONTENT_LENGTH", "")
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    path, _, query = request["RAW_URI"].partition("?")
    made = AWSRequest(
        request["REQUEST_METHOD"], f"http://{headers['host']}{path}", {name: headers[name] for name in signed},
        params=dict(parse_qsl(query, keep_blank_values=True)),
    )  # fmt: skip
    made.context.update(timestamp=headers["x-amz-date"], client_config=None)
    judge = S3SigV4Auth(Credentials(KEY, secret, token), "s3", REGION)
    return str(judge.signature(judge.string_to_sign(made, judge.canonical_request(made)), made))


class Empty:
    """The body of an answer without one."""

    def stream(self) -> Iterator[bytes]:
        return iter(())


class Speller:
    """Writes the path of an object as botocore does."""

    def __init__(self, server: S3Server) -> None:
        config = Config(s3={"addressing_style": "path"}, signature_version="s3v4")
        self._client = botocore.session.get_session().create_client(
            "s3", REGION, endpoint_url=f"http://127.0.0.1:{server.port}", aws_access_key_id=KEY, aws_secret_access_key=SECRET,
            config=config,
        )  # fmt: skip
        self._path = ""
        self._client.meta.events.register("before-send.s3.*", self._seen)

    def _seen(self, request: Any, **more: Any) -> AWSResponse:
        parts = urlsplit(request.url)
        self._path = parts.path
        return AWSResponse(request.url, 404, {}, Empty())

    def __call__(self, key: str) -> str:
        try:
            self._client.head_object(Bucket=BUCKET, Key=key)
        except self._client.exceptions.ClientError:
            pass
        return self._path


def check(recorder: Recorder, speller: Speller, prefix: str, store: llvs.Store) -> bool:
    """Sends the store to a prefix, and compares each request with botocore's. Returns whether the prefix is accepted."""
    recorder.requests.clear()
    place = llvs.Remote(recorder.server.url(prefix) + "&layout=interchange", user=KEY, password=SECRET)
    try:
        way = llvs.Exchange(store, place)
    except llvs.errors.InvalidArgumentError:
        return False
    with way:
        assert len(way.send().sent) == 1
    # A slash before the prefix belongs to the URL. The name of a folder may end with one.
    start = prefix.lstrip("/").removesuffix("/") + "/"
    wanted, asked = {f"{start}{kind}/{version.id}" for kind in ("versions", "changes") for version in store}, set()
    for request in recorder.requests:
        assert request["HTTP_AUTHORIZATION"].endswith(f"Signature={botocore_signature(request)}"), ascii(prefix)
        path, _, query = request["RAW_URI"].partition("?")
        key = unquote_to_bytes(path).decode().removeprefix(f"/{BUCKET}/")
        if request["REQUEST_METHOD"] == "PUT":
            asked.add(key)
            assert path == speller(key), ascii(prefix)
        elif "prefix=" in query:
            assert dict(parse_qsl(query))["prefix"].startswith(start), ascii(prefix)
    assert asked == wanted, ascii((prefix, asked))
    return True


@pytest.fixture(scope="module")
def speller(moto: S3Server) -> Speller:
    """One for all tests: botocore reads its description of the service each time it makes a client."""
    return Speller(moto)


@pytest.mark.parametrize("prefix", NAMES, ids=ascii)
def test_names_are_signed_and_spelled_as_by_botocore(recorder: Recorder, speller: Speller, one: llvs.Store, prefix: str) -> None:
    assert check(recorder, speller, prefix, one)


@needed("naughty-strings")
def test_naughty_names_are_signed_and_spelled_as_by_botocore(recorder: Recorder, one: llvs.Store) -> None:
    """A refused prefix leads to another folder, or has a control character."""
    speller, names = Speller(recorder.server), naughty()
    for prefix in sample(names[::15], names):
        leads_away = any(part in (".", "..") for part in prefix.split("/"))
        assert check(recorder, speller, prefix, one) == (not leads_away and min(prefix) >= " "), ascii(prefix)
    for prefix in ("a/../b", "./a", "..", "a\x1bb", "a\tb", "a\0"):
        assert not check(recorder, speller, prefix, one), ascii(prefix)


@needed("naughty-strings")
def test_naughty_secrets_sign_as_by_botocore(recorder: Recorder, one: llvs.Store) -> None:
    """A secret with a control character is refused: it was read together with the end of its line."""
    for secret in sample(naughty()[::15], naughty()):
        recorder.requests.clear()
        try:
            place = llvs.Remote(recorder.server.url() + "&layout=interchange", user=KEY, password=secret)
            # (The versions that were sent before are gone.)
            way = llvs.Exchange(one, place, restoration_state=b"new")
        except llvs.errors.InvalidArgumentError:
            assert any(unicodedata.category(char) == "Cc" for char in secret), ascii(secret)
            continue
        with way:
            way.send()
        assert recorder.requests
        for request in recorder.requests:
            assert request["HTTP_AUTHORIZATION"].endswith(f"Signature={botocore_signature(request, secret)}"), ascii(secret)
