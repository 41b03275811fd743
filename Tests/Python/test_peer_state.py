"""The state of a direct connection, from a library whose struct is smaller than this package's."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import llvs
from llvs._generated import structs as _structs
from llvs.live import peer as peer_module


class Earlier:
    """Gives what was there before `digits` was appended; garbage lies behind it."""

    def __init__(self, size: int) -> None:
        whole = ctypes.sizeof(_structs.llvs_peer_state)
        self.memory = ctypes.create_string_buffer(b"\xff" * whole, whole)
        ctypes.memset(self.memory, 0, size)
        _structs.llvs_peer_state.from_buffer(self.memory).struct_size = size

    def __getattr__(self, name: str) -> Any:
        return getattr(llvs._abi.lib, name)

    def llvs_peer_get_state(self, pointer: Any, out: Any) -> None:
        out._obj.value = ctypes.addressof(self.memory)

    def llvs_peer_state_free(self, pointer: Any) -> None: ...


def test_a_library_with_a_smaller_struct(monkeypatch: pytest.MonkeyPatch) -> None:
    with llvs.Store(storage="memory") as store, llvs.live.Peer(store, bytes(48), initiator=True) as peer:
        assert peer.state.digits == "" and peer.state.phase == llvs.live.PeerPhase.CONNECTING
        monkeypatch.setattr(peer_module, "lib", Earlier(_structs.llvs_peer_state.digits.offset))
        assert peer.state.digits == "" and peer.state.pairing == b""
        monkeypatch.undo()
