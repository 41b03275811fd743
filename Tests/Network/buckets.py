"""Servers with buckets, for the tests of S3: moto, and Ceph's gateway."""

from __future__ import annotations

from typing import Any, Iterator, Union

import pytest
from rados_server import RadosGateway
from s3_server import S3Server

Service = Union[S3Server, RadosGateway]


@pytest.fixture(scope="module", params=[S3Server, RadosGateway], ids=["moto", "radosgw"])
def service(request: Any) -> Iterator[Service]:
    server = request.param()
    yield server
    server.close()


@pytest.fixture(scope="module")
def moto() -> Iterator[S3Server]:
    server = S3Server()
    yield server
    server.close()
