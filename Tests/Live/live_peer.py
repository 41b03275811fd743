"""A peer of the live protocol in plain Python, written from docs/live-protocol.md alone. It reads bytes and returns bytes.

It stores versions as the received payloads, by their coded ids, and does not request large values.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from typing import Iterable, Optional

import negotiation
import noise
from negotiation import Have, History, Listed

HELLO, HAVE, LIST, DATA, ACK, CREDIT, WANT, BLOB, NEWS, PING, PONG, BYE, ERROR, PAIRING, COMMIT, NONCE, ASK, RANGES = range(1, 19)
PRELUDE = 28


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def read_varint(data: bytes, at: int = 0) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def read_id(data: bytes, at: int) -> tuple[bytes, int]:
    """Reads a coded version id; returns it with the offset of its end."""
    end = at + 1 + (data[at] or 16)
    return data[at:end], end


def text_of(coded: bytes) -> str:
    if coded[0]:
        return coded[1:].decode()
    digits = coded[1:].hex().upper()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def names_of(payload: bytes) -> tuple[bytes, tuple[bytes, ...]]:
    """Returns the id of the version in a payload of form 0, and its predecessors."""
    assert payload[0] == 0
    _, at = read_varint(payload, 1)
    version, at = read_id(payload, at + PRELUDE)
    count, at = read_varint(payload, at)
    predecessors = []
    for _ in range(count):
        predecessor, at = read_id(payload, at)
        predecessors.append(predecessor)
    return version, tuple(predecessors)


class Refused(Exception):
    """The other side sent ERROR."""


class Peer:
    #: 1: supports NEWS, and answers with ASK; 2: compares ranges.
    features = 0
    #: The bytes of a TLS exporter.
    outer = b""

    def __init__(self, initiator: bool, pairing: bytes, static: Optional[bytes] = None, window: int = 4 << 20) -> None:
        store_id, key = pairing[:16], pairing[16:]
        prologue = b"llvs live 1" + hashlib.sha256(store_id).digest()
        self.handshake = noise.Handshake(initiator, key, prologue, static or os.urandom(32))
        self.initiator, self.key, self.window = initiator, key, window
        self.outgoing, self._incoming, self._plain, self._row = bytearray(), bytearray(), bytearray(), bytearray()
        self._needs_selector = not initiator
        self.sends: Optional[noise.Cipher] = None
        self.hears: Optional[noise.Cipher] = None
        self.incarnation = os.urandom(16)
        self.payloads: dict[bytes, bytes] = {}
        self.history = History()
        self.received: list[bytes] = []
        self.frames: list[tuple[int, bytes]] = []
        self.their_hello: Optional[bytes] = None
        self.mine: Optional[Have] = None
        self.theirs: Optional[Have] = None
        self.my_list: Optional[Listed] = None
        self.ranges: Optional[negotiation.Ranges] = None
        self.sent_missing = False
        self.caught_up = False
        self.credit = 0
        self.queue: list[bytes] = []
        self.reads = True
        if initiator:
            message = self.handshake.write()
            self.outgoing += noise.mac(key, message[:32])[:16]
            self._message(message)

    def add(self, payload: bytes) -> None:
        version, predecessors = names_of(payload)
        if version not in self.payloads and all(p in self.payloads for p in predecessors):
            self.payloads[version] = payload
            self.history.add(version, *predecessors)

    # Bytes

    def _message(self, data: bytes) -> None:
        self.outgoing += struct.pack("<H", len(data)) + data

    def frame(self, kind: int, payload: bytes = b"") -> None:
        assert self.sends is not None
        data = struct.pack("<IB", 1 + len(payload), kind) + payload
        for at in range(0, len(data), 65_519):
            self._message(self.sends.seal(data[at : at + 65_519]))

    def take(self) -> bytes:
        data = bytes(self.outgoing)
        self.outgoing.clear()
        return data

    def receive(self, data: bytes) -> None:
        self._incoming += data
        while self.reads:
            if self._needs_selector:
                if len(self._incoming) < 50:
                    return
                if bytes(self._incoming[:16]) != noise.mac(self.key, bytes(self._incoming[18:50]))[:16]:
                    raise noise.Refused("no pairing fits")
                del self._incoming[:16]
                self._needs_selector = False
            if len(self._incoming) < 2:
                return
            size = struct.unpack_from("<H", self._incoming)[0]
            if len(self._incoming) < 2 + size:
                return
            message = bytes(self._incoming[2 : 2 + size])
            del self._incoming[: 2 + size]
            if self.hears is not None:
                self._plain += self.hears.open(message)
                self._take_frames()
                continue
            self.handshake.read(message)
            if not self.handshake.is_done and (self.handshake.step % 2 == 0) == self.initiator:
                self._message(self.handshake.write())
            if self.handshake.is_done:
                self.sends, self.hears = self.handshake.split()
                self.hello()

    def _take_frames(self) -> None:
        while len(self._plain) >= 5:
            size, kind = struct.unpack_from("<IB", self._plain)
            if len(self._plain) < 4 + size:
                return
            payload = bytes(self._plain[5 : 4 + size])
            del self._plain[: 4 + size]
            self.frames.append((kind, payload))
            self.handle(kind, payload)

    # Frames that are sent

    def hello(self) -> None:
        features = self.features | (16 if self.outer else 0)
        self.frame(
            HELLO,
            struct.pack("<HH", 1, 1) + b"\x06python\x00" + self.incarnation + struct.pack("<Q", len(self.payloads) + 1)
            + bytes(16) + struct.pack("<QIQ", 0, features, self.window) + self.outer_mac,
        )

    @property
    def outer_mac(self) -> bytes:
        """Returns the field of HELLO about the outer connection."""
        return noise.mac(self.key, self.outer) if self.outer else b""

    def have(self) -> Have:
        return negotiation.have(self.history)

    def say_have(self) -> None:
        self.mine = have = self.have()
        self.frame(
            HAVE,
            struct.pack("<II", have.head_count, have.version_count) + have.fingerprint.to_bytes(32, "little")
            + struct.pack("<H", len(have.heads)) + b"".join(have.heads) + struct.pack("<H", len(have.samples)) + b"".join(have.samples),
        )

    def say_list(self) -> None:
        assert self.theirs is not None
        self.my_list = listed = negotiation.list_for(self.history, self.theirs, self.handshake.hash)
        bitmap = bytearray((len(listed.bits) + 7) // 8)
        for i, bit in enumerate(listed.bits):
            bitmap[i // 8] |= bit << i % 8
        self.frame(
            LIST,
            struct.pack("<BH", listed.has_all | listed.has_more << 1, len(listed.bits)) + bytes(bitmap)
            + struct.pack("<I", len(listed.hashes)) + b"".join(sorted(listed.hashes)),
        )

    def send_versions(self, versions: Iterable[bytes], ordinal: Optional[int] = None) -> None:
        row = b"".join(varint(len(self.payloads[v])) + self.payloads[v] for v in versions)
        pieces = [row[at : at + 200_000] for at in range(0, len(row), 200_000)] or [b""]
        for number, piece in enumerate(pieces):
            last = number == len(pieces) - 1
            deflater = zlib.compressobj(wbits=-15)
            deflated = deflater.compress(piece) + deflater.flush()
            self.queue.append(struct.pack("<QBI", (ordinal or len(self.payloads) + 1) if last else 0, 1, len(piece)) + deflated)
        self.drain()

    def drain(self) -> None:
        while self.queue and len(self.queue[0]) <= self.credit:
            self.credit -= len(self.queue[0])
            self.frame(DATA, self.queue.pop(0))

    # Frames that are received

    def handle(self, kind: int, payload: bytes) -> None:
        if kind == ERROR:
            raise Refused(struct.unpack_from("<H", payload)[0], payload[3:].decode())
        if kind == HELLO:
            self.their_hello = payload
            self.credit = struct.unpack_from("<Q", payload, behind_names(payload) + 16 + 8 + 16 + 8 + 4)[0]
            self.say_have()
        elif kind == HAVE:
            self.theirs = read_have(payload)
            assert self.mine is not None
            if negotiation.same(self.mine, self.theirs):
                self.send_versions([])
            else:
                self.say_list()
                if self.my_list is not None and self.my_list.has_all:
                    self.send_missing(None)
        elif kind == LIST:
            if not self.sent_missing:
                self._take_list(read_list(payload))
        elif kind == RANGES:
            assert self.ranges is not None
            answer = self.ranges.take(read_ranges(payload))
            if answer is not None:
                self.frame(RANGES, coded_ranges(answer))
            self._finish_ranges()
        elif kind == DATA:
            ordinal, codec, raw = struct.unpack_from("<QBI", payload)
            data = zlib.decompress(payload[13:], wbits=-15) if codec else payload[13:]
            assert len(data) == raw
            self._row += data
            self._take_versions()
            self.frame(CREDIT, struct.pack("<Q", len(payload)))
            if ordinal:
                self.caught_up = True
                self.frame(ACK, struct.pack("<QQ", len(self.received), ordinal))
        elif kind == CREDIT:
            self.credit += struct.unpack("<Q", payload)[0]
            self.drain()
        elif kind == NEWS:
            ids = read_ids(payload)
            if self.features:
                lacking = [version for version in ids if version not in self.payloads]
                self.frame(ASK, struct.pack("<H", len(lacking)) + b"".join(lacking))
        elif kind == PING:
            self.frame(PONG, payload)

    def _take_list(self, listed: Listed) -> None:
        assert self.mine is not None and self.theirs is not None and self.my_list is not None and self.their_hello is not None
        # Features follow incarnation, arrivals and since. Fields after the window are skipped.
        features = struct.unpack_from("<I", self.their_hello, behind_names(self.their_hello) + 16 + 8 + 16 + 8)[0]
        if not self.features & features & 2 or not negotiation.by_ranges(self.my_list, listed):
            return self.send_missing(listed)
        self.ranges = negotiation.Ranges(
            self.history, self.mine, self.theirs, listed, self.handshake.hash, order=lambda coded: text_of(coded).encode())
        if self.initiator:
            self.frame(RANGES, coded_ranges(self.ranges.begin()))
            self._finish_ranges()

    def _finish_ranges(self) -> None:
        if self.ranges is not None and self.ranges.is_done:
            self.sent_missing = True
            self.send_versions(self.ranges.lacking)

    def send_missing(self, their_list: Optional[Listed]) -> None:
        assert self.mine is not None and self.theirs is not None and self.my_list is not None
        self.sent_missing = True
        self.send_versions(
            negotiation.missing(self.history, self.mine, self.my_list, self.theirs, their_list, self.handshake.hash))

    def _take_versions(self) -> None:
        while self._row:
            if len(self._row) < 10 and all(byte > 127 for byte in self._row):
                return
            size, at = read_varint(self._row)
            if len(self._row) - at < size:
                return
            payload = bytes(self._row[at : at + size])
            del self._row[: at + size]
            self.received.append(names_of(payload)[0])
            self.add(payload)


def behind_names(hello: bytes) -> int:
    """Returns the offset in a HELLO after the names of software and device."""
    at = 4
    for _ in range(2):
        at += 1 + hello[at]
    return at


def read_ids(payload: bytes) -> list[bytes]:
    count, at = struct.unpack_from("<H", payload)[0], 2
    ids = []
    for _ in range(count):
        version, at = read_id(payload, at)
        ids.append(version)
    assert at == len(payload)
    return ids


def read_have(payload: bytes) -> Have:
    heads, versions = struct.unpack_from("<II", payload)
    lists, at = [], 40
    for _ in range(2):
        count, at = struct.unpack_from("<H", payload, at)[0], at + 2
        ids = []
        for _ in range(count):
            version, at = read_id(payload, at)
            ids.append(version)
        lists.append(ids)
    assert at == len(payload)
    return Have(heads, versions, int.from_bytes(payload[8:40], "little"), *lists)


def read_list(payload: bytes) -> Listed:
    flags, count = struct.unpack_from("<BH", payload)
    size = (count + 7) // 8
    bits = [bool(payload[3 + i // 8] >> i % 8 & 1) for i in range(count)]
    hashes = struct.unpack_from("<I", payload, 3 + size)[0]
    start = 7 + size
    assert len(payload) == start + 8 * hashes
    return Listed(bool(flags & 1), bool(flags & 2), bits, {payload[start + 8 * i : start + 8 * i + 8] for i in range(hashes)})


def coded_ranges(ranges: list[negotiation.Range]) -> bytes:
    out = struct.pack("<H", len(ranges))
    for kind, said, end in ranges:
        out += bytes([kind])
        if kind == negotiation.SUM:
            out += struct.pack("<I", said[0]) + said[1].to_bytes(32, "little")
        elif kind in (negotiation.LISTED_ALL, negotiation.HERE):
            out += struct.pack("<H", len(said)) + b"".join(said)
        if end is not None:
            out += struct.pack("<I", end[0]) + end[1]
    return out


def read_ranges(payload: bytes) -> list[negotiation.Range]:
    count, at = struct.unpack_from("<H", payload)[0], 2
    found: list[negotiation.Range] = []
    for number in range(count):
        kind, at = payload[at], at + 1
        said: object = None
        end = None
        if kind == negotiation.SUM:
            said = struct.unpack_from("<I", payload, at)[0], int.from_bytes(payload[at + 4 : at + 36], "little")
            at += 36
        elif kind in (negotiation.LISTED_ALL, negotiation.HERE):
            size = 8 * struct.unpack_from("<H", payload, at)[0]
            said = [payload[i : i + 8] for i in range(at + 2, at + 2 + size, 8)]
            at += 2 + size
        if number < count - 1:
            generation = struct.unpack_from("<I", payload, at)[0]
            version, at = read_id(payload, at + 4)
            end = generation, version
        found.append((kind, said, end))
    assert at == len(payload)
    return found


def carry(a: object, b: object, most: int = 10_000) -> None:
    """Carries bytes between two ends until neither has any to send. Each end has a function that returns bytes, and one that receives
    them."""

    def give(end: object) -> bytes:
        return end.take() if hasattr(end, "take") else end.send()  # type: ignore[attr-defined]

    for _ in range(most):
        first = give(a)
        if first:
            b.receive(first)  # type: ignore[attr-defined]
        second = give(b)
        if second:
            a.receive(second)  # type: ignore[attr-defined]
        if not first and not second:
            return
    raise AssertionError("they never come to an end")
