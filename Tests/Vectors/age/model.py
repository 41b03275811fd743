"""The age format, version 1, with only Python's standard library: an implementation that is independent of the engine's, slow and readable.
It can also write files that no honest writer writes. Source: age-encryption.org/v1 (C2SP), RFC 7748, RFC 8439."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

P = 2**255 - 19
SEGMENT = 64 * 1024


def x25519(scalar: bytes, point: bytes = b"\x09" + bytes(31)) -> bytes:
    """RFC 7748, section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ~(1 << 255) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x1, x2, z2, x3, z3, swap = u, 1, 0, u, 1, 0
    for t in range(254, -1, -1):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % P, b * b % P, d * a % P, c * b % P
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


def chacha20(key: bytes, nonce: bytes, data: bytes, counter: int) -> bytes:
    """RFC 8439, section 2.4."""
    out = bytearray()
    constants = struct.unpack("<4I", b"expand 32-byte k")
    words, tail, mask = struct.unpack("<8I", key), struct.unpack("<3I", nonce), 0xFFFFFFFF
    rounds = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15), (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for at in range(0, len(data), 64):
        start = [*constants, *words, counter, *tail]
        s = list(start)
        for _ in range(10):
            for a, b, c, d in rounds:
                for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    s[x] = s[x] + s[y] & mask
                    s[z] ^= s[x]
                    s[z] = (s[z] << turn | s[z] >> 32 - turn) & mask
        block = struct.pack("<16I", *((p + q) & mask for p, q in zip(s, start)))
        out += bytes(p ^ q for p, q in zip(data[at : at + 64], block))
        counter += 1
    return bytes(out)


def poly1305(key: bytes, message: bytes) -> bytes:
    """RFC 8439, section 2.5."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return (total + int.from_bytes(key[16:], "little") & (1 << 128) - 1).to_bytes(16, "little")


def seal(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    """ChaCha20-Poly1305 without additional data."""
    once = chacha20(key, nonce, bytes(64), 0)[:32]
    sealed = chacha20(key, nonce, plain, 1)
    padded = sealed + bytes(-len(sealed) % 16) + struct.pack("<QQ", 0, len(sealed))
    return sealed + poly1305(once, padded)


def hkdf(secret: bytes, salt: bytes, info: bytes) -> bytes:
    extracted = hmac.digest(salt or bytes(32), secret, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def bech32(prefix: str, data: bytes) -> str:
    digits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    number, bits = int.from_bytes(data, "big"), len(data) * 8
    number <<= -bits % 5
    count = (bits + 4) // 5
    values = [number >> 5 * (count - 1 - i) & 31 for i in range(count)]

    def polymod(items: list[int]) -> int:
        state = 1
        for value in items:
            top = state >> 25
            state = (state & 0x1FFFFFF) << 5 ^ value
            for i, factor in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
                if top >> i & 1:
                    state ^= factor
        return state

    spread = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    sum_ = polymod(spread + values + [0] * 6) ^ 1
    return prefix + "1" + "".join(digits[v] for v in values + [sum_ >> 5 * (5 - i) & 31 for i in range(6)])


def b64(data: bytes) -> bytes:
    return base64.b64encode(data).rstrip(b"=")


def body(data: bytes) -> bytes:
    """Returns the lines of a stanza's body, the last of which is shorter than 64 characters."""
    text = b64(data)
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    if len(text) % 64 == 0:
        lines.append(b"")
    return b"".join(line + b"\n" for line in lines)


def x25519_stanza(file_key: bytes, once: bytes, recipient: bytes) -> bytes:
    share = x25519(once)
    key = hkdf(x25519(once, recipient), share + recipient, b"age-encryption.org/v1/X25519")
    return b"-> X25519 " + b64(share) + b"\n" + body(seal(key, bytes(12), file_key))


def scrypt_key(passphrase: bytes, salt: bytes, work: int) -> bytes:
    labelled = b"age-encryption.org/v1/scrypt" + salt
    return hashlib.scrypt(passphrase, salt=labelled, n=1 << work, r=8, p=1, maxmem=(1 << work) * 1024 + (1 << 22), dklen=32)


def scrypt_stanza(file_key: bytes, passphrase: bytes, salt: bytes, work: int, written: bytes | None = None) -> bytes:
    key = scrypt_key(passphrase, salt, work)
    return b"-> scrypt " + b64(salt) + b" " + (written or b"%d" % work) + b"\n" + body(seal(key, bytes(12), file_key))


def header(file_key: bytes, stanzas: bytes, start: bytes = b"age-encryption.org/v1\n") -> bytes:
    signed = start + stanzas + b"---"
    return signed + b" " + b64(hmac.digest(hkdf(file_key, b"", b"header"), signed, "sha256")) + b"\n"


def payload(file_key: bytes, nonce: bytes, segments: list[tuple[bytes, bool]], first: int = 0) -> bytes:
    key = hkdf(file_key, nonce, b"payload")
    out = nonce
    for number, (plain, is_last) in enumerate(segments, first):
        out += seal(key, number.to_bytes(11, "big") + bytes([is_last]), plain)
    return out


def cut(plain: bytes) -> list[tuple[bytes, bool]]:
    """Returns the segments as an honest writer makes them."""
    pieces = [plain[i : i + SEGMENT] for i in range(0, len(plain), SEGMENT)] or [b""]
    return [(piece, i == len(pieces) - 1) for i, piece in enumerate(pieces)]
