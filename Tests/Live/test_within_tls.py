"""A link within TLS 1.3, with pinned keys at both ends: the bytes of TLS's exporter bind the link to it."""

from __future__ import annotations

import ctypes
import ctypes.util
import datetime
import hashlib
import os
from pathlib import Path
from typing import Any, Iterator, Optional

import live_peer
import pytest

import llvs

PAIRING = bytes(range(48))


class TLS:
    """One end of TLS 1.3 in memory, with the system's libssl and a certificate on both sides."""

    _ssl: Any = None
    _certificate_is_fine = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(lambda *_: 1)  # it is pinned below

    def __init__(self, is_server: bool, certificate: Path) -> None:
        lib = TLS._load()
        self.ssl = None
        self._context = ctypes.c_void_p(lib.SSL_CTX_new(lib.TLS_server_method() if is_server else lib.TLS_client_method()))
        lib.SSL_CTX_ctrl(self._context, 123, 0x0304, None)  # at least TLS 1.3
        assert lib.SSL_CTX_use_certificate_file(self._context, os.fsencode(certificate), 1) == 1
        assert lib.SSL_CTX_use_PrivateKey_file(self._context, os.fsencode(certificate), 1) == 1
        lib.SSL_CTX_set_verify(self._context, 3, TLS._certificate_is_fine)
        self.ssl = ctypes.c_void_p(lib.SSL_new(self._context))
        self._in, self._out = (ctypes.c_void_p(lib.BIO_new(lib.BIO_s_mem())) for _ in range(2))
        lib.SSL_set_bio(self.ssl, self._in, self._out)
        (lib.SSL_set_accept_state if is_server else lib.SSL_set_connect_state)(self.ssl)
        lib.SSL_do_handshake(self.ssl)

    @classmethod
    def _load(cls) -> Any:
        if cls._ssl is None:
            name = ctypes.util.find_library("ssl")
            if name is None:
                pytest.skip("needs libssl")
            cls._ssl = lib = ctypes.CDLL(name)
            for function in ("SSL_CTX_new", "TLS_server_method", "TLS_client_method", "SSL_new", "BIO_new", "BIO_s_mem",
                             "SSL_get1_peer_certificate", "X509_get0_pubkey"):
                getattr(lib, function).restype = ctypes.c_void_p
            lib.SSL_CTX_new.argtypes = lib.BIO_new.argtypes = lib.X509_get0_pubkey.argtypes = [ctypes.c_void_p]
            lib.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
            lib.i2d_PUBKEY.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        return cls._ssl

    @property
    def is_open(self) -> bool:
        return bool(self._ssl.SSL_is_init_finished(self.ssl))

    def send(self, data: bytes = b"") -> bytes:
        """Returns the bytes for the other end of TLS."""
        if data:
            assert self._ssl.SSL_write(self.ssl, data, len(data)) == len(data)
        out, buffer = b"", ctypes.create_string_buffer(1 << 16)
        while (count := self._ssl.BIO_read(self._out, buffer, len(buffer))) > 0:
            out += buffer.raw[:count]
        return out

    def receive(self, data: bytes) -> bytes:
        """Returns the decrypted bytes."""
        if data:
            assert self._ssl.BIO_write(self._in, data, len(data)) == len(data)
        if not self.is_open:
            self._ssl.SSL_do_handshake(self.ssl)
        out, buffer = b"", ctypes.create_string_buffer(1 << 16)
        while self.is_open and (count := self._ssl.SSL_read(self.ssl, buffer, len(buffer))) > 0:
            out += buffer.raw[:count]
        return out

    @property
    def pin(self) -> bytes:
        """The SHA-256 of the other side's public key."""
        out = ctypes.c_void_p()
        size = self._ssl.i2d_PUBKEY(self._ssl.X509_get0_pubkey(self._ssl.SSL_get1_peer_certificate(self.ssl)), ctypes.byref(out))
        return hashlib.sha256(ctypes.string_at(out.value or 0, size)).digest()

    @property
    def exported(self) -> bytes:
        """The exported keying material of RFC 9266."""
        out, label = ctypes.create_string_buffer(32), b"EXPORTER-Channel-Binding"
        assert self._ssl.SSL_export_keying_material(self.ssl, out, ctypes.c_size_t(32), label, ctypes.c_size_t(len(label)), b"",
                                                    ctypes.c_size_t(0), 1) == 1
        return out.raw

    def close(self) -> None:
        self._ssl.SSL_free(self.ssl)
        self._ssl.SSL_CTX_free(self._context)


def made(path: Path) -> tuple[Path, bytes]:
    """Makes a key with its certificate. Returns the path, and the pin."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, path.name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256()))  # fmt: skip
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM))
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return path, hashlib.sha256(public).digest()


class Tunnel:
    """Both ends of a TLS connection."""

    def __init__(self, here: tuple[Path, bytes], there: tuple[Path, bytes]) -> None:
        self.here, self.there = TLS(False, here[0]), TLS(True, there[0])
        for _ in range(4):
            self.there.receive(self.here.send())
            self.here.receive(self.there.send())
        assert self.here.is_open and self.there.is_open
        self.pins = self.here.pin, self.there.pin

    def carry(self, data: bytes, from_here: bool) -> bytes:
        one, two = (self.here, self.there) if from_here else (self.there, self.here)
        return two.receive(one.send(data))

    def close(self) -> None:
        self.here.close()
        self.there.close()


@pytest.fixture
def keys(tmp_path: Path) -> list[tuple[Path, bytes]]:
    return [made(tmp_path / name) for name in ("one.pem", "two.pem", "three.pem")]


@pytest.fixture
def stores() -> Iterator[tuple[llvs.Store, llvs.Store]]:
    with llvs.Store(storage="memory") as one, llvs.Store(storage="memory") as two:
        one.make_version(insert={"a": b"1"})
        yield one, two


def run(
    stores: tuple[llvs.Store, llvs.Store], tunnels: list[Tunnel], outer: tuple[Optional[bytes], Optional[bytes]]
) -> None:
    """Runs a link through one connection of TLS after another. Raises the error that ended it."""
    with llvs.live.Peer(stores[0], PAIRING, initiator=True, outer=outer[0] or b"") as one, llvs.live.Peer(
            stores[1], PAIRING, initiator=False, outer=outer[1] or b"") as two:
        moved, failed = True, None
        while moved:
            moved = False
            for from_here, sender, receiver in ((True, one, two), (False, two, one)):
                while data := sender.send():
                    moved = True
                    for tunnel in tunnels if from_here else tunnels[::-1]:
                        data = tunnel.carry(data, from_here)
                    try:
                        receiver.receive(data)
                    except llvs.Error as error:
                        failed = failed or error
        if failed is not None:
            raise failed
        assert one.state.phase == two.state.phase == llvs.live.PeerPhase.IN_STEP


def test_one_connection_of_tls(stores: tuple[llvs.Store, llvs.Store], keys: list[tuple[Path, bytes]]) -> None:
    tunnel = Tunnel(keys[0], keys[1])
    assert tunnel.pins == (keys[1][1], keys[0][1]) and tunnel.here.exported == tunnel.there.exported
    run(stores, [tunnel], (tunnel.here.exported, tunnel.there.exported))
    assert stores[1].most_recent_head is not None
    tunnel.close()


def test_a_peer_with_two_of_the_keys(stores: tuple[llvs.Store, llvs.Store], keys: list[tuple[Path, bytes]]) -> None:
    """An attacker has a TLS connection to each side. The bytes are encrypted from end to end nevertheless, and a side that passes the
    exporter's bytes notices the attacker."""
    first, second = Tunnel(keys[0], keys[2]), Tunnel(keys[2], keys[1])
    with pytest.raises(llvs.errors.EncryptionError, match="not at the other end") as raised:
        run(stores, [first, second], (first.here.exported, second.there.exported))
    assert raised.value.code == llvs.ErrorCode.WRONG_KEY and stores[1].most_recent_head is None
    run(stores, [first, second], (None, None))
    assert stores[1].most_recent_head is not None
    first.close()
    second.close()


@pytest.mark.parametrize("given", [0, 1])
def test_one_side_that_says_nothing_of_it(
    stores: tuple[llvs.Store, llvs.Store], keys: list[tuple[Path, bytes]], given: int
) -> None:
    """A side that passes the exporter's bytes requires them of the other side."""
    tunnel = Tunnel(keys[0], keys[1])
    outer = (tunnel.here.exported, None) if given == 0 else (None, tunnel.there.exported)
    with pytest.raises(llvs.errors.EncryptionError, match="not at the other end"):
        run(stores, [tunnel], outer)
    assert stores[1].most_recent_head is None
    tunnel.close()


def test_the_page_says_what_is_sent(stores: tuple[llvs.Store, llvs.Store]) -> None:
    """The frame that the peer in plain Python expects: 32 bytes after the others, with feature bit 4."""
    outer = os.urandom(32)
    for given, is_let_in in ((outer, True), (os.urandom(32), False)):
        peer = live_peer.Peer(True, PAIRING)
        peer.outer = given
        with llvs.live.Peer(stores[0], PAIRING, initiator=False, outer=outer) as end:
            if is_let_in:
                live_peer.carry(peer, end)
                assert peer.caught_up and peer.their_hello is not None and peer.outer_mac in peer.their_hello
            else:
                with pytest.raises(llvs.errors.EncryptionError):
                    live_peer.carry(peer, end)


def test_what_no_exporter_gives(stores: tuple[llvs.Store, llvs.Store]) -> None:
    for outer in (bytes(15), bytes(256)):
        with pytest.raises(llvs.Error):
            llvs.live.Peer(stores[0], PAIRING, initiator=True, outer=outer)
