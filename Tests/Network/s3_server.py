"""An S3 service in this process: moto, behind a check of signatures, since moto accepts any signature."""

from __future__ import annotations

import hashlib
import hmac
import io
import threading
import time
from email.utils import formatdate
from typing import Any, Callable, Iterable, Optional
from urllib.parse import parse_qsl, quote

from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import Client

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-west-1"
BUCKET = "notes-bucket"


def signature(method: str, target: str, headers: dict[str, str], authorization: str, body_digest: str) -> str:
    """Returns the correct signature, from Amazon's description of Signature Version 4."""
    parts = dict(part.strip().split("=", 1) for part in authorization.split(" ", 1)[1].split(","))
    _, date, region, service, _ = parts["Credential"].split("/")
    path, _, query = target.partition("?")
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, keep_blank_values=True))
    signed = parts["SignedHeaders"].split(";")
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in signed)
    canonical = "\n".join([method, path, "&".join(f"{name}={value}" for name, value in pairs), lines, ";".join(signed), body_digest])
    scope = f"{date}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


class S3Server:
    """Listens on loopback until it is closed."""

    def __init__(self) -> None:
        # S3 alone: with all its services, moto looks for the right one at each request, which takes as long as the answer.
        self._app = create_backend_app("s3")
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        #: Requests that moto has processed.
        self.done: list[tuple[str, str]] = []
        #: Answers instead of moto's: a status, a body and perhaps headers.
        self.fault: Optional[Callable[[dict[str, Any]], Optional[tuple[Any, ...]]]] = None
        #: By how many seconds its clock, which its answers report, is ahead of this machine's.
        self.ahead = 0.0
        server = self

        class Handler(WSGIRequestHandler):
            def date_time_string(self, timestamp: Optional[float] = None) -> str:
                return formatdate(time.time() + server.ahead, usegmt=True)

        self._server = make_server("127.0.0.1", 0, self._judge, threaded=True, request_handler=Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.client = Client(self._app)
        assert self.client.put(f"/{BUCKET}", headers=self._own()).status_code == 200

    @staticmethod
    def _own() -> dict[str, str]:
        return {"Host": "127.0.0.1", "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request"}

    @property
    def port(self) -> int:
        return int(self._server.port)

    def forget_requests(self) -> None:
        self.requests.clear()
        self.done.clear()

    def url(self, prefix: str = "here", bucket: str = BUCKET) -> str:
        return f"s3://{bucket}/{quote(prefix)}?endpoint=http%3A%2F%2F127.0.0.1%3A{self.port}&region={REGION}"

    def get(self, key: str) -> Optional[bytes]:
        answer = self.client.get(f"/{BUCKET}/{quote(key)}", headers=self._own())
        return answer.data if answer.status_code == 200 else None

    def put(self, key: str, data: bytes) -> None:
        with self._lock:
            s3_backends[ACCOUNT_ID]["aws"].put_object(BUCKET, key, data)

    def _judge(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        method, target = environ["REQUEST_METHOD"], environ["RAW_URI"]
        self.requests.append((method, target))
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        fault = self.fault(environ) if self.fault else None
        if fault is not None:
            more = fault[2] if len(fault) > 2 else []
            start(fault[0], [("Content-Length", str(len(fault[1]))), ("Content-Type", "application/xml"), *more])
            return [fault[1]]
        headers = {name[5:].lower().replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        headers["content-type"] = environ.get("CONTENT_TYPE", "")
        authorization, digest = headers.get("authorization", ""), hashlib.sha256(body).hexdigest()
        expected = signature(method, target, headers, authorization, digest) if authorization else ""
        if not authorization.startswith(f"AWS4-HMAC-SHA256 Credential={KEY}/") or not authorization.endswith(f"Signature={expected}"):
            refusal = b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
            start("403 Forbidden", [("Content-Length", str(len(refusal))), ("Content-Type", "application/xml")])
            return [refusal]
        # moto checks for the object and writes it in two steps; real services do that in one.
        with self._lock:
            found = list(self._app(environ, start))
        self.done.append((method, target))
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
