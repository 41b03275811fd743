"""Exchanges through a bucket. Every signature is checked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, Optional

import llvs
import llvs.testing
import pytest
import strict_reader
from buckets import Service, moto, service
from conftest import ids
from s3_server import BUCKET, KEY, SECRET, S3Server


def prepared(server: Any, name: str) -> Any:
    """Prepares a server with a separate prefix for each test."""
    server.prefix = f"{abs(hash(name)):x}/a b+é"
    server.fault = None
    server.ahead = 0
    server.forget_requests()
    return server


@pytest.fixture
def bucket(service: Service, request: Any) -> Any:
    """A bucket of moto, and then one of Ceph's gateway."""
    return prepared(service, request.node.name)


@pytest.fixture
def faulty(moto: S3Server, request: Any) -> Any:
    """A bucket whose answers a test can set."""
    return prepared(moto, request.node.name)


def unsigned(server: Any, **options: Any) -> llvs.Remote:
    return llvs.Remote(server.url(server.prefix) + "&layout=interchange", **options)


def place(server: Any, **options: Any) -> llvs.Remote:
    return unsigned(server, **({"user": KEY, "password": SECRET} | options))


def exchange(store: llvs.Store, server: Any) -> llvs.exchange.ExchangeResult:
    with llvs.Exchange(store, place(server)) as way:
        received, sent = way.retrieve(), way.send()
    assert not received.problems and not sent.problems
    return llvs.exchange.ExchangeResult(received.retrieved, sent.sent, ())


def test_two_stores(bucket: Any, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    assert len(exchange(store, bucket).sent) == 3
    assert set(exchange(second, bucket).retrieved) == ids(store)
    second.make_version(second.most_recent_head, insert={"theirs": b"1"})
    store.make_version(store.most_recent_head, insert={"ours": b"2"})
    for each in (second, store, second):
        exchange(each, bucket)
    assert ids(store) == ids(second) and len(ids(store)) == 5


def test_what_lies_there_is_read_by_others(bucket: Any, store: llvs.Store, tmp_path: Path) -> None:
    exchange(store, bucket)
    for kind in ("versions", "changes"):
        (tmp_path / "copy" / kind).mkdir(parents=True)
        for id in ids(store):
            data = bucket.get(f"{bucket.prefix}/{kind}/{id}")
            assert data is not None
            (tmp_path / "copy" / kind / id).write_bytes(data)
    strict_reader.read(tmp_path / "copy")


def test_large_values(bucket: Any, new_store: Any) -> None:
    first, second = new_store(), new_store()
    data = bytes(range(256)) * 20_000
    version = first.make_version(insert={"large": data})
    exchange(first, bucket)
    exchange(second, bucket)
    assert second.at(version)["large"] == data


def refusing(status: str, code: str, then: Callable[[], object] = lambda: None) -> Callable[[dict[str, Any]], Any]:
    """Refuses the keys "stale" in this way, and then calls `then`."""

    def fault(environ: dict[str, Any]) -> Optional[tuple[str, bytes]]:
        if "Credential=stale/" not in environ["HTTP_AUTHORIZATION"]:
            return None
        then()
        return status, f"<Error><Code>{code}</Code></Error>".encode()

    return fault


REFUSALS = [("403 Forbidden", "InvalidAccessKeyId"), ("403 Forbidden", "ExpiredToken"), ("400 Bad Request", "ExpiredToken")]


@pytest.mark.parametrize(("status", "code"), REFUSALS)
def test_refused_keys_are_asked_for_again(faulty: Any, store: llvs.Store, status: str, code: str) -> None:
    """S3 reports refused keys by a code, not by the status 401."""
    asked: list[bool] = []

    def credentials(address: str, again: bool) -> llvs.exchange.Credentials:
        asked.append(again)
        return llvs.exchange.Credentials(KEY, SECRET) if again else llvs.exchange.Credentials("stale", "x", "session")

    faulty.fault = refusing(status, code)
    with llvs.Exchange(store, unsigned(faulty, credentials=credentials)) as way:
        assert len(way.send().sent) == 3
    assert asked == [False, True]
    with llvs.Exchange(store, place(faulty, user="stale", password="x")) as way:
        with pytest.raises(llvs.errors.PermissionDeniedError, match="refuses the keys"):
            way.retrieve()


def test_keys_of_the_shared_file_are_read_again(faulty: Any, store: llvs.Store, monkeypatch: Any, tmp_path: Path) -> None:
    """Keys of a session expire, and another program writes new ones."""
    file = tmp_path / "credentials"

    def write(key: str, secret: str) -> None:
        file.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    write("stale", "x")
    faulty.fault = refusing("403 Forbidden", "ExpiredToken", lambda: write(KEY, SECRET))
    with llvs.Exchange(store, unsigned(faulty)) as way:
        assert len(way.send().sent) == 3


def test_a_list_of_other_objects_is_an_error(faulty: Any, store: llvs.Store) -> None:
    """Otherwise an apparently empty place would be filled again."""
    object = b"<Contents><Key>else/where</Key><Size>1</Size></Contents>"
    listed = b"<ListBucketResult><IsTruncated>false</IsTruncated>" + object + b"</ListBucketResult>"
    faulty.fault = lambda environ: ("200 OK", listed) if environ["REQUEST_METHOD"] == "GET" else None
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError, match="not requested"):
        way.retrieve()


def test_requests(bucket: Any, store: llvs.Store) -> None:
    exchange(store, bucket)
    with llvs.Exchange(store, place(bucket)) as way:
        way.retrieve()
        bucket.forget_requests()
        way.retrieve()
        way.send()
        assert [method for method, _ in bucket.requests] == ["GET"]
        head = store.most_recent_head
        for number in range(10):
            head = store.make_version(head, insert={f"k{number}": b"1"})
        way.retrieve()
        bucket.forget_requests()
        assert len(way.send().sent) == 10
        # An exchange that has just been opened looks for keys once, so that it does not send in clear to an encrypted place.
        assert [method for method, _ in bucket.requests] == ["GET"] + ["PUT"] * 20
    bucket.forget_requests()


def test_pages(bucket: Any, new_store: Any, store: llvs.Store) -> None:
    """A page of the listing holds 1,000 names."""
    exchange(store, bucket)
    # These names are no version ids, and come first in the listing.
    for number in range(1_100):
        bucket.put(f"{bucket.prefix}/versions/+ {number}", b"?")
    second = new_store()
    with llvs.Exchange(second, place(bucket)) as way:
        problems = way.retrieve().problems
    assert ids(second) == ids(store) and not problems
    assert sum("continuation-token" in target for _, target in bucket.requests) == 1


@pytest.mark.parametrize("says", ["501 Not Implemented", "412 Precondition Failed"])
def test_exclusive_creation(faulty: Any, store: llvs.Store, says: str) -> None:
    """If the service does not support it, the library checks first. If another device was faster, the contents are compared."""
    exchange(store, faulty)
    store.make_version(store.most_recent_head, insert={"n": b"1"})
    faulty.fault = lambda environ: (says, b"") if "HTTP_IF_NONE_MATCH" in environ else None
    with llvs.Exchange(store, place(faulty)) as way:
        assert len(way.send().sent) == 1
    assert any(method == "HEAD" for method, _ in faulty.requests) == ("501" in says)
    faulty.fault = None
    assert not exchange(store, faulty).sent


@pytest.mark.parametrize("code", ["InvalidArgument", "NotImplemented", "InvalidRequest", ""])
def test_a_service_that_refuses_exclusive_creation_as_a_bad_request(faulty: Any, store: llvs.Store, code: str) -> None:
    refusal = f"<Error><Code>{code}</Code></Error>".encode() if code else b""
    faulty.fault = lambda environ: ("400 Bad Request", refusal) if "HTTP_IF_NONE_MATCH" in environ else None
    with llvs.Exchange(store, place(faulty)) as way:
        assert len(way.send().sent) == 3
        store.make_version(store.most_recent_head, insert={"n": b"1"})
        faulty.forget_requests()
        assert len(way.send().sent) == 1
        # The library remembers that the server does not support the header: before each file is sent, it checks whether the file exists.
        assert [method for method, _ in faulty.requests if method in ("PUT", "HEAD")] == ["HEAD", "PUT"] * 2
    # A file that is refused with and without the header remains an error.
    store.make_version(store.most_recent_head, insert={"m": b"1"})
    faulty.fault = lambda environ: ("400 Bad Request", refusal) if environ["REQUEST_METHOD"] == "PUT" else None
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError, match="400"):
        way.send()
    faulty.fault = None
    with llvs.Exchange(store, place(faulty)) as way:
        faulty.forget_requests()
        assert len(way.send().sent) == 1
        assert not any(method == "HEAD" for method, _ in faulty.requests)


def judging_times(server: Any, says: str) -> list[str]:
    """Makes `server` refuse requests that are signed more than 15 minutes before or after its clock. Returns the methods that it
    refuses."""
    refused: list[str] = []

    def fault(environ: dict[str, Any]) -> Optional[tuple[Any, ...]]:
        signed = datetime.strptime(environ["HTTP_X_AMZ_DATE"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
        if abs(time.time() + server.ahead - signed) <= 900:
            return None
        refused.append(environ["REQUEST_METHOD"])
        return "403 Forbidden", f"<Error><Code>{says}</Code></Error>".encode() if says else b""

    server.fault = fault
    return refused


@pytest.mark.parametrize("says", ["RequestTimeTooSkewed", "AccessDenied", ""])
@pytest.mark.parametrize("ahead", [-86_400, 3_600, 400 * 86_400])
def test_a_clock_that_is_wrong_for_a_moment(faulty: Any, store: llvs.Store, new_store: Any, ahead: float, says: str) -> None:
    """After the first refusal requests are signed with the service's clock, also after the own clock has become right."""
    refused = judging_times(faulty, says)
    faulty.ahead = ahead
    with llvs.Exchange(store, place(faulty)) as way:
        assert len(way.send().sent) == 3
        assert len(refused) == 1
        store.make_version(store.most_recent_head, insert={"n": b"1"})
        faulty.ahead = 0
        assert len(way.send().sent) == 1
        # The requests that were in flight together.
        assert 2 <= len(refused) <= 5
    assert set(exchange(new_store(), faulty).retrieved) == ids(store)


def test_a_clock_that_no_date_helps(faulty: Any, tmp_path: Path) -> None:
    """This is no refusal of the user, and is retried after some time."""
    faulty.fault = lambda environ: ("403 Forbidden", b"<Error><Code>RequestTimeTooSkewed</Code></Error>")
    with llvs.Coordinator(tmp_path / "notes", exchange=place(faulty)) as notes:
        notes.save(insert={"x": b"1"})
        with llvs.Syncer(notes, conditions=llvs.syncer.SyncConditions.OFFLINE) as syncer:
            assert not syncer.run()
            one = syncer.status.places[0]
            assert isinstance(one.error, llvs.TransportError) and "clocks" in str(one.error)
            assert one.reason == llvs.syncer.SyncReason.UNREACHABLE and one.retry_at is not None and not one.needs_user
            # Each request once more.
            assert len(faulty.requests) == 2
            faulty.fault = None
            assert syncer.run() and syncer.status.places[0].error is None


@pytest.mark.parametrize("status", ["400 Bad Request", "301 Moved Permanently", "403 Forbidden"])
@pytest.mark.parametrize("names", ["header", "body"])
def test_another_region(faulty: Any, store: llvs.Store, new_store: Any, status: str, names: str) -> None:
    """The service names the bucket's region. From then on requests are signed for that region."""
    refused: list[str] = []

    def fault(environ: dict[str, Any]) -> Optional[tuple[Any, ...]]:
        if "/mars-north-1/s3/" in environ["HTTP_AUTHORIZATION"]:
            return None
        refused.append(environ["REQUEST_METHOD"])
        region, headers = ("<Region>mars-north-1</Region>", []) if names == "body" else ("", [("x-amz-bucket-region", "mars-north-1")])
        return status, f"<Error><Code>AuthorizationHeaderMalformed</Code>{region}</Error>".encode(), headers

    faulty.fault = fault
    with llvs.Exchange(store, place(faulty)) as way:
        assert len(way.send().sent) == 3
        store.make_version(store.most_recent_head, insert={"n": b"1"})
        assert len(way.send().sent) == 1
    assert len(refused) == 1, "it is remembered"
    assert set(exchange(new_store(), faulty).retrieved) == ids(store)


def test_a_region_that_cannot_be_used_is_reported(faulty: Any, store: llvs.Store) -> None:
    """The answer of Amazon's service if the bucket is on another host: signing for the region is not sufficient."""
    body = b"<Error><Code>PermanentRedirect</Code><Endpoint>b.s3-eu-north-9.amazonaws.com</Endpoint></Error>"
    faulty.fault = lambda environ: ("301 Moved Permanently", body, [("x-amz-bucket-region", "eu-north-9")])
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError, match="region=eu-north-9"):
        way.retrieve()
    assert len(faulty.requests) == 2
    # If a service names another region each time, the library gives up; if it names nonsense, the library ignores it.
    for named in ("x{}", "a b", "../x"):
        faulty.forget_requests()
        faulty.fault = lambda environ, named=named: (
            "400 Bad Request", b"<Error><Code>AuthorizationHeaderMalformed</Code></Error>",
            [("x-amz-bucket-region", named.format(len(faulty.requests)))])
        with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError):
            way.retrieve()
        assert len(faulty.requests) == (2 if named == "x{}" else 1)


def test_snapshots(bucket: Any, store: llvs.Store, new_store: Any) -> None:
    second = new_store()
    with llvs.Exchange(store, place(bucket)) as way:
        assert way.snapshot() is None
        way.put_snapshot()
    with llvs.Exchange(second, place(bucket)) as way:
        assert way.restore_snapshot() is not None
    assert ids(second) == ids(store)


@pytest.mark.parametrize("change", [{"user": "AKIDOTHER"}, {"password": "wrong"}, {"user": "", "password": ""}])
def test_wrong_keys(bucket: Any, store: llvs.Store, change: dict[str, str], monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    with llvs.Exchange(store, place(bucket, **change)) as way, pytest.raises(
        llvs.errors.PermissionDeniedError, match="refuses the keys" if change.get("user", KEY) else "refuses the keys|may not do this"
    ) as raised:
        way.send()
    assert SECRET not in str(raised.value) and "wrong" not in str(raised.value)


def test_keys_of_the_environment(bucket: Any, store: llvs.Store, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with llvs.Exchange(store, bucket.url("of the environment")) as way:
        assert len(way.send().sent) == 3
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        f"# ours\n[default]\naws_access_key_id = x\n aws_secret_access_key=y\n\n[work]\naws_access_key_id = {KEY}\naws_secret_access_key ="
        f" {SECRET}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    with llvs.Exchange(store, bucket.url("of a file")) as way:
        assert len(way.send().sent) == 3


def test_a_session_token(faulty: S3Server, store: llvs.Store, monkeypatch: Any) -> None:
    """The token is a part of the signature."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a token/+=")
    seen: list[str] = []
    faulty.fault = lambda environ: seen.append(environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""))
    with llvs.Exchange(store, faulty.url("environment")) as way:
        assert len(way.send().sent) == 3
    assert set(seen) == {"a token/+="}


def test_a_bucket_that_is_not_there(bucket: Any, store: llvs.Store) -> None:
    with llvs.Exchange(store, llvs.Remote(bucket.url(bucket="no-such-bucket"), user=KEY, password=SECRET)) as way:
        with pytest.raises(llvs.NotFoundError, match="no such bucket"):
            way.retrieve()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html/>",
        b"<ListBucketResult><Contents>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]><ListBucketResult/>",
    ],
)
def test_what_is_no_list(faulty: Any, store: llvs.Store, answer: bytes) -> None:
    faulty.fault = lambda environ: ("200 OK", answer)
    with llvs.Exchange(store, place(faulty)) as way, pytest.raises(llvs.TransportError):
        way.retrieve()


@pytest.mark.parametrize(
    "url",
    [
        "s3:", "s3://", "s3://x/", f"s3://{BUCKET}:80/", f"s3://a:b@{BUCKET}/", f"s3://{BUCKET}/?endpoint=http://example.org/",
        f"s3://{BUCKET}/?key=s3cret",
        f"s3://{BUCKET}/?endpoint=ftp://x/", f"s3://{BUCKET}/?region=a/b", f"s3://{BUCKET}/?addressing=both", f"s3://{BUCKET}/%zz",
    ],
)  # fmt: skip
def test_urls_that_are_refused(store: llvs.Store, url: str) -> None:
    with pytest.raises(llvs.errors.InvalidArgumentError) as raised:
        llvs.Exchange(store, url)
    assert "s3cret" not in str(raised.value)


DELETING = "deleted files are gone, and no others"


def test_many_are_deleted_at_once(bucket: Any) -> None:
    plan = llvs.testing.FaultPlan()
    bucket.forget_requests()
    assert llvs.testing.check_files(lambda number: plan.transport(place(bucket)), only=DELETING)
    asked = [method for method, _ in bucket.requests if method in ("DELETE", "POST")]
    # One file is deleted alone, then 32 together.
    assert asked == ["DELETE", "POST"]


#: Exchanges with a bucket until an object is deleted. The arguments are the URL, a key and its secret.
DELETES = """
import sys, llvs, llvs.testing
url, user, password = sys.argv[1:]
plan = llvs.testing.FaultPlan()
place = llvs.Remote(url, user=user, password=password)
assert llvs.testing.check_files(lambda number: plan.transport(place), only="deleted files are gone, and no others")
"""


#: The configuration of a system that permits only what FIPS permits, and so no MD5.
STRICT = """
openssl_conf = init
[init]
providers = providers
alg_section = algorithms
[providers]
default = default
[default]
activate = 1
[algorithms]
default_properties = fips=yes
"""


@pytest.mark.parametrize("strict", [False, True])
def test_the_sum_of_a_list_of_what_is_to_be_deleted(bucket: Any, strict: bool, tmp_path: Path) -> None:
    """The sum is MD5, by libcrypto; if the system forbids MD5, SHA-256."""
    environment, sums = dict(os.environ), []
    if strict:
        (tmp_path / "openssl.cnf").write_text(STRICT)
        environment["OPENSSL_CONF"] = str(tmp_path / "openssl.cnf")
    bucket.forget_requests()
    if isinstance(bucket, S3Server):
        bucket.fault = lambda environ: sums.append(
            (environ["REQUEST_METHOD"], "HTTP_CONTENT_MD5" in environ, "HTTP_X_AMZ_CHECKSUM_SHA256" in environ)
        )
    run = subprocess.run(
        [sys.executable, "-c", DELETES, bucket.url(bucket.prefix) + "&layout=interchange", KEY, SECRET],
        env=environment, capture_output=True, text=True,
    )
    assert run.returncode == 0, run.stderr
    assert [method for method, _ in bucket.requests if method in ("DELETE", "POST")] == ["DELETE", "POST"]
    if isinstance(bucket, S3Server):
        assert [one[1:] for one in sums if one[0] == "POST"] == [(not strict, strict)]


@pytest.mark.parametrize("code", ["SlowDown", "RequestLimitExceeded"])
def test_a_service_that_is_asked_too_often(faulty: Any, store: llvs.Store, code: str) -> None:
    """The service is left alone for a while, and then reported as busy. A later request succeeds."""
    answer = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>Please reduce your request rate.</Message></Error>".encode()
    faulty.fault = lambda environ: ("503 Slow Down", answer)
    with llvs.Exchange(store, place(faulty)) as way:
        with pytest.raises(llvs.BusyError, match=code):
            way.retrieve()
        assert 2 <= len(faulty.requests) <= 5
        seen = []
        faulty.fault = lambda environ: ("503 Slow Down", answer) if not seen and not seen.append(1) else None
        assert not way.retrieve().problems and len(seen) == 1


@pytest.mark.parametrize("says", ["501 Not Implemented", "405 Method Not Allowed", "400 Bad Request"])
def test_a_service_that_deletes_one_at_a_time(faulty: Any, says: str) -> None:
    plan = llvs.testing.FaultPlan()
    faulty.fault = lambda environ: (says, b"<Error/>") if environ["REQUEST_METHOD"] == "POST" else None
    assert llvs.testing.check_files(lambda number: plan.transport(place(faulty)), only=DELETING)
    methods = [method for method, _ in faulty.requests]
    assert methods.count("POST") == 1 and methods.count("DELETE") == 1 + 32, "it is asked once"


@pytest.mark.parametrize(
    "answer, error",
    [
        (b"<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code><Message>no</Message></Error></DeleteResult>", "AccessDenied: no"),
        (b"<DeleteResult><Error><Key>k</Key><Code>InternalError</Code></Error></DeleteResult>", "InternalError"),
        (b"<html/>", "begins with"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><DeleteResult/>", "document type"),
    ],
)
def test_what_was_not_deleted_is_reported(faulty: Any, answer: bytes, error: str) -> None:
    plan = llvs.testing.FaultPlan()
    faulty.fault = lambda environ: ("200 OK", answer) if environ["REQUEST_METHOD"] == "POST" else None
    with pytest.raises(llvs.testing.ConformanceError, match=error):
        llvs.testing.check_files(lambda number: plan.transport(place(faulty)), only=DELETING)


def test_an_answer_that_is_cut_short(faulty: Any) -> None:
    """The objects that it does not report are requested one by one."""
    plan = llvs.testing.FaultPlan()
    cut = b"<DeleteResult><Error><Key>k</Key>"
    faulty.fault = lambda environ: ("200 OK", cut) if environ["REQUEST_METHOD"] == "POST" else None
    assert llvs.testing.check_files(lambda number: plan.transport(place(faulty)), only=DELETING)


CHECKS = ["a new place is empty", "all version ids can be names", "unusual bytes are sent unchanged", "large files are complete",
          "two transports that send at once lose nothing", "cancelling leaves only complete files",
          "snapshot files are kept, replaced and deleted", "files that are sent again are replaced"]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_transport(bucket: Any, check: str) -> None:
    plan = llvs.testing.FaultPlan()

    def transport(number: int) -> llvs.exchange.Transport:
        return plan.transport(llvs.Remote(bucket.url(f"{abs(hash(check)):x}-{number}"), user=KEY, password=SECRET))

    assert llvs.testing.check_transport(transport, only=check)
