"""The suite that every transport passes, over a server in memory."""

from __future__ import annotations

import llvs
import llvs.testing
import pytest
from dav_server import DavServer


#: Needs 10,000 requests.
MANY = "many files are listed and fetched"


@pytest.mark.parametrize("check", [check for check in llvs.testing.transport_checks() if check != MANY])
def test_transport(server: DavServer, check: str) -> None:
    plan = llvs.testing.FaultPlan()

    def transport(number: int) -> llvs.exchange.Transport:
        return plan.transport(llvs.Remote(server.url + f"{number}/"))

    report = llvs.testing.check_transport(transport, only=check)
    assert report
