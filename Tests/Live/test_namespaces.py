"""Direct connections between network namespaces of one machine: with delay, loss, cuts and silence. No packet leaves these namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from namespaces import HERE, LISTENER, Device, Network, run
from patience import eventually


def test_two_namespaces(network: Network, tmp_path: Path) -> None:
    """Versions from before, and saves of either side while the link lasts. A device that returns is recognised."""
    one, two, port = network.pair(tmp_path)
    one.ask("save", 30, 500)
    two.ask("save", 20, 500)
    two.ask("connect", LISTENER, port)
    assert two.ask("wait")
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
    for device in (one, two):
        device.ask("save", 5, 100)
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
    assert len(one.ask("ids")) == 60 and two.ask("wait") and two.ask("state") == {"received": 35, "phase": "IN_STEP"}
    two.ask("connect", LISTENER, port)
    assert two.ask("wait") and two.ask("state")["received"] == 35


def test_delay(network: Network, tmp_path: Path) -> None:
    """A relay delays all bytes by 100 ms each way. One link carries all of a burst of saves."""
    one, two, port = network.pair(tmp_path)
    environment = {**os.environ, "PYTHONPATH": ""}
    relay = subprocess.Popen(
        ["ip", "netns", "exec", network.b, sys.executable, str(HERE / "delay.py"), LISTENER, str(port), "0.1"],
        stdout=subprocess.PIPE, text=True, env=environment)  # fmt: skip
    network.others.append(relay)
    assert relay.stdout is not None
    near = int(relay.stdout.readline())
    one.ask("save", 100, 20_000)
    two.ask("connect", "127.0.0.1", near)
    assert two.ask("wait")
    for _ in range(3):
        one.ask("save", 10, 100)
        two.ask("save", 10, 100)
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
    assert two.ask("wait") and two.ask("state") == {"received": 130, "phase": "IN_STEP"} and one.ask("links") == 1


@pytest.mark.parametrize("percent", [5, 20])
def test_loss(network: Network, tmp_path: Path, percent: int) -> None:
    """Lost packets cost time, and nothing else."""
    one, two, port = network.pair(tmp_path)
    network.rule(f"numgen random mod 100 < {percent} drop")
    one.ask("save", 20, 20_000)
    two.ask("save", 20, 20_000)
    # The handshake may take longer than the listener waits. Then nothing is transferred, and the next link transfers everything.
    assert any(_comes_in_step(two, port) for _ in range(20))
    one.ask("save", 3, 100)
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
    assert two.ask("wait") and two.ask("state") == {"received": 23, "phase": "IN_STEP"}


def _comes_in_step(device: Device, port: int) -> bool:
    """Connects a device; false if the connection was cut."""
    device.ask("connect", LISTENER, port)
    device.begin("wait")
    answer = device.answer()
    assert "error" not in answer or "was cut" in answer["error"], answer
    return bool(answer.get("is"))


def test_cuts(network: Network, tmp_path: Path) -> None:
    """Links are cut repeatedly while they transfer. Each continues where the one before was cut, and only bytes in flight are sent
    twice."""
    one, two, port = network.pair(tmp_path)
    one.ask("save", 200, 20_000)
    for _ in range(3):
        # Only this much passes: each link is cut during the transfer, however slow the machine is.
        network.only(network.b, "quota over 1200 kbytes drop")
        two.ask("connect", LISTENER, port)
        before = two.ask("state")["received"]
        eventually(lambda: bool(two.ask("state")["received"] >= before + 30))
        # The sender learns that the other side is gone. The other side learns nothing, and connects again.
        network.rule("tcp flags & rst == 0 reject with tcp reset")
        eventually(lambda: one.ask("links") == 0)
        two.ask("close")
        network.mend()
    two.ask("connect", LISTENER, port)
    assert two.ask("wait") and two.ask("state") == {"received": 200, "phase": "IN_STEP"}
    assert one.ask("ids") == two.ask("ids")
    # At the three cuts at least 30, 60 and 90 versions had arrived. Sending them again would take 3.6 megabytes more. In flight is at most
    # a frame of 256 kilobytes for each link.
    assert 4_000_000 < network.counted(network.b) < 5_400_000


def test_a_wire_that_is_down_for_a_while(network: Network, tmp_path: Path) -> None:
    """The link outlasts the interruption."""
    one, two, port = network.pair(tmp_path)
    two.ask("connect", LISTENER, port)
    assert two.ask("wait")
    run("ip", "-n", network.a, "link", "set", "wire", "down")
    one.ask("save", 5, 1_000)
    two.ask("save", 5, 1_000)
    eventually(lambda: network.is_sending(network.a) and network.is_sending(network.b))
    run("ip", "-n", network.a, "link", "set", "wire", "up")
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
    assert two.ask("wait") and two.ask("state") == {"received": 5, "phase": "IN_STEP"}


def test_silence(network: Network, tmp_path: Path) -> None:
    """No side learns that the wire was cut. After 90 seconds without a sign of life both sides close the link."""
    one, two, port = network.pair(tmp_path, moves=True)
    two.ask("connect", LISTENER, port)
    assert two.ask("wait") and one.ask("links") == 1
    network.rule("drop")

    def is_over() -> bool:
        for device in (one, two):
            device.ask("pass", 10)
        return bool(two.ask("state")["phase"] == "ENDED" and one.ask("links") == 0)

    eventually(is_over)
    assert "silent for 90 seconds" in two.fails("wait")
    network.mend()
    one.ask("save", 1, 10)
    two.ask("connect", LISTENER, port)
    assert two.ask("wait") and one.ask("ids") == two.ask("ids")


def test_a_link_that_is_idle(network: Network, tmp_path: Path) -> None:
    """The link's PINGs are answered, so it lasts for longer than 90 seconds."""
    one, two, port = network.pair(tmp_path, moves=True)
    two.ask("connect", LISTENER, port)
    assert two.ask("wait")
    # A link notices frames when it next reads the clock. A PING is due by the fourth or fifth time.
    passed = 0
    while passed < 120:
        before = [network.heard(side) for side in (network.a, network.b)]

        def are_heard() -> bool:
            nonlocal passed
            for device in (one, two):
                device.ask("pass", 10)
            passed += 10
            return all(network.heard(side) > count for side, count in zip((network.a, network.b), before))

        # The answer has arrived, even on a busy machine, before the clock moves further.
        eventually(are_heard, pause=0.3)
    assert two.ask("state")["phase"] == "IN_STEP" and one.ask("links") == 1
    one.ask("save", 1, 10)
    eventually(lambda: bool(one.ask("ids") == two.ask("ids")))
